/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What testpmd's fingers type and millrace says otherwise. */

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "prompt/hint.h"

static const struct hint {
	const char *command; /* the line's first words */
	const char *instead;
} hints[] = {
	{ "csum",
		"checksums are a tc action: tc filter add dev p0 ingress matchall action csum ip4h "
		"and udp" },
	{ "tx_checksum",
		"checksums are a tc action: tc filter add dev p0 ingress matchall action csum "
		"ip4h" },
	{ "flow", "rules are tc filters: tc filter add dev p0 ingress flower ... action ..." },
	{ "set link-up", "ip link set pN up" },
	{ "set link-down", "ip link set pN down" },
	{ "mac_addr", "ip link set pN address MAC" },
	{ "port config mtu", "ip link set pN mtu N" },
	{ "port config",
		"most of it is an option at the start (--rxq, --rxd, --burst: millrace -- --help), "
		"the rest ip link set" },
	{ "set txpkts", "an option at the start: --txpkts=LEN[,LEN]" },
	{ "set txonly-flows", "an option at the start: --txonly-multi-flow" },
	{ "set eth-peer", "an option at the start: --eth-peer=PORT,MAC" },
	{ "set portlist", "an option at the start: --portlist=X,Y" },
	{ "set portmask", "an option at the start: --portmask=0xMASK" },
	{ "set coremask", "set corelist LCORE[,LCORE]" },
	{ "set fwd csum",
		"checksums are a tc action in any mode: tc filter add dev p0 ingress matchall "
		"action csum ip4h and udp" },
	{ "set nbport", "an option at the start: --portmask=0xMASK" },
	{ "set record-core-cycles", "an option at the start: --record-core-cycles" },
	{ "set record-burst-stats", "an option at the start: --record-burst-stats" },
	{ "set log", "set verbose 0|1, or EAL's --log-level at the start" },
	{ "set stat_qmap", "tc -s filter show, tc -s qdisc show" },
	{ "vlan", "tags are tc's: tc filter add dev pN ingress matchall action vlan push id N" },
	{ "rx_vlan", "tags are tc's: tc filter add dev pN ingress ... action vlan pop" },
	{ "tx_vlan", "tags are tc's: tc filter add dev pN egress ... action vlan push id N" },
	{ "add port", "queues are tc's: tc qdisc replace dev pN root ..." },
	{ "add bonding", "millrace has no bonding; give EAL --vdev net_bonding0,..." },
	{ "show device", "show port info all" },
	{ "show rxq", "show config rxtx" },
	{ "show txq", "show config rxtx, show sched all" },
	{ "show rx", "show config rxtx" },
	{ "clear port xstats", "clear port stats N|all" },
	{ "port reset", "port stop N, port start N" },
	{ "show vf", "millrace does not configure virtual functions" },
	{ "set vf", "millrace does not configure virtual functions" },
	{ "exit", "quit" },
};

/* `command` ends where a word of the line ends. */
static int
begins_with(const char *line, const char *command)
{
	size_t len = strlen(command);

	return strncmp(line, command, len) == 0 &&
		(line[len] == '\0' || isspace((unsigned char)line[len]));
}

const char *
hint_for(const char *line)
{
	while (isspace((unsigned char)*line))
		line++;
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (begins_with(line, hints[i].command))
			return hints[i].instead;
	}
	return NULL;
}
