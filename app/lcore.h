/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_LCORE_H
#define APP_LCORE_H

/*
 * Which lcore polls which queue; launch and stop; the poll loop. The main lcore never polls.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_config.h>

#include "classifier/classifier.h"
#include "drop.h"
#include "forward/forward.h"
#include "packet/packet.h"

struct app;
struct forward_mode;
struct ipsec_cache_worker;
struct port;

/* One Rx queue and where its packets go. Its worker counts, others read. */
struct stream {
	struct port *rx_port, *tx_port;
	uint16_t rx_queue, tx_queue;
	uint32_t flow; /* generating modes: the next one */
	_Atomic uint64_t rx_packets;
	_Atomic uint64_t cycles; /* --record-core-cycles: TSC cycles of polls that found packets */
	_Atomic uint64_t bursts[FORWARD_BURST_MAX + 1]; /* --record-burst-stats: by size */
} __rte_cache_aligned;

/* What one worker sent to one port. */
struct worker_tx {
	_Atomic uint64_t packets; /* taken by the port's scheduler */
	_Atomic uint64_t dropped; /* refused by it */
};

/* A forwarding lcore. The control thread fills it while it is stopped. */
struct worker {
	struct app *app;
	unsigned int id; /* 0 .. n_workers - 1 */
	unsigned int lcore;
	uint16_t burst;
	bool record_cycles, record_bursts;
	uint16_t idle_sleep; /* us; 0: a round that found nothing is followed by the next */
	bool running; /* control thread: launched and not joined */
	int meta_offset;
	const struct forward_mode *mode;
	struct stream **streams;
	unsigned int n_streams;
	struct sched_nolock **serves; /* Tx queues this lcore drains */
	unsigned int n_serves;
	struct classifier_worker classifier;
	struct ipsec_cache_worker *ipsec;
	unsigned int nesting; /* redirects under way: how deep this packet has come */
	/* The control thread sets, the worker reads every loop. */
	_Atomic bool stop __rte_cache_aligned;
	/* The worker counts. */
	struct drop_counters drops;
	struct worker_tx tx[RTE_MAX_ETHPORTS];
} __rte_cache_aligned;

/* Adds to a counter that only the caller writes; readers want no more than a value that is whole.
 */
static inline void
count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

/* Who polls and drains what: dealt out by streams_setup(), freed when dealt again. Control thread.
 */
struct deal {
	struct stream *streams;
	unsigned int n_streams;
	struct stream **by_worker; /* n_streams of them: a run for each worker */
	struct sched_nolock **serves; /* every Tx queue: a run for each worker */
};

/* Makes a struct worker for each of EAL's worker lcores. 0 or -1 after a sentence on stderr. */
int workers_create(struct app *app);
void workers_destroy(struct app *app);

/*
 * One round of a worker: polls its streams, goes on with what others gave it, drains its Tx queues,
 * reports quiescence. Returns how many packets that were: 0, it found nothing. On its lcore; or by
 * the control thread in its place, as a test does.
 */
unsigned int worker_round(struct worker *worker);

/* True if a worker runs on that lcore. */
bool worker_has_lcore(const struct app *app, unsigned int lcore);
/* `set corelist`: forward with these n lcores, in this order. While stopped. */
void workers_order(struct app *app, const unsigned int *lcores, unsigned int n);

/*
 * Deals the streams out to min(--nb-cores, lcores) workers and launches them; idle lcores stay
 * asleep. Before that each stream sends tx_first bursts as mode txonly would. NULL, or why not.
 */
const char *forwarding_start(struct app *app, unsigned int tx_first);
/* Stops polling, drains the Tx queues as far as the drivers take packets, waits for the workers. */
void forwarding_stop(struct app *app);

/*
 * Takes the workers off every port for a moment, without a word, and back with streams dealt anew:
 * around a change of ports. Pause returns whether there is anything to resume.
 */
bool forwarding_pause(struct app *app);
void forwarding_resume(struct app *app);

/* Streams of the current or last run, dealt out again by the next start. */
struct stream *streams_get(const struct app *app, unsigned int *n);
/* Puts together the streams for the current options, without launching: for `show config fwd`. */
const char *streams_setup(struct app *app);
/* The stream that a packet takes which tc put into the ingress of `port`; NULL if nothing polls it.
 */
const struct stream *stream_of(const struct app *app, const struct port *port);
/* Where the calling thread counts its drops. */
struct drop_counters *drops_self(struct app *app);
/* Sums over workers and the control thread, since the program began. */
void drops_sum(const struct app *app, uint64_t packets[DROP_MAX], uint64_t bytes[DROP_MAX]);
void tx_sum(const struct app *app, const struct port *port, uint64_t *packets, uint64_t *dropped);
/* True if no scheduler holds a packet. */
bool queues_empty(const struct app *app);

#endif /* APP_LCORE_H */
