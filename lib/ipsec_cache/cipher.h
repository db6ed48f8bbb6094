/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_CIPHER_H
#define IPSEC_CACHE_CIPHER_H

/*
 * What turns a text into a ciphertext with its check value, on the CPU: one set of functions an SA,
 * chosen when the SA is made, so that a packet costs one indirect call and no question.
 *
 * The functions have the shape of libipsec-mb's direct AES-GCM calls, which an SA's packets reach
 * without anything in between: its job and burst interfaces cost 16 to 46 cycles a packet more.
 *
 *   encrypt(key, ctx, out, in, len, nonce, aad, aad_len, icv, icv_len)   the whole text at once;
 *   decrypt(...)                                     `icv` is where the right value is written
 *   init(key, ctx, nonce, aad, aad_len), *_update(key, ctx, out, in, len) for each piece of any
 *   length, *_finalize(key, ctx, icv, icv_len)       the same for a text in several segments
 *
 * out may be in. The nonce is 12 bytes: salt, then IV (RFC 4106, 4).
 *
 * Thread safety: any number of threads with contexts of their own; a key is only read.
 */

#include <intel-ipsec-mb.h>
#include <stdint.h>

struct ipsec_cache_sa_spec;

#define IPSEC_NONCE_LEN 12
#define IPSEC_ICV_MAX 16

struct ipsec_cipher {
	const char *name; /* what `backend` shows */
	uint32_t key_size; /* bytes of the expanded key; 0: none */
	uint8_t key_len; /* bytes of key as it is given, without the salt */
	uint8_t salt_len; /* bytes that follow them */
	uint8_t iv_len; /* bytes in each packet */
	aes_gcm_pre_t expand;
	aes_gcm_enc_dec_t encrypt, decrypt;
	aes_gcm_init_t init;
	aes_gcm_enc_dec_update_t encrypt_update, decrypt_update;
	aes_gcm_enc_dec_finalize_t encrypt_finalize, decrypt_finalize;
};

/* All sets, with the code for this CPU picked. NULL: no memory, or no CPU for libipsec-mb. */
struct ipsec_ciphers;
struct ipsec_ciphers *ipsec_ciphers_create(void);
void ipsec_ciphers_destroy(struct ipsec_ciphers *ciphers); /* NULL accepted */

/*
 * The set for what an SA asks for, and in *icv_len the bytes of its check value. NULL with *err and
 * a sentence in *why: -ENOSYS (an algorithm that is not here; Linux's answer too), -EINVAL (a key
 * or check value of the wrong length, nothing to encrypt by).
 */
const struct ipsec_cipher *ipsec_cipher_find(const struct ipsec_ciphers *ciphers,
	const struct ipsec_cache_sa_spec *spec, unsigned int *icv_len, int *err, const char **why);

/* cipher_gcm.c: AES-GCM for keys of 16, 24 and 32 bytes. */
void ipsec_cipher_gcm_fill(struct ipsec_cipher gcm[3], const IMB_MGR *mgr);
/* cipher_null.c: the text as it is, without a check value (RFC 2410). */
extern const struct ipsec_cipher ipsec_cipher_null;

#endif /* IPSEC_CACHE_CIPHER_H */
