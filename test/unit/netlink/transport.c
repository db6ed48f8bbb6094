/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The control server as a client meets it, from the first hello to the last datagram. */

#include <errno.h>
#include <fcntl.h>
#include <rte_errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "netlink/server.h"
#include "world.h"

static char path[64];
static struct netlink_server *server;
static const struct world_header plain;

static int
setup(void **state)
{
	(void)state;
	server = world_create(path);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	netlink_server_destroy(server);
	server = NULL;
	assert_int_equal(access(path, F_OK), -1);
	return 0;
}

static struct client
open_client(void)
{
	struct client c = client_open(server, path, NETLINK_ROUTE);

	assert_int_equal(c.hello, 0);
	client_tell(&c, NETLINK_CTL_SETSOCKOPT, NETLINK_EXT_ACK, 1);
	return c;
}

/* One NEWLINK that asks for an ack. */
static int
ask(const struct client *c, uint32_t seq)
{
	struct message m;
	char why[256];
	struct nlmsghdr *nlh =
		message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, seq, &plain);

	return client_talk(server, c, &m, nlh->nlmsg_len, why, NULL);
}

static void
hello_comes_first(void **state)
{
	struct client c = { .fd = client_connect(path), .side = -1 };

	(void)state;
	assert_int_equal(ask(&c, 1), -EPROTO);
	client_close(&c);
	c = client_open(server, path, NETLINK_AUDIT);
	assert_int_equal(c.hello, -EPROTONOSUPPORT);
	client_close(&c);
	world_pump(server);
}

static void
port_ids_are_the_pid_then_unique(void **state)
{
	struct client a = open_client(), b = open_client(), x;
	uint32_t value;
	int error;

	(void)state;
	assert_int_equal(a.portid, getpid());
	assert_int_equal(b.portid, (uint32_t)-4097);
	/* Another protocol has its own. */
	x = client_open(server, path, NETLINK_XFRM);
	assert_int_equal(x.portid, getpid());
	/* A bound socket keeps its own; a taken one is refused. */
	client_tell(&b, NETLINK_CTL_BIND, b.portid, 0);
	client_tell(&b, NETLINK_CTL_BIND, a.portid, 0);
	world_pump(server);
	assert_true(client_aside(&b, NETLINK_CTL_BIND, &error, &value));
	assert_int_equal(error, 0);
	assert_true(client_aside(&b, NETLINK_CTL_BIND, &error, &value));
	assert_int_equal(error, -EINVAL);
	client_close(&a);
	world_pump(server);
	a = open_client();
	assert_int_equal(a.portid, getpid());
	client_close(&a);
	client_close(&b);
	client_close(&x);
	world_pump(server);
}

static void
acks_carry_what_the_kernel_does(void **state)
{
	struct client c = open_client();
	struct world_header bad = { .error = -EEXIST };
	_Alignas(8) uint8_t buf[1024];
	const struct nlmsghdr *ack = (const struct nlmsghdr *)(void *)buf;
	const struct nlmsgerr *e = (const struct nlmsgerr *)(ack + 1);
	struct message m;
	struct nlmsghdr *nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 77, &plain);
	uint32_t one = 1, offset;
	char why[256];

	(void)state;
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	world_pump(server);
	assert_int_equal(client_recv(&c, buf, sizeof(buf)), NLMSG_LENGTH(sizeof(*e)));
	assert_int_equal(ack->nlmsg_seq, 77);
	assert_int_equal(ack->nlmsg_pid, c.portid);
	assert_int_equal(ack->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(ack->nlmsg_flags, NLM_F_CAPPED);
	assert_int_equal(e->error, 0);
	assert_memory_equal(&e->msg, nlh, sizeof(*nlh));

	/* Without NLM_F_ACK success is silent, an error is not. */
	nlh->nlmsg_flags = NLM_F_REQUEST;
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -ENODATA);
	nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST, 78, &bad);
	message_attr(&m, WORLD_U32, &one, sizeof(one));
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, &offset), -EEXIST);
	assert_string_equal(why, "refused as asked");
	assert_int_equal(offset, NLMSG_LENGTH(sizeof(plain)));

	/* The request is echoed whole, unless capped. */
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	world_pump(server);
	assert_true(client_recv(&c, buf, sizeof(buf)) > sizeof(*ack) + 4 + nlh->nlmsg_len);
	assert_memory_equal(&e->msg, nlh, nlh->nlmsg_len);
	client_tell(&c, NETLINK_CTL_SETSOCKOPT, NETLINK_CAP_ACK, 1);
	client_tell(&c, NETLINK_CTL_SETSOCKOPT, NETLINK_EXT_ACK, 0);
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	world_pump(server);
	assert_int_equal(client_recv(&c, buf, sizeof(buf)), NLMSG_LENGTH(sizeof(*e)));
	client_close(&c);
}

