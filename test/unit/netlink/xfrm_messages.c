/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Messages of NETLINK_XFRM that `ip xfrm` of iproute2 6.1 does not send: an IKE daemon's, newer
 * attributes, damaged ones.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <bsd/string.h>
#include <errno.h>
#include <linux/ipsec.h>
#include <linux/xfrm.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "families.h"
#include "ipsec_cache/rt.h"
#include "netlink/server.h"
#include "netlink/xfrm.h"
#include "support.h"

#define BUF 8192
#define LOCAL "192.0.2.1"
#define PEER "198.51.100.2"
#define KEY "Xq7!secret key+salt4" /* 20 bytes */

struct message {
	_Alignas(8) char buf[BUF];
	struct nlmsghdr *nlh;
	void *header;
};

static struct families *
begin(void)
{
	struct families *f = families_create("xfrm");

	close(f->fd);
	f->fd = families_connect_to(f, NETLINK_XFRM, 0);
	return f;
}

static void
message(struct families *f, struct message *m, uint16_t type, uint16_t flags, size_t header)
{
	memset(m->buf, 0, sizeof(m->buf));
	m->nlh = families_message(f, m->buf, type, NLM_F_ACK | flags, header);
	m->header = mnl_nlmsg_get_payload(m->nlh);
}

static void
address(xfrm_address_t *to, const char *text)
{
	assert_int_equal(inet_pton(AF_INET, text, to), 1);
}

static void
fill_sa(struct xfrm_usersa_info *info, const char *saddr, const char *daddr, uint32_t spi)
{
	address(&info->saddr, saddr);
	address(&info->id.daddr, daddr);
	info->id.spi = htonl(spi);
	info->id.proto = IPPROTO_ESP;
	info->family = AF_INET;
	info->mode = XFRM_MODE_TUNNEL;
	info->reqid = 1;
	info->lft.soft_byte_limit = info->lft.hard_byte_limit = XFRM_INF;
	info->lft.soft_packet_limit = info->lft.hard_packet_limit = XFRM_INF;
}

static void
put_aead(struct message *m)
{
	uint8_t buf[sizeof(struct xfrm_algo_aead) + 20] = { 0 };
	struct xfrm_algo_aead *alg = (void *)buf;

	snprintf(alg->alg_name, sizeof(alg->alg_name), "rfc4106(gcm(aes))");
	alg->alg_key_len = 160;
	alg->alg_icv_len = 128;
	memcpy(alg->alg_key, KEY, sizeof(KEY) - 1);
	mnl_attr_put(m->nlh, XFRMA_ALG_AEAD, sizeof(buf), buf);
}

static void
message_sa(struct families *f, struct message *m, uint16_t type, const char *saddr,
	const char *daddr, uint32_t spi)
{
	message(f, m, type, 0, sizeof(struct xfrm_usersa_info));
	fill_sa(m->header, saddr, daddr, spi);
	put_aead(m);
}

/* About the SA with that SPI. */
static struct xfrm_usersa_id *
message_sa_id(struct families *f, struct message *m, uint16_t type, const char *daddr, uint32_t spi)
{
	struct xfrm_usersa_id *id;

	message(f, m, type, 0, sizeof(*id));
	id = m->header;
	address(&id->daddr, daddr);
	id->spi = htonl(spi);
	id->family = AF_INET;
	id->proto = IPPROTO_ESP;
	return id;
}

/* The same for replay numbers. */
static struct xfrm_aevent_id *
message_ae(struct families *f, struct message *m, uint16_t type, const char *daddr, uint32_t spi)
{
	struct xfrm_aevent_id *ae;

	message(f, m, type, 0, sizeof(*ae));
	ae = m->header;
	address(&ae->sa_id.daddr, daddr);
	ae->sa_id.spi = htonl(spi);
	ae->sa_id.family = AF_INET;
	ae->sa_id.proto = IPPROTO_ESP;
	return ae;
}

