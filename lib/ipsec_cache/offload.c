/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Which SA is whose. An SA that names a device gets what it asks for there, or is refused; any
 * other the best that the device of its route can do for it, or a crypto device, or the CPU. What a
 * session cannot do any more the CPU does at once; what the CPU does is given to a device again
 * when an SA is looked at, which is about once a second.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include <rte_ethdev.h>
#include <rte_jhash.h>

#include "ipsec_cache/device.h"
#include "ipsec_cache/lookaside.h"
#include "ipsec_cache/offload.h"
#include "ipsec_cache/selector.h"

/* linux/xfrm.h of 6.2 has its name. */
#define OFFLOAD_PACKET 4 /* XFRM_OFFLOAD_PACKET */

#define RETRY_MS 10000
#define SILENT_PACKETS 64 /* given in a second or so, of which none left */
/*
 * Numbers that a NIC's begin after those that were given out when it is asked for a session, so
 * that the CPU, which goes on until the first packet meets the session, does not come to them: at
 * 10 M packets a second it takes 100 ms for so many.
 */
#define AHEAD (UINT64_C(1) << 20)

static int
refuse(struct ipsec_cache *ic, const struct sad_entry *e, int err, const char *name,
	const char *missing, const char **why)
{
	snprintf(ic->why, sizeof(ic->why), "%s cannot do the SA with SPI 0x%08x: %s", name,
		ntohl(e->sa.spec.info.id.spi), missing);
	*why = ic->why;
	return err;
}

static bool
is_inbound(const struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec)
{
	struct ipsec_cache_hop hop = { 0 };

	if (spec->dir != 0)
		return spec->dir == SAD_DIR_IN;
	if (spec->offload_ifindex != 0)
		return (spec->offload_flags & XFRM_OFFLOAD_INBOUND) != 0;
	ic->conf.resolve(ic->conf.arg, (uint8_t)spec->info.family, &spec->info.id.daddr, 0, &hop);
	return hop.kind == IPSEC_CACHE_HOP_LOCAL;
}

/* The device that its packets leave, or most likely come in, by; 0: none. */
static uint32_t
route_ifindex(const struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, bool in)
{
	struct ipsec_cache_hop hop = { 0 };

	ic->conf.resolve(ic->conf.arg, (uint8_t)spec->info.family,
		in ? &spec->info.saddr : &spec->info.id.daddr,
		rte_jhash_1word(spec->info.id.spi, 0), &hop);
	return hop.kind == IPSEC_CACHE_HOP_FORWARD ? hop.ifindex : 0;
}

/* Where a NIC's numbers begin. */
static uint64_t
first_number(const struct ipsec_cache_rt *rt, bool in)
{
	uint64_t oseq = ipsec_load(&rt->oseq);

	if (in)
		return ipsec_window_top(&rt->window);
	return ipsec_load(&rt->first_used) == 0 ? oseq : oseq + AHEAD;
}

/* dev: a port, or else crypto. */
static struct ipsec_session *
try(struct ipsec_cache *ic, struct ipsec_device *dev, struct ipsec_crypto *crypto,
	struct sad_entry *e, enum ipsec_session_kind kind, bool in, const char **missing)
{
	uint64_t start = first_number(e->sa.rt, in);

	if ((kind & IPSEC_SESSION_PROTOCOL) != 0 && !in && start > e->sa.rt->oseq_max - AHEAD) {
		*missing = "the SA has hardly any numbers left";
		return NULL;
	}
	e->offload.esn_high = (uint32_t)(start >> 32);
	if (crypto != NULL)
		return ipsec_lookaside_session(ic, crypto, e->sa.rt, kind, in, start, missing);
	return ipsec_session_create(ic, dev, e->sa.rt, kind, in, start, missing);
}

static void
wait_for_retry(const struct ipsec_cache *ic, struct sad_entry *e)
{
	e->offload.retry_ms = ic->now_ms + RETRY_MS;
	e->offload.arrivals = ic->arrivals;
}

static bool
waits_for_retry(const struct ipsec_cache *ic, const struct sad_entry *e)
{
	return ic->now_ms < e->offload.retry_ms && e->offload.arrivals == ic->arrivals;
}

