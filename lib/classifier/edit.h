/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef CLASSIFIER_EDIT_H
#define CLASSIFIER_EDIT_H

/* Inside lib/classifier: changing bytes of a packet that may be shared, by vlan and pedit. */

#include <stdbool.h>
#include <stdint.h>

#include "packet/packet.h"

/*
 * Makes sure that nobody else reads or owns the packet's memory, and that its first `len` bytes lie
 * in its first segment with `headroom` bytes before them: if need be by a copy that takes the
 * packet's place. False, with nothing changed, if there is no mbuf for that, or the frame is
 * shorter.
 */
bool edit_own(struct rte_mbuf **m, uint32_t len, uint32_t headroom);

/* Makes packet i's view true again after a change, where views have been read. */
static inline void
edit_view(struct packet_vector *vector, unsigned int i)
{
	if (vector->parsed)
		packet_view_parse(vector->pkts[i], &vector->views[i]);
}

#endif /* CLASSIFIER_EDIT_H */