static void
message_policy(struct families *f, struct message *m, uint16_t type, uint8_t dir, const char *saddr,
	const char *daddr)
{
	struct xfrm_userpolicy_info *info;
	struct xfrm_user_tmpl tmpl = { .family = AF_INET,
		.mode = XFRM_MODE_TUNNEL,
		.reqid = 1,
		.aalgos = UINT32_MAX,
		.ealgos = UINT32_MAX,
		.calgos = UINT32_MAX };

	message(f, m, type, 0, sizeof(*info));
	info = m->header;
	info->sel.family = AF_INET;
	address(&info->sel.saddr, dir == XFRM_POLICY_OUT ? "10.1.0.0" : "10.2.0.0");
	address(&info->sel.daddr, dir == XFRM_POLICY_OUT ? "10.2.0.0" : "10.1.0.0");
	info->sel.prefixlen_s = info->sel.prefixlen_d = 16;
	info->dir = dir;
	info->priority = 370000;
	address(&tmpl.saddr, saddr);
	address(&tmpl.id.daddr, daddr);
	tmpl.id.proto = IPPROTO_ESP;
	mnl_attr_put(m->nlh, XFRMA_TMPL, sizeof(tmpl), &tmpl);
}

/* The next notification of a type on that socket. */
static const struct nlmsghdr *
heard(int fd, uint16_t type, void *buf, size_t size)
{
	ssize_t n = recv(fd, buf, size, MSG_DONTWAIT);
	const struct nlmsghdr *nlh = buf;

	if (n <= 0)
		fail_msg("nothing of type %u came", type);
	assert_int_equal(nlh->nlmsg_len, n);
	assert_int_equal(nlh->nlmsg_type, type);
	return nlh;
}

static void
heard_nothing(int fd)
{
	char buf[BUF];

	assert_true(recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0);
}

static const void *
attribute(const struct nlmsghdr *nlh, size_t header, uint16_t type, size_t len)
{
	const char *end = mnl_nlmsg_get_payload_tail(nlh);
	const struct nlattr *attr = mnl_nlmsg_get_payload_offset(nlh, header);

	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) == type) {
			assert_true(mnl_attr_get_payload_len(attr) >= len);
			return mnl_attr_get_payload(attr);
		}
	fail_msg("no attribute %u", type);
	return NULL;
}

static uint32_t
allocate_spi(struct families *f)
{
	_Alignas(8) char answer[BUF];
	struct xfrm_userspi_info *info;
	struct xfrm_usersa_info sa;
	struct message m;
	size_t len;

	message(f, &m, XFRM_MSG_ALLOCSPI, 0, sizeof(*info));
	info = m.header;
	fill_sa(&info->info, PEER, LOCAL, 0);
	info->min = 0xc0000000;
	info->max = 0xcfffffff;
	assert_int_equal(families_talk(f, m.nlh, answer, sizeof(answer), &len), 0);
	assert_int_equal(((struct nlmsghdr *)(void *)answer)->nlmsg_type, XFRM_MSG_NEWSA);
	memcpy(&sa, answer + NLMSG_HDRLEN, sizeof(sa));
	assert_in_range(ntohl(sa.id.spi), info->min, info->max);
	return ntohl(sa.id.spi);
}

/* What charon does: start, initiate, rekey, status, shut down. */
static void
charon(void **state)
{
	static const uint8_t dirs[] = { XFRM_POLICY_OUT, XFRM_POLICY_IN, XFRM_POLICY_FWD };
	struct families *f = begin();
	_Alignas(8) char answer[BUF];
	struct xfrm_userpolicy_id *pid;
	struct xfrm_usersa_id *id;
	struct message m;
	uint32_t spi, spi2;
	size_t len;

	(void)state;
	message(f, &m, XFRM_MSG_GETSPDINFO, 0, sizeof(uint32_t));
	assert_int_equal(families_talk(f, m.nlh, answer, sizeof(answer), &len), 0);
	assert_true(len > 0);
	spi = allocate_spi(f);
	message_sa(f, &m, XFRM_MSG_UPDSA, PEER, LOCAL, spi);
	assert_int_equal(families_request(f, m.nlh), 0);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0xc1234567);
	assert_int_equal(families_request(f, m.nlh), 0);
	for (unsigned int i = 0; i < RTE_DIM(dirs); i++) {
		bool out = dirs[i] == XFRM_POLICY_OUT;

		message_policy(
			f, &m, XFRM_MSG_NEWPOLICY, dirs[i], out ? LOCAL : PEER, out ? PEER : LOCAL);
		assert_int_equal(families_request(f, m.nlh), 0);
		assert_int_equal(ipsec_cache_policy_count(f->ipsec, dirs[i]), 1);
	}
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 2);
	/* rekey */
	spi2 = allocate_spi(f);
	assert_int_not_equal(spi, spi2);
	message_sa(f, &m, XFRM_MSG_UPDSA, PEER, LOCAL, spi2);
	assert_int_equal(families_request(f, m.nlh), 0);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0xc7654321);
	assert_int_equal(families_request(f, m.nlh), 0);
	message_policy(f, &m, XFRM_MSG_UPDPOLICY, XFRM_POLICY_OUT, LOCAL, PEER);
	assert_int_equal(families_request(f, m.nlh), 0);
	id = message_sa_id(f, &m, XFRM_MSG_DELSA, LOCAL, spi);
	assert_int_equal(families_request(f, m.nlh), 0);
	/* status */
	m.nlh->nlmsg_type = XFRM_MSG_GETSA;
	id->spi = htonl(spi2);
	assert_int_equal(families_talk(f, m.nlh, answer, sizeof(answer), &len), 0);
	assert_true(len > 0);
	/* shut down */
	message(f, &m, XFRM_MSG_DELPOLICY, 0, sizeof(*pid));
	pid = m.header;
	pid->sel.family = AF_INET;
	address(&pid->sel.saddr, "10.1.0.0");
	address(&pid->sel.daddr, "10.2.0.0");
	pid->sel.prefixlen_s = pid->sel.prefixlen_d = 16;
	pid->dir = XFRM_POLICY_OUT;
	assert_int_equal(families_request(f, m.nlh), 0);
	assert_int_equal(ipsec_cache_policy_count(f->ipsec, XFRM_POLICY_OUT), 0);
	families_destroy(f);
}