/* Why it has no session, or none of that device: shown with the SA. */
static void
note_lack(struct sad_entry *e, uint32_t ifindex, const struct ipsec_crypto *crypto,
	const char *missing)
{
	e->offload.missing = missing;
	e->offload.ifindex = ifindex;
	e->offload.crypto = crypto;
}

/* The best of a device for an SA that leaves it the choice. */
static struct ipsec_session *
try_best(struct ipsec_cache *ic, struct ipsec_device *dev, struct sad_entry *e, bool in)
{
	const char *lacks = ipsec_no_inline_crypto, *missing;
	struct ipsec_session *s = NULL;

	/* A NIC that does ESP does not tell when a NAT moves the peer, which IKE has to know. */
	if (!in || !e->sa.spec.has_encap)
		s = try(ic, dev, NULL, e, IPSEC_SESSION_INLINE_PROTOCOL, in, &lacks);
	if (s == NULL)
		s = try(ic, dev, NULL, e, IPSEC_SESSION_INLINE_CRYPTO, in, &missing);
	if (s == NULL)
		note_lack(e, dev->conf.ifindex, NULL,
			missing == ipsec_no_inline_crypto ? lacks : missing);
	return s;
}

/* The best of the first crypto device that can do it. */
static struct ipsec_session *
try_crypto(struct ipsec_cache *ic, struct sad_entry *e, bool in)
{
	struct ipsec_session *s = NULL;
	struct ipsec_crypto *dev;
	const char *missing;
	unsigned int i;

	for (i = 0; s == NULL && (dev = ipsec_lookaside_dev(ic, i)) != NULL; i++) {
		if (!in || !e->sa.spec.has_encap) /* as in try_best() */
			s = try(ic, NULL, dev, e, IPSEC_SESSION_LOOKASIDE_PROTOCOL, in, &missing);
		if (s == NULL)
			s = try(ic, NULL, dev, e, IPSEC_SESSION_LOOKASIDE_CRYPTO, in, &missing);
		if (s == NULL)
			note_lack(e, 0, dev, missing);
	}
	return s;
}

/* What an SA asks for by itself. NULL: it cannot be had, with the error. */
static struct ipsec_session *
try_asked(struct ipsec_cache *ic, struct sad_entry *e, int *err, const char **why)
{
	const struct ipsec_cache_sa_spec *spec = &e->sa.spec;
	struct ipsec_device *dev = ipsec_device_find(ic, spec->offload_ifindex);
	bool packet = (spec->offload_flags & OFFLOAD_PACKET) != 0;
	const char *missing = "it has no rte_security, or is down";
	struct ipsec_session *s = NULL;
	char name[32];

	if (spec->offload_name[0] != '\0')
		snprintf(name, sizeof(name), "Port %s", spec->offload_name);
	else
		snprintf(name, sizeof(name), "Device %u", spec->offload_ifindex);
	if (dev != NULL) {
		snprintf(name, sizeof(name), "Port %s", dev->conf.name);
		s = try(ic, dev, NULL, e,
			packet ? IPSEC_SESSION_INLINE_PROTOCOL : IPSEC_SESSION_INLINE_CRYPTO,
			is_inbound(ic, spec), &missing);
		wait_for_retry(ic, e); /* if it is not had now */
	}
	if (s == NULL)
		*err = refuse(ic, e, -EOPNOTSUPP, name, missing, why);
	note_lack(e, spec->offload_ifindex, NULL, s == NULL ? missing : NULL);
	return s;
}

static int
check_asked(struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, const char **why)
{
	bool in = (spec->offload_flags & XFRM_OFFLOAD_INBOUND) != 0;

	if ((spec->offload_flags & ~(XFRM_OFFLOAD_INBOUND | XFRM_OFFLOAD_IPV6 | OFFLOAD_PACKET)) !=
		0)
		return ipsec_refuse(-EINVAL, why, "There is no such offload flag");
	if (ic->conf.offload == IPSEC_CACHE_OFFLOAD_OFF)
		return ipsec_refuse(-EOPNOTSUPP, why,
			"No port here does ESP: offload is turned off (--ipsec-offload=off)");
	if (spec->dir != 0 && (spec->dir == SAD_DIR_IN) != in)
		return ipsec_refuse(-EINVAL, why,
			"The SA's direction and that of its offload are not the same");
	return 0;
}

