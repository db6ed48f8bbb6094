/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <linux/udp.h>
#include <netinet/ip.h>
#include <string.h>
#include <sys/random.h>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "ipsec_cache/ecn.h"
#include "ipsec_cache/rt.h"
#include "ipsec_cache/vault.h"

static void
put_ipv4(uint8_t *p, const struct ipsec_cache_sa_spec *spec, uint8_t proto)
{
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.time_to_live = IPSEC_TTL,
		.next_proto_id = proto,
		.src_addr = spec->info.saddr.a4,
		.dst_addr = spec->info.id.daddr.a4,
	};

	memcpy(p, &ip, sizeof(ip));
}

static void
put_ipv6(uint8_t *p, const struct ipsec_cache_sa_spec *spec, uint8_t proto)
{
	struct rte_ipv6_hdr ip = {
		.vtc_flow = RTE_BE32(6u << 28),
		.proto = proto,
		.hop_limits = IPSEC_TTL,
	};

	memcpy(p, &ip, sizeof(ip));
	memcpy(p + offsetof(struct rte_ipv6_hdr, src_addr), &spec->info.saddr, 16);
	memcpy(p + offsetof(struct rte_ipv6_hdr, dst_addr), &spec->info.id.daddr, 16);
}

/* What a 16-bit word that is not there yet is added to: RFC 1071's sum, not folded. */
static uint32_t
sum_words(const uint8_t *p, unsigned int n)
{
	uint32_t sum = 0;
	uint16_t word;
	unsigned int i;

	for (i = 0; i < n; i += 2) {
		memcpy(&word, p + i, sizeof(word));
		sum += word;
	}
	return sum;
}

/* The outer header, right-aligned in its line. */
static void
fill_header(struct ipsec_cache_rt *rt, const struct ipsec_cache_sa_spec *spec)
{
	bool udp = (rt->flags & IPSEC_RT_UDP) != 0, v4 = rt->family == AF_INET;
	uint8_t proto = udp ? IPPROTO_UDP : IPPROTO_ESP, *p;
	struct rte_udp_hdr u = { 0 };

	rt->header_len = (uint8_t)((v4 ? IPSEC_IPV4_HEADER : IPSEC_IPV6_HEADER) +
		(udp ? IPSEC_UDP_HEADER : 0) + IPSEC_ESP_HEADER + rt->iv_len);
	p = rt->header + sizeof(rt->header) - rt->header_len;
	if (v4) {
		put_ipv4(p, spec, proto);
		rt->checksum = sum_words(p, IPSEC_IPV4_HEADER);
		p += IPSEC_IPV4_HEADER;
	} else {
		put_ipv6(p, spec, proto);
		p += IPSEC_IPV6_HEADER;
	}
	if (udp) {
		u.src_port = spec->encap.encap_sport;
		u.dst_port = spec->encap.encap_dport;
		memcpy(p, &u, sizeof(u));
		p += sizeof(u);
	}
	memcpy(p, &spec->info.id.spi, sizeof(spec->info.id.spi));
}

/* How packets are treated: the flags of the SA. */
static void
fill_flags(struct ipsec_cache_rt *rt, const struct ipsec_cache_sa_spec *spec, bool share)
{
	const struct xfrm_usersa_info *info = &spec->info;

	if ((info->flags & XFRM_STATE_ESN) != 0)
		rt->flags |= IPSEC_RT_ESN;
	if ((info->flags & XFRM_STATE_DECAP_DSCP) != 0)
		rt->flags |= IPSEC_RT_DSCP_IN;
	if ((spec->extra_flags & XFRM_SA_XFLAG_OSEQ_MAY_WRAP) != 0)
		rt->flags |= IPSEC_RT_WRAP;
	if (spec->set_mark != 0 || spec->set_mark_mask != 0)
		rt->flags |= IPSEC_RT_SET_MARK;
	if (spec->has_pcpu)
		rt->flags |= IPSEC_RT_PINNED;
	else if (share)
		rt->flags |= IPSEC_RT_SHARED;
	if (spec->has_encap) {
		rt->flags |= IPSEC_RT_UDP;
		rt->encap = UDP_ENCAP_ESPINUDP;
	}
	rt->tos_mask = 0xff;
	if ((info->flags & XFRM_STATE_NOECN) != 0)
		rt->tos_mask &= (uint8_t)~IPSEC_ECN_MASK;
	if ((spec->extra_flags & XFRM_SA_XFLAG_DONT_ENCAP_DSCP) != 0)
		rt->tos_mask &= (uint8_t)~IPSEC_DSCP_MASK;
	rt->copy_df = (info->flags & XFRM_STATE_NOPMTUDISC) == 0;
}

static uint64_t
remaining(uint64_t limit, uint64_t used)
{
	return limit == XFRM_INF ? UINT64_MAX : limit > used ? limit - used : 0;
}

