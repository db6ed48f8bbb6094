/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Messages that tc and ip would not send. Every attribute of a valid request is made too short, too
 * long, given twice, preceded by an unknown one, nested wrong and given a length that lies: each
 * time the request is refused and nothing has changed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_csum.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_mirred.h>
#include <linux/tc_act/tc_pedit.h>
#include <linux/tc_act/tc_skbedit.h>
#include <linux/tc_act/tc_vlan.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "classifier/gact.h"
#include "csum_action/csum_action.h"
#include "families.h"
#include "support.h"

#define MESSAGE 4096
#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define EGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)
#define NEW (NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)

/* Building requests. Nests carry NLA_F_NESTED, so that the mutator knows them. */

static struct nlattr *
nest(struct nlmsghdr *nlh, uint16_t type)
{
	return mnl_attr_nest_start(nlh, type);
}

static void
put_gact(struct nlmsghdr *nlh, uint16_t order, uint32_t index, int verdict)
{
	struct tc_gact parm = { .index = index, .action = verdict };
	struct nlattr *entry = nest(nlh, order), *options;

	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "gact");
	options = nest(nlh, TCA_ACT_OPTIONS);
	mnl_attr_put(nlh, TCA_GACT_PARMS, sizeof(parm), &parm);
	mnl_attr_nest_end(nlh, options);
	mnl_attr_nest_end(nlh, entry);
}

static void
put_csum(struct nlmsghdr *nlh, uint16_t order, uint32_t index, uint32_t flags)
{
	struct tc_csum parm = { .index = index, .action = TC_ACT_PIPE, .update_flags = flags };
	struct nla_bitfield32 none = { .value = 0, .selector = 3 };
	struct nlattr *entry = nest(nlh, order), *options;

	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "csum");
	mnl_attr_put(nlh, TCA_ACT_HW_STATS, sizeof(none), &none);
	mnl_attr_put(nlh, TCA_ACT_COOKIE, 16, "0123456789abcdef");
	options = nest(nlh, TCA_ACT_OPTIONS);
	mnl_attr_put(nlh, TCA_CSUM_PARMS, sizeof(parm), &parm);
	mnl_attr_nest_end(nlh, options);
	mnl_attr_nest_end(nlh, entry);
}

static struct nlmsghdr *
tc_message(struct families *f, void *buf, uint16_t type, uint16_t flags, uint32_t parent,
	uint32_t handle)
{
	struct nlmsghdr *nlh = families_message(f, buf, type, flags, sizeof(struct tcmsg));
	struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

	tcm->tcm_ifindex = 1;
	tcm->tcm_parent = parent;
	tcm->tcm_handle = handle;
	return nlh;
}

static struct nlmsghdr *
filter_message(struct families *f, void *buf, uint16_t type, uint16_t flags, uint32_t prio)
{
	struct nlmsghdr *nlh = tc_message(f, buf, type, flags, INGRESS, 0);
	struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

	tcm->tcm_info = TC_H_MAKE(prio << 16, htons(0x0800));
	return nlh;
}

static struct nlmsghdr *
new_filter(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = filter_message(f, buf, RTM_NEWTFILTER, NEW, 7);
	struct nlattr *options, *list;

	mnl_attr_put_strz(nlh, TCA_KIND, "matchall");
	mnl_attr_put_u32(nlh, TCA_CHAIN, 2);
	options = nest(nlh, TCA_OPTIONS);
	mnl_attr_put_u32(nlh, TCA_MATCHALL_CLASSID, 0x10002);
	mnl_attr_put_u32(nlh, TCA_MATCHALL_FLAGS, TCA_CLS_FLAGS_SKIP_HW);
	list = nest(nlh, TCA_MATCHALL_ACT);
	put_csum(nlh, 1, 0, TCA_CSUM_UPDATE_FLAG_UDP);
	put_gact(nlh, 2, 0, TC_ACT_SHOT);
	mnl_attr_nest_end(nlh, list);
	mnl_attr_nest_end(nlh, options);
	return nlh;
}

