/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <netinet/in.h>
#include <string.h>

#include <rte_cryptodev.h>

#include "ipsec_cache/capability.h"
#include "ipsec_cache/ecn.h"

#define GCM_IV 12 /* salt and IV */
#define AAD 8
#define AAD_ESN 12

const char ipsec_no_inline_crypto[] = "its driver has no inline crypto";
const char ipsec_no_session[] =
	"its driver refused a session for the SA; it may have as many as it can";
const char ipsec_no_room[] = "there is no room for its session";

static void
want_tunnel(struct rte_security_ipsec_xform *ipsec, const struct ipsec_cache_rt *rt,
	const struct ipsec_cache_sa_spec *spec)
{
	struct rte_security_ipsec_tunnel_param *tunnel = &ipsec->tunnel;

	if (spec->info.family == AF_INET) {
		tunnel->type = RTE_SECURITY_IPSEC_TUNNEL_IPV4;
		memcpy(&tunnel->ipv4.src_ip, &spec->info.saddr, 4);
		memcpy(&tunnel->ipv4.dst_ip, &spec->info.id.daddr, 4);
		tunnel->ipv4.ttl = IPSEC_TTL;
		tunnel->ipv4.df = rt->copy_df; /* for inner packets that have no DF to copy */
	} else {
		tunnel->type = RTE_SECURITY_IPSEC_TUNNEL_IPV6;
		memcpy(&tunnel->ipv6.src_addr, &spec->info.saddr, 16);
		memcpy(&tunnel->ipv6.dst_addr, &spec->info.id.daddr, 16);
		tunnel->ipv6.hlimit = IPSEC_TTL;
	}
}

static void
want_options(struct ipsec_want *want, const struct ipsec_cache_rt *rt,
	const struct ipsec_cache_sa_spec *spec, bool in)
{
	struct rte_security_ipsec_xform *ipsec = &want->conf.ipsec;
	bool protocol = want->conf.action_type != RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO;

	ipsec->options.esn = (rt->flags & IPSEC_RT_ESN) != 0;
	ipsec->options.udp_encap = (rt->flags & IPSEC_RT_UDP) != 0;
	if (spec->has_encap) {
		ipsec->udp.sport = ntohs(spec->encap.encap_sport);
		ipsec->udp.dport = ntohs(spec->encap.encap_dport);
	}
	if (!protocol)
		return;
	ipsec->options.ecn = (rt->tos_mask & IPSEC_ECN_MASK) != 0;
	if (in) {
		ipsec->options.copy_dscp = (rt->flags & IPSEC_RT_DSCP_IN) != 0;
		ipsec->replay_win_sz = rt->window.size;
		return;
	}
	ipsec->options.copy_dscp = (rt->tos_mask & IPSEC_DSCP_MASK) != 0;
	ipsec->options.copy_df = rt->copy_df && rt->family == AF_INET;
	ipsec->options.copy_flabel = rt->family == AF_INET6;
}

static void
want_xform(struct ipsec_want *want, const struct ipsec_cache_rt *rt,
	const struct ipsec_cache_sa_spec *spec, bool in)
{
	struct rte_crypto_sym_xform *x = want->xform;

	want->conf.crypto_xform = x;
	if (rt->iv_len != 0) {
		x->type = RTE_CRYPTO_SYM_XFORM_AEAD;
		x->aead.op = in ? RTE_CRYPTO_AEAD_OP_DECRYPT : RTE_CRYPTO_AEAD_OP_ENCRYPT;
		x->aead.algo = RTE_CRYPTO_AEAD_AES_GCM;
		x->aead.key.data = spec->aead.key;
		x->aead.key.length = rt->cipher->key_len;
		x->aead.iv.length = GCM_IV;
		x->aead.digest_length = rt->icv_len;
		x->aead.aad_length = (rt->flags & IPSEC_RT_ESN) != 0 ? AAD_ESN : AAD;
		return;
	}
	/* Out: cipher, then authentication; in: the other way. */
	x[in].type = RTE_CRYPTO_SYM_XFORM_CIPHER;
	x[in].cipher.op = in ? RTE_CRYPTO_CIPHER_OP_DECRYPT : RTE_CRYPTO_CIPHER_OP_ENCRYPT;
	x[in].cipher.algo = RTE_CRYPTO_CIPHER_NULL;
	x[!in].type = RTE_CRYPTO_SYM_XFORM_AUTH;
	x[!in].auth.op = in ? RTE_CRYPTO_AUTH_OP_VERIFY : RTE_CRYPTO_AUTH_OP_GENERATE;
	x[!in].auth.algo = RTE_CRYPTO_AUTH_NULL;
	x[0].next = &x[1];
}

