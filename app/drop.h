/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_DROP_H
#define APP_DROP_H

/*
 * Every packet that does not leave has one named reason, and drop() is the only place of the packet
 * path that frees one. Workers count in their own cache lines; the control thread has the last
 * slot.
 */

#include <assert.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "classifier/classifier.h"
#include "ipsec_cache/ipsec_cache.h"

#define DROP_LIST(X) \
	CLASSIFIER_DROP_LIST(X) \
	X(SCHED_FULL, "sched_full", "the band of the Tx queue was full") \
	X(SCHED_FLUSH, "sched_flush", "queued when the Tx queue was flushed, stopped or closed") \
	X(RX_DOWN, "rx_down", "came in on a port that is administratively down") \
	X(TX_DOWN, "tx_down", "sent to a port that is administratively down") \
	X(NO_PORT, "no_port", "redirected to a port that does not exist") \
	X(REDIRECT_LOOP, "redirect_loop", "redirected or mirrored too many times") \
	X(MIRROR_NOBUF, "mirror_nobuf", "no mbuf left for the copy that mirred wanted") \
	X(ESP_UNSEEN, "esp_unseen", "a NIC took its ESP off, and IPsec here never looked at it") \
	X(TX_INVALID, "tx_invalid", "the driver cannot send it (rte_eth_tx_prepare)") \
	X(RX_SINK, "rx_sink", "consumed by forward mode rxonly") \
	X(NOT_FOR_US, "not_for_us", "its Ethernet destination is another station") \
	X(NOT_IP, "not_ip", "neither IP nor ARP") \
	X(IP_VLAN, "ip_vlan", "tagged for a VLAN that has no interface") \
	X(IP_MALFORMED, "ip_malformed", "IP version, header or length does not fit") \
	X(IP_CHECKSUM, "ip_checksum", "wrong checksum of the IPv4 header") \
	X(IP_MARTIAN, "ip_martian", "a source or destination that no router forwards") \
	X(IP_SOURCE_ROUTE, "ip_source_route", "asks for source routing") \
	X(IP_MULTICAST, "ip_multicast", "multicast or broadcast") \
	X(IP_TTL, "ip_ttl", "time to live or hop limit exceeded") \
	X(IP_NO_ROUTE, "ip_no_route", "no route") \
	X(IP_BLACKHOLE, "ip_blackhole", "a blackhole route") \
	X(IP_UNREACHABLE, "ip_unreachable", "an unreachable route") \
	X(IP_PROHIBIT, "ip_prohibit", "a prohibit route") \
	X(IP_TOO_BIG, "ip_too_big", "longer than the MTU and not to be fragmented") \
	X(IP_NOBUF, "ip_nobuf", "no mbuf left to copy, fragment or answer with") \
	X(IP_SLOW_FULL, "ip_slow_full", "more than the control thread keeps up with") \
	X(IP_REPLY_FULL, "ip_reply_full", \
		"from the control thread, whose ring to the worker was full") \
	X(IP_CONSUMED, "ip_consumed", "ICMP for us that needs no answer") \
	X(NO_HOST_PATH, "no_host_path", "for an address of ours, and nothing here takes it") \
	X(ARP_CONSUMED, "arp_consumed", "ARP, read") \
	X(ARP_MALFORMED, "arp_malformed", "ARP that is cut or not for Ethernet and IPv4") \
	X(ND_CONSUMED, "nd_consumed", "neighbour discovery, read") \
	X(ND_MALFORMED, "nd_malformed", "neighbour discovery that RFC 4861 says to discard") \
	X(ND_IGNORED, "nd_ignored", "router discovery and redirects") \
	X(FRAG_EXPIRED, "frag_expired", \
		"a fragment for us whose packet was not completed in time") \
	X(FRAG_OVERLAP, "frag_overlap", "fragments for us that overlap or contradict each other") \
	X(FRAG_DUPLICATE, "frag_duplicate", "a fragment for us that was there already") \
	X(FRAG_LIMIT, "frag_limit", "a fragment for us that made room for newer ones") \
	X(NEIGH_FULL, "neigh_full", "too many neighbours are being looked for") \
	X(NEIGH_QUEUE, "neigh_queue", "made room in the queue of a neighbour that is looked for") \
	X(NEIGH_FAILED, "neigh_failed", "the neighbour does not answer") \
	IPSEC_CACHE_ERROR_LIST(X)

enum drop_reason {
#define X(id, name, text) DROP_##id,
	DROP_LIST(X)
#undef X
	DROP_MAX
};

/* The classifier's reasons come first, so that its index is ours. */
static_assert((int)DROP_SHOT == (int)CLASSIFIER_DROP_SHOT &&
		(int)CLASSIFIER_DROP_MAX == (int)DROP_SCHED_FULL,
	"the classifier's drops lead the list");

struct drop_info {
	const char *name, *text;
};
extern const struct drop_info drop_info[DROP_MAX];

struct drop_counters {
	_Atomic uint64_t packets[DROP_MAX];
	_Atomic uint64_t bytes[DROP_MAX];
} __rte_cache_aligned;

/* Counts the packets under the reason, then frees them. */
void drop(struct drop_counters *counters, enum drop_reason reason, struct rte_mbuf **pkts,
	unsigned int n);
/* The same for the packets of `mask` in a vector. */
void drop_mask(struct drop_counters *counters, enum drop_reason reason, struct rte_mbuf **pkts,
	uint64_t mask);
/* Counts packets that never had an mbuf (a copy that could not be made). */
void drop_count(
	struct drop_counters *counters, enum drop_reason reason, uint64_t packets, uint64_t bytes);

#endif /* APP_DROP_H */
