/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "app.h"
#include "forward/forward.h"
#include "lcore.h"
#include "pipeline.h"

#define DRAIN_MS 100

static RTE_DEFINE_PER_LCORE(struct drop_counters *, own_drops);

struct drop_counters *
drops_self(struct app *a)
{
	struct drop_counters *own = RTE_PER_LCORE(own_drops);

	return own != NULL ? own : &a->control_drops;
}

/* The CPU is others' for a while. Nobody's grace period waits for a worker that sleeps. */
static void
worker_sleep(const struct worker *w)
{
	struct timespec t = { .tv_nsec = w->idle_sleep * 1000L };

	rte_rcu_qsbr_thread_offline(w->app->qsbr, w->id);
	nanosleep(&t, NULL);
	rte_rcu_qsbr_thread_online(w->app->qsbr, w->id);
}

/* Nothing waits in the Tx queues that the worker drains. */
static bool
worker_has_sent(const struct worker *w)
{
	for (unsigned int i = 0; i < w->n_serves; i++) {
		if (!sched_nolock_empty(w->serves[i]))
			return false;
	}
	return true;
}

unsigned int
worker_round(struct worker *w)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < w->n_streams; i++)
		n += pipeline_poll(w, w->streams[i]);
	if (w->mode->turn != NULL)
		n += w->mode->turn(w);
	for (unsigned int i = 0; i < w->n_serves; i++)
		n += sched_nolock_drain(w->serves[i], w->id);
	rte_rcu_qsbr_quiescent(w->app->qsbr, w->id);
	return n;
}

static int
worker_main(void *arg)
{
	struct worker *w = arg;
	struct rte_rcu_qsbr *qsbr = w->app->qsbr;

	RTE_PER_LCORE(own_drops) = &w->drops;
	rte_rcu_qsbr_thread_online(qsbr, w->id);
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		unsigned int n = worker_round(w);

		if (unlikely(w->idle_sleep != 0) && n == 0 && worker_has_sent(w))
			worker_sleep(w);
	}
	rte_rcu_qsbr_thread_offline(qsbr, w->id);
	return 0;
}

int
workers_create(struct app *a)
{
	unsigned int lcore, id = 0;

	a->n_workers = rte_lcore_count() - 1;
	if (a->n_workers == 0) {
		fprintf(stderr,
			"millrace: no lcore is left to forward with: the main lcore never polls; "
			"give EAL two or more, for example --lcores 0@0,1@0\n");
		return -1;
	}
	a->workers =
		rte_zmalloc("workers", a->n_workers * sizeof(*a->workers), RTE_CACHE_LINE_SIZE);
	if (a->workers == NULL) {
		fprintf(stderr, "millrace: no memory for %u workers\n", a->n_workers);
		return -1;
	}
	RTE_LCORE_FOREACH_WORKER (lcore) {
		struct worker *w = &a->workers[id];

		w->app = a;
		w->id = id++;
		w->lcore = lcore;
		w->meta_offset = a->meta_offset;
		w->classifier.worker = w->id;
		w->classifier.meta_offset = a->meta_offset;
		w->classifier.mirror = pipeline_mirror;
		w->classifier.mirror_arg = w;
		rte_rcu_qsbr_thread_register(a->qsbr, w->id);
	}
	return 0;
}

bool
worker_has_lcore(const struct app *a, unsigned int lcore)
{
	for (unsigned int i = 0; i < a->n_workers; i++) {
		if (a->workers[i].lcore == lcore)
			return true;
	}
	return false;
}

/* A worker is its counters and its RCU slot; which lcore runs it may change between runs. */
void
workers_order(struct app *a, const unsigned int *lcores, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		unsigned int k = i;

		while (a->workers[k].lcore != lcores[i])
			k++;
		a->workers[k].lcore = a->workers[i].lcore;
		a->workers[i].lcore = lcores[i];
	}
	a->opt.nb_cores = n;
}

static void
deal_free(struct app *a)
{
	rte_free(a->deal.streams);
	free(a->deal.by_worker);
	free(a->deal.serves);
	a->deal = (struct deal){ 0 };
}

