/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What goes with an mbuf. rte_security's own field is registered by drivers only: the one call here
 * that is not for applications. */

#define ALLOW_INTERNAL_API

#include <errno.h>

#include "internal.h"

/* Room in an mbuf is scarce. */
struct mdata {
	uint32_t session; /* the low half of what names it; 0: none */
	uint32_t high; /* of its number */
};

#define NO_HIGH UINT32_MAX /* a number that no packet gets to */

static int offset = -1;

static struct mdata *
mdata_of(struct rte_mbuf *m)
{
	return RTE_MBUF_DYNFIELD(m, offset, struct mdata *);
}

int
nic_mdata_init(bool dynfield)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "nic_mdata",
		.size = sizeof(struct mdata),
		.align = _Alignof(struct mdata),
	};

	if (offset < 0 && (offset = rte_mbuf_dynfield_register(&field)) < 0)
		return -ENOMEM;
	return dynfield && rte_security_dynfield_register() < 0 ? -ENOMEM : 0;
}

void
nic_mdata_set(struct rte_mbuf *m, uint64_t session, const uint64_t *number)
{
	struct mdata *md = mdata_of(m);

	md->session = (uint32_t)session;
	md->high = number != NULL ? (uint32_t)(*number >> 32) : NO_HIGH;
}

/* What names the frame's session, and whether the high half of its number was given. */
uint64_t
nic_mdata_get(const struct nic *nic, struct rte_mbuf *m, bool *has_high, uint32_t *high)
{
	const struct mdata *md = mdata_of(m);

	*has_high = false;
	if ((nic->ctx.flags & RTE_SEC_CTX_F_FAST_SET_MDATA) != 0)
		return *rte_security_dynfield(m);
	*has_high = md->high != NO_HIGH;
	*high = md->high;
	return md->session != 0 ? NIC_MDATA_MAGIC | md->session : 0;
}

void
nic_mdata_wipe(struct rte_mbuf *m)
{
	mdata_of(m)->session = 0;
	nic_mdata_userdata(m, 0);
}

void
nic_mdata_userdata(struct rte_mbuf *m, uint64_t userdata)
{
	if (rte_security_dynfield_is_registered())
		*rte_security_dynfield(m) = userdata;
}