static struct nlmsghdr *
new_flower(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = filter_message(f, buf, RTM_NEWTFILTER, NEW, 9);
	struct nlattr *options, *list;

	mnl_attr_put_strz(nlh, TCA_KIND, "flower");
	options = nest(nlh, TCA_OPTIONS);
	mnl_attr_put_u32(nlh, TCA_FLOWER_FLAGS, TCA_CLS_FLAGS_SKIP_HW);
	mnl_attr_put_strz(nlh, TCA_FLOWER_INDEV, "p1");
	mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_ETH_TYPE, htons(0x0800));
	mnl_attr_put_u8(nlh, TCA_FLOWER_KEY_IP_PROTO, IPPROTO_TCP);
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_SRC, htonl(0xc0000200));
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_SRC_MASK, htonl(0xffffff00));
	mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_TCP_DST, htons(80));
	mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_PORT_SRC_MIN, htons(1000));
	mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_PORT_SRC_MAX, htons(2000));
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_FLAGS, 0);
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_FLAGS_MASK, htonl(1));
	list = nest(nlh, TCA_FLOWER_ACT);
	put_gact(nlh, 1, 0, TC_ACT_SHOT);
	mnl_attr_nest_end(nlh, list);
	mnl_attr_nest_end(nlh, options);
	return nlh;
}

static struct nlmsghdr *
new_template(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = filter_message(f, buf, RTM_NEWCHAIN, NEW, 0);
	struct nlattr *options;

	mnl_attr_put_strz(nlh, TCA_KIND, "flower");
	mnl_attr_put_u32(nlh, TCA_CHAIN, 6);
	options = nest(nlh, TCA_OPTIONS);
	mnl_attr_put_u32(nlh, TCA_FLOWER_FLAGS, 0);
	mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_ETH_TYPE, htons(0x0800));
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_SRC, 0);
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_SRC_MASK, htonl(0xffffff00));
	mnl_attr_nest_end(nlh, options);
	return nlh;
}

static struct nlmsghdr *
new_actions(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	struct nlattr *list = nest(nlh, TCA_ROOT_TAB);

	put_gact(nlh, 1, 100, TC_ACT_OK);
	put_csum(nlh, 2, 100, TCA_CSUM_UPDATE_FLAG_TCP);
	mnl_attr_nest_end(nlh, list);
	return nlh;
}

static struct nlattr *
start_action(struct nlmsghdr *nlh, uint16_t order, const char *kind, struct nlattr **options)
{
	struct nlattr *entry = nest(nlh, order);

	mnl_attr_put_strz(nlh, TCA_ACT_KIND, kind);
	*options = nest(nlh, TCA_ACT_OPTIONS);
	return entry;
}

static void
end_action(struct nlmsghdr *nlh, struct nlattr *entry, struct nlattr *options)
{
	mnl_attr_nest_end(nlh, options);
	mnl_attr_nest_end(nlh, entry);
}

static void
put_skbedit(struct nlmsghdr *nlh, uint16_t order)
{
	struct tc_skbedit parm = { .index = 100, .action = TC_ACT_PIPE };
	uint64_t flags = SKBEDIT_F_INHERITDSFIELD;
	struct nlattr *options, *entry = start_action(nlh, order, "skbedit", &options);

	mnl_attr_put(nlh, TCA_SKBEDIT_PARMS, sizeof(parm), &parm);
	mnl_attr_put_u32(nlh, TCA_SKBEDIT_PRIORITY, 3);
	mnl_attr_put_u16(nlh, TCA_SKBEDIT_QUEUE_MAPPING, 1);
	mnl_attr_put_u32(nlh, TCA_SKBEDIT_MARK, 3);
	mnl_attr_put_u32(nlh, TCA_SKBEDIT_MASK, 7);
	mnl_attr_put(nlh, TCA_SKBEDIT_FLAGS, sizeof(flags), &flags);
	end_action(nlh, entry, options);
}

static void
put_vlan(struct nlmsghdr *nlh, uint16_t order)
{
	struct tc_vlan parm = {
		.index = 100, .action = TC_ACT_PIPE, .v_action = TCA_VLAN_ACT_PUSH
	};
	struct nlattr *options, *entry = start_action(nlh, order, "vlan", &options);

	mnl_attr_put(nlh, TCA_VLAN_PARMS, sizeof(parm), &parm);
	mnl_attr_put_u16(nlh, TCA_VLAN_PUSH_VLAN_ID, 5);
	mnl_attr_put_u16(nlh, TCA_VLAN_PUSH_VLAN_PROTOCOL, htons(0x8100));
	mnl_attr_put_u8(nlh, TCA_VLAN_PUSH_VLAN_PRIORITY, 2);
	end_action(nlh, entry, options);
}

