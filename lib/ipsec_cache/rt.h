/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_RT_H
#define IPSEC_CACHE_RT_H

/*
 * The run-time SA: what a packet touches, by cache line. Line 0 and the header are all that a
 * packet reads on its way out beside the key, and the numbers all that it writes.
 *
 * An SA has a home, the one lcore that writes its numbers; which lcore that is one compare-and-swap
 * decides, made by the first that has a packet for it. Numbers that other threads read are atomic
 * and relaxed: each is right by itself.
 */

#include <assert.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_common.h>

#include "ipsec_cache/cipher.h"
#include "ipsec_cache/internal.h"
#include "ipsec_cache/window.h"

#define IPSEC_ESP_HEADER 8 /* SPI and number */
#define IPSEC_UDP_HEADER 8
#define IPSEC_IPV4_HEADER 20
#define IPSEC_IPV6_HEADER 40
#define IPSEC_PAD_ALIGN 4 /* of a stream cipher, and of ESP itself (RFC 4303, 2.4) */
#define IPSEC_TTL 64 /* net.ipv4.ip_default_ttl, net.ipv6.conf.all.hop_limit */
/* UDP that may hold ESP: to this port (RFC 3948). */
#define IPSEC_NATT_PORT 4500
/* Outer IPv6 + UDP + ESP + IV: what is written before an inner packet at once. */
#define IPSEC_HEADER_ROOM 64

#define IPSEC_RT_ESN 0x01 /* 64-bit sequence numbers */
#define IPSEC_RT_UDP 0x02 /* in UDP */
#define IPSEC_RT_SHARED 0x04 /* lcores share its outbound numbers and counters */
#define IPSEC_RT_PINNED 0x08 /* its home is pcpu, for ever */
#define IPSEC_RT_DSCP_IN 0x10 /* the outer DSCP replaces the inner one (XFRM_STATE_DECAP_DSCP) */
#define IPSEC_RT_SET_MARK 0x20 /* packets that it made get a mark */
#define IPSEC_RT_WRAP 0x40 /* the 32 bits that are sent may wrap (oseq-may-wrap) */

/* Who may have opened its packets before they come here. */
#define IPSEC_BY_INLINE 0x01 /* a NIC; and they are still ESP: since then it stays */
#define IPSEC_BY_PROTOCOL 0x02 /* a NIC, which has the window now */
#define IPSEC_BY_LOOKASIDE 0x04 /* nobody; but a crypto device will */

struct ipsec_cache_rt {
	/* Line 0: out. Written by the control thread: `expired`, `limited`, `by`. */
	aes_gcm_enc_dec_t encrypt;
	const struct gcm_key_data *key;
	uint64_t oseq_max; /* the last number that may be given out */
	uint64_t iv_mask; /* IV = number ^ this: no two lives of one key use the same IVs */
	uint32_t salt; /* as the nonce begins */
	__be32 spi;
	uint32_t checksum; /* sum of the IPv4 header in the template, as 16-bit words lie in it */
	uint16_t tfcpad; /* inner packets are padded to this, 0 none */
	uint8_t header_len; /* outer IP .. IV */
	uint8_t icv_len;
	uint8_t iv_len;
	uint8_t flags; /* IPSEC_RT_* */
	uint8_t tos_mask; /* bits of the inner DSCP and ECN that the outer header shows */
	bool copy_df; /* IPv4 outside: DF is the inner packet's, and set for IPv6; else clear */
	uint8_t family; /* of the outer header */
	_Atomic bool expired;
	uint8_t encap; /* 0 or UDP_ENCAP_ESPINUDP */
	_Atomic bool limited; /* hard_packets and hard_bytes mean something */
	_Atomic uint8_t by; /* IPSEC_BY_* */

	/* Line 1: outer IP, UDP, SPI, number and IV; ends with the line, number and IV being 0. */
	uint8_t header[IPSEC_HEADER_ROOM] __rte_cache_aligned;

	/* Line 2: numbers. Written by the home lcore (shared: by all that send). */
	_Atomic uint64_t oseq __rte_cache_aligned; /* last number that was given out */
	struct ipsec_window window;
	_Atomic uint64_t packets, bytes;
	_Atomic uint64_t home; /* start << 32 | worker; 0: none */
	_Atomic uint32_t first_used, last_used; /* seconds since 1970; 0 never */

