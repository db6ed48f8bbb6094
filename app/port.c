/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <bsd/string.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "app.h"
#include "forward/ip.h"
#include "port.h"
#include "port_esp.h"

#define CSUM_OFFLOADS \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_SCTP_CKSUM)

const char *
port_name_check(const char *name)
{
	if (name[0] == '\0' || strlen(name) >= IF_NAMESIZE)
		return "gives a name that is empty or longer than 15 characters";
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return "gives a name that no device may have";
	for (const char *p = name; *p != '\0'; p++) {
		if (*p == '/' || *p == ':' || isspace((unsigned char)*p))
			return "gives a name with '/', ':' or a space in it";
	}
	return NULL;
}

struct port *
port_get(struct app *a, unsigned int id)
{
	return id < RTE_MAX_ETHPORTS && a->ports[id].used ? &a->ports[id] : NULL;
}

struct port *
port_by_ifindex(struct app *a, uint32_t ifindex)
{
	struct port *port = &a->ports[(ifindex - 1) % RTE_MAX_ETHPORTS];

	if (likely(port->used && port->ifindex == ifindex))
		return port;
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		if (a->ports[i].used && a->ports[i].ifindex == ifindex)
			return &a->ports[i];
	}
	return NULL;
}

struct port *
port_by_name(struct app *a, const char *name)
{
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		if (a->ports[i].used && strcmp(a->ports[i].name, name) == 0)
			return &a->ports[i];
	}
	return NULL;
}

static uint16_t
port_tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	const struct port_txq *txq = arg;

	return rte_eth_tx_burst(txq->port, txq->queue, pkts, n);
}

/* A port that computes checksums, or does ESP, has its packets prepared first. */
static uint16_t
port_tx_prepared(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	struct port_txq *txq = arg;
	uint16_t ready = rte_eth_tx_prepare(txq->port, txq->queue, pkts, n);
	uint16_t sent = rte_eth_tx_burst(txq->port, txq->queue, pkts, ready);

	count(&txq->handed, sent);
	if (likely(ready == n) || sent < ready)
		return sent;
	/* pkts[ready] would be refused for ever. */
	drop(drops_self(&app), DROP_TX_INVALID, pkts + ready, 1);
	return sent + 1;
}

static void
port_flushed(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	drop(drops_self(&app), DROP_SCHED_FLUSH, pkts, n);
}

static int
socket_of(uint16_t id)
{
	int socket = rte_eth_dev_socket_id(id);

	return socket < 0 || socket >= RTE_MAX_NUMA_NODES ? 0 : socket;
}

/* One pool a socket, big enough for every ring, cache and band that can hold its mbufs. */
static struct rte_mempool *
pool_get(struct app *a, int socket)
{
	unsigned int n = a->opt.total_mbufs;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (a->pool[socket] != NULL)
		return a->pool[socket];
	if (n == 0) {
		unsigned int queue = a->opt.n_rxq * a->opt.n_rxd +
			a->opt.n_txq * (a->opt.n_txd + SCHED_NOLOCK_LIMIT_DEFAULT);

		n = rte_eth_dev_count_avail() * queue +
			rte_lcore_count() * (a->opt.mbcache + FORWARD_BURST_MAX);
		if (n < 8192)
			n = 8192;
	}
	snprintf(name, sizeof(name), "mbufs_%d", socket);
	a->pool[socket] = rte_pktmbuf_pool_create(
		name, n, a->opt.mbcache, 0, (uint16_t)a->opt.mbuf_size, socket);
	if (a->pool[socket] == NULL)
		a->pool[socket] = rte_pktmbuf_pool_create(
			name, n, a->opt.mbcache, 0, (uint16_t)a->opt.mbuf_size, SOCKET_ID_ANY);
	if (a->pool[socket] == NULL)
		fprintf(stderr,
			"millrace: no memory for %u mbufs of %u bytes (--total-num-mbufs, "
			"--mbuf-size; "
			"EAL's -m): %s\n",
			n, a->opt.mbuf_size, rte_strerror(rte_errno));
	return a->pool[socket];
}

static int
failed(const struct port *port, const char *what, int err)
{
	fprintf(stderr, "millrace: port %u (%s, %s): %s: %s\n", port->id, port->name,
		port->info.driver_name, what, strerror(-err));
	return -1;
}

static uint64_t
tx_offloads(const struct port *port)
{
	return port->csum_offloads | (port->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) |
		(port->security ? RTE_ETH_TX_OFFLOAD_SECURITY : 0);
}

static uint64_t
rx_offloads(const struct port *port)
{
	return port->security ? RTE_ETH_RX_OFFLOAD_SECURITY : 0;
}