/* RFC 9611: an SA of one CPU, outbound; by attributes that are newer than the tool. */
static void
sa_of_one_cpu(void **state)
{
	struct families *f = begin();
	_Alignas(8) char answer[BUF];
	const struct nlmsghdr *nlh = (void *)answer;
	struct message m;
	size_t len;

	(void)state;
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	mnl_attr_put_u32(m.nlh, XFRM_ATTR_SA_PCPU, 1);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "An SA of one CPU (XFRMA_SA_PCPU) says its direction");
	mnl_attr_put_u8(m.nlh, XFRM_ATTR_SA_DIR, 2);
	assert_int_equal(families_request(f, m.nlh), 0);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1001);
	mnl_attr_put_u32(m.nlh, XFRM_ATTR_SA_PCPU, FAMILIES_WORKERS);
	mnl_attr_put_u8(m.nlh, XFRM_ATTR_SA_DIR, 2);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "There is no worker with that number for the SA");
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1001);
	((struct xfrm_usersa_info *)m.header)->replay_window = 32;
	mnl_attr_put_u8(m.nlh, XFRM_ATTR_SA_DIR, 2);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "An outbound SA has no replay window");
	(void)message_sa_id(f, &m, XFRM_MSG_GETSA, PEER, 0x1000);
	assert_int_equal(families_talk(f, m.nlh, answer, sizeof(answer), &len), 0);
	assert_int_equal(*(const uint32_t *)attribute(
				 nlh, sizeof(struct xfrm_usersa_info), XFRM_ATTR_SA_PCPU, 4),
		1);
	assert_int_equal(*(const uint8_t *)attribute(
				 nlh, sizeof(struct xfrm_usersa_info), XFRM_ATTR_SA_DIR, 1),
		2);
	families_destroy(f);
}

static void
lifetimes(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, XFRMGRP_EXPIRE | XFRMGRP_SA);
	const struct xfrm_user_expire *expire;
	struct xfrm_usersa_info *info;
	_Alignas(8) char buf[BUF];
	struct message m;

	(void)state;
	ipsec_cache_tick(f->ipsec, 5000);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	info = m.header;
	info->lft.soft_add_expires_seconds = 3;
	info->lft.hard_add_expires_seconds = 5;
	assert_int_equal(families_request(f, m.nlh), 0);
	(void)heard(fd, XFRM_MSG_NEWSA, buf, sizeof(buf));
	for (uint64_t now = 5000; now <= 7900; now += 100)
		ipsec_cache_tick(f->ipsec, now);
	heard_nothing(fd);
	for (uint64_t now = 8000; now <= 9900; now += 100)
		ipsec_cache_tick(f->ipsec, now);
	expire = mnl_nlmsg_get_payload(heard(fd, XFRM_MSG_EXPIRE, buf, sizeof(buf)));
	assert_int_equal(expire->hard, 0);
	assert_int_equal(expire->state.id.spi, htonl(0x1000));
	heard_nothing(fd);
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 1);
	for (uint64_t now = 10000; now <= 11000; now += 100)
		ipsec_cache_tick(f->ipsec, now);
	expire = mnl_nlmsg_get_payload(heard(fd, XFRM_MSG_EXPIRE, buf, sizeof(buf)));
	assert_int_equal(expire->hard, 1);
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 0);
	heard_nothing(fd);
	close(fd);
	families_destroy(f);
}

