/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * libFuzzer: any bytes are a frame for ipsec_cache_open(), or the text inside an ESP packet, as the
 * first two say, which also say how the frame is cut and if it is shared. Ciphers are stubs that
 * leave the text as it is and find a check value of zeros right, so that what is behind them is
 * reached. A segment lies in memory that ends where it ends, so that AddressSanitizer sees a read
 * or write beyond it.
 *
 * A NIC may have marked the frame: as decrypted, by an SA that it decrypts for or not; as opened
 * whole, by a session that there is or not; as failed.
 *
 * What comes out is a frame whose view is right; a decision can be made for it; and sealed and
 * opened again it is the same packet.
 */

#include <sanitizer/lsan_interface.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "../../unit/ipsec_cache/world.h"
#include "ipsec_cache/session.h"
#include "security.h"

#define FROM "192.0.2.1"
#define TO "192.0.2.2"
#define FROM6 "2001:db8::1"
#define TO6 "2001:db8::2"
#define SEGMENTS_MAX 8
#define FRAME_MAX 4096
#define HEADROOM 128
#define MBUFS 127

/* First byte. */
#define MODE_TEXT 0x01 /* the bytes are what is inside ESP */
#define MODE_SA 0x0e /* which SA */
#define MODE_SHARED 0x10
#define MODE_PAD 0x20 /* a trailer that fits is put behind the text */
#define MODE_NIC 0x40 /* marked by a NIC, of the session of that SA */
#define MODE_FAILED 0x80 /* which says that it failed, or (alone) means a session that is none */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world world;
static struct rte_mempool *pool;
static struct ipsec_cache_rt *sas[8];
static uint64_t numbers; /* of texts */
static void *buffers[MBUFS];
static unsigned int n_buffers;

static void
stub_whole(const struct gcm_key_data *key, struct gcm_context_data *ctx, uint8_t *out,
	const uint8_t *in, uint64_t len, const uint8_t *nonce, const uint8_t *aad, uint64_t aad_len,
	uint8_t *icv, uint64_t icv_len)
{
	volatile uint8_t sum = 0;
	uint64_t i;

	(void)key;
	(void)ctx;
	(void)out;
	/* all of it may be read */
	for (i = 0; i < len; i++)
		sum = (uint8_t)(sum + in[i]);
	for (i = 0; i < aad_len; i++)
		sum = (uint8_t)(sum + aad[i]);
	for (i = 0; i < IPSEC_NONCE_LEN; i++)
		sum = (uint8_t)(sum + nonce[i]);
	memset(icv, 0, icv_len);
}

static void
stub_init(const struct gcm_key_data *key, struct gcm_context_data *ctx, const uint8_t *nonce,
	const uint8_t *aad, uint64_t aad_len)
{
	uint8_t icv[IPSEC_ICV_MAX];

	stub_whole(key, ctx, NULL, NULL, 0, nonce, aad, aad_len, icv, sizeof(icv));
}

static void
stub_update(const struct gcm_key_data *key, struct gcm_context_data *ctx, uint8_t *out,
	const uint8_t *in, uint64_t len)
{
	static const uint8_t nonce[IPSEC_NONCE_LEN];
	uint8_t icv[IPSEC_ICV_MAX];

	stub_whole(key, ctx, out, in, len, nonce, NULL, 0, icv, sizeof(icv));
}

static void
stub_finalize(const struct gcm_key_data *key, struct gcm_context_data *ctx, uint8_t *icv,
	uint64_t icv_len)
{
	(void)key;
	(void)ctx;
	memset(icv, 0, icv_len);
}

static struct ipsec_cipher stub = {
	.name = "stub",
	.salt_len = 4,
	.iv_len = 8,
	.encrypt = stub_whole,
	.decrypt = stub_whole,
	.init = stub_init,
	.encrypt_update = stub_update,
	.decrypt_update = stub_update,
	.encrypt_finalize = stub_finalize,
	.decrypt_finalize = stub_finalize,
};

static const struct rte_security_capability *
nic_capabilities(void *device)
{
	static const struct rte_security_capability capabilities[] = {
		SECURITY_CAPABILITY(PROTOCOL, INGRESS), SECURITY_CAPABILITY(CRYPTO, INGRESS), { 0 }
	};

	(void)device;
	return capabilities;
}

static struct rte_security_ctx *
security_ctx(uint16_t port)
{
	static const struct rte_security_ops ops = {
		.session_create = security_create,
		.session_get_size = security_size,
		.session_destroy = security_destroy,
		.capabilities_get = nic_capabilities,
	};
	static struct rte_security_ctx ctx = { .ops = &ops };

	(void)port;
	return &ctx;
}

/*
 * SA i: bit 0 IPv6, bit 1 in UDP, bit 2 no cipher, the others with ESN. A NIC does all of those
 * with a cipher, or in UDP their cryptography.
 */
