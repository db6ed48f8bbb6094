/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What goes with an mbuf. rte_security's own field is registered by drivers only: the one call here
 * that is not for applications. */

#define ALLOW_INTERNAL_API

#include <errno.h>

#include "internal.h"

/*
 * Room in an mbuf is scarce: 4 bytes of its own, the low half of what names the session. The high
 * half of a number is where Rx would write a hash.
 */
#define HAS_HIGH 0x200000u /* a bit of the device's, which no port uses */

static int offset = -1;

static uint32_t *
mdata_of(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, offset, uint32_t *);
}

int
nic_mdata_init(bool dynfield)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "nic_mdata",
		.size = sizeof(uint32_t),
		.align = sizeof(uint32_t),
	};

	if (offset < 0 && (offset = rte_mbuf_dynfield_register(&field)) < 0)
		return -ENOMEM;
	return dynfield && rte_security_dynfield_register() < 0 ? -ENOMEM : 0;
}

void
nic_mdata_set(struct rte_mbuf *m, uint64_t session, const uint64_t *number)
{
	*mdata_of(m) = (uint32_t)session | (number != NULL ? HAS_HIGH : 0);
	if (number != NULL)
		m->hash.fdir.hi = (uint32_t)(*number >> 32);
}

/* What names the frame's session, and whether the high half of its number was given. */
uint64_t
nic_mdata_get(const struct nic *nic, struct rte_mbuf *m, bool *has_high, uint32_t *high)
{
	uint32_t session = *mdata_of(m);

	*has_high = false;
	if ((nic->ctx.flags & RTE_SEC_CTX_F_FAST_SET_MDATA) != 0)
		return *rte_security_dynfield(m);
	*has_high = (session & HAS_HIGH) != 0;
	*high = m->hash.fdir.hi;
	return session != 0 ? NIC_MDATA_MAGIC | (session & ~HAS_HIGH) : 0;
}

void
nic_mdata_wipe(struct rte_mbuf *m)
{
	*mdata_of(m) = 0;
	nic_mdata_userdata(m, 0);
}

void
nic_mdata_userdata(struct rte_mbuf *m, uint64_t userdata)
{
	if (rte_security_dynfield_is_registered())
		*rte_security_dynfield(m) = userdata;
}
