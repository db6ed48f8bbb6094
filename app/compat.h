/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_COMPAT_H
#define APP_COMPAT_H

/* What differs between DPDK 22.11 and later: probed by meson, named here, checked nowhere else. */

#include <stdint.h>

#include <rte_ip.h>

/* An IPv6 header's addresses are arrays, or structures around them. */
static inline const uint8_t *
compat_ip6_src(const struct rte_ipv6_hdr *h)
{
	return (const uint8_t *)&h->src_addr;
}

static inline const uint8_t *
compat_ip6_dst(const struct rte_ipv6_hdr *h)
{
	return (const uint8_t *)&h->dst_addr;
}

#ifdef HAVE_TEL_DICT_UINT
#define compat_tel_add_dict_uint rte_tel_data_add_dict_uint
#else
#define compat_tel_add_dict_uint rte_tel_data_add_dict_u64
#endif

#endif /* APP_COMPAT_H */