static void
put_police(struct nlmsghdr *nlh, uint16_t order)
{
	struct tc_police parm = { .index = 100, .action = TC_ACT_SHOT, .burst = 10000 };
	static const uint8_t table[1024];
	struct nlattr *options, *entry = start_action(nlh, order, "police", &options);

	parm.rate.rate = 1000000;
	parm.rate.cell_log = 3;
	mnl_attr_put(nlh, TCA_POLICE_TBF, sizeof(parm), &parm);
	mnl_attr_put(nlh, TCA_POLICE_RATE, sizeof(table), table);
	mnl_attr_put_u32(nlh, TCA_POLICE_RESULT, TC_ACT_PIPE);
	end_action(nlh, entry, options);
}

static void
put_pedit(struct nlmsghdr *nlh, uint16_t order)
{
	struct {
		struct tc_pedit_sel sel;
		struct tc_pedit_key keys[2];
	} parm = { .sel = { .index = 100, .action = TC_ACT_PIPE, .nkeys = 2 } };
	struct nlattr *options, *entry = start_action(nlh, order, "pedit", &options), *keys, *key;

	parm.keys[0].off = 8;
	parm.keys[1].off = 12;
	mnl_attr_put(nlh, TCA_PEDIT_PARMS_EX, sizeof(parm), &parm);
	keys = nest(nlh, TCA_PEDIT_KEYS_EX);
	for (unsigned int i = 0; i < 2; i++) {
		key = nest(nlh, TCA_PEDIT_KEY_EX);
		mnl_attr_put_u16(nlh, TCA_PEDIT_KEY_EX_HTYPE, TCA_PEDIT_KEY_EX_HDR_TYPE_IP4);
		mnl_attr_put_u16(nlh, TCA_PEDIT_KEY_EX_CMD, TCA_PEDIT_KEY_EX_CMD_ADD);
		mnl_attr_nest_end(nlh, key);
	}
	mnl_attr_nest_end(nlh, keys);
	end_action(nlh, entry, options);
}

static void
put_mirred(struct nlmsghdr *nlh, uint16_t order)
{
	struct tc_mirred parm = {
		.index = 100, .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = 2
	};
	struct nlattr *options, *entry = start_action(nlh, order, "mirred", &options);

	mnl_attr_put(nlh, TCA_MIRRED_PARMS, sizeof(parm), &parm);
	end_action(nlh, entry, options);
}

static struct nlmsghdr *
new_kinds(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	struct nlattr *list = nest(nlh, TCA_ROOT_TAB);

	put_skbedit(nlh, 1);
	put_vlan(nlh, 2);
	put_police(nlh, 3);
	put_pedit(nlh, 4);
	put_mirred(nlh, 5);
	mnl_attr_nest_end(nlh, list);
	return nlh;
}

static struct nlmsghdr *
del_action(struct families *f, void *buf)
{
	struct nlmsghdr *nlh =
		families_message(f, buf, RTM_DELACTION, NLM_F_ACK, sizeof(struct tcamsg));
	struct nlattr *list = nest(nlh, TCA_ROOT_TAB), *entry = nest(nlh, 1);

	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "gact");
	mnl_attr_put_u32(nlh, TCA_ACT_INDEX, 50);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	return nlh;
}

static struct nlmsghdr *
new_prio(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = tc_message(f, buf, RTM_NEWQDISC, NEW, TC_H_ROOT, 0x10000);
	struct tc_prio_qopt qopt = { .bands = 4, .priomap = { 3 } };

	mnl_attr_put_strz(nlh, TCA_KIND, "prio");
	mnl_attr_put(nlh, TCA_OPTIONS, sizeof(qopt), &qopt);
	return nlh;
}

