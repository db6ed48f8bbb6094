/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* rte_security's operations, and the table of sessions. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "internal.h"

/* In the application's object: what of ours it stands for. */
struct priv {
	uint64_t metadata;
};

#define GENERATION_MASK 0x3ffu

static uint64_t
metadata_of(const struct nic *nic, uint32_t slot)
{
	return NIC_MDATA_MAGIC | nic->slots[slot].generation << 22 | (uint32_t)nic->id << 16 | slot;
}

struct nic_session *
nic_session_of(struct nic *nic, uint64_t metadata)
{
	uint32_t slot = (uint32_t)metadata & NIC_SESSION_MAX;

	if (metadata == 0 || metadata_of(nic, slot) != metadata)
		return NULL;
	return nic->slots[slot].session;
}

uint64_t
nic_handle_metadata(const void *handle)
{
	const struct rte_security_session *sess = handle;
	struct priv priv = { 0 };

	if (sess != NULL)
		memcpy(&priv, sess->driver_priv_data, sizeof(priv));
	return priv.metadata;
}

struct nic_session *
nic_session_of_handle(struct nic *nic, const void *handle)
{
	return nic_session_of(nic, nic_handle_metadata(handle));
}

/* The next one from *slot on, which is then behind it; NULL at the end. */
struct nic_session *
nic_session_next(struct nic *nic, uint32_t *slot)
{
	while (*slot <= NIC_SESSION_MAX) {
		struct nic_session *s = nic->slots[(*slot)++].session;

		if (s != NULL)
			return s;
	}
	return NULL;
}

void
nic_came_late(struct nic *nic, uint64_t metadata)
{
	uint32_t slot = (uint32_t)metadata & NIC_SESSION_MAX;

	if (!nic_mdata_is_of(metadata, nic->id) || nic->slots[slot].generation == 0 ||
		nic->slots[slot].gone_counted)
		return;
	nic->slots[slot].gone_counted = true;
	nic_count(nic, destroyed_in_use);
}

static bool
is_for(const struct nic_session *s, const uint8_t *frame, const struct nic_esp *at)
{
	const struct rte_security_ipsec_tunnel_param *t = &s->ipsec.tunnel;
	const uint8_t *ip = frame + at->l3;
	bool v6 = t->type == RTE_SECURITY_IPSEC_TUNNEL_IPV6;

	if (s->ipsec.direction != RTE_SECURITY_IPSEC_SA_DIR_INGRESS ||
		at->udp != s->ipsec.options.udp_encap)
		return false;
	if (s->ipsec.mode != RTE_SECURITY_IPSEC_SA_MODE_TUNNEL)
		return true;
	return v6 == at->v6 &&
		(v6 ? memcmp(ip + 24, &t->ipv6.dst_addr, 16)
		    : memcmp(ip + 16, &t->ipv4.dst_ip, 4)) == 0;
}

/* The inbound one of a frame of ESP. */
struct nic_session *
nic_session_in(struct nic *nic, const uint8_t *frame, const struct nic_esp *at)
{
	uint32_t spi;
	struct nic_session *s;

	memcpy(&spi, frame + at->esp, sizeof(spi));
	spi = rte_be_to_cpu_32(spi);
	LIST_FOREACH (s, &nic->sessions[spi % NIC_BUCKETS], by_spi) {
		if (s->ipsec.spi == spi && is_for(s, frame, at))
			return s;
	}
	return NULL;
}

