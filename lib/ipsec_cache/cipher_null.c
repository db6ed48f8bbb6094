/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <rte_common.h>

#include "ipsec_cache/cipher.h"

/* Texts are sealed and opened in place: nothing is left to do. */

static void
null_whole(const struct gcm_key_data *key, struct gcm_context_data *ctx, uint8_t *out,
	const uint8_t *in, uint64_t len, const uint8_t *nonce, const uint8_t *aad, uint64_t aad_len,
	uint8_t *icv, uint64_t icv_len)
{
	RTE_SET_USED(key);
	RTE_SET_USED(ctx);
	RTE_SET_USED(out);
	RTE_SET_USED(in);
	RTE_SET_USED(len);
	RTE_SET_USED(nonce);
	RTE_SET_USED(aad);
	RTE_SET_USED(aad_len);
	RTE_SET_USED(icv);
	RTE_SET_USED(icv_len);
}

static void
null_init(const struct gcm_key_data *key, struct gcm_context_data *ctx, const uint8_t *nonce,
	const uint8_t *aad, uint64_t aad_len)
{
	RTE_SET_USED(key);
	RTE_SET_USED(ctx);
	RTE_SET_USED(nonce);
	RTE_SET_USED(aad);
	RTE_SET_USED(aad_len);
}

static void
null_update(const struct gcm_key_data *key, struct gcm_context_data *ctx, uint8_t *out,
	const uint8_t *in, uint64_t len)
{
	RTE_SET_USED(key);
	RTE_SET_USED(ctx);
	RTE_SET_USED(out);
	RTE_SET_USED(in);
	RTE_SET_USED(len);
}

static void
null_finalize(const struct gcm_key_data *key, struct gcm_context_data *ctx, uint8_t *icv,
	uint64_t icv_len)
{
	RTE_SET_USED(key);
	RTE_SET_USED(ctx);
	RTE_SET_USED(icv);
	RTE_SET_USED(icv_len);
}

const struct ipsec_cipher ipsec_cipher_null = {
	.name = "cpu-null",
	.encrypt = null_whole,
	.decrypt = null_whole,
	.init = null_init,
	.encrypt_update = null_update,
	.decrypt_update = null_update,
	.encrypt_finalize = null_finalize,
	.decrypt_finalize = null_finalize,
};
