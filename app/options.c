/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <arpa/inet.h>
#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_version.h>

#include "forward/forward.h"
#include "forward/generate.h"
#include "options.h"
#include "port.h"
#include "version.h"

/* One line an option: what getopt takes, what --help prints, what it does. */
struct option_def {
	const char *name;
	const char *arg; /* NULL: takes none */
	char letter;
	const char *fallback; /* the default as --help shows it; NULL: none worth saying */
	const char *help;
	/* Returns NULL, or what is wrong with `arg`. */
	const char *(*set)(struct options *opt, const char *arg);
};

static const char *
number(const char *arg, long long min, long long max, unsigned int *out)
{
	static char text[96];
	const char *why;
	long long v;

	v = strtonum(arg, min, max, &why);
	if (why != NULL) {
		snprintf(text, sizeof(text), "is %s (%lld to %lld)", why, min, max);
		return text;
	}
	*out = (unsigned int)v;
	return NULL;
}

static const char *
number16(const char *arg, long long min, long long max, uint16_t *out)
{
	unsigned int v;
	const char *why = number(arg, min, max, &v);

	if (why == NULL)
		*out = (uint16_t)v;
	return why;
}

static const char *
set_interactive(struct options *opt, const char *arg)
{
	(void)arg;
	opt->interactive = true;
	return NULL;
}

static const char *
set_auto_start(struct options *opt, const char *arg)
{
	(void)arg;
	opt->auto_start = true;
	return NULL;
}

static const char *
set_cmdline_file(struct options *opt, const char *arg)
{
	opt->cmdline_file = arg;
	opt->cmdline_echo = true;
	return NULL;
}

static const char *
set_cmdline_file_noecho(struct options *opt, const char *arg)
{
	opt->cmdline_file = arg;
	opt->cmdline_echo = false;
	return NULL;
}

static const char *
set_stats_period(struct options *opt, const char *arg)
{
	return number(arg, 0, 86400, &opt->stats_period);
}

static const char *
set_nb_cores(struct options *opt, const char *arg)
{
	return number(arg, 1, RTE_MAX_LCORE - 1, &opt->nb_cores);
}

static const char *
add_port(struct options *opt, unsigned int port)
{
	for (unsigned int i = 0; i < opt->n_portlist; i++) {
		if (opt->portlist[i] == port)
			return "names a port twice";
	}
	opt->portlist[opt->n_portlist++] = (uint16_t)port;
	return NULL;
}

static const char *
set_portlist(struct options *opt, const char *arg)
{
	char *copy = strdup(arg), *rest = copy, *item;
	const char *why = NULL;

	if (copy == NULL)
		return "cannot be read: out of memory";
	opt->n_portlist = 0;
	while (why == NULL && (item = strsep(&rest, ",")) != NULL) {
		unsigned int from, to;
		char *dash = strchr(item, '-');

		if (dash != NULL)
			*dash++ = '\0';
		if ((why = number(item, 0, RTE_MAX_ETHPORTS - 1, &from)) != NULL)
			break;
		to = from;
		if (dash != NULL && (why = number(dash, from, RTE_MAX_ETHPORTS - 1, &to)) != NULL)
			break;
		while (why == NULL && from <= to)
			why = add_port(opt, from++);
	}
	free(copy);
	return why;
}

static const char *
set_portmask(struct options *opt, const char *arg)
{
	unsigned long long mask;
	char *end;

	errno = 0;
	mask = strtoull(arg, &end, 16);
	if (errno != 0 || end == arg || *end != '\0' || *arg == '-')
		return "is not a hexadecimal mask";
	if (mask == 0)
		return "selects no port";
	opt->n_portlist = 0;
	for (unsigned int i = 0; i < 64; i++) {
		if ((mask >> i & 1) == 0)
			continue;
		if (i >= RTE_MAX_ETHPORTS)
			return "names a port beyond the highest possible one";
		opt->portlist[opt->n_portlist++] = (uint16_t)i;
	}
	return NULL;
}

