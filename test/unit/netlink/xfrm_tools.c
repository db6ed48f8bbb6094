/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* SAs and policies by the real `ip xfrm`, and what it prints. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ipsec_cache/ipsec_cache.h"
#include "support.h"
#include "tools.h"

#define KEY "0x000102030405060708090a0b0c0d0e0f10111213"
#define ENDS "src 192.0.2.1 dst 198.51.100.2 "
#define ESP ENDS "proto esp spi "
#define AEAD " mode tunnel aead 'rfc4106(gcm(aes))' " KEY " 128 "
#define FLOW "src 10.1.0.0/16 dst 10.2.0.0/16 dir out "
#define TMPL "tmpl " ENDS "proto esp reqid 7 mode tunnel "

static void
state_walk(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm state add " ESP "0x1000 reqid 7" AEAD);
	RUN(0, "ip xfrm state list");
	OUT_IS("src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00001000 reqid 7 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\taead rfc4106(gcm(aes)) " KEY " 128\n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n");
	RUN(0, "ip xfrm state list nokeys");
	OUT_HAS("aead rfc4106(gcm(aes)) <<Keys hidden>> 128");
	assert_null(strstr(out, "0x00010203"));
	RUN(0, "ip xfrm state get " ESP "0x1000");
	OUT_HAS("spi 0x00001000 reqid 7");
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 1\n");
	RUN(0, "ip xfrm state delete " ESP "0x1000");
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 0\n");
	families_destroy(f);
}

/* Every word that an SA may have comes back as it was given. */
static void
state_words(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0,
		"ip xfrm state add " ESP "0x1000 reqid 7 mark 5 mask 0xff if_id 3 replay-window 32 "
		"seq 9 replay-seq 0x10 replay-oseq 0x20 flag noecn decap-dscp icmp align4" AEAD
		"output-mark 0x10 mask 0xf0 limit time-hard 100 limit time-soft 50 "
		"limit time-use-hard 99 limit time-use-soft 98 limit packet-hard 50000 "
		"limit packet-soft 40000 limit byte-hard 500000 limit byte-soft 400000 "
		"sel src 10.0.0.0/8 dst 10.2.0.0/16 proto tcp sport 80 dev p1");
	RUN(0, "ip -s -d xfrm state list");
	OUT_HAS("proto esp spi 0x00001000(4096) reqid 7(0x00000007) mode tunnel\n"
		"\treplay-window 32 seq 0x");
	OUT_HAS("flag noecn decap-dscp icmp align4 (0x");
	OUT_HAS("\tmark 0x5/0xff output-mark 0x10/0xf0\n"
		"\taead rfc4106(gcm(aes)) " KEY " (160 bits) 128\n"
		"\tanti-replay context: seq 0x10, oseq 0x20, bitmap 0xffffffff\n"
		"\tif_id 0x3\n"
		"\tsel src 10.0.0.0/8 dst 10.2.0.0/16 proto tcp sport 80 dev p1 uid 0\n"
		"\tlifetime config:\n"
		"\t  limit: soft 400000(bytes), hard 500000(bytes)\n"
		"\t  limit: soft 40000(packets), hard 50000(packets)\n"
		"\t  expire add: soft 50(sec), hard 100(sec)\n"
		"\t  expire use: soft 98(sec), hard 99(sec)\n"
		"\tlifetime current:\n"
		"\t  0(bytes), 0(packets)\n");
	OUT_HAS(" use -\n\tstats:\n\t  replay-window 0 replay 0 failed 0\n");
	RUN(0, "ip xfrm state get " ESP "0x1000 mark 0x105");
	RUN(2, "ip xfrm state get " ESP "0x1000 mark 6");
	RUN(2, "ip xfrm state get " ESP "0x1000");
	OUT_IS("Error: There is no SA with SPI 0x00001000, this destination and mark.\n");
	RUN(0,
		"ip xfrm state add src 2001:db8::1 dst 2001:db8::2 proto esp spi 0x1001 flag esn "
		"af-unspec replay-window 4096 extra-flag dont-encap-dscp oseq-may-wrap" AEAD
		"encap espinudp 4500 4501 0.0.0.0");
	RUN(0, "ip xfrm state list dst 2001:db8::2");
	OUT_HAS("src 2001:db8::1 dst 2001:db8::2\n"
		"\tproto esp spi 0x00001001 reqid 0 mode tunnel\n"
		"\treplay-window 0 flag af-unspec esn\n");
	OUT_HAS("encap type espinudp sport 4500 dport 4501 addr ::\n"
		"\tanti-replay esn context:\n"
		"\t seq-hi 0x0, seq 0x0, oseq-hi 0x0, oseq 0x0\n"
		"\t replay_window 4096, bitmap-length 128\n");
	RUN(0, "ip -s -d xfrm state list dst 2001:db8::2");
	OUT_HAS("extra_flag dont-encap-dscp oseq-may-wrap");
	RUN(0, "ip xfrm state add " ESP "0x1002 mode tunnel enc 'ecb(cipher_null)' ''");
	RUN(0,
		"ip xfrm state add " ESP "0x1003 mode tunnel enc 'ecb(cipher_null)' '' "
		"auth digest_null ''");
	RUN(0, "ip xfrm state list src 192.0.2.0/24");
	OUT_HAS("spi 0x00001002");
	assert_null(strstr(out, "0x00001001"));
	RUN(0, "ip xfrm state list dst 203.0.113.0/24");
	OUT_IS("");
	RUN(0, "ip xfrm state list proto ah");
	OUT_IS("");
	RUN(0, "ip xfrm state deleteall src 2001:db8::1");
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 3\n");
	RUN(0, "ip xfrm state flush proto ah");
	RUN(0, "ip -s xfrm state count");
	OUT_IS("\t SAD count 3 (buckets count 131072 Max 131072)\n");
	RUN(0, "ip xfrm state flush");
	RUN(0, "ip xfrm state list");
	OUT_IS("");
	families_destroy(f);
}

