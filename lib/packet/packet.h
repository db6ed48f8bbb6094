/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef PACKET_PACKET_H
#define PACKET_PACKET_H

/*
 * The bounded header view of a frame: the only parser in the tree.
 *
 * A view says where the headers of one Ethernet frame start and where its
 * layer 3 ends. Layer 3 is bounded: L = min(bytes after layer 2, IPv4 total
 * length | 40 + IPv6 payload length), so Ethernet padding never counts. All
 * that a view names has been read inside L; what it does not vouch for, no
 * later stage reads.
 *
 * Views of a burst stand in an array beside the mbufs. Offsets are bytes from
 * the first byte of the frame and count across segments; use packet_read() to
 * get at them.
 *
 * Thread safety: everything here works on its arguments alone.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

/* At most this many packets travel together, so that a set of them is a uint64_t. */
#define PACKET_VECTOR_MAX 64

/* What layer 3 is. */
enum packet_l3 {
	PACKET_L3_OTHER, /* not IP, or the frame ends before layer 3 */
	PACKET_L3_IPV4,
	PACKET_L3_IPV6,
	PACKET_L3_ARP,
};

/*
 * Why parsing ended. NONE means that l4_off and l4_proto name an upper-layer header
 * that begins inside L. One list yields enum, counter name and text.
 */
#define PACKET_STOP_LIST(X) \
	X(NONE, "none", "reached layer 4") \
	X(NOT_IP, "not_ip", "not IPv4 or IPv6") \
	X(CUT_L2, "cut_l2", "frame ends inside Ethernet or a VLAN tag") \
	X(VLAN_DEPTH, "vlan_depth", "more than three VLAN tags") \
	X(MALFORMED_L3, "malformed_l3", "IP version, header or total length does not fit") \
	X(FRAGMENT, "fragment", "a fragment, the first one included") \
	X(MALFORMED_EXT, "malformed_ext", "extension header or IP option does not fit or lies") \
	X(EXT_LIMIT, "ext_limit", "extension header chain too long") \
	X(OPAQUE, "opaque", "AH, ESP, no next header or an unknown routing header before layer 4") \
	X(CUT_L4, "cut_l4", "layer 3 ends where layer 4 should begin")

enum packet_stop {
#define X(id, name, text) PACKET_STOP_##id,
	PACKET_STOP_LIST(X)
#undef X
	PACKET_STOP_MAX
};

/* Name of a stop's counter ("malformed_l3") and one-line text; "?" beyond the list. */
const char *packet_stop_name(unsigned int stop);
const char *packet_stop_text(unsigned int stop);

/* Flags of a view. */
#define PACKET_F_L3 0x01 /* IPv4 or IPv6 whose fixed header and lengths were checked */
#define PACKET_F_FRAGMENT 0x02 /* offset > 0 or MF set */
#define PACKET_F_FIRST_FRAG 0x04 /* ... with offset 0 */
#define PACKET_F_ROUTED 0x08 /* dst_off is not in the header: routing header, source route */
#define PACKET_F_CUT 0x10 /* the header claims more than the frame has: L ends with the frame */
#define PACKET_F_HOME 0x20 /* src_off is not in the header: home address option */

#define PACKET_VLAN_MAX 3
/* Extension headers that are walked in one packet; one more is PACKET_STOP_EXT_LIMIT. */
#define PACKET_EXT_MAX 32

struct packet_view {
	uint32_t l3_end; /* one past the last byte of L; l3_off where layer 3 is malformed */
	uint16_t l3_off; /* layer 3 header, after all tags */
	uint16_t l4_off; /* layer 4 header; 0 unless stop is NONE */
	/* Addresses for the pseudo-header, the destination being the final one; 0 without F_L3. */
	uint16_t dst_off;
	uint16_t src_off;
	/* After the tags, host order; the outermost unread type where parsing stopped in layer 2.
	 */
	uint16_t ether_type;
	/*
	 * Where stop is OPAQUE, the header that cannot be looked through (AH, ESP, ...); in a first
	 * fragment, its layer 4 header if it begins inside L; else 0.
	 */
	uint16_t rest_off;
	uint8_t l3; /* enum packet_l3 */
	uint8_t stop; /* enum packet_stop */
	uint8_t flags; /* PACKET_F_* */
	/*
	 * IP protocol number at l4_off; where stop is OPAQUE that at rest_off; in a fragment that
	 * of its first header; else 0.
	 */
	uint8_t l4_proto;
	uint8_t n_vlan; /* tags read, 0..PACKET_VLAN_MAX; tag i's TCI is at 14 + 4 * i */
	uint8_t pad[3];
};
static_assert(sizeof(struct packet_view) == 24, "views are packed beside the mbufs");

/* Fills `view` from the frame `m`. Never writes to the frame, never fails. */
void packet_view_parse(const struct rte_mbuf *m, struct packet_view *view);

/* packet_view_parse() for pkts[0..n) into views[0..n). */
void
packet_view_parse_burst(struct rte_mbuf *const *pkts, struct packet_view *views, unsigned int n);

/*
 * `len` bytes at frame offset `off`: a pointer into the frame where they lie in one segment,
 * else copied into `buf` (at least len bytes). NULL if the frame is shorter. Never to be written
 * through.
 */
static inline const void *
packet_read(const struct rte_mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	return rte_pktmbuf_read(m, off, len, buf);
}

/*
 * Up to PACKET_VECTOR_MAX packets that travel through a stage together. Stages name subsets by
 * bit masks over the positions. `views` is filled on the first demand: call packet_vector_parse().
 */
struct packet_vector {
	struct rte_mbuf **pkts;
	struct packet_view *views;
	uint16_t n;
	bool parsed;
};

static inline uint64_t
packet_vector_mask(const struct packet_vector *v)
{
	return v->n >= 64 ? UINT64_MAX : (UINT64_C(1) << v->n) - 1;
}

/* Makes views[0..n) valid, once. */
static inline void
packet_vector_parse(struct packet_vector *v)
{
	if (!v->parsed) {
		packet_view_parse_burst(v->pkts, v->views, v->n);
		v->parsed = true;
	}
}

/* for each position `i` (unsigned int) whose bit is set in the uint64_t `mask` */
#define packet_mask_for_each(i, mask) \
	for (uint64_t _m_##i = (mask); \
		_m_##i != 0 && ((i) = (unsigned int)__builtin_ctzll(_m_##i), 1); \
		_m_##i &= _m_##i - 1)

/*
 * What a packet carries beside its bytes: one dynamic field of the mbuf, named PACKET_META_NAME,
 * that Rx zeroes. Handles keep the offset that packet_meta_register() returned.
 */
#define PACKET_META_NAME "millrace_packet_meta"

struct packet_meta {
	uint32_t mark; /* skb->mark */
	uint32_t priority; /* skb->priority; selects the band */
	uint16_t queue; /* Tx queue + 1, 0 for the stage's own choice */
	uint16_t classid; /* minor of the class a filter chose (flowid), 0 for none */
	union {
		uint32_t
			iif; /* skb->skb_iif until it is queued: where it came in, 0 if made here */
		uint32_t bytes; /* frame length noted when a scheduler queued it */
	};
};
static_assert(sizeof(struct packet_meta) == 16, "packet_meta is one 16-byte store");

/* Registers the field (again: finds it). Returns its offset in the mbuf, or -1 and rte_errno. */
int packet_meta_register(void);

static inline struct packet_meta *
packet_meta(const struct rte_mbuf *m, int off)
{
	return RTE_MBUF_DYNFIELD(m, off, struct packet_meta *);
}

#endif /* PACKET_PACKET_H */
