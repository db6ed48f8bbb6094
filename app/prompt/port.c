/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* `port start|stop|close N|all`, `port attach DEVICE`, `port detach N`. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>

#include "app.h"
#include "prompt/prompt.h"
#include "prompt/show.h"

/* As `ip link set up|down`: testpmd's words for the same switch. */
static void
up(struct port *port)
{
	port_set_up(&app, port, true);
	netlink_server_dev_changed(app.netlink, port->ifindex);
}

static void
down(struct port *port)
{
	port_set_up(&app, port, false);
	netlink_server_dev_changed(app.netlink, port->ifindex);
}

static void
close_port(struct port *port)
{
	bool resume = forwarding_pause(&app);

	printf("Closing port %u (%s)\n", port->id, port->name);
	port_close(&app, port);
	if (resume)
		forwarding_resume(&app);
}

static void
detach_port(struct port *port)
{
	struct rte_device *device = port->info.device;
	bool resume = forwarding_pause(&app);
	int ret = -ENODEV;

	printf("Removing port %u (%s)\n", port->id, port->name);
	port_close(&app, port);
	if (device != NULL)
		ret = rte_dev_remove(device);
	if (ret != 0)
		prompt_fail("port detach: the port is closed, but EAL keeps its device: %s",
			strerror(-ret));
	if (resume)
		forwarding_resume(&app);
}

/* Every port that probing brought is opened; forwarding takes them in at once. */
static void
attach_port(const char *device)
{
	unsigned int found = 0;
	bool resume;
	uint16_t id;

	if (rte_dev_probe(device) != 0) {
		prompt_fail("port attach: %s: EAL finds no such device", device);
		return;
	}
	resume = forwarding_pause(&app);
	RTE_ETH_FOREACH_DEV (id) {
		if (port_get(&app, id) != NULL)
			continue;
		if (port_open(&app, id) != 0) {
			prompt_fail("port attach: %s: port %u cannot be used", device, id);
			continue;
		}
		found++;
		printf("Port %u (%s) is attached\n", id, app.ports[id].name);
		netlink_server_dev_changed(app.netlink, app.ports[id].ifindex);
	}
	if (resume)
		forwarding_resume(&app);
	if (found == 0)
		prompt_fail("port attach: %s brought no port that can be used", device);
}

struct port_cmd_result {
	cmdline_fixed_string_t port, verb, which;
};

static void
port_cmd_parsed(void *parsed, struct cmdline *cl, void *data)
{
	const struct port_cmd_result *r = parsed;

	(void)cl;
	(void)data;
	if (strcmp(r->verb, "attach") == 0)
		attach_port(r->which);
	else if (strcmp(r->verb, "detach") == 0)
		show_for_ports(&app, r->which, detach_port);
	else if (strcmp(r->verb, "close") == 0)
		show_for_ports(&app, r->which, close_port);
	else
		show_for_ports(&app, r->which, strcmp(r->verb, "start") == 0 ? up : down);
}

static cmdline_parse_token_string_t pc_port =
	TOKEN_STRING_INITIALIZER(struct port_cmd_result, port, "port");
static cmdline_parse_token_string_t pc_verb =
	TOKEN_STRING_INITIALIZER(struct port_cmd_result, verb, "start#stop#close#attach#detach");
static cmdline_parse_token_string_t pc_which =
	TOKEN_STRING_INITIALIZER(struct port_cmd_result, which, NULL);
static cmdline_parse_inst_t port_cmd = {
	.f = port_cmd_parsed,
	.help_str = "port start|stop|close|detach <port>|all, port attach <device>",
	.tokens = { (void *)&pc_port, (void *)&pc_verb, (void *)&pc_which, NULL },
};
PROMPT_REGISTER(port_cmd);