/* Each refusal names what is wrong, and changes nothing. */
static void
state_refused(void **state)
{
	static const struct {
		const char *args;
		const char *why;
	} bad[] = {
		{ ESP "0xff" AEAD, "SPIs 0 to 255 are reserved" },
		{ ESP "0x1000" AEAD, "There is an SA with this SPI, destination and mark already" },
		{ ESP "0x2000 mode tunnel aead 'rfc4106(gcm(aes))' 0x00 128",
			"takes a key of 160, 224 or 288 bits" },
		{ ESP "0x2000 mode tunnel aead 'rfc4106(gcm(aes))' " KEY " 42", "check value" },
		{ ESP "0x2000 mode tunnel aead 'rfc7539esp(chacha20,poly1305)' " KEY " 128",
			"the only AEAD here is rfc4106(gcm(aes))" },
		{ ESP "0x2000 mode tunnel enc 'cbc(aes)' " KEY " auth 'hmac(sha256)' 0x00",
			"rfc4106(gcm(aes))" },
		{ ESP "0x2000 mode transport aead 'rfc4106(gcm(aes))' " KEY " 128",
			"Transport mode is not supported yet" },
		{ ESP "0x2000 mode beet aead 'rfc4106(gcm(aes))' " KEY " 128",
			"BEET mode is not supported yet" },
		{ ENDS "proto ah spi 0x2000 mode tunnel auth 'hmac(sha256)' 0x00",
			"AH is not supported yet" },
		{ ENDS "proto comp spi 0x2000 mode tunnel comp deflate",
			"XFRMA_ALG_COMP is not supported" },
		{ ESP "0x2000 flag wildrecv" AEAD, "Flag wildrecv is not supported" },
		{ ESP "0x2000" AEAD "encap espinudp-nonike 4500 4500 0.0.0.0",
			"Of encapsulations only espinudp is supported" },
		{ ESP "0x2000" AEAD "encap espinudp 0 4500 0.0.0.0", "needs both ports" },
		{ ESP "0x2000 mark 6 mask 3" AEAD, "A mark has bits that its mask takes away" },
		{ ESP "0x2000" AEAD "offload dev p1 dir out",
			"Port p1 cannot do the SA with SPI 0x00002000: it has no rte_security, or "
			"is down" },
		{ "src 192.0.2.1 dst 0.0.0.0 proto esp spi 0x2000" AEAD,
			"An SA needs the address that its packets go to" },
	};
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm state add " ESP "0x1000" AEAD);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		RUN(2, "ip xfrm state add %s", bad[i].args);
		OUT_HAS("Error: ");
		OUT_HAS(bad[i].why);
	}
	RUN(2, "ip xfrm state update " ESP "0x2000" AEAD);
	OUT_HAS("Error: There is no SA with this SPI, destination and mark.");
	RUN(2, "ip xfrm state delete " ESP "0x2000");
	OUT_HAS("Error: There is no SA with SPI 0x00002000");
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 1\n");
	families_destroy(f);
}