/* An update gives it a new life. */
static void
lifetime_update(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, XFRMGRP_EXPIRE);
	struct xfrm_usersa_info *info;
	_Alignas(8) char buf[BUF];
	struct message m;

	(void)state;
	ipsec_cache_tick(f->ipsec, 1);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	info = m.header;
	info->lft.soft_add_expires_seconds = 3;
	assert_int_equal(families_request(f, m.nlh), 0);
	ipsec_cache_tick(f->ipsec, 4001);
	(void)heard(fd, XFRM_MSG_EXPIRE, buf, sizeof(buf));
	ipsec_cache_tick(f->ipsec, 9001);
	heard_nothing(fd);
	m.nlh->nlmsg_type = XFRM_MSG_UPDSA;
	info->lft.soft_add_expires_seconds = 10;
	assert_int_equal(families_request(f, m.nlh), 0);
	ipsec_cache_tick(f->ipsec, 9901);
	heard_nothing(fd);
	ipsec_cache_tick(f->ipsec, 11001);
	(void)heard(fd, XFRM_MSG_EXPIRE, buf, sizeof(buf));
	close(fd);
	families_destroy(f);
}

static void
policy_lifetime(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, XFRMGRP_EXPIRE);
	struct xfrm_userpolicy_info *info;
	_Alignas(8) char buf[BUF];
	struct message m;

	(void)state;
	ipsec_cache_tick(f->ipsec, 1);
	message_policy(f, &m, XFRM_MSG_NEWPOLICY, XFRM_POLICY_OUT, LOCAL, PEER);
	info = m.header;
	info->lft.soft_add_expires_seconds = 2;
	info->lft.hard_add_expires_seconds = 4;
	assert_int_equal(families_request(f, m.nlh), 0);
	ipsec_cache_tick(f->ipsec, 1901);
	heard_nothing(fd);
	ipsec_cache_tick(f->ipsec, 3001);
	assert_int_equal(((const struct xfrm_user_polexpire *)mnl_nlmsg_get_payload(
				  heard(fd, XFRM_MSG_POLEXPIRE, buf, sizeof(buf))))
				 ->hard,
		0);
	ipsec_cache_tick(f->ipsec, 4002);
	assert_int_equal(((const struct xfrm_user_polexpire *)mnl_nlmsg_get_payload(
				  heard(fd, XFRM_MSG_POLEXPIRE, buf, sizeof(buf))))
				 ->hard,
		1);
	assert_int_equal(ipsec_cache_policy_count(f->ipsec, XFRM_POLICY_OUT), 0);
	close(fd);
	families_destroy(f);
}

/* An IKE daemon says that a lifetime is over. */
static void
expire_by_message(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, XFRMGRP_EXPIRE);
	struct xfrm_user_polexpire *polexpire;
	struct xfrm_user_expire *expire;
	_Alignas(8) char buf[BUF];
	struct message m;

	(void)state;
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	assert_int_equal(families_request(f, m.nlh), 0);
	message(f, &m, XFRM_MSG_EXPIRE, 0, sizeof(*expire));
	expire = m.header;
	fill_sa(&expire->state, LOCAL, PEER, 0x1000);
	assert_int_equal(families_request(f, m.nlh), 0);
	(void)heard(fd, XFRM_MSG_EXPIRE, buf, sizeof(buf));
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 1);
	expire->hard = 1;
	assert_int_equal(families_request(f, m.nlh), 0);
	(void)heard(fd, XFRM_MSG_EXPIRE, buf, sizeof(buf));
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 0);
	assert_int_equal(families_request(f, m.nlh), -ESRCH);
	message_policy(f, &m, XFRM_MSG_NEWPOLICY, XFRM_POLICY_IN, PEER, LOCAL);
	assert_int_equal(families_request(f, m.nlh), 0);
	memcpy(buf, m.header, sizeof(struct xfrm_userpolicy_info));
	message(f, &m, XFRM_MSG_POLEXPIRE, 0, sizeof(*polexpire));
	polexpire = m.header;
	memcpy(&polexpire->pol, buf, sizeof(polexpire->pol));
	polexpire->hard = 1;
	assert_int_equal(families_request(f, m.nlh), 0);
	(void)heard(fd, XFRM_MSG_POLEXPIRE, buf, sizeof(buf));
	assert_int_equal(families_request(f, m.nlh), -ENOENT);
	close(fd);
	families_destroy(f);
}