/* Of the port of its route, for an SA that names no device. */
static struct ipsec_session *
choose_port(struct ipsec_cache *ic, struct sad_entry *e, bool in)
{
	struct ipsec_device *dev = NULL;

	if (ic->conf.offload == IPSEC_CACHE_OFFLOAD_AUTO && ipsec_devices_any(ic))
		dev = ipsec_device_find(ic, route_ifindex(ic, &e->sa.spec, in));
	return dev != NULL ? try_best(ic, dev, e, in) : NULL;
}

/* A session for an SA that names no device; NULL: the CPU. */
static struct ipsec_session *
choose(struct ipsec_cache *ic, struct sad_entry *e)
{
	bool in = is_inbound(ic, &e->sa.spec);
	struct ipsec_session *s;

	note_lack(e, 0, NULL, NULL);
	if ((s = choose_port(ic, e, in)) != NULL || (s = try_crypto(ic, e, in)) != NULL ||
		e->offload.missing == NULL)
		return s;
	ic->fallbacks++;
	wait_for_retry(ic, e);
	return NULL;
}

/* Are there devices that an SA may get without asking? */
static bool
any(const struct ipsec_cache *ic)
{
	return ipsec_lookaside_dev(ic, 0) != NULL ||
		(ic->conf.offload == IPSEC_CACHE_OFFLOAD_AUTO && ipsec_devices_any(ic));
}

int
ipsec_offload_begin(struct ipsec_cache *ic, struct sad_entry *e, const char **why)
{
	struct ipsec_session *s;
	int err = 0;

	if (e->sa.spec.offload_ifindex != 0) {
		if ((err = check_asked(ic, &e->sa.spec, why)) != 0 ||
			(s = try_asked(ic, e, &err, why)) == NULL)
			return err;
	} else {
		if (!any(ic) || (s = choose(ic, e)) == NULL)
			return 0;
	}
	ipsec_session_publish(s);
	return 0;
}

static struct ipsec_session *
session_of(const struct sad_entry *e)
{
	return e->sa.rt != NULL ? atomic_load_explicit(&e->sa.rt->session, memory_order_relaxed)
				: NULL;
}

void
ipsec_offload_end(struct sad_entry *e)
{
	struct ipsec_session *s = session_of(e);

	if (s != NULL)
		ipsec_session_retire(s);
}

/* --- later --- */

static void
leave(struct ipsec_cache *ic, struct sad_entry *e, struct ipsec_session *s, const char *missing)
{
	note_lack(e, s->ifindex, s->crypto, missing);
	ic->fallbacks++;
	ipsec_session_retire(s);
}

/* The high half of numbers has changed: a NIC that does not count itself is told. */
static void
tell_esn(struct sad_entry *e, const struct ipsec_session *s)
{
	const struct ipsec_cache_rt *rt = e->sa.rt;
	uint64_t number = s->in ? ipsec_window_top(&rt->window) : ipsec_load(&rt->oseq);
	struct ipsec_want want;

	if (s->kind != IPSEC_SESSION_INLINE_CRYPTO || (rt->flags & IPSEC_RT_ESN) == 0 ||
		(uint32_t)(number >> 32) == e->offload.esn_high)
		return;
	ipsec_want_fill(&want, rt, RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO, s->in);
	want.conf.userdata = (void *)(uintptr_t)s->id;
	want.conf.ipsec.esn.value = number;
	/* drivers that need no telling do not have it */
	(void)rte_security_session_update(s->ctx, s->security, &want.conf);
	e->offload.esn_high = (uint32_t)(number >> 32);
}

/*
 * What a driver counts: does it send nothing of what the SA gives it? Where it does not count,
 * nobody can know.
 */
static const char *
fails_silently(struct sad_entry *e, struct ipsec_session *s)
{
	uint64_t given = ipsec_load(&e->sa.rt->packets), more = given - e->offload.given;
	struct rte_security_stats stats = { 0 };
	bool none;
	int err;

	if (s->in || ipsec_session_is_lookaside(s) || !s->counted)
		return NULL;
	if ((err = rte_security_session_stats_get(s->ctx, s->security, &stats)) == -ENOTSUP)
		return NULL;
	if (err != 0)
		return "it does not know its session any more";
	none = stats.ipsec.opackets == e->offload.sent;
	e->offload.given = given;
	e->offload.sent = stats.ipsec.opackets;
	return none && more >= SILENT_PACKETS ? "it sends nothing of what the SA gives it" : NULL;
}

