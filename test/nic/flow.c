/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* rte_flow: rules that lead ESP to sessions. Patterns of ETH, VLAN, IPV4, IPV6, UDP and ESP. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"
#include "wrap.h"

static int
no_flow(struct rte_flow_error *error)
{
	return rte_flow_error_set(error, ENOSYS, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL,
		"this driver has no rte_flow");
}

static int
no_item(struct rte_flow_error *error, const void *cause)
{
	return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, cause,
		"only ETH, VLAN, IPV4, IPV6, UDP and ESP");
}

static void
take_ip4(struct nic_flow *f, const struct rte_flow_item *item)
{
	const struct rte_flow_item_ipv4 *spec = item->spec;
	const struct rte_flow_item_ipv4 *mask =
		item->mask != NULL ? item->mask : &rte_flow_item_ipv4_mask;

	f->family = AF_INET;
	if (spec == NULL)
		return;
	memcpy(f->src, &spec->hdr.src_addr, 4);
	memcpy(f->dst, &spec->hdr.dst_addr, 4);
	memcpy(f->src_mask, &mask->hdr.src_addr, 4);
	memcpy(f->dst_mask, &mask->hdr.dst_addr, 4);
}

static void
take_ip6(struct nic_flow *f, const struct rte_flow_item *item)
{
	const struct rte_flow_item_ipv6 *spec = item->spec;
	const struct rte_flow_item_ipv6 *mask =
		item->mask != NULL ? item->mask : &rte_flow_item_ipv6_mask;

	f->family = AF_INET6;
	if (spec == NULL)
		return;
	memcpy(f->src, &spec->hdr.src_addr, 16);
	memcpy(f->dst, &spec->hdr.dst_addr, 16);
	memcpy(f->src_mask, &mask->hdr.src_addr, 16);
	memcpy(f->dst_mask, &mask->hdr.dst_addr, 16);
}

static void
take_esp(struct nic_flow *f, const struct rte_flow_item *item)
{
	const struct rte_flow_item_esp *spec = item->spec;
	const struct rte_flow_item_esp *mask =
		item->mask != NULL ? item->mask : &rte_flow_item_esp_mask;

	if (spec == NULL)
		return;
	f->spi = spec->hdr.spi;
	f->spi_mask = mask->hdr.spi;
}

static int
take_pattern(struct nic_flow *f, const struct rte_flow_item *item, struct rte_flow_error *error)
{
	bool esp = false;

	for (; item->type != RTE_FLOW_ITEM_TYPE_END; item++) {
		switch (item->type) {
		case RTE_FLOW_ITEM_TYPE_VOID:
		case RTE_FLOW_ITEM_TYPE_ETH:
		case RTE_FLOW_ITEM_TYPE_VLAN:
			break;
		case RTE_FLOW_ITEM_TYPE_IPV4:
			take_ip4(f, item);
			break;
		case RTE_FLOW_ITEM_TYPE_IPV6:
			take_ip6(f, item);
			break;
		case RTE_FLOW_ITEM_TYPE_UDP:
			f->udp = true;
			break;
		case RTE_FLOW_ITEM_TYPE_ESP:
			take_esp(f, item);
			esp = true;
			break;
		default:
			return no_item(error, item);
		}
	}
	return esp ? 0 : no_item(error, item);
}

static int
take_actions(struct nic *nic, struct nic_flow *f, const struct rte_flow_action *action,
	struct rte_flow_error *error)
{
	bool security = false;

	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		if (action->type == RTE_FLOW_ACTION_TYPE_SECURITY) {
			security = true;
			f->session = action->conf;
			if (f->session != NULL && nic_session_of_handle(nic, f->session) == NULL)
				return rte_flow_error_set(error, EINVAL,
					RTE_FLOW_ERROR_TYPE_ACTION_CONF, f->session,
					"no session of this port");
		} else if (action->type != RTE_FLOW_ACTION_TYPE_VOID &&
			action->type != RTE_FLOW_ACTION_TYPE_QUEUE &&
			action->type != RTE_FLOW_ACTION_TYPE_RSS &&
			action->type != RTE_FLOW_ACTION_TYPE_PASSTHRU) {
			return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION,
				action, "only SECURITY, QUEUE, RSS and PASSTHRU");
		}
	}
	return security ? 0
			: rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, action,
				  "no action SECURITY");
}

/* Under the mutex. */
static int
flow_take(struct nic *nic, struct nic_flow *f, const struct rte_flow_attr *attr,
	const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
	struct rte_flow_error *error)
{
	int ret;

	memset(f, 0, sizeof(*f));
	f->attr = *attr;
	if (attr->transfer || attr->ingress == attr->egress)
		return rte_flow_error_set(
			error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR, attr, "ingress or egress");
	if ((ret = take_pattern(f, pattern, error)) != 0)
		return ret;
	return take_actions(nic, f, actions, error);
}