static const char *
set_port_topology(struct options *opt, const char *arg)
{
	if (strcmp(arg, "paired") == 0)
		opt->topology = TOPOLOGY_PAIRED;
	else if (strcmp(arg, "chained") == 0)
		opt->topology = TOPOLOGY_CHAINED;
	else if (strcmp(arg, "loop") == 0)
		opt->topology = TOPOLOGY_LOOP;
	else
		return "is none of paired, chained, loop";
	return NULL;
}

static const char *
set_forward_mode(struct options *opt, const char *arg)
{
	static char text[160];

	if (forward_find(arg) == NULL) {
		snprintf(text, sizeof(text), "is none of %s", forward_names());
		return text;
	}
	opt->forward_mode = arg;
	return NULL;
}

static const char *
set_rxq(struct options *opt, const char *arg)
{
	return number16(arg, 1, RTE_MAX_QUEUES_PER_PORT, &opt->n_rxq);
}

static const char *
set_txq(struct options *opt, const char *arg)
{
	return number16(arg, 1, RTE_MAX_QUEUES_PER_PORT, &opt->n_txq);
}

static const char *
set_rxd(struct options *opt, const char *arg)
{
	return number16(arg, 1, UINT16_MAX, &opt->n_rxd);
}

static const char *
set_txd(struct options *opt, const char *arg)
{
	return number16(arg, 1, UINT16_MAX, &opt->n_txd);
}

static const char *
set_burst(struct options *opt, const char *arg)
{
	return number16(arg, 1, FORWARD_BURST_MAX, &opt->burst);
}

static const char *
set_mbcache(struct options *opt, const char *arg)
{
	return number(arg, 0, RTE_MEMPOOL_CACHE_MAX_SIZE, &opt->mbcache);
}

static const char *
set_mbuf_size(struct options *opt, const char *arg)
{
	return number(arg, RTE_PKTMBUF_HEADROOM + 64, UINT16_MAX, &opt->mbuf_size);
}

static const char *
set_total_num_mbufs(struct options *opt, const char *arg)
{
	return number(arg, 1024, 1 << 30, &opt->total_mbufs);
}

static const char *
set_max_pkt_len(struct options *opt, const char *arg)
{
	return number(arg, 64, 65535, &opt->max_pkt_len);
}

static const char *
set_eth_peer(struct options *opt, const char *arg)
{
	char digits[8];
	const char *comma = strchr(arg, ','), *why;
	unsigned int port;

	if (comma == NULL || (size_t)(comma - arg) >= sizeof(digits))
		return "is not PORT,MAC";
	strlcpy(digits, arg, (size_t)(comma - arg) + 1);
	if ((why = number(digits, 0, RTE_MAX_ETHPORTS - 1, &port)) != NULL)
		return why;
	if (rte_ether_unformat_addr(comma + 1, &opt->eth_peer[port]) != 0)
		return "has no MAC address after the comma";
	return NULL;
}

static const char *
set_tx_ip(struct options *opt, const char *arg)
{
	char src[INET_ADDRSTRLEN];
	const char *comma = strchr(arg, ',');
	struct in_addr from, to;

	if (comma == NULL || (size_t)(comma - arg) >= sizeof(src))
		return "is not SRC,DST";
	strlcpy(src, arg, (size_t)(comma - arg) + 1);
	if (inet_pton(AF_INET, src, &from) != 1 || inet_pton(AF_INET, comma + 1, &to) != 1)
		return "is not two IPv4 addresses";
	opt->tx_ip_src = ntohl(from.s_addr);
	opt->tx_ip_dst = ntohl(to.s_addr);
	return NULL;
}