void
workers_destroy(struct app *a)
{
	for (unsigned int i = 0; i < a->n_workers; i++)
		rte_rcu_qsbr_thread_unregister(a->qsbr, i);
	rte_free(a->workers);
	a->workers = NULL;
	a->n_workers = 0;
	deal_free(a);
}

/* testpmd's fwd_topology_tx_port_get(). */
static unsigned int
topology_peer(enum port_topology topology, unsigned int i, unsigned int n)
{
	switch (topology) {
	case TOPOLOGY_CHAINED:
		return (i + 1) % n;
	case TOPOLOGY_LOOP:
		return i;
	case TOPOLOGY_PAIRED:
		break;
	}
	return (i ^ 1) < n ? i ^ 1 : i; /* an odd last port pairs with itself */
}

/* Ports that forward, in the order asked for. */
static unsigned int
forwarding_ports(struct app *a, struct port **ports, const char **why)
{
	unsigned int n = 0;

	*why = NULL;
	for (unsigned int i = 0; i < a->opt.n_portlist; i++) {
		ports[n] = port_get(a, a->opt.portlist[i]);
		if (ports[n++] == NULL) {
			*why = "the port list names a port that does not exist";
			return 0;
		}
	}
	for (unsigned int i = 0; a->opt.n_portlist == 0 && i < RTE_MAX_ETHPORTS; i++) {
		if ((ports[n] = port_get(a, i)) != NULL)
			n++;
	}
	if (n == 0)
		*why = "there is no port to forward with";
	return n;
}

/* testpmd's order: all ports' queue 0, then all ports' queue 1, ... */
static void
fill_streams(struct app *a, struct port **ports, unsigned int n_ports)
{
	unsigned int n = 0;

	for (uint16_t q = 0; n < a->deal.n_streams; q++) {
		for (unsigned int p = 0; p < n_ports; p++) {
			struct stream *s;

			if (q >= ports[p]->n_rxq)
				continue;
			s = &a->deal.streams[n++];
			s->rx_port = ports[p];
			s->rx_queue = q;
			s->tx_port = ports[topology_peer(a->opt.topology, p, n_ports)];
			s->tx_queue = q % s->tx_port->n_txq;
		}
	}
}

/* testpmd's: the later workers take what does not divide. */
static unsigned int
deal_streams(struct app *a)
{
	unsigned int lcores = RTE_MIN(a->opt.nb_cores, a->n_workers), next = 0;

	lcores = RTE_MIN(lcores, a->deal.n_streams);
	for (unsigned int i = 0; i < a->n_workers; i++) {
		struct worker *w = &a->workers[i];

		w->streams = &a->deal.by_worker[next];
		w->n_streams = 0;
		w->n_serves = 0;
		if (i >= lcores)
			continue;
		w->n_streams = a->deal.n_streams / lcores;
		if (i >= lcores - a->deal.n_streams % lcores)
			w->n_streams++;
		for (unsigned int k = 0; k < w->n_streams; k++, next++)
			a->deal.by_worker[next] = &a->deal.streams[next];
	}
	return lcores;
}

static bool
worker_sends_to(const struct worker *w, const struct port *port, uint16_t queue)
{
	for (unsigned int i = 0; i < w->n_streams; i++) {
		if (w->streams[i]->tx_port == port && w->streams[i]->tx_queue == queue)
			return true;
	}
	return false;
}

/* The worker that drains a queue: the first that sends to it, if any does. *n_senders counts those.
 */
static unsigned int
queue_owner(struct app *a, unsigned int lcores, const struct port *port, uint16_t queue,
	unsigned int *n_senders)
{
	unsigned int owner = queue % lcores;

	*n_senders = 0;
	for (unsigned int i = 0; i < lcores; i++) {
		if (worker_sends_to(&a->workers[i], port, queue) && (*n_senders)++ == 0)
			owner = i;
	}
	return owner;
}

