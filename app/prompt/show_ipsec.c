/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show ipsec cache|sa`, `clear ipsec cache`. */

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"

static struct ipsec_cache_stats base;

static void
show_cache(const struct app *a)
{
	struct ipsec_cache_stats s;

	ipsec_cache_stats(a->ipsec, &s);
	printf("  flows    %u a worker%s\n", a->opt.ipsec_cache,
		a->opt.ipsec_cache == 0 ? " (no cache)" : "");
	printf("  hits     %" PRIu64 "  misses %" PRIu64 "  stale %" PRIu64 "  evictions %" PRIu64
	       "\n",
		s.hits - base.hits, s.misses - base.misses, s.stale - base.stale,
		s.evictions - base.evictions);
	printf("  inbound  hits %" PRIu64 "  misses %" PRIu64 "\n", s.in_hits - base.in_hits,
		s.in_misses - base.in_misses);
}

static void
show_sa(const struct app *a, const struct ipsec_cache_sa *sa)
{
	struct ipsec_cache_sa_spec spec;
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
	struct ipsec_cache_backend backend;

	ipsec_cache_sa_backend(a->ipsec, sa, &backend);
	ipsec_cache_sa_describe(sa, &spec);
	inet_ntop(spec.info.family, &spec.info.saddr, from, sizeof(from));
	inet_ntop(spec.info.family, &spec.info.id.daddr, to, sizeof(to));
	printf("  0x%08x  %s -> %s  %s%s%s  packets %" PRIu64 "  bytes %" PRIu64
	       "  replayed %u  bad ICV %u\n",
		ntohl(spec.info.id.spi), from, to, backend.name,
		backend.why_not[0] != '\0' ? ": " : "", backend.why_not,
		(uint64_t)spec.info.curlft.packets, (uint64_t)spec.info.curlft.bytes,
		spec.info.stats.replay, spec.info.stats.integrity_failed);
	explicit_bzero(&spec, sizeof(spec));
}

static void
show_sas(const struct app *a)
{
	const struct ipsec_cache_sa *sa;
	uint64_t after = 0;

	if (ipsec_cache_sa_count(a->ipsec) == 0)
		printf("  no SA\n");
	while ((sa = ipsec_cache_sa_next(a->ipsec, &after)) != NULL)
		show_sa(a, sa);
}

struct ipsec_result {
	cmdline_fixed_string_t verb, ipsec, what;
};

static void
ipsec_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct ipsec_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->verb, "clear") == 0)
		ipsec_cache_stats(app.ipsec, &base);
	else if (strcmp(r->what, "sa") == 0)
		show_sas(&app);
	else
		show_cache(&app);
}

static cmdline_parse_token_string_t is_show =
	TOKEN_STRING_INITIALIZER(struct ipsec_result, verb, "show");
static cmdline_parse_token_string_t is_clear =
	TOKEN_STRING_INITIALIZER(struct ipsec_result, verb, "clear");
static cmdline_parse_token_string_t is_ipsec =
	TOKEN_STRING_INITIALIZER(struct ipsec_result, ipsec, "ipsec");
static cmdline_parse_token_string_t is_what =
	TOKEN_STRING_INITIALIZER(struct ipsec_result, what, "cache#sa");
static cmdline_parse_token_string_t is_cache =
	TOKEN_STRING_INITIALIZER(struct ipsec_result, what, "cache");
static cmdline_parse_inst_t show_ipsec = {
	.f = ipsec_parsed,
	.help_str =
		"show ipsec cache|sa: what lcores remember of flows; SAs and what does their work",
	.tokens = { (void *)&is_show, (void *)&is_ipsec, (void *)&is_what, NULL },
};
PROMPT_REGISTER(show_ipsec);
static cmdline_parse_inst_t clear_ipsec = {
	.f = ipsec_parsed,
	.help_str = "clear ipsec cache: count hits and misses anew",
	.tokens = { (void *)&is_clear, (void *)&is_ipsec, (void *)&is_cache, NULL },
};
PROMPT_REGISTER(clear_ipsec);