static void
add_sa(unsigned int i)
{
	struct ipsec_cache_sa_spec spec = (i & 1) != 0 ? world_spec(FROM6, TO6, 0x1000 + i)
						       : world_spec(FROM, TO, 0x1000 + i);

	if ((i & 2) != 0)
		world_udp(&spec, 4500, 4500);
	if ((i & 4) != 0)
		world_null(&spec);
	else
		world_esn(&spec);
	spec.replay_window = (i & 1) != 0 ? 64 : 0;
	sas[i] = world_sa(&world, &spec);
	if ((i & 4) == 0) {
		sas[i]->cipher = &stub;
		sas[i]->encrypt = sas[i]->decrypt = stub_whole;
	}
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct ipsec_cache_dev dev = { .ifindex = 2, .port_id = 0, .name = "p0" };
	struct ipsec_cache_policy_spec policy;
	unsigned int i;

	(void)argc;
	(void)argv;
	/* the instance holds what it allocates from EAL's memory, where LeakSanitizer does not look
	 */
	__lsan_disable();
	test_eal_init("ipsec-fuzz", "0");
	pool = test_pool("fuzz", MBUFS);
	world_create(&world, 1, 64, false);
	world_local(&world, TO);
	world_local(&world, TO6);
	if (rte_security_dynfield_register() < 0 || ipsec_cache_dev_add(world.ic, &dev) != 0)
		exit(1);
	for (i = 0; i < RTE_DIM(sas); i++)
		add_sa(i);
	/* ports and marks count, so that they are looked at */
	policy = world_policy(XFRM_POLICY_OUT, 1, FROM, "192.0.2.3", 1);
	policy.info.sel.proto = IPPROTO_UDP;
	policy.info.sel.dport = htons(9);
	policy.info.sel.dport_mask = UINT16_MAX;
	policy.mark = (struct xfrm_mark){ .v = 3, .m = 7 };
	world_add_policy(&world, &policy);
	policy = world_policy(XFRM_POLICY_FWD, 1, FROM, TO, 0);
	world_add_policy(&world, &policy);
	__lsan_enable();
	return 0;
}

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

/* An mbuf whose data end where its memory ends; it claims to be memory of its own. */
static struct rte_mbuf *
segment(const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *buffer = malloc(HEADROOM + len);

	memset(buffer, 0, HEADROOM);
	memcpy(buffer + HEADROOM, data, len);
	buffers[n_buffers++] = buffer;
	m->buf_addr = buffer;
	m->buf_len = (uint16_t)(HEADROOM + len);
	m->data_off = HEADROOM;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	return m;
}

/* Gives every mbuf its own memory back. */
static void
restore(struct rte_mempool *mp, void *arg, void *object, unsigned int i)
{
	struct rte_mbuf *m = object;

	(void)arg;
	(void)i;
	m->buf_addr = (uint8_t *)m + sizeof(*m) + rte_pktmbuf_priv_size(mp);
	m->buf_len = rte_pktmbuf_data_room_size(mp);
}

static struct rte_mbuf *
frame_of(const uint8_t *data, uint32_t len, uint32_t cut)
{
	struct rte_mbuf *head = NULL, *m;
	uint32_t part, n;

	for (n = 1; head == NULL || len > 0; n++, data += part, len -= part) {
		part = cut != 0 && cut < len && n < SEGMENTS_MAX ? cut : len;
		m = segment(data, part);
		if (head == NULL)
			head = m;
		else
			rte_pktmbuf_chain(head, m);
	}
	return head;
}

/* As a NIC gives it. */
static void
mark(struct rte_mbuf *m, const struct ipsec_cache_rt *rt, uint8_t mode)
{
	const struct ipsec_session *s = atomic_load(&rt->session);

	if ((mode & (MODE_NIC | MODE_FAILED)) == 0)
		return;
	m->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD;
	*rte_security_dynfield(m) = s != NULL ? s->id : 0;
	if ((mode & MODE_NIC) == 0)
		*rte_security_dynfield(m) += UINT64_C(1) << 32;
	else if ((mode & MODE_FAILED) != 0)
		m->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED;
}

/* An ESP packet around a text. Returns its length as a frame. */
static uint32_t
wrap(uint8_t *p, const struct ipsec_cache_rt *rt, const uint8_t *text, uint32_t len, bool trailer)
{
	uint8_t *esp = p + RTE_ETHER_HDR_LEN + rt->header_len - 8 - rt->iv_len;
	uint32_t total, seq = htonl((uint32_t)++numbers), pad = -(len + 2) % 4, i;
	uint8_t proto = len > 0 && text[0] >> 4 == 6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	uint16_t word;

	memset(p, 0, RTE_ETHER_HDR_LEN);
	memcpy(p + RTE_ETHER_HDR_LEN, rt->header + sizeof(rt->header) - rt->header_len,
		rt->header_len);
	memcpy(esp + 4, &seq, sizeof(seq));
	memcpy(esp + 8 + rt->iv_len, text, len);
	text = esp + 8 + rt->iv_len;
	if (trailer) {
		for (i = 1; i <= pad; i++)
			esp[8 + rt->iv_len + len++] = (uint8_t)i;
		esp[8 + rt->iv_len + len++] = (uint8_t)pad;
		esp[8 + rt->iv_len + len++] = proto;
	}
	memset(esp + 8 + rt->iv_len + len, 0, rt->icv_len);
	total = rt->header_len + len + rt->icv_len;
	if (rt->family == AF_INET) {
		p[12] = 8;
		word = htons((uint16_t)total);
		memcpy(p + 16, &word, 2);
	} else {
		p[12] = 0x86;
		p[13] = 0xdd;
		word = htons((uint16_t)(total - 40));
		memcpy(p + 18, &word, 2);
	}
	if ((rt->flags & IPSEC_RT_UDP) != 0) {
		word = htons((uint16_t)(8 + 8 + rt->iv_len + len + rt->icv_len));
		memcpy(esp - 4, &word, 2);
	}
	return RTE_ETHER_HDR_LEN + total;
}

