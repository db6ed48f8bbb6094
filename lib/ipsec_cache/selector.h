/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_SELECTOR_H
#define IPSEC_CACHE_SELECTOR_H

/* Selectors (struct xfrm_selector) against flows. */

#include <linux/xfrm.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "ipsec_cache/internal.h"

static inline unsigned int
ipsec_addr_len(uint16_t family)
{
	return family == AF_INET6 ? 16 : 4;
}

static inline bool
ipsec_addr_equal(const xfrm_address_t *a, const xfrm_address_t *b, uint16_t family)
{
	return memcmp(a, b, ipsec_addr_len(family)) == 0;
}

static inline bool
ipsec_addr_any(const xfrm_address_t *a, uint16_t family)
{
	static const xfrm_address_t any;

	return ipsec_addr_equal(a, &any, family);
}

/* addr with the bits behind `len` and behind its family's length cleared. */
static inline void
ipsec_addr_mask(const void *addr, uint16_t family, unsigned int len, uint8_t out[16])
{
	unsigned int whole = RTE_MIN(len, ipsec_addr_len(family) * 8) / 8;

	memset(out, 0, 16);
	memcpy(out, addr, whole);
	if (whole < ipsec_addr_len(family) && len % 8 != 0)
		out[whole] = ((const uint8_t *)addr)[whole] & (uint8_t)(0xff00 >> len % 8);
}

static inline bool
ipsec_addr_in(const uint8_t addr[16], const xfrm_address_t *prefix, uint16_t family, uint8_t len)
{
	uint8_t a[16], b[16];

	ipsec_addr_mask(addr, family, len, a);
	ipsec_addr_mask(prefix, family, len, b);
	return memcmp(a, b, sizeof(a)) == 0;
}

static inline bool
ipsec_selector_has_ports(const struct xfrm_selector *sel)
{
	return sel->sport_mask != 0 || sel->dport_mask != 0;
}

/*
 * Does the flow fit, as Linux's xfrm_selector_match()? Ports that a fragment does not have fit no
 * selector that looks at them. `ifindex`: the device that a selector's is compared with. The
 * family is the caller's to compare.
 */
static inline bool
ipsec_selector_match(
	const struct xfrm_selector *sel, const struct ipsec_flow *flow, uint32_t ifindex)
{
	if (ipsec_selector_has_ports(sel) && flow->fragment != 0)
		return false;
	return (sel->proto == 0 || sel->proto == flow->proto) &&
		((sel->sport ^ flow->sport) & sel->sport_mask) == 0 &&
		((sel->dport ^ flow->dport) & sel->dport_mask) == 0 &&
		(sel->ifindex == 0 || (uint32_t)sel->ifindex == ifindex) &&
		ipsec_addr_in(flow->saddr, &sel->saddr, flow->family, sel->prefixlen_s) &&
		ipsec_addr_in(flow->daddr, &sel->daddr, flow->family, sel->prefixlen_d);
}

/* Is it one that a family's addresses can fit? *why says what is not. */
static inline bool
ipsec_selector_valid(const struct xfrm_selector *sel, const char **why)
{
	unsigned int max = sel->family == AF_INET6 ? 128 : 32;

	if (sel->prefixlen_s <= max && sel->prefixlen_d <= max)
		return true;
	*why = max == 32 ? "A prefix in an IPv4 selector has more than 32 bits"
			 : "A prefix in an IPv6 selector has more than 128 bits";
	return false;
}

/* Selectors are compared as bytes: nothing stands where no field is. `user` is kept. */
static inline void
ipsec_selector_normalize(struct xfrm_selector *sel)
{
	struct xfrm_selector s;

	memset(&s, 0, sizeof(s));
	if (sel->family == AF_INET || sel->family == AF_INET6) {
		memcpy(&s.daddr, &sel->daddr, ipsec_addr_len(sel->family));
		memcpy(&s.saddr, &sel->saddr, ipsec_addr_len(sel->family));
	}
	s.dport = sel->dport;
	s.dport_mask = sel->dport_mask;
	s.sport = sel->sport;
	s.sport_mask = sel->sport_mask;
	s.family = sel->family;
	s.prefixlen_d = sel->prefixlen_d;
	s.prefixlen_s = sel->prefixlen_s;
	s.proto = sel->proto;
	s.ifindex = sel->ifindex;
	s.user = sel->user;
	memcpy(sel, &s, sizeof(s));
}

/* Which fields of a flow it looks at: IPSEC_USES_*. */
static inline uint32_t
ipsec_selector_uses(const struct xfrm_selector *sel)
{
	return (ipsec_selector_has_ports(sel) ? IPSEC_USES_PORTS : 0) |
		(sel->ifindex != 0 ? IPSEC_USES_IFINDEX : 0);
}

#endif /* IPSEC_CACHE_SELECTOR_H */
