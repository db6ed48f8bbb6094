/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_FORWARD_IP_H
#define APP_FORWARD_IP_H

/*
 * Mode ip: a router. Workers forward what they can (ip.c). What needs thought, ARP, packets for us,
 * errors, neighbours not known yet, goes to the control thread by a bounded ring (ip_slow.c), and
 * what that sends comes back by a ring to a worker: neither waits for the other.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "drop.h"
#include "packet/packet.h"
#include "route/route.h"

struct app;
struct port;
struct reassembly;
struct rte_ring;
struct worker;

/* Why a packet goes to the control thread. */
enum ip_why {
	WHY_ARP,
	WHY_LOCAL, /* for an address of ours */
	WHY_RESOLVE, /* the TTL is decremented; `nexthop` on `ifindex` is needed */
	WHY_TTL,
	WHY_NO_ROUTE,
	WHY_UNREACHABLE,
	WHY_PROHIBIT,
	WHY_TOO_BIG, /* for `mtu` */
	WHY_NEIGH_FAILED,
};

/* In the ring to the control thread. m->port is the port it came in by. */
struct ip_item {
	struct rte_mbuf *m;
	uint32_t ifindex;
	uint16_t mtu;
	uint8_t why; /* enum ip_why */
	uint8_t family;
	uint8_t nexthop[ROUTE_ADDR_LEN];
};
static_assert(sizeof(struct ip_item) == 32, "two items a cache line");

/* In the rings to the workers: a frame for a port, or (ip_esp.h) one that came in by it. */
struct ip_reply {
	struct rte_mbuf *m;
	uint16_t port;
	uint8_t kind; /* enum ip_reply_kind */
	uint8_t pad[5];
};

/* Tokens that come by the millisecond. */
struct ip_bucket {
	uint64_t last_ms;
	uint32_t tokens;
};

/* Errors that may be sent: in all, and to each destination (ip_limit.c). Zeroed: full buckets. */
#define IP_PEERS 1024
struct ip_limit {
	struct ip_bucket all;
	struct ip_peer {
		struct ip_bucket bucket;
		uint8_t family;
		uint8_t addr[ROUTE_ADDR_LEN];
	} peers[IP_PEERS];
};

struct router {
	struct app *app;
	struct rte_ring *slow; /* from all workers */
	struct rte_ring **replies; /* to each worker, from the control thread and the others */
	unsigned int n_replies;
	/* Control thread only. */
	struct ip_limit limit;
	/* By port: the interface that has got its link-local address since it went up, or 0. */
	uint32_t linked[RTE_MAX_ETHPORTS];
	uint16_t id; /* of the IPv4 packets that we make */
	uint64_t now; /* ms: of the last ip_control() */
	struct reassembly *fragments; /* made with the first fragment for us */
};

/* A port that a packet never came in by: one of our own. */
#define IP_OWN UINT16_MAX

/* Table and rings. 0, or -1 after one sentence on stderr. */
int ip_create(struct app *app);
/* Drops what waits by name. */
void ip_destroy(struct app *app);
/* A port came, or its address, MTU or state changed. */
void ip_port_changed(struct app *app, struct port *port);
void ip_port_gone(struct app *app, const struct port *port);
/* Serves a bounded amount of what the workers handed over, and the timers. */
void ip_control(struct app *app);
/* Milliseconds until ip_control() should be called again at the latest, or -1. */
int ip_timeout(const struct app *app);

/* Hands a packet over to the control thread; drops it by name if that has too many. */
void ip_slow(struct worker *worker, const struct ip_item *item);

/* --- the control thread's --- */

/* Takes 14 bytes in front of layer 3 and puts it on the wire; takes m over. */
void
ip_transmit(struct router *ip, struct rte_mbuf *m, uint32_t l3_off, const struct route_hop *hop);
/* The ring of the worker that sends what is ours. */
struct rte_ring *ip_reply_ring(const struct router *ip);
/* Fills the Ethernet header of a frame that nobody sent, so that it can be parsed. */
void ip_output_header(struct rte_mbuf *m);
/*
 * Makes a frame of what librte_ip_frag cut, which begins with its IP header: IPv4's checksum, where
 * it came in, metadata, an Ethernet header to be parsed. False: no room; it is still the caller's.
 * Any thread.
 */
bool ip_fragment_frame(
	struct rte_mbuf *m, uint16_t port, int meta_offset, const struct packet_meta *meta);
/* Sends a frame whose Ethernet header is there. */
void ip_transmit_frame(struct router *ip, struct rte_mbuf *m, uint16_t port);
/* Routes a packet of ours by its destination; its layer 3 is at l3_off. Takes m over. */
void
ip_output(struct router *ip, struct rte_mbuf *m, uint8_t family, const void *dst, uint32_t l3_off);
/* The same towards a neighbour on a device. */
void ip_output_to(struct router *ip, struct rte_mbuf *m, uint32_t ifindex, uint8_t family,
	const void *nexthop, uint32_t l3_off);
void ip_drop(struct router *ip, enum drop_reason reason, struct rte_mbuf *m);
/* A new mbuf with the metadata of a packet of ours, or NULL. */
struct rte_mbuf *ip_alloc(struct router *ip);

/* ip_arp.c: takes m over. */
void ip_arp_receive(struct router *ip, struct rte_mbuf *m, const struct packet_view *view);
void ip_arp_solicit(struct router *ip, const struct route_neigh_info *neigh, bool unicast);

/* ip_icmp.c: takes m over. */
void ip_icmp_receive(struct router *ip, struct rte_mbuf *m, const struct packet_view *view);
/* The one's-complement sum of len bytes that are there, whatever segments they lie in; not folded
 * beyond 32 bits, not inverted. */
uint32_t ip_sum(const struct rte_mbuf *m, uint32_t off, uint32_t len);
/* Answers m with an error if that is allowed. */
void ip_icmp_error(struct router *ip, const struct rte_mbuf *m, const struct packet_view *view,
	uint8_t type, uint8_t code, uint32_t rest);
/* ip_limit.c: one more error may be sent to that address now. */
bool
ip_may_send_error(struct router *ip, uint8_t family, const void *to, uint8_t type, uint8_t code);

/*
 * ip_reassembly.c: a fragment for us. The whole packet once the last piece is there, else NULL;
 * takes m over.
 */
struct rte_mbuf *
ip_reassemble(struct router *ip, struct rte_mbuf *m, const struct packet_view *view);
/* Drops what waited too long, and says so to its sender. */
void ip_reassembly_tick(struct router *ip, uint64_t now_ms);
void ip_reassembly_destroy(struct router *ip);

#endif /* APP_FORWARD_IP_H */