static void
unknown_messages_are_refused_by_name(void **state)
{
	struct client c = open_client(), x;
	struct message m;
	struct nlmsghdr *nlh;
	char why[256];

	(void)state;
	nlh = message_init(&m, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, 1, &plain);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -EOPNOTSUPP);
	assert_string_equal(why, "RTM_GETROUTE is not supported");
	nlh = message_init(&m, 0x7ff0, NLM_F_REQUEST, 1, &plain);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -EOPNOTSUPP);
	assert_string_equal(why, "Message type 32752 is not supported");
	nlh = message_init(&m, RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 1, &plain);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -EOPNOTSUPP);
	assert_string_equal(why, "RTM_GETADDR cannot be dumped");
	/* Those flags are CREATE and EXCL in a NEW. */
	nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP, 1, &plain);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), 0);
	/* Not a request, or a netlink message proper: acknowledged and ignored. */
	nlh = message_init(&m, RTM_GETROUTE, NLM_F_ACK, 1, &plain);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), 0);
	nlh = message_init(&m, NLMSG_NOOP, NLM_F_REQUEST, 1, &plain);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -ENODATA);
	x = client_open(server, path, NETLINK_XFRM);
	client_tell(&x, NETLINK_CTL_SETSOCKOPT, NETLINK_EXT_ACK, 1);
	nlh = message_init(&m, 0x12, NLM_F_REQUEST, 1, &plain);
	assert_int_equal(client_talk(server, &x, &m, nlh->nlmsg_len, why, NULL), -EOPNOTSUPP);
	assert_string_equal(why, "XFRM_MSG_GETSA is only served as a dump");
	client_close(&x);
	client_close(&c);
}

static void
message_lengths_are_checked(void **state)
{
	struct client c = open_client();
	struct message m;
	char why[256];
	struct nlmsghdr *nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 5, &plain);
	const uint32_t full = nlh->nlmsg_len;

	(void)state;
	for (uint32_t len = 0; len < 100; len++) {
		/* What follows a shorter message would be another one. */
		uint32_t there = len < NLMSG_HDRLEN || len > full ? full : len;

		nlh->nlmsg_len = len;
		assert_int_equal(
			client_talk(server, &c, &m, there, why, NULL), len == full ? 0 : -EINVAL);
		if (len < NLMSG_HDRLEN || len > full)
			assert_non_null(strstr(why, "does not fit its datagram"));
		else if (len < full)
			assert_string_equal(why, "RTM_NEWLINK is shorter than its header");
	}
	nlh->nlmsg_len = UINT32_MAX;
	assert_int_equal(client_talk(server, &c, &m, full, why, NULL), -EINVAL);
	nlh->nlmsg_len = INT32_MAX;
	assert_int_equal(client_talk(server, &c, &m, full, why, NULL), -EINVAL);
	nlh->nlmsg_len = full;
	/* Less than a header says nothing that could be answered; and the next one is served. */
	for (size_t len = 1; len < NLMSG_HDRLEN; len++)
		assert_int_equal(client_talk(server, &c, &m, len, why, NULL), -ENODATA);
	assert_int_equal(ask(&c, 6), 0);
	client_close(&c);
}

static void
a_datagram_beyond_the_limit_is_refused(void **state)
{
	struct client c = open_client();
	const size_t len = NETLINK_REQUEST_MAX + 4;
	int sndbuf = 1 << 20;
	char why[256];
	struct message m;
	struct nlmsghdr *nlh;
	uint8_t *data = calloc(1, len);

	(void)state;
	assert_non_null(data);
	if (setsockopt(c.fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf)) == 0) {
		nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST, 1, &plain);
		nlh->nlmsg_len = (uint32_t)len;
		memcpy(data, nlh, sizeof(*nlh));
		assert_int_equal(client_talk(server, &c, data, len, why, NULL), -EMSGSIZE);
	}
	assert_int_equal(ask(&c, 6), 0);
	free(data);
	client_close(&c);
}

/* In a datagram of three, every cut of the last leaves the first two served. */
static void
several_messages_a_datagram(void **state)
{
	struct client c = open_client();
	_Alignas(8) uint8_t data[3 * 64], buf[1024];
	const struct nlmsghdr *ack = (const struct nlmsghdr *)(void *)buf;
	struct message m;
	size_t one = 0, n;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct nlmsghdr *nlh =
			message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, i, &plain);

		one = nlh->nlmsg_len;
		memcpy(data + i * one, nlh, one);
	}
	for (size_t len = 2 * one; len <= 3 * one; len++) {
		unsigned int before = world_accepted;

		assert_int_equal(send(c.fd, data, len, 0), len);
		world_pump(server);
		for (uint32_t i = 0; i < 2; i++) {
			assert_true(client_recv(&c, buf, sizeof(buf)) > 0);
			assert_int_equal(ack->nlmsg_seq, i);
			assert_int_equal(((const struct nlmsgerr *)(ack + 1))->error, 0);
		}
		n = client_recv(&c, buf, sizeof(buf));
		if (len < 2 * one + sizeof(*ack))
			assert_int_equal(n, 0);
		else
			assert_int_equal(((const struct nlmsgerr *)(ack + 1))->error,
				len < 3 * one ? -EINVAL : 0);
		assert_int_equal(world_accepted - before, len < 3 * one ? 2 : 3);
	}
	client_close(&c);
}

/* Bytes of answers that wait in the server. */
static size_t
kept_answers(void)
{
	const struct netlink_client *c;
	const struct netlink_datagram *d;
	size_t n = 0;

	LIST_FOREACH (c, &server->clients, next)
		STAILQ_FOREACH (d, &c->queue, next)
			n += d->len;
	return n;
}