/* An update of an SA that works changes its lifetimes and nothing else. */
static void
state_update(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm state add " ESP "0x1000 reqid 7" AEAD);
	RUN(0, "ip xfrm state update " ESP "0x1000 reqid 7" AEAD "limit time-soft 77");
	RUN(0, "ip -s xfrm state list");
	OUT_HAS("expire add: soft 77(sec), hard 0(sec)");
	RUN(2, "ip xfrm state update " ESP "0x1000 reqid 8" AEAD);
	OUT_HAS("An update changes lifetimes only");
	RUN(2,
		"ip xfrm state update " ESP
		"0x1000 reqid 7 mode tunnel aead 'rfc4106(gcm(aes))' 0x%040d 128",
		0);
	OUT_HAS("An update keeps algorithms and keys");
	RUN(2,
		"ip xfrm state update " ESP "0x1000 reqid 7" AEAD
		"encap espinudp 4500 4500 0.0.0.0");
	OUT_HAS("An update keeps the encapsulation");
	RUN(0, "ip -s xfrm state list");
	OUT_HAS("reqid 7(");
	OUT_HAS("expire add: soft 77(sec), hard 0(sec)");
	OUT_HAS(KEY);
	families_destroy(f);
}

/* Without `mode` ip says transport. What completes it decides. */
static void
state_allocspi_in_any_mode(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm state allocspi " ENDS "proto esp reqid 9 min 0x2000 max 0x2000");
	OUT_HAS("proto esp spi 0x00002000 reqid 9 mode transport");
	RUN(0, "ip xfrm state allocspi " ENDS "proto esp mode beet min 0x2001 max 0x2001");
	OUT_HAS("mode beet");
	RUN(2,
		"ip xfrm state update " ENDS "proto esp spi 0x2000 mode transport reqid 9 "
		"aead 'rfc4106(gcm(aes))' " KEY " 128");
	OUT_HAS("Transport mode is not supported yet");
	RUN(0, "ip xfrm state list reqid 9");
	OUT_HAS("mode transport");
	RUN(0, "ip xfrm state update " ESP "0x2000 reqid 9" AEAD);
	RUN(0, "ip xfrm state list reqid 9");
	OUT_HAS("mode tunnel");
	OUT_HAS("aead rfc4106");
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 2\n");
	families_destroy(f);
}

static void
state_allocspi(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0,
		"ip xfrm state allocspi " ENDS
		"proto esp mode tunnel reqid 9 seq 4 min 0x2000 max 0x2000");
	OUT_IS("src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00002000 reqid 9 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n");
	RUN(2, "ip xfrm state allocspi " ENDS "proto esp mode tunnel min 0x2000 max 0x2000");
	OUT_IS("Error: Every SPI in that range is taken.\n");
	RUN(0, "ip xfrm state allocspi " ENDS "proto esp mode tunnel min 0x2000 max 0x2001");
	OUT_HAS("spi 0x00002001");
	RUN(2, "ip xfrm state allocspi " ENDS "proto esp mode tunnel min 1 max 0x2000");
	OUT_HAS("SPIs 0 to 255 are reserved");
	RUN(2, "ip xfrm state allocspi " ENDS "proto ah mode tunnel min 0x100 max 0x200");
	OUT_HAS("Only ESP has SPIs here");
	/* taken: by add not, by update once */
	RUN(2, "ip xfrm state add " ESP "0x2000 reqid 9" AEAD);
	RUN(0, "ip xfrm state update " ESP "0x2000 reqid 9" AEAD);
	RUN(0, "ip xfrm state list reqid 9");
	OUT_HAS("aead rfc4106");
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 2\n");
	/* nobody completed the other one: it goes */
	ipsec_cache_tick(f->ipsec, 1000);
	ipsec_cache_tick(f->ipsec, 1000 + 164 * 1000);
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 2\n");
	ipsec_cache_tick(f->ipsec, 1000 + 165 * 1000);
	RUN(0, "ip xfrm state count");
	OUT_IS("\t SAD count 1\n");
	families_destroy(f);
}

