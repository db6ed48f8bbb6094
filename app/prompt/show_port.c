/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `show port info|stats|xstats|summary N|all`, `clear port stats N|all`. */

#include <bsd/stdlib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_dev.h>

#include "app.h"
#include "prompt/prompt.h"
#include "prompt/show.h"

void
show_for_ports(struct app *a, const char *which, void (*fn)(struct port *port))
{
	const char *why;
	struct port *port;
	long long id;

	if (strcmp(which, "all") == 0) {
		for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
			if (a->ports[i].used)
				fn(&a->ports[i]);
		}
		return;
	}
	if ((port = port_by_name(a, which)) == NULL) {
		id = strtonum(which, 0, RTE_MAX_ETHPORTS - 1, &why);
		port = why == NULL ? port_get(a, (unsigned int)id) : NULL;
	}
	if (port == NULL)
		prompt_fail("there is no port %s", which);
	else
		fn(port);
}

void
show_port_info(struct port *port)
{
	struct rte_ether_addr mac = { 0 };
	struct rte_eth_link link = { 0 };
	char text[RTE_ETHER_ADDR_FMT_SIZE], device[RTE_ETH_NAME_MAX_LEN] = "";
	uint16_t mtu = 0;

	rte_eth_macaddr_get(port->id, &mac);
	rte_ether_format_addr(text, sizeof(text), &mac);
	rte_eth_link_get_nowait(port->id, &link);
	rte_eth_dev_get_mtu(port->id, &mtu);
	rte_eth_dev_get_name_by_port(port->id, device);
	printf("\n********************* Infos for port %-2u *********************\n", port->id);
	printf("Name: %s\n", port->name);
	printf("MAC address: %s\n", text);
	printf("Device name: %s\n", device);
	printf("Driver name: %s\n", port->info.driver_name);
	printf("Connect to socket: %d\n", rte_eth_dev_socket_id(port->id));
	printf("Administrative state: %s\n", port_is_up(port) ? "up" : "down");
	printf("Link status: %s\n", link.link_status == RTE_ETH_LINK_UP ? "up" : "down");
	printf("Link speed: %s\n", rte_eth_link_speed_to_str(link.link_speed));
	printf("Link duplex: %s\n",
		link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX ? "full-duplex" : "half-duplex");
	printf("MTU: %u\n", mtu);
	printf("Promiscuous mode: %s\n",
		rte_eth_promiscuous_get(port->id) == 1 ? "enabled" : "disabled");
	printf("Allmulticast mode: %s\n",
		rte_eth_allmulticast_get(port->id) == 1 ? "enabled" : "disabled");
	printf("Current number of RX queues: %u\nMax possible RX queues: %u\n", port->n_rxq,
		port->info.max_rx_queues);
	printf("Current number of RXDs per queue: %u\n", port->n_rxd);
	printf("Current number of TX queues: %u\nMax possible TX queues: %u\n", port->n_txq,
		port->info.max_tx_queues);
	printf("Current number of TXDs per queue: %u\n", port->n_txd);
}

/* What the rates of the next call are measured against. */
static struct {
	uint64_t tsc, rx, tx, rx_bytes, tx_bytes;
} last[RTE_MAX_ETHPORTS];

static uint64_t
rate(uint64_t now, uint64_t before, double seconds)
{
	return seconds <= 0 || now < before ? 0 : (uint64_t)((double)(now - before) / seconds);
}

void
show_port_stats(struct port *port)
{
	struct rte_eth_stats s;
	uint64_t now = rte_rdtsc();
	double seconds = last[port->id].tsc == 0
		? 0
		: (double)(now - last[port->id].tsc) / (double)rte_get_tsc_hz();

	if (port_stats(port, &s) != 0) {
		prompt_fail("port %u gives no statistics", port->id);
		return;
	}
	printf("\n  ######################## NIC statistics for port %-2u "
	       "########################\n",
		port->id);
	printf("  RX-packets: %-10" PRIu64 " RX-missed: %-10" PRIu64 " RX-bytes:  %-" PRIu64 "\n",
		s.ipackets, s.imissed, s.ibytes);
	printf("  RX-errors: %-" PRIu64 "\n  RX-nombuf:  %-10" PRIu64 "\n", s.ierrors, s.rx_nombuf);
	printf("  TX-packets: %-10" PRIu64 " TX-errors: %-10" PRIu64 " TX-bytes:  %-" PRIu64 "\n",
		s.opackets, s.oerrors, s.obytes);
	printf("\n  Throughput (since last show)\n");
	printf("  Rx-pps: %12" PRIu64 "          Rx-bps: %12" PRIu64 "\n",
		rate(s.ipackets, last[port->id].rx, seconds),
		rate(s.ibytes, last[port->id].rx_bytes, seconds) * 8);
	printf("  Tx-pps: %12" PRIu64 "          Tx-bps: %12" PRIu64 "\n",
		rate(s.opackets, last[port->id].tx, seconds),
		rate(s.obytes, last[port->id].tx_bytes, seconds) * 8);
	printf("  ##########################################################################"
	       "##\n");
	last[port->id].tsc = now;
	last[port->id].rx = s.ipackets;
	last[port->id].tx = s.opackets;
	last[port->id].rx_bytes = s.ibytes;
	last[port->id].tx_bytes = s.obytes;
}

