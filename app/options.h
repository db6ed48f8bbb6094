/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

/* The command line after `--`: testpmd's names and meanings wherever testpmd has the option. */

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rte_ethdev.h>

#include "ipsec_cache/ipsec_cache.h"

enum port_topology {
	TOPOLOGY_PAIRED,
	TOPOLOGY_CHAINED,
	TOPOLOGY_LOOP,
};

enum tx_cksum {
	TX_CKSUM_GOOD,
	TX_CKSUM_BAD,
	TX_CKSUM_NONE, /* UDP's left out, as testpmd's is */
};

#define GENERATE_SEGMENTS_MAX 64

struct options {
	bool interactive;
	bool auto_start;
	const char *cmdline_file;
	bool cmdline_echo;
	unsigned int stats_period; /* s; 0: none */
	unsigned int nb_cores;
	uint64_t portmask; /* 0: all */
	uint16_t portlist[RTE_MAX_ETHPORTS];
	unsigned int n_portlist; /* 0: all, by number */
	enum port_topology topology;
	const char *forward_mode;
	uint16_t n_rxq, n_txq;
	uint16_t n_rxd, n_txd; /* fitted to what the driver can do */
	uint16_t burst;
	unsigned int mbcache;
	unsigned int mbuf_size;
	unsigned int total_mbufs; /* 0: computed from queues and rings */
	unsigned int max_pkt_len; /* 0: the port's own */
	struct rte_ether_addr eth_peer[RTE_MAX_ETHPORTS];
	uint32_t tx_ip_src, tx_ip_dst; /* host order */
	uint16_t tx_udp_src, tx_udp_dst;
	bool txpkts_given;
	uint16_t n_txpkts;
	uint16_t txpkts[GENERATE_SEGMENTS_MAX]; /* bytes of each segment, together a frame without
						   FCS */
	bool txonly_multi_flow;
	unsigned int flowgen_flows;
	enum tx_cksum tx_cksum;
	bool csum_offload; /* leave sums to NICs that can */
	bool record_core_cycles;
	bool record_burst_stats;
	char port_name[RTE_MAX_ETHPORTS][IF_NAMESIZE]; /* "" : pN */
	unsigned int ipsec_cache; /* decisions cached a worker; 0: none */
	bool ipsec_share_numbers;
	enum ipsec_cache_offload ipsec_offload;
	bool crypto_lookaside;
	const char *ctl; /* NULL: <runtime dir>/millrace.sock */
	gid_t ctl_group; /* (gid_t)-1: none */
	unsigned int idle_exit; /* ms; 0: never */
	unsigned int idle_sleep; /* us that a worker without work sleeps; 0: it polls on */
};

/*
 * What precedes `--` is EAL's; *eal_argc is how many words that is. Fills opt. Returns 0 to go on,
 * 1 after
 * --help or --version (printed: leave with success), -1 after one sentence on stderr that names
 * the option.
 */
int options_parse(int argc, char **argv, struct options *opt, int *eal_argc);

/* Prints the options, to stdout; also EAL's usage hook. */
void options_usage(const char *program);

#endif /* APP_OPTIONS_H */