static void
policy_words(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm policy add " FLOW TMPL);
	RUN(0,
		"ip xfrm policy add src 10.2.0.0/16 dst 10.1.0.0/16 dir in priority 100 tmpl "
		"src 198.51.100.2 dst 192.0.2.1 proto esp reqid 7 mode tunnel level use");
	RUN(0,
		"ip xfrm policy add src ::/0 dst 2001:db8::/32 proto udp sport 5 dport 6 dev p1 "
		"dir fwd action block index 0x82 mark 7 mask 15 if_id 5 flag localok "
		"limit time-hard 10");
	RUN(0, "ip xfrm policy list");
	OUT_IS("src 10.1.0.0/16 dst 10.2.0.0/16 \n"
	       "\tdir out priority 0 ptype main \n"
	       "\ttmpl src 192.0.2.1 dst 198.51.100.2\n"
	       "\t\tproto esp reqid 7 mode tunnel\n"
	       "src 10.2.0.0/16 dst 10.1.0.0/16 \n"
	       "\tdir in priority 100 ptype main \n"
	       "\ttmpl src 198.51.100.2 dst 192.0.2.1\n"
	       "\t\tproto esp reqid 7 mode tunnel\n"
	       "\t\tlevel use \n"
	       "src ::/0 dst 2001:db8::/32 proto udp sport 5 dport 6 dev p1 \n"
	       "\tdir fwd action block priority 0 ptype main flag localok\n"
	       "\tmark 0x7/0xf \n"
	       "\tif_id 0x5\n");
	RUN(0, "ip -s -d xfrm policy list dir fwd");
	OUT_HAS("dir fwd action block index 130 priority 0 ptype main share any flag localok");
	OUT_HAS("expire add: soft 0(sec), hard 10(sec)");
	RUN(0, "ip xfrm policy get dir out index 9");
	OUT_HAS("dir out priority 0");
	RUN(0, "ip xfrm policy get " FLOW);
	OUT_HAS("dir out priority 0");
	/* an update takes its place and keeps its index; where there is none it adds */
	RUN(0, "ip xfrm policy update " FLOW "priority 5 " TMPL);
	RUN(0, "ip -s xfrm policy list dir out");
	OUT_HAS("index 9 priority 5 ");
	assert_null(strstr(out, "priority 0"));
	RUN(0, "ip xfrm policy update src 10.9.0.0/16 dst 10.2.0.0/16 dir out");
	RUN(0, "ip xfrm policy count");
	OUT_IS("\t SPD IN  1 OUT 2 FWD 1\n");
	RUN(0, "ip xfrm policy set hthresh4 24 24 hthresh6 64 64");
	RUN(0, "ip -s -s xfrm policy count");
	OUT_HAS("SPD IN  1 OUT 2 FWD 1 (Sock: IN 0 OUT 0 FWD 0)");
	RUN(0, "ip xfrm policy delete " FLOW);
	RUN(2, "ip xfrm policy delete " FLOW);
	OUT_IS("Error: There is no policy with this selector, direction, mark and if_id.\n");
	RUN(2, "ip xfrm policy delete index 16 dir out");
	OUT_IS("Error: There is no policy with index 16, this direction, mark and if_id.\n");
	RUN(0, "ip xfrm policy delete index 16 dir in");
	RUN(0, "ip xfrm policy deleteall dir out");
	RUN(0, "ip xfrm policy count");
	OUT_IS("\t SPD IN  0 OUT 0 FWD 1\n");
	RUN(0, "ip xfrm policy flush");
	RUN(0, "ip xfrm policy list");
	OUT_IS("");
	families_destroy(f);
}

static void
policy_refused(void **state)
{
	static const struct {
		const char *args;
		const char *why;
	} bad[] = {
		{ FLOW TMPL,
			"There is a policy with this selector, direction, mark and if_id already" },
		{ FLOW "ptype sub", "Policies of type sub are not supported" },
		{ FLOW "priority 1 mark 1 " TMPL TMPL,
			"More than one template in a policy is not supported yet" },
		{ FLOW "mark 1 tmpl proto esp mode transport",
			"A template in transport mode is not supported yet" },
		{ FLOW "mark 1 tmpl " ENDS "proto esp mode beet",
			"A template in BEET mode is not supported yet" },
		{ FLOW "mark 1 tmpl " ENDS "proto ah mode tunnel",
			"AH and IPComp are not supported yet" },
		{ FLOW "mark 1 tmpl proto esp mode tunnel", "needs the far end of its tunnel" },
		{ FLOW "mark 1 " TMPL "level use", "outbound policy cannot be optional" },
		{ FLOW "mark 1 index 8", "last three bits of a policy's index" },
		{ FLOW "mark 1 flag icmp", "Policy flag icmp is not supported yet" },
		{ FLOW "mark 4 mask 3", "A mark has bits that its mask takes away" },
	};
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm policy add " FLOW TMPL);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		RUN(2, "ip xfrm policy add %s", bad[i].args);
		OUT_HAS("Error: ");
		OUT_HAS(bad[i].why);
	}
	RUN(0, "ip xfrm policy count");
	OUT_IS("\t SPD IN  0 OUT 1 FWD 0\n");
	families_destroy(f);
}