static struct nlmsghdr *
new_pfifo(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = tc_message(f, buf, RTM_NEWQDISC, NEW, TC_H_ROOT, 0);
	struct tc_fifo_qopt qopt = { .limit = 4 };

	mnl_attr_put_strz(nlh, TCA_KIND, "pfifo");
	mnl_attr_put(nlh, TCA_OPTIONS, sizeof(qopt), &qopt);
	return nlh;
}

static struct nlmsghdr *
del_clsact(struct families *f, void *buf)
{
	struct nlmsghdr *nlh = tc_message(f, buf, RTM_DELQDISC, NLM_F_ACK, TC_H_CLSACT, 0xffff0000);

	mnl_attr_put_strz(nlh, TCA_KIND, "clsact");
	return nlh;
}

static struct nlmsghdr *
set_link(struct families *f, void *buf)
{
	struct nlmsghdr *nlh =
		families_message(f, buf, RTM_NEWLINK, NLM_F_ACK, sizeof(struct ifinfomsg));
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);

	ifi->ifi_index = 1;
	ifi->ifi_change = ifi->ifi_flags = IFF_PROMISC;
	mnl_attr_put(nlh, IFLA_ADDRESS, 6, "\2\1\1\1\1\1");
	mnl_attr_put_u32(nlh, IFLA_MTU, 1280);
	mnl_attr_put_u32(nlh, IFLA_TXQLEN, 12);
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "other");
	return nlh;
}

/* The mutator. */

enum mutation {
	EMPTY, /* no payload */
	SHORT, /* one byte less */
	LONG, /* four bytes more */
	TWICE, /* the same again */
	UNKNOWN, /* an attribute nobody knows before it */
	FLAGGED, /* NLA_F_NESTED on what is no nest; rubbish inside what is one */
	LENGTH_BIG, /* nla_len beyond the message */
	LENGTH_3, /* nla_len below its header */
	MUTATIONS,
};

static const char *const mutation_names[] = { "empty", "short", "long", "twice", "unknown",
	"flagged", "length big", "length 3" };

struct mutator {
	enum mutation what;
	unsigned int at; /* which attribute, in the order they stand */
	unsigned int count; /* how many were seen */
	uint16_t type; /* of the one that was changed */
	bool applied;
};

static size_t
put_raw(uint8_t *to, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (void *)to;

	memset(to, 0, NLA_ALIGN(NLA_HDRLEN + len));
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy(attr + 1, data, len);
	return NLA_ALIGN(attr->nla_len);
}

static size_t
mutate_one(const struct mutator *m, uint8_t *to, const struct nlattr *attr)
{
	static const uint8_t rubbish[] = { 9, 0, 1, 0, 0xff };
	size_t len = attr->nla_len - NLA_HDRLEN, n;
	bool nested = (attr->nla_type & NLA_F_NESTED) != 0;
	struct nlattr *put = (void *)to;
	uint8_t longer[MESSAGE];

	memset(longer, 0xff, sizeof(longer));
	memcpy(longer, attr + 1, len);
	switch (m->what) {
	case EMPTY:
		return put_raw(to, attr->nla_type, longer, 0);
	case SHORT:
		return put_raw(to, attr->nla_type, longer, len - 1);
	case LONG:
		if (longer[len - 1] == '\0') /* a string: no end any more */
			memset(longer, 'x', len);
		return put_raw(to, attr->nla_type, longer, len + 4);
	case TWICE:
		n = put_raw(to, attr->nla_type, longer, len);
		return n + put_raw(to + n, attr->nla_type, longer, len);
	case UNKNOWN:
		n = put_raw(to, 0x3ff0, "abcd", 4);
		return n + put_raw(to + n, attr->nla_type, longer, len);
	case FLAGGED:
		if (nested)
			return put_raw(to, attr->nla_type, rubbish, sizeof(rubbish));
		return put_raw(to, attr->nla_type | NLA_F_NESTED, longer, len);
	case LENGTH_BIG:
	case LENGTH_3:
		n = put_raw(to, attr->nla_type, longer, len);
		put->nla_len = m->what == LENGTH_3 ? 3 : 0xfffc;
		return n;
	default:
		return 0;
	}
}

