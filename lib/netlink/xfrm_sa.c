/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* An SA as a message has it. */

#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "netlink/xfrm.h"

#define ALLOWED \
	(XFRM_BIT(XFRMA_ALG_AUTH) | XFRM_BIT(XFRMA_ALG_CRYPT) | XFRM_BIT(XFRMA_ALG_AEAD) | \
		XFRM_BIT(XFRMA_ALG_AUTH_TRUNC) | XFRM_BIT(XFRMA_ENCAP) | \
		XFRM_BIT(XFRMA_LTIME_VAL) | XFRM_BIT(XFRMA_REPLAY_VAL) | \
		XFRM_BIT(XFRMA_REPLAY_ESN_VAL) | XFRM_BIT(XFRMA_REPLAY_THRESH) | \
		XFRM_BIT(XFRMA_ETIMER_THRESH) | XFRM_BIT(XFRMA_MARK) | XFRM_BIT(XFRMA_TFCPAD) | \
		XFRM_BIT(XFRMA_SA_EXTRA_FLAGS) | XFRM_BIT(XFRMA_OFFLOAD_DEV) | \
		XFRM_BIT(XFRMA_SET_MARK) | XFRM_BIT(XFRMA_SET_MARK_MASK) | XFRM_BIT(XFRMA_IF_ID) | \
		XFRM_BIT(XFRM_ATTR_SA_DIR) | XFRM_BIT(XFRM_ATTR_SA_PCPU))
#define REPLAY_WORDS_MAX (IPSEC_CACHE_WINDOW_MAX / 32)

/* One of the three kinds of algorithm: they begin alike, and the key follows. */
static int
parse_algorithm(struct netlink_request *req, const struct nlattr *attr, size_t header,
	struct ipsec_cache_algorithm *alg)
{
	const uint8_t *p = mnl_attr_get_payload(attr);
	size_t room = mnl_attr_get_payload_len(attr) - header, len;

	if (strnlen((const char *)p, sizeof(alg->name)) == sizeof(alg->name))
		return netlink_fail(
			req, -EINVAL, attr, "The name of an algorithm is not terminated");
	strlcpy(alg->name, (const char *)p, sizeof(alg->name));
	memcpy(&alg->key_bits, p + sizeof(alg->name), sizeof(alg->key_bits));
	if (header > sizeof(struct xfrm_algo))
		memcpy(&alg->icv_bits, p + sizeof(alg->name) + sizeof(alg->key_bits),
			sizeof(alg->icv_bits));
	len = ((size_t)alg->key_bits + 7) / 8;
	if (len > room)
		return netlink_fail(req, -EINVAL, attr,
			"The key of %s has %u bits, but %zu bytes are there", alg->name,
			alg->key_bits, room);
	/* One that is longer belongs to no algorithm here, which key_bits then says. */
	memcpy(alg->key, p + header, RTE_MIN(len, sizeof(alg->key)));
	return 0;
}

static int
parse_algorithms(struct netlink_request *req, const struct nlattr *const tb[XFRM_ATTRS],
	struct ipsec_cache_sa_spec *spec)
{
	int ret = 0;

	if (tb[XFRMA_ALG_AEAD] != NULL)
		ret = parse_algorithm(
			req, tb[XFRMA_ALG_AEAD], sizeof(struct xfrm_algo_aead), &spec->aead);
	if (ret == 0 && tb[XFRMA_ALG_CRYPT] != NULL)
		ret = parse_algorithm(
			req, tb[XFRMA_ALG_CRYPT], sizeof(struct xfrm_algo), &spec->crypt);
	/* The kernel, too, goes by the one with a length if both are there. */
	if (ret == 0 && tb[XFRMA_ALG_AUTH_TRUNC] != NULL)
		ret = parse_algorithm(
			req, tb[XFRMA_ALG_AUTH_TRUNC], sizeof(struct xfrm_algo_auth), &spec->auth);
	else if (ret == 0 && tb[XFRMA_ALG_AUTH] != NULL)
		ret = parse_algorithm(
			req, tb[XFRMA_ALG_AUTH], sizeof(struct xfrm_algo), &spec->auth);
	return ret;
}

