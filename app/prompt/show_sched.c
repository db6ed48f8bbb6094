/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show sched all|N`, `clear sched all|N`. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"
#include "prompt/show.h"

static void
show_port_sched(struct port *port)
{
	for (uint16_t q = 0; q < port->n_txq; q++) {
		const struct sched_nolock_conf *conf = sched_nolock_conf(port->sched[q]);
		struct sched_nolock_stats s;

		sched_nolock_stats(port->sched[q], &s);
		printf("%s tx queue %u: bands %u limit %u\n", port->name, q, conf->bands,
			conf->limit);
		printf("  enqueued %" PRIu64 " bypassed %" PRIu64 " dequeued %" PRIu64
		       " dropped %" PRIu64 " queued %" PRIu64 " held %" PRIu64 " (packets)\n",
			s.enqueued, s.bypassed, s.dequeued, s.dropped, s.queued, s.held);
		printf("  enqueued %" PRIu64 " bypassed %" PRIu64 " dequeued %" PRIu64
		       " dropped %" PRIu64 " queued %" PRIu64 " held %" PRIu64 " (bytes)\n",
			s.enqueued_bytes, s.bypassed_bytes, s.dequeued_bytes, s.dropped_bytes,
			s.queued_bytes, s.held_bytes);
		printf("  overlimits %" PRIu64 " requeues %" PRIu64 "\n", s.overlimits, s.requeues);
	}
}

void
show_sched(struct app *a)
{
	show_for_ports(a, "all", show_port_sched);
}

static void
clear_port_sched(struct port *port)
{
	for (uint16_t q = 0; q < port->n_txq; q++)
		sched_nolock_stats_clear(port->sched[q]);
}

struct sched_result {
	cmdline_fixed_string_t verb, sched, which;
};

static void
sched_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct sched_result *r = parsed;

	(void)cl;
	(void)data;
	show_for_ports(
		&app, r->which, strcmp(r->verb, "show") == 0 ? show_port_sched : clear_port_sched);
}

static cmdline_parse_token_string_t s_verb =
	TOKEN_STRING_INITIALIZER(struct sched_result, verb, "show#clear");
static cmdline_parse_token_string_t s_sched =
	TOKEN_STRING_INITIALIZER(struct sched_result, sched, "sched");
static cmdline_parse_token_string_t s_which =
	TOKEN_STRING_INITIALIZER(struct sched_result, which, NULL);
static cmdline_parse_inst_t sched = {
	.f = sched_parsed,
	.help_str = "show|clear sched <port>|all: the schedulers of the Tx queues",
	.tokens = { (void *)&s_verb, (void *)&s_sched, (void *)&s_which, NULL },
};
PROMPT_REGISTER(sched);
