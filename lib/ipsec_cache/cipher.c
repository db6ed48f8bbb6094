/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ipsec_cache/cipher.h"
#include "ipsec_cache/ipsec_cache.h"

struct ipsec_ciphers {
	IMB_MGR *mgr;
	struct ipsec_cipher gcm[3];
};

struct ipsec_ciphers *
ipsec_ciphers_create(void)
{
	struct ipsec_ciphers *ciphers;

	if ((ciphers = calloc(1, sizeof(*ciphers))) == NULL)
		return NULL;
	if ((ciphers->mgr = alloc_mb_mgr(0)) == NULL) {
		free(ciphers);
		return NULL;
	}
	init_mb_mgr_auto(ciphers->mgr, NULL);
	if (ciphers->mgr->gcm128_enc == NULL) {
		ipsec_ciphers_destroy(ciphers);
		return NULL;
	}
	ipsec_cipher_gcm_fill(ciphers->gcm, ciphers->mgr);
	return ciphers;
}

void
ipsec_ciphers_destroy(struct ipsec_ciphers *ciphers)
{
	if (ciphers == NULL)
		return;
	free_mb_mgr(ciphers->mgr);
	free(ciphers);
}

static const struct ipsec_cipher *
find_aead(const struct ipsec_ciphers *ciphers, const struct ipsec_cache_algorithm *aead,
	unsigned int *icv_len, int *err, const char **why)
{
	const struct ipsec_cipher *cipher = NULL;
	unsigned int i;

	*err = -ENOSYS;
	*why = "the only AEAD here is rfc4106(gcm(aes))";
	if (strcmp(aead->name, "rfc4106(gcm(aes))") != 0)
		return NULL;
	*err = -EINVAL;
	*why = "rfc4106(gcm(aes)) takes a key of 160, 224 or 288 bits, its salt included";
	for (i = 0; i < sizeof(ciphers->gcm) / sizeof(ciphers->gcm[0]); i++)
		if (aead->key_bits == 8u * (ciphers->gcm[i].key_len + ciphers->gcm[i].salt_len))
			cipher = &ciphers->gcm[i];
	if (cipher == NULL)
		return NULL;
	*why = "rfc4106(gcm(aes)) has a check value of 64, 96 or 128 bits";
	if (aead->icv_bits != 64 && aead->icv_bits != 96 && aead->icv_bits != 128)
		return NULL;
	*icv_len = aead->icv_bits / 8;
	return cipher;
}

static const struct ipsec_cipher *
find_null(const struct ipsec_cache_algorithm *crypt, const struct ipsec_cache_algorithm *auth,
	unsigned int *icv_len, int *err, const char **why)
{
	*err = -ENOSYS;
	*why = "encryption is by aead rfc4106(gcm(aes)), or none by enc ecb(cipher_null)";
	if (strcmp(crypt->name, "ecb(cipher_null)") != 0 && strcmp(crypt->name, "cipher_null") != 0)
		return NULL;
	*why = "the only authentication beside ecb(cipher_null) is digest_null";
	if (auth->name[0] != '\0' && strcmp(auth->name, "digest_null") != 0)
		return NULL;
	*err = -EINVAL;
	*why = "ecb(cipher_null) and digest_null take an empty key";
	if (crypt->key_bits != 0 || auth->key_bits != 0)
		return NULL;
	*icv_len = 0;
	return &ipsec_cipher_null;
}

const struct ipsec_cipher *
ipsec_cipher_find(const struct ipsec_ciphers *ciphers, const struct ipsec_cache_sa_spec *spec,
	unsigned int *icv_len, int *err, const char **why)
{
	bool crypt = spec->crypt.name[0] != '\0', auth = spec->auth.name[0] != '\0';

	if (spec->aead.name[0] != '\0' && !crypt && !auth)
		return find_aead(ciphers, &spec->aead, icv_len, err, why);
	if (spec->aead.name[0] == '\0' && crypt)
		return find_null(&spec->crypt, &spec->auth, icv_len, err, why);
	*err = -EINVAL;
	*why = "ESP takes either aead, or enc with or without auth";
	return NULL;
}