static int
parse_replay_esn(
	struct netlink_request *req, const struct nlattr *attr, struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_replay_state_esn esn;
	size_t len = mnl_attr_get_payload_len(attr);

	xfrm_payload(attr, &esn, sizeof(esn));
	if (esn.bmp_len > REPLAY_WORDS_MAX)
		return netlink_fail(req, -EINVAL, attr, "A replay window has at most %u packets",
			IPSEC_CACHE_WINDOW_MAX);
	if (len != sizeof(esn) && len < sizeof(esn) + esn.bmp_len * sizeof(uint32_t))
		return netlink_fail(req, -EINVAL, attr,
			"XFRMA_REPLAY_ESN_VAL is shorter than its bitmap of %u words", esn.bmp_len);
	if (spec->info.replay_window != 0)
		return netlink_fail(req, -EINVAL, attr, "The replay window is given twice");
	if (esn.replay_window > esn.bmp_len * 32)
		return netlink_fail(req, -EINVAL, attr,
			"A replay window of %u packets does not fit its bitmap of %u words",
			esn.replay_window, esn.bmp_len);
	spec->esn_form = true;
	spec->replay_window = esn.replay_window;
	spec->has_replay = true;
	spec->oseq = (uint64_t)esn.oseq_hi << 32 | esn.oseq;
	spec->seq = (uint64_t)esn.seq_hi << 32 | esn.seq;
	return 0;
}

static int
parse_replay(struct netlink_request *req, const struct nlattr *const tb[XFRM_ATTRS],
	struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_replay_state state;

	spec->replay_window = spec->info.replay_window;
	spec->replay_maxdiff = xfrm_u32(tb[XFRMA_REPLAY_THRESH]);
	spec->replay_maxage = xfrm_u32(tb[XFRMA_ETIMER_THRESH]);
	if (tb[XFRMA_REPLAY_ESN_VAL] != NULL)
		return parse_replay_esn(req, tb[XFRMA_REPLAY_ESN_VAL], spec);
	if (tb[XFRMA_REPLAY_VAL] == NULL)
		return 0;
	xfrm_payload(tb[XFRMA_REPLAY_VAL], &state, sizeof(state));
	spec->has_replay = true;
	spec->oseq = state.oseq;
	spec->seq = state.seq;
	return 0;
}

/* The kernel's xfrm_dev_state_add(); but a device that cannot do the SA is an error here. */
static int
parse_offload(
	struct netlink_request *req, const struct nlattr *attr, struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_user_offload offload;
	struct netlink_dev dev;
	int ret;

	xfrm_payload(attr, &offload, sizeof(offload));
	if ((ret = netlink_dev_by_index(req, (uint32_t)offload.ifindex, &dev)) != 0)
		return ret;
	spec->offload_ifindex = dev.ifindex;
	spec->offload_flags = offload.flags;
	strlcpy(spec->offload_name, dev.name, sizeof(spec->offload_name));
	return 0;
}