	/* Line 3: in. */
	aes_gcm_enc_dec_t decrypt __rte_cache_aligned;
	uint64_t *words; /* of the window */
	uint64_t daddr[2]; /* as words in memory; IPv4: the first four bytes, the rest 0 */
	_Atomic uint64_t hard_packets, hard_bytes; /* UINT64_MAX: no limit */
	uint64_t serial; /* the control SA's; policies know it by that */
	uint32_t set_mark, set_mark_mask;

	/* Line 4 and on: rarely looked at. */
	const struct ipsec_cipher *cipher __rte_cache_aligned;
	const struct ipsec_cache_sa *sa;
	_Atomic(struct ipsec_session *) session; /* of a device; read by decisions */
	struct ipsec_vault *vault; /* whose memory this is */
	size_t size;
	_Atomic uint32_t bad_old, bad_seen, bad_icv; /* x->stats of Linux */
	uint32_t pcpu;
	uint32_t held; /* sessions of crypto devices that may have packets of it; control thread */
	uint64_t saddr[2]; /* the peer, and its port where packets come in UDP */
	__be16 sport;
	/* A valid packet's source that was another (NAT-T); odd while it is being written. */
	_Atomic uint32_t moved;
	_Atomic uint64_t moved_saddr[2];
	_Atomic uint16_t moved_sport;

	/* The expanded key and the window's words follow. */
	uint8_t tail[] __rte_cache_aligned;
};
static_assert(offsetof(struct ipsec_cache_rt, header) == 64, "line 0 is full");
static_assert(offsetof(struct ipsec_cache_rt, oseq) == 128, "numbers have a line");
static_assert(offsetof(struct ipsec_cache_rt, decrypt) == 192, "numbers have one line");
static_assert(offsetof(struct ipsec_cache_rt, cipher) == 256, "what a packet reads has four lines");
static_assert(offsetof(struct ipsec_cache_rt, tail) == 384, "keys begin a line");

/* An address as two words, which compare faster than bytes. */
static inline void
ipsec_addr4(uint64_t words[2], const void *addr)
{
	uint32_t word;

	memcpy(&word, addr, sizeof(word));
	words[0] = RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN ? word : (uint64_t)word << 32;
	words[1] = 0;
}

static inline void
ipsec_addr6(uint64_t words[2], const void *addr)
{
	memcpy(words, addr, 2 * sizeof(*words));
}

/* Relaxed: one number by itself, one writer. */
#define ipsec_load(p) atomic_load_explicit(p, memory_order_relaxed)
#define ipsec_store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define ipsec_add(p, n) ipsec_store(p, ipsec_load(p) + (n))

/* What a worker did with an SA. */
static inline void
ipsec_rt_count(struct ipsec_cache_rt *rt, uint64_t packets, uint64_t bytes, uint32_t seconds)
{
	if (unlikely((rt->flags & IPSEC_RT_SHARED) != 0)) {
		/* several writers: an addition each */
		atomic_fetch_add_explicit(&rt->packets, packets, memory_order_relaxed);
		atomic_fetch_add_explicit(&rt->bytes, bytes, memory_order_relaxed);
	} else {
		ipsec_add(&rt->packets, packets);
		ipsec_add(&rt->bytes, bytes);
	}
	if (unlikely(ipsec_load(&rt->last_used) != seconds)) {
		ipsec_store(&rt->last_used, seconds);
		if (ipsec_load(&rt->first_used) == 0)
			ipsec_store(&rt->first_used, seconds);
	}
}

/* IPSEC_BY_*; the control thread's. */
static inline void
ipsec_rt_by_set(struct ipsec_cache_rt *rt, uint8_t by, bool on)
{
	uint8_t now = ipsec_load(&rt->by);

	ipsec_store(&rt->by, (uint8_t)(on ? now | by : now & ~by));
}

/* Its hard lifetime is over: by the control thread's word, or by what was counted here. */
static inline bool
ipsec_rt_over(const struct ipsec_cache_rt *rt)
{
	return ipsec_load(&rt->expired) ||
		(unlikely(ipsec_load(&rt->limited)) &&
			(ipsec_load(&rt->packets) >= ipsec_load(&rt->hard_packets) ||
				ipsec_load(&rt->bytes) >= ipsec_load(&rt->hard_bytes)));
}

#endif /* IPSEC_CACHE_RT_H */
