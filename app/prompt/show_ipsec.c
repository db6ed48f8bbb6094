/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show ipsec cache|sa|offload`, `clear ipsec cache`. */

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_security.h>

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

/* What a port's driver says it can do: a list that may not end is left after some. */
#define CAPABILITIES_MAX 1024

static const char *
action_name(enum rte_security_session_action_type action)
{
	if (action == RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO)
		return "inline-crypto";
	return action == RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL ? "inline-protocol" : NULL;
}

/* ESP tunnels alone: what SAs here are. */
static bool
can_do(const struct rte_security_capability *c, enum rte_security_session_action_type action,
	enum rte_security_ipsec_sa_direction direction)
{
	for (unsigned int i = 0;
		c != NULL && i < CAPABILITIES_MAX && c[i].action != RTE_SECURITY_ACTION_TYPE_NONE;
		i++) {
		if (c[i].action == action && c[i].protocol == RTE_SECURITY_PROTOCOL_IPSEC &&
			c[i].ipsec.proto == RTE_SECURITY_IPSEC_SA_PROTO_ESP &&
			c[i].ipsec.mode == RTE_SECURITY_IPSEC_SA_MODE_TUNNEL &&
			c[i].ipsec.direction == direction)
			return true;
	}
	return false;
}

static void
show_port_offload(const struct port *port)
{
	static const enum rte_security_session_action_type actions[] = {
		RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL, RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO
	};
	void *ctx = rte_eth_dev_get_sec_ctx(port->id);
	const struct rte_security_capability *c =
		ctx != NULL ? rte_security_capabilities_get(ctx) : NULL;
	const char *sep = "  ";

	printf("  %s  ", port->name);
	for (unsigned int i = 0; port->security && i < RTE_DIM(actions); i++) {
		bool out = can_do(c, actions[i], RTE_SECURITY_IPSEC_SA_DIR_EGRESS);
		bool in = can_do(c, actions[i], RTE_SECURITY_IPSEC_SA_DIR_INGRESS);

		if (out || in)
			printf("%s%s%s%s", sep, action_name(actions[i]), out ? " out" : "",
				in ? " in" : "");
		sep = out || in ? ", " : sep;
	}
	if (!port->security)
		printf("%s%s", sep,
			app.opt.ipsec_offload == IPSEC_CACHE_OFFLOAD_OFF
				? "not asked (--ipsec-offload=off)"
				: "no rte_security");
	else if (sep[0] == ' ')
		printf("%snothing that an SA here could use", sep);
	printf("%s\n", port_is_up(port) ? "" : " (down)");
}

static void
show_offload(struct app *a)
{
	static const char *const modes[] = { [IPSEC_CACHE_OFFLOAD_AUTO] = "auto",
		[IPSEC_CACHE_OFFLOAD_EXPLICIT] = "explicit",
		[IPSEC_CACHE_OFFLOAD_OFF] = "off" };
	struct ipsec_cache_stats s;

	ipsec_cache_stats(a->ipsec, &s);
	printf("  offload   %s\n", modes[a->opt.ipsec_offload]);
	printf("  sessions  %" PRIu64 "  dying %" PRIu64 "  stuck %" PRIu64 "\n", s.sessions,
		s.sessions_dying, s.sessions_stuck);
	printf("  fallbacks %" PRIu64 "  completed here %" PRIu64 "\n",
		s.fallbacks - base.fallbacks, s.completed - base.completed);
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		const struct port *port = port_get(a, i);

		if (port != NULL)
			show_port_offload(port);
	}
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
	else if (strcmp(r->what, "offload") == 0)
		show_offload(&app);
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
	TOKEN_STRING_INITIALIZER(struct ipsec_result, what, "cache#sa#offload");
static cmdline_parse_token_string_t is_cache =
	TOKEN_STRING_INITIALIZER(struct ipsec_result, what, "cache");
static cmdline_parse_inst_t show_ipsec = {
	.f = ipsec_parsed,
	.help_str = "show ipsec cache|sa|offload: what lcores remember of flows; SAs and what does "
		    "their work; what ports can do of it",
	.tokens = { (void *)&is_show, (void *)&is_ipsec, (void *)&is_what, NULL },
};
PROMPT_REGISTER(show_ipsec);
static cmdline_parse_inst_t clear_ipsec = {
	.f = ipsec_parsed,
	.help_str = "clear ipsec cache: count hits and misses anew",
	.tokens = { (void *)&is_clear, (void *)&is_ipsec, (void *)&is_cache, NULL },
};
PROMPT_REGISTER(clear_ipsec);
