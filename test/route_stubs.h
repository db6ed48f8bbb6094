/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_ROUTE_STUBS_H
#define TEST_ROUTE_STUBS_H

/* What a route table asks of its caller, where no packet waits for a neighbour. */

#include "route/route.h"

static inline void
route_stub_solicit(void *arg, const struct route_neigh *neigh, bool unicast)
{
	(void)arg;
	(void)neigh;
	(void)unicast;
}

static inline void
route_stub_release(
	void *arg, const struct route_neigh *neigh, void *const *pkts, unsigned int n, bool failed)
{
	(void)arg;
	(void)neigh;
	(void)pkts;
	(void)n;
	(void)failed;
}

#endif /* TEST_ROUTE_STUBS_H */