void
show_port_stats_all(struct app *a)
{
	show_for_ports(a, "all", show_port_stats);
	fflush(stdout);
}

static void
show_port_xstats(struct port *port)
{
	int n = rte_eth_xstats_get_names(port->id, NULL, 0);
	struct rte_eth_xstat_name *names = calloc((size_t)(n > 0 ? n : 1), sizeof(*names));
	struct rte_eth_xstat *values = calloc((size_t)(n > 0 ? n : 1), sizeof(*values));

	printf("###### NIC extended statistics for port %-2u\n", port->id);
	if (names == NULL || values == NULL || n < 0 ||
		rte_eth_xstats_get_names(port->id, names, (unsigned int)n) != n ||
		rte_eth_xstats_get(port->id, values, (unsigned int)n) != n)
		prompt_fail("port %u gives no extended statistics", port->id);
	else
		for (int i = 0; i < n; i++)
			printf("%s: %" PRIu64 "\n", names[values[i].id].name, values[i].value);
	free(names);
	free(values);
}

static void
show_port_summary(struct port *port)
{
	struct rte_ether_addr mac = { 0 };
	struct rte_eth_link link = { 0 };
	char text[RTE_ETHER_ADDR_FMT_SIZE], device[RTE_ETH_NAME_MAX_LEN] = "";

	rte_eth_macaddr_get(port->id, &mac);
	rte_ether_format_addr(text, sizeof(text), &mac);
	rte_eth_link_get_nowait(port->id, &link);
	rte_eth_dev_get_name_by_port(port->id, device);
	printf("%-4u %-15s %-17s %-14s %-14s %-6s %s\n", port->id, port->name, text, device,
		port->info.driver_name, link.link_status == RTE_ETH_LINK_UP ? "up" : "down",
		rte_eth_link_speed_to_str(link.link_speed));
}

static void
clear_port_stats(struct port *port)
{
	rte_eth_stats_get(port->id, &port->base);
	memset(&last[port->id], 0, sizeof(last[port->id]));
}

struct port_result {
	cmdline_fixed_string_t verb, port, what, which;
};

static void
port_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct port_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->verb, "clear") == 0)
		show_for_ports(&app, r->which, clear_port_stats);
	else if (strcmp(r->what, "info") == 0)
		show_for_ports(&app, r->which, show_port_info);
	else if (strcmp(r->what, "xstats") == 0)
		show_for_ports(&app, r->which, show_port_xstats);
	else if (strcmp(r->what, "summary") == 0) {
		printf("%-4s %-15s %-17s %-14s %-14s %-6s %s\n", "Port", "Name", "MAC Address",
			"Device", "Driver", "Status", "Link");
		show_for_ports(&app, r->which, show_port_summary);
	} else
		show_for_ports(&app, r->which, show_port_stats);
}

static cmdline_parse_token_string_t p_show =
	TOKEN_STRING_INITIALIZER(struct port_result, verb, "show");
static cmdline_parse_token_string_t p_clear =
	TOKEN_STRING_INITIALIZER(struct port_result, verb, "clear");
static cmdline_parse_token_string_t p_port =
	TOKEN_STRING_INITIALIZER(struct port_result, port, "port");
static cmdline_parse_token_string_t p_what =
	TOKEN_STRING_INITIALIZER(struct port_result, what, "info#stats#xstats#summary");
static cmdline_parse_token_string_t p_stats =
	TOKEN_STRING_INITIALIZER(struct port_result, what, "stats");
static cmdline_parse_token_string_t p_which =
	TOKEN_STRING_INITIALIZER(struct port_result, which, NULL);
static cmdline_parse_inst_t show_port = {
	.f = port_parsed,
	.help_str = "show port info|stats|xstats|summary <port>|all: what a port is, what it has "
		    "counted",
	.tokens = { (void *)&p_show, (void *)&p_port, (void *)&p_what, (void *)&p_which, NULL },
};
PROMPT_REGISTER(show_port);
static cmdline_parse_inst_t clear_port = {
	.f = port_parsed,
	.help_str = "clear port stats <port>|all: begin counting at zero",
	.tokens = { (void *)&p_clear, (void *)&p_port, (void *)&p_stats, (void *)&p_which, NULL },
};
PROMPT_REGISTER(clear_port);