static void
policy_default(void **state)
{
	struct families *f = begin();

	(void)state;
	assert_false(ipsec_cache_active(f->ipsec));
	RUN(0, "ip xfrm policy getdefault");
	OUT_IS("Default policies:\n in:  accept\n fwd: accept\n out: accept\n");
	RUN(0, "ip xfrm policy setdefault in block fwd block");
	RUN(0, "ip xfrm policy getdefault");
	OUT_IS("Default policies:\n in:  block\n fwd: block\n out: accept\n");
	assert_true(ipsec_cache_active(f->ipsec));
	RUN(0, "ip xfrm policy setdefault in accept fwd accept");
	assert_false(ipsec_cache_active(f->ipsec));
	families_destroy(f);
}

static void
monitor(void **state)
{
	struct families *f = begin();
	char file[sizeof(f->path) + 8];

	(void)state;
	snprintf(file, sizeof(file), "%s.out", f->path);
	setenv("FILE", file, 1);
	RUN(0,
		"sh -c '"
		"ip xfrm monitor all > $FILE & sleep 1; "
		"SA=\"" ESP "0x1000 mode tunnel\"; ALG=\"aead rfc4106(gcm(aes)) " KEY " 128\"; "
		"ip xfrm state add $SA $ALG; ip xfrm state update $SA $ALG; "
		"ip xfrm state delete " ESP "0x1000; "
		"ip xfrm policy add " FLOW "; ip xfrm policy update " FLOW "priority 3; "
		"ip xfrm policy delete " FLOW "; ip xfrm policy add " FLOW "; "
		"ip xfrm policy flush; ip xfrm state add $SA $ALG; ip xfrm state flush proto esp; "
		"ip xfrm policy setdefault in block; "
		"sleep 1; kill $!; wait; cat $FILE; rm $FILE'");
	OUT_IS("src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00001000 reqid 0 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\taead rfc4106(gcm(aes)) " KEY " 128\n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n"
	       "Updated src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00001000 reqid 0 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\taead rfc4106(gcm(aes)) " KEY " 128\n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n"
	       "Deleted src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00001000 reqid 0 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\taead rfc4106(gcm(aes)) " KEY " 128\n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n"
	       "src 10.1.0.0/16 dst 10.2.0.0/16 \n"
	       "\tdir out priority 0 ptype main \n"
	       "Updated src 10.1.0.0/16 dst 10.2.0.0/16 \n"
	       "\tdir out priority 3 ptype main \n"
	       "Deleted src 10.1.0.0/16 dst 10.2.0.0/16 \n"
	       "\tdir out priority 3 ptype main \n"
	       "src 10.1.0.0/16 dst 10.2.0.0/16 \n"
	       "\tdir out priority 0 ptype main \n"
	       "Flushed policy ptype main \n"
	       "src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00001000 reqid 0 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\taead rfc4106(gcm(aes)) " KEY " 128\n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n"
	       "Flushed state proto esp\n"
	       "Default policies:\n in:  block\n fwd: accept\n out: accept\n");
	families_destroy(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_walk),
		cmocka_unit_test(state_words),
		cmocka_unit_test(state_refused),
		cmocka_unit_test(state_update),
		cmocka_unit_test(state_allocspi),
		cmocka_unit_test(state_allocspi_in_any_mode),
		cmocka_unit_test(policy_words),
		cmocka_unit_test(policy_refused),
		cmocka_unit_test(policy_default),
		cmocka_unit_test(monitor),
	};

	test_eal_init("xfrm-tools", "0");
	return cmocka_run_group_tests_name("xfrm_tools", tests, NULL, NULL);
}
