/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_FORWARD_GENERATE_H
#define APP_FORWARD_GENERATE_H

/* UDP/IPv4 frames for txonly and flowgen, shaped by --txpkts, --tx-ip, --tx-udp, --tx-cksum,
 * --eth-peer. */

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

struct rte_mbuf;
struct stream;
struct worker;

#define FLOWGEN_LEN 300 /* testpmd's frame length, unless --txpkts says */
#define GENERATE_LEN_MIN 42 /* Ethernet, IPv4 and UDP headers */

/* What every packet of a burst has in common. Sums are one's complement over 16-bit words,
 * unfolded. */
struct generate_template {
	uint8_t header[GENERATE_LEN_MIN];
	uint32_t ip_sum, udp_sum; /* of all but the addresses */
	uint16_t len; /* frame bytes */
	uint16_t n_segments;
	uint16_t segments[GENERATE_SEGMENTS_MAX];
	enum tx_cksum cksum;
};

/* For the stream's Tx port; `len` bytes a frame, 0: as --txpkts says. */
void generate_template(struct generate_template *t, const struct options *opt,
	const struct stream *stream, uint16_t len);

/*
 * Makes one frame with these addresses (host order) in an mbuf from the pool of the stream's Tx
 * port. NULL: the pool is empty.
 */
struct rte_mbuf *generate_packet(
	const struct generate_template *t, const struct stream *stream, uint32_t src, uint32_t dst);

/* Sends n packets on in vectors. */
void generate_send(
	struct worker *worker, const struct stream *stream, struct rte_mbuf **pkts, unsigned int n);

#endif /* APP_FORWARD_GENERATE_H */
