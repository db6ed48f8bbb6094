/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * A NIC by the line, for an oracle in another language. After the arrow, what is said:
 *
 *   sa action=crypto|protocol out=0|1 spi=N src=A dst=A [key=HEX] [WORD=N...]  -> ok, or refused N
 *   tx spi=N frame=HEX [cut=N] [number=N]     -> wire HEX, or lost and which counter
 *   rx frame=HEX [cut=N]                      -> plain, good or failed, and HEX; or none
 *
 * Words of an SA: icv (bytes) esn window seq sport dport dscp df ttl flabel copy_dscp copy_df
 * copy_flabel ecn dec_ttl. Ends with its input, and fails if an mbuf is missing then.
 */

#include <inttypes.h>

#include "line.h"
#include "world.h"

#define SESSIONS_MAX 4096u

static struct {
	uint32_t spi;
	void *handle;
} sessions[SESSIONS_MAX];
static unsigned int n_sessions;

static void
do_options(const char *line, struct rte_security_ipsec_xform *x)
{
	struct rte_security_ipsec_tunnel_param *t = &x->tunnel;

	x->options.esn = (uint32_t)number(line, "esn", 0) & 1;
	x->options.copy_dscp = (uint32_t)number(line, "copy_dscp", 0) & 1;
	x->options.copy_df = (uint32_t)number(line, "copy_df", 0) & 1;
	x->options.copy_flabel = (uint32_t)number(line, "copy_flabel", 0) & 1;
	x->options.ecn = (uint32_t)number(line, "ecn", 0) & 1;
	x->options.dec_ttl = (uint32_t)number(line, "dec_ttl", 0) & 1;
	x->replay_win_sz = (uint32_t)number(line, "window", 0);
	x->esn.value = number(line, "seq", 0);
	if (word(line, "sport") != NULL) {
		x->options.udp_encap = 1;
		x->udp.sport = (uint16_t)number(line, "sport", 0);
		x->udp.dport = (uint16_t)number(line, "dport", 0);
	}
	if (t->type == RTE_SECURITY_IPSEC_TUNNEL_IPV6) {
		t->ipv6.dscp = (uint8_t)number(line, "dscp", 0);
		t->ipv6.hlimit = (uint8_t)number(line, "ttl", 64);
		t->ipv6.flabel = (uint32_t)number(line, "flabel", 0);
	} else {
		t->ipv4.dscp = (uint8_t)number(line, "dscp", 0);
		t->ipv4.ttl = (uint8_t)number(line, "ttl", 64);
		t->ipv4.df = (uint8_t)number(line, "df", 0);
	}
}

static void
do_sa(const char *line)
{
	bool crypto = strcmp(word(line, "action"), "crypto") == 0;
	const char *text = word(line, "key");
	struct world_conf w;
	uint8_t key[36];
	size_t len = text != NULL ? hex(text, key, sizeof(key)) : 0;
	void *s;

	world_conf_init(&w,
		crypto ? RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO
		       : RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL,
		number(line, "out", 0) != 0, (uint32_t)number(line, "spi", 0), len > 4 ? key : NULL,
		(uint16_t)(len - 4), (uint16_t)number(line, "icv", 16));
	world_conf_ends(&w, word(line, "src"), word(line, "dst"));
	do_options(line, &w.conf.ipsec);
	w.conf.userdata = (void *)(uintptr_t)w.conf.ipsec.spi;
	if (n_sessions == SESSIONS_MAX || (s = world_session(0, &w)) == NULL) {
		printf("refused %d\n", rte_errno);
		return;
	}
	sessions[n_sessions].spi = w.conf.ipsec.spi;
	sessions[n_sessions++].handle = s;
	printf("ok\n");
}

static struct rte_mbuf *
frame_of(const char *line)
{
	static uint8_t bytes[LINE_MAX_LEN / 2];
	size_t n = hex(word(line, "frame"), bytes, sizeof(bytes));

	return test_frame(world_pool, bytes, (uint32_t)n, (uint32_t)number(line, "cut", 0));
}

static void
print_frame(const char *what, struct rte_mbuf *m)
{
	static uint8_t buf[LINE_MAX_LEN / 2];
	const uint8_t *p = rte_pktmbuf_read(m, 0, m->pkt_len, buf);
	const char *reason;

	if (rte_mbuf_check(m, 1, &reason) != 0) {
		printf("broken %s\n", reason);
		return;
	}
	printf("%s ", what);
	for (uint32_t i = 0; i < m->pkt_len; i++)
		printf("%02x", p[i]);
	printf("\n");
	rte_pktmbuf_free(m);
}

/* The last of these that grew. */
static const char *
why_lost(const struct nic_stats *before)
{
	struct nic_stats after;
	const char *name, *why = "nothing";

	nic_stats(world_ports[0].id, &after);
	for (unsigned int i = 0; (name = nic_stats_name(i)) != NULL; i++) {
		if (strncmp(name, "tx_", 3) == 0 &&
			nic_stats_value(&after, i) != nic_stats_value(before, i))
			why = name;
	}
	return why;
}

static void
do_tx(const char *line)
{
	uint32_t spi = (uint32_t)number(line, "spi", 0);
	uint64_t seq = number(line, "number", 0);
	struct rte_mbuf *m = frame_of(line), *wire;
	struct nic_stats before;

	for (unsigned int i = 0; i < n_sessions; i++) {
		if (sessions[i].spi == spi)
			world_mark(0, sessions[i].handle, m, seq != 0 ? &seq : NULL);
	}
	m->ol_flags |= RTE_MBUF_F_TX_SEC_OFFLOAD;
	nic_stats(world_ports[0].id, &before);
	if ((wire = world_send(0, m)) == NULL)
		printf("lost %s\n", why_lost(&before));
	else
		print_frame("wire", wire);
}

static void
do_rx(const char *line)
{
	struct rte_mbuf *m = world_receive(0, frame_of(line));

	if (m == NULL)
		printf("none\n");
	else if ((m->ol_flags & RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED) != 0)
		print_frame("failed", m);
	else
		print_frame((m->ol_flags & RTE_MBUF_F_RX_SEC_OFFLOAD) != 0 ? "good" : "plain", m);
}

int
main(void)
{
	static char line[LINE_MAX_LEN];

	test_eal_init("nic_shell", "0");
	world_open(1, "all", NIC_NO_STEERING);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strncmp(line, "sa ", 3) == 0)
			do_sa(line);
		else if (strncmp(line, "tx ", 3) == 0)
			do_tx(line);
		else if (strncmp(line, "rx ", 3) == 0)
			do_rx(line);
		else
			printf("what?\n");
	}
	return test_pool_full(world_pool) && nic_pool_full() ? 0 : 1;
}
