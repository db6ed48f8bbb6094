/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What an SA may be: the checks of Linux's xfrm_add_sa(), and what is not served here. */

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "ipsec_cache/sad.h"
#include "ipsec_cache/selector.h"

#define FLAGS \
	(XFRM_STATE_NOECN | XFRM_STATE_DECAP_DSCP | XFRM_STATE_NOPMTUDISC | XFRM_STATE_ICMP | \
		XFRM_STATE_AF_UNSPEC | XFRM_STATE_ALIGN4 | XFRM_STATE_ESN)
#define EXTRA_FLAGS ((uint32_t)(XFRM_SA_XFLAG_DONT_ENCAP_DSCP | XFRM_SA_XFLAG_OSEQ_MAY_WRAP))

static int
check_mode(uint8_t mode, const char **why)
{
	switch (mode) {
	case XFRM_MODE_TUNNEL:
		return 0;
	case XFRM_MODE_TRANSPORT:
		return ipsec_refuse(-EOPNOTSUPP, why, "Transport mode is not supported yet");
	case XFRM_MODE_BEET:
		return ipsec_refuse(-EOPNOTSUPP, why, "BEET mode is not supported yet");
	case XFRM_MODE_ROUTEOPTIMIZATION:
		return ipsec_refuse(-EOPNOTSUPP, why, "Route optimization mode is not supported");
	default:
		return ipsec_refuse(-EINVAL, why, "There is no such mode");
	}
}

static int
check_proto(uint8_t proto, const char **why)
{
	switch (proto) {
	case IPPROTO_ESP:
		return 0;
	case IPPROTO_AH:
		return ipsec_refuse(-EOPNOTSUPP, why, "AH is not supported yet");
	case IPPROTO_COMP:
		return ipsec_refuse(-EOPNOTSUPP, why, "IPComp is not supported yet");
	case IPPROTO_DSTOPTS:
	case IPPROTO_ROUTING:
		return ipsec_refuse(-EOPNOTSUPP, why, "Mobile IPv6 is not supported");
	default:
		return ipsec_refuse(-EINVAL, why, "There is no such IPsec protocol");
	}
}

static int
check_addresses(const struct xfrm_usersa_info *info, const char **why)
{
	if (info->family != AF_INET && info->family != AF_INET6)
		return ipsec_refuse(-EINVAL, why, "An SA is of the IPv4 or the IPv6 family");
	if (ipsec_addr_any(&info->id.daddr, info->family))
		return ipsec_refuse(-EINVAL, why, "An SA needs the address that its packets go to");
	if (info->sel.family == 0)
		return 0;
	if (info->sel.family != AF_INET && info->sel.family != AF_INET6)
		return ipsec_refuse(-EINVAL, why, "A selector is of the IPv4 or the IPv6 family");
	return ipsec_selector_valid(&info->sel, why) ? 0 : -EINVAL;
}

static int
check_flags(const struct ipsec_cache_sa_spec *spec, const char **why)
{
	uint8_t flags = spec->info.flags;

	if ((flags & XFRM_STATE_WILDRECV) != 0)
		return ipsec_refuse(-EOPNOTSUPP, why, "Flag wildrecv is not supported");
	if ((flags & (uint8_t)~FLAGS) != 0)
		return ipsec_refuse(-EINVAL, why, "There is no such SA flag");
	if ((spec->extra_flags & ~EXTRA_FLAGS) != 0)
		return ipsec_refuse(-EINVAL, why, "There is no such extra flag");
	return 0;
}

static int
check_algorithms(const struct ipsec_cache_sa_spec *spec, const char **why)
{
	bool aead = spec->aead.name[0] != '\0';
	bool crypt = spec->crypt.name[0] != '\0', auth = spec->auth.name[0] != '\0';

	if (!aead && !crypt && !auth)
		return ipsec_refuse(-EINVAL, why, "ESP needs an algorithm: aead, or enc and auth");
	if (aead && (crypt || auth))
		return ipsec_refuse(-EINVAL, why, "An aead algorithm goes without enc and auth");
	return 0;
}

static int
check_replay(const struct ipsec_cache_sa_spec *spec, const char **why)
{
	bool esn = (spec->info.flags & XFRM_STATE_ESN) != 0;

	if (spec->replay_window > IPSEC_CACHE_WINDOW_MAX)
		return ipsec_refuse(-EINVAL, why, "A replay window has at most 4096 packets");
	if (esn && !spec->esn_form)
		return ipsec_refuse(
			-EINVAL, why, "Flag esn needs its replay window (XFRMA_REPLAY_ESN_VAL)");
	if (!esn && (spec->oseq > UINT32_MAX || spec->seq > UINT32_MAX))
		return ipsec_refuse(
			-EINVAL, why, "A sequence number beyond 32 bits needs flag esn");
	return 0;
}