static void
aevents(void **state)
{
	struct families *f = begin();
	struct xfrm_aevent_id *ae, *got;
	_Alignas(8) char answer[BUF];
	const struct nlmsghdr *nlh = (void *)answer;
	struct xfrm_replay_state state_val = { 0 };
	struct message m;
	size_t len;

	(void)state;
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	state_val.oseq = 5;
	mnl_attr_put(m.nlh, XFRMA_REPLAY_VAL, sizeof(state_val), &state_val);
	assert_int_equal(families_request(f, m.nlh), 0);
	ae = message_ae(f, &m, XFRM_MSG_NEWAE, PEER, 0x1000);
	mnl_attr_put_u32(m.nlh, XFRMA_REPLAY_THRESH, 1000);
	assert_int_equal(families_request(f, m.nlh), -EINVAL); /* without NLM_F_REPLACE */
	m.nlh->nlmsg_flags |= NLM_F_REPLACE;
	assert_int_equal(families_request(f, m.nlh), 0);
	mnl_attr_put(m.nlh, XFRMA_REPLAY_VAL, sizeof(state_val), &state_val);
	assert_int_equal(families_request(f, m.nlh), -EOPNOTSUPP);
	ae = message_ae(f, &m, XFRM_MSG_GETAE, PEER, 0x1000);
	ae->flags = XFRM_AE_RTHR | XFRM_AE_ETHR;
	assert_int_equal(families_talk(f, m.nlh, answer, sizeof(answer), &len), 0);
	assert_int_equal(nlh->nlmsg_type, XFRM_MSG_NEWAE);
	got = mnl_nlmsg_get_payload(nlh);
	assert_int_equal(got->reqid, 1);
	assert_int_equal(
		*(const uint32_t *)attribute(nlh, sizeof(*ae), XFRMA_REPLAY_THRESH, 4), 1000);
	assert_int_equal(
		*(const uint32_t *)attribute(nlh, sizeof(*ae), XFRMA_ETIMER_THRESH, 4), 10);
	assert_int_equal(((const struct xfrm_replay_state *)attribute(
				  nlh, sizeof(*ae), XFRMA_REPLAY_VAL, sizeof(state_val)))
				 ->oseq,
		5);
	ae->sa_id.spi = htonl(0x1001);
	assert_int_equal(families_request(f, m.nlh), -ESRCH);
	families_destroy(f);
}

/* What an SA brings along counts, and is shown. */
static void
numbers_brought_along(void **state)
{
	struct families *f = begin();
	struct xfrm_lifetime_cur cur = { .bytes = 1000, .packets = 10 };
	struct xfrm_replay_state_esn esn = {
		.bmp_len = 2, .oseq = 7, .oseq_hi = 1, .seq = 9, .seq_hi = 2, .replay_window = 64
	};
	uint8_t replay[sizeof(esn) + 2 * sizeof(uint32_t)] = { 0 };
	struct ipsec_cache_sa_id id = {
		.spi = htonl(0x1000), .family = AF_INET, .proto = IPPROTO_ESP
	};
	struct ipsec_cache_sa_spec spec;
	struct xfrm_usersa_info *info;
	struct message m;

	(void)state;
	address(&id.daddr, PEER);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	info = m.header;
	info->flags = XFRM_STATE_ESN;
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "Flag esn needs its replay window (XFRMA_REPLAY_ESN_VAL)");
	memcpy(replay, &esn, sizeof(esn));
	mnl_attr_put(m.nlh, XFRMA_REPLAY_ESN_VAL, sizeof(replay), replay);
	mnl_attr_put(m.nlh, XFRMA_LTIME_VAL, sizeof(cur), &cur);
	assert_int_equal(families_request(f, m.nlh), 0);
	ipsec_cache_sa_describe(ipsec_cache_sa_find(f->ipsec, &id), &spec);
	assert_int_equal(spec.oseq, UINT64_C(1) << 32 | 7);
	assert_int_equal(spec.seq, UINT64_C(2) << 32 | 9);
	assert_int_equal(spec.info.curlft.bytes, 1000);
	assert_int_equal(spec.info.curlft.packets, 10);
	families_destroy(f);
}

