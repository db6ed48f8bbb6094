/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * ESP by the line, for tests that are written in another language. After the arrow, what is said:
 *
 *   local A                                         -> ok: an address of ours
 *   sa src=A dst=A spi=N [key=HEX] [WORD=N...]      -> ok, or refused and a sentence
 *   seal dst=A spi=N frame=HEX [WORD=N...]          -> done HEX, or drop and an error
 *   open frame=HEX [WORD=N...]                      -> the same, or not ours
 *   show dst=A spi=N                                -> what its packets changed in an SA
 *   backends                                        -> packets that the device sealed and opened
 *
 * With --backend=inline-crypto or inline-protocol frames go out and come in by a NIC that does so
 * for every SA that it can; what is said of them is what is on the wire. (With `share` they come in
 * otherwise: what a NIC writes to is its own.) With lookaside-crypto or lookaside-protocol a crypto
 * device does so, and is waited for.
 *
 * Words of an SA: icv (bits) null esn window sport dport flags xflags oseq seq tfc packets bytes.
 * Of a frame: cut (it comes in segments of that many bytes), share (somebody else holds it too, and
 * must see nothing of what happens), headroom. Ends with its input, and fails if an mbuf is missing
 * then.
 */

#include <inttypes.h>

#include "card.h"
#include "crypto.h"
#include "ipsec_cache/device.h"
#include "ipsec_cache/lookaside.h"
#include "line.h"

#define SAS_MAX 4096

static struct world world;
static struct rte_mempool *pool;
static struct card card;
static bool with_card, with_crypto;
static uint64_t came_back[2]; /* of those, opened and sealed */
static enum ipsec_session_kind kind;
/* An SA of a test both seals and opens: its other session, by the order of SAs. */
static struct {
	const struct ipsec_cache_rt *rt;
	struct ipsec_session *out;
} outs[SAS_MAX];
static unsigned int n_outs;

static struct ipsec_cache_rt *sa_of(const char *line);

static void
add_session(struct ipsec_cache_rt *rt, uint64_t oseq)
{
	const char *missing;

	struct ipsec_session *s = NULL;
	struct ipsec_crypto *dev;

	if (with_card)
		s = ipsec_session_create(world.ic, ipsec_device_find(world.ic, CARD_IFINDEX), rt,
			kind, false, oseq, &missing);
	for (unsigned int i = 0; s == NULL && (dev = ipsec_lookaside_dev(world.ic, i)) != NULL; i++)
		s = ipsec_lookaside_session(world.ic, dev, rt, kind, false, oseq, &missing);
	outs[n_outs].rt = rt;
	outs[n_outs++].out = s;
}

static struct ipsec_session *
session_of(const struct ipsec_cache_rt *rt)
{
	for (unsigned int i = 0; i < n_outs; i++)
		if (outs[i].rt == rt)
			return outs[i].out;
	return NULL;
}

static void
do_sa(const char *line)
{
	struct ipsec_cache_sa_spec spec;
	const char *why = "", *key;

	spec = world_spec(word(line, "src"), word(line, "dst"), (uint32_t)number(line, "spi", 0));
	if ((key = word(line, "key")) != NULL)
		spec.aead.key_bits =
			(unsigned int)(8 * hex(key, spec.aead.key, sizeof(spec.aead.key)));
	spec.aead.icv_bits = (unsigned int)number(line, "icv", 128);
	if (number(line, "null", 0) != 0)
		world_null(&spec);
	spec.info.flags |= (uint8_t)number(line, "flags", 0);
	spec.extra_flags = (uint32_t)number(line, "xflags", 0);
	spec.replay_window = (uint32_t)number(line, "window", 64);
	if (number(line, "esn", 0) != 0)
		world_esn(&spec);
	if (word(line, "sport") != NULL)
		world_udp(&spec, (uint16_t)number(line, "sport", 0),
			(uint16_t)number(line, "dport", 0));
	spec.oseq = number(line, "oseq", 0);
	spec.seq = number(line, "seq", 0);
	spec.has_replay = spec.oseq != 0 || spec.seq != 0;
	spec.tfcpad = (uint32_t)number(line, "tfc", 0);
	spec.info.lft.hard_packet_limit = number(line, "packets", XFRM_INF);
	spec.info.lft.hard_byte_limit = number(line, "bytes", XFRM_INF);
	if (ipsec_cache_sa_add(world.ic, &spec, false, &why) != 0) {
		printf("refused %s\n", why);
		return;
	}
	if (with_card || with_crypto)
		add_session(sa_of(line), spec.oseq);
	printf("ok\n");
}

