/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What the NIC does to frames that come in. */

#include <string.h>

#include "internal.h"

static struct rte_mbuf *
rewritten(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len, uint32_t old_len)
{
	struct rte_mbuf *written = len <= old_len ? nic_buf_write(m, bytes, len) : NULL;

	return written != NULL ? written : m;
}

static uint64_t
userdata_of(struct nic *nic, const struct nic_session *s)
{
	struct nic_session *other;
	uint32_t slot = 0;

	if (!nic_strikes(nic, NIC_FAULT_rx_userdata))
		return s->userdata;
	while ((other = nic_session_next(nic, &slot)) != NULL) {
		if (other != s && other->userdata != s->userdata)
			return other->userdata;
	}
	return UINT64_C(0xdeadbeefdeadbeef);
}

static void
good(struct nic *nic, struct nic_session *s, struct rte_mbuf *m, uint32_t len)
{
	m->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD;
	if ((nic->options & NIC_DYNFIELD) != 0)
		nic_mdata_userdata(m, userdata_of(nic, s));
	nic_count(nic, rx_decrypted);
	nic_lifetime(nic, s, len);
}

static void
failed(struct nic *nic, struct nic_session *s, struct rte_mbuf *m, enum nic_verdict verdict)
{
	m->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD | RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED;
	if ((nic->options & NIC_DYNFIELD) != 0)
		nic_mdata_userdata(m, userdata_of(nic, s));
	nic_count(nic, rx_failed);
	if (verdict == NIC_BAD_ICV)
		nic_count(nic, rx_icv);
	else if (verdict == NIC_BAD_REPLAY)
		nic_count(nic, rx_replay);
	else if (verdict == NIC_BAD_FORM)
		nic_count(nic, rx_malformed);
}

static struct rte_mbuf *
crypto(struct nic *nic, struct nic_session *s, struct rte_mbuf *m, uint8_t *frame, uint32_t len,
	const struct nic_esp *at)
{
	enum nic_verdict verdict = nic_decrypt(s, frame, at);

	m = rewritten(m, frame, len, len);
	if (verdict == NIC_BAD_ICV && nic_strikes(nic, NIC_FAULT_rx_good))
		verdict = NIC_GOOD;
	if (verdict == NIC_GOOD && !nic_strikes(nic, NIC_FAULT_rx_icv))
		good(nic, s, m, at->end - at->l3);
	else
		failed(nic, s, m, verdict);
	return m;
}

/* NULL: the frame vanished. */
static struct rte_mbuf *
protocol(struct nic *nic, struct nic_session *s, struct rte_mbuf *m, const uint8_t *frame,
	uint32_t len, const struct nic_esp *at)
{
	static _Thread_local uint8_t out[NIC_FRAME_MAX];
	uint32_t out_len = 0;
	enum nic_verdict verdict;

	if (s->hard || nic_strikes(nic, NIC_FAULT_rx_icv)) {
		failed(nic, s, m, NIC_GOOD);
		return m;
	}
	verdict = nic_decapsulate(s, frame, at, false, out, &out_len);
	if (verdict == NIC_BAD_ICV && nic_strikes(nic, NIC_FAULT_rx_good))
		verdict = nic_decapsulate(s, frame, at, true, out, &out_len);
	if (verdict == NIC_DUMMY) {
		nic_count(nic, rx_dummy);
		rte_pktmbuf_free(m);
		return NULL;
	}
	if (verdict != NIC_GOOD) {
		failed(nic, s, m, verdict);
		return m;
	}
	m = rewritten(m, out, out_len, len);
	good(nic, s, m, out_len - at->l3);
	return m;
}

static struct rte_mbuf *
receive(struct nic *nic, struct rte_mbuf *m)
{
	static _Thread_local uint8_t frame[NIC_FRAME_MAX];
	uint32_t len = nic_flat(m, frame);
	struct nic_session *s;
	struct nic_esp at;

	/* Over rings what the sender wrote beside the bytes would come along. */
	m->ol_flags &= ~(RTE_MBUF_F_RX_SEC_OFFLOAD | RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED |
		RTE_MBUF_F_TX_SEC_OFFLOAD);
	nic_mdata_wipe(m);
	if (!nic->rx_on || len == 0 || !nic_find_esp(frame, len, &at))
		return m;
	if ((s = nic_session_in(nic, frame, &at)) == NULL) {
		nic_count(nic, rx_other);
		return m;
	}
	if (!nic_steered(nic, s, frame, &at) || nic_strikes(nic, NIC_FAULT_rx_lost)) {
		nic_count(nic, rx_unsteered);
		return m;
	}
	if (s->action == RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO)
		return crypto(nic, s, m, frame, len, &at);
	return protocol(nic, s, m, frame, len, &at);
}

uint16_t
nic_rx(struct nic *nic, void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t came = nic->rx(queue, pkts, n), kept = 0;

	if (came == 0)
		return 0;
	pthread_mutex_lock(&nic->mutex);
	for (uint16_t i = 0; i < came; i++) {
		struct rte_mbuf *m = pkts[i];

		if (nic->dead != NIC_ALIVE) {
			rte_pktmbuf_free(m);
			continue;
		}
		nic_count(nic, rx_frames);
		if ((m = receive(nic, m)) != NULL)
			pkts[kept++] = m;
	}
	pthread_mutex_unlock(&nic->mutex);
	return kept;
}