static void
bad_attributes(void **state)
{
	struct families *f = begin();
	struct xfrm_replay_state_esn esn = { .bmp_len = 129, .replay_window = 32 };
	struct xfrm_algo_aead alg = { .alg_key_len = 160, .alg_icv_len = 128 };
	struct message m;

	(void)state;
	/* a key that is not there, a name without an end */
	message(f, &m, XFRM_MSG_NEWSA, 0, sizeof(struct xfrm_usersa_info));
	fill_sa(m.header, LOCAL, PEER, 0x1000);
	mnl_attr_put(m.nlh, XFRMA_ALG_AEAD, sizeof(alg), &alg);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "The key of  has 160 bits, but 0 bytes are there");
	message(f, &m, XFRM_MSG_NEWSA, 0, sizeof(struct xfrm_usersa_info));
	fill_sa(m.header, LOCAL, PEER, 0x1000);
	memset(alg.alg_name, 'x', sizeof(alg.alg_name));
	mnl_attr_put(m.nlh, XFRMA_ALG_AEAD, sizeof(alg), &alg);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "The name of an algorithm is not terminated");
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	mnl_attr_put(m.nlh, XFRMA_REPLAY_ESN_VAL, sizeof(esn), &esn);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	assert_string_equal(f->error, "A replay window has at most 4096 packets");
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	esn.bmp_len = 1;
	esn.replay_window = 33;
	mnl_attr_put(m.nlh, XFRMA_REPLAY_ESN_VAL, sizeof(esn), &esn);
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	/* what a message has no use for */
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	mnl_attr_put_u8(m.nlh, XFRMA_PROTO, 50);
	assert_int_equal(families_request(f, m.nlh), -EOPNOTSUPP);
	assert_string_equal(f->error, "XFRMA_PROTO is not supported in this message");
	message(f, &m, XFRM_MSG_MIGRATE, 0, sizeof(struct xfrm_userpolicy_id));
	assert_int_equal(families_request(f, m.nlh), -EOPNOTSUPP);
	assert_string_equal(f->error, "XFRM_MSG_MIGRATE is not supported");
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 0);
	families_destroy(f);
}

static void
offload_refused(void **state)
{
	static const struct {
		struct xfrm_user_offload offload;
		int err;
		const char *why;
	} bad[] = {
		{ { .ifindex = 99 }, -ENODEV, "Cannot find device with index 99" },
		{ { .ifindex = -1 }, -ENODEV, "Cannot find device with index 4294967295" },
		{ { .ifindex = 0 }, -ENODEV, "Cannot find device with index 0" },
		{ { .ifindex = 1, .flags = 8 }, -EINVAL, "There is no such offload flag" },
		{ { .ifindex = 1, .flags = XFRM_OFFLOAD_IPV6 | XFRM_OFFLOAD_INBOUND | 4 },
			-EOPNOTSUPP,
			"Port p0 cannot do the SA with SPI 0x00001000: it has no rte_security, or "
			"is down" },
	};
	struct families *f = begin();
	struct message m;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
		mnl_attr_put(m.nlh, XFRMA_OFFLOAD_DEV, sizeof(bad[i].offload), &bad[i].offload);
		assert_int_equal(families_request(f, m.nlh), bad[i].err);
		assert_string_equal(f->error, bad[i].why);
	}
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	mnl_attr_put_u32(m.nlh, XFRMA_OFFLOAD_DEV, 1); /* half of it */
	assert_int_equal(families_request(f, m.nlh), -EINVAL);
	message_policy(f, &m, XFRM_MSG_NEWPOLICY, XFRM_POLICY_OUT, LOCAL, PEER);
	mnl_attr_put(m.nlh, XFRMA_OFFLOAD_DEV, sizeof(bad[0].offload), &bad[4].offload);
	assert_int_equal(families_request(f, m.nlh), -EOPNOTSUPP);
	assert_string_equal(f->error, "XFRMA_OFFLOAD_DEV is not supported in this message");
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 0);
	families_destroy(f);
}