static struct ipsec_cache_rt *
sa_of(const char *line)
{
	const char *dst = word(line, "dst");
	uint8_t daddr[16] = { 0 };

	inet_pton(world_family(dst), dst, daddr);
	return ipsec_sad_lookup(
		world.ic, htonl((uint32_t)number(line, "spi", 0)), world_family(dst), daddr, 0);
}

static struct rte_mbuf *
frame_of(const char *line)
{
	static uint8_t bytes[LINE_MAX_LEN / 2];
	size_t n = hex(word(line, "frame"), bytes, sizeof(bytes));
	struct rte_mbuf *m;

	m = test_frame(pool, bytes, (uint32_t)n, (uint32_t)number(line, "cut", 0));
	memset(packet_meta(m, world.meta_offset), 0, sizeof(struct packet_meta));
	if (word(line, "headroom") != NULL) {
		uint16_t room = (uint16_t)number(line, "headroom", 0);

		memmove((uint8_t *)m->buf_addr + room, rte_pktmbuf_mtod(m, void *), m->data_len);
		m->data_off = room;
	}
	return m;
}

/* The view that came with a frame is the one that parsing it gives. */
static void
print_frame(struct rte_mbuf *m, const struct packet_view *view)
{
	static uint8_t buf[LINE_MAX_LEN / 2];
	static char text[LINE_MAX_LEN];
	const uint8_t *p = rte_pktmbuf_read(m, 0, m->pkt_len, buf);
	struct packet_view again;
	const char *reason;
	uint32_t i;

	packet_view_parse(m, &again);
	if ((view != NULL && memcmp(view, &again, sizeof(again)) != 0) ||
		rte_mbuf_check(m, 1, &reason) != 0) {
		printf("broken view or mbuf\n");
		return;
	}
	for (i = 0; i < m->pkt_len; i++) {
		text[2 * i] = "0123456789abcdef"[p[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
	}
	text[2 * i] = '\0';
	printf("done %s\n", text);
}

/* A frame is what it is on the wire, if a NIC has its part in it. */
static void
print_done(struct rte_mbuf **m, const struct packet_view *view)
{
	if (((*m)->ol_flags & RTE_MBUF_F_TX_SEC_OFFLOAD) == 0)
		print_frame(*m, view);
	else if ((*m = card_send(&card, *m)) != NULL)
		print_frame(*m, NULL);
	else
		printf("the NIC sent nothing\n");
}

/* Until a crypto device gives the packet back. */
static void
wait_for(struct ipsec_cache_worker *w, struct rte_mbuf **m, struct packet_view *view,
	struct ipsec_cache_result *result)
{
	struct ipsec_cache_done done;

	while (ipsec_cache_poll(w, &done, 1) == 0)
		;
	result->pending = 0;
	result->drop = done.failed;
	result->done = !done.failed;
	result->error[0] = done.error;
	*m = done.m;
	came_back[done.sealed] += !done.failed;
	if (!done.failed)
		packet_view_parse(done.m, view);
}

static void
do_packet(const char *line, bool seal)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		IPSEC_CACHE_ERROR_LIST(X)
#undef X
	};
	static uint8_t before[LINE_MAX_LEN / 2], after[LINE_MAX_LEN / 2];
	struct ipsec_cache_worker *w = ipsec_cache_worker(world.ic, 0);
	struct rte_mbuf *m = frame_of(line), *other = NULL;
	struct packet_view view;
	struct packet_vector v = { .pkts = &m, .views = &view, .n = 1 };
	struct ipsec_cache_decision d = { .action = IPSEC_CACHE_PROTECT };
	const struct ipsec_cache_decision *decisions[1] = { &d };
	struct ipsec_cache_result result;
	uint32_t len;

	if (with_card && !seal && number(line, "share", 0) == 0 &&
		(m = card_receive(&card, m)) == NULL) {
		printf("vanished\n");
		return;
	}
	len = m->pkt_len;
	if (number(line, "share", 0) != 0) {
		other = rte_pktmbuf_clone(m, pool);
		memcpy(before, rte_pktmbuf_read(other, 0, len, after), len);
	}
	memset(&result, 0xa5, sizeof(result));
	ipsec_cache_begin(w);
	if (seal) {
		d.rt = sa_of(line);
		d.mtu = ipsec_rt_mtu(d.rt, WORLD_MTU);
		d.session = session_of(d.rt);
		ipsec_cache_seal(w, &v, 1, decisions, &result);
	} else {
		ipsec_cache_open(w, &v, 1, &result);
	}
	if (result.pending == 1)
		wait_for(w, &m, &view, &result);
	if (other != NULL && memcmp(before, rte_pktmbuf_read(other, 0, len, after), len) != 0)
		printf("written through\n");
	else if (result.done == 1)
		print_done(&m, &view);
	else if (result.drop == 1)
		printf("drop %s\n", names[result.error[0]]);
	else
		printf("%s\n", result.not_ours == 1 ? "not ours" : "nothing");
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(other);
}

