/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "app.h"
#include "forward/generate.h"
#include "pipeline.h"

#define IP_OFF RTE_ETHER_HDR_LEN
#define UDP_OFF (IP_OFF + (int)sizeof(struct rte_ipv4_hdr))

static_assert(
	UDP_OFF + sizeof(struct rte_udp_hdr) == GENERATE_LEN_MIN, "headers fill the template");

static uint32_t
sum_words(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	return sum;
}

static uint16_t
fold(uint32_t sum)
{
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)~sum;
}

static uint32_t
address_sum(uint32_t src, uint32_t dst)
{
	return (src >> 16) + (src & 0xffff) + (dst >> 16) + (dst & 0xffff);
}

void
generate_template(struct generate_template *t, const struct options *opt,
	const struct stream *stream, uint16_t len)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)t->header;
	struct rte_ipv4_hdr ip = { 0 };
	struct rte_udp_hdr udp = { 0 };

	memset(t, 0, sizeof(*t));
	t->n_segments = len != 0 ? 1 : opt->n_txpkts;
	for (unsigned int i = 0; i < t->n_segments; i++) {
		t->segments[i] = len != 0 ? len : opt->txpkts[i];
		t->len = (uint16_t)(t->len + t->segments[i]);
	}
	rte_eth_macaddr_get(stream->tx_port->id, &eth->src_addr);
	eth->dst_addr = opt->eth_peer[stream->tx_port->id];
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip.version_ihl = RTE_IPV4_VHL_DEF;
	ip.time_to_live = 64;
	ip.next_proto_id = IPPROTO_UDP;
	ip.total_length = rte_cpu_to_be_16((uint16_t)(t->len - IP_OFF));
	udp.src_port = rte_cpu_to_be_16(opt->tx_udp_src);
	udp.dst_port = rte_cpu_to_be_16(opt->tx_udp_dst);
	udp.dgram_len = rte_cpu_to_be_16((uint16_t)(t->len - UDP_OFF));
	memcpy(t->header + IP_OFF, &ip, sizeof(ip));
	memcpy(t->header + UDP_OFF, &udp, sizeof(udp));
	t->ip_sum = sum_words(&ip, sizeof(ip));
	/* The payload is zeros: pseudo-header and header are all there is to sum. */
	t->udp_sum = sum_words(&udp, sizeof(udp)) + IPPROTO_UDP + (uint32_t)(t->len - UDP_OFF);
	t->cksum = opt->tx_cksum;
}

/* The sums as --tx-cksum wants them: RFC 768 says 0xffff for a sum of zero, none is zero. */
static void
put_checksums(const struct generate_template *t, struct rte_ipv4_hdr *ip, struct rte_udp_hdr *udp,
	uint32_t addresses)
{
	uint16_t ip_sum = fold(t->ip_sum + addresses), udp_sum = fold(t->udp_sum + addresses);

	if (udp_sum == 0)
		udp_sum = 0xffff;
	if (t->cksum == TX_CKSUM_BAD) {
		ip_sum ^= 0x5555; /* not a complement, so wrong and, but for one value, not zero */
		udp_sum ^= udp_sum == 0x5555 ? 0x3333 : 0x5555;
	}
	if (t->cksum == TX_CKSUM_NONE)
		udp_sum = 0;
	ip->hdr_checksum = rte_cpu_to_be_16(ip_sum);
	udp->dgram_cksum = rte_cpu_to_be_16(udp_sum);
}

/* Zeroed room for every further segment. */
static bool
add_segments(const struct generate_template *t, struct rte_mbuf *m, struct rte_mempool *pool)
{
	for (unsigned int i = 1; i < t->n_segments; i++) {
		struct rte_mbuf *s = rte_pktmbuf_alloc(pool);

		if (s == NULL)
			return false;
		s->data_len = t->segments[i];
		s->pkt_len = t->segments[i];
		memset(rte_pktmbuf_mtod(s, void *), 0, t->segments[i]);
		if (rte_pktmbuf_chain(m, s) != 0) {
			rte_pktmbuf_free(s);
			return false;
		}
	}
	return true;
}

/* options.c makes sure that the first segment holds the headers. */
struct rte_mbuf *
generate_packet(
	const struct generate_template *t, const struct stream *stream, uint32_t src, uint32_t dst)
{
	struct rte_mempool *pool = stream->tx_port->pool;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct rte_ipv4_hdr *ip;
	uint8_t *data;

	if (m == NULL)
		return NULL;
	data = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(data, t->header, GENERATE_LEN_MIN);
	memset(data + GENERATE_LEN_MIN, 0, t->segments[0] - GENERATE_LEN_MIN);
	m->data_len = t->segments[0];
	m->pkt_len = t->segments[0];
	ip = (struct rte_ipv4_hdr *)(data + IP_OFF);
	ip->src_addr = rte_cpu_to_be_32(src);
	ip->dst_addr = rte_cpu_to_be_32(dst);
	put_checksums(t, ip, (struct rte_udp_hdr *)(data + UDP_OFF), address_sum(src, dst));
	if (t->n_segments > 1 && !add_segments(t, m, pool)) {
		rte_pktmbuf_free(m); /* never was a packet: nothing to count */
		return NULL;
	}
	return m;
}

void
generate_send(
	struct worker *worker, const struct stream *stream, struct rte_mbuf **pkts, unsigned int n)
{
	struct packet_view views[PACKET_VECTOR_MAX];

	for (unsigned int i = 0; i < n; i++)
		*packet_meta(pkts[i], worker->meta_offset) = (struct packet_meta){ 0 };
	for (unsigned int i = 0; i < n; i += PACKET_VECTOR_MAX) {
		struct packet_vector vector = {
			.pkts = pkts + i,
			.views = views,
			.n = (uint16_t)RTE_MIN(n - i, (unsigned int)PACKET_VECTOR_MAX),
		};

		pipeline_send(worker, stream->tx_port, stream->tx_queue, &vector);
	}
}