/* C5: a dump of many SAs, one of which goes meanwhile, says that it was interrupted. */
static void
dump_interrupted(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, 0);
	struct ipsec_cache_sa_id id = {
		.spi = htonl(0x1000), .family = AF_INET, .proto = IPPROTO_ESP
	};
	static char buf[65536];
	struct message m;
	unsigned int n = 0, intr = 0, rounds = 0;
	bool done = false;
	ssize_t got;

	(void)state;
	address(&id.daddr, PEER);
	for (uint32_t i = 0; i < 5000; i++) {
		message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000 + i);
		assert_int_equal(families_request(f, m.nlh), 0);
	}
	message(f, &m, XFRM_MSG_GETSA, NLM_F_DUMP, 0);
	m.nlh->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
	assert_int_equal(send(fd, m.nlh, m.nlh->nlmsg_len, 0), m.nlh->nlmsg_len);
	while (!done) {
		assert_true(rounds++ < 100000);
		netlink_server_dispatch(f->server);
		if ((got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) <= 0)
			continue;
		if (n == 0)
			assert_int_equal(ipsec_cache_sa_del(f->ipsec, &id), 0);
		int left = (int)got;

		for (const struct nlmsghdr *nlh = (void *)buf; mnl_nlmsg_ok(nlh, left);
			nlh = mnl_nlmsg_next(nlh, &left)) {
			intr += (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			done |= nlh->nlmsg_type == NLMSG_DONE;
			n += nlh->nlmsg_type == XFRM_MSG_NEWSA;
		}
	}
	assert_in_range(n, 4999, 5000);
	assert_true(intr > 0);
	close(fd);
	families_destroy(f);
}

/* Traffic meets a policy whose SA is not there: daemons hear of it, once. */
static void
acquire(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, XFRMGRP_ACQUIRE);
	struct ipsec_flow flow = { .family = AF_INET, .proto = IPPROTO_UDP, .in_ifindex = 1 };
	const struct xfrm_user_acquire *got;
	const struct xfrm_user_tmpl *tmpl;
	struct ipsec_cache_decision d;
	_Alignas(8) char buf[BUF];
	const struct nlmsghdr *nlh;
	struct message m;

	(void)state;
	message_policy(f, &m, XFRM_MSG_NEWPOLICY, XFRM_POLICY_OUT, LOCAL, PEER);
	assert_int_equal(families_request(f, m.nlh), 0);
	inet_pton(AF_INET, "10.1.0.7", flow.saddr);
	inet_pton(AF_INET, "10.2.0.8", flow.daddr);
	ipsec_cache_tick(f->ipsec, 1);
	for (uint64_t now = 2; now < 5; now++) {
		ipsec_decide(f->ipsec, 0, &flow, NULL, &d);
		assert_int_equal(d.error, IPSEC_CACHE_POLICY_NO_SA);
		ipsec_cache_tick(f->ipsec, now);
	}
	nlh = heard(fd, XFRM_MSG_ACQUIRE, buf, sizeof(buf));
	heard_nothing(fd);
	got = mnl_nlmsg_get_payload(nlh);
	assert_memory_equal(&got->sel.daddr, flow.daddr, 4);
	assert_int_equal(got->sel.prefixlen_d, 32);
	assert_int_equal(got->id.proto, IPPROTO_ESP);
	assert_int_equal(got->policy.priority, 370000);
	assert_int_not_equal(got->seq, 0);
	tmpl = attribute(nlh, sizeof(*got), XFRMA_TMPL, sizeof(*tmpl));
	assert_int_equal(tmpl->reqid, 1);
	/* the daemon's SA takes the larval one's place */
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 1);
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	assert_int_equal(families_request(f, m.nlh), 0);
	assert_int_equal(ipsec_cache_sa_count(f->ipsec), 1);
	ipsec_decide(f->ipsec, 0, &flow, NULL, &d);
	assert_int_equal(d.action, IPSEC_CACHE_PROTECT);
	close(fd);
	families_destroy(f);
}

