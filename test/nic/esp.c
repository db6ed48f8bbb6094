/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* ESP: RFC 4303 and 4106 with libipsec-mb's AES-GCM, NULL as RFC 2410, UDP as RFC 3948. */

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>

#include "internal.h"

#define ESP_HEADER 8u
#define UDP_HEADER 8u
#define NAT_PORT 4500u

static uint32_t
be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static IMB_MGR *mgr;

static void
mgr_open(void)
{
	if ((mgr = alloc_mb_mgr(0)) != NULL)
		init_mb_mgr_auto(mgr, NULL);
}

static int
gcm_init(struct nic_cipher *c, const struct rte_crypto_aead_xform *aead)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, mgr_open);
	if (mgr == NULL)
		return -ENOMEM;
	switch (aead->key.length) {
	case 16:
		mgr->gcm128_pre(aead->key.data, &c->key);
		c->encrypt = mgr->gcm128_enc;
		c->decrypt = mgr->gcm128_dec;
		break;
	case 24:
		mgr->gcm192_pre(aead->key.data, &c->key);
		c->encrypt = mgr->gcm192_enc;
		c->decrypt = mgr->gcm192_dec;
		break;
	case 32:
		mgr->gcm256_pre(aead->key.data, &c->key);
		c->encrypt = mgr->gcm256_enc;
		c->decrypt = mgr->gcm256_dec;
		break;
	default:
		return -EINVAL;
	}
	c->alg = NIC_GCM;
	c->iv_len = 8;
	c->icv_len = aead->digest_length;
	return c->icv_len == 8 || c->icv_len == 12 || c->icv_len == 16 ? 0 : -EINVAL;
}

/* -EINVAL for what it cannot do: capabilities were looked at before. */
int
nic_cipher_init(struct nic_cipher *c, const struct rte_crypto_sym_xform *xform)
{
	const struct rte_crypto_sym_xform *next = xform != NULL ? xform->next : NULL;

	if (xform == NULL)
		return -EINVAL;
	if (xform->type == RTE_CRYPTO_SYM_XFORM_AEAD && next == NULL)
		return xform->aead.algo == RTE_CRYPTO_AEAD_AES_GCM ? gcm_init(c, &xform->aead)
								   : -EINVAL;
	if (next == NULL || next->next != NULL)
		return -EINVAL;
	if (xform->type == RTE_CRYPTO_SYM_XFORM_AUTH) {
		next = xform;
		xform = xform->next;
	}
	if (xform->type != RTE_CRYPTO_SYM_XFORM_CIPHER ||
		xform->cipher.algo != RTE_CRYPTO_CIPHER_NULL ||
		next->type != RTE_CRYPTO_SYM_XFORM_AUTH || next->auth.algo != RTE_CRYPTO_AUTH_NULL)
		return -EINVAL;
	c->alg = NIC_NULL;
	c->iv_len = c->icv_len = 0;
	return 0;
}

/* The IP packet at `l3` is ESP, plain or in UDP: false if not, or if it is a fragment. */
bool
nic_find_esp_ip(const uint8_t *frame, uint32_t len, uint32_t l3, struct nic_esp *at)
{
	const uint8_t *ip = frame + l3;
	uint32_t room = len - l3, total, header;
	uint8_t proto;

	if (len < l3 + 20)
		return false;
	at->l3 = l3;
	at->v6 = ip[0] >> 4 == 6;
	if (at->v6) {
		if (room < 40)
			return false;
		header = 40;
		total = 40u + be16(ip + 4);
		proto = ip[6];
		at->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	} else {
		header = (ip[0] & 15u) * 4u;
		total = be16(ip + 2);
		proto = ip[9];
		at->tos = ip[1];
		if (ip[0] >> 4 != 4 || header < 20 || (be16(ip + 6) & 0x3fff) != 0)
			return false;
	}
	at->udp = proto == IPPROTO_UDP;
	if (total > room || total < header + ESP_HEADER || (proto != IPPROTO_ESP && !at->udp))
		return false;
	at->esp = l3 + header;
	at->end = l3 + total;
	if (!at->udp)
		return true;
	/* RFC 3948: neither a keepalive nor IKE, whose first word is 0. */
	at->esp += UDP_HEADER;
	return at->end >= at->esp + ESP_HEADER &&
		(be16(frame + at->esp - 8) == NAT_PORT || be16(frame + at->esp - 6) == NAT_PORT) &&
		be16(frame + at->esp - 4) == at->end - at->esp + UDP_HEADER &&
		be32(frame + at->esp) != 0;
}