/* The next datagram is one message, with this type, number and, of an ack, error. */
static void
expect(const struct client *c, uint16_t type, uint32_t seq, int error)
{
	_Alignas(8) uint8_t buf[4096];
	const struct nlmsghdr *got = (const struct nlmsghdr *)(void *)buf;
	size_t n = client_recv(c, buf, sizeof(buf));

	assert_true(n >= sizeof(*got));
	assert_int_equal(got->nlmsg_len, n);
	assert_int_equal(got->nlmsg_type, type);
	assert_int_equal(got->nlmsg_seq, seq);
	if (type == NLMSG_ERROR)
		assert_int_equal(((const struct nlmsgerr *)(got + 1))->error, error);
}

/* Acks of one datagram's requests leave together; they do not overtake what else is sent. */
static void
acks_keep_their_place(void **state)
{
	struct world_header get = { .count = 1, .size = 8 }, wrong = { .error = -EBUSY };
	struct client c = open_client();
	_Alignas(8) uint8_t data[60 * 64];
	size_t n = 0;

	(void)state;
	client_tell(&c, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	for (uint32_t i = 0; i < 60; i++) {
		const struct world_header *h = i % 5 == 2 ? &get : i % 5 == 4 ? &wrong : &plain;
		struct message m;
		struct nlmsghdr *nlh = message_init(
			&m, h == &get ? RTM_GETLINK : RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, i, h);

		memcpy(data + n, nlh, nlh->nlmsg_len);
		n += nlh->nlmsg_len;
	}
	assert_int_equal(send(c.fd, data, n, 0), n);
	world_pump(server);
	for (uint32_t i = 0; i < 60; i++) {
		/* a change is told to its group, which has this client, before it is acked */
		if (i % 5 != 4)
			expect(&c, RTM_NEWLINK, i, 0);
		expect(&c, NLMSG_ERROR, i, i % 5 == 4 ? -EBUSY : 0);
	}
	client_close(&c);
}

/* Who does not read its acks gets them later: each, once, in order. */
static void
acks_wait_for_room(void **state)
{
	struct client c = open_client();
	_Alignas(8) uint8_t data[40 * 64];
	uint32_t sent = 0;

	(void)state;
	for (;;) {
		size_t n = 0;

		for (uint32_t i = 0; i < 40; i++) {
			struct message m;
			struct nlmsghdr *nlh = message_init(
				&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, sent + i, &plain);

			memcpy(data + n, nlh, nlh->nlmsg_len);
			n += nlh->nlmsg_len;
		}
		if (send(c.fd, data, n, MSG_DONTWAIT) != (ssize_t)n)
			break;
		sent += 40;
		world_pump(server);
		assert_true(kept_answers() <= NETLINK_ACKS_MAX * sizeof(server->acks.ack[0]));
	}
	assert_true(sent > 100);
	for (uint32_t i = 0; i < sent; i++) {
		expect(&c, NLMSG_ERROR, i, 0);
		world_pump(server);
	}
	client_close(&c);
}

static int
talk_attr(const struct client *c, uint16_t type, const void *data, size_t len, char why[256])
{
	struct message m;
	struct nlmsghdr *nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, &plain);

	message_attr(&m, type, data, len);
	return client_talk(server, c, &m, nlh->nlmsg_len, why, NULL);
}

static void
attributes_are_what_the_policy_says(void **state)
{
	static const struct {
		uint16_t type;
		size_t good_min, good_max;
	} sizes[] = {
		{ WORLD_U8, 1, 1 },
		{ WORLD_U16, 2, 2 },
		{ WORLD_U32, 4, 4 },
		{ WORLD_U64, 8, 8 },
		{ WORLD_BINARY, 2, 6 },
		{ WORLD_FLAG, 0, 0 },
		{ WORLD_IGNORED, 0, 12 },
	};
	static const uint8_t zeros[16];
	struct client c = open_client();
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t len = 0; len <= 12; len++)
			assert_int_equal(talk_attr(&c, sizes[i].type, zeros, len, why),
				len >= sizes[i].good_min && len <= sizes[i].good_max ? 0 : -EINVAL);
	assert_int_equal(talk_attr(&c, WORLD_U32, zeros, 3, why), -EINVAL);
	assert_string_equal(why, "WORLD_U32 has 3 bytes instead of 4");
	assert_int_equal(talk_attr(&c, WORLD_BINARY, zeros, 7, why), -EINVAL);
	assert_string_equal(why, "WORLD_BINARY has 7 bytes, at most 6 are allowed");
	assert_int_equal(talk_attr(&c, WORLD_BINARY, zeros, 1, why), -EINVAL);
	assert_string_equal(why, "WORLD_BINARY has 1 bytes, at least 2 are needed");
	assert_int_equal(talk_attr(&c, WORLD_STRING, "abc", 4, why), 0);
	assert_int_equal(talk_attr(&c, WORLD_STRING, "abc", 3, why), -EINVAL);
	assert_string_equal(why, "WORLD_STRING is not terminated");
	assert_int_equal(talk_attr(&c, WORLD_STRING, "abcdefgh", 9, why), -EINVAL);
	assert_string_equal(why, "WORLD_STRING is longer than 7 characters");
	assert_int_equal(talk_attr(&c, WORLD_STRING, "", 1, why), -EINVAL);
	assert_int_equal(talk_attr(&c, WORLD_REFUSED, zeros, 4, why), -EOPNOTSUPP);
	assert_string_equal(why, "WORLD_REFUSED is not supported");
	assert_int_equal(talk_attr(&c, 0, zeros, 4, why), -EOPNOTSUPP);
	assert_int_equal(talk_attr(&c, 333, zeros, 4, why), -EOPNOTSUPP);
	assert_string_equal(why, "attribute 333 is not supported");
	assert_int_equal(talk_attr(&c, WORLD_U32 | NLA_F_NESTED, zeros, 4, why), -EINVAL);
	assert_string_equal(why, "WORLD_U32 is marked as nested, which it is not");
	client_close(&c);
}

