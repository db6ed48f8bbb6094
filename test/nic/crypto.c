/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* A cryptodev that does the whole protocol, and one whose operations do not come back as they
 * should.
 */

#include <errno.h>
#include <stdlib.h>

#include "internal.h"
#include "wrap.h"

#define DONE_MAX 4096u
#define QUEUES_MAX 16u

/* Operations that are done and wait for a dequeue; `at` is the oldest. */
struct queue {
	void *qp; /* the driver's */
	struct rte_crypto_op *done[DONE_MAX];
	uint32_t at, n;
};

struct nic_crypto {
	dequeue_pkt_burst_t dequeue;
	enqueue_pkt_burst_t enqueue;
	struct queue queues[QUEUES_MAX];
	struct rte_crypto_op *lost[DONE_MAX];
	uint32_t n_lost;
};

struct nic_crypto *
nic_crypto_open(void)
{
	return calloc(1, sizeof(struct nic_crypto));
}

void
nic_crypto_close(struct nic_crypto *crypto)
{
	free(crypto);
}

static struct queue *
queue_of(struct nic_crypto *crypto, void *qp)
{
	for (unsigned int i = 0; i < QUEUES_MAX; i++) {
		struct queue *q = &crypto->queues[i];

		if (q->qp == NULL)
			q->qp = qp;
		if (q->qp == qp)
			return q;
	}
	return NULL;
}

static void
done_put(struct queue *q, struct rte_crypto_op *op)
{
	q->done[(q->at + q->n++) % DONE_MAX] = op;
}

static struct rte_crypto_op *
done_get(struct queue *q, bool last)
{
	q->n--;
	if (last)
		return q->done[(q->at + q->n) % DONE_MAX];
	q->at = (q->at + 1) % DONE_MAX;
	return q->done[(q->at + DONE_MAX - 1) % DONE_MAX];
}

/* From the inner packet to the outer one, in the room that the mbuf has. */
static bool
grow(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len, uint32_t head)
{
	uint32_t tail = len - head - m->pkt_len;
	struct rte_mbuf *last = rte_pktmbuf_lastseg(m);

	if (head > rte_pktmbuf_headroom(m) || tail > rte_pktmbuf_tailroom(last))
		return false;
	rte_pktmbuf_prepend(m, (uint16_t)head);
	rte_pktmbuf_append(m, (uint16_t)tail);
	nic_buf_fill(m, bytes, len);
	return true;
}

static bool
outbound(struct nic *nic, struct nic_session *s, struct rte_mbuf *m, const uint8_t *in,
	uint32_t len, uint8_t *out)
{
	uint32_t out_len = 0, head;

	if (len != nic_inner_len(in, len) ||
		nic_encapsulate(s, in, len, 0, out, &out_len) != NIC_GOOD)
		return false;
	head = (s->ipsec.tunnel.type == RTE_SECURITY_IPSEC_TUNNEL_IPV6 ? 40 : 20) +
		(s->ipsec.options.udp_encap ? 8 : 0) + 8 + s->cipher.iv_len;
	if (!grow(m, out, out_len, head))
		return false;
	nic_count(nic, crypto_sealed);
	return true;
}

static uint8_t
inbound(struct nic *nic, struct nic_session *s, struct rte_mbuf *m, const uint8_t *in, uint32_t len,
	uint8_t *out)
{
	uint32_t out_len = 0;
	struct nic_esp at;
	enum nic_verdict verdict;

	if (len == 0 || !nic_find_esp_ip(in, len, 0, &at) || at.udp != s->ipsec.options.udp_encap)
		return RTE_CRYPTO_OP_STATUS_ERROR;
	verdict = nic_decapsulate(s, in, &at, false, out, &out_len);
	if (verdict == NIC_BAD_ICV)
		return RTE_CRYPTO_OP_STATUS_AUTH_FAILED;
	if (verdict != NIC_GOOD)
		return RTE_CRYPTO_OP_STATUS_ERROR;
	nic_buf_fill(m, out, out_len);
	nic_count(nic, crypto_opened);
	return RTE_CRYPTO_OP_STATUS_SUCCESS;
}

