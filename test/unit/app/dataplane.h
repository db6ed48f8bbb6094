/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_UNIT_APP_DATAPLANE_H
#define TEST_UNIT_APP_DATAPLANE_H

/*
 * The whole dataplane in one process: the program without its main(), ports that are pairs of
 * rings, rules given with the real tc and ip. A test puts frames into a port, says what must come
 * out of which, and which counters must move. The worker is stepped by the test, so nothing races.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "app.h"

/* Called by dataplane_open() when the ports' devices are there, before the program looks for them.
 */
extern void (*dataplane_wired)(unsigned int n_ports);
/* Starts EAL (once) and a program with n ports p0 .. p(n-1), forward mode io, everything at rest.
 */
void dataplane_open(unsigned int n_ports);
/* Takes it apart and fails the test if an mbuf is missing. */
void dataplane_close(void);

/* Runs a command line ("tc qdisc add dev p0 clsact", "show drops"); fails the test if it fails. */
void dataplane_command(const char *line);
/* Runs a command that must fail, with `why` somewhere in its reason. */
void dataplane_refused(const char *line, const char *why);

/* Puts a frame on the wire to port `port`. */
void dataplane_inject(unsigned int port, const void *frame, uint32_t len);
/* Puts one on as a chain of segments of `cut` bytes. */
void dataplane_inject_cut(unsigned int port, const void *frame, uint32_t len, uint32_t cut);
/* Puts one on as if a driver had marked it so: ol_flags, and port. */
void dataplane_inject_marked(
	unsigned int port, const void *frame, uint32_t len, uint64_t flags, uint16_t mark_port);
/* One round of the worker: worker_round(). */
unsigned int dataplane_turn(void);
/* Deals the streams out anew, after ports came or went. */
void dataplane_deal(void);
/* One tick of the control thread: what it looks after without being asked. */
void dataplane_tick(void);
/* What came out of `port` next, or NULL; the caller frees it. */
struct rte_mbuf *dataplane_sent(unsigned int port);
/* A frame with exactly these bytes, and no other, has come out of `port`. */
void dataplane_expect(unsigned int port, const void *frame, uint32_t len);
void dataplane_expect_nothing(void);

/* Every frame that was injected has been freed. */
bool dataplane_outside_full(void);

/* The wire behind `port` takes no more packets (a full NIC), or takes them again. */
void dataplane_block(unsigned int port, bool blocked);

/* Packets dropped for that reason since dataplane_open(). */
uint64_t dataplane_drops(enum drop_reason reason);
uint64_t dataplane_drops_all(void);

#endif /* TEST_UNIT_APP_DATAPLANE_H */