static void
an_attribute_is_given_once(void **state)
{
	struct client c = open_client();
	struct message m;
	uint32_t one = 1, offset;
	char why[256];
	struct nlmsghdr *nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, &plain);

	(void)state;
	message_attr(&m, WORLD_U32, &one, sizeof(one));
	message_attr(&m, WORLD_U32, &one, sizeof(one));
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, &offset), -EINVAL);
	assert_string_equal(why, "WORLD_U32 is given twice");
	assert_int_equal(offset, NLMSG_LENGTH(sizeof(plain)) + 8);
	client_close(&c);
}

/* Each length that an attribute, alone and inside others, can lie about. */
static void
attribute_lengths_are_checked(void **state)
{
	struct client c = open_client();
	struct message m;
	uint32_t inner[6] = { 0 };
	char why[256];
	struct nlmsghdr *nlh;

	(void)state;
	for (unsigned int depth = 0; depth < 3; depth++) {
		struct nlattr *attr =
			(struct nlattr *)(void *)(m.data + NLMSG_LENGTH(sizeof(plain)));

		for (uint32_t len = 0; len < 70; len++) {
			size_t total = 8 + 4 * depth, left = 8;

			nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, &plain);
			for (unsigned int d = 0; d < depth; d++) {
				attr[d].nla_type = WORLD_NESTED | (d == 0 ? NLA_F_NESTED : 0);
				attr[d].nla_len = (uint16_t)(total - 4 * d);
			}
			attr[depth].nla_type = WORLD_U32;
			attr[depth].nla_len = (uint16_t)len;
			nlh->nlmsg_len += (uint32_t)total;
			assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL),
				len == left ? 0 : -EINVAL);
			if (depth == 0 && (len < 4 || len > left))
				assert_non_null(strstr(why, "the attribute at byte 32 has length"));
			if (depth > 0 && (len < 4 || len > left))
				assert_string_equal(why,
					"an attribute inside WORLD_NESTED does not fit into it");
		}
	}
	/* One to three bytes cannot be an attribute. */
	for (uint32_t extra = 1; extra < 4; extra++) {
		nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, &plain);
		message_attr(&m, WORLD_U32, inner, 4);
		nlh->nlmsg_len += extra;
		assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -EINVAL);
		assert_non_null(strstr(why, "left over"));
	}
	client_close(&c);
}

/* What a dump was made of. */
struct dumped {
	uint32_t objects, datagrams, largest;
	int error;
	bool done, interrupted;
	char why[256];
};

static void
read_dump(const struct client *c, struct dumped *d)
{
	static _Alignas(8) uint8_t buf[65536];
	size_t n;

	while (!d->done && (n = client_recv(c, buf, sizeof(buf))) > 0) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(void *)buf;

		assert_true(n <= sizeof(buf));
		d->datagrams++;
		d->largest = n > d->largest ? (uint32_t)n : d->largest;
		for (; n > 0; nlh = (const struct nlmsghdr *)(const void *)((const uint8_t *)nlh +
				      NLMSG_ALIGN(nlh->nlmsg_len))) {
			assert_true(n >= sizeof(*nlh) && nlh->nlmsg_len <= n);
			n -= n > NLMSG_ALIGN(nlh->nlmsg_len) ? NLMSG_ALIGN(nlh->nlmsg_len) : n;
			assert_int_equal(nlh->nlmsg_seq, 9);
			assert_int_equal(nlh->nlmsg_pid, c->portid);
			assert_true((nlh->nlmsg_flags & NLM_F_MULTI) != 0);
			d->interrupted |= (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			if (nlh->nlmsg_type == NLMSG_DONE) {
				d->done = true;
				memcpy(&d->error, nlh + 1, sizeof(int));
				if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) != 0)
					snprintf(d->why, sizeof(d->why), "%s",
						(const char *)(nlh + 1) + sizeof(int) + NLA_HDRLEN);
				assert_int_equal(n, 0);
				break;
			}
			assert_int_equal(nlh->nlmsg_type, RTM_NEWLINK);
			assert_int_equal(*(const uint32_t *)(nlh + 1), d->objects);
			d->objects++;
		}
	}
}