static int
port_configure(struct app *a, struct port *port)
{
	struct rte_eth_conf conf = { 0 };
	int ret;

	if (port->n_rxq > port->info.max_rx_queues || port->n_txq > port->info.max_tx_queues) {
		fprintf(stderr,
			"millrace: port %u (%s, %s) has %u Rx and %u Tx queues, not %u and %u "
			"(--rxq, --txq)\n",
			port->id, port->name, port->info.driver_name, port->info.max_rx_queues,
			port->info.max_tx_queues, port->n_rxq, port->n_txq);
		return -1;
	}
	if (a->opt.max_pkt_len != 0)
		conf.rxmode.mtu = a->opt.max_pkt_len - RTE_ETHER_HDR_LEN;
	if (port->n_rxq > 1) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP) &
			port->info.flow_type_rss_offloads;
		if (conf.rx_adv_conf.rss_conf.rss_hf == 0)
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	}
	conf.rxmode.offloads = rx_offloads(port);
	conf.txmode.offloads = tx_offloads(port);
	if ((ret = rte_eth_dev_configure(port->id, port->n_rxq, port->n_txq, &conf)) != 0)
		return failed(port, "cannot be configured", ret);
	port->n_rxd = a->opt.n_rxd;
	port->n_txd = a->opt.n_txd;
	if ((ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &port->n_rxd, &port->n_txd)) != 0)
		return failed(port, "cannot have such rings", ret);
	return 0;
}

static int
port_queues(struct app *a, struct port *port)
{
	int socket = socket_of(port->id), ret;
	struct rte_mempool *pool = pool_get(a, socket);
	struct rte_eth_rxconf rxconf = port->info.default_rxconf;
	struct rte_eth_txconf txconf = port->info.default_txconf;

	if ((port->pool = pool) == NULL)
		return -1;
	rxconf.offloads = rx_offloads(port);
	txconf.offloads = tx_offloads(port);
	for (uint16_t q = 0; q < port->n_rxq; q++) {
		ret = rte_eth_rx_queue_setup(
			port->id, q, port->n_rxd, (unsigned int)socket, &rxconf, pool);
		if (ret != 0)
			return failed(port, "Rx queue cannot be set up", ret);
	}
	for (uint16_t q = 0; q < port->n_txq; q++) {
		ret = rte_eth_tx_queue_setup(
			port->id, q, port->n_txd, (unsigned int)socket, &txconf);
		if (ret != 0)
			return failed(port, "Tx queue cannot be set up", ret);
	}
	return 0;
}

static int
port_schedulers(struct app *a, struct port *port)
{
	for (uint16_t q = 0; q < port->n_txq; q++) {
		struct sched_nolock_conf conf;
		struct port_txq *txq = &port->txq[q];

		sched_nolock_conf_pfifo_fast(&conf);
		txq->port = port->id;
		txq->queue = q;
		conf.n_workers = a->n_workers;
		conf.priority_offset = a->meta_offset + (int)offsetof(struct packet_meta, priority);
		conf.class_offset = a->meta_offset + (int)offsetof(struct packet_meta, classid);
		conf.socket = socket_of(port->id);
		conf.bypass = true;
		conf.tx = port->csum_offloads != 0 || port->security ? port_tx_prepared : port_tx;
		conf.tx_arg = txq;
		conf.drop = port_flushed;
		conf.rcu = a->rcu;
		conf.limit = port->txqueuelen;
		if ((port->sched[q] = sched_nolock_create(&conf)) == NULL)
			return failed(port, "no memory for the scheduler", -ENOMEM);
	}
	return 0;
}

/* Actions leave a sum if some port's NIC would do it; pipeline_send() completes it for the others.
 */
static void
csum_offload_refresh(struct app *a)
{
	uint64_t some = 0;

	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++)
		some |= a->ports[i].used ? a->ports[i].csum_offloads : 0;
	csum_action_offload_set(a->csum, some);
}

/* Events of drivers, in a thread of theirs: the control thread does the work. */
static int
port_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret_param)
{
	struct port *port = arg;

	(void)id;
	if (type == RTE_ETH_EVENT_INTR_RMV)
		atomic_store_explicit(&port->removed, true, memory_order_relaxed);
	else if (type == RTE_ETH_EVENT_INTR_RESET)
		atomic_store_explicit(&port->reset, true, memory_order_relaxed);
	else
		port_esp_event(&app, ret_param);
	return 0;
}

static void
callbacks(struct port *port, bool on)
{
	static const enum rte_eth_event_type types[] = { RTE_ETH_EVENT_INTR_RMV,
		RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_IPSEC };

	for (unsigned int i = 0; i < RTE_DIM(types); i++) {
		if (types[i] == RTE_ETH_EVENT_IPSEC && !port->security)
			continue;
		if (on)
			rte_eth_dev_callback_register(port->id, types[i], port_event, port);
		else
			rte_eth_dev_callback_unregister(port->id, types[i], port_event, port);
	}
}