static uint8_t
protocol(struct nic *nic, const struct rte_crypto_op *op)
{
	static _Thread_local uint8_t in[NIC_FRAME_MAX], out[NIC_FRAME_MAX];
	struct rte_mbuf *m = op->sym->m_src;
	uint32_t len = nic_flat(m, in);
	struct nic_session *s = nic_session_of_handle(nic, op->sym->session);

	if (s == NULL) {
		nic_came_late(nic, nic_handle_metadata(op->sym->session));
		return RTE_CRYPTO_OP_STATUS_INVALID_SESSION;
	}
	s->inside++;
	if (op->sym->m_dst != NULL && op->sym->m_dst != m)
		return RTE_CRYPTO_OP_STATUS_INVALID_ARGS;
	if (nic_level(nic, NIC_FAULT_op_error) != 0 || nic_level(nic, NIC_FAULT_op_auth) != 0)
		return RTE_CRYPTO_OP_STATUS_SUCCESS; /* finish() says otherwise */
	nic_lifetime(nic, s, len);
	if (s->ipsec.direction == RTE_SECURITY_IPSEC_SA_DIR_INGRESS)
		return inbound(nic, s, m, in, len, out);
	return outbound(nic, s, m, in, len, out) ? RTE_CRYPTO_OP_STATUS_SUCCESS
						 : RTE_CRYPTO_OP_STATUS_ERROR;
}

/* The last hand that is laid on an operation before it waits. */
static void
finish(struct nic *nic, struct queue *q, struct rte_crypto_op *op)
{
	if (nic_strikes(nic, NIC_FAULT_op_error))
		op->status = RTE_CRYPTO_OP_STATUS_ERROR;
	else if (nic_strikes(nic, NIC_FAULT_op_auth))
		op->status = RTE_CRYPTO_OP_STATUS_AUTH_FAILED;
	done_put(q, op);
}

static bool
lose(struct nic *nic, struct rte_crypto_op *op)
{
	if (nic->crypto->n_lost == DONE_MAX || !nic_strikes(nic, NIC_FAULT_op_lose))
		return false;
	nic->crypto->lost[nic->crypto->n_lost++] = op;
	nic_count(nic, crypto_lost);
	return true;
}

static bool
enqueue_one(struct nic *nic, struct queue *q, struct rte_crypto_op *op)
{
	if (q->n == DONE_MAX)
		return false;
	if (lose(nic, op))
		return true;
	if (op->sess_type != RTE_CRYPTO_OP_SECURITY_SESSION)
		return nic->crypto->enqueue(q->qp, &op, 1) == 1;
	op->status = protocol(nic, op);
	finish(nic, q, op);
	return true;
}

static uint16_t
enqueue(struct nic *nic, void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	uint32_t full = nic_level(nic, NIC_FAULT_op_full);
	struct queue *q;
	uint16_t taken = 0;

	if (nic_level(nic, NIC_FAULT_op_dead) != 0)
		return 0;
	if (full != 0 && n > full - 1)
		n = (uint16_t)(full - 1);
	pthread_mutex_lock(&nic->mutex);
	q = queue_of(nic->crypto, qp);
	while (q != NULL && taken < n && enqueue_one(nic, q, ops[taken]))
		taken++;
	pthread_mutex_unlock(&nic->mutex);
	nic_count_at(nic, NIC_COUNT_OF(crypto_in), taken);
	return taken;
}

/* What the driver has done waits with the rest. */
static void
collect(struct nic *nic, struct queue *q)
{
	struct rte_crypto_op *op;

	while (q->n < DONE_MAX && nic->crypto->dequeue(q->qp, &op, 1) == 1)
		finish(nic, q, op);
}

static void
give_back(struct nic *nic, struct rte_crypto_op *op)
{
	struct nic_session *s;

	nic_count(nic, crypto_out);
	if (op->status != RTE_CRYPTO_OP_STATUS_SUCCESS)
		nic_count(nic, crypto_failed);
	if (op->sess_type != RTE_CRYPTO_OP_SECURITY_SESSION)
		return;
	if ((s = nic_session_of_handle(nic, op->sym->session)) != NULL && s->inside > 0)
		s->inside--;
}