/* An empty nest is valid, a nest one byte longer or shorter has no meaning of its own. */
static bool
applies(const struct mutator *m, const struct nlattr *attr)
{
	return (attr->nla_type & NLA_F_NESTED) == 0 ||
		(m->what != EMPTY && m->what != SHORT && m->what != LONG);
}

static size_t
mutate(struct mutator *m, uint8_t *to, const uint8_t *from, size_t len)
{
	size_t used = 0;

	for (size_t off = 0; off < len;) {
		const struct nlattr *attr = (const void *)(from + off);
		bool mine = m->count++ == m->at;

		if (mine)
			m->type = attr->nla_type & NLA_TYPE_MASK;
		if (mine && applies(m, attr)) {
			m->applied = true;
			used += mutate_one(m, to + used, attr);
		} else if ((attr->nla_type & NLA_F_NESTED) != 0) {
			struct nlattr *put = (void *)(to + used);

			*put = *attr;
			put->nla_len = (uint16_t)(NLA_HDRLEN +
				mutate(m, to + used + NLA_HDRLEN, from + off + NLA_HDRLEN,
					attr->nla_len - NLA_HDRLEN));
			used += NLA_ALIGN(put->nla_len);
		} else {
			used += put_raw(
				to + used, attr->nla_type, attr + 1, attr->nla_len - NLA_HDRLEN);
		}
		off += NLA_ALIGN(attr->nla_len);
	}
	return used;
}

static unsigned int
count_attrs(const struct nlmsghdr *nlh, size_t header)
{
	struct mutator m = { .at = UINT32_MAX };
	size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(header);
	uint8_t to[MESSAGE];

	mutate(&m, to, (const uint8_t *)nlh + start, nlh->nlmsg_len - start);
	return m.count;
}

static void
check_unchanged(struct families *f, const void *before, size_t before_len, const char *what)
{
	size_t len;
	void *after = families_snapshot(f, &len);

	if (len != before_len || memcmp(after, before, len) != 0)
		fail_msg("%s: something changed", what);
	free(after);
}

/* `lenient`: an attribute that may have fewer bytes (a cookie), 0 for none. */
static void
mutate_all(struct families *f, struct nlmsghdr *(*build)(struct families *, void *), size_t header,
	uint16_t lenient)
{
	char buf[MESSAGE], mutant[MESSAGE * 2], what[64];
	struct mutator m = { 0 };
	size_t before_len;
	void *before = families_snapshot(f, &before_len);
	unsigned int total = count_attrs(build(f, buf), header);

	assert_true(total > 0);
	for (unsigned int n = 0; n < total; n++) {
		for (unsigned int k = 0; k < MUTATIONS; k++) {
			struct nlmsghdr *nlh = build(f, buf);
			size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(header);

			m = (struct mutator){ .what = (enum mutation)k, .at = n };
			memcpy(mutant, buf, start);
			((struct nlmsghdr *)(void *)mutant)->nlmsg_len = (uint32_t)(start +
				mutate(&m, (uint8_t *)mutant + start, (uint8_t *)buf + start,
					nlh->nlmsg_len - start));
			if (!m.applied || (lenient != 0 && m.type == lenient && k == SHORT))
				continue;
			snprintf(what, sizeof(what), "attribute %u (type %u) %s", n, m.type,
				mutation_names[k]);
			if (families_request(f, (void *)mutant) == 0)
				fail_msg("%s: was not refused", what);
			if (f->error[0] == '\0')
				fail_msg("%s: refused without a word", what);
			check_unchanged(f, before, before_len, what);
		}
	}
	/* cut anywhere: refused, or a shorter request that is whole */
	for (uint32_t len = NLMSG_HDRLEN; len < build(f, buf)->nlmsg_len; len++) {
		struct nlmsghdr *nlh = build(f, buf);

		nlh->nlmsg_len = len;
		if (families_request(f, nlh) != 0) {
			snprintf(what, sizeof(what), "cut to %u bytes", len);
			check_unchanged(f, before, before_len, what);
		} else {
			free(before);
			before = families_snapshot(f, &before_len);
		}
	}
	free(before);
}

static void
mutate_then_accept(
	struct nlmsghdr *(*build)(struct families *, void *), size_t header, uint16_t lenient)
{
	struct families *f = families_create("messages");
	char buf[MESSAGE];
	struct nlmsghdr *nlh;
	struct nlattr *list;