static void
session_free(struct nic_session *s)
{
	if (s == NULL)
		return;
	free(s->window.bits);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

/* Keeps the number of the slot, which no other session of it has had. */
static void
slot_empty(struct nic *nic, uint32_t slot)
{
	struct nic_session *s = nic->slots[slot].session;

	LIST_REMOVE(s, by_spi);
	nic->slots[slot].session = NULL;
	nic->slots[slot].gone_counted = false;
	session_free(s);
	nic_uncount(nic, sessions);
}

void
nic_forget(struct nic *nic)
{
	for (uint32_t slot = 0; slot <= NIC_SESSION_MAX; slot++) {
		if (nic->slots[slot].session != NULL) {
			slot_empty(nic, slot);
			nic_count(nic, forgotten);
		}
	}
}

static int
slot_fill(struct nic *nic, struct nic_session *s)
{
	uint32_t max = RTE_MIN(nic_level(nic, NIC_FAULT_session_max), NIC_SESSION_MAX), slot;

	if (atomic_load_explicit(&nic->stats[NIC_COUNT_OF(sessions)], memory_order_relaxed) >= max)
		return -ENOSPC;
	/* In turn, so that what names an old session names no new one soon. */
	do
		slot = nic->slot_hint++ % (NIC_SESSION_MAX + 1);
	while (nic->slots[slot].session != NULL);
	nic->slots[slot].generation = (nic->slots[slot].generation + 1) & GENERATION_MASK;
	if (nic->slots[slot].generation == 0)
		nic->slots[slot].generation = 1;
	nic->slots[slot].session = s;
	nic->slots[slot].gone_counted = false;
	s->metadata = metadata_of(nic, slot);
	LIST_INSERT_HEAD(&nic->sessions[s->ipsec.spi % NIC_BUCKETS], s, by_spi);
	nic_count(nic, sessions);
	nic_count(nic, created);
	return 0;
}

static bool
is_enabled(const struct nic *nic, const struct rte_security_session_conf *conf)
{
	if (conf->action_type == RTE_SECURITY_ACTION_TYPE_LOOKASIDE_PROTOCOL)
		return true;
	return conf->ipsec.direction == RTE_SECURITY_IPSEC_SA_DIR_EGRESS ? nic->tx_on : nic->rx_on;
}

static int
session_make(struct nic_session **made, const struct rte_security_session_conf *conf)
{
	struct nic_session *s = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*s), 64));
	int ret;

	if (s == NULL)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->ipsec = conf->ipsec;
	s->action = conf->action_type;
	s->userdata = (uint64_t)(uintptr_t)conf->userdata;
	s->number = conf->ipsec.esn.value;
	memcpy(s->cipher.salt, &conf->ipsec.salt, sizeof(s->cipher.salt));
	if (getrandom(&s->iv, sizeof(s->iv), 0) != sizeof(s->iv))
		ret = -EIO;
	else if ((ret = nic_cipher_init(&s->cipher, conf->crypto_xform)) == 0)
		ret = nic_window_init(&s->window, conf->ipsec.replay_win_sz, conf->ipsec.esn.value);
	if (ret != 0) {
		session_free(s);
		return ret;
	}
	*made = s;
	return 0;
}

static int
refused(struct nic *nic, int err)
{
	nic_count(nic, create_failed);
	rte_errno = -err;
	return err;
}

static int
session_create(
	void *device, struct rte_security_session_conf *conf, struct rte_security_session *sess)
{
	struct nic *nic = device;
	struct nic_session *s = NULL;
	int ret = -ENOTSUP;

	if (nic_strikes(nic, NIC_FAULT_session_create))
		return refused(nic, -(int)nic_level(nic, NIC_FAULT_create_errno));
	pthread_mutex_lock(&nic->mutex);
	if (nic_table_allows(nic->caps, conf) && is_enabled(nic, conf))
		ret = session_make(&s, conf);
	if (ret == 0)
		ret = slot_fill(nic, s);
	if (ret == 0) {
		struct priv *priv = SECURITY_GET_SESS_PRIV(sess);

		s->handle = sess;
		priv->metadata = s->metadata;
		sess->fast_mdata = s->metadata;
	} else {
		session_free(s);
	}
	pthread_mutex_unlock(&nic->mutex);
	return ret == 0 ? 0 : refused(nic, ret);
}

/* One that was forgotten meanwhile is destroyed as well: its owner cannot know. */
static int
session_destroy(void *device, struct rte_security_session *sess)
{
	struct nic *nic = device;
	struct nic_session *s;

	if (nic_strikes(nic, NIC_FAULT_session_destroy)) {
		nic_count(nic, destroy_failed);
		return -EBUSY;
	}
	pthread_mutex_lock(&nic->mutex);
	if ((s = nic_session_of_handle(nic, sess)) != NULL) {
		uint32_t slot = (uint32_t)s->metadata & NIC_SESSION_MAX;
		bool in_use = s->inside != 0;

		slot_empty(nic, slot);
		if (in_use) {
			nic_count(nic, destroyed_in_use);
			nic->slots[slot].gone_counted = true;
		}
	}
	nic_count(nic, destroyed);
	pthread_mutex_unlock(&nic->mutex);
	return 0;
}

