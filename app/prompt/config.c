/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show config fwd|rxtx|cores`. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "forward/forward.h"
#include "prompt/prompt.h"

static const char *const topology_names[] = { "paired", "chained", "loop" };

static void
show_fwd_config(struct app *a)
{
	const char *why = a->forwarding ? NULL : streams_setup(a);
	unsigned int n;

	if (why != NULL) {
		prompt_fail("%s", why);
		return;
	}
	streams_get(a, &n);
	printf("%s packet forwarding - cores=%u - streams=%u - topology=%s - burst=%u\n",
		a->mode->name, a->opt.nb_cores < a->n_workers ? a->opt.nb_cores : a->n_workers, n,
		topology_names[a->opt.topology], a->opt.burst);
	for (unsigned int i = 0; i < a->n_workers; i++) {
		const struct worker *w = &a->workers[i];

		if (w->n_streams == 0)
			continue;
		printf("Logical Core %u forwards packets on %u streams:\n", w->lcore, w->n_streams);
		for (unsigned int k = 0; k < w->n_streams; k++) {
			const struct stream *s = w->streams[k];

			printf("  RX P=%u/Q=%u (%s) -> TX P=%u/Q=%u (%s)\n", s->rx_port->id,
				s->rx_queue, s->rx_port->name, s->tx_port->id, s->tx_queue,
				s->tx_port->name);
		}
	}
}

static void
show_rxtx_config(struct app *a)
{
	printf("  %s packet forwarding packets/burst=%u\n", a->mode->name, a->opt.burst);
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		const struct port *port = port_get(a, i);

		if (port == NULL)
			continue;
		printf("  port %u (%s): RX queue number: %u Tx queue number: %u\n", port->id,
			port->name, port->n_rxq, port->n_txq);
		printf("    RX desc=%u TX desc=%u txqueuelen=%u Tx offloads=0x%" PRIx64 "\n",
			port->n_rxd, port->n_txd, port->txqueuelen,
			port->csum_offloads |
				(port->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS));
	}
}

static void
show_cores_config(struct app *a)
{
	printf("List of forwarding lcores:");
	for (unsigned int i = 0; i < a->n_workers && i < a->opt.nb_cores; i++)
		printf(" %u", a->workers[i].lcore);
	putchar('\n');
}

struct config_result {
	cmdline_fixed_string_t show, config, what;
};

static void
config_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct config_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->what, "fwd") == 0)
		show_fwd_config(&app);
	else if (strcmp(r->what, "rxtx") == 0)
		show_rxtx_config(&app);
	else
		show_cores_config(&app);
}

static cmdline_parse_token_string_t c_show =
	TOKEN_STRING_INITIALIZER(struct config_result, show, "show");
static cmdline_parse_token_string_t c_config =
	TOKEN_STRING_INITIALIZER(struct config_result, config, "config");
static cmdline_parse_token_string_t c_what =
	TOKEN_STRING_INITIALIZER(struct config_result, what, "fwd#rxtx#cores");
static cmdline_parse_inst_t config = {
	.f = config_parsed,
	.help_str = "show config fwd|rxtx|cores: who polls what, and how",
	.tokens = { (void *)&c_show, (void *)&c_config, (void *)&c_what, NULL },
};
PROMPT_REGISTER(config);