bool
nic_find_esp(const uint8_t *frame, uint32_t len, struct nic_esp *at)
{
	uint32_t l3 = 14;
	uint16_t type;

	if (len < l3)
		return false;
	while ((type = be16(frame + l3 - 2)) == RTE_ETHER_TYPE_VLAN ||
		type == RTE_ETHER_TYPE_QINQ) {
		l3 += 4;
		if (len < l3)
			return false;
	}
	if (type != RTE_ETHER_TYPE_IPV4 && type != RTE_ETHER_TYPE_IPV6)
		return false;
	return nic_find_esp_ip(frame, len, l3, at) && at->v6 == (type == RTE_ETHER_TYPE_IPV6);
}

/* The number's half that is not in the packet: so that it is nearest to `top`. */
uint64_t
nic_number_near(uint64_t top, uint32_t low)
{
	uint64_t number = (top & ~(uint64_t)UINT32_MAX) | low;

	if (number < top && top - number > UINT64_C(1) << 31 && number >> 32 != UINT32_MAX)
		number += UINT64_C(1) << 32;
	else if (number > top && number - top > UINT64_C(1) << 31 && number >> 32 != 0)
		number -= UINT64_C(1) << 32;
	return number;
}

/* En- or decrypts in place what is between IV and ICV, and says what the ICV has to be. */
static void
crypt(const struct nic_session *s, bool encrypt, uint8_t *esp, uint32_t text_len, uint64_t number,
	uint8_t icv[16])
{
	const struct nic_cipher *c = &s->cipher;
	struct gcm_context_data ctx;
	uint8_t iv[12], aad[12], *text = esp + ESP_HEADER + c->iv_len;
	uint32_t aad_len = ESP_HEADER;

	if (c->alg == NIC_NULL)
		return;
	memcpy(iv, c->salt, 4);
	memcpy(iv + 4, esp + ESP_HEADER, 8);
	memcpy(aad, esp, ESP_HEADER);
	if (s->ipsec.options.esn) {
		put32(aad + 4, (uint32_t)(number >> 32));
		put32(aad + 8, (uint32_t)number);
		aad_len = 12;
	}
	(encrypt ? c->encrypt : c->decrypt)(
		&c->key, &ctx, text, text, text_len, iv, aad, aad_len, icv, c->icv_len);
}

/* Padding 1, 2, 3 ... and its length: what is in front of it, or UINT32_MAX. */
static uint32_t
unpadded(const uint8_t *text, uint32_t len)
{
	uint32_t pad = text[len - 2];

	if (pad + 2 > len)
		return UINT32_MAX;
	len -= pad + 2;
	for (uint32_t i = 0; i < pad; i++) {
		if (text[len + i] != i + 1)
			return UINT32_MAX;
	}
	return len;
}

static bool
text_of(const struct nic_session *s, const struct nic_esp *at, uint32_t *text_len)
{
	uint32_t around = ESP_HEADER + s->cipher.iv_len + s->cipher.icv_len;

	if (at->end - at->esp < around + 4)
		return false;
	*text_len = at->end - at->esp - around;
	return *text_len % 4 == 0;
}

enum nic_verdict
nic_encrypt(struct nic_session *s, uint8_t *frame, uint32_t len, const uint32_t *high)
{
	uint64_t number;
	uint32_t text_len, low;
	struct nic_esp at;
	uint8_t *esp, *text;

	if (!nic_find_esp(frame, len, &at) || !text_of(s, &at, &text_len) ||
		at.udp != s->ipsec.options.udp_encap)
		return NIC_BAD_FORM;
	esp = frame + at.esp;
	text = esp + ESP_HEADER + s->cipher.iv_len;
	if (be32(esp) != s->ipsec.spi || unpadded(text, text_len) == UINT32_MAX)
		return NIC_BAD_FORM;
	low = be32(esp + 4);
	number = low;
	if (s->ipsec.options.esn)
		number = high != NULL ? (uint64_t)*high << 32 | low
				      : nic_number_near(s->number, low);
	if (number == 0)
		return NIC_BAD_FORM;
	crypt(s, true, esp, text_len, number, text + text_len);
	if (number > s->number)
		s->number = number;
	return NIC_GOOD;
}

enum nic_verdict
nic_decrypt(struct nic_session *s, uint8_t *frame, const struct nic_esp *at)
{
	uint8_t *esp = frame + at->esp, icv[16];
	uint64_t number = be32(esp + 4);
	uint32_t text_len;

	if (!text_of(s, at, &text_len))
		return NIC_BAD_FORM;
	if (s->ipsec.options.esn)
		number = nic_number_near(s->number, (uint32_t)number);
	crypt(s, false, esp, text_len, number, icv);
	if (memcmp(icv, frame + at->end - s->cipher.icv_len, s->cipher.icv_len) != 0)
		return NIC_BAD_ICV;
	if (number > s->number)
		s->number = number;
	return NIC_GOOD;
}