static void
deal_queues(struct app *a, unsigned int lcores)
{
	struct sched_nolock **next = a->deal.serves;

	for (unsigned int i = 0; i < lcores; i++) {
		struct worker *w = &a->workers[i];

		w->serves = next;
		for (unsigned int id = 0; id < RTE_MAX_ETHPORTS; id++) {
			struct port *port = port_get(a, id);

			for (uint16_t q = 0; port != NULL && q < port->n_txq; q++) {
				unsigned int senders;

				if (queue_owner(a, lcores, port, q, &senders) != i)
					continue;
				*next++ = port->sched[q];
				/* Redirects of other workers still may come in: they wait for this
				 * one. */
				sched_nolock_set_exclusive(
					port->sched[q], senders <= 1 ? (int)i : -1);
			}
		}
		w->n_serves = (unsigned int)(next - w->serves);
	}
}

static void
each_queue(struct app *a, void (*fn)(struct sched_nolock *sched))
{
	for (unsigned int id = 0; id < RTE_MAX_ETHPORTS; id++) {
		struct port *port = port_get(a, id);

		for (uint16_t q = 0; port != NULL && q < port->n_txq; q++)
			fn(port->sched[q]);
	}
}

/* Workers are gone: whoever drains next is the control thread, in the name of the first. */
static void
queue_share(struct sched_nolock *sched)
{
	sched_nolock_set_exclusive(sched, -1);
}

static void
queue_drain(struct sched_nolock *sched)
{
	sched_nolock_drain(sched, 0);
}

const char *
streams_setup(struct app *a)
{
	struct port *ports[RTE_MAX_ETHPORTS];
	unsigned int n_ports, n_txq = 0, lcores;
	const char *why;

	if ((n_ports = forwarding_ports(a, ports, &why)) == 0)
		return why;
	deal_free(a);
	for (unsigned int p = 0; p < n_ports; p++)
		a->deal.n_streams += ports[p]->n_rxq;
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++)
		n_txq += port_get(a, i) != NULL ? a->ports[i].n_txq : 0;
	a->deal.streams = rte_zmalloc(
		"streams", a->deal.n_streams * sizeof(*a->deal.streams), RTE_CACHE_LINE_SIZE);
	a->deal.by_worker = calloc(a->deal.n_streams, sizeof(struct stream *));
	a->deal.serves = calloc(n_txq, sizeof(struct sched_nolock *));
	if (a->deal.streams == NULL || a->deal.by_worker == NULL || a->deal.serves == NULL) {
		deal_free(a);
		return "out of memory for the streams";
	}
	fill_streams(a, ports, n_ports);
	lcores = deal_streams(a);
	deal_queues(a, lcores);
	return NULL;
}

struct stream *
streams_get(const struct app *a, unsigned int *n)
{
	*n = a->deal.n_streams;
	return a->deal.streams;
}

const struct stream *
stream_of(const struct app *a, const struct port *port)
{
	for (unsigned int i = 0; i < a->deal.n_streams; i++) {
		if (a->deal.streams[i].rx_port == port)
			return &a->deal.streams[i];
	}
	return NULL;
}

/* No worker runs yet: the control thread may act as each of them. */
static void
send_first(struct worker *w, unsigned int bursts)
{
	struct forward_mode *txonly = forward_find("txonly");

	for (unsigned int i = 0; i < w->n_streams; i++) {
		for (unsigned int k = 0; k < bursts; k++)
			txonly->generate(w, w->streams[i]);
	}
}

const char *
forwarding_start(struct app *a, unsigned int tx_first)
{
	const char *why;

	if (a->forwarding)
		return "packet forwarding is already started";
	if ((why = streams_setup(a)) != NULL)
		return why;
	ipsec_cache_rehome(a->ipsec);
	for (unsigned int i = 0; i < a->n_workers; i++) {
		struct worker *w = &a->workers[i];

		if (w->n_streams == 0)
			continue;
		w->burst = a->opt.burst;
		w->idle_sleep = (uint16_t)a->opt.idle_sleep;
		w->mode = a->mode;
		w->ipsec = ipsec_cache_worker(a->ipsec, w->id);
		w->record_cycles = a->opt.record_core_cycles;
		w->record_bursts = a->opt.record_burst_stats;
		send_first(w, tx_first);
		atomic_store_explicit(&w->stop, false, memory_order_relaxed);
		/* Launching orders all of the above before the worker's loads. */
		w->running = rte_eal_remote_launch(worker_main, w, w->lcore) == 0;
	}
	a->forwarding = a->ever_forwarded = true;
	return NULL;
}