static void
do_show(const char *line)
{
	struct ipsec_cache_sa_spec spec = { 0 };

	ipsec_rt_describe(sa_of(line), &spec);
	printf("oseq %" PRIu64 " seq %" PRIu64 " packets %" PRIu64 " bytes %" PRIu64
	       " old %u seen %u icv %u\n",
		spec.oseq, spec.seq, (uint64_t)spec.info.curlft.packets,
		(uint64_t)spec.info.curlft.bytes, spec.info.stats.replay_window,
		spec.info.stats.replay, spec.info.stats.integrity_failed);
}

static void
do_backends(void)
{
	printf("sealed %" PRIu64 " opened %" PRIu64 " lost %" PRIu64 "\n",
		with_card ? CARD_STAT(&card, tx_protected) : came_back[true],
		with_card ? CARD_STAT(&card, rx_decrypted) : came_back[false],
		with_card ? CARD_STAT(&card, tx_lost) + CARD_STAT(&card, tx_lens) : 0);
}

/* The drivers that do AES-GCM and NULL; or one that does ESP, with both. */
static void
set_lookaside(bool protocol)
{
	struct ipsec_cache_crypto crypto = { .n_queue_pairs = 1, .name = "crypto_null0" };

	with_crypto = true;
	world.loop = true;
	kind = protocol ? IPSEC_SESSION_LOOKASIDE_PROTOCOL : IPSEC_SESSION_LOOKASIDE_CRYPTO;
	if (!protocol)
		test_crypto_add(world.ic, "crypto_aesni_gcm0", 1);
	if (!test_crypto_make(crypto.name, &crypto.dev_id) ||
		(protocol && nic_crypto_attach(crypto.dev_id, "protocol") != 0) ||
		!test_crypto_start(crypto.dev_id, 1) ||
		ipsec_cache_crypto_add(world.ic, &crypto) != 0)
		exit(1);
}

static void
set_backend(const char *name)
{
	if (strncmp(name, "lookaside-", 10) == 0) {
		set_lookaside(strcmp(name + 10, "protocol") == 0);
		return;
	}
	with_card = true;
	if (strcmp(name, "inline-crypto") == 0) {
		kind = IPSEC_SESSION_INLINE_CRYPTO;
		card_open(&card, "card", "inline_crypto", NIC_NEED_MDATA, pool);
	} else if (strcmp(name, "inline-protocol") == 0) {
		kind = IPSEC_SESSION_INLINE_PROTOCOL;
		card_open(&card, "card", "inline_protocol", NIC_NEED_MDATA, pool);
	} else {
		fprintf(stderr, "there is no back end %s\n", name);
		exit(1);
	}
	if (card_add(&card, &world, CARD_IFINDEX, "p0") != 0)
		exit(1);
}

int
main(int argc, char **argv)
{
	static char line[LINE_MAX_LEN];

	test_eal_init("ipsec-shell", "0");
	pool = test_pool("shell", 4095);
	world_create(&world, 1, 64, false);
	if (argc == 2 && strncmp(argv[1], "--backend=", 10) == 0)
		set_backend(argv[1] + 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strncmp(line, "sa ", 3) == 0) {
			do_sa(line);
		} else if (strncmp(line, "local ", 6) == 0) {
			line[strcspn(line, "\n")] = '\0';
			world_local(&world, line + 6);
			printf("ok\n");
		} else if (strncmp(line, "seal ", 5) == 0 || strncmp(line, "open ", 5) == 0) {
			do_packet(line, line[0] == 's');
		} else if (strncmp(line, "show ", 5) == 0) {
			do_show(line);
		} else if (strncmp(line, "backends", 8) == 0) {
			do_backends();
		} else {
			printf("what?\n");
		}
	}
	if (!test_pool_full(pool)) {
		fprintf(stderr, "an mbuf is missing\n");
		return 1;
	}
	for (unsigned int i = 0; i < n_outs && with_card; i++)
		if (outs[i].out != NULL)
			ipsec_session_cancel(outs[i].out);
	test_crypto_stop();
	world_destroy(&world);
	return 0;
}
