/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "classifier/police.h"
#include "packet/packet.h"

#define SCALE_BITS 20 /* a clock of 16 THz would overflow */

static uint64_t
popcount(uint64_t mask)
{
	return (uint64_t)__builtin_popcountll(mask);
}

/* Cycles that so many units cost, rounded up. */
static uint64_t
cost(const struct police_bucket *bucket, uint64_t units)
{
	unsigned __int128 scaled = (unsigned __int128)units * bucket->scale;

	return (uint64_t)((scaled + (1u << SCALE_BITS) - 1) >> SCALE_BITS);
}

/* Units to take for a packet. */
static uint64_t
units_of(const struct rte_mbuf *m, bool packets)
{
	return packets ? 1 : m->pkt_len;
}

/*
 * The packets of mask, in order, that the bucket has tokens for; takes these. What was taken adds
 * up before it is turned into time, so that rounding costs one cycle a vector.
 */
static uint64_t
take(struct police_bucket *bucket, struct rte_mbuf *const *pkts, uint64_t mask, bool packets)
{
	uint64_t now = rte_rdtsc(), conform, start, taken, spent;
	/* Relaxed, here and below: the number is all there is, nothing else is read by it. */
	uint64_t empty = atomic_load_explicit(&bucket->empty, memory_order_relaxed);
	unsigned int i;

	do {
		/* Another worker's clock may be a little ahead: then there is nothing to take. */
		start = (int64_t)(now - empty) > (int64_t)bucket->burst ? now - bucket->burst
									: empty;
		conform = taken = spent = 0;
		packet_mask_for_each (i, mask) {
			uint64_t more = cost(bucket, taken + units_of(pkts[i], packets));

			if ((int64_t)(now - start - more) < 0)
				continue;
			taken += units_of(pkts[i], packets);
			spent = more;
			conform |= UINT64_C(1) << i;
		}
		if (conform == 0)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		&bucket->empty, &empty, start + spent, memory_order_relaxed, memory_order_relaxed));
	return conform;
}

/* The packets of mask that are small enough. */
static uint64_t
within_mtu(struct rte_mbuf *const *pkts, uint64_t mask, uint32_t mtu)
{
	uint64_t fit = 0;
	unsigned int i;

	packet_mask_for_each (i, mask)
		fit |= (uint64_t)(pkts[i]->pkt_len <= mtu) << i;
	return fit;
}

/* What packets took that another bucket then refused. */
static void
give_back(struct police_bucket *bucket, struct rte_mbuf *const *pkts, uint64_t mask, bool packets)
{
	uint64_t units = 0;
	unsigned int i;

	packet_mask_for_each (i, mask)
		units += units_of(pkts[i], packets);
	if (units != 0)
		atomic_fetch_sub_explicit(
			&bucket->empty, cost(bucket, units), memory_order_relaxed);
}

/* As Linux, a packet takes from all buckets or from none. */
static uint64_t
conforming(struct police_params *police, struct rte_mbuf *const *pkts, uint64_t mask)
{
	uint64_t by_bytes, by_peak, all;

	if (police->conf.mtu != 0)
		mask = within_mtu(pkts, mask, police->conf.mtu);
	by_bytes = police->bytes.burst != 0 && mask != 0 ? take(&police->bytes, pkts, mask, false)
							 : mask;
	by_peak = police->peak.burst != 0 && by_bytes != 0
		? take(&police->peak, pkts, by_bytes, false)
		: by_bytes;
	all = police->packets.burst != 0 && by_peak != 0
		? take(&police->packets, pkts, by_peak, true)
		: by_peak;
	if (police->bytes.burst != 0)
		give_back(&police->bytes, pkts, by_bytes & ~all, false);
	if (police->peak.burst != 0)
		give_back(&police->peak, pkts, by_peak & ~all, false);
	return all;
}

static int32_t
police_run(const struct action *action, const struct action_params *params,
	struct action_burst *burst, uint64_t mask, uint64_t *drops, uint64_t *overlimits)
{
	/* The buckets are the part of the snapshot that is meant to change. */
	struct police_params *police = (struct police_params *)(uintptr_t)params;
	uint64_t conform = conforming(police, burst->pkts, mask), exceed = mask & ~conform;
	unsigned int i;

	(void)action;
	*overlimits += popcount(exceed);
	*drops += police->conf.conform == TC_ACT_SHOT ? popcount(conform) : 0;
	*drops += params->verdict == TC_ACT_SHOT ? popcount(exceed) : 0;
	if (exceed == 0 || conform == 0)
		return exceed == 0 ? police->conf.conform : params->verdict;
	packet_mask_for_each (i, mask)
		burst->verdict[i] =
			(conform >> i & 1) != 0 ? police->conf.conform : params->verdict;
	return ACTION_MIXED;
}

const struct action_ops police_action_ops = {
	.kind = "police",
	.id = TCA_ID_POLICE,
	.run = police_run,
	.params_size = sizeof(struct police_params),
	.params_change = true,
};

static uint64_t
cycles_of_ns(uint64_t ns)
{
	unsigned __int128 cycles = (unsigned __int128)ns * rte_get_tsc_hz() / NS_PER_S;

	return cycles > INT64_MAX / 2 ? INT64_MAX / 2 : (uint64_t)cycles;
}

/* Full, or with nothing in it. */
static void
bucket_init(struct police_bucket *bucket, uint64_t rate, uint64_t burst, bool full)
{
	bucket->scale = (rte_get_tsc_hz() << SCALE_BITS) / rate;
	bucket->burst = burst != 0 ? burst : 1;
	atomic_init(&bucket->empty, rte_rdtsc() - (full ? bucket->burst : 0));
}

static bool
conf_valid(const struct police_conf *conf)
{
	if (conf->peakrate != 0 && (conf->rate == 0 || conf->mtu == 0))
		return false;
	return (conf->rate == 0 || conf->burst_ns != 0) &&
		(conf->pkt_rate == 0 || conf->pkt_burst_ns != 0);
}

struct action_params *
police_params_create(int32_t exceed, const struct police_conf *conf)
{
	struct police_params *police;

	if (!conf_valid(conf)) {
		rte_errno = EINVAL;
		return NULL;
	}
	if ((police = calloc(1, sizeof(*police))) == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	police->base.verdict = exceed;
	police->conf = *conf;
	if (conf->rate != 0)
		bucket_init(&police->bytes, conf->rate, cycles_of_ns(conf->burst_ns), true);
	if (conf->pkt_rate != 0)
		bucket_init(
			&police->packets, conf->pkt_rate, cycles_of_ns(conf->pkt_burst_ns), false);
	if (conf->peakrate != 0) {
		bucket_init(&police->peak, conf->peakrate, 1, true);
		police->peak.burst = cost(&police->peak, conf->mtu);
		atomic_init(&police->peak.empty, rte_rdtsc() - police->peak.burst);
	}
	return &police->base;
}