/* The device is left for a while. */
static bool
leave_for_now(struct ipsec_cache *ic, struct sad_entry *e, struct ipsec_session *s, const char *why)
{
	leave(ic, e, s, why);
	wait_for_retry(ic, e);
	return true;
}

/* Its route has gone to another port. */
static bool
route_left(const struct ipsec_cache *ic, const struct sad_entry *e, const struct ipsec_session *s)
{
	uint32_t ifindex;

	if (e->sa.spec.offload_ifindex != 0 || ipsec_session_is_lookaside(s))
		return false;
	ifindex = route_ifindex(ic, &e->sa.spec, s->in);
	return ifindex != 0 && ifindex != s->ifindex;
}

/* Should it be left? */
static bool
look_at_session(struct ipsec_cache *ic, struct sad_entry *e, struct ipsec_session *s)
{
	uint32_t strays = ipsec_load(&s->strays);
	const char *silent;

	if (ipsec_session_is_lookaside(s) && ipsec_load(&s->crypto->failed))
		return leave_for_now(ic, e, s, "it failed");
	/* an SA that says nothing of its direction has it from our addresses, which may come later
	 */
	if (!s->in && is_inbound(ic, &e->sa.spec)) {
		leave(ic, e, s, "its session was for packets that go out");
		return true;
	}
	if (route_left(ic, e, s)) {
		leave(ic, e, s, "the SA's route has left it");
		return true;
	}
	if (ipsec_load(&s->refused)) {
		/* it gets another, whose numbers begin further on */
		leave(ic, e, s, "the CPU gave out numbers that its session was to give");
		return true;
	}
	if (strays != e->offload.strays)
		return leave_for_now(ic, e, s, "it let packets of the SA through unopened");
	if ((silent = fails_silently(e, s)) != NULL)
		return leave_for_now(ic, e, s, silent);
	tell_esn(e, s);
	return false;
}

/* Of a new session. */
static void
start_watching(struct sad_entry *e)
{
	e->offload.strays = 0;
	e->offload.sent = 0;
	e->offload.given = ipsec_load(&e->sa.rt->packets);
}

/* A crypto device's SA whose route has a port by now that does better. */
static void
improve(struct ipsec_cache *ic, struct sad_entry *e, struct ipsec_session *s)
{
	struct ipsec_session *better;

	if (waits_for_retry(ic, e))
		return;
	if ((better = choose_port(ic, e, s->in)) == NULL) {
		wait_for_retry(ic, e);
		return;
	}
	ipsec_session_retire(s);
	start_watching(e);
	ipsec_session_publish(better);
	ipsec_bump(ic);
}

void
ipsec_offload_look(struct ipsec_cache *ic, struct sad_entry *e)
{
	struct ipsec_session *s = session_of(e);
	const char *why;
	int err;

	if (s != NULL && !look_at_session(ic, e, s)) {
		if (ipsec_session_is_lookaside(s))
			improve(ic, e, s);
		return;
	}
	if (waits_for_retry(ic, e))
		return;
	if (e->sa.spec.offload_ifindex != 0 && ipsec_devices_any(ic))
		s = try_asked(ic, e, &err, &why);
	else if (e->sa.spec.offload_ifindex == 0 && any(ic))
		s = choose(ic, e);
	else
		return;
	if (s == NULL)
		return;
	start_watching(e);
	ipsec_session_publish(s);
	ipsec_bump(ic); /* decisions are made anew, and find it */
}

static struct sad_entry *
entry_of(const struct ipsec_session *s)
{
	return sad_entry(s->rt->sa);
}

static bool
has_limit(const struct xfrm_lifetime_cfg *lft)
{
	return lft->hard_byte_limit != XFRM_INF || lft->hard_packet_limit != XFRM_INF;
}