void
ipsec_want_fill(struct ipsec_want *want, const struct ipsec_cache_rt *rt,
	enum rte_security_session_action_type action, bool in)
{
	const struct ipsec_cache_sa_spec *spec = &rt->sa->spec;
	struct rte_security_ipsec_xform *ipsec = &want->conf.ipsec;

	memset(want, 0, sizeof(*want));
	want->conf.action_type = action;
	want->conf.protocol = RTE_SECURITY_PROTOCOL_IPSEC;
	ipsec->spi = ntohl(rt->spi);
	ipsec->salt = rt->salt;
	ipsec->direction =
		in ? RTE_SECURITY_IPSEC_SA_DIR_INGRESS : RTE_SECURITY_IPSEC_SA_DIR_EGRESS;
	ipsec->proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP;
	ipsec->mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL;
	want_tunnel(ipsec, rt, spec);
	want_options(want, rt, spec, in);
	want_xform(want, rt, spec, in);
}

/* What a capability may lack, in the order in which it is looked at. */
enum lack {
	LACK_CAPABILITY,
	LACK_PROTOCOL,
	LACK_ESP,
	LACK_TUNNEL,
	LACK_DIRECTION,
	LACK_ALGORITHM,
	LACK_KEY,
	LACK_ICV,
	LACK_AAD,
	LACK_IV,
	LACK_ESN,
	LACK_UDP,
	LACK_WINDOW,
	LACK_DSCP,
	LACK_ECN,
	LACK_DF,
	LACK_LABEL,
	LACK_TRAILER,
	LACK_NOTHING,
};

static bool
in_range(const struct rte_crypto_param_range *range, uint16_t n)
{
	if (n < range->min || n > range->max)
		return false;
	return range->increment == 0 ? n == range->min || n == range->max
				     : (n - range->min) % range->increment == 0;
}

/* by_itself: without rte_security, nonces and what is authenticated beside the text are ours. */
static enum lack
lack_aead(const struct rte_cryptodev_capabilities *c, const struct ipsec_want *want, bool by_itself)
{
	const struct rte_crypto_aead_xform *x = &want->xform[0].aead;
	enum lack lack = LACK_ALGORITHM;
	unsigned int i;

	for (i = 0; i < IPSEC_CAPABILITIES_MAX && c[i].op != RTE_CRYPTO_OP_TYPE_UNDEFINED; i++) {
		const struct rte_cryptodev_symmetric_capability *sym = &c[i].sym;

		if (c[i].op != RTE_CRYPTO_OP_TYPE_SYMMETRIC ||
			sym->xform_type != RTE_CRYPTO_SYM_XFORM_AEAD ||
			sym->aead.algo != RTE_CRYPTO_AEAD_AES_GCM)
			continue;
		if (!in_range(&sym->aead.key_size, x->key.length)) {
			lack = RTE_MAX(lack, LACK_KEY);
			continue;
		}
		if (!in_range(&sym->aead.digest_size, x->digest_length))
			lack = RTE_MAX(lack, LACK_ICV);
		else if (!by_itself)
			return LACK_NOTHING;
		else if (!in_range(&sym->aead.aad_size, x->aad_length))
			lack = RTE_MAX(lack, LACK_AAD);
		else if (!in_range(&sym->aead.iv_size, x->iv.length))
			lack = RTE_MAX(lack, LACK_IV);
		else
			return LACK_NOTHING;
	}
	return lack;
}

static enum lack
lack_null(const struct rte_cryptodev_capabilities *c)
{
	bool cipher = false, auth = false;
	unsigned int i;

	for (i = 0; i < IPSEC_CAPABILITIES_MAX && c[i].op != RTE_CRYPTO_OP_TYPE_UNDEFINED; i++) {
		const struct rte_cryptodev_symmetric_capability *sym = &c[i].sym;

		if (c[i].op != RTE_CRYPTO_OP_TYPE_SYMMETRIC)
			continue;
		cipher |= sym->xform_type == RTE_CRYPTO_SYM_XFORM_CIPHER &&
			sym->cipher.algo == RTE_CRYPTO_CIPHER_NULL;
		auth |= sym->xform_type == RTE_CRYPTO_SYM_XFORM_AUTH &&
			sym->auth.algo == RTE_CRYPTO_AUTH_NULL;
	}
	return cipher && auth ? LACK_NOTHING : LACK_ALGORITHM;
}

static enum lack
lack_algorithm(const struct rte_security_capability *c, const struct ipsec_want *want)
{
	if (c->crypto_capabilities == NULL)
		return LACK_ALGORITHM;
	return want->conf.crypto_xform->type == RTE_CRYPTO_SYM_XFORM_AEAD
		? lack_aead(c->crypto_capabilities, want, false)
		: lack_null(c->crypto_capabilities);
}

