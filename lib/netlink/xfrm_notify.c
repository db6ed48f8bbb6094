/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What `ip xfrm monitor` and IKE daemons hear. */

#include <bsd/string.h>
#include <string.h>

#include "netlink/xfrm.h"

/* One notification: where it goes, on whose behalf. */
struct note {
	struct netlink_server *server;
	struct netlink_request *req;
	unsigned int group;
	struct netlink_put put;
};

static bool
note_begin(struct note *n, uint16_t type, const void *header, size_t len)
{
	return netlink_notify_begin(n->server, n->req, &n->put, type, 0, header, len);
}

static void
note_end(struct note *n)
{
	netlink_notify_end(n->server, n->req, &n->put, NETLINK_XFRM, n->group);
}

/* SAs. */

static void
tell_sa(struct note *n, uint16_t type, const struct ipsec_cache_sa_spec *spec)
{
	if (!note_begin(n, type, &spec->info, sizeof(spec->info)))
		return;
	xfrm_sa_put(&n->put, spec);
	note_end(n);
}

static void
tell_sa_del(struct note *n, const struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_usersa_id id;

	xfrm_sa_id_of(spec, &id);
	if (!note_begin(n, XFRM_MSG_DELSA, &id, sizeof(id)))
		return;
	netlink_put_data(&n->put, XFRMA_SA, &spec->info, sizeof(spec->info));
	xfrm_sa_put(&n->put, spec);
	note_end(n);
}

static void
tell_sa_expire(struct note *n, const struct ipsec_cache_sa_spec *spec, bool hard)
{
	struct xfrm_user_expire expire;

	memset(&expire, 0, sizeof(expire));
	expire.state = spec->info;
	expire.hard = hard;
	if (!note_begin(n, XFRM_MSG_EXPIRE, &expire, sizeof(expire)))
		return;
	xfrm_sa_put_tail(&n->put, spec);
	note_end(n);
}

static void
tell_ae(struct note *n, const struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_aevent_id id;

	xfrm_ae_header(spec, XFRM_AE_CR, &id);
	if (!note_begin(n, XFRM_MSG_NEWAE, &id, sizeof(id)))
		return;
	xfrm_ae_put(&n->put, spec, XFRM_AE_CR);
	note_end(n);
}

static void
sa_event(struct note *n, enum ipsec_cache_event event, const struct ipsec_cache_sa *sa)
{
	struct ipsec_cache_sa_spec spec;

	ipsec_cache_sa_describe(sa, &spec);
	switch (event) {
	case IPSEC_CACHE_EVENT_SA_DEL:
		tell_sa_del(n, &spec);
		break;
	case IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT:
	case IPSEC_CACHE_EVENT_SA_EXPIRE_HARD:
		tell_sa_expire(n, &spec, event == IPSEC_CACHE_EVENT_SA_EXPIRE_HARD);
		break;
	case IPSEC_CACHE_EVENT_AE:
		tell_ae(n, &spec);
		break;
	default:
		tell_sa(n, event == IPSEC_CACHE_EVENT_SA_UPDATE ? XFRM_MSG_UPDSA : XFRM_MSG_NEWSA,
			&spec);
		break;
	}
	explicit_bzero(&spec, sizeof(spec));
}

static void
sa_flush_event(struct note *n, uint8_t proto)
{
	const struct xfrm_usersa_flush flush = { .proto = proto };

	if (note_begin(n, XFRM_MSG_FLUSHSA, &flush, sizeof(flush)))
		note_end(n);
}

/* Policies. */

static void
tell_policy(struct note *n, uint16_t type, const struct ipsec_cache_policy_spec *spec)
{
	if (!note_begin(n, type, &spec->info, sizeof(spec->info)))
		return;
	xfrm_policy_put(&n->put, spec);
	note_end(n);
}

static void
tell_policy_del(struct note *n, const struct ipsec_cache_policy_spec *spec)
{
	struct xfrm_userpolicy_id id;

	memset(&id, 0, sizeof(id));
	id.sel = spec->info.sel;
	id.index = spec->info.index;
	id.dir = spec->info.dir;
	if (!note_begin(n, XFRM_MSG_DELPOLICY, &id, sizeof(id)))
		return;
	netlink_put_data(&n->put, XFRMA_POLICY, &spec->info, sizeof(spec->info));
	xfrm_policy_put(&n->put, spec);
	note_end(n);
}

static void
tell_policy_expire(struct note *n, const struct ipsec_cache_policy_spec *spec, bool hard)
{
	struct xfrm_user_polexpire expire;

	memset(&expire, 0, sizeof(expire));
	expire.pol = spec->info;
	expire.hard = hard;
	if (!note_begin(n, XFRM_MSG_POLEXPIRE, &expire, sizeof(expire)))
		return;
	xfrm_policy_put(&n->put, spec);
	note_end(n);
}

static void
policy_event(struct note *n, enum ipsec_cache_event event, const struct ipsec_cache_policy *policy)
{
	struct ipsec_cache_policy_spec spec;

	ipsec_cache_policy_describe(policy, &spec);
	switch (event) {
	case IPSEC_CACHE_EVENT_POLICY_DEL:
		tell_policy_del(n, &spec);
		break;
	case IPSEC_CACHE_EVENT_POLICY_EXPIRE_SOFT:
	case IPSEC_CACHE_EVENT_POLICY_EXPIRE_HARD:
		tell_policy_expire(n, &spec, event == IPSEC_CACHE_EVENT_POLICY_EXPIRE_HARD);
		break;
	default:
		tell_policy(n,
			event == IPSEC_CACHE_EVENT_POLICY_UPDATE ? XFRM_MSG_UPDPOLICY
								 : XFRM_MSG_NEWPOLICY,
			&spec);
		break;
	}
}