/* No worker runs: the control thread drains for them, as long as the drivers make progress. */
static void
drain_all(struct app *a)
{
	uint64_t end = rte_get_timer_cycles() + rte_get_timer_hz() * DRAIN_MS / 1000;

	while (!queues_empty(a) && rte_get_timer_cycles() < end)
		each_queue(a, queue_drain);
	if (!queues_empty(a))
		each_queue(a, sched_nolock_flush);
}

/* No worker runs: what crypto devices have comes back to the control thread, which goes on for
 * them.
 */
static bool
turn_for(struct worker *w)
{
	if (w->n_streams == 0 || w->mode->busy == NULL || !w->mode->busy(w))
		return false;
	w->mode->turn(w);
	return true;
}

static void
turn_all(struct app *a)
{
	uint64_t end = rte_get_timer_cycles() + rte_get_timer_hz() * DRAIN_MS / 1000;
	bool busy;

	do {
		busy = false;
		for (unsigned int i = 0; i < a->n_workers; i++)
			busy |= turn_for(&a->workers[i]);
	} while (busy && rte_get_timer_cycles() < end);
}

bool
forwarding_pause(struct app *a)
{
	if (!a->forwarding)
		return false;
	for (unsigned int i = 0; i < a->n_workers; i++)
		atomic_store_explicit(&a->workers[i].stop, true, memory_order_relaxed);
	for (unsigned int i = 0; i < a->n_workers; i++) {
		if (a->workers[i].running)
			rte_eal_wait_lcore(a->workers[i].lcore);
		a->workers[i].running = false;
	}
	a->forwarding = false;
	each_queue(a, queue_share);
	turn_all(a);
	return true;
}

void
forwarding_resume(struct app *a)
{
	const char *why = forwarding_start(a, 0);

	if (why != NULL)
		fprintf(stderr, "millrace: forwarding stopped: %s\n", why);
}

void
forwarding_stop(struct app *a)
{
	if (forwarding_pause(a))
		drain_all(a);
}

static void
drops_add(const struct drop_counters *c, uint64_t packets[DROP_MAX], uint64_t bytes[DROP_MAX])
{
	for (unsigned int r = 0; r < DROP_MAX; r++) {
		packets[r] += atomic_load_explicit(&c->packets[r], memory_order_relaxed);
		bytes[r] += atomic_load_explicit(&c->bytes[r], memory_order_relaxed);
	}
}

void
drops_sum(const struct app *a, uint64_t packets[DROP_MAX], uint64_t bytes[DROP_MAX])
{
	for (unsigned int r = 0; r < DROP_MAX; r++)
		packets[r] = bytes[r] = 0;
	drops_add(&a->control_drops, packets, bytes);
	for (unsigned int i = 0; i < a->n_workers; i++)
		drops_add(&a->workers[i].drops, packets, bytes);
}

void
tx_sum(const struct app *a, const struct port *port, uint64_t *packets, uint64_t *dropped)
{
	*packets = *dropped = 0;
	for (unsigned int i = 0; i < a->n_workers; i++) {
		const struct worker_tx *tx = &a->workers[i].tx[port->id];

		*packets += atomic_load_explicit(&tx->packets, memory_order_relaxed);
		*dropped += atomic_load_explicit(&tx->dropped, memory_order_relaxed);
	}
}

bool
queues_empty(const struct app *a)
{
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		const struct port *port = &a->ports[i];

		for (uint16_t q = 0; port->used && q < port->n_txq; q++) {
			if (!sched_nolock_empty(port->sched[q]))
				return false;
		}
	}
	return true;
}
