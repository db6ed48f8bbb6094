/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_UNIT_APP_ROUTER_H
#define TEST_UNIT_APP_ROUTER_H

/* What tests of mode ip share. Include what cmocka.h wants before it. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <rte_ethdev.h>
#include <rte_ip.h>

#include "dataplane.h"
#include "forward/ip.h"

/* Two ports in mode ip. */
static inline void
router_open(void)
{
	dataplane_open(2);
	dataplane_command("set fwd ip");
	app.workers[0].mode = app.mode;
}

/* The worker, the control thread, the worker again: what one hands to the other comes out. */
static inline void
turns(void)
{
	dataplane_turn();
	ip_control(&app);
	dataplane_turn();
}

static inline void
mac_of(unsigned int port, uint8_t mac[6])
{
	struct rte_ether_addr addr;

	assert_int_equal(rte_eth_macaddr_get((uint16_t)app.ports[port].id, &addr), 0);
	memcpy(mac, addr.addr_bytes, 6);
}

static inline struct rte_ipv4_hdr *
ip_of(uint8_t *frame)
{
	return (void *)(frame + RTE_ETHER_HDR_LEN);
}

/* The IPv4 header's checksum. */
static inline void
sum(uint8_t *frame)
{
	ip_of(frame)->hdr_checksum = 0;
	ip_of(frame)->hdr_checksum = rte_ipv4_cksum(ip_of(frame));
}

/* Throws away what came out of a port. Returns how many frames. */
static inline unsigned int
router_discard(unsigned int port)
{
	struct rte_mbuf *m;
	unsigned int n = 0;

	for (; (m = dataplane_sent(port)) != NULL; n++)
		rte_pktmbuf_free(m);
	return n;
}

#endif /* TEST_UNIT_APP_ROUTER_H */