/* "A,B" or "A" for both. */
static const char *
set_tx_udp(struct options *opt, const char *arg)
{
	char src[8];
	const char *comma = strchr(arg, ','), *why;
	size_t len = comma != NULL ? (size_t)(comma - arg) : strlen(arg);

	if (len >= sizeof(src))
		return "is not SRC[,DST]";
	strlcpy(src, arg, len + 1);
	if ((why = number16(src, 0, UINT16_MAX, &opt->tx_udp_src)) != NULL)
		return why;
	return number16(comma != NULL ? comma + 1 : src, 0, UINT16_MAX, &opt->tx_udp_dst);
}

static const char *
set_txpkts(struct options *opt, const char *arg)
{
	char *copy = strdup(arg), *rest = copy, *item;
	const char *why = NULL;
	unsigned int total = 0;

	if (copy == NULL)
		return "cannot be read: out of memory";
	opt->n_txpkts = 0;
	while (why == NULL && (item = strsep(&rest, ",")) != NULL) {
		uint16_t *len = &opt->txpkts[opt->n_txpkts];

		if (opt->n_txpkts == GENERATE_SEGMENTS_MAX)
			why = "has more than 64 segments";
		else if ((why = number16(item, 1, UINT16_MAX, len)) == NULL &&
			opt->n_txpkts++ == 0 && *len < GENERATE_LEN_MIN)
			why = "begins with a segment shorter than the headers (42)";
		else if (why == NULL && (total += *len) > UINT16_MAX)
			why = "is longer than 65535 bytes in all";
	}
	free(copy);
	opt->txpkts_given = true;
	return why;
}

static const char *
set_txonly_multi_flow(struct options *opt, const char *arg)
{
	(void)arg;
	opt->txonly_multi_flow = true;
	return NULL;
}

static const char *
set_flowgen_flows(struct options *opt, const char *arg)
{
	return number(arg, 1, INT32_MAX, &opt->flowgen_flows);
}

static const char *
set_tx_cksum(struct options *opt, const char *arg)
{
	if (strcmp(arg, "good") == 0)
		opt->tx_cksum = TX_CKSUM_GOOD;
	else if (strcmp(arg, "bad") == 0)
		opt->tx_cksum = TX_CKSUM_BAD;
	else if (strcmp(arg, "none") == 0)
		opt->tx_cksum = TX_CKSUM_NONE;
	else
		return "is none of good, bad, none";
	return NULL;
}

static const char *
set_csum_offload(struct options *opt, const char *arg)
{
	if (strcmp(arg, "auto") != 0 && strcmp(arg, "off") != 0)
		return "is neither auto nor off";
	opt->csum_offload = strcmp(arg, "auto") == 0;
	return NULL;
}

static const char *
set_record_core_cycles(struct options *opt, const char *arg)
{
	(void)arg;
	opt->record_core_cycles = true;
	return NULL;
}

static const char *
set_record_burst_stats(struct options *opt, const char *arg)
{
	(void)arg;
	opt->record_burst_stats = true;
	return NULL;
}

static const char *
set_port_name(struct options *opt, const char *arg)
{
	char digits[8];
	const char *comma = strchr(arg, ','), *why;
	unsigned int port;

	if (comma == NULL || (size_t)(comma - arg) >= sizeof(digits))
		return "is not PORT,NAME";
	strlcpy(digits, arg, (size_t)(comma - arg) + 1);
	if ((why = number(digits, 0, RTE_MAX_ETHPORTS - 1, &port)) != NULL)
		return why;
	if ((why = port_name_check(++comma)) != NULL)
		return why;
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		if (i != port && strcmp(opt->port_name[i], comma) == 0)
			return "gives a name that another port has";
	}
	strlcpy(opt->port_name[port], comma, sizeof(opt->port_name[port]));
	return NULL;
}

static const char *
set_ctl(struct options *opt, const char *arg)
{
	opt->ctl = arg;
	return NULL;
}

static const char *
set_ctl_group(struct options *opt, const char *arg)
{
	const struct group *group = getgrnam(arg);

	if (group == NULL)
		return "is no group of this system";
	opt->ctl_group = group->gr_gid;
	return NULL;
}

