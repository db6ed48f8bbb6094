/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* What a device's capability list has to say before an SA gets a session on it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_cryptodev.h>
#include <rte_security_driver.h>

#include "ipsec_cache/capability.h"
#include "world.h"

#define MANY (2 * IPSEC_CAPABILITIES_MAX)

static const struct rte_security_capability *list;

static const struct rte_security_capability *
get_list(void *device)
{
	(void)device;
	return list;
}

static const struct rte_security_ops ops = { .capabilities_get = get_list };
static struct rte_security_ctx ctx = { .ops = &ops };
static struct world world;

static const struct rte_cryptodev_capabilities gcm[] = {
	{ .op = RTE_CRYPTO_OP_TYPE_SYMMETRIC,
		.sym = { .xform_type = RTE_CRYPTO_SYM_XFORM_CIPHER,
			.cipher = { .algo = RTE_CRYPTO_CIPHER_AES_CBC } } },
	{ .op = RTE_CRYPTO_OP_TYPE_SYMMETRIC,
		.sym = { .xform_type = RTE_CRYPTO_SYM_XFORM_AEAD,
			.aead = { .algo = RTE_CRYPTO_AEAD_AES_GCM,
				.key_size = { 16, 32, 16 },
				.digest_size = { 12, 16, 4 } } } },
	{ .op = RTE_CRYPTO_OP_TYPE_UNDEFINED },
};

static struct rte_security_capability
offer(enum rte_security_session_action_type action, enum rte_security_ipsec_sa_direction direction)
{
	struct rte_security_capability c = {
		.action = action,
		.protocol = RTE_SECURITY_PROTOCOL_IPSEC,
		.ipsec = {
			.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP,
			.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL,
			.direction = direction,
			.replay_win_sz_max = 128,
		},
		.crypto_capabilities = gcm,
	};

	memset(&c.ipsec.options, 0xff, sizeof(c.ipsec.options));
	return c;
}

/* Asks for an SA in both ways; "" if it can be had. */
static const char *
ask(const struct ipsec_cache_rt *rt, enum rte_security_session_action_type action, bool in)
{
	const char *missing = "";
	struct ipsec_want want;

	ipsec_want_fill(&want, rt, action, in);
	if (ipsec_capability_find(&ctx, &want, &missing) != NULL)
		return "";
	assert_true(missing[0] != '\0');
	return missing;
}

static struct ipsec_cache_rt *
sa(uint32_t spi, unsigned int key_bits, unsigned int icv_bits, bool esn, bool udp)
{
	struct ipsec_cache_sa_spec spec = world_spec("192.0.2.1", "192.0.2.2", spi);

	spec.aead.key_bits = key_bits + 32;
	spec.aead.icv_bits = icv_bits;
	if (esn)
		world_esn(&spec);
	if (udp)
		world_udp(&spec, 4500, 4500);
	return world_sa(&world, &spec);
}

#define CRYPTO RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO
#define PROTOCOL RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL
#define EGRESS RTE_SECURITY_IPSEC_SA_DIR_EGRESS
#define INGRESS RTE_SECURITY_IPSEC_SA_DIR_INGRESS