/* Seals the packet and opens it again: it is the same. */
static void
there_and_back(const uint8_t *packet, uint32_t len, struct ipsec_cache_rt *rt, uint32_t cut)
{
	struct rte_mbuf *m = test_frame(pool, packet, len, cut);
	static uint8_t buf[FRAME_MAX];
	struct ipsec_cache_result result;
	struct packet_view view;
	uint8_t by = atomic_exchange(&rt->by, 0); /* the CPU's */

	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	/* whatever number the first packet had, the next one comes in order */
	ipsec_window_init(&rt->window, rt->words, rt->window.size, ipsec_load(&rt->oseq));
	world_seal(&world, 0, &m, rt, &result);
	CHECK(result.done == 1);
	packet_view_parse(m, &view);
	CHECK((view.flags & PACKET_F_L3) != 0 && view.l3_end == m->pkt_len);
	world_open(&world, 0, &m, &result);
	CHECK(result.done == 1 && m->pkt_len == len);
	CHECK(memcmp((const uint8_t *)rte_pktmbuf_read(m, 0, len, buf) + 14, packet + 14,
		      len - 14) == 0);
	rte_pktmbuf_free(m);
	atomic_store(&rt->by, by);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frame[FRAME_MAX + 256], packet[FRAME_MAX];
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);
	const struct ipsec_cache_decision *decision;
	struct ipsec_cache_result result;
	struct packet_view view, again;
	struct rte_mbuf *m, *other = NULL;
	struct packet_vector v = { .pkts = &m, .views = &view, .n = 1 };
	struct ipsec_cache_rt *rt;
	const char *reason;
	uint32_t len, cut;

	if (size < 3 || size > FRAME_MAX - 2)
		return 0;
	rt = sas[(data[0] & MODE_SA) >> 1];
	cut = data[1];
	len = (uint32_t)size - 2;
	if ((data[0] & MODE_TEXT) != 0)
		len = wrap(frame, rt, data + 2, len, (data[0] & MODE_PAD) != 0);
	else
		memcpy(frame, data + 2, len);
	if ((data[0] & MODE_SHARED) != 0) {
		/* a clone finds the mbuf that it shares by the address of its memory */
		m = test_frame(pool, frame, len, RTE_MAX(cut, len / SEGMENTS_MAX + 1));
		memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
		other = rte_pktmbuf_clone(m, pool);
	} else {
		m = frame_of(frame, len, cut);
	}
	mark(m, rt, data[0]);
	ipsec_cache_begin(w);
	ipsec_cache_open(w, &v, 1, &result);
	CHECK((result.done == 0 && result.not_ours == 0) ||
		(m->ol_flags & (RTE_MBUF_F_RX_SEC_OFFLOAD | RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED)) ==
			0);
	CHECK((result.done | result.drop | result.not_ours) == 1 && result.hand_over == 0 &&
		result.pending == 0);
	if (other != NULL) {
		CHECK(other->pkt_len == len);
		CHECK(memcmp(rte_pktmbuf_read(other, 0, len, packet), frame, len) == 0);
	}
	CHECK(rte_mbuf_check(m, 1, &reason) == 0);
	packet_view_parse(m, &again);
	CHECK(memcmp(&view, &again, sizeof(view)) == 0);
	if (result.drop == 0) {
		if (result.not_ours != 0)
			result.rt[0] = NULL;
		ipsec_cache_decide(w, &v, 1, result.rt, 1, &decision);
		CHECK(decision != NULL);
	}
	if (result.done == 1) {
		CHECK(view.l3_off == 14 && view.l3_end == m->pkt_len);
		len = m->pkt_len;
		memcpy(packet, rte_pktmbuf_read(m, 0, len, packet), len);
		there_and_back(packet, len, rt, cut == 0 ? 0 : cut + len / SEGMENTS_MAX);
	}
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(other);
	CHECK(test_pool_full(pool));
	rte_mempool_obj_iter(pool, restore, NULL);
	while (n_buffers > 0)
		free(buffers[--n_buffers]);
	return 0;
}