int
xfrm_sa_parse(struct netlink_request *req, struct ipsec_cache_sa_spec *spec)
{
	const struct nlattr *tb[XFRM_ATTRS];
	int ret;

	memset(spec, 0, sizeof(*spec));
	xfrm_header(req, &spec->info, sizeof(spec->info));
	memset(&spec->info.curlft, 0, sizeof(spec->info.curlft));
	if ((ret = xfrm_parse(req, sizeof(spec->info), ALLOWED, tb)) != 0 ||
		(ret = xfrm_selector(req, &spec->info.sel)) != 0 ||
		(ret = parse_algorithms(req, tb, spec)) != 0 ||
		(ret = parse_replay(req, tb, spec)) != 0)
		return ret;
	if (tb[XFRMA_OFFLOAD_DEV] != NULL &&
		(ret = parse_offload(req, tb[XFRMA_OFFLOAD_DEV], spec)) != 0)
		return ret;
	if (tb[XFRMA_LTIME_VAL] != NULL)
		xfrm_payload(tb[XFRMA_LTIME_VAL], &spec->info.curlft, sizeof(spec->info.curlft));
	if (tb[XFRMA_ENCAP] != NULL) {
		spec->has_encap = true;
		xfrm_payload(tb[XFRMA_ENCAP], &spec->encap, sizeof(spec->encap));
	}
	xfrm_mark(tb[XFRMA_MARK], &spec->mark);
	if (tb[XFRMA_SET_MARK] != NULL) {
		spec->set_mark = xfrm_u32(tb[XFRMA_SET_MARK]);
		spec->set_mark_mask = tb[XFRMA_SET_MARK_MASK] != NULL
			? xfrm_u32(tb[XFRMA_SET_MARK_MASK])
			: UINT32_MAX;
	}
	spec->if_id = xfrm_u32(tb[XFRMA_IF_ID]);
	spec->extra_flags = xfrm_u32(tb[XFRMA_SA_EXTRA_FLAGS]);
	spec->tfcpad = xfrm_u32(tb[XFRMA_TFCPAD]);
	spec->dir = tb[XFRM_ATTR_SA_DIR] != NULL ? mnl_attr_get_u8(tb[XFRM_ATTR_SA_DIR]) : 0;
	spec->has_pcpu = tb[XFRM_ATTR_SA_PCPU] != NULL;
	spec->pcpu = xfrm_u32(tb[XFRM_ATTR_SA_PCPU]);
	return 0;
}

/* Putting. */

static void
put_algorithm(struct netlink_put *put, uint16_t type, size_t header,
	const struct ipsec_cache_algorithm *alg)
{
	uint8_t buf[sizeof(struct xfrm_algo_aead) + sizeof(alg->key)];
	size_t len = ((size_t)alg->key_bits + 7) / 8;

	if (alg->name[0] == '\0' || len > sizeof(alg->key))
		return;
	memset(buf, 0, sizeof(buf));
	memcpy(buf, alg->name, sizeof(alg->name));
	memcpy(buf + sizeof(alg->name), &alg->key_bits, sizeof(alg->key_bits));
	if (header > sizeof(struct xfrm_algo))
		memcpy(buf + sizeof(alg->name) + sizeof(alg->key_bits), &alg->icv_bits,
			sizeof(alg->icv_bits));
	memcpy(buf + header, alg->key, len);
	netlink_put_data(put, type, buf, header + len);
	explicit_bzero(buf, sizeof(buf));
}

/*
 * The numbers. Which of those in the window were seen is the SA's own business; whoever takes the
 * numbers elsewhere must let none of them come again, so that all bits are set.
 */
void
xfrm_replay_put(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_replay_state state = {
		.oseq = (uint32_t)spec->oseq,
		.seq = (uint32_t)spec->seq,
		.bitmap = spec->seq != 0 ? UINT32_MAX : 0,
	};
	struct xfrm_replay_state_esn esn = {
		.bmp_len = (spec->replay_window + 31) / 32,
		.oseq = (uint32_t)spec->oseq,
		.oseq_hi = (uint32_t)(spec->oseq >> 32),
		.seq = (uint32_t)spec->seq,
		.seq_hi = (uint32_t)(spec->seq >> 32),
		.replay_window = spec->replay_window,
	};
	uint8_t buf[sizeof(esn) + REPLAY_WORDS_MAX * sizeof(uint32_t)];

	if (!spec->esn_form) {
		netlink_put_data(put, XFRMA_REPLAY_VAL, &state, sizeof(state));
		return;
	}
	memset(buf, spec->seq != 0 ? 0xff : 0, sizeof(buf));
	memcpy(buf, &esn, sizeof(esn));
	netlink_put_data(
		put, XFRMA_REPLAY_ESN_VAL, buf, sizeof(esn) + esn.bmp_len * sizeof(uint32_t));
}