static uint16_t
dequeue(struct nic *nic, void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	bool last = nic_level(nic, NIC_FAULT_op_reorder) != 0;
	struct queue *q;
	uint16_t given = 0;

	if (nic_level(nic, NIC_FAULT_op_dead) != 0)
		return 0;
	pthread_mutex_lock(&nic->mutex);
	if ((q = queue_of(nic->crypto, qp)) != NULL)
		collect(nic, q);
	while (q != NULL && given < n && q->n > 0 && nic_level(nic, NIC_FAULT_op_hold) == 0) {
		ops[given] = done_get(q, last);
		give_back(nic, ops[given++]);
	}
	pthread_mutex_unlock(&nic->mutex);
	return given;
}

struct rte_crypto_op *
nic_crypto_lost(uint8_t dev)
{
	struct nic *nic = nic_of_crypto(dev);
	struct rte_crypto_op *op = NULL;

	if (nic == NULL)
		return NULL;
	pthread_mutex_lock(&nic->mutex);
	if (nic->crypto->n_lost > 0)
		op = nic->crypto->lost[--nic->crypto->n_lost];
	pthread_mutex_unlock(&nic->mutex);
	return op;
}

/* The public array's functions know their queue, not their device. */
#define DEVS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define DEV_FUNCTIONS(id) \
	static uint16_t enqueue_of_##id(void *qp, struct rte_crypto_op **ops, uint16_t n) \
	{ \
		return enqueue(nic_of_crypto(id), qp, ops, n); \
	} \
	static uint16_t dequeue_of_##id(void *qp, struct rte_crypto_op **ops, uint16_t n) \
	{ \
		return dequeue(nic_of_crypto(id), qp, ops, n); \
	}
DEVS(DEV_FUNCTIONS)

static const struct {
	enqueue_pkt_burst_t enqueue;
	dequeue_pkt_burst_t dequeue;
} functions[] = {
#define DEV_ROW(id) { enqueue_of_##id, dequeue_of_##id },
	DEVS(DEV_ROW)
};
_Static_assert(RTE_DIM(functions) == NIC_CRYPTO_MAX, "a pair for each device");

void *
__wrap_rte_cryptodev_get_sec_ctx(uint8_t dev)
{
	struct nic *nic = nic_of_crypto(dev);

	return nic != NULL ? &nic->ctx : __real_rte_cryptodev_get_sec_ctx(dev);
}

void
__wrap_rte_cryptodev_info_get(uint8_t dev, struct rte_cryptodev_info *info)
{
	__real_rte_cryptodev_info_get(dev, info);
	if (nic_of_crypto(dev) != NULL)
		info->feature_flags |= RTE_CRYPTODEV_FF_SECURITY;
}

int
__wrap_rte_cryptodev_start(uint8_t dev)
{
	struct nic *nic = nic_of_crypto(dev);
	int ret = __real_rte_cryptodev_start(dev);

	if (ret != 0 || nic == NULL ||
		rte_crypto_fp_ops[dev].enqueue_burst == functions[dev].enqueue)
		return ret;
	nic->crypto->enqueue = rte_crypto_fp_ops[dev].enqueue_burst;
	nic->crypto->dequeue = rte_crypto_fp_ops[dev].dequeue_burst;
	rte_crypto_fp_ops[dev].enqueue_burst = functions[dev].enqueue;
	rte_crypto_fp_ops[dev].dequeue_burst = functions[dev].dequeue;
	return 0;
}

/* Queues may be others' when it starts again. */
static void
forget_queues(struct nic *nic)
{
	pthread_mutex_lock(&nic->mutex);
	for (unsigned int i = 0; i < QUEUES_MAX; i++)
		nic->crypto->queues[i].qp = NULL;
	pthread_mutex_unlock(&nic->mutex);
}

void
__wrap_rte_cryptodev_stop(uint8_t dev)
{
	struct nic *nic = nic_of_crypto(dev);

	__real_rte_cryptodev_stop(dev);
	if (nic != NULL)
		forget_queues(nic);
}

int
__wrap_rte_cryptodev_close(uint8_t dev)
{
	struct nic *nic = nic_of_crypto(dev);

	if (nic != NULL) {
		pthread_mutex_lock(&nic->mutex);
		nic_count_at(nic, NIC_COUNT_OF(left), nic->stats[NIC_COUNT_OF(sessions)]);
		nic_forget(nic);
		pthread_mutex_unlock(&nic->mutex);
	}
	return __real_rte_cryptodev_close(dev);
}