static struct dumped
dump(const struct client *c, const struct world_header *h)
{
	struct dumped d = { 0 };
	struct message m;
	struct nlmsghdr *nlh = message_init(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 9, h);

	assert_int_equal(send(c->fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	do {
		uint32_t before = d.datagrams;

		world_pump(server);
		read_dump(c, &d);
		if (d.datagrams == before)
			break;
	} while (!d.done);
	return d;
}

static void
dumps_come_whole_and_in_order(void **state)
{
	struct client c = open_client();
	struct dumped d;

	(void)state;
	for (uint32_t size = 0; size < 3000; size += 97) {
		d = dump(&c, &(struct world_header){ .count = 500, .size = size });
		assert_true(d.done);
		assert_int_equal(d.error, 0);
		assert_int_equal(d.objects, 500);
		assert_true(d.largest <= NETLINK_DUMP_SMALL);
	}
	d = dump(&c, &(struct world_header){ .count = 0 });
	assert_true(d.done && d.objects == 0 && d.datagrams == 1);
	/* An object larger than that has a datagram of its own. */
	d = dump(&c, &(struct world_header){ .count = 20, .size = 20000 });
	assert_true(d.done && d.objects == 20 && d.largest > 20000);
	client_tell(&c, NETLINK_CTL_RCVBUF, 4096, 0);
	d = dump(&c, &(struct world_header){ .count = 500, .size = 100 });
	assert_true(d.objects == 500 && d.largest <= NETLINK_DUMP_SMALL);
	client_tell(&c, NETLINK_CTL_RCVBUF, 8192, 0);
	d = dump(&c, &(struct world_header){ .count = 500, .size = 100 });
	assert_true(d.objects == 500 && d.largest > 8000 && d.largest <= 8192);
	client_tell(&c, NETLINK_CTL_RCVBUF, 1 << 20, 0);
	d = dump(&c, &(struct world_header){ .count = 20000, .size = 100 });
	assert_true(d.objects == 20000 && d.largest > 32000 && d.largest <= 32768);
	client_close(&c);
}

static void
dumps_end_with_their_error(void **state)
{
	struct client c = open_client();
	struct message m;
	struct nlmsghdr *nlh;
	struct dumped d;
	char why[256];

	(void)state;
	d = dump(&c, &(struct world_header){ .count = 100, .size = 100, .error = -ENOENT });
	assert_true(d.done);
	assert_int_equal(d.error, -ENOENT);
	assert_int_equal(d.objects, 50);
	assert_string_equal(d.why, "half way");
	d = dump(&c, &(struct world_header){ .count = 1, .size = 40000 });
	assert_true(d.done);
	assert_int_equal(d.error, -EMSGSIZE);
	d = dump(&c, &(struct world_header){ .count = 1000, .size = 100, .flags = WORLD_CHANGE });
	assert_true(d.done && d.interrupted && d.objects == 1000);
	d = dump(&c, &(struct world_header){ .count = 1000, .size = 100 });
	assert_true(d.done && !d.interrupted);
	/* A family and nothing more is enough of a header, and the rest reads as zero. */
	nlh = message_init(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 9, &plain);
	nlh->nlmsg_len = NLMSG_LENGTH(1);
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	world_pump(server);
	memset(&d, 0, sizeof(d));
	read_dump(&c, &d);
	assert_true(d.done && d.error == 0);
	nlh->nlmsg_len = NLMSG_LENGTH(0);
	assert_int_equal(client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -EINVAL);
	client_close(&c);
}

static void
one_dump_at_a_time_and_requests_beside_it(void **state)
{
	struct client c = open_client();
	struct world_header h = { .count = 20000, .size = 200 };
	struct message m;
	struct nlmsghdr *nlh = message_init(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 9, &h);
	_Alignas(8) uint8_t buf[65536];
	const struct nlmsghdr *got = (const struct nlmsghdr *)(void *)buf;
	unsigned int errors = 0, acks = 0, objects = 0;

	(void)state;
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	world_pump(server);
	nlh->nlmsg_seq = 10;
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 11, &plain);
	assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	for (bool done = false; !done;) {
		world_pump(server);
		memset(buf, 0, sizeof(buf));
		assert_true(client_recv(&c, buf, sizeof(buf)) > 0);
		if (got->nlmsg_seq == 10) {
			assert_int_equal(((const struct nlmsgerr *)(got + 1))->error, -EBUSY);
			errors++;
		} else if (got->nlmsg_seq == 11) {
			assert_int_equal(((const struct nlmsgerr *)(got + 1))->error, 0);
			acks++;
		}
		for (size_t n = 0; n < sizeof(buf) && got->nlmsg_seq == 9;) {
			const struct nlmsghdr *one = (const struct nlmsghdr *)(void *)(buf + n);

			if (one->nlmsg_seq != 9 || one->nlmsg_len < sizeof(*one))
				break;
			if ((done = one->nlmsg_type == NLMSG_DONE))
				break;
			objects++;
			n += NLMSG_ALIGN(one->nlmsg_len);
		}
	}
	assert_int_equal(errors, 1);
	assert_int_equal(acks, 1);
	assert_int_equal(objects, h.count);
	client_close(&c);
}

static void
a_client_may_die_in_the_middle_of_a_dump(void **state)
{
	struct client other = open_client();
	struct netlink_server_stats stats;

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		struct client c = open_client();
		struct world_header h = { .count = 100000, .size = 300 };
		struct message m;
		struct nlmsghdr *nlh =
			message_init(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 9, &h);
		uint8_t buf[65536];

		assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
		/* A dispatch or some, so that it dies at various stages of being served. */
		for (unsigned int j = 0; j < i; j++)
			netlink_server_dispatch(server);
		if (i % 2 == 0)
			(void)client_recv(&c, buf, sizeof(buf));
		client_close(&c);
		assert_int_equal(ask(&other, i), 0);
	}
	client_close(&other);
	world_pump(server);
	netlink_server_stats(server, &stats);
	assert_int_equal(stats.clients, 0);
}

