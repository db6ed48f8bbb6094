/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `set fwd|burst|nbcore|corelist|verbose|promisc|allmulti`. */

#include <bsd/stdlib.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "forward/forward.h"
#include "prompt/prompt.h"
#include "prompt/show.h"

struct set_result {
	cmdline_fixed_string_t set, what, value;
};

/* Taken up by the next start, as in testpmd. */
static bool
stopped(const struct app *a, const char *what)
{
	if (a->forwarding)
		prompt_fail("set %s: packet forwarding must be stopped first", what);
	return !a->forwarding;
}

static void
set_fwd(struct app *a, const char *value)
{
	struct forward_mode *mode = forward_find(value);

	if (mode == NULL)
		prompt_fail("set fwd: %s is none of %s", value, forward_names());
	else if (stopped(a, "fwd"))
		a->mode = mode;
}

static void
set_number(struct app *a, const char *what, const char *value)
{
	bool burst = strcmp(what, "burst") == 0;
	unsigned int max = burst ? FORWARD_BURST_MAX : a->n_workers;
	const char *why;
	long long n = strtonum(value, 1, max, &why);

	if (why != NULL)
		prompt_fail("set %s: %s is %s (1 to %u)", what, value, why, max);
	else if (stopped(a, what) && burst)
		a->opt.burst = (uint16_t)n;
	else if (!a->forwarding)
		a->opt.nb_cores = (unsigned int)n;
}

/* Puts the workers of the lcores named first, in that order, and forwards with those. */
static void
set_corelist(struct app *a, const char *value)
{
	unsigned int chosen[RTE_MAX_LCORE], n = 0;
	char *copy = strdup(value), *rest = copy, *item;

	while (copy != NULL && (item = strsep(&rest, ",")) != NULL) {
		const char *why;
		unsigned int lcore = (unsigned int)strtonum(item, 0, RTE_MAX_LCORE - 1, &why),
			     i = 0;

		while (why == NULL && i < n && chosen[i] != lcore)
			i++;
		if (why != NULL || i < n || !worker_has_lcore(a, lcore)) {
			prompt_fail("set corelist: %s is no worker lcore, or named twice", item);
			break;
		}
		chosen[n++] = lcore;
	}
	if (copy != NULL && rest == NULL && stopped(a, "corelist"))
		workers_order(a, chosen, n);
	free(copy);
}

static void
set_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct set_result *r = parsed;
	const char *why;

	(void)cl;
	(void)data;
	if (strcmp(r->what, "fwd") == 0) {
		set_fwd(&app, r->value);
	} else if (strcmp(r->what, "corelist") == 0) {
		set_corelist(&app, r->value);
	} else if (strcmp(r->what, "verbose") == 0) {
		unsigned int level = (unsigned int)strtonum(r->value, 0, 1, &why);

		if (why != NULL)
			prompt_fail("set verbose: %s is %s (0 to 1)", r->value, why);
		else
			rte_log_set_level_pattern(
				"millrace", level == 0 ? RTE_LOG_NOTICE : RTE_LOG_INFO);
	} else {
		set_number(&app, r->what, r->value);
	}
}

static cmdline_parse_token_string_t s_set = TOKEN_STRING_INITIALIZER(struct set_result, set, "set");
static cmdline_parse_token_string_t s_what =
	TOKEN_STRING_INITIALIZER(struct set_result, what, "fwd#burst#nbcore#corelist#verbose");
static cmdline_parse_token_string_t s_value =
	TOKEN_STRING_INITIALIZER(struct set_result, value, NULL);
static cmdline_parse_inst_t set_one = {
	.f = set_parsed,
	.help_str = "set fwd <mode>, set burst|nbcore <n>, set corelist <lcore>[,...], "
		    "set verbose 0|1: while stopped, but verbose",
	.tokens = { (void *)&s_set, (void *)&s_what, (void *)&s_value, NULL },
};
PROMPT_REGISTER(set_one);

struct mode_result {
	cmdline_fixed_string_t set, what, which, on;
};

static bool mode_on, mode_promisc;

static void
set_port_mode(struct port *port)
{
	int ret;

	if (mode_promisc)
		ret = mode_on ? rte_eth_promiscuous_enable(port->id)
			      : rte_eth_promiscuous_disable(port->id);
	else
		ret = mode_on ? rte_eth_allmulticast_enable(port->id)
			      : rte_eth_allmulticast_disable(port->id);
	if (ret != 0)
		prompt_fail("set %s: port %u: %s", mode_promisc ? "promisc" : "allmulti", port->id,
			strerror(-ret));
	else
		netlink_server_dev_changed(app.netlink, port->ifindex);
}

static void
mode_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct mode_result *r = parsed;

	(void)cl;
	(void)data;
	mode_on = strcmp(r->on, "on") == 0;
	mode_promisc = strcmp(r->what, "promisc") == 0;
	show_for_ports(&app, r->which, set_port_mode);
}

static cmdline_parse_token_string_t m_set =
	TOKEN_STRING_INITIALIZER(struct mode_result, set, "set");
static cmdline_parse_token_string_t m_what =
	TOKEN_STRING_INITIALIZER(struct mode_result, what, "promisc#allmulti");
static cmdline_parse_token_string_t m_which =
	TOKEN_STRING_INITIALIZER(struct mode_result, which, NULL);
static cmdline_parse_token_string_t m_on =
	TOKEN_STRING_INITIALIZER(struct mode_result, on, "on#off");
static cmdline_parse_inst_t set_mode = {
	.f = mode_parsed,
	.help_str = "set promisc|allmulti <port>|all on|off: what a port receives",
	.tokens = { (void *)&m_set, (void *)&m_what, (void *)&m_which, (void *)&m_on, NULL },
};
PROMPT_REGISTER(set_mode);