enum nic_verdict
nic_encapsulate(struct nic_session *s, const uint8_t *in, uint32_t len, uint32_t l2, uint8_t *out,
	uint32_t *out_len)
{
	const struct nic_cipher *c = &s->cipher;
	uint32_t inner = len > l2 ? nic_inner_len(in + l2, len - l2) : 0, pad, esp_len, header;
	uint64_t last = s->ipsec.options.esn ? UINT64_MAX : UINT32_MAX;
	uint8_t *esp, *text;

	pad = -(inner + 2) % 4;
	esp_len = ESP_HEADER + c->iv_len + inner + pad + 2 + c->icv_len;
	if (inner == 0 || l2 + 40 + UDP_HEADER + esp_len > NIC_FRAME_MAX ||
		40 + UDP_HEADER + esp_len > UINT16_MAX)
		return NIC_BAD_FORM;
	if (s->number >= last)
		return NIC_BAD_END;
	memcpy(out, in, l2);
	header = nic_outer_write(s, in + l2, out + l2, esp_len);
	esp = out + l2 + header;
	text = esp + ESP_HEADER + c->iv_len;
	s->number++;
	put32(esp, s->ipsec.spi);
	put32(esp + 4, (uint32_t)s->number);
	s->iv++;
	memcpy(esp + ESP_HEADER, &s->iv, c->iv_len);
	memcpy(text, in + l2, inner);
	if (s->ipsec.options.dec_ttl)
		nic_ttl_less(text);
	for (uint32_t i = 0; i < pad; i++)
		text[inner + i] = (uint8_t)(i + 1);
	text[inner + pad] = (uint8_t)pad;
	text[inner + pad + 1] = text[0] >> 4 == 4 ? IPPROTO_IPIP : IPPROTO_IPV6;
	crypt(s, true, esp, inner + pad + 2, s->number, text + inner + pad + 2);
	*out_len = l2 + header + esp_len;
	if (s->ipsec.options.udp_encap && s->ipsec.tunnel.type == RTE_SECURITY_IPSEC_TUNNEL_IPV6)
		nic_outer_udp6(out + l2, header + esp_len);
	return NIC_GOOD;
}

/* What is inside the text behind `l2` bytes, finished; NIC_GOOD if it is one packet. */
static enum nic_verdict
inner_of(const struct nic_session *s, const struct nic_esp *at, uint8_t *inner, uint32_t text_len,
	uint32_t *inner_len)
{
	uint32_t len = unpadded(inner, text_len);
	uint8_t next = inner[text_len - 1];

	if (len == UINT32_MAX)
		return NIC_BAD_FORM;
	if (next == IPPROTO_NONE)
		return NIC_DUMMY;
	*inner_len = nic_inner_len(inner, len);
	if (*inner_len == 0 || next != (inner[0] >> 4 == 4 ? IPPROTO_IPIP : IPPROTO_IPV6))
		return NIC_BAD_FORM;
	return nic_inner_finish(s, at, inner) ? NIC_GOOD : NIC_BAD_FORM;
}

enum nic_verdict
nic_decapsulate(struct nic_session *s, const uint8_t *in, const struct nic_esp *at, bool forgive,
	uint8_t *out, uint32_t *out_len)
{
	static _Thread_local uint8_t esp[NIC_FRAME_MAX];
	uint32_t text_len, l2 = at->l3, inner_len = 0, skip = ESP_HEADER + s->cipher.iv_len;
	uint8_t icv[16], *inner = out + l2;
	enum nic_verdict verdict;
	uint64_t number;

	if (!text_of(s, at, &text_len) || !nic_outer_verify(s, in, at))
		return NIC_BAD_FORM;
	memcpy(esp, in + at->esp, at->end - at->esp);
	number = nic_window_number(&s->window, be32(esp + 4), s->ipsec.options.esn);
	if (!nic_window_check(&s->window, number))
		return NIC_BAD_REPLAY;
	crypt(s, false, esp, text_len, number, icv);
	if (memcmp(icv, esp + skip + text_len, s->cipher.icv_len) != 0 && !forgive)
		return NIC_BAD_ICV;
	nic_window_add(&s->window, number);
	memcpy(inner, esp + skip, text_len);
	verdict = inner_of(s, at, inner, text_len, &inner_len);
	if (verdict != NIC_GOOD)
		return verdict;
	memcpy(out, in, l2);
	if (l2 >= 2) {
		out[l2 - 2] = inner[0] >> 4 == 4 ? 0x08 : 0x86;
		out[l2 - 1] = inner[0] >> 4 == 4 ? 0x00 : 0xdd;
	}
	*out_len = l2 + inner_len;
	return NIC_GOOD;
}