/* Each thing that a capability may lack is named; the nearest of several capabilities counts. */
static void
offload_what_is_lacking_is_named(void **state)
{
	struct rte_security_capability c[3] = { 0 };
	struct ipsec_cache_rt *plain, *wide, *odd, *esn, *udp;

	(void)state;
	world_create(&world, 1, 64, false);
	plain = sa(0x1001, 128, 128, false, false);
	wide = sa(0x1002, 192, 128, false, false);
	odd = sa(0x1003, 128, 64, false, false);
	esn = sa(0x1004, 128, 128, true, false);
	udp = sa(0x1005, 128, 128, false, true);

	list = c;
	c[0] = offer(CRYPTO, EGRESS);
	assert_string_equal(ask(plain, CRYPTO, false), "");
	assert_string_equal(ask(esn, CRYPTO, false), "");
	assert_string_equal(ask(udp, CRYPTO, false), "");
	assert_non_null(strstr(ask(plain, PROTOCOL, false), "no inline protocol"));
	assert_non_null(strstr(ask(plain, CRYPTO, true), "direction"));
	assert_non_null(strstr(ask(wide, CRYPTO, false), "key of that length"));
	assert_non_null(strstr(ask(odd, CRYPTO, false), "check value of that length"));

	c[0].protocol = RTE_SECURITY_PROTOCOL_MACSEC;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "no IPsec"));
	c[0] = offer(CRYPTO, EGRESS);
	c[0].ipsec.proto = RTE_SECURITY_IPSEC_SA_PROTO_AH;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "no ESP"));
	c[0] = offer(CRYPTO, EGRESS);
	c[0].ipsec.mode = RTE_SECURITY_IPSEC_SA_MODE_TRANSPORT;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "tunnel mode"));
	c[0] = offer(CRYPTO, EGRESS);
	c[0].crypto_capabilities = gcm + 2;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "that algorithm"));
	c[0].crypto_capabilities = NULL;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "that algorithm"));
	c[0] = offer(CRYPTO, EGRESS);
	c[0].ipsec.options.esn = 0;
	assert_non_null(strstr(ask(esn, CRYPTO, false), "ESN"));
	assert_string_equal(ask(plain, CRYPTO, false), "");
	c[0].ipsec.options.udp_encap = 0;
	assert_non_null(strstr(ask(udp, CRYPTO, false), "UDP encapsulation"));
	c[0].ol_flags = RTE_SECURITY_TX_HW_TRAILER_OFFLOAD;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "trailers"));

	c[1] = offer(PROTOCOL, EGRESS);
	c[0] = offer(CRYPTO, EGRESS);
	assert_string_equal(ask(plain, PROTOCOL, false), "");
	c[1].ipsec.options.copy_df = 0;
	assert_non_null(strstr(ask(plain, PROTOCOL, false), "DF"));
	c[1].ipsec.options.ecn = 0;
	assert_non_null(strstr(ask(plain, PROTOCOL, false), "RFC 6040"));
	c[1].ipsec.options.copy_dscp = 0;
	assert_non_null(strstr(ask(plain, PROTOCOL, false), "DSCP"));
	c[1] = offer(PROTOCOL, INGRESS);
	assert_string_equal(ask(plain, PROTOCOL, true), "");
	c[1].ipsec.replay_win_sz_max = 32; /* the SA's window has 64 packets */
	assert_non_null(strstr(ask(plain, PROTOCOL, true), "replay window"));
	/* where the window is ours, its size is no matter */
	c[1] = offer(CRYPTO, INGRESS);
	c[1].ipsec.replay_win_sz_max = 0;
	assert_string_equal(ask(plain, CRYPTO, true), "");
	world_destroy(&world);
}

static void
offload_lists_empty_absent_and_endless(void **state)
{
	static struct rte_security_capability many[MANY + 1];
	static struct rte_cryptodev_capabilities algorithms[MANY];
	struct ipsec_cache_rt *plain;
	unsigned int i;

	(void)state;
	world_create(&world, 1, 64, false);
	plain = sa(0x2001, 128, 128, false, false);
	list = NULL;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "no inline crypto"));
	list = many;
	assert_non_null(strstr(ask(plain, CRYPTO, false), "no inline crypto"));
	/* no end where it is looked for: nothing beyond is read */
	for (i = 0; i < MANY; i++)
		many[i] = offer(PROTOCOL, EGRESS);
	many[MANY] = offer(CRYPTO, EGRESS);
	assert_non_null(strstr(ask(plain, CRYPTO, false), "no inline crypto"));
	for (i = 0; i < MANY; i++) {
		algorithms[i].op = RTE_CRYPTO_OP_TYPE_ASYMMETRIC;
		many[i].crypto_capabilities = algorithms;
	}
	assert_non_null(strstr(ask(plain, PROTOCOL, false), "that algorithm"));
	world_destroy(&world);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offload_what_is_lacking_is_named),
		cmocka_unit_test(offload_lists_empty_absent_and_endless),
	};

	test_eal_init("ipsec-capability", "0");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