/*
 * Where numbers begin. The last one that may be given out: 2^32 - 1, or with ESN 2^64 - 1, from
 * which sharers, who add first and look afterwards, stay far enough to never wrap.
 */
static void
fill_numbers(struct ipsec_cache_rt *rt, const struct ipsec_cache_sa_spec *spec)
{
	bool wide = (rt->flags & (IPSEC_RT_ESN | IPSEC_RT_WRAP)) != 0;

	rt->oseq_max = wide ? UINT64_MAX : UINT32_MAX;
	if (wide && (rt->flags & IPSEC_RT_SHARED) != 0)
		rt->oseq_max -= UINT32_MAX;
	atomic_init(&rt->oseq, spec->has_replay ? spec->oseq : 0);
	ipsec_window_init(
		&rt->window, rt->words, spec->replay_window, spec->has_replay ? spec->seq : 0);
	ipsec_rt_limit(rt, spec);
}

static void
fill_key(struct ipsec_cache_rt *rt, const struct ipsec_cipher *cipher,
	const struct ipsec_cache_sa_spec *spec)
{
	rt->cipher = cipher;
	rt->encrypt = cipher->encrypt;
	rt->decrypt = cipher->decrypt;
	rt->iv_len = cipher->iv_len;
	rt->key = (struct gcm_key_data *)(void *)rt->tail;
	if (cipher->expand == NULL)
		return;
	cipher->expand(spec->aead.key, (struct gcm_key_data *)(void *)rt->tail);
	memcpy(&rt->salt, spec->aead.key + cipher->key_len, sizeof(rt->salt));
}

/* What this room can do. */
static int
check_spec(const struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, const char **why)
{
	const struct xfrm_usersa_info *info = &spec->info;

	*why = "only ESP is supported here, not AH, IPComp and others";
	if (info->id.proto != IPPROTO_ESP)
		return -EOPNOTSUPP;
	*why = "only mode tunnel is supported here";
	if (info->mode != XFRM_MODE_TUNNEL)
		return -EOPNOTSUPP;
	*why = "the only encapsulation here is espinudp";
	if (spec->has_encap && spec->encap.encap_type != UDP_ENCAP_ESPINUDP)
		return -EOPNOTSUPP;
	*why = "an SA's family is inet or inet6";
	if (info->family != AF_INET && info->family != AF_INET6)
		return -EINVAL;
	*why = "a replay window has at most 4096 packets";
	if (spec->replay_window > IPSEC_CACHE_WINDOW_MAX)
		return -EINVAL;
	*why = "a sequence number without ESN has 32 bits";
	if (spec->has_replay && (info->flags & XFRM_STATE_ESN) == 0 &&
		(spec->oseq > UINT32_MAX || spec->seq > UINT32_MAX))
		return -EINVAL;
	*why = "an SA for one CPU names a worker that does not exist";
	if (spec->has_pcpu && spec->pcpu >= ic->conf.n_workers)
		return -ERANGE;
	*why = "TFC padding is at most 65535 bytes";
	if (spec->tfcpad > UINT16_MAX)
		return -EINVAL;
	return 0;
}

struct ipsec_cache_rt *
ipsec_rt_create(struct ipsec_cache *ic, const struct ipsec_cache_sa *sa, int *err, const char **why)
{
	const struct ipsec_cache_sa_spec *spec = &sa->spec;
	const struct ipsec_cipher *cipher;
	struct ipsec_cache_rt *rt;
	unsigned int icv_len;
	size_t size, alen;

	if ((*err = check_spec(ic, spec, why)) != 0 ||
		(cipher = ipsec_cipher_find(ic->ciphers, spec, &icv_len, err, why)) == NULL)
		return NULL;
	size = sizeof(*rt) + cipher->key_size +
		ipsec_window_words(spec->replay_window) * sizeof(uint64_t);
	*err = -ENOMEM;
	*why = "no memory for another SA";
	if ((rt = ipsec_vault_alloc(ic->vault, size)) == NULL)
		return NULL;
	rt->vault = ic->vault;
	rt->size = size;
	rt->sa = sa;
	rt->serial = sa->serial;
	rt->spi = spec->info.id.spi;
	rt->family = (uint8_t)spec->info.family;
	alen = rt->family == AF_INET ? 4 : 16;
	memcpy(rt->daddr, &spec->info.id.daddr, alen);
	memcpy(rt->saddr, &spec->info.saddr, alen);
	rt->sport = spec->encap.encap_sport;
	rt->icv_len = (uint8_t)icv_len;
	rt->tfcpad = (uint16_t)spec->tfcpad;
	rt->set_mark = spec->set_mark;
	rt->set_mark_mask = spec->set_mark_mask;
	rt->pcpu = spec->pcpu;
	rt->words = (uint64_t *)(void *)(rt->tail + cipher->key_size);
	fill_flags(rt, spec, ic->conf.share_numbers);
	fill_key(rt, cipher, spec);
	fill_header(rt, spec);
	fill_numbers(rt, spec);
	if (getrandom(&rt->iv_mask, sizeof(rt->iv_mask), 0) != sizeof(rt->iv_mask)) {
		*err = -EIO;
		*why = "the system has no random numbers";
		ipsec_rt_free(rt);
		return NULL;
	}
	*err = 0;
	return rt;
}