static enum lack
lack_options(const struct rte_security_capability *c, const struct ipsec_want *want)
{
	const struct rte_security_ipsec_sa_options *has = &c->ipsec.options;
	const struct rte_security_ipsec_sa_options *wants = &want->conf.ipsec.options;

	if (wants->esn && !has->esn)
		return LACK_ESN;
	if (wants->udp_encap && !has->udp_encap)
		return LACK_UDP;
	if (want->conf.ipsec.replay_win_sz > c->ipsec.replay_win_sz_max)
		return LACK_WINDOW;
	if (wants->copy_dscp && !has->copy_dscp)
		return LACK_DSCP;
	if (wants->ecn && !has->ecn)
		return LACK_ECN;
	if (wants->copy_df && !has->copy_df)
		return LACK_DF;
	if (wants->copy_flabel && !has->copy_flabel)
		return LACK_LABEL;
	/* A trailer that a NIC makes, or takes off, is not the frame that is made here. */
	if (want->conf.action_type == RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO &&
		(c->ol_flags &
			(RTE_SECURITY_TX_HW_TRAILER_OFFLOAD |
				RTE_SECURITY_RX_HW_TRAILER_OFFLOAD)) != 0)
		return LACK_TRAILER;
	return LACK_NOTHING;
}

/* The first thing that a capability lacks. */
static enum lack
lack(const struct rte_security_capability *c, const struct ipsec_want *want)
{
	enum lack algorithm;

	if (c->action != want->conf.action_type)
		return LACK_CAPABILITY;
	if (c->protocol != RTE_SECURITY_PROTOCOL_IPSEC)
		return LACK_PROTOCOL;
	if (c->ipsec.proto != RTE_SECURITY_IPSEC_SA_PROTO_ESP)
		return LACK_ESP;
	if (c->ipsec.mode != RTE_SECURITY_IPSEC_SA_MODE_TUNNEL)
		return LACK_TUNNEL;
	if (c->ipsec.direction != want->conf.ipsec.direction)
		return LACK_DIRECTION;
	if ((algorithm = lack_algorithm(c, want)) != LACK_NOTHING)
		return algorithm;
	return lack_options(c, want);
}

static const char *
lack_text(enum lack lack, enum rte_security_session_action_type action)
{
	static const char *const texts[] = {
		[LACK_PROTOCOL] = "its driver has no IPsec",
		[LACK_ESP] = "its driver has no ESP",
		[LACK_TUNNEL] = "its driver has no tunnel mode",
		[LACK_DIRECTION] = "its driver does not have that direction",
		[LACK_ALGORITHM] = "its driver does not have that algorithm",
		[LACK_KEY] = "its driver has that algorithm not with a key of that length",
		[LACK_ICV] = "its driver has that algorithm not with a check value of that length",
		[LACK_AAD] = "its driver does not authenticate as many bytes beside the text",
		[LACK_IV] = "its driver takes no nonce of 12 bytes",
		[LACK_ESN] = "its driver has no extended sequence numbers (ESN)",
		[LACK_UDP] = "its driver has no UDP encapsulation",
		[LACK_WINDOW] = "its driver has no replay window of that size",
		[LACK_DSCP] = "its driver does not copy DSCP as the SA wants it",
		[LACK_ECN] = "its driver has no ECN of RFC 6040",
		[LACK_DF] = "its driver does not copy DF to the outer header",
		[LACK_LABEL] = "its driver does not copy the flow label to the outer header",
		[LACK_TRAILER] = "its driver makes ESP trailers, which is not supported",
	};

	if (lack != LACK_CAPABILITY)
		return texts[lack];
	switch (action) {
	case RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO:
		return ipsec_no_inline_crypto;
	case RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL:
		return "its driver has no inline protocol";
	default:
		return "its driver has no lookaside protocol";
	}
}

const struct rte_security_capability *
ipsec_capability_find(void *ctx, const struct ipsec_want *want, const char **missing)
{
	const struct rte_security_capability *c = rte_security_capabilities_get(ctx);
	enum lack nearest = LACK_CAPABILITY, this;
	unsigned int i;

	for (i = 0; c != NULL && i < IPSEC_CAPABILITIES_MAX &&
		c[i].action != RTE_SECURITY_ACTION_TYPE_NONE;
		i++) {
		if ((this = lack(&c[i], want)) == LACK_NOTHING)
			return &c[i];
		nearest = RTE_MAX(nearest, this);
	}
	*missing = lack_text(nearest, want->conf.action_type);
	return NULL;
}

bool
ipsec_capability_crypto(const struct rte_cryptodev_capabilities *list,
	const struct ipsec_want *want, const char **missing)
{
	enum lack found = LACK_ALGORITHM;

	if (list != NULL)
		found = want->conf.crypto_xform->type == RTE_CRYPTO_SYM_XFORM_AEAD
			? lack_aead(list, want, true)
			: lack_null(list);
	if (found == LACK_NOTHING)
		return true;
	*missing = lack_text(found, want->conf.action_type);
	return false;
}
