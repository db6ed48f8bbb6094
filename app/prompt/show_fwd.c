/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show fwd stats all`, `clear fwd stats all`. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "prompt/prompt.h"
#include "prompt/show.h"

/* Where the counters stood when forwarding started or was cleared. */
static struct {
	struct rte_eth_stats eth;
	uint64_t tx_dropped;
} base[RTE_MAX_ETHPORTS];
static uint64_t base_cycles, base_rx;

struct totals {
	uint64_t rx, rx_dropped, tx, tx_dropped;
};

static void
streams_sum(const struct app *a, uint64_t *rx, uint64_t *cycles)
{
	unsigned int n;
	const struct stream *s = streams_get(a, &n);

	*rx = *cycles = 0;
	for (unsigned int i = 0; i < n; i++) {
		*rx += atomic_load_explicit(&s[i].rx_packets, memory_order_relaxed);
		*cycles += atomic_load_explicit(&s[i].cycles, memory_order_relaxed);
	}
}

void
fwd_stats_start(struct app *a)
{
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		uint64_t sent;

		if (!a->ports[i].used)
			continue;
		rte_eth_stats_get((uint16_t)i, &base[i].eth);
		tx_sum(a, &a->ports[i], &sent, &base[i].tx_dropped);
	}
	base_rx = base_cycles = 0;
}

void
fwd_stats_reset(struct app *a)
{
	fwd_stats_start(a);
	streams_sum(a, &base_rx, &base_cycles);
}

static void
port_totals(const struct app *a, const struct port *port, struct totals *t)
{
	struct rte_eth_stats eth;
	uint64_t sent;

	memset(t, 0, sizeof(*t));
	tx_sum(a, port, &sent, &t->tx_dropped);
	t->tx_dropped -= base[port->id].tx_dropped;
	if (rte_eth_stats_get(port->id, &eth) != 0)
		return;
	t->rx = eth.ipackets - base[port->id].eth.ipackets;
	t->rx_dropped = eth.imissed - base[port->id].eth.imissed;
	t->tx = eth.opackets - base[port->id].eth.opackets;
}

static void
print_totals(const struct totals *t)
{
	printf("  RX-packets: %-14" PRIu64 " RX-dropped: %-13" PRIu64 " RX-total: %-" PRIu64 "\n",
		t->rx, t->rx_dropped, t->rx + t->rx_dropped);
	printf("  TX-packets: %-14" PRIu64 " TX-dropped: %-13" PRIu64 " TX-total: %-" PRIu64 "\n",
		t->tx, t->tx_dropped, t->tx + t->tx_dropped);
}

static void
print_bursts(const struct app *a)
{
	unsigned int n;
	const struct stream *s = streams_get(a, &n);

	for (unsigned int i = 0; i < n; i++) {
		printf("  RX-bursts %s queue %u:", s[i].rx_port->name, s[i].rx_queue);
		for (unsigned int size = 0; size <= FORWARD_BURST_MAX; size++) {
			uint64_t c = atomic_load_explicit(&s[i].bursts[size], memory_order_relaxed);

			if (c != 0)
				printf(" %u:%" PRIu64, size, c);
		}
		putchar('\n');
	}
}

void
show_fwd_stats(struct app *a)
{
	struct totals all = { 0 }, t;
	uint64_t rx, cycles;

	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		if (!a->ports[i].used)
			continue;
		port_totals(a, &a->ports[i], &t);
		printf("\n  ---------------------- Forward statistics for port %-2u "
		       "----------------------\n",
			i);
		print_totals(&t);
		printf("  ---------------------------------------------------------"
		       "-------------------\n");
		all.rx += t.rx;
		all.rx_dropped += t.rx_dropped;
		all.tx += t.tx;
		all.tx_dropped += t.tx_dropped;
	}
	printf("\n  +++++++++++++++ Accumulated forward statistics for all ports"
	       "+++++++++++++++\n");
	print_totals(&all);
	printf("  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++"
	       "++++++++++++++++\n");
	streams_sum(a, &rx, &cycles);
	rx -= base_rx;
	cycles -= base_cycles;
	if (a->opt.record_core_cycles && rx > 0)
		printf("\n  CPU cycles/packet=%.2f (total cycles=%" PRIu64
		       " / total RX packets=%" PRIu64 ") at %" PRIu64 " MHz Clock\n",
			(double)cycles / (double)rx, cycles, rx, rte_get_tsc_hz() / 1000000);
	if (a->opt.record_burst_stats)
		print_bursts(a);
	fflush(stdout);
}

struct fwd_stats_result {
	cmdline_fixed_string_t verb, fwd, stats, all;
};

static void
fwd_stats_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct fwd_stats_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->verb, "show") == 0)
		show_fwd_stats(&app);
	else
		fwd_stats_reset(&app);
}

static cmdline_parse_token_string_t fs_verb =
	TOKEN_STRING_INITIALIZER(struct fwd_stats_result, verb, "show#clear");
static cmdline_parse_token_string_t fs_fwd =
	TOKEN_STRING_INITIALIZER(struct fwd_stats_result, fwd, "fwd");
static cmdline_parse_token_string_t fs_stats =
	TOKEN_STRING_INITIALIZER(struct fwd_stats_result, stats, "stats");
static cmdline_parse_token_string_t fs_all =
	TOKEN_STRING_INITIALIZER(struct fwd_stats_result, all, "all");
static cmdline_parse_inst_t fwd_stats = {
	.f = fwd_stats_parsed,
	.help_str = "show|clear fwd stats all: what was forwarded since start",
	.tokens = { (void *)&fs_verb, (void *)&fs_fwd, (void *)&fs_stats, (void *)&fs_all, NULL },
};
PROMPT_REGISTER(fwd_stats);