static void
happened(struct ipsec_session *s, uint32_t events)
{
	static const uint32_t hard = 1u << RTE_ETH_EVENT_IPSEC_SA_BYTE_HARD_EXPIRY |
		1u << RTE_ETH_EVENT_IPSEC_SA_PKT_HARD_EXPIRY;
	static const uint32_t soft = 1u << RTE_ETH_EVENT_IPSEC_SA_TIME_EXPIRY |
		1u << RTE_ETH_EVENT_IPSEC_SA_BYTE_EXPIRY | 1u << RTE_ETH_EVENT_IPSEC_SA_PKT_EXPIRY;
	struct ipsec_cache *ic = s->ic;
	struct sad_entry *e = entry_of(s);
	bool esn = (s->rt->flags & IPSEC_RT_ESN) != 0;

	/* Limits and numbers are counted here as well: what the SA does not have has not ended, and
	 * a NIC that says so does no more for it. */
	if ((events & hard) != 0 && has_limit(&e->sa.spec.info.lft)) {
		sad_expire(ic, e, true);
		return;
	}
	if ((events & hard) != 0 ||
		((events & 1u << RTE_ETH_EVENT_IPSEC_ESN_OVERFLOW) != 0 && !esn)) {
		leave_for_now(ic, e, s, "it says that the SA has come to its end there");
		return;
	}
	if ((events & 1u << RTE_ETH_EVENT_IPSEC_ESN_OVERFLOW) != 0)
		tell_esn(e, s);
	if ((events & soft) != 0 && !e->soft_told)
		sad_expire(ic, e, false);
}

/*
 * Routes have changed: packets may come in by another port than the one that opens them. All else
 * waits for when the SA is looked at.
 */
static void
follow(struct ipsec_session *s)
{
	struct sad_entry *e = entry_of(s);

	if (route_left(s->ic, e, s))
		ipsec_offload_look(s->ic, e);
}

void
ipsec_offload_tick(struct ipsec_cache *ic)
{
	if (!ipsec_devices_any(ic))
		return;
	if (ic->routes_changed) {
		ic->routes_changed = false;
		ipsec_devices_sessions(ic, follow);
	}
	ipsec_devices_events(ic, happened);
	ipsec_devices_tick(ic);
}

/* Where no device was asked. */
static const char *
nobody(const struct ipsec_cache *ic)
{
	switch (ic->conf.offload) {
	case IPSEC_CACHE_OFFLOAD_OFF:
		return "offload is turned off";
	case IPSEC_CACHE_OFFLOAD_EXPLICIT:
		return "the SA asks for no device";
	default:
		return "no port of its route does ESP by itself";
	}
}

static void
say_why_not(const struct ipsec_cache *ic, const struct sad_offload *o,
	struct ipsec_cache_backend *backend)
{
	const struct ipsec_device *dev = ipsec_device_find(ic, o->ifindex);
	const char *name = dev != NULL ? dev->conf.name : "a device that has gone";

	if (o->crypto != NULL)
		name = o->crypto->conf.name;
	if (o->missing != NULL)
		snprintf(backend->why_not, sizeof(backend->why_not), "%s: %s", name, o->missing);
	else
		snprintf(backend->why_not, sizeof(backend->why_not), "%s", nobody(ic));
}

void
ipsec_cache_sa_backend(const struct ipsec_cache *ic, const struct ipsec_cache_sa *sa,
	struct ipsec_cache_backend *backend)
{
	static const char *const kinds[] = { "inline-crypto", "inline-protocol", "lookaside-crypto",
		"lookaside-protocol" };
	const struct sad_entry *e = sad_entry(sa);
	const struct ipsec_session *s = session_of(e);

	backend->why_not[0] = '\0';
	if (sa->rt == NULL) {
		snprintf(backend->name, sizeof(backend->name), "none");
		snprintf(backend->why_not, sizeof(backend->why_not), "it has no key yet");
		return;
	}
	if (s != NULL)
		snprintf(backend->name, sizeof(backend->name), "%s %s", kinds[s->kind],
			s->crypto != NULL ? s->crypto->conf.name : s->dev->conf.name);
	else
		snprintf(backend->name, sizeof(backend->name), "%s", ipsec_rt_backend(sa->rt));
	if (s == NULL || ipsec_session_is_lookaside(s))
		say_why_not(ic, &e->offload, backend);
}
