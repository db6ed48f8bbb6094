/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "app.h"
#include "port_esp.h"

#define SECURITY_BOTH(info) \
	(((info)->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SECURITY) != 0 && \
		((info)->tx_offload_capa & RTE_ETH_TX_OFFLOAD_SECURITY) != 0)

bool
port_esp_wanted(const struct app *a, const struct port *port)
{
	return a->opt.ipsec_offload != IPSEC_CACHE_OFFLOAD_OFF && SECURITY_BOTH(&port->info);
}

void
port_esp_up(struct app *a, const struct port *port)
{
	struct ipsec_cache_dev dev = {
		.ifindex = port->ifindex, .port_id = port->id, .name = port->name
	};
	int ret;

	if (!port->security || a->ipsec == NULL)
		return;
	ret = ipsec_cache_dev_add(a->ipsec, &dev);
	if (ret != 0 && ret != -EEXIST)
		fprintf(stderr, "millrace: port %u (%s): its ESP offload cannot be used: %s\n",
			port->id, port->name, strerror(-ret));
}

void
port_esp_gone(struct app *a, const struct port *port)
{
	if (a->ipsec != NULL && port->used)
		ipsec_cache_dev_gone(a->ipsec, port->ifindex);
}

void
port_esp_stopped(struct app *a, const struct port *port)
{
	if (a->ipsec != NULL && port->used)
		ipsec_cache_dev_stopped(a->ipsec, port->ifindex);
}

void
port_esp_event(struct app *a, const void *desc)
{
	const struct rte_eth_event_ipsec_desc *event = desc;

	if (event != NULL && a->ipsec != NULL)
		ipsec_cache_dev_event(a->ipsec, event->subtype, event->metadata);
}

/* --- rounds --- */

enum stage {
	STAGE_BANDS, /* packets from before the mark are in them */
	STAGE_RING, /* or may be in the driver's ring */
	STAGE_DONE,
};

/* No worker sends by it, so that the driver may be asked by another thread. */
static bool
ring_is_empty(const struct port *port, uint16_t queue)
{
	for (uint16_t i = 0; i < port->n_txd; i++) {
		if (rte_eth_tx_descriptor_status(port->id, queue, i) != RTE_ETH_TX_DESC_DONE)
			return false;
	}
	return true;
}

/*
 * The ring has let go of what it had when the bands were beyond the mark: by count, by the driver's
 * word, or by time. Each packet takes a descriptor, so n_txd later ones have taken theirs over
 * (what was counted before was given before: sched_nolock_passed() is an owner between). With its
 * link up a NIC sends what it has: 4096 frames of 9 KB take 0.3 s at 1 Gb/s, the slowest that any
 * with rte_security is.
 */
static bool
ring_let_go(const struct app *a, const struct port *port, struct port_txq *txq, uint64_t now)
{
	uint64_t handed = atomic_load_explicit(&txq->handed, memory_order_relaxed);

	if (handed - txq->ring_handed >= port->n_txd)
		return true;
	if ((!a->forwarding || !port_is_up(port)) && ring_is_empty(port, txq->queue))
		return true;
	if (!port->carrier)
		txq->ring_since = now;
	return now - txq->ring_since >= rte_get_timer_hz();
}

static bool
queue_is_done(const struct app *a, struct port *port, uint16_t q, uint64_t now)
{
	struct port_txq *txq = &port->txq[q];

	if (!port->started)
		return true; /* a driver that stops gives all back; and the bands are empty */
	if (txq->stage == STAGE_BANDS && sched_nolock_passed(port->sched[q])) {
		txq->ring_handed = atomic_load_explicit(&txq->handed, memory_order_relaxed);
		txq->ring_since = now;
		txq->stage = STAGE_RING;
	}
	if (txq->stage == STAGE_RING && ring_let_go(a, port, txq, now))
		txq->stage = STAGE_DONE;
	return txq->stage == STAGE_DONE;
}

static void
round_begin(struct port *port)
{
	for (uint16_t q = 0; q < port->n_txq; q++) {
		sched_nolock_mark(port->sched[q]);
		port->txq[q].stage = STAGE_BANDS;
	}
	port->round_begun = true;
	port->rounds_asked = false;
}

static void
round_look(const struct app *a, struct port *port, uint64_t now)
{
	bool done = true;

	for (uint16_t q = 0; q < port->n_txq; q++)
		done &= queue_is_done(a, port, q, now);
	if (!done)
		return;
	port->rounds++;
	port->round_begun = false;
}

/* Not in port_esp_rounds(): that is called from within grace periods, which a mark may wait for. */
void
ports_esp_rounds(struct app *a)
{
	uint64_t now = rte_get_timer_cycles();

	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		struct port *port = port_get(a, i);

		if (port == NULL || (!port->rounds_asked && !port->round_begun))
			continue;
		if (!port->round_begun)
			round_begin(port);
		round_look(a, port, now);
	}
}

uint64_t
port_esp_rounds(void *arg, uint32_t ifindex)
{
	struct port *port = port_by_ifindex(arg, ifindex);

	if (port == NULL)
		return 0; /* its sessions went when it was stopped */
	port->rounds_asked = true;
	return port->rounds;
}
