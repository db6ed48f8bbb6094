/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What the NIC does to frames that go out. */

#include <string.h>

#include "internal.h"

static _Thread_local uint8_t in[NIC_FRAME_MAX], out[NIC_FRAME_MAX];

static void
look(struct nic *nic, const uint8_t *bytes, uint32_t len)
{
	if (nic_marked(bytes, len))
		nic_count(nic, plaintext);
}

/* One frame by the driver, whose it is then; false if it has no room. */
static bool
send_one(struct nic *nic, void *queue, struct rte_mbuf *m, const uint8_t *bytes, uint32_t len)
{
	if (nic->tx(queue, &m, 1) == 0)
		return false;
	look(nic, bytes, len);
	nic_count(nic, tx_frames);
	return true;
}

#define LOSE(nic, m, why) \
	do { \
		nic_count(nic, tx_lost); \
		nic_count(nic, why); \
		rte_pktmbuf_free(m); \
	} while (0)

/* Why metadata leads to no session here. */
static void
lose_nameless(struct nic *nic, struct rte_mbuf *m, uint64_t metadata)
{
	if (metadata == 0) {
		LOSE(nic, m, tx_no_session);
		return;
	}
	for (uint32_t id = 0; id < RTE_MAX_ETHPORTS; id++) {
		if (id != nic->id && nic_mdata_is_of(metadata, id)) {
			LOSE(nic, m, tx_wrong_port);
			return;
		}
	}
	nic_came_late(nic, metadata);
	LOSE(nic, m, tx_gone_session);
}

/* What rte_mbuf.h asks of those who set RTE_MBUF_F_TX_SEC_OFFLOAD. */
static bool
lens_lie(const struct rte_mbuf *m, uint32_t len)
{
	const uint8_t *ip = in + m->l2_len;
	bool v6;

	if (len < m->l2_len + 20u)
		return true;
	v6 = ip[0] >> 4 == 6;
	return m->l3_len != (v6 ? 40u : (ip[0] & 15u) * 4u) ||
		(m->ol_flags & (v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4)) == 0;
}

static enum nic_verdict
protect(struct nic_session *s, const struct rte_mbuf *m, uint32_t len, const uint32_t *high,
	uint32_t *out_len)
{
	if (s->ipsec.direction != RTE_SECURITY_IPSEC_SA_DIR_EGRESS || len == 0)
		return NIC_BAD_FORM;
	if (s->hard)
		return NIC_BAD_END;
	if (s->action == RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO) {
		memcpy(out, in, len);
		*out_len = len;
		return nic_encrypt(s, out, len, high);
	} else {
		bool v6 = s->ipsec.tunnel.type == RTE_SECURITY_IPSEC_TUNNEL_IPV6;

		if (m->l2_len < RTE_ETHER_HDR_LEN || len < m->l2_len ||
			in[m->l2_len - 2] != (v6 ? 0x86 : 0x08) ||
			in[m->l2_len - 1] != (v6 ? 0xdd : 0x00))
			return NIC_BAD_FORM;
		return nic_encapsulate(s, in, len, m->l2_len, out, out_len);
	}
}

/* True if the frame is the NIC's, sent or lost; false if it stays the caller's as it was. */
static bool
send_protected(struct nic *nic, void *queue, struct rte_mbuf *m, struct nic_session *s,
	const uint32_t *high)
{
	uint64_t number = s->number, iv = s->iv;
	uint32_t len = nic_flat(m, in), out_len = 0;
	uint16_t id = s->id;
	enum nic_verdict verdict = protect(s, m, len, high, &out_len);
	struct rte_mbuf *wire;

	if (verdict == NIC_BAD_FORM) {
		LOSE(nic, m, tx_malformed);
		return true;
	}
	if (verdict == NIC_BAD_END) {
		LOSE(nic, m, tx_seq_end);
		if (!s->hard)
			nic_raise(nic, RTE_ETH_EVENT_IPSEC_ESN_OVERFLOW, s->userdata);
		return true;
	}
	if ((wire = nic_buf(NULL, out, out_len)) == NULL) {
		LOSE(nic, m, tx_nombuf);
		return true;
	}
	if (!send_one(nic, queue, wire, out, out_len)) {
		rte_pktmbuf_free(wire);
		s->number = number;
		s->iv = iv;
		s->id = id;
		return false;
	}
	if (lens_lie(m, len))
		nic_count(nic, tx_lens);
	nic_count(nic, tx_protected);
	nic_lifetime(nic, s, out_len);
	nic_mdata_wipe(m);
	rte_pktmbuf_free(m);
	return true;
}

static bool
hold(struct nic *nic, void *queue, struct rte_mbuf *m, struct nic_session *s)
{
	if (nic->n_held == NIC_HELD_MAX)
		return false;
	if (s != NULL)
		s->inside++;
	nic->held[nic->n_held] = m;
	nic->held_queue[nic->n_held++] = queue;
	return true;
}

static bool
send_secure(struct nic *nic, void *queue, struct rte_mbuf *m, bool may_hold)
{
	bool has_high;
	uint32_t high = 0;
	uint64_t metadata = nic_mdata_get(nic, m, &has_high, &high);
	struct nic_session *s;

	if (nic_strikes(nic, NIC_FAULT_tx_forget))
		nic_forget(nic);
	s = nic_session_of(nic, metadata);
	if (may_hold && nic_level(nic, NIC_FAULT_tx_hold) != 0)
		return hold(nic, queue, m, s);
	if (!nic->tx_on) {
		LOSE(nic, m, tx_not_enabled);
		return true;
	}
	if (s == NULL) {
		lose_nameless(nic, m, metadata);
		return true;
	}
	return send_protected(nic, queue, m, s, has_high ? &high : NULL);
}

static bool
send_plain(struct nic *nic, void *queue, struct rte_mbuf *m)
{
	uint32_t len = nic_flat(m, in);

	return send_one(nic, queue, m, in, len);
}

static bool
send_any(struct nic *nic, void *queue, struct rte_mbuf *m)
{
	if (nic->dead != NIC_ALIVE || nic_strikes(nic, NIC_FAULT_tx_drop)) {
		nic_count(nic, tx_dropped);
		rte_pktmbuf_free(m);
		return true;
	}
	if ((m->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) != 0)
		return send_secure(nic, queue, m, true);
	return send_plain(nic, queue, m);
}

uint16_t
nic_tx(struct nic *nic, void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = 0;

	pthread_mutex_lock(&nic->mutex);
	while (sent < n && send_any(nic, queue, pkts[sent]))
		sent++;
	pthread_mutex_unlock(&nic->mutex);
	return sent;
}

/* What tx_hold kept: is sent now, or thrown away. */
void
nic_tx_release(struct nic *nic, bool go)
{
	pthread_mutex_lock(&nic->mutex);
	for (unsigned int i = 0; i < nic->n_held; i++) {
		struct rte_mbuf *m = nic->held[i];
		struct nic_session *s;
		uint32_t high;
		bool has_high;

		s = nic_session_of(nic, nic_mdata_get(nic, m, &has_high, &high));
		if (s != NULL)
			s->inside--;
		if (!go || !send_secure(nic, nic->held_queue[i], m, false)) {
			nic_count(nic, tx_dropped);
			rte_pktmbuf_free(m);
		}
	}
	nic->n_held = 0;
	pthread_mutex_unlock(&nic->mutex);
}