static const char *
set_ipsec_cache(struct options *opt, const char *arg)
{
	return number(arg, 0, 1 << 22, &opt->ipsec_cache);
}

static const char *
set_ipsec_numbers(struct options *opt, const char *arg)
{
	if (strcmp(arg, "home") != 0 && strcmp(arg, "shared") != 0)
		return "is neither home nor shared";
	opt->ipsec_share_numbers = strcmp(arg, "shared") == 0;
	return NULL;
}

static const char *
set_ipsec_offload(struct options *opt, const char *arg)
{
	if (strcmp(arg, "auto") == 0)
		opt->ipsec_offload = IPSEC_CACHE_OFFLOAD_AUTO;
	else if (strcmp(arg, "explicit") == 0)
		opt->ipsec_offload = IPSEC_CACHE_OFFLOAD_EXPLICIT;
	else if (strcmp(arg, "off") == 0)
		opt->ipsec_offload = IPSEC_CACHE_OFFLOAD_OFF;
	else
		return "is none of auto, explicit, off";
	return NULL;
}

static const char *
set_crypto(struct options *opt, const char *arg)
{
	if (strcmp(arg, "cpu") != 0 && strcmp(arg, "lookaside") != 0)
		return "is neither cpu nor lookaside";
	opt->crypto_lookaside = strcmp(arg, "lookaside") == 0;
	return NULL;
}

static const char *
set_idle_exit(struct options *opt, const char *arg)
{
	return number(arg, 1, 1000 * 3600, &opt->idle_exit);
}

static const char *
set_idle_sleep(struct options *opt, const char *arg)
{
	return number(arg, 0, 1000, &opt->idle_sleep);
}