/* With the kernel a request was handled when send() returned, so it may be the last thing one does.
 */
static void
requests_of_a_client_that_left_are_served(void **state)
{
	struct message m;
	struct nlmsghdr *nlh;

	(void)state;
	for (unsigned int dump_first = 0; dump_first < 2; dump_first++) {
		struct client c = open_client();
		struct world_header h = { .count = 100000, .size = 300 };
		unsigned int before = world_accepted;

		if (dump_first) {
			nlh = message_init(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 9, &h);
			assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
		}
		for (uint32_t i = 0; i < 50; i++) {
			nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, i, &plain);
			assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
		}
		client_close(&c);
		world_pump(server);
		assert_int_equal(world_accepted - before, 50);
		assert_int_equal(world_last_seq, 49);
	}
}

/*
 * It asks and asks and reads nothing: the server keeps what its socket does not take of one message
 * and goes on with the others. When it reads at last, every answer is there, in order.
 */
static void
a_client_that_never_reads_costs_little(void **state)
{
	struct client deaf = open_client(), other = open_client();
	struct world_header h = { .count = 1, .size = 20000 };
	_Alignas(8) uint8_t data[32 * 64], buf[65536];
	const struct nlmsghdr *got = (const struct nlmsghdr *)(void *)buf;
	uint32_t sent = 0, seq = 0;
	struct message m;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		size_t n = 0;

		for (uint32_t j = 0; j < 32; j++) {
			struct nlmsghdr *nlh =
				message_init(&m, RTM_GETLINK, NLM_F_REQUEST, sent + j, &h);

			memcpy(data + n, nlh, nlh->nlmsg_len);
			n += nlh->nlmsg_len;
		}
		if (send(deaf.fd, data, n, MSG_DONTWAIT) != (ssize_t)n)
			break;
		sent += 32;
		world_pump(server);
		assert_int_equal(ask(&other, 1), 0);
	}
	assert_true(sent > 100 && sent < 1000 * 32);
	assert_true(kept_answers() <= 2 * NETLINK_MESSAGE_MAX);
	for (; seq < sent; seq++) {
		if (client_recv(&deaf, buf, sizeof(buf)) == 0) {
			world_pump(server);
			assert_true(client_recv(&deaf, buf, sizeof(buf)) > 0);
		}
		assert_int_equal(got->nlmsg_seq, seq);
		assert_int_equal(got->nlmsg_type, RTM_NEWLINK);
	}
	world_pump(server);
	assert_int_equal(client_recv(&deaf, buf, sizeof(buf)), 0);
	assert_int_equal(ask(&deaf, 7), 0);
	client_close(&deaf);
	client_close(&other);
}

static unsigned int
count_notes(const struct client *c, unsigned int *overruns, uint32_t *last)
{
	_Alignas(8) uint8_t buf[65536];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)(void *)buf;
	unsigned int n = 0;

	while (client_recv(c, buf, sizeof(buf)) > 0) {
		if (nlh->nlmsg_type == NETLINK_CTL_OVERRUN)
			(*overruns)++;
		else if (nlh->nlmsg_type == RTM_NEWLINK)
			n++;
		*last = nlh->nlmsg_type;
	}
	return n;
}