	/* what the requests need: clsact, and an action to delete */
	nlh = tc_message(f, buf, RTM_NEWQDISC, NEW, TC_H_CLSACT, 0xffff0000);
	mnl_attr_put_strz(nlh, TCA_KIND, "clsact");
	assert_int_equal(families_request(f, nlh), 0);
	nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	put_gact(nlh, 1, 50, TC_ACT_OK);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), 0);

	assert_int_equal(families_request(f, build(f, buf)), 0);
	families_destroy(f);

	f = families_create("messages");
	nlh = tc_message(f, buf, RTM_NEWQDISC, NEW, TC_H_CLSACT, 0xffff0000);
	mnl_attr_put_strz(nlh, TCA_KIND, "clsact");
	assert_int_equal(families_request(f, nlh), 0);
	nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	put_gact(nlh, 1, 50, TC_ACT_OK);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), 0);
	mutate_all(f, build, header, lenient);
	families_destroy(f);
}

static void
mutants_filter(void **state)
{
	(void)state;
	mutate_then_accept(new_filter, sizeof(struct tcmsg), TCA_ACT_COOKIE);
}

static void
mutants_flower(void **state)
{
	(void)state;
	mutate_then_accept(new_flower, sizeof(struct tcmsg), 0);
}

static void
mutants_template(void **state)
{
	(void)state;
	mutate_then_accept(new_template, sizeof(struct tcmsg), 0);
}

static void
mutants_actions(void **state)
{
	(void)state;
	mutate_then_accept(new_actions, sizeof(struct tcamsg), TCA_ACT_COOKIE);
}

static void
mutants_kinds(void **state)
{
	(void)state;
	mutate_then_accept(new_kinds, sizeof(struct tcamsg), 0);
}

static void
mutants_del_action(void **state)
{
	(void)state;
	mutate_then_accept(del_action, sizeof(struct tcamsg), 0);
}

static void
mutants_prio(void **state)
{
	(void)state;
	mutate_then_accept(new_prio, sizeof(struct tcmsg), 0);
}

static void
mutants_pfifo(void **state)
{
	(void)state;
	mutate_then_accept(new_pfifo, sizeof(struct tcmsg), 0);
}

static void
mutants_del_clsact(void **state)
{
	(void)state;
	mutate_then_accept(del_clsact, sizeof(struct tcmsg), 0);
}

static void
mutants_link(void **state)
{
	(void)state;
	mutate_then_accept(set_link, sizeof(struct ifinfomsg), 0);
}

/* iproute2 asks this way whether RTM_NEWLINK is known; it goes on only after -ENODEV. */
static void
empty_newlink_is_enodev(void **state)
{
	struct families *f = families_create("messages");
	char buf[MESSAGE];

	(void)state;
	assert_int_equal(
		families_request(f,
			families_message(f, buf, RTM_NEWLINK, NLM_F_ACK, sizeof(struct ifinfomsg))),
		-ENODEV);
	families_destroy(f);
}

/* A list whose last action is wrong leaves none of the others behind. */
static void
list_is_all_or_nothing(void **state)
{
	struct families *f = families_create("messages");
	char buf[MESSAGE];
	struct nlmsghdr *nlh;
	struct nlattr *list;

	(void)state;
	assert_int_equal(families_request(f, new_actions(f, buf)), 0);
	nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	put_gact(nlh, 1, 1, TC_ACT_OK);
	put_gact(nlh, 2, 2, TC_ACT_OK);
	put_gact(nlh, 3, 100, TC_ACT_OK);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), -EEXIST);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	/* twice the same new index */
	nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	put_gact(nlh, 1, 1, TC_ACT_OK);
	put_gact(nlh, 2, 1, TC_ACT_OK);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), -EEXIST);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	/* a verdict that does not exist, after a replace that would be fine */
	nlh = families_message(f, buf, RTM_NEWACTION, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
		sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	put_gact(nlh, 1, 100, TC_ACT_SHOT);
	put_gact(nlh, 2, 3, 77);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), -EINVAL);
	assert_int_equal(
		action_params(action_find(f->actions, &gact_action_ops, 100))->verdict, TC_ACT_OK);
	/* a gap in the numbers */
	nlh = families_message(f, buf, RTM_NEWACTION, NEW, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	put_gact(nlh, 1, 1, TC_ACT_OK);
	put_gact(nlh, 3, 2, TC_ACT_OK);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), -EINVAL);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	/* deleting one action twice deletes it not at all */
	nlh = families_message(f, buf, RTM_DELACTION, NLM_F_ACK, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	for (uint16_t i = 1; i <= 2; i++) {
		struct nlattr *entry = nest(nlh, i);

		mnl_attr_put_strz(nlh, TCA_ACT_KIND, "gact");
		mnl_attr_put_u32(nlh, TCA_ACT_INDEX, 100);
		mnl_attr_nest_end(nlh, entry);
	}
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), -EINVAL);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	families_destroy(f);
}

