/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_SCHED_NOLOCK_NIC_H
#define TEST_SCHED_NOLOCK_NIC_H

/* A NIC that notes what it sends and refuses on demand; a scheduler in front of it. */

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_rcu_qsbr.h>

#include "rcu/rcu.h"
#include "sched_nolock/sched_nolock.h"
#include "support.h"

#define NIC_MAX 65536

struct nic {
	unsigned int room; /* packets it still takes */
	unsigned int calls; /* of the driver */
	unsigned int inside; /* owners inside it now */
	unsigned int n;
	uint32_t ids[NIC_MAX]; /* what was sent, in order */
	unsigned int dropped; /* handed to drop */
	uint64_t bytes;
};

struct bed {
	struct rte_mempool *pool;
	struct rte_rcu_qsbr *qsbr;
	struct rcu *rcu;
	struct sched_nolock *sched;
	struct nic nic;
	int id_offset, priority_offset, class_offset;
};

static struct bed bed;

static inline uint32_t *
id_of(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, bed.id_offset, uint32_t *);
}

static uint16_t
nic_tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	struct nic *nic = arg;
	uint16_t i;

	nic->calls++;
	nic->inside++;
	for (i = 0; i < n && nic->room > 0; i++, nic->room--) {
		nic->ids[nic->n++ % NIC_MAX] = *id_of(pkts[i]);
		nic->bytes += pkts[i]->pkt_len;
		rte_pktmbuf_free(pkts[i]);
	}
	nic->inside--;
	return i;
}

static void
nic_drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	struct nic *nic = arg;

	nic->dropped += n;
	rte_pktmbuf_free_bulk(pkts, n);
}

static inline int
bed_dynfield(const char *name, size_t size)
{
	struct rte_mbuf_dynfield field = { .size = size, .align = size };
	int offset;

	snprintf(field.name, sizeof(field.name), "%s", name);
	if ((offset = rte_mbuf_dynfield_register(&field)) < 0)
		exit(1);
	return offset;
}

/* EAL, pool, fields, grace periods: once. */
static inline void
bed_init(const char *name)
{
	test_eal_init(name, "0");
	bed.pool = test_pool(name, 32767);
	bed.id_offset = bed_dynfield("test_id", 4);
	bed.priority_offset = bed_dynfield("test_priority", 4);
	bed.class_offset = bed_dynfield("test_class", 2);
	bed.qsbr = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(8), RTE_CACHE_LINE_SIZE);
	if (bed.qsbr == NULL || rte_rcu_qsbr_init(bed.qsbr, 8) != 0 ||
		(bed.rcu = rcu_create(bed.qsbr)) == NULL)
		exit(1);
}

/* What a test starts from: pfifo_fast, 4 workers, priorities from the mbuf, an open NIC. */
static inline struct sched_nolock_conf
bed_conf(void)
{
	struct sched_nolock_conf conf;

	memset(&bed.nic, 0, sizeof(bed.nic));
	bed.nic.room = UINT32_MAX;
	sched_nolock_conf_pfifo_fast(&conf);
	conf.n_workers = 4;
	conf.priority_offset = bed.priority_offset;
	conf.class_offset = bed.class_offset;
	conf.tx = nic_tx;
	conf.tx_arg = &bed.nic;
	conf.drop = nic_drop;
	conf.drop_arg = &bed.nic;
	conf.rcu = bed.rcu;
	return conf;
}

static inline struct rte_mbuf *
bed_packet(uint32_t id, uint32_t priority, uint32_t len)
{
	static const uint8_t bytes[2048];
	struct rte_mbuf *m = test_frame(bed.pool, bytes, len, 0);

	*id_of(m) = id;
	*RTE_MBUF_DYNFIELD(m, bed.priority_offset, uint32_t *) = priority;
	*RTE_MBUF_DYNFIELD(m, bed.class_offset, uint16_t *) = 0;
	return m;
}

/* Offers packets id .. id + n - 1, length 60 + id % 100, and frees what was not taken. */
static inline unsigned int
bed_send(unsigned int worker, uint32_t id, unsigned int n, uint32_t priority)
{
	struct rte_mbuf *pkts[512];
	uint16_t took;
	unsigned int i;

	for (i = 0; i < n; i++)
		pkts[i] = bed_packet(id + i, priority, 60 + (id + i) % 100);
	took = sched_nolock_enqueue(bed.sched, worker, pkts, (uint16_t)n);
	rte_pktmbuf_free_bulk(pkts + took, n - took);
	return took;
}

/* Rule B7, at rest. */
static inline bool
bed_balanced(void)
{
	struct sched_nolock_stats st;

	sched_nolock_stats(bed.sched, &st);
	return st.enqueued == st.bypassed + st.dequeued + st.dropped + st.queued + st.held &&
		st.enqueued_bytes ==
		st.bypassed_bytes + st.dequeued_bytes + st.dropped_bytes + st.queued_bytes +
			st.held_bytes;
}

#endif /* TEST_SCHED_NOLOCK_NIC_H */