static const struct option_def defs[] = {
	{ "interactive", NULL, 'i', NULL, "prompt for commands", set_interactive },
	{ "auto-start", NULL, 'a', NULL, "with -i: forward from the start", set_auto_start },
	{ "cmdline-file", "FILE", 0, NULL, "run the commands in FILE first", set_cmdline_file },
	{ "cmdline-file-noecho", "FILE", 0, NULL, "the same without printing them",
		set_cmdline_file_noecho },
	{ "stats-period", "S", 0, "0", "print statistics every S seconds", set_stats_period },
	{ "nb-cores", "N", 0, "1", "forward with N lcores", set_nb_cores },
	{ "portlist", "X[-Y],...", 0, "all", "forward with these ports, in this order",
		set_portlist },
	{ "portmask", "0xMASK", 0, "all", "forward with these ports", set_portmask },
	{ "port-topology", "paired|chained|loop", 0, "paired", "which port a port sends to",
		set_port_topology },
	{ "forward-mode", "MODE", 0, "io", "what is done with packets", set_forward_mode },
	{ "rxq", "N", 0, "1", "Rx queues a port", set_rxq },
	{ "txq", "N", 0, "1", "Tx queues a port", set_txq },
	{ "rxd", "N", 0, "1024", "descriptors an Rx queue", set_rxd },
	{ "txd", "N", 0, "1024", "descriptors a Tx queue", set_txd },
	{ "burst", "N", 0, "32", "packets taken at once", set_burst },
	{ "mbcache", "N", 0, "250", "mbufs cached an lcore", set_mbcache },
	{ "mbuf-size", "N", 0, "2176", "bytes of an mbuf, headroom included", set_mbuf_size },
	{ "total-num-mbufs", "N", 0, "computed", "mbufs in the pool", set_total_num_mbufs },
	{ "max-pkt-len", "N", 0, "the port's", "longest frame, without FCS", set_max_pkt_len },
	{ "eth-peer", "PORT,MAC", 0, "02:00:00:00:00:PORT",
		"destination of frames that txonly and flowgen send out of a port", set_eth_peer },
	{ "tx-ip", "SRC,DST", 0, "198.18.0.1,198.18.0.2", "addresses of generated frames",
		set_tx_ip },
	{ "tx-udp", "SRC[,DST]", 0, "9,9", "ports of generated frames", set_tx_udp },
	{ "txpkts", "LEN[,LEN]...", 0, "64; flowgen 300", "segments of generated frames",
		set_txpkts },
	{ "txonly-multi-flow", NULL, 0, NULL, "txonly varies the source address",
		set_txonly_multi_flow },
	{ "flowgen-flows", "N", 0, "1024", "flows that flowgen makes", set_flowgen_flows },
	{ "tx-cksum", "good|bad|none", 0, "good", "checksums of generated frames", set_tx_cksum },
	{ "csum-offload", "auto|off", 0, "auto", "leave checksums to NICs that compute them",
		set_csum_offload },
	{ "record-core-cycles", NULL, 0, NULL, "count TSC cycles a packet",
		set_record_core_cycles },
	{ "record-burst-stats", NULL, 0, NULL, "count the sizes of Rx bursts",
		set_record_burst_stats },
	{ "port-name", "PORT,NAME", 0, "pPORT", "name of a port for tc and ip", set_port_name },
	{ "ipsec-cache", "N", 0, "16384", "mode ip: flows an lcore remembers the SA of",
		set_ipsec_cache },
	{ "ipsec-numbers", "home|shared", 0, "home",
		"an SA's packets leave by one lcore, or lcores share its sequence numbers",
		set_ipsec_numbers },
	{ "ipsec-offload", "auto|explicit|off", 0, "auto",
		"leave ESP to NICs: all they can do, what SAs ask for, nothing",
		set_ipsec_offload },
	{ "crypto", "cpu|lookaside", 0, "cpu",
		"what encrypts that no port does: the CPU, or EAL's crypto devices", set_crypto },
	{ "ctl", "PATH", 0, "RUNTIME_DIR/millrace.sock", "the control socket", set_ctl },
	{ "ctl-group", "GROUP", 0, NULL, "let a group use the control socket", set_ctl_group },
	{ "idle-exit", "MS", 0, NULL, "leave when nothing came for MS milliseconds",
		set_idle_exit },
	{ "idle-sleep", "US", 0, "0", "let an lcore that found nothing sleep US microseconds",
		set_idle_sleep },
};
#define N_DEFS (sizeof(defs) / sizeof(defs[0]))

void
options_usage(const char *program)
{
	printf("usage: %s [EAL options] -- [options]\n\n"
	       "EAL options as `%s --help` lists them; common ones are\n"
	       "  --lcores 0@0,1@1  --vdev net_null0  --no-huge -m 512  --file-prefix NAME\n\n"
	       "options:\n",
		program, program);
	for (size_t i = 0; i < N_DEFS; i++) {
		const struct option_def *d = &defs[i];
		char left[48];

		snprintf(left, sizeof(left), "%s%c%s--%s%s%s", d->letter != 0 ? "-" : "",
			d->letter != 0 ? d->letter : ' ', d->letter != 0 ? ", " : "   ", d->name,
			d->arg != NULL ? "=" : "", d->arg != NULL ? d->arg : "");
		printf("  %-42s %s", left, d->help);
		if (d->fallback != NULL)
			printf(" (%s)", d->fallback);
		putchar('\n');
	}
	printf("  -h, %-38s this text\n  -V, %-38s the version\n", "--help", "--version");
}

static void
version(void)
{
	printf("millrace %s (%s)\n", MILLRACE_VERSION, rte_version());
}

