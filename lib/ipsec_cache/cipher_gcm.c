/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include "ipsec_cache/cipher.h"

#define GCM_SET(bits, manager) \
	{ \
		.name = "cpu-gcm", .key_size = sizeof(struct gcm_key_data), .key_len = (bits) / 8, \
		.salt_len = 4, .iv_len = 8, .expand = (manager)->gcm##bits##_pre, \
		.encrypt = (manager)->gcm##bits##_enc, .decrypt = (manager)->gcm##bits##_dec, \
		.init = (manager)->gcm##bits##_init, \
		.encrypt_update = (manager)->gcm##bits##_enc_update, \
		.decrypt_update = (manager)->gcm##bits##_dec_update, \
		.encrypt_finalize = (manager)->gcm##bits##_enc_finalize, \
		.decrypt_finalize = (manager)->gcm##bits##_dec_finalize, \
	}

void
ipsec_cipher_gcm_fill(struct ipsec_cipher gcm[3], const IMB_MGR *mgr)
{
	gcm[0] = (struct ipsec_cipher)GCM_SET(128, mgr);
	gcm[1] = (struct ipsec_cipher)GCM_SET(192, mgr);
	gcm[2] = (struct ipsec_cipher)GCM_SET(256, mgr);
}
