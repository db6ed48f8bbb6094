/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What a policy may be: the checks of Linux's xfrm_add_policy(), and what is not served here. */

#include <errno.h>
#include <netinet/in.h>

#include "ipsec_cache/selector.h"
#include "ipsec_cache/spd.h"

#define SHARE_MAX 3 /* XFRM_SHARE_UNIQUE */

static int
check_template_mode(const struct xfrm_user_tmpl *tmpl, const char **why)
{
	if (tmpl->mode == XFRM_MODE_TRANSPORT)
		return ipsec_refuse(
			-EOPNOTSUPP, why, "A template in transport mode is not supported yet");
	if (tmpl->mode == XFRM_MODE_BEET)
		return ipsec_refuse(
			-EOPNOTSUPP, why, "A template in BEET mode is not supported yet");
	if (tmpl->mode >= XFRM_MODE_MAX)
		return ipsec_refuse(-EINVAL, why, "There is no such mode as the template's");
	if (tmpl->mode != XFRM_MODE_TUNNEL)
		return ipsec_refuse(
			-EOPNOTSUPP, why, "A template is in tunnel mode, others are not supported");
	return 0;
}

static int
check_template(const struct ipsec_cache_policy_spec *spec, const char **why)
{
	const struct xfrm_user_tmpl *tmpl = &spec->tmpl[0];
	int err;

	if (tmpl->family != AF_INET && tmpl->family != AF_INET6)
		return ipsec_refuse(-EINVAL, why, "A template is of the IPv4 or the IPv6 family");
	if ((err = check_template_mode(tmpl, why)) != 0)
		return err;
	if (tmpl->id.proto == IPPROTO_AH || tmpl->id.proto == IPPROTO_COMP)
		return ipsec_refuse(-EOPNOTSUPP, why,
			"A template asks for ESP: AH and IPComp are not supported yet");
	if (tmpl->id.proto != IPPROTO_ESP)
		return ipsec_refuse(
			-EINVAL, why, "There is no such IPsec protocol as the template's");
	if (spec->info.dir != XFRM_POLICY_OUT)
		return 0;
	if (tmpl->optional != 0)
		return ipsec_refuse(
			-EINVAL, why, "A template of an outbound policy cannot be optional");
	if (ipsec_addr_any(&tmpl->id.daddr, tmpl->family))
		return ipsec_refuse(-EINVAL, why,
			"A template of an outbound policy needs the far end of its tunnel");
	return 0;
}

static int
check_info(const struct xfrm_userpolicy_info *info, const char **why)
{
	if (info->dir >= SPD_DIRS)
		return ipsec_refuse(-EINVAL, why, "A policy's direction is in, out or fwd");
	if (info->action != XFRM_POLICY_ALLOW && info->action != XFRM_POLICY_BLOCK)
		return ipsec_refuse(-EINVAL, why, "A policy's action is allow or block");
	if (info->share > SHARE_MAX)
		return ipsec_refuse(-EINVAL, why, "There is no such way to share");
	if ((info->flags & XFRM_POLICY_ICMP) != 0)
		return ipsec_refuse(-EOPNOTSUPP, why, "Policy flag icmp is not supported yet");
	if ((info->flags & (uint8_t)~XFRM_POLICY_LOCALOK) != 0)
		return ipsec_refuse(-EINVAL, why, "There is no such policy flag");
	if (info->sel.family != AF_INET && info->sel.family != AF_INET6)
		return ipsec_refuse(
			-EINVAL, why, "A policy's selector is of the IPv4 or the IPv6 family");
	if (!ipsec_selector_valid(&info->sel, why))
		return -EINVAL;
	if (info->index != 0 && (info->index & 7) != info->dir)
		return ipsec_refuse(
			-EINVAL, why, "The last three bits of a policy's index are its direction");
	return 0;
}

int
spd_check(const struct ipsec_cache_policy_spec *spec, const char **why)
{
	int err;

	if (spec->type != XFRM_POLICY_TYPE_MAIN)
		return ipsec_refuse(-EOPNOTSUPP, why, "Policies of type sub are not supported");
	if ((err = check_info(&spec->info, why)) != 0)
		return err;
	if ((spec->mark.v & ~spec->mark.m) != 0)
		return ipsec_refuse(-EINVAL, why, "A mark has bits that its mask takes away");
	if (spec->n_tmpl > IPSEC_CACHE_TEMPLATES_MAX)
		return ipsec_refuse(-EINVAL, why, "A policy has at most 6 templates");
	if (spec->n_tmpl > 1)
		return ipsec_refuse(-EOPNOTSUPP, why,
			"More than one template in a policy is not supported yet");
	return spec->n_tmpl == 0 ? 0 : check_template(spec, why);
}
