/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <stdbool.h>
#include <string.h>

#include "reference.h"

enum {
	IP4H = 1,
	ICMP = 2,
	IGMP = 4,
	TCP = 8,
	UDP = 16,
	UDPLITE = 32,
	SCTP = 64
};

/* The pseudo-header and the part of the packet it belongs to. */
struct found {
	const uint8_t *src, *dst;
	uint32_t addr_len;
	uint32_t l3, hlen; /* where layer 3 stands; length of an IPv4 header */
	uint32_t end; /* of L */
	uint32_t l4;
	uint8_t proto;
	int version; /* 0: not a layer 3 we know */
	bool cut;
};

static uint32_t
be(const uint8_t *p, int n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* One byte at a time; `at` is its position among all the bytes summed. */
static void
add(uint32_t *sum, uint32_t *at, const uint8_t *p, uint32_t n)
{
	for (; n > 0; n--, p++, ++*at) {
		*sum += *at % 2 == 0 ? (uint32_t)*p << 8 : *p;
		if (*sum > 0xffff)
			*sum = (*sum & 0xffff) + 1;
	}
}

static uint32_t
crc(uint32_t c, const uint8_t *p, uint32_t n)
{
	int bit;

	for (; n > 0; n--, p++)
		for (c ^= *p, bit = 0; bit < 8; bit++)
			c = (c & 1) != 0 ? c >> 1 ^ 0x82f63b78 : c >> 1;
	return c;
}

static const char *
ipv4_options(struct found *f, const uint8_t *o, uint32_t n)
{
	uint32_t at = 0, size;
	bool seen = false;

	while (at < n) {
		if (o[at] == 0)
			return NULL;
		if (o[at] == 1) {
			at++;
			continue;
		}
		size = at + 1 < n ? o[at + 1] : 0;
		if (size < 2 || size > n - at)
			return "malformed_ext";
		if (o[at] == 131 || o[at] == 137) {
			if (seen || size < 3 || (size - 3) % 4 != 0)
				return "malformed_ext";
			if (o[at + 2] < 4 || o[at + 2] % 4 != 0)
				return "malformed_ext";
			if (o[at + 2] <= size)
				f->dst = o + at + size - 4;
			seen = true;
		}
		at += size;
	}
	return NULL;
}

static const char *
ipv4(struct found *f, const uint8_t *p, uint32_t len)
{
	const uint8_t *h = p + f->l3;
	uint32_t have = len - f->l3, total;
	const char *why;

	if (have < 20 || h[0] >> 4 != 4 || (h[0] & 15) < 5)
		return "malformed_l3";
	f->hlen = (h[0] & 15) * 4u;
	total = be(h + 2, 2);
	if (f->hlen > have || total < f->hlen)
		return "malformed_l3";
	f->version = 4;
	f->cut = total > have;
	f->end = f->l3 + (f->cut ? have : total);
	f->src = h + 12;
	f->dst = h + 16;
	f->addr_len = 4;
	if ((why = ipv4_options(f, h + 20, f->hlen - 20)) != NULL)
		return why;
	f->proto = h[9];
	f->l4 = f->l3 + f->hlen;
	if ((be(h + 6, 2) & 0x3fff) != 0)
		return "fragment";
	if (f->l4 == f->end)
		return "cut_l4";
	return f->proto == 50 || f->proto == 51 ? "opaque" : NULL;
}

static const char *
options6(struct found *f, const uint8_t *h, uint32_t size, bool hop, bool empty, uint32_t len,
	bool *jumbo, bool *home)
{
	uint32_t at, n;

	for (at = 2; at < size; at += n) {
		n = 1;
		if (h[at] == 0)
			continue;
		if (at + 1 == size)
			return "malformed_ext";
		n = h[at + 1] + 2u;
		if (at + n > size)
			return "malformed_ext";
		if (hop && h[at] == 0xc2) {
			uint32_t big;

			if (*jumbo || n != 6 || at % 4 != 2 || !empty)
				return "malformed_ext";
			big = be(h + at + 2, 4);
			if (big < 65536 || big > len - f->l3 - 40)
				return "malformed_ext";
			f->end = f->l3 + 40 + big;
			*jumbo = true;
		}
		if (!hop && h[at] == 201) {
			if (*home || n != 18)
				return "malformed_ext";
			f->src = h + at + 2;
			*home = true;
		}
	}
	return NULL;
}

static const char *
routing(struct found *f, const uint8_t *h, uint32_t size)
{
	uint32_t entries = (size - 8) / 16;
	bool whole = (size - 8) % 16 == 0;

	if (h[3] == 0)
		return NULL;
	if (h[2] == 0) {
		if (!whole || h[3] > entries)
			return "malformed_ext";
		f->dst = h + 8 + 16 * (entries - 1);
	} else if (h[2] == 2) {
		if (!whole || entries != 1 || h[3] != 1)
			return "malformed_ext";
		f->dst = h + 8;
	} else if (h[2] == 4) {
		if (h[4] + 1u > entries || h[3] > h[4] + 1u)
			return "malformed_ext";
		f->dst = h + 8;
	} else {
		return "opaque";
	}
	return NULL;
}

static const char *
ipv6(struct found *f, const uint8_t *p, uint32_t len)
{
	const uint8_t *h = p + f->l3;
	uint32_t have = len - f->l3, at = f->l3 + 40, size, limit;
	bool empty, jumbo = false, home = false;
	const char *why;
	uint8_t next;
	int walked;

	if (have < 40 || h[0] >> 4 != 6)
		return "malformed_l3";
	f->version = 6;
	f->src = h + 8;
	f->dst = h + 24;
	f->addr_len = 16;
	size = 40 + be(h + 4, 2);
	empty = size == 40;
	f->cut = size > have;
	f->end = f->l3 + (f->cut ? have : size);
	next = h[6];
	for (walked = 0;; walked++) {
		if (next == 50 || next == 51 || next == 59)
			return "opaque";
		if (next != 0 && next != 43 && next != 44 && next != 60)
			break;
		if (next == 0 && walked > 0)
			return "malformed_ext";
		if (walked == 32)
			return "ext_limit";
		limit = next == 0 && empty ? len : f->end;
		if (limit < at + 8)
			return "malformed_ext";
		h = p + at;
		size = next == 44 ? 8 : h[1] * 8u + 8;
		if (limit < at + size)
			return "malformed_ext";
		why = NULL;
		if (next == 0 || next == 60) {
			why = options6(f, h, size, next == 0, empty, len, &jumbo, &home);
			if (why == NULL && f->end < at + size)
				why = "malformed_ext";
		} else if (next == 43) {
			why = routing(f, h, size);
		} else if (jumbo) {
			why = "malformed_ext";
		} else if ((be(h + 2, 2) & 0xfff9) != 0) {
			f->proto = h[0];
			why = "fragment";
		}
		if (why != NULL)
			return why;
		next = h[0];
		at += size;
	}
	if (at >= f->end)
		return "cut_l4";
	if (at > 65535)
		return "ext_limit";
	f->l4 = at;
	f->proto = next;
	return NULL;
}

static const char *
layers(struct found *f, const uint8_t *p, uint32_t len)
{
	uint32_t at = 12, type;
	int tags;

	for (tags = 0;; tags++, at += 4) {
		if (len < at + 2)
			return "cut_l2";
		type = be(p + at, 2);
		if (type != 0x8100 && type != 0x88a8 && type != 0x9100)
			break;
		if (tags == 3)
			return "vlan_depth";
	}
	f->l3 = at + 2;
	if (type == 0x0800)
		return ipv4(f, p, len);
	if (type == 0x86dd)
		return ipv6(f, p, len);
	return "not_ip";
}

static uint32_t
flag_of(const struct found *f)
{
	if (f->version == 4 && f->proto == 1)
		return ICMP;
	if (f->version == 6 && f->proto == 58)
		return ICMP;
	if (f->version == 4 && f->proto == 2)
		return IGMP;
	if (f->proto == 6)
		return TCP;
	if (f->proto == 17)
		return UDP;
	if (f->proto == 136)
		return UDPLITE;
	return f->proto == 132 ? SCTP : 0;
}

/* Puts the sum of p[0..covered), with the pseudo-header if asked for, at p + field. */
static void
put_sum(const struct found *f, uint8_t *p, uint32_t field, uint32_t covered, bool pseudo, bool udp)
{
	uint32_t sum = 0, at = 0, n = f->end - f->l4;
	uint8_t tail[8] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n,
		0, 0, 0, f->proto };

	p[field] = p[field + 1] = 0;
	add(&sum, &at, p, covered);
	at = 0;
	if (pseudo) {
		add(&sum, &at, f->src, f->addr_len);
		add(&sum, &at, f->dst, f->addr_len);
		add(&sum, &at, tail, 8);
	}
	sum = 0xffff - sum;
	if (sum == 0 && udp)
		sum = 0xffff;
	p[field] = (uint8_t)(sum >> 8);
	p[field + 1] = (uint8_t)sum;
}