void
ipsec_rt_free(struct ipsec_cache_rt *rt)
{
	if (rt != NULL)
		ipsec_vault_free(rt->vault, rt, rt->size);
}

const struct ipsec_cache_sa *
ipsec_rt_sa(const struct ipsec_cache_rt *rt)
{
	return rt->sa;
}

const char *
ipsec_rt_backend(const struct ipsec_cache_rt *rt)
{
	return rt->cipher->name;
}

void
ipsec_rt_limit(struct ipsec_cache_rt *rt, const struct ipsec_cache_sa_spec *spec)
{
	const struct xfrm_usersa_info *info = &spec->info;
	uint64_t packets = remaining(info->lft.hard_packet_limit, info->curlft.packets);
	uint64_t bytes = remaining(info->lft.hard_byte_limit, info->curlft.bytes);

	ipsec_store(&rt->hard_packets, packets);
	ipsec_store(&rt->hard_bytes, bytes);
	ipsec_store(&rt->limited, packets != UINT64_MAX || bytes != UINT64_MAX);
}

void
ipsec_rt_expire(struct ipsec_cache_rt *rt)
{
	/* relaxed: those who do not see it yet are as if they had been a little earlier */
	ipsec_store(&rt->expired, true);
}

/* The number that sharers, who may have added beyond the end, have come to. */
static uint64_t
rt_oseq(const struct ipsec_cache_rt *rt)
{
	return RTE_MIN(ipsec_load(&rt->oseq), rt->oseq_max);
}

void
ipsec_rt_describe(const struct ipsec_cache_rt *rt, struct ipsec_cache_sa_spec *spec)
{
	spec->info.curlft.packets += ipsec_load(&rt->packets);
	spec->info.curlft.bytes += ipsec_load(&rt->bytes);
	spec->info.stats.replay_window = ipsec_load(&rt->bad_old);
	spec->info.stats.replay = ipsec_load(&rt->bad_seen);
	spec->info.stats.integrity_failed = ipsec_load(&rt->bad_icv);
	if (spec->info.curlft.use_time == 0)
		spec->info.curlft.use_time = ipsec_load(&rt->first_used);
	if (ipsec_load(&rt->last_used) != 0)
		spec->last_used = ipsec_load(&rt->last_used);
	spec->has_replay = true;
	spec->oseq = rt_oseq(rt);
	spec->seq = ipsec_window_top(&rt->window);
}

/* True if a NAT moved the peer; false as well while a worker is writing that down. */
static bool
rt_moved(const struct ipsec_cache_rt *rt, struct ipsec_rt_usage *usage)
{
	/* acquire: the address is not older than the count that vouches for it */
	uint32_t before = atomic_load_explicit(&rt->moved, memory_order_acquire);
	uint64_t saddr[2];

	if (before == 0 || before % 2 != 0)
		return false;
	saddr[0] = ipsec_load(&rt->moved_saddr[0]);
	saddr[1] = ipsec_load(&rt->moved_saddr[1]);
	memcpy(&usage->saddr, saddr, sizeof(saddr));
	usage->sport = ipsec_load(&rt->moved_sport);
	/* keeps the second look at the count behind the looks at what it counts */
	atomic_thread_fence(memory_order_acquire);
	return ipsec_load(&rt->moved) == before;
}

void
ipsec_rt_usage(const struct ipsec_cache_rt *rt, struct ipsec_rt_usage *usage)
{
	memset(usage, 0, sizeof(*usage));
	usage->packets = ipsec_load(&rt->packets);
	usage->bytes = ipsec_load(&rt->bytes);
	usage->first_used = ipsec_load(&rt->first_used);
	usage->oseq = rt_oseq(rt);
	usage->seq = ipsec_window_top(&rt->window);
	usage->exhausted = usage->oseq == rt->oseq_max ||
		usage->packets >= ipsec_load(&rt->hard_packets) ||
		usage->bytes >= ipsec_load(&rt->hard_bytes);
	usage->moved = rt_moved(rt, usage);
}

uint16_t
ipsec_rt_mtu(const struct ipsec_cache_rt *rt, uint32_t link_mtu)
{
	uint32_t around = rt->header_len + (uint32_t)rt->icv_len;

	if (link_mtu < around + IPSEC_PAD_ALIGN)
		return 0;
	/* pad length and next header stand behind the padding */
	return (uint16_t)(RTE_ALIGN_FLOOR(RTE_MIN(link_mtu, UINT16_MAX) - around, IPSEC_PAD_ALIGN) -
		2);
}