static int
session_update(
	void *device, struct rte_security_session *sess, struct rte_security_session_conf *conf)
{
	struct nic *nic = device;
	struct nic_session *s;

	pthread_mutex_lock(&nic->mutex);
	if ((s = nic_session_of_handle(nic, sess)) != NULL) {
		s->number = conf->ipsec.esn.value;
		s->ipsec.life = conf->ipsec.life;
		s->soft = s->hard = false;
		nic_count(nic, updated);
	}
	pthread_mutex_unlock(&nic->mutex);
	return s != NULL ? 0 : -EINVAL;
}

static unsigned int
session_get_size(void *device)
{
	(void)device;
	return sizeof(struct priv);
}

static int
session_stats_get(void *device, struct rte_security_session *sess, struct rte_security_stats *stats)
{
	struct nic *nic = device;
	struct nic_session *s;
	int ret = -EINVAL;

	pthread_mutex_lock(&nic->mutex);
	if ((s = nic_session_of_handle(nic, sess)) != NULL && s->ipsec.options.stats) {
		memset(stats, 0, sizeof(*stats));
		stats->protocol = RTE_SECURITY_PROTOCOL_IPSEC;
		if (s->ipsec.direction == RTE_SECURITY_IPSEC_SA_DIR_EGRESS) {
			stats->ipsec.opackets = s->packets;
			stats->ipsec.obytes = s->bytes;
		} else {
			stats->ipsec.ipackets = s->packets;
			stats->ipsec.ibytes = s->bytes;
		}
		ret = 0;
	}
	pthread_mutex_unlock(&nic->mutex);
	return ret;
}

static int
set_pkt_metadata(void *device, struct rte_security_session *sess, struct rte_mbuf *m, void *params)
{
	struct nic *nic = device;
	const struct priv *priv = SECURITY_GET_SESS_PRIV(sess);

	if (nic_strikes(nic, NIC_FAULT_set_mdata)) {
		nic_count(nic, mdata_failed);
		return -EIO;
	}
	nic_mdata_set(m, priv->metadata, params);
	nic_count(nic, mdata_set);
	return 0;
}

static const struct rte_security_capability *
capabilities_get(void *device)
{
	struct nic *nic = device;
	const struct rte_security_capability *rows;

	pthread_mutex_lock(&nic->mutex);
	rows = nic_table_rows(nic->caps);
	pthread_mutex_unlock(&nic->mutex);
	return rows;
}

const struct rte_security_ops nic_ops = {
	.session_create = session_create,
	.session_update = session_update,
	.session_get_size = session_get_size,
	.session_stats_get = session_stats_get,
	.session_destroy = session_destroy,
	.set_pkt_metadata = set_pkt_metadata,
	.capabilities_get = capabilities_get,
};

static unsigned int
list(struct nic *nic, struct nic_session_info *to, unsigned int n)
{
	struct nic_session *s;
	uint32_t slot = 0;
	unsigned int i = 0;

	if (nic == NULL)
		return 0;
	pthread_mutex_lock(&nic->mutex);
	while (i < n && (s = nic_session_next(nic, &slot)) != NULL) {
		to[i++] = (struct nic_session_info){
			.spi = s->ipsec.spi,
			.action = s->action,
			.direction = s->ipsec.direction,
			.userdata = s->userdata,
			.number = RTE_MAX(s->number, s->window.top),
			.packets = s->packets,
		};
	}
	pthread_mutex_unlock(&nic->mutex);
	return i;
}

unsigned int
nic_sessions(uint16_t port, struct nic_session_info *to, unsigned int n)
{
	return list(nic_of_port(port), to, n);
}

unsigned int
nic_crypto_sessions(uint8_t dev, struct nic_session_info *to, unsigned int n)
{
	return list(nic_of_crypto(dev), to, n);
}