static const char *
layer4(const struct found *f, uint8_t *p)
{
	uint32_t n = f->end - f->l4, length;

	if (f->proto == 6) {
		if (n < 20 || p[12] >> 4 < 5 || (p[12] >> 4) * 4u > n)
			return "malformed_l4";
		put_sum(f, p, 16, n, true, false);
		return "computed";
	}
	if (n < 8 || (f->proto == 132 && n < 12))
		return "malformed_l4";
	length = be(p + 4, 2);
	switch (f->proto) {
	case 17:
		if (length != n && (length != 0 || n < 65536))
			return "malformed_l4";
		if (f->version == 4 && p[6] == 0 && p[7] == 0)
			return "udp_none";
		put_sum(f, p, 6, n, true, true);
		break;
	case 136:
		if (length == 0)
			length = n;
		if (length < 8 || length > n)
			return "malformed_l4";
		put_sum(f, p, 6, length, true, true);
		break;
	case 132:
		memset(p + 8, 0, 4);
		length = ~crc(0xffffffff, p, n);
		p[8] = (uint8_t)length;
		p[9] = (uint8_t)(length >> 8);
		p[10] = (uint8_t)(length >> 16);
		p[11] = (uint8_t)(length >> 24);
		break;
	default:
		put_sum(f, p, 2, n, f->proto == 58, false);
	}
	return "computed";
}

const char *
reference_update(uint8_t *frame, uint32_t len, uint32_t flags)
{
	struct found f = { .version = 0 };
	const char *why = layers(&f, frame, len), *reason = "unasked";
	uint32_t sum = 0, at = 0;

	if (f.version == 0)
		return why;
	if (f.cut)
		return "cut_l3";
	if (f.version == 4 && (flags & IP4H) != 0) {
		frame[f.l3 + 10] = frame[f.l3 + 11] = 0;
		add(&sum, &at, frame + f.l3, f.hlen);
		sum = 0xffff - sum;
		frame[f.l3 + 10] = (uint8_t)(sum >> 8);
		frame[f.l3 + 11] = (uint8_t)sum;
		reason = "computed";
	}
	if ((flags & ~(uint32_t)IP4H) == 0)
		return reason;
	if (why != NULL) {
		if (strcmp(why, "fragment") == 0 && flag_of(&f) != 0 && (flag_of(&f) & flags) == 0)
			return reason;
		return why;
	}
	if ((flag_of(&f) & flags) == 0)
		return reason;
	return layer4(&f, frame + f.l4);
}
