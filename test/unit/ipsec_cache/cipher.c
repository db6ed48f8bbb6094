/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The ciphers against published vectors: test cases 3, 4, 10 and 16 of the GCM specification (also
 * NIST's), and the first ESP packet of draft-mcgrew-gcm-test. Each whole, and in pieces of every
 * size.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipsec_cache/cipher.h"
#include "ipsec_cache/ipsec_cache.h"

#define KEY "feffe9928665731c6d6a8f9467308308"
#define TEXT \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e24" \
	"49a6b525b16aedf5aa0de657ba637b39"
#define AAD "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define NONCE "cafebabefacedbaddecaf888"

static const struct vector {
	const char *key, *nonce, *aad, *text, *sealed, *icv;
} vectors[] = {
	{ KEY, NONCE, "", TEXT "1aafd255",
		"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c"
		"7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
		"4d5c2af327cd64a62cf35abd2ba6fab4" },
	{ KEY, NONCE, AAD, TEXT,
		"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c"
		"7d8f6a5aac84aa051ba30b396a0aac973d58e091",
		"5bc94fbc3221a5db94fae95ae7121a47" },
	{ KEY "feffe9928665731c", NONCE, AAD, TEXT,
		"3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525"
		"ac619d18c84a3f4718e2448b2fe324d9ccda2710",
		"2519498e80f1478f37ba55bd6d27618c" },
	{ KEY KEY, NONCE, AAD, TEXT,
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3d"
		"a7b08b1056828838c5f61e6393ba7a0abcc9f662",
		"76fc6ece0f4e1768cddf8853bb2d551b" },
	{ "4c80cdefbb5d10da906ac73c3613a634", "2e443b684956ed7e3b244cfe",
		"000043218765432100000000",
		"45000048699a000080114db7c0a80102c0a801010a9bf15638d301000001000000000000045f7369"
		"70045f756470037369700963796265726369747902646b000021000101020201",
		"fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf"
		"65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce61bc17d768fd9732",
		"459018148f6cbe722fd04796562dfdb4" },
};

static size_t
hex(const char *text, uint8_t *to)
{
	unsigned int byte;
	size_t n;

	for (n = 0; sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		to[n] = (uint8_t)byte;
	return n;
}

static struct ipsec_cache_sa_spec
spec_of(const struct vector *v, unsigned int icv_bits)
{
	struct ipsec_cache_sa_spec spec = { .aead.name = "rfc4106(gcm(aes))" };

	spec.aead.key_bits = (unsigned int)(8 * hex(v->key, spec.aead.key) + 32);
	spec.aead.icv_bits = icv_bits;
	return spec;
}

static void
esp_cipher_vectors(void **state)
{
	struct ipsec_ciphers *ciphers = ipsec_ciphers_create();
	struct gcm_context_data ctx;
	struct gcm_key_data *key = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*key), 64));
	unsigned int i, icv_len, step;

	(void)state;
	assert_non_null(ciphers);
	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		struct ipsec_cache_sa_spec spec = spec_of(v, 128);
		uint8_t nonce[16], aad[32], text[128], sealed[128], want[16], buf[128], icv[16];
		size_t n_aad = hex(v->aad, aad), n = hex(v->text, text), at, part;
		const struct ipsec_cipher *c;
		const char *why;
		int err;

		c = ipsec_cipher_find(ciphers, &spec, &icv_len, &err, &why);
		assert_non_null(c);
		assert_int_equal(icv_len, 16);
		assert_int_equal(hex(v->sealed, sealed), n);
		hex(v->nonce, nonce);
		hex(v->icv, want);
		c->expand(spec.aead.key, key);
		c->encrypt(key, &ctx, buf, text, n, nonce, aad, n_aad, icv, 16);
		assert_memory_equal(buf, sealed, n);
		assert_memory_equal(icv, want, 16);
		c->decrypt(key, &ctx, buf, buf, n, nonce, aad, n_aad, icv, 16);
		assert_memory_equal(buf, text, n);
		assert_memory_equal(icv, want, 16);
		for (step = 1; step <= n; step++) {
			c->init(key, &ctx, nonce, aad, n_aad);
			for (at = 0; at < n; at += part) {
				part = step < n - at ? step : n - at;
				c->encrypt_update(key, &ctx, buf + at, text + at, part);
			}
			c->encrypt_finalize(key, &ctx, icv, 16);
			assert_memory_equal(buf, sealed, n);
			assert_memory_equal(icv, want, 16);
			c->init(key, &ctx, nonce, aad, n_aad);
			for (at = 0; at < n; at += part) {
				part = step < n - at ? step : n - at;
				c->decrypt_update(key, &ctx, buf + at, buf + at, part);
			}
			c->decrypt_finalize(key, &ctx, icv, 16);
			assert_memory_equal(buf, text, n);
			assert_memory_equal(icv, want, 16);
		}
	}
	free(key);
	ipsec_ciphers_destroy(ciphers);
}

/* What has no cipher: an error and a sentence each. */
static void
esp_cipher_refusals(void **state)
{
	static const struct {
		const char *aead, *crypt, *auth;
		unsigned int bits, icv;
		int err;
	} cases[] = {
		{ "rfc4106(gcm(aes))", "", "", 128, 128, -EINVAL },
		{ "rfc4106(gcm(aes))", "", "", 0, 128, -EINVAL },
		{ "rfc4106(gcm(aes))", "", "", 288 + 32, 128, -EINVAL },
		{ "rfc4106(gcm(aes))", "", "", 160, 120, -EINVAL },
		{ "rfc4106(gcm(aes))", "", "", 160, 0, -EINVAL },
		{ "rfc7539esp(chacha20,poly1305)", "", "", 288, 128, -ENOSYS },
		{ "", "cbc(aes)", "hmac(sha256)", 128, 128, -ENOSYS },
		{ "", "ecb(cipher_null)", "hmac(sha256)", 0, 128, -ENOSYS },
		{ "", "ecb(cipher_null)", "digest_null", 8, 0, -EINVAL },
		{ "rfc4106(gcm(aes))", "ecb(cipher_null)", "", 160, 128, -EINVAL },
		{ "", "", "hmac(sha256)", 128, 128, -EINVAL },
		{ "", "", "", 0, 0, -EINVAL },
	};
	struct ipsec_ciphers *ciphers = ipsec_ciphers_create();
	unsigned int i, icv_len;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ipsec_cache_sa_spec spec = { 0 };
		const char *why = NULL;
		int err = 0;

		snprintf(spec.aead.name, sizeof(spec.aead.name), "%s", cases[i].aead);
		snprintf(spec.crypt.name, sizeof(spec.crypt.name), "%s", cases[i].crypt);
		snprintf(spec.auth.name, sizeof(spec.auth.name), "%s", cases[i].auth);
		spec.aead.key_bits = spec.crypt.key_bits = cases[i].bits;
		spec.aead.icv_bits = cases[i].icv;
		assert_null(ipsec_cipher_find(ciphers, &spec, &icv_len, &err, &why));
		assert_int_equal(err, cases[i].err);
		assert_non_null(why);
	}
	ipsec_ciphers_destroy(ciphers);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(esp_cipher_vectors),
		cmocka_unit_test(esp_cipher_refusals),
	};

	return cmocka_run_group_tests_name("cipher", tests, NULL, NULL);
}