static void
notifications_go_to_their_group(void **state)
{
	struct client a = open_client(), b = open_client(), x;
	unsigned int overruns = 0;
	struct message m;
	struct nlmsghdr *nlh;
	uint32_t last, value;
	char why[256];
	int error;

	(void)state;
	x = client_open(server, path, NETLINK_XFRM);
	client_tell(&x, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	assert_false(netlink_notify_wanted(server, NULL, NETLINK_ROUTE, WORLD_GROUP));
	client_tell(&a, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	client_tell(&a, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	world_pump(server);
	assert_true(netlink_notify_wanted(server, NULL, NETLINK_ROUTE, WORLD_GROUP));
	assert_int_equal(ask(&b, 1), 0);
	assert_int_equal(count_notes(&a, &overruns, &last), 1);
	assert_int_equal(count_notes(&b, &overruns, &last), 0);
	assert_int_equal(count_notes(&x, &overruns, &last), 0);
	/* An echo comes once, also to one who is a member. */
	nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ECHO, 1, &plain);
	assert_int_equal(client_talk(server, &b, &m, nlh->nlmsg_len, why, NULL), -ENODATA);
	assert_int_equal(count_notes(&a, &overruns, &last), 1);
	assert_int_equal(send(a.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	world_pump(server);
	assert_int_equal(count_notes(&a, &overruns, &last), 1);
	/* Nobody asked for this one. */
	netlink_server_dev_changed(server, 3);
	netlink_server_dev_gone(server, 3);
	assert_int_equal(count_notes(&a, &overruns, &last), 1);
	assert_int_equal(last, RTM_DELLINK);
	client_tell(&a, NETLINK_CTL_LEAVE, WORLD_GROUP, 0);
	world_pump(server);
	assert_false(netlink_notify_wanted(server, NULL, NETLINK_ROUTE, WORLD_GROUP));
	/* bind() with groups, and groups that do not exist. */
	client_tell(&a, NETLINK_CTL_BIND, 0, 1u << (WORLD_GROUP - 1));
	client_tell(&a, NETLINK_CTL_JOIN, 0, 0);
	client_tell(&a, NETLINK_CTL_JOIN, 65, 0);
	client_tell(&a, NETLINK_CTL_LEAVE, UINT32_MAX, 0);
	world_pump(server);
	assert_true(client_aside(&a, NETLINK_CTL_BIND, &error, &value));
	assert_int_equal(error, 0);
	assert_true(netlink_notify_wanted(server, NULL, NETLINK_ROUTE, WORLD_GROUP));
	client_close(&a);
	client_close(&b);
	client_close(&x);
	world_pump(server);
	assert_false(netlink_notify_wanted(server, NULL, NETLINK_ROUTE, WORLD_GROUP));
}

static void
a_slow_subscriber_is_told_of_the_overrun(void **state)
{
	struct client slow = open_client(), quiet = open_client(), other = open_client();
	struct world_header h = { .count = 1000 };
	struct netlink_server_stats stats;
	unsigned int overruns = 0, n;
	struct message m;
	struct nlmsghdr *nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, &h);
	char why[256];
	uint32_t last;

	(void)state;
	client_tell(&slow, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	client_tell(&quiet, NETLINK_CTL_JOIN, WORLD_GROUP, 0);
	client_tell(&quiet, NETLINK_CTL_SETSOCKOPT, NETLINK_NO_ENOBUFS, 1);
	world_pump(server);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(client_talk(server, &other, &m, nlh->nlmsg_len, why, NULL), 0);
	netlink_server_stats(server, &stats);
	assert_int_equal(stats.overruns, 1);
	n = count_notes(&slow, &overruns, &last);
	assert_true(n > 10 && n < 1000);
	assert_int_equal(overruns, 0);
	world_pump(server);
	assert_int_equal(count_notes(&slow, &overruns, &last), 0);
	assert_int_equal(overruns, 1);
	count_notes(&quiet, &overruns, &last);
	world_pump(server);
	count_notes(&quiet, &overruns, &last);
	assert_int_equal(overruns, 1);
	/* From here on it hears everything again. */
	assert_int_equal(client_talk(server, &other, &m, nlh->nlmsg_len, why, NULL), 0);
	assert_int_equal(count_notes(&slow, &overruns, &last), 1);
	client_close(&slow);
	client_close(&quiet);
	client_close(&other);
}

static void
sync_is_answered_after_what_was_sent(void **state)
{
	struct client c = open_client();
	uint32_t value;
	struct message m;
	struct nlmsghdr *nlh;
	int error;

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST, i, &plain);
		assert_int_equal(send(c.fd, &m, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	}
	client_tell(&c, NETLINK_CTL_SYNC, 4711, 0);
	assert_false(client_aside(&c, NETLINK_CTL_SYNC, &error, &value));
	world_pump(server);
	assert_int_equal(world_last_seq, 9);
	assert_true(client_aside(&c, NETLINK_CTL_SYNC, &error, &value));
	assert_int_equal(value, 4711);
	client_close(&c);
}

static void
private_messages_are_checked_too(void **state)
{
	struct client c = open_client();
	struct message m;
	char why[256];

	(void)state;
	for (uint16_t type = NETLINK_CTL_FIRST; type >= NETLINK_CTL_FIRST; type++) {
		struct nlmsghdr *nlh = message_init(&m, type, 0, 1, NULL);

		for (nlh->nlmsg_len = NLMSG_HDRLEN; nlh->nlmsg_len < sizeof(struct netlink_ctl);
			nlh->nlmsg_len += 4)
			assert_int_equal(
				client_talk(server, &c, &m, nlh->nlmsg_len, why, NULL), -ENODATA);
	}
	client_tell(&c, NETLINK_CTL_SETSOCKOPT, 12345, 1);
	client_tell(&c, NETLINK_CTL_OVERRUN, 0, 0);
	client_tell(&c, 0xffff, 0, 0);
	assert_int_equal(ask(&c, 1), 0);
	/* A second hello does not change what the first said. */
	client_tell(&c, NETLINK_CTL_HELLO, NETLINK_CTL_VERSION, NETLINK_XFRM);
	world_pump(server);
	assert_int_equal(client_recv(&c, &m, sizeof(m)), sizeof(struct netlink_ctl));
	assert_int_equal(ask(&c, 2), 0);
	client_close(&c);
}

static void
sixty_four_clients_and_no_more_than_the_limit(void **state)
{
	static struct client c[NETLINK_CLIENTS_MAX];
	struct rlimit limit;
	struct client late;
	unsigned int n = NETLINK_CLIENTS_MAX;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < 4 * NETLINK_CLIENTS_MAX + 64)
		n = 64;
	for (unsigned int i = 0; i < n; i++) {
		c[i] = open_client();
		for (unsigned int j = 0; j < i; j++)
			assert_int_not_equal(c[i].portid, c[j].portid);
	}
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(ask(&c[i], i), 0);
	if (n == NETLINK_CLIENTS_MAX) {
		late = client_open(server, path, NETLINK_ROUTE);
		assert_true(late.hello == -EUSERS || late.hello == -EPIPE);
		client_close(&late);
		client_close(&c[0]);
		world_pump(server);
		c[0] = open_client();
	}
	for (unsigned int i = 0; i < n; i++)
		client_close(&c[i]);
	world_pump(server);
}

static void
a_newcomer_gets_in_beside_a_busy_client(void **state)
{
	struct client busy = open_client();
	int newcomer = client_connect(path);
	struct netlink_server_stats stats = { 0 };
	struct message m;
	struct nlmsghdr *nlh = message_init(&m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, &plain);
	_Alignas(8) uint8_t buf[1024];

	(void)state;
	/* One request after the other: whenever the server looks, there is one. */
	for (unsigned int i = 0; i < 200 && stats.accepted < 2; i++) {
		assert_int_equal(send(busy.fd, m.data, nlh->nlmsg_len, 0), nlh->nlmsg_len);
		netlink_server_dispatch(server);
		assert_int_not_equal(client_recv(&busy, buf, sizeof(buf)), 0);
		netlink_server_stats(server, &stats);
	}
	assert_int_equal(stats.accepted, 2);
	close(newcomer);
	client_close(&busy);
	world_pump(server);
}

static void
out_of_descriptors_is_said_not_hung(void **state)
{
	struct rlimit old, low;
	struct client c;
	int fd = client_connect(path), dummy;
	struct netlink_ctl ctl;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	dummy = dup(fd);
	close(dummy);
	low = old;
	low.rlim_cur = (rlim_t)dummy;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	world_pump(server);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(recv(fd, &ctl, sizeof(ctl), MSG_DONTWAIT), sizeof(ctl));
	assert_int_equal((int)ctl.arg[0], -EMFILE);
	close(fd);
	c = open_client();
	assert_int_equal(ask(&c, 1), 0);
	client_close(&c);
}

static struct netlink_server *
create(const char *where, gid_t group, char error[256])
{
	struct netlink_conf conf = { .path = where, .group = group };

	error[0] = '\0';
	return netlink_server_create(&conf, error, 256);
}

static void
the_socket_file(void **state)
{
	char error[256], longer[300], saved[80];
	struct netlink_server *s;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	(void)state;
	/* A live one is left alone. */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_null(create(path, (gid_t)-1, error));
	assert_int_equal(rte_errno, EADDRINUSE);
	assert_non_null(strstr(error, path));
	assert_non_null(strstr(error, "is served by another program"));
	assert_int_equal(access(path, F_OK), 0);
	/* A stale one is taken over, whatever its type. */
	snprintf(saved, sizeof(saved), "%s.2", path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", saved);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	s = create(saved, getgid(), error);
	assert_string_equal(error, "");
	assert_non_null(s);
	assert_int_equal(stat(saved, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	/* Not ours any more: it stays. */
	assert_int_equal(unlink(saved), 0);
	fd = open(saved, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	netlink_server_destroy(s);
	assert_int_equal(access(saved, F_OK), 0);
	/* A file is not replaced. */
	assert_null(create(saved, (gid_t)-1, error));
	assert_int_equal(rte_errno, EEXIST);
	assert_non_null(strstr(error, "is not a socket"));
	unlink(saved);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_null(create(longer, (gid_t)-1, error));
	assert_int_equal(rte_errno, ENAMETOOLONG);
	assert_null(create("/proc/no/such/dir/sock", (gid_t)-1, error));
	assert_int_equal(rte_errno, ENOENT);
	assert_non_null(strstr(error, "/proc/no/such/dir/sock: "));
	netlink_server_destroy(NULL);
}

static void
no_permission_is_said(void **state)
{
	char dir[] = "/tmp/millrace-ctl-XXXXXX", where[64], error[256];

	(void)state;
	if (getuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(where, sizeof(where), "%s/sock", dir);
	assert_int_equal(seteuid(65534), 0);
	assert_null(create(where, (gid_t)-1, error));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rte_errno, EACCES);
	assert_non_null(strstr(error, "Permission denied"));
	/* The live socket of another user is not taken for a stale one. */
	assert_int_equal(seteuid(65534), 0);
	assert_null(create(path, (gid_t)-1, error));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rte_errno, EACCES);
	assert_non_null(strstr(error, "belongs to another user"));
	rmdir(dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hello_comes_first),
		TEST(port_ids_are_the_pid_then_unique),
		TEST(acks_carry_what_the_kernel_does),
		TEST(unknown_messages_are_refused_by_name),
		TEST(message_lengths_are_checked),
		TEST(a_datagram_beyond_the_limit_is_refused),
		TEST(several_messages_a_datagram),
		TEST(acks_keep_their_place),
		TEST(acks_wait_for_room),
		TEST(attributes_are_what_the_policy_says),
		TEST(an_attribute_is_given_once),
		TEST(attribute_lengths_are_checked),
		TEST(dumps_come_whole_and_in_order),
		TEST(dumps_end_with_their_error),
		TEST(one_dump_at_a_time_and_requests_beside_it),
		TEST(a_client_may_die_in_the_middle_of_a_dump),
		TEST(requests_of_a_client_that_left_are_served),
		TEST(a_client_that_never_reads_costs_little),
		TEST(notifications_go_to_their_group),
		TEST(a_slow_subscriber_is_told_of_the_overrun),
		TEST(sync_is_answered_after_what_was_sent),
		TEST(private_messages_are_checked_too),
		TEST(sixty_four_clients_and_no_more_than_the_limit),
		TEST(a_newcomer_gets_in_beside_a_busy_client),
		TEST(out_of_descriptors_is_said_not_hung),
		TEST(the_socket_file),
		TEST(no_permission_is_said),
	};

	snprintf(path, sizeof(path), "/tmp/millrace-ctl-%d.sock", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