static void
add_clsact(struct families *f)
{
	char buf[MESSAGE];
	struct nlmsghdr *nlh = tc_message(f, buf, RTM_NEWQDISC, NEW, TC_H_CLSACT, 0xffff0000);

	mnl_attr_put_strz(nlh, TCA_KIND, "clsact");
	assert_int_equal(families_request(f, nlh), 0);
}

static void
add_matchall(struct families *f, uint32_t prio)
{
	char buf[MESSAGE];
	struct nlmsghdr *nlh = filter_message(f, buf, RTM_NEWTFILTER, NEW, prio);
	struct nlattr *options, *list;

	mnl_attr_put_strz(nlh, TCA_KIND, "matchall");
	options = nest(nlh, TCA_OPTIONS);
	list = nest(nlh, TCA_MATCHALL_ACT);
	put_gact(nlh, 1, 0, TC_ACT_OK);
	mnl_attr_nest_end(nlh, list);
	mnl_attr_nest_end(nlh, options);
	assert_int_equal(families_request(f, nlh), 0);
}

/* A port that leaves takes its qdiscs and filters with it, and gives their actions back. */
static void
dev_gone_frees_filters(void **state)
{
	struct families *f = families_create("messages");

	(void)state;
	add_clsact(f);
	add_matchall(f, 1);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 1);
	netlink_server_dev_gone(f->server, 1);
	f->devs[0].present = false;
	assert_null(classifier_hook_block(&f->devs[0].ingress));
	rcu_barrier(f->rcu);
	assert_int_equal(action_count(f->actions, &gact_action_ops), 0);
	families_destroy(f);
}

