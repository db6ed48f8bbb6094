/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <netinet/in.h>
#include <string.h>

#include "csum_action/handle.h"
#include "csum_action/update.h"

/* Whether a field may stand where `value` is right: 0 and 0xffff are the same number. */
static bool
same_sum(uint16_t field, uint16_t value)
{
	return field == value || ((field == 0 || value == 0) && (field ^ value) == UINT16_MAX);
}

static enum csum_action_state
check_ipv4(const struct csum_impl *impl, const struct rte_mbuf *m, const struct packet_view *view)
{
	uint8_t buf;
	const uint8_t *p;

	if (view->l3 != PACKET_L3_IPV4 || (view->flags & PACKET_F_L3) == 0 ||
		(p = packet_read(m, view->l3_off, 1, &buf)) == NULL)
		return CSUM_ACTION_STATE_ABSENT;
	if (csum_is_pending_ip(m->ol_flags))
		return CSUM_ACTION_STATE_PENDING;
	/* with the field in it a right sum is all ones; it is never 0, for the version is not */
	return csum_range(impl, m, view->l3_off, view->l3_off + (*p & 0xf) * 4u) == UINT16_MAX
		? CSUM_ACTION_STATE_GOOD
		: CSUM_ACTION_STATE_BAD;
}

static enum csum_action_state
check_l4(const struct csum_impl *impl, const struct rte_mbuf *m, const struct packet_view *view)
{
	struct csum_l4 l4;
	uint8_t buf[4];
	const void *p;
	uint32_t value, field = 0;
	uint16_t is, should;
	bool good;

	if ((view->flags & PACKET_F_CUT) != 0 ||
		csum_l4_find(m, view, CSUM_FLAGS_L4, &l4) != CSUM_ACTION_COMPUTED ||
		(p = packet_read(m, l4.field, l4.crc ? 4 : 2, buf)) == NULL)
		return CSUM_ACTION_STATE_ABSENT;
	if (csum_is_pending_l4(m->ol_flags))
		return CSUM_ACTION_STATE_PENDING;
	if (l4.none)
		return CSUM_ACTION_STATE_NONE;
	memcpy(&field, p, l4.crc ? 4 : 2);
	value = csum_l4_value(impl, m, view, &l4);
	/* UDP over IPv6 and UDP-Lite must have a sum: 0 is none (rule A6) */
	if (l4.crc || (l4.ones && field == 0)) {
		good = field == value;
	} else {
		memcpy(&is, &field, sizeof(is));
		memcpy(&should, &value, sizeof(should));
		good = same_sum(is, should);
	}
	return good ? CSUM_ACTION_STATE_GOOD : CSUM_ACTION_STATE_BAD;
}

void
csum_action_check(const struct csum_action *csum, const struct rte_mbuf *m,
	const struct packet_view *view, enum csum_action_state *ip, enum csum_action_state *l4)
{
	*ip = check_ipv4(csum->impl, m, view);
	*l4 = check_l4(csum->impl, m, view);
}