static int
check_encap(const struct ipsec_cache_sa_spec *spec, const char **why)
{
	if (!spec->has_encap)
		return 0;
	if (spec->encap.encap_type != 2) /* UDP_ENCAP_ESPINUDP, RFC 3948 */
		return ipsec_refuse(
			-EOPNOTSUPP, why, "Of encapsulations only espinudp is supported");
	if (spec->encap.encap_sport == 0 || spec->encap.encap_dport == 0)
		return ipsec_refuse(-EINVAL, why, "An encapsulation in UDP needs both ports");
	return 0;
}

/* Linux's rules for an SA that says its direction, and RFC 9611's. */
static int
check_direction(
	const struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, const char **why)
{
	if (spec->dir > SAD_DIR_OUT)
		return ipsec_refuse(-EINVAL, why, "There is no such SA direction");
	if (spec->dir == SAD_DIR_OUT && spec->replay_window != 0)
		return ipsec_refuse(-EINVAL, why, "An outbound SA has no replay window");
	if (spec->dir == SAD_DIR_OUT && (spec->info.flags & XFRM_STATE_DECAP_DSCP) != 0)
		return ipsec_refuse(-EINVAL, why, "Flag decap-dscp is for inbound SAs");
	if (spec->dir == SAD_DIR_IN && (spec->info.flags & XFRM_STATE_NOPMTUDISC) != 0)
		return ipsec_refuse(-EINVAL, why, "Flag nopmtudisc is for outbound SAs");
	if (!spec->has_pcpu)
		return 0;
	if (spec->dir == 0)
		return ipsec_refuse(
			-EINVAL, why, "An SA of one CPU (XFRMA_SA_PCPU) says its direction");
	if (spec->pcpu >= ic->conf.n_workers)
		return ipsec_refuse(-EINVAL, why, "There is no worker with that number for the SA");
	return 0;
}

int
sad_check(const struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, const char **why)
{
	int err;

	if ((err = check_addresses(&spec->info, why)) != 0 ||
		(err = check_proto(spec->info.id.proto, why)) != 0 ||
		(err = check_mode(spec->info.mode, why)) != 0 ||
		(err = check_flags(spec, why)) != 0 || (err = check_algorithms(spec, why)) != 0 ||
		(err = check_replay(spec, why)) != 0 || (err = check_encap(spec, why)) != 0 ||
		(err = check_direction(ic, spec, why)) != 0)
		return err;
	if (ntohl(spec->info.id.spi) < 256)
		return ipsec_refuse(-EINVAL, why, "SPIs 0 to 255 are reserved (RFC 4303, 2.1)");
	if ((spec->mark.v & ~spec->mark.m) != 0)
		return ipsec_refuse(-EINVAL, why, "A mark has bits that its mask takes away");
	return 0;
}

static bool
algorithm_equal(const struct ipsec_cache_algorithm *a, const struct ipsec_cache_algorithm *b)
{
	return strcmp(a->name, b->name) == 0 && a->key_bits == b->key_bits &&
		a->icv_bits == b->icv_bits && memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

int
sad_check_update(const struct ipsec_cache_sa_spec *from, const struct ipsec_cache_sa_spec *to,
	const char **why)
{
	const struct xfrm_usersa_info *a = &from->info, *b = &to->info;

	if (!algorithm_equal(&from->aead, &to->aead) ||
		!algorithm_equal(&from->crypt, &to->crypt) ||
		!algorithm_equal(&from->auth, &to->auth))
		return ipsec_refuse(-EINVAL, why,
			"An update keeps algorithms and keys; delete the SA and add another");
	if (from->has_encap != to->has_encap || from->encap.encap_sport != to->encap.encap_sport ||
		from->encap.encap_dport != to->encap.encap_dport)
		return ipsec_refuse(-EINVAL, why,
			"An update keeps the encapsulation; delete the SA and add another");
	if (a->mode != b->mode || a->reqid != b->reqid || a->flags != b->flags ||
		from->replay_window != to->replay_window || from->if_id != to->if_id ||
		from->mark.v != to->mark.v || from->mark.m != to->mark.m ||
		from->set_mark != to->set_mark || from->set_mark_mask != to->set_mark_mask ||
		from->extra_flags != to->extra_flags || from->tfcpad != to->tfcpad ||
		from->dir != to->dir || from->offload_ifindex != to->offload_ifindex ||
		from->has_pcpu != to->has_pcpu || from->pcpu != to->pcpu ||
		memcmp(&a->sel, &b->sel, sizeof(a->sel)) != 0 ||
		!ipsec_addr_equal(&a->saddr, &b->saddr, a->family))
		return ipsec_refuse(-EINVAL, why,
			"An update changes lifetimes only; delete the SA and add another");
	return 0;
}