/* C5: a dump during which a filter went says so, and shows every filter that stayed just once. */
static void
C5_interrupted_dump_says_so(void **state)
{
	enum {
		FILTERS = 3000,
		GONE = 2000
	};
	struct families *f = families_create("messages");
	int fd = families_connect(f, 0);
	static uint8_t seen[FILTERS + 1];
	char buf[65536];
	struct nlmsghdr *nlh;
	bool done = false, interrupted = false;

	(void)state;
	add_clsact(f);
	for (uint32_t i = 1; i <= FILTERS; i++)
		add_matchall(f, i);
	/* the dump stops when the socket is full, for nobody reads */
	nlh = tc_message(f, buf, RTM_GETTFILTER, NLM_F_DUMP, INGRESS, 0);
	assert_int_equal(send(fd, nlh, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	nlh = filter_message(f, buf, RTM_DELTFILTER, NLM_F_ACK, GONE);
	mnl_attr_put_strz(nlh, TCA_KIND, "matchall");
	assert_int_equal(families_request(f, nlh), 0);
	while (!done) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		int left = (int)n;

		assert_true(n > 0);
		for (nlh = (void *)buf; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
			const struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

			interrupted |= (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			if (nlh->nlmsg_type == NLMSG_DONE)
				done = true;
			else if (tcm->tcm_handle != 0)
				seen[tcm->tcm_info >> 16]++;
		}
		netlink_server_dispatch(f->server);
	}
	assert_true(interrupted);
	for (unsigned int i = 1; i <= FILTERS; i++)
		if (i != GONE)
			assert_int_equal(seen[i], 1);
	close(fd);
	families_destroy(f);
}

/* The same for actions, whose messages hold many each. */
static void
C5_interrupted_action_dump_says_so(void **state)
{
	enum {
		ACTIONS = 8000
	};
	struct families *f = families_create("messages");
	int fd = families_connect(f, 0);
	char buf[65536];
	struct nlmsghdr *nlh;
	struct nlattr *list, *entry;
	struct action *action;
	bool done = false, interrupted = false;

	(void)state;
	for (uint32_t i = 1; i <= ACTIONS; i++)
		assert_int_equal(action_create(f->actions, &gact_action_ops, i,
					 gact_params_create(TC_ACT_OK), &action),
			0);
	nlh = families_message(f, buf, RTM_GETACTION, NLM_F_DUMP, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	entry = nest(nlh, 1);
	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "gact");
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(send(fd, nlh, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	netlink_server_dispatch(f->server);
	assert_int_equal(families_request(f, new_actions(f, buf)), -EEXIST);
	nlh = families_message(f, buf, RTM_DELACTION, NLM_F_ACK, sizeof(struct tcamsg));
	list = nest(nlh, TCA_ROOT_TAB);
	entry = nest(nlh, 1);
	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "gact");
	mnl_attr_put_u32(nlh, TCA_ACT_INDEX, ACTIONS);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	assert_int_equal(families_request(f, nlh), 0);
	while (!done) {
		ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		int left = (int)n;

		assert_true(n > 0);
		for (nlh = (void *)buf; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
			interrupted |= (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			done |= nlh->nlmsg_type == NLMSG_DONE;
		}
		netlink_server_dispatch(f->server);
	}
	assert_true(interrupted);
	close(fd);
	families_destroy(f);
}

/* A dump comes back: each filter's message, sent as a request to an empty block, makes it again. */
static void
dumps_restore_filters(void **state)
{
	struct families *f = families_create("messages");
	char buf[MESSAGE];
	struct nlmsghdr *nlh;
	char *dump = malloc(65536);
	void *before, *after;
	size_t len, before_len, after_len;
	int left;

	(void)state;
	add_clsact(f);
	assert_int_equal(families_request(f, new_filter(f, buf)), 0);
	assert_int_equal(families_request(f, new_flower(f, buf)), 0);
	before = families_snapshot(f, &before_len);
	nlh = tc_message(f, buf, RTM_GETTFILTER, NLM_F_DUMP, INGRESS, 0);
	assert_int_equal(families_talk(f, nlh, dump, 65536, &len), 0);
	nlh = tc_message(f, buf, RTM_DELQDISC, NLM_F_ACK, TC_H_CLSACT, 0xffff0000);
	assert_int_equal(families_request(f, nlh), 0);
	add_clsact(f);
	left = (int)len;
	for (nlh = (void *)dump; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		const struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

		if (tcm->tcm_handle == 0)
			continue;
		nlh->nlmsg_flags = NLM_F_REQUEST | NEW;
		if (families_request(f, nlh) != 0)
			fail_msg("%s", f->error);
	}
	after = families_snapshot(f, &after_len);
	assert_int_equal(after_len, before_len);
	assert_memory_equal(after, before, before_len);
	free(before);
	free(after);
	free(dump);
	families_destroy(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutants_filter),
		cmocka_unit_test(mutants_flower),
		cmocka_unit_test(mutants_template),
		cmocka_unit_test(mutants_actions),
		cmocka_unit_test(mutants_kinds),
		cmocka_unit_test(mutants_del_action),
		cmocka_unit_test(mutants_prio),
		cmocka_unit_test(mutants_pfifo),
		cmocka_unit_test(mutants_del_clsact),
		cmocka_unit_test(mutants_link),
		cmocka_unit_test(empty_newlink_is_enodev),
		cmocka_unit_test(list_is_all_or_nothing),
		cmocka_unit_test(dev_gone_frees_filters),
		cmocka_unit_test(C5_interrupted_dump_says_so),
		cmocka_unit_test(C5_interrupted_action_dump_says_so),
		cmocka_unit_test(dumps_restore_filters),
	};

	test_eal_init("families-messages", "0");
	return cmocka_run_group_tests_name("families_messages", tests, NULL, NULL);
}
