/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_CSUM_GENERATOR_H
#define TEST_CSUM_GENERATOR_H

/*
 * Frames that are nearly right: tags, IPv4 options, IPv6 extension headers and layer 4 fit
 * together, then some are bent, cut or padded. The same seed gives the same frames.
 */

#include <stdint.h>
#include <string.h>

#define GENERATOR_MAX 2048

struct generator {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t
generator_next(struct generator *g)
{
	uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint32_t
generator_below(struct generator *g, uint32_t n)
{
	return (uint32_t)((generator_next(g) >> 32) * n >> 32);
}

static inline void
generator_fill(struct generator *g, uint8_t *p, uint32_t n)
{
	uint8_t with = 0;
	uint32_t i;
	int kind = (int)generator_below(g, 4);

	if (kind == 0)
		with = generator_below(g, 2) == 0 ? 0xff : 0;
	for (i = 0; i < n; i++)
		p[i] = kind == 0 ? with : (uint8_t)generator_next(g);
}

static inline void
generator_be16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Layer 4 with `n` bytes at most; returns its length and the protocol. */
static inline uint32_t
generator_l4(struct generator *g, uint8_t *p, int version, uint8_t *proto)
{
	static const uint8_t protos[] = { 6, 17, 17, 1, 58, 2, 136, 132, 47, 50 };
	uint32_t len =
		generator_below(g, 8) == 0 ? generator_below(g, 24) : 20 + generator_below(g, 150);

	if (generator_below(g, 16) == 0)
		len = 1000 + generator_below(g, 480);
	*proto = protos[generator_below(g, sizeof(protos))];
	if (version == 4 && *proto == 58)
		*proto = 1;
	generator_fill(g, p, len < 20 ? 20 : len);
	if (*proto == 6)
		p[12] = (uint8_t)((5 + generator_below(g, 8) / 4) << 4);
	if (*proto == 17)
		generator_be16(p + 4, len);
	if (*proto == 17 && generator_below(g, 8) == 0)
		generator_be16(p + 6, 0);
	if (*proto == 136)
		generator_be16(p + 4, generator_below(g, 2) * generator_below(g, len + 2));
	return len;
}

static inline uint32_t
generator_options4(struct generator *g, uint8_t *p)
{
	uint32_t n = 0, entries;

	switch (generator_below(g, 6)) {
	case 0:
		n = 4 * generator_below(g, 11);
		memset(p, 1, n);
		break;
	case 1:
		n = 4 * (1 + generator_below(g, 10));
		memset(p, 1, n);
		entries = (n - 4) / 4;
		p[0] = generator_below(g, 2) == 0 ? 131 : 137;
		p[1] = (uint8_t)(3 + 4 * entries);
		generator_fill(g, p + 2, 4 * entries + 1);
		p[2] = (uint8_t)(4 * (1 + generator_below(g, entries + 2)));
		break;
	case 2:
		n = 4 * (1 + generator_below(g, 10));
		generator_fill(g, p, n);
		break;
	}
	return n;
}

/* One extension header of kind `kind`, naming `next`; returns its length. */
static inline uint32_t
generator_extension(struct generator *g, uint8_t *p, uint8_t kind, uint8_t next)
{
	uint32_t n = generator_below(g, 4), len = 8 + 8 * n, entries;

	memset(p, 0, 8 + 8 * 8);
	p[0] = next;
	p[1] = (uint8_t)n;
	if (kind == 44) {
		generator_fill(g, p + 1, 7);
		generator_be16(p + 2, generator_below(g, 3) == 0 ? generator_below(g, 65536) : 0);
		return 8;
	}
	if (kind == 43) {
		static const uint8_t types[] = { 0, 2, 4, 4, 3 };

		entries = generator_below(g, 4);
		p[1] = (uint8_t)(2 * entries);
		p[2] = types[generator_below(g, sizeof(types))];
		p[3] = (uint8_t)generator_below(g, entries + 2);
		p[4] = (uint8_t)(entries == 0 ? 0 : entries - 1);
		generator_fill(g, p + 8, 16 * entries);
		return 8 + 16 * entries;
	}
	switch (generator_below(g, 4)) {
	case 0:
		p[2] = 1;
		p[3] = (uint8_t)(len - 4);
		break;
	case 1:
		generator_fill(g, p + 2, len - 2);
		break;
	case 2:
		if (n == 2) {
			p[2] = 1;
			p[3] = 2;
			p[6] = 201;
			p[7] = 16;
			generator_fill(g, p + 8, 16);
		}
		break;
	}
	return len;
}

static inline uint32_t
generator_ipv4(struct generator *g, uint8_t *p)
{
	uint32_t hlen = 20 + generator_options4(g, p + 20), len;

	generator_fill(g, p, 20);
	len = hlen + generator_l4(g, p + hlen, 4, &p[9]);
	p[0] = (uint8_t)(0x40 | hlen / 4);
	generator_be16(p + 2, len);
	generator_be16(p + 6, generator_below(g, 10) == 0 ? generator_below(g, 65536) : 0x4000);
	return len;
}

static inline uint32_t
generator_ipv6(struct generator *g, uint8_t *p)
{
	static const uint8_t kinds[] = { 60, 43, 44, 60, 43, 0 };
	uint32_t at = 40, i, n = generator_below(g, 3) * generator_below(g, 3);
	uint8_t *next = &p[6], kind, proto;

	generator_fill(g, p, 40);
	p[0] = 0x60;
	for (i = 0; i < n; i++) {
		kind = i == 0 && generator_below(g, 2) == 0 ? 0 : kinds[generator_below(g, 6)];
		*next = kind;
		next = &p[at];
		at += generator_extension(g, p + at, kind, 59);
	}
	at += generator_l4(g, p + at, 6, &proto);
	*next = proto;
	generator_be16(p + 4, at - 40);
	return at;
}

/* Flips bits, cuts, pads. */
static inline uint32_t
generator_bend(struct generator *g, uint8_t *p, uint32_t len)
{
	uint32_t i, n;

	switch (generator_below(g, 8)) {
	case 0:
		len = generator_below(g, len + 1);
		break;
	case 1:
		n = generator_below(g, 40);
		generator_fill(g, p + len, n);
		len += n;
		break;
	case 2:
	case 3:
		for (i = 0, n = 1 + generator_below(g, 3); i < n; i++)
			p[generator_below(g, len < 100 ? len : 100)] ^=
				(uint8_t)(1 << generator_below(g, 8));
		break;
	case 4:
		p[generator_below(g, len < 70 ? len : 70)] = (uint8_t)generator_next(g);
		break;
	}
	return len;
}

/* A frame into p[0..GENERATOR_MAX); returns its length. */
static inline uint32_t
generator_frame(struct generator *g, uint8_t *p)
{
	static const uint16_t tpids[] = { 0x8100, 0x88a8, 0x9100 };
	uint32_t at = 12, tags = 0;

	generator_fill(g, p, 12);
	if (generator_below(g, 4) == 0)
		tags = generator_below(g, 5);
	for (; tags > 0; tags--, at += 4) {
		generator_be16(p + at, tpids[generator_below(g, 3)]);
		generator_be16(p + at + 2, generator_below(g, 65536));
	}
	if (generator_below(g, 2) == 0) {
		generator_be16(p + at, 0x0800);
		at += 2;
		at += generator_ipv4(g, p + at);
	} else {
		generator_be16(p + at, 0x86dd);
		at += 2;
		at += generator_ipv6(g, p + at);
	}
	return generator_bend(g, p, at);
}

#endif /* TEST_CSUM_GENERATOR_H */