/* No worker runs. Its driver gives all mbufs back, and knows of no session any more. */
static void
port_stop(struct app *a, struct port *port)
{
	port_esp_gone(a, port);
	rcu_barrier(a->rcu);
	if (port->started)
		rte_eth_dev_stop(port->id);
	port->started = false;
	port_esp_stopped(a, port);
}

void
port_close(struct app *a, struct port *port)
{
	if (a->netlink != NULL && port->used)
		netlink_server_dev_gone(a->netlink, port->ifindex);
	if (port->used)
		ip_port_gone(a, port);
	atomic_store_explicit(&port->up, false, memory_order_relaxed);
	for (uint16_t q = 0; q < port->n_txq; q++) {
		if (port->sched[q] != NULL)
			sched_nolock_destroy(port->sched[q]);
		port->sched[q] = NULL;
	}
	port_stop(a, port);
	callbacks(port, false);
	rte_eth_dev_close(port->id);
	port->used = false;
	csum_offload_refresh(a);
}

static int
port_begin(struct app *a, struct port *port)
{
	int ret;

	if (port_configure(a, port) != 0 || port_queues(a, port) != 0)
		return -1;
	if ((ret = rte_eth_dev_start(port->id)) != 0)
		return failed(port, "cannot be started", ret);
	port->started = true;
	return 0;
}

/* What it was told beside its configuration, which a reset takes. */
static int
port_begin_again(struct app *a, struct port *port)
{
	bool promisc = rte_eth_promiscuous_get(port->id) == 1;
	bool allmulti = rte_eth_allmulticast_get(port->id) == 1;
	struct rte_ether_addr mac;
	uint16_t mtu;
	bool has_mac = rte_eth_macaddr_get(port->id, &mac) == 0;
	bool has_mtu = rte_eth_dev_get_mtu(port->id, &mtu) == 0;
	int ret = rte_eth_dev_reset(port->id);

	/* Without the call it is stopped, configured and started, which is most of it. */
	if (ret != 0 && ret != -ENOTSUP)
		return failed(port, "cannot be reset", ret);
	rte_eth_dev_info_get(port->id, &port->info);
	if (port_begin(a, port) != 0)
		return -1;
	if (has_mtu)
		rte_eth_dev_set_mtu(port->id, mtu);
	if (has_mac)
		rte_eth_dev_default_mac_addr_set(port->id, &mac);
	if (promisc)
		rte_eth_promiscuous_enable(port->id);
	if (allmulti)
		rte_eth_allmulticast_enable(port->id);
	return 0;
}

/*
 * The device lost what it was told. Its SAs go on in software; name, ifindex, addresses, qdiscs and
 * filters stay. If it does not come back it is down, and `ip link set up` tries again.
 */
static void
port_reset(struct app *a, struct port *port)
{
	bool up = port_is_up(port);

	for (uint16_t q = 0; q < port->n_txq; q++)
		sched_nolock_flush(port->sched[q]); /* what names a session */
	port_stop(a, port);
	if (port_begin_again(a, port) != 0) {
		atomic_store_explicit(&port->up, false, memory_order_release);
	} else {
		fprintf(stderr, "millrace: port %u (%s) was reset\n", port->id, port->name);
		if (up)
			port_esp_up(a, port);
		else
			rte_eth_dev_set_link_down(port->id);
	}
	ip_port_changed(a, port);
	if (a->netlink != NULL)
		netlink_server_dev_changed(a->netlink, port->ifindex);
}

/* One that did not: now? */
static bool
port_come_back(struct app *a, struct port *port)
{
	bool resume = forwarding_pause(a), back = port_begin_again(a, port) == 0;

	if (resume)
		forwarding_resume(a);
	return back;
}

void
ports_poll_events(struct app *a)
{
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		struct port *port = port_get(a, i);
		bool removed, resume;

		if (port == NULL)
			continue;
		removed = atomic_load_explicit(&port->removed, memory_order_relaxed);
		if (!atomic_exchange_explicit(&port->reset, false, memory_order_relaxed) &&
			!removed)
			continue;
		if (removed)
			fprintf(stderr, "millrace: port %u (%s) was removed\n", port->id,
				port->name);
		resume = forwarding_pause(a);
		if (removed)
			port_close(a, port);
		else
			port_reset(a, port);
		if (resume)
			forwarding_resume(a);
	}
}

static int
name_is_free(struct app *a, const struct port *port)
{
	const struct port *other = port_by_name(a, port->name);

	if (other == NULL)
		return 0;
	fprintf(stderr, "millrace: ports %u and %u would both be called %s (--port-name)\n",
		other->id, port->id, port->name);
	return -1;
}