static void
policy_flush_event(struct note *n)
{
	const struct xfrm_userpolicy_type type = { .type = XFRM_POLICY_TYPE_MAIN };

	if (!note_begin(n, XFRM_MSG_FLUSHPOLICY, "", 0))
		return;
	netlink_put_data(&n->put, XFRMA_POLICY_TYPE, &type, sizeof(type));
	note_end(n);
}

/* Packets' own. */

static void
acquire_event(struct note *n, const struct ipsec_cache_acquire *a)
{
	struct ipsec_cache_policy_spec policy;
	struct xfrm_user_acquire acquire;

	ipsec_cache_policy_describe(a->policy, &policy);
	memset(&acquire, 0, sizeof(acquire));
	acquire.id = a->tmpl->id;
	acquire.id.daddr = a->daddr;
	acquire.saddr = a->saddr;
	acquire.sel = a->sel;
	acquire.policy = policy.info;
	acquire.aalgos = a->tmpl->aalgos;
	acquire.ealgos = a->tmpl->ealgos;
	acquire.calgos = a->tmpl->calgos;
	acquire.seq = a->seq;
	if (!note_begin(n, XFRM_MSG_ACQUIRE, &acquire, sizeof(acquire)))
		return;
	xfrm_policy_put(&n->put, &policy);
	note_end(n);
	*a->told = true;
}

static void
mapping_event(struct note *n, const struct ipsec_cache_mapping *m)
{
	struct ipsec_cache_sa_spec spec;
	struct xfrm_user_mapping mapping;

	ipsec_cache_sa_describe(m->sa, &spec);
	memset(&mapping, 0, sizeof(mapping));
	xfrm_sa_id_of(&spec, &mapping.id);
	mapping.reqid = spec.info.reqid;
	mapping.old_saddr = spec.info.saddr;
	mapping.new_saddr = m->saddr;
	mapping.old_sport = spec.encap.encap_sport;
	mapping.new_sport = m->sport;
	explicit_bzero(&spec, sizeof(spec));
	if (note_begin(n, XFRM_MSG_MAPPING, &mapping, sizeof(mapping)))
		note_end(n);
}

static unsigned int
event_group(enum ipsec_cache_event event)
{
	switch (event) {
	case IPSEC_CACHE_EVENT_SA_ADD:
	case IPSEC_CACHE_EVENT_SA_UPDATE:
	case IPSEC_CACHE_EVENT_SA_DEL:
	case IPSEC_CACHE_EVENT_SA_FLUSH:
		return XFRMNLGRP_SA;
	case IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT:
	case IPSEC_CACHE_EVENT_SA_EXPIRE_HARD:
	case IPSEC_CACHE_EVENT_POLICY_EXPIRE_SOFT:
	case IPSEC_CACHE_EVENT_POLICY_EXPIRE_HARD:
		return XFRMNLGRP_EXPIRE;
	case IPSEC_CACHE_EVENT_AE:
		return XFRMNLGRP_AEVENTS;
	case IPSEC_CACHE_EVENT_POLICY_ADD:
	case IPSEC_CACHE_EVENT_POLICY_UPDATE:
	case IPSEC_CACHE_EVENT_POLICY_DEL:
	case IPSEC_CACHE_EVENT_POLICY_FLUSH:
		return XFRMNLGRP_POLICY;
	case IPSEC_CACHE_EVENT_ACQUIRE:
		return XFRMNLGRP_ACQUIRE;
	case IPSEC_CACHE_EVENT_MAPPING:
		return XFRMNLGRP_MAPPING;
	}
	return XFRMNLGRP_NONE;
}

void
xfrm_notify(struct netlink_server *server, struct netlink_request *req,
	enum ipsec_cache_event event, const void *object)
{
	struct note n = { .server = server, .req = req, .group = event_group(event) };

	if (!netlink_notify_wanted(server, req, NETLINK_XFRM, n.group))
		return;
	switch (event) {
	case IPSEC_CACHE_EVENT_SA_FLUSH:
		sa_flush_event(&n, *(const uint8_t *)object);
		break;
	case IPSEC_CACHE_EVENT_POLICY_FLUSH:
		policy_flush_event(&n);
		break;
	case IPSEC_CACHE_EVENT_ACQUIRE:
		acquire_event(&n, object);
		break;
	case IPSEC_CACHE_EVENT_MAPPING:
		mapping_event(&n, object);
		break;
	case IPSEC_CACHE_EVENT_POLICY_ADD:
	case IPSEC_CACHE_EVENT_POLICY_UPDATE:
	case IPSEC_CACHE_EVENT_POLICY_DEL:
	case IPSEC_CACHE_EVENT_POLICY_EXPIRE_SOFT:
	case IPSEC_CACHE_EVENT_POLICY_EXPIRE_HARD:
		policy_event(&n, event, object);
		break;
	default:
		sa_event(&n, event, object);
		break;
	}
}
