/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Mode ip and IPsec, the control side: routes for tunnels, and what policies say of our own
 * packets. */

#include <netinet/in.h>
#include <stdio.h>

#include <rte_ring_elem.h>

#include "app.h"
#include "forward/ip.h"
#include "forward/ip_esp.h"
#include "port_esp.h"

static const struct route_hop *
look_up(const struct route_table *t, uint8_t family, const void *dst, uint32_t hash)
{
	uint8_t dst6[1][ROUTE_ADDR_LEN];
	const struct route_hop *hop;
	uint32_t dst4;

	if (family == AF_INET) {
		memcpy(&dst4, dst, sizeof(dst4));
		dst4 = rte_be_to_cpu_32(dst4);
		route_lookup4(t, &dst4, &hop, 1);
	} else {
		memcpy(dst6[0], dst, sizeof(dst6[0]));
		route_lookup6(t, dst6, &hop, 1);
	}
	if (hop->kind == ROUTE_GROUP)
		hop = route_hop_select(t, hop, hash);
	return route_hop_near(t, hop, family, dst);
}

/* Called by workers. */
static void
resolve(void *arg, uint8_t family, const void *dst, uint32_t hash, struct ipsec_cache_hop *out)
{
	const struct app *a = arg;
	const struct route_hop *hop = look_up(a->route, family, dst, hash);

	*out = (struct ipsec_cache_hop){ .hop = hop, .ifindex = hop->ifindex, .mtu = hop->mtu };
	switch (hop->kind) {
	case ROUTE_FORWARD:
		out->kind = IPSEC_CACHE_HOP_FORWARD;
		break;
	case ROUTE_RESOLVE:
	case ROUTE_CONNECTED:
		out->kind = IPSEC_CACHE_HOP_FORWARD;
		out->waits = true;
		break;
	case ROUTE_LOCAL:
		out->kind = IPSEC_CACHE_HOP_LOCAL;
		break;
	default:
		out->kind = IPSEC_CACHE_HOP_NONE;
		break;
	}
}

int
ip_ipsec_create(struct app *a)
{
	struct ipsec_cache_conf conf = {
		.rcu = a->rcu,
		.n_workers = a->n_workers + 1, /* the last is the control thread's */
		.cache_entries = a->opt.ipsec_cache,
		.meta_offset = a->meta_offset,
		.socket = SOCKET_ID_ANY,
		.share_numbers = a->opt.ipsec_share_numbers,
		.arg = a,
		.resolve = resolve,
		.offload = a->opt.ipsec_offload,
		.tx_rounds = port_esp_rounds,
	};

	if ((a->ipsec = ipsec_cache_create(&conf)) == NULL) {
		fprintf(stderr, "millrace: no memory for IPsec\n");
		return -1;
	}
	return 0;
}

void
ip_ipsec_destroy(struct app *a)
{
	ipsec_cache_destroy(a->ipsec);
	a->ipsec = NULL;
}

static void
to_worker(struct router *ip, struct rte_mbuf *m, uint16_t port, enum ip_reply_kind kind)
{
	struct ip_reply reply = { .m = m, .port = port, .kind = (uint8_t)kind };

	if (rte_ring_enqueue_elem(ip_reply_ring(ip), &reply, sizeof(reply)) != 0)
		ip_drop(ip, DROP_IP_REPLY_FULL, m);
}

static bool
is_marked(const struct router *ip, const struct rte_mbuf *m)
{
	return (m->ol_flags & ip->app->opened) != 0;
}

void
ip_ipsec_quote(const struct router *ip, struct rte_mbuf *e, const struct rte_mbuf *m)
{
	e->ol_flags |= m->ol_flags & ip->app->opened;
}

const struct route_address *
ip_ipsec_source(const struct router *ip, const struct rte_mbuf *m, uint8_t family, const void *dst)
{
	struct route_path path = { .ifindex = 0 };

	if (!is_marked(ip, m) || route_get(ip->app->route, family, dst, 0, &path) == NULL ||
		path.ifindex == 0)
		return NULL;
	return route_address_source(ip->app->route, path.ifindex, family, dst);
}

/* It would leave in clear. */
static bool
may_leave(struct router *ip, struct rte_mbuf *m)
{
	if (!is_marked(ip, m))
		return true;
	ip_drop(ip, DROP_POLICY_NONE, m);
	return false;
}

bool
ip_ipsec_output(struct router *ip, struct rte_mbuf *m)
{
	struct ipsec_cache_worker *w;
	const struct ipsec_cache_decision *d;
	struct packet_view view;
	struct packet_vector one = { .pkts = &m, .views = &view, .n = 1, .parsed = true };

	if (!ipsec_cache_active(ip->app->ipsec))
		return may_leave(ip, m);
	w = ipsec_cache_worker(ip->app->ipsec, ip->app->n_workers);
	ip_output_header(m);
	packet_view_parse(m, &view);
	ipsec_cache_begin(w);
	ipsec_cache_decide(w, &one, 1, NULL, 0, &d);
	if (d->action == IPSEC_CACHE_ROUTE)
		return may_leave(ip, m);
	if (d->action == IPSEC_CACHE_PROTECT)
		to_worker(ip, m, IP_OWN, REPLY_OWN);
	else
		ip_drop(ip, (enum drop_reason)(DROP_ESP_NO_SA + d->error), m);
	return false;
}

bool
ip_ipsec_input(struct router *ip, struct rte_mbuf *m, const struct packet_view *view)
{
	if (!ipsec_cache_active(ip->app->ipsec) ||
		!((view->stop == PACKET_STOP_OPAQUE && view->l4_proto == IPPROTO_ESP) ||
			(view->stop == PACKET_STOP_NONE && view->l4_proto == IPPROTO_UDP)))
		return false;
	to_worker(ip, m, m->port, REPLY_OPEN);
	return true;
}