/* A NAT moved the peer: daemons hear from where its packets come now, once. */
static void
mapping(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, 1u << (XFRMNLGRP_MAPPING - 1));
	struct xfrm_encap_tmpl encap = {
		.encap_type = 2, .encap_sport = htons(4500), .encap_dport = htons(4500)
	};
	uint8_t local[16] = { 192, 0, 2, 1 };
	const struct xfrm_user_mapping *got;
	struct ipsec_cache_rt *rt;
	_Alignas(8) char buf[BUF];
	struct message m;

	(void)state;
	message_sa(f, &m, XFRM_MSG_NEWSA, PEER, LOCAL, 0x1000);
	mnl_attr_put(m.nlh, XFRMA_ENCAP, sizeof(encap), &encap);
	assert_int_equal(families_request(f, m.nlh), 0);
	rt = ipsec_sad_lookup(f->ipsec, htonl(0x1000), AF_INET, local, 0);
	assert_non_null(rt);
	ipsec_cache_tick(f->ipsec, 1);
	/* as a worker notes it */
	atomic_store(&rt->moved_saddr[0], htonl(0xcb007109));
	atomic_store(&rt->moved_sport, htons(60001));
	atomic_store(&rt->moved, 2);
	ipsec_cache_tick(f->ipsec, 1001);
	ipsec_cache_tick(f->ipsec, 2001);
	got = mnl_nlmsg_get_payload(heard(fd, XFRM_MSG_MAPPING, buf, sizeof(buf)));
	heard_nothing(fd);
	assert_int_equal(got->id.spi, htonl(0x1000));
	assert_int_equal(got->old_sport, htons(4500));
	assert_int_equal(got->new_sport, htons(60001));
	assert_int_equal(got->new_saddr.a4, htonl(0xcb007109));
	close(fd);
	families_destroy(f);
}

/* D26: keys do not stay behind in the server's buffers. */
static void
esp_D26_buffers_are_wiped(void **state)
{
	struct families *f = begin();
	int fd = families_connect_to(f, NETLINK_XFRM, XFRMGRP_SA);
	struct netlink_server *server = f->server;
	_Alignas(8) char answer[BUF];
	struct message m;
	size_t len;

	(void)state;
	message_sa(f, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	assert_int_equal(families_request(f, m.nlh), 0);
	assert_int_equal(families_request(f, m.nlh), -EEXIST); /* which echoes the request */
	(void)heard(fd, XFRM_MSG_NEWSA, answer, sizeof(answer));
	assert_non_null(memmem(answer, sizeof(answer), KEY, sizeof(KEY) - 1));
	(void)message_sa_id(f, &m, XFRM_MSG_GETSA, PEER, 0x1000);
	assert_int_equal(families_talk(f, m.nlh, answer, sizeof(answer), &len), 0);
	assert_non_null(memmem(answer, len, KEY, sizeof(KEY) - 1));
	assert_null(memmem(server->rx, sizeof(server->rx), KEY, sizeof(KEY) - 1));
	assert_null(memmem(server->tx, sizeof(server->tx), KEY, sizeof(KEY) - 1));
	assert_null(memmem(server->note, sizeof(server->note), KEY, sizeof(KEY) - 1));
	close(fd);
	families_destroy(f);
}

/* A server without IPsec says so. */
static void
no_ipsec(void **state)
{
	struct netlink_conf conf = { .group = (gid_t)-1 };
	struct families *f = begin(), without = *f;
	char path[80];
	struct message m;

	(void)state;
	snprintf(path, sizeof(path), "%s-2", f->path);
	conf.path = path;
	conf.rcu = f->rcu;
	conf.actions = f->actions;
	conf.classifier = f->classifier;
	without.server = netlink_server_create(&conf, without.error, sizeof(without.error));
	assert_non_null(without.server);
	assert_true(strlcpy(without.path, path, sizeof(without.path)) < sizeof(without.path));
	without.fd = families_connect_to(&without, NETLINK_XFRM, 0);
	message_sa(&without, &m, XFRM_MSG_NEWSA, LOCAL, PEER, 0x1000);
	assert_int_equal(families_request(&without, m.nlh), -EOPNOTSUPP);
	assert_string_equal(without.error, "This program has no IPsec");
	message(&without, &m, XFRM_MSG_FLUSHPOLICY, 0, 0);
	assert_int_equal(families_request(&without, m.nlh), -EOPNOTSUPP);
	close(without.fd);
	netlink_server_destroy(without.server);
	families_destroy(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charon),
		cmocka_unit_test(sa_of_one_cpu),
		cmocka_unit_test(lifetimes),
		cmocka_unit_test(lifetime_update),
		cmocka_unit_test(policy_lifetime),
		cmocka_unit_test(expire_by_message),
		cmocka_unit_test(aevents),
		cmocka_unit_test(numbers_brought_along),
		cmocka_unit_test(bad_attributes),
		cmocka_unit_test(offload_refused),
		cmocka_unit_test(dump_interrupted),
		cmocka_unit_test(acquire),
		cmocka_unit_test(mapping),
		cmocka_unit_test(esp_D26_buffers_are_wiped),
		cmocka_unit_test(no_ipsec),
	};

	test_eal_init("xfrm-messages", "0");
	return cmocka_run_group_tests_name("xfrm_messages", tests, NULL, NULL);
}