void
xfrm_sa_put_tail(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec)
{
	if (spec->mark.v != 0 || spec->mark.m != 0)
		netlink_put_data(put, XFRMA_MARK, &spec->mark, sizeof(spec->mark));
	if (spec->if_id != 0)
		netlink_put_u32(put, XFRMA_IF_ID, spec->if_id);
	if (spec->dir != 0)
		netlink_put_u8(put, XFRM_ATTR_SA_DIR, spec->dir);
	if (spec->has_pcpu)
		netlink_put_u32(put, XFRM_ATTR_SA_PCPU, spec->pcpu);
}

/* Which family it is of is a flag of requests alone (copy_user_offload()). */
static void
put_offload(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec)
{
	struct xfrm_user_offload offload = {
		.ifindex = (int)spec->offload_ifindex,
		.flags = spec->offload_flags & (uint8_t)~XFRM_OFFLOAD_IPV6,
	};

	if (spec->offload_ifindex != 0)
		netlink_put_data(put, XFRMA_OFFLOAD_DEV, &offload, sizeof(offload));
}

void
xfrm_sa_put(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec)
{
	const struct ipsec_cache_algorithm *auth = &spec->auth;

	if (spec->extra_flags != 0)
		netlink_put_u32(put, XFRMA_SA_EXTRA_FLAGS, spec->extra_flags);
	if (spec->last_used != 0 && !put->bare)
		netlink_put_u64(put, XFRMA_LASTUSED, spec->last_used);
	put_algorithm(put, XFRMA_ALG_AEAD, sizeof(struct xfrm_algo_aead), &spec->aead);
	put_algorithm(put, XFRMA_ALG_AUTH, sizeof(struct xfrm_algo), auth);
	put_algorithm(put, XFRMA_ALG_AUTH_TRUNC, sizeof(struct xfrm_algo_auth), auth);
	put_algorithm(put, XFRMA_ALG_CRYPT, sizeof(struct xfrm_algo), &spec->crypt);
	if (spec->has_encap)
		netlink_put_data(put, XFRMA_ENCAP, &spec->encap, sizeof(spec->encap));
	if (spec->tfcpad != 0)
		netlink_put_u32(put, XFRMA_TFCPAD, spec->tfcpad);
	if (spec->set_mark != 0 || spec->set_mark_mask != 0) {
		netlink_put_u32(put, XFRMA_SET_MARK, spec->set_mark);
		netlink_put_u32(put, XFRMA_SET_MARK_MASK, spec->set_mark_mask);
	}
	xfrm_replay_put(put, spec);
	put_offload(put, spec);
	xfrm_sa_put_tail(put, spec);
	if (put->bare)
		netlink_put_data(
			put, XFRMA_LTIME_VAL, &spec->info.curlft, sizeof(spec->info.curlft));
}

void
xfrm_sa_id_of(const struct ipsec_cache_sa_spec *spec, struct xfrm_usersa_id *id)
{
	memset(id, 0, sizeof(*id));
	id->daddr = spec->info.id.daddr;
	id->spi = spec->info.id.spi;
	id->family = spec->info.family;
	id->proto = spec->info.id.proto;
}

bool
xfrm_sa_answer(struct netlink_request *req, const struct ipsec_cache_sa *sa, uint16_t flags)
{
	struct ipsec_cache_sa_spec spec;
	struct netlink_put put;
	bool ok;

	ipsec_cache_sa_describe(sa, &spec);
	ok = netlink_put_begin(req, &put, XFRM_MSG_NEWSA, flags, &spec.info, sizeof(spec.info));
	if (ok) {
		xfrm_sa_put(&put, &spec);
		ok = netlink_put_end(req, &put);
	}
	explicit_bzero(&spec, sizeof(spec));
	return ok;
}
