/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PORT_H
#define APP_PORT_H

/*
 * Ports: configured from the options, known to tc and ip by a name and an ifindex (port + 1 for
 * those there from the start; never one that was used before). The control thread owns every field;
 * a comment says which ones workers read.
 */

#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#include "classifier/classifier.h"
#include "netlink/netlink.h"
#include "options.h"
#include "sched_nolock/sched_nolock.h"

#define PORT_TXQ_MAX 64

struct app;

/* A Tx queue: where the scheduler's packets go. */
struct port_txq {
	uint16_t port;
	uint16_t queue;
	/* Where ESP is left to the NIC. The owner of its scheduler writes, the control thread
	 * reads. */
	_Atomic uint64_t handed; /* packets that the driver has taken */
	/* The control thread's (port_esp.c). */
	uint8_t stage; /* of the round */
	uint64_t ring_handed, ring_since; /* when the bands were beyond the mark: handed, TSC */
};

struct port {
	/* Workers read these. */
	_Atomic bool up; /* administratively; down drops both ways */
	struct classifier_hook ingress, egress;
	struct classifier_hook root[PORT_TXQ_MAX]; /* filters of prio on a queue: choose the band */
	_Atomic uint64_t mac; /* its address as the first 48 bits of a frame are loaded */
	uint64_t csum_offloads; /* RTE_ETH_TX_OFFLOAD_*_CKSUM in use */
	uint16_t id;
	uint32_t ifindex;
	uint16_t n_txq;
	struct rte_mempool *pool; /* mbufs of its socket */
	struct sched_nolock *sched[PORT_TXQ_MAX]; /* while up and started they do not change */

	/* Control thread only. */
	bool used;
	bool started; /* rte_eth_dev_start() */
	_Atomic bool removed; /* the driver's thread says that the device is gone */
	_Atomic bool reset; /* ... that it has to be reset */
	bool security; /* RTE_ETH_[RT]X_OFFLOAD_SECURITY are in use */
	uint64_t rounds; /* see port_esp_rounds() */
	bool rounds_asked, round_begun;
	bool carrier;
	uint32_t carrier_changes;
	uint16_t n_rxq, n_rxd, n_txd;
	uint32_t txqueuelen;
	char name[IF_NAMESIZE];
	char alias[NETLINK_ALIAS_MAX];
	struct port_txq txq[PORT_TXQ_MAX];
	struct rte_eth_dev_info info;
	struct rte_eth_stats base; /* what `clear port stats` subtracts */
} __rte_cache_aligned;

static inline bool
port_is_up(const struct port *port)
{
	return atomic_load_explicit(&port->up, memory_order_relaxed);
}

/* NULL if a port may be called that, else what is wrong (Linux's dev_valid_name()). */
const char *port_name_check(const char *name);

/* Configures and starts every port that EAL found. 0, or -1 after one sentence on stderr. */
int ports_open(struct app *app);
/*
 * Opens one more, which EAL has just found. 0, or -1 after one sentence on stderr. Its packets are
 * polled from the next start on.
 */
int port_open(struct app *app, uint16_t id);
/*
 * Closes one: its qdiscs, filters and what it holds go. No worker may know it any more (forwarding
 * stopped or paused).
 */
void port_close(struct app *app, struct port *port);
/* Drops what their schedulers hold, stops and closes them. */
void ports_close(struct app *app);

struct port *port_by_name(struct app *app, const char *name);
struct port *port_by_ifindex(struct app *app, uint32_t ifindex);
/* NULL unless that port is in use. */
struct port *port_get(struct app *app, unsigned int id);

/* `ip link set up|down`: down drops what is queued, and every packet from and to the port. */
void port_set_up(struct app *app, struct port *port, bool up);
/* Statistics since the last clear. */
int port_stats(const struct port *port, struct rte_eth_stats *stats);
/* Closes the ports whose devices were pulled out, and resets those that ask for it, under traffic.
 */
void ports_poll_events(struct app *app);
/* Asks the drivers for link states; returns how many changed and tells the control clients. */
unsigned int ports_poll_links(struct app *app);

/* The devices as the control server sees them. */
extern const struct netlink_dev_ops port_dev_ops;

#endif /* APP_PORT_H */