int
__wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct nic *nic = nic_of_port(port);
	struct nic_flow f;
	int ret;

	if (nic == NULL)
		return __real_rte_flow_validate(port, attr, pattern, actions, error);
	if ((nic->options & NIC_NO_FLOW) != 0)
		return no_flow(error);
	pthread_mutex_lock(&nic->mutex);
	ret = flow_take(nic, &f, attr, pattern, actions, error);
	pthread_mutex_unlock(&nic->mutex);
	return ret;
}

static int
flow_add(struct nic *nic, struct nic_flow *f, const struct rte_flow_attr *attr,
	const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
	struct rte_flow_error *error)
{
	int ret;

	if ((nic->options & NIC_NO_FLOW) != 0)
		return no_flow(error);
	if (f == NULL || nic_strikes(nic, NIC_FAULT_flow_create))
		return rte_flow_error_set(error, ENOMEM, RTE_FLOW_ERROR_TYPE_HANDLE, NULL,
			"no room for another rule");
	pthread_mutex_lock(&nic->mutex);
	if ((ret = flow_take(nic, f, attr, pattern, actions, error)) == 0) {
		LIST_INSERT_HEAD(&nic->flows, f, next);
		nic_count(nic, flows);
		nic_count(nic, flow_created);
	}
	pthread_mutex_unlock(&nic->mutex);
	return ret;
}

struct rte_flow *
__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct nic *nic = nic_of_port(port);
	struct nic_flow *f;

	if (nic == NULL)
		return __real_rte_flow_create(port, attr, pattern, actions, error);
	f = calloc(1, sizeof(*f));
	if (flow_add(nic, f, attr, pattern, actions, error) == 0)
		return (struct rte_flow *)f;
	nic_count(nic, flow_failed);
	free(f);
	return NULL;
}

int
__wrap_rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *error)
{
	struct nic *nic = nic_of_port(port);
	struct nic_flow *f;

	if (nic == NULL)
		return __real_rte_flow_destroy(port, flow, error);
	if ((nic->options & NIC_NO_FLOW) != 0)
		return no_flow(error);
	if (nic_strikes(nic, NIC_FAULT_flow_destroy))
		return rte_flow_error_set(
			error, EIO, RTE_FLOW_ERROR_TYPE_HANDLE, flow, "the device does not answer");
	pthread_mutex_lock(&nic->mutex);
	LIST_FOREACH (f, &nic->flows, next) {
		if (f == (struct nic_flow *)flow)
			break;
	}
	if (f != NULL) {
		LIST_REMOVE(f, next);
		nic_uncount(nic, flows);
	}
	pthread_mutex_unlock(&nic->mutex);
	if (f == NULL)
		return rte_flow_error_set(
			error, ENOENT, RTE_FLOW_ERROR_TYPE_HANDLE, flow, "no such rule");
	free(f);
	return 0;
}

int
__wrap_rte_flow_flush(uint16_t port, struct rte_flow_error *error)
{
	struct nic *nic = nic_of_port(port);

	if (nic == NULL)
		return __real_rte_flow_flush(port, error);
	if ((nic->options & NIC_NO_FLOW) != 0)
		return no_flow(error);
	pthread_mutex_lock(&nic->mutex);
	nic_flows_clear(nic);
	pthread_mutex_unlock(&nic->mutex);
	return 0;
}

void
nic_flows_clear(struct nic *nic)
{
	struct nic_flow *f;

	while ((f = LIST_FIRST(&nic->flows)) != NULL) {
		LIST_REMOVE(f, next);
		nic_uncount(nic, flows);
		free(f);
	}
}

static bool
same(const uint8_t *a, const uint8_t *b, const uint8_t *mask, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (((a[i] ^ b[i]) & mask[i]) != 0)
			return false;
	}
	return true;
}

static bool
flow_matches(const struct nic_flow *f, const uint8_t *frame, const struct nic_esp *at)
{
	unsigned int n = at->v6 ? 16 : 4;
	const uint8_t *src = frame + at->l3 + (at->v6 ? 8 : 12);
	uint32_t spi;

	memcpy(&spi, frame + at->esp, sizeof(spi));
	if (!f->attr.ingress || ((spi ^ f->spi) & f->spi_mask) != 0 || (f->udp && !at->udp))
		return false;
	if (f->family == 0)
		return true;
	return f->family == (at->v6 ? AF_INET6 : AF_INET) && same(src, f->src, f->src_mask, n) &&
		same(src + n, f->dst, f->dst_mask, n);
}

bool
nic_steered(struct nic *nic, const struct nic_session *s, const uint8_t *frame,
	const struct nic_esp *at)
{
	struct nic_flow *f;

	if ((nic->options & NIC_NO_STEERING) != 0)
		return true;
	LIST_FOREACH (f, &nic->flows, next) {
		if ((f->session == NULL || f->session == s->handle) && flow_matches(f, frame, at))
			return true;
	}
	return false;
}