static void
defaults(struct options *opt)
{
	memset(opt, 0, sizeof(*opt));
	opt->nb_cores = 1;
	opt->forward_mode = "io";
	opt->n_rxq = opt->n_txq = 1;
	opt->burst = 32;
	opt->n_rxd = opt->n_txd = 1024;
	opt->mbcache = 250;
	opt->mbuf_size = RTE_MBUF_DEFAULT_BUF_SIZE;
	opt->csum_offload = true;
	opt->ipsec_cache = 16384;
	opt->ipsec_offload = IPSEC_CACHE_OFFLOAD_AUTO;
	opt->ctl_group = (gid_t)-1;
	opt->tx_ip_src = RTE_IPV4(198u, 18, 0, 1);
	opt->tx_ip_dst = RTE_IPV4(198u, 18, 0, 2);
	opt->tx_udp_src = opt->tx_udp_dst = 9;
	opt->n_txpkts = 1;
	opt->txpkts[0] = 64;
	opt->flowgen_flows = 1024;
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		opt->eth_peer[i].addr_bytes[0] = RTE_ETHER_LOCAL_ADMIN_ADDR;
		opt->eth_peer[i].addr_bytes[5] = (uint8_t)i;
	}
}

#define OPT_BASE 256

static int
parse_own(int argc, char **argv, struct options *opt)
{
	struct option longopts[N_DEFS + 3];
	int c, index;

	memset(longopts, 0, sizeof(longopts));
	for (size_t i = 0; i < N_DEFS; i++) {
		longopts[i].name = defs[i].name;
		longopts[i].has_arg = defs[i].arg != NULL ? required_argument : no_argument;
		longopts[i].val = OPT_BASE + (int)i;
	}
	longopts[N_DEFS] = (struct option){ "help", no_argument, NULL, 'h' };
	longopts[N_DEFS + 1] = (struct option){ "version", no_argument, NULL, 'V' };
	optind = 0; /* glibc: start afresh */
	while ((c = getopt_long(argc, argv, "+iahV", longopts, NULL)) != -1) {
		const char *why;

		if (c == 'h') {
			options_usage("millrace");
			return 1;
		}
		if (c == 'V') {
			version();
			return 1;
		}
		if (c == '?')
			return -1; /* getopt said which */
		index = c - OPT_BASE;
		for (size_t i = 0; c < OPT_BASE && i < N_DEFS; i++) {
			if (defs[i].letter == c)
				index = (int)i;
		}
		why = defs[index].set(opt, optarg);
		if (why != NULL) {
			warnx("--%s=%s %s", defs[index].name, optarg, why);
			return -1;
		}
	}
	if (optind < argc) {
		warnx("unexpected word '%s' after the options", argv[optind]);
		return -1;
	}
	return 0;
}

/* What no option can say alone. */
static int
check(const struct options *opt)
{
	unsigned int room = opt->mbuf_size - RTE_PKTMBUF_HEADROOM;

	for (unsigned int i = 0; i < opt->n_txpkts; i++) {
		if (opt->txpkts[i] <= room)
			continue;
		warnx("--txpkts: a segment of %u bytes does not fit an mbuf of %u (--mbuf-size)",
			opt->txpkts[i], opt->mbuf_size);
		return -1;
	}
	if (strcmp(opt->forward_mode, "flowgen") == 0 && !opt->txpkts_given && room < FLOWGEN_LEN) {
		warnx("--mbuf-size=%u: flowgen's frames of %u bytes do not fit (--txpkts)",
			opt->mbuf_size, FLOWGEN_LEN);
		return -1;
	}
	return 0;
}

int
options_parse(int argc, char **argv, struct options *opt, int *eal_argc)
{
	int split;

	defaults(opt);
	for (split = 1; split < argc && strcmp(argv[split], "--") != 0; split++) {
		if (strcmp(argv[split], "--version") == 0) {
			version();
			return 1;
		}
	}
	*eal_argc = split;
	if (split >= argc)
		return 0;
	/* getopt names the program by the word before the options, which is "--". */
	argv[split] = argv[0];
	split = parse_own(argc - split, argv + split, opt);
	argv[*eal_argc] = NULL;
	return split == 0 ? check(opt) : split;
}