static int
port_start(struct app *a, struct port *port)
{
	struct rte_eth_link link;

	if (port_schedulers(a, port) != 0 || port_begin(a, port) != 0)
		return -1;
	callbacks(port, true);
	rte_eth_promiscuous_enable(port->id);
	if (rte_eth_link_get_nowait(port->id, &link) == 0)
		port->carrier = link.link_status == RTE_ETH_LINK_UP;
	return 0;
}

int
port_open(struct app *a, uint16_t id)
{
	struct port *port = &a->ports[id];
	int ret;

	memset(port, 0, sizeof(*port));
	port->id = id;
	if (a->opt.port_name[id][0] != '\0')
		strlcpy(port->name, a->opt.port_name[id], sizeof(port->name));
	else
		snprintf(port->name, sizeof(port->name), "p%u", id);
	if (name_is_free(a, port) != 0)
		return -1;
	if ((ret = rte_eth_dev_info_get(id, &port->info)) != 0)
		return failed(port, "gives no information", ret);
	if (a->opt.csum_offload)
		port->csum_offloads = port->info.tx_offload_capa & CSUM_OFFLOADS;
	port->security = port_esp_wanted(a, port);
	port->n_rxq = a->opt.n_rxq;
	port->n_txq = a->opt.n_txq;
	port->txqueuelen = SCHED_NOLOCK_LIMIT_DEFAULT;
	if (port->n_txq > PORT_TXQ_MAX) {
		fprintf(stderr, "millrace: --txq=%u: at most %u are supported\n", port->n_txq,
			PORT_TXQ_MAX);
		return -1;
	}
	if (port_start(a, port) != 0) {
		port_close(a, port);
		return -1;
	}
	port->ifindex = ++a->last_ifindex;
	port->used = true;
	csum_offload_refresh(a);
	atomic_store_explicit(&port->up, true, memory_order_release);
	ip_port_changed(a, port);
	port_esp_up(a, port);
	return 0;
}

int
ports_open(struct app *a)
{
	uint16_t id;

	RTE_ETH_FOREACH_DEV (id) {
		if (port_open(a, id) != 0)
			return -1;
	}
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		if (a->opt.port_name[i][0] != '\0' && port_get(a, i) == NULL) {
			fprintf(stderr, "millrace: --port-name=%u,%s: there is no port %u\n", i,
				a->opt.port_name[i], i);
			return -1;
		}
	}
	for (unsigned int i = 0; i < a->opt.n_portlist; i++) {
		if (port_get(a, a->opt.portlist[i]) == NULL) {
			fprintf(stderr, "millrace: --portlist, --portmask: there is no port %u\n",
				a->opt.portlist[i]);
			return -1;
		}
	}
	return 0;
}

void
ports_close(struct app *a)
{
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		if (a->ports[i].used)
			port_close(a, &a->ports[i]);
	}
}

void
port_set_up(struct app *a, struct port *port, bool up)
{
	if (port_is_up(port) == up)
		return;
	/* Drivers without the call (-ENOTSUP) keep their link: the flag alone decides for us. */
	if (up) {
		if (!port->started && !port_come_back(a, port))
			return;
		rte_eth_dev_set_link_up(port->id);
		for (uint16_t q = 0; q < port->n_txq; q++)
			sched_nolock_activate(port->sched[q]);
		atomic_store_explicit(&port->up, true, memory_order_release);
		ip_port_changed(a, port);
		port_esp_up(a, port);
		return;
	}
	port_esp_gone(a, port);
	atomic_store_explicit(&port->up, false, memory_order_release);
	ip_port_changed(a, port);
	for (uint16_t q = 0; q < port->n_txq; q++)
		sched_nolock_deactivate(port->sched[q]);
	rte_eth_dev_set_link_down(port->id);
}

int
port_stats(const struct port *port, struct rte_eth_stats *stats)
{
	int ret = rte_eth_stats_get(port->id, stats);

	if (ret != 0)
		return ret;
	stats->ipackets -= port->base.ipackets;
	stats->opackets -= port->base.opackets;
	stats->ibytes -= port->base.ibytes;
	stats->obytes -= port->base.obytes;
	stats->imissed -= port->base.imissed;
	stats->ierrors -= port->base.ierrors;
	stats->oerrors -= port->base.oerrors;
	stats->rx_nombuf -= port->base.rx_nombuf;
	return 0;
}

unsigned int
ports_poll_links(struct app *a)
{
	unsigned int changed = 0;

	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		struct port *port = port_get(a, i);
		struct rte_eth_link link;
		bool carrier;

		if (port == NULL || rte_eth_link_get_nowait(port->id, &link) != 0)
			continue;
		carrier = link.link_status == RTE_ETH_LINK_UP;
		if (carrier == port->carrier)
			continue;
		port->carrier = carrier;
		port->carrier_changes++;
		changed++;
		if (a->netlink != NULL)
			netlink_server_dev_changed(a->netlink, port->ifindex);
	}
	return changed;
}
