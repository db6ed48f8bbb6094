/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_POLICE_H
#define CLASSIFIER_POLICE_H

/*
 * The policer: packets within a rate get one verdict, those beyond it another. Linux behaviour:
 * net/sched/act_police.c. One token bucket for all workers, without a lock: a bucket is the time at
 * which it was, or would have been, empty, changed by one compare-and-swap for a whole vector.
 * rte_meter has the same arithmetic but for one thread only.
 */

#include "action/action.h"

/* 0 stands for "none" in each. */
struct police_conf {
	uint64_t rate; /* bytes a second */
	uint64_t burst_ns; /* how long `rate` takes for the burst (PSCHED_TICKS2NS(tc_police.burst))
			    */
	uint64_t peakrate; /* bytes a second, with a burst of one mtu */
	uint64_t pkt_rate; /* packets a second */
	uint64_t pkt_burst_ns;
	uint32_t mtu; /* bytes; larger packets exceed */
	int32_t conform; /* TCA_POLICE_RESULT: the verdict within the rate */
};

/* A bucket: tokens are time, so that they come by themselves. */
struct police_bucket {
	_Atomic uint64_t empty; /* TSC at which it was or will be empty */
	uint64_t burst; /* in cycles; 0: no such bucket */
	uint64_t scale; /* cycles a unit, in 2^-20 */
};

struct police_params {
	struct action_params base; /* verdict: beyond the rate */
	struct police_conf conf;
	struct police_bucket bytes, peak, packets; /* `empty` changes under traffic */
};

/* TCA_ID_POLICE, kind "police". */
extern const struct action_ops police_action_ops;

/*
 * NULL and rte_errno: EINVAL (peakrate without rate or mtu, a rate without a burst),
 * ENOMEM. As in Linux the buckets of bytes begin full, that of packets with nothing in it.
 */
struct action_params *police_params_create(int32_t exceed, const struct police_conf *conf);

#endif /* CLASSIFIER_POLICE_H */
