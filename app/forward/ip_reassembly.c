/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Fragments for our own addresses, put together by librte_ip_frag: bounded in packets, in fragments
 * and in time. Its table throws a packet away whose fragments overlap.
 */

#include <netinet/in.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_ip_frag.h>

#include "app.h"
#include "forward/ip.h"

#define PACKETS_MAX 256 /* under way */
#define BUCKET 16
#define TIMEOUT_S 30 /* Linux: ipfrag_time */

static bool
table_create(struct router *ip)
{
	if (ip->fragments == NULL)
		ip->fragments = rte_ip_frag_table_create(PACKETS_MAX / BUCKET, BUCKET, PACKETS_MAX,
			rte_get_tsc_hz() * TIMEOUT_S, SOCKET_ID_ANY);
	if (ip->death_row == NULL)
		ip->death_row = calloc(1, sizeof(*ip->death_row));
	return ip->fragments != NULL && ip->death_row != NULL;
}

static void
bury(struct router *ip)
{
	for (uint32_t i = 0; i < ip->death_row->cnt; i++)
		ip_drop(ip, DROP_FRAG_EXPIRED, ip->death_row->row[i]);
	ip->death_row->cnt = 0;
}

static struct rte_mbuf *
reassemble4(struct router *ip, struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *h =
		rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);

	m->l3_len = rte_ipv4_hdr_len(h);
	return rte_ipv4_frag_reassemble_packet(ip->fragments, ip->death_row, m, rte_rdtsc(), h);
}

/* Only where the fragment header comes first: a chain in front of it is rare and refused. */
static struct rte_mbuf *
reassemble6(struct router *ip, struct rte_mbuf *m)
{
	struct rte_ipv6_hdr *h =
		rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, RTE_ETHER_HDR_LEN);
	struct rte_ipv6_fragment_ext *ext = (void *)(h + 1);

	if (h->proto != IPPROTO_FRAGMENT || rte_be_to_cpu_16(h->payload_len) < sizeof(*ext)) {
		ip_drop(ip, DROP_NO_HOST_PATH, m);
		return NULL;
	}
	m->l3_len = sizeof(*h) + sizeof(*ext);
	return rte_ipv6_frag_reassemble_packet(
		ip->fragments, ip->death_row, m, rte_rdtsc(), h, ext);
}

struct rte_mbuf *
ip_reassemble(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	struct rte_mbuf *whole;
	uint16_t port = m->port;

	if (!table_create(ip) || view->l3_off != RTE_ETHER_HDR_LEN ||
		rte_pktmbuf_linearize(m) != 0) {
		ip_drop(ip, DROP_IP_NOBUF, m);
		return NULL;
	}
	rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - view->l3_end));
	m->l2_len = RTE_ETHER_HDR_LEN;
	whole = view->l3 == PACKET_L3_IPV6 ? reassemble6(ip, m) : reassemble4(ip, m);
	bury(ip);
	if (whole == NULL)
		return NULL;
	whole->port = port;
	whole->ol_flags = 0;
	whole->tx_offload = 0;
	if (view->l3 == PACKET_L3_IPV4) {
		struct rte_ipv4_hdr *h =
			rte_pktmbuf_mtod_offset(whole, struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);

		h->hdr_checksum = 0;
		h->hdr_checksum = rte_ipv4_cksum(h);
	}
	return whole;
}

void
ip_reassembly_tick(struct router *ip)
{
	if (ip->fragments == NULL || ip->death_row == NULL)
		return;
	rte_ip_frag_table_del_expired_entries(ip->fragments, ip->death_row, rte_rdtsc());
	bury(ip);
}

void
ip_reassembly_destroy(struct router *ip)
{
	if (ip->fragments != NULL && ip->death_row != NULL) {
		/* A moment when all of them are too old. */
		for (unsigned int i = 0; i < PACKETS_MAX; i++) {
			rte_ip_frag_table_del_expired_entries(ip->fragments, ip->death_row,
				rte_rdtsc() + 2 * rte_get_tsc_hz() * TIMEOUT_S);
			bury(ip);
		}
		rte_ip_frag_table_destroy(ip->fragments);
	}
	free(ip->death_row);
	ip->fragments = NULL;
	ip->death_row = NULL;
}
