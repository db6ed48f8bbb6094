/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_FORWARD_FORWARD_H
#define APP_FORWARD_FORWARD_H

/*
 * Forward modes: what happens to packets between the ingress and the egress hook. One small file
 * each, registered by constructor under testpmd's name.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "packet/packet.h"

#define FORWARD_BURST_MAX 512

struct worker;
struct stream;

struct forward_mode {
	const char *name;
	const char *help;
	/* Takes over the packets that passed the ingress hook of stream->rx_port. */
	void (*forward)(
		struct worker *worker, const struct stream *stream, struct packet_vector *vector);
	/* Makes packets instead of receiving them; returns how many. NULL: receives. */
	unsigned int (*generate)(struct worker *worker, struct stream *stream);
	/* Once a loop of each worker, beside the polling; returns the packets it went on with.
	 * NULL: nothing to do. */
	unsigned int (*turn)(struct worker *worker);
	/* Packets of the worker's are under way, and turn() goes on with them. NULL: never. While
	 * it does not run the control thread may ask, and call turn() for it. */
	bool (*busy)(const struct worker *worker);
	STAILQ_ENTRY(forward_mode) next;
};

void forward_register(struct forward_mode *mode);
struct forward_mode *forward_find(const char *name);
/* "io, rxonly, ...": in a buffer of its own, for messages. */
const char *forward_names(void);

#define FORWARD_REGISTER(mode) \
	static void __attribute__((constructor)) forward_register_##mode(void) \
	{ \
		forward_register(&mode); \
	} \
	struct forward_mode /* swallow the semicolon */

#endif /* APP_FORWARD_FORWARD_H */
