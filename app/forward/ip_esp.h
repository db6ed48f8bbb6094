/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_FORWARD_IP_ESP_H
#define APP_FORWARD_IP_ESP_H

/*
 * Mode ip and IPsec. Workers open and seal (ip_esp.c). An SA lives on one worker, the first that
 * used it, so that its numbers follow the order in which packets leave: others hand their packets
 * over by the ring in which the control thread's replies come, which a worker empties once a loop.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ipsec_cache/ipsec_cache.h"
#include "packet/packet.h"

struct app;
struct burst;
struct ip_reply;
struct port;
struct route_address;
struct route_hop;
struct router;
struct rte_mbuf;
struct worker;

/* What a packet in a worker's ring of replies asks for. */
enum ip_reply_kind {
	REPLY_FRAME, /* to be sent as it is */
	REPLY_OPEN, /* came in; for the worker that its SA lives on, or reassembled */
	REPLY_SEAL, /* is forwarded, its inbound policy was checked */
	REPLY_OWN, /* is ours: the same, and its TTL stays */
};

/* ip_esp.c: looks like ESP, bare or in UDP. */
bool ip_esp_is(const struct burst *b, unsigned int i);
/*
 * ip_esp.c, workers. Of the packets in b->v4 and b->v6, whose headers were checked, and those in
 * b->opened: opens ESP for us, asks policies, seals. Those left in the masks are to be routed;
 * sealed ones are in b->forward, with hops. in_ifindex: the port's; 0: inbound policies were
 * checked, or it is our own.
 */
void ip_esp_burst(struct burst *b, struct packet_vector *vector, uint32_t in_ifindex);
/* Goes on with what crypto devices finished; returns how many packets. */
unsigned int ip_esp_poll(struct worker *worker);
/*
 * Takes the replies of one kind and port from the front of replies[0..n), the first of which is no
 * REPLY_FRAME. Returns how many.
 */
unsigned int ip_esp_handed(struct worker *worker, const struct ip_reply *replies, unsigned int n);

/* ip_ipsec.c, control thread. 0, or -1 after one sentence on stderr. */
int ip_ipsec_create(struct app *app);
void ip_ipsec_destroy(struct app *app);
/*
 * What policies say about a packet of our own, behind room for an untagged Ethernet header. True:
 * it may go where routes say. False: it is gone, to be sealed by a worker or dropped by name.
 */
bool ip_ipsec_output(struct router *ip, struct rte_mbuf *m);
/*
 * What came out of a tunnel is marked (app->opened), and what quotes or answers it:
 * that goes back into one, or nowhere. ip_ipsec_quote() marks `e`, which quotes `m`.
 * ip_ipsec_source(): where `m` is marked, our address on the side that it was going to, which
 * policies protect as they do its answer; else, or where there is none, NULL.
 */
void ip_ipsec_quote(const struct router *ip, struct rte_mbuf *e, const struct rte_mbuf *m);
const struct route_address *
ip_ipsec_source(const struct router *ip, const struct rte_mbuf *m, uint8_t family, const void *dst);
/* A packet for us was put together from fragments: true if it is ESP's and has gone to a worker. */
bool ip_ipsec_input(struct router *ip, struct rte_mbuf *m, const struct packet_view *view);

#endif /* APP_FORWARD_IP_ESP_H */
