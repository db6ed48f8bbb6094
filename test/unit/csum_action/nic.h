/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_CSUM_NIC_H
#define TEST_CSUM_NIC_H

/*
 * What a NIC with checksum offload does to a frame on the wire: sums from where l2_len and l3_len
 * say layer 4 begins to the end of the frame, whatever the headers say, and puts the result over
 * the preset.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "reference.h"

static inline uint8_t *
nic_byte(struct rte_mbuf *m, uint32_t at)
{
	for (; at >= m->data_len; m = m->next)
		at -= m->data_len;
	return rte_pktmbuf_mtod_offset(m, uint8_t *, at);
}

static inline void
nic_sum(struct rte_mbuf *m, uint32_t from, uint32_t to, uint32_t field, bool udp)
{
	uint32_t sum = 0, at;

	for (at = from; at < to; at++)
		sum += (at - from) % 2 == 0 ? (uint32_t)*nic_byte(m, at) << 8 : *nic_byte(m, at);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	sum ^= 0xffff;
	if (udp && sum == 0)
		sum = 0xffff;
	*nic_byte(m, field) = (uint8_t)(sum >> 8);
	*nic_byte(m, field + 1) = (uint8_t)sum;
}

static inline void
nic_crc(struct rte_mbuf *m, uint32_t from)
{
	uint32_t crc = UINT32_MAX, at;
	int i;

	for (at = from; at < m->pkt_len; at++)
		for (crc ^= *nic_byte(m, at), i = 0; i < 8; i++)
			crc = crc >> 1 ^ (0x82f63b78 & -(crc & 1));
	for (i = 0; i < 4; i++)
		*nic_byte(m, from + 8 + (uint32_t)i) = (uint8_t)(~crc >> 8 * i);
}

/* Sends: does what the Tx flags ask. False if they ask for what the NIC does not offer. */
static inline bool
nic_send(struct rte_mbuf *m, uint64_t offers)
{
	uint32_t l4 = m->l2_len + m->l3_len;

	switch (m->ol_flags & RTE_MBUF_F_TX_L4_MASK) {
	case RTE_MBUF_F_TX_TCP_CKSUM:
		if ((offers & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) == 0)
			return false;
		nic_sum(m, l4, m->pkt_len, l4 + 16, false);
		break;
	case RTE_MBUF_F_TX_UDP_CKSUM:
		if ((offers & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) == 0)
			return false;
		nic_sum(m, l4, m->pkt_len, l4 + 6, true);
		break;
	case RTE_MBUF_F_TX_SCTP_CKSUM:
		if ((offers & RTE_ETH_TX_OFFLOAD_SCTP_CKSUM) == 0)
			return false;
		nic_crc(m, l4);
		break;
	}
	if ((m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0) {
		if ((offers & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) == 0)
			return false;
		nic_sum(m, m->l2_len, l4, m->l2_len + 10u, false);
	}
	return true;
}

#endif /* TEST_CSUM_NIC_H */
