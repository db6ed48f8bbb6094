/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* flower: packets with these values in their headers. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <string.h>

#include "classifier/flower.h"
#include "netlink/tc.h"

#define TCP_FLAGS_MAX 0x0fff
#define VLAN_ID_MAX 0x0fff
#define VLAN_PRIO_SHIFT 13
#define VLAN_PRIO_MAX 7

/* What a key is only for: a rule must say that, or the key could never match. */
enum need {
	NEED_NONE,
	NEED_IP,
	NEED_IPV4,
	NEED_IPV6,
	NEED_TCP,
	NEED_UDP,
	NEED_SCTP,
	NEED_ICMPV4,
	NEED_ICMPV6,
	NEED_ARP,
};

/* Keys that are copied as they come, with a mask or all of it. Attribute, what it needs, its place.
 */
#define FLOWER_FIELDS(X) \
	X(ETH_DST, NEED_NONE, eth_dst) \
	X(ETH_SRC, NEED_NONE, eth_src) \
	X(IP_TOS, NEED_IP, ip_tos) \
	X(IP_TTL, NEED_IP, ip_ttl) \
	X(IPV4_SRC, NEED_IPV4, a.ip4.src) \
	X(IPV4_DST, NEED_IPV4, a.ip4.dst) \
	X(IPV6_SRC, NEED_IPV6, a.ip6.src) \
	X(IPV6_DST, NEED_IPV6, a.ip6.dst) \
	X(TCP_SRC, NEED_TCP, src_port) \
	X(TCP_DST, NEED_TCP, dst_port) \
	X(TCP_FLAGS, NEED_TCP, tcp_flags) \
	X(UDP_SRC, NEED_UDP, src_port) \
	X(UDP_DST, NEED_UDP, dst_port) \
	X(SCTP_SRC, NEED_SCTP, src_port) \
	X(SCTP_DST, NEED_SCTP, dst_port) \
	X(ICMPV4_TYPE, NEED_ICMPV4, icmp_type) \
	X(ICMPV4_CODE, NEED_ICMPV4, icmp_code) \
	X(ICMPV6_TYPE, NEED_ICMPV6, icmp_type) \
	X(ICMPV6_CODE, NEED_ICMPV6, icmp_code) \
	X(ARP_SIP, NEED_ARP, a.arp.sip) \
	X(ARP_TIP, NEED_ARP, a.arp.tip) \
	X(ARP_OP, NEED_ARP, a.arp.op) \
	X(ARP_SHA, NEED_ARP, a.arp.sha) \
	X(ARP_THA, NEED_ARP, a.arp.tha)

struct field {
	uint16_t attr, mask_attr;
	enum need need;
	size_t offset, len;
	const char *name;
};

#define SIZE(member) sizeof(((struct flower_key *)0)->member)

static const struct field fields[] = {
#define X(attr, need, member) \
	{ TCA_FLOWER_KEY_##attr, TCA_FLOWER_KEY_##attr##_MASK, need, \
		offsetof(struct flower_key, member), SIZE(member), "TCA_FLOWER_KEY_" #attr },
	FLOWER_FIELDS(X)
#undef X
};

/* Each stands at its type: there are more of them than a search should pass for every key. */
#define AT(attr, ...) [attr] = { attr, #attr, __VA_ARGS__ }
#define EXACT(attr, len) AT(attr, NETLINK_ATTR_BINARY, len, len)
#define REFUSED(attr) AT(attr, NETLINK_ATTR_REFUSED)

/* clang-format off */
static const struct netlink_attr_policy flower_policy[] = {
#define X(attr, need, member) \
	EXACT(TCA_FLOWER_KEY_##attr, SIZE(member)), \
		EXACT(TCA_FLOWER_KEY_##attr##_MASK, SIZE(member)),
	FLOWER_FIELDS(X)
#undef X
	AT(TCA_FLOWER_CLASSID, NETLINK_ATTR_U32),
	AT(TCA_FLOWER_INDEV, NETLINK_ATTR_STRING, 1, IF_NAMESIZE),
	AT(TCA_FLOWER_ACT, NETLINK_ATTR_NESTED),
	AT(TCA_FLOWER_FLAGS, NETLINK_ATTR_U32),
	AT(TCA_FLOWER_KEY_ETH_TYPE, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_IP_PROTO, NETLINK_ATTR_U8),
	AT(TCA_FLOWER_KEY_VLAN_ID, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_VLAN_PRIO, NETLINK_ATTR_U8),
	AT(TCA_FLOWER_KEY_VLAN_ETH_TYPE, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_CVLAN_ID, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_CVLAN_PRIO, NETLINK_ATTR_U8),
	AT(TCA_FLOWER_KEY_CVLAN_ETH_TYPE, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_FLAGS, NETLINK_ATTR_U32),
	AT(TCA_FLOWER_KEY_FLAGS_MASK, NETLINK_ATTR_U32),
	AT(TCA_FLOWER_KEY_PORT_SRC_MIN, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_PORT_SRC_MAX, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_PORT_DST_MIN, NETLINK_ATTR_U16),
	AT(TCA_FLOWER_KEY_PORT_DST_MAX, NETLINK_ATTR_U16),
	/* what a dump says beside */
	AT(TCA_FLOWER_IN_HW_COUNT, NETLINK_ATTR_IGNORED),
	REFUSED(TCA_FLOWER_KEY_ENC_KEY_ID),
	REFUSED(TCA_FLOWER_KEY_ENC_IPV4_SRC),
	REFUSED(TCA_FLOWER_KEY_ENC_IPV4_DST),
	REFUSED(TCA_FLOWER_KEY_ENC_IPV6_SRC),
	REFUSED(TCA_FLOWER_KEY_ENC_IPV6_DST),
	REFUSED(TCA_FLOWER_KEY_ENC_UDP_SRC_PORT),
	REFUSED(TCA_FLOWER_KEY_ENC_UDP_DST_PORT),
	REFUSED(TCA_FLOWER_KEY_ENC_IP_TOS),
	REFUSED(TCA_FLOWER_KEY_ENC_IP_TTL),
	REFUSED(TCA_FLOWER_KEY_ENC_OPTS),
	REFUSED(TCA_FLOWER_KEY_MPLS_TTL),
	REFUSED(TCA_FLOWER_KEY_MPLS_BOS),
	REFUSED(TCA_FLOWER_KEY_MPLS_TC),
	REFUSED(TCA_FLOWER_KEY_MPLS_LABEL),
	REFUSED(TCA_FLOWER_KEY_MPLS_OPTS),
	REFUSED(TCA_FLOWER_KEY_CT_STATE),
	REFUSED(TCA_FLOWER_KEY_CT_ZONE),
	REFUSED(TCA_FLOWER_KEY_CT_MARK),
	REFUSED(TCA_FLOWER_KEY_CT_LABELS),
	REFUSED(TCA_FLOWER_KEY_HASH),
	REFUSED(TCA_FLOWER_KEY_NUM_OF_VLANS),
	REFUSED(TCA_FLOWER_KEY_PPPOE_SID),
	REFUSED(TCA_FLOWER_KEY_PPP_PROTO),
	REFUSED(TCA_FLOWER_KEY_L2TPV3_SID),
};
/* clang-format on */

/* Parsing. */

static bool
is_vlan_type(rte_be16_t type)
{
	return type == htons(ETH_P_8021Q) || type == htons(ETH_P_8021AD);
}

/* Whether the rule is for packets that can have such a key. */
static bool
need_met(const struct flower_match *match, enum need need)
{
	bool ip4 = match->mask.eth_type != 0 && match->key.eth_type == htons(ETH_P_IP);
	bool ip6 = match->mask.eth_type != 0 && match->key.eth_type == htons(ETH_P_IPV6);
	uint8_t proto = match->mask.ip_proto != 0 ? match->key.ip_proto : 0;

	switch (need) {
	case NEED_NONE:
		return true;
	case NEED_IP:
		return ip4 || ip6;
	case NEED_IPV4:
		return ip4;
	case NEED_IPV6:
		return ip6;
	case NEED_TCP:
		return (ip4 || ip6) && proto == IPPROTO_TCP;
	case NEED_UDP:
		return (ip4 || ip6) && proto == IPPROTO_UDP;
	case NEED_SCTP:
		return (ip4 || ip6) && proto == IPPROTO_SCTP;
	case NEED_ICMPV4:
		return ip4 && proto == IPPROTO_ICMP;
	case NEED_ICMPV6:
		return ip6 && proto == IPPROTO_ICMPV6;
	case NEED_ARP:
		return match->mask.eth_type != 0 &&
			(match->key.eth_type == htons(ETH_P_ARP) ||
				match->key.eth_type == htons(ETH_P_RARP));
	}
	return false;
}

static rte_be16_t
get_be16(const struct nlattr *attr)
{
	return attr != NULL ? mnl_attr_get_u16(attr) : 0;
}

static void
set_type(struct flower_match *match, rte_be16_t type)
{
	match->key.eth_type = type;
	match->mask.eth_type = 0xffff;
}

static int
parse_tag(struct netlink_request *req, const struct nlattr *id, const struct nlattr *prio,
	rte_be16_t *key, rte_be16_t *mask)
{
	uint16_t tci = 0, bits = 0;

	if (id != NULL) {
		tci = mnl_attr_get_u16(id);
		bits = VLAN_ID_MAX;
		if (tci > VLAN_ID_MAX)
			return netlink_fail(req, -EINVAL, id, "There is no VLAN %u", tci);
	}
	if (prio != NULL) {
		if (mnl_attr_get_u8(prio) > VLAN_PRIO_MAX)
			return netlink_fail(req, -EINVAL, prio, "There is no VLAN priority %u",
				mnl_attr_get_u8(prio));
		tci |= (uint16_t)(mnl_attr_get_u8(prio) << VLAN_PRIO_SHIFT);
		bits |= VLAN_PRIO_MAX << VLAN_PRIO_SHIFT;
	}
	*key = htons(tci);
	*mask = htons(bits);
	return 0;
}

/* Tags' keys without a tag in the rule. */
static int
refuse_tags(struct netlink_request *req, const struct nlattr *id, const struct nlattr *prio,
	const struct nlattr *type, const char *what)
{
	const struct nlattr *attr = id != NULL ? id : prio != NULL ? prio : type;

	if (attr == NULL)
		return 0;
	return netlink_fail(req, -EINVAL, attr, "Keys of %s need a rule for that tag", what);
}

/*
 * The type after all tags, and the tags. tc puts the outermost type in _ETH_TYPE; a dump, which may
 * come back, has the innermost there, and the outermost in the filter's protocol alone.
 */
static int
parse_types(struct netlink_request *req, const struct nlattr **tb, uint16_t protocol,
	struct flower_match *match)
{
	const struct nlattr *vlan_type = tb[TCA_FLOWER_KEY_VLAN_ETH_TYPE];
	const struct nlattr *cvlan_type = tb[TCA_FLOWER_KEY_CVLAN_ETH_TYPE];
	rte_be16_t type = get_be16(tb[TCA_FLOWER_KEY_ETH_TYPE]), outer = type;
	int ret;

	if (!is_vlan_type(outer) && is_vlan_type(htons(protocol)) &&
		(tb[TCA_FLOWER_KEY_VLAN_ID] != NULL || tb[TCA_FLOWER_KEY_VLAN_PRIO] != NULL ||
			vlan_type != NULL))
		outer = htons(protocol);
	if (!is_vlan_type(outer)) {
		if (tb[TCA_FLOWER_KEY_ETH_TYPE] != NULL)
			set_type(match, type);
		if ((ret = refuse_tags(req, tb[TCA_FLOWER_KEY_VLAN_ID],
			     tb[TCA_FLOWER_KEY_VLAN_PRIO], vlan_type, "a VLAN")) != 0)
			return ret;
		return refuse_tags(req, tb[TCA_FLOWER_KEY_CVLAN_ID], tb[TCA_FLOWER_KEY_CVLAN_PRIO],
			cvlan_type, "a second VLAN");
	}
	match->key.vlan_tpid = outer;
	match->mask.vlan_tpid = 0xffff;
	ret = parse_tag(req, tb[TCA_FLOWER_KEY_VLAN_ID], tb[TCA_FLOWER_KEY_VLAN_PRIO],
		&match->key.vlan_tci, &match->mask.vlan_tci);
	if (ret != 0)
		return ret;
	if (!is_vlan_type(get_be16(vlan_type))) {
		if (vlan_type != NULL) {
			/* Linux compares the type right behind the tag as well: no second tag */
			set_type(match, get_be16(vlan_type));
			match->mask.cvlan_tpid = 0xffff;
		}
		return refuse_tags(req, tb[TCA_FLOWER_KEY_CVLAN_ID], tb[TCA_FLOWER_KEY_CVLAN_PRIO],
			cvlan_type, "a second VLAN");
	}
	match->key.cvlan_tpid = get_be16(vlan_type);
	match->mask.cvlan_tpid = 0xffff;
	if (cvlan_type != NULL)
		set_type(match, get_be16(cvlan_type));
	return parse_tag(req, tb[TCA_FLOWER_KEY_CVLAN_ID], tb[TCA_FLOWER_KEY_CVLAN_PRIO],
		&match->key.cvlan_tci, &match->mask.cvlan_tci);
}

static int
parse_field(struct netlink_request *req, const struct nlattr **tb, const struct field *field,
	struct flower_match *match)
{
	const struct nlattr *value = tb[field->attr], *mask = tb[field->mask_attr];
	uint8_t *to = (uint8_t *)&match->mask + field->offset;

	if (value == NULL && mask == NULL)
		return 0;
	if (value == NULL)
		return netlink_fail(req, -EINVAL, mask, "%s_MASK stands there without %s",
			field->name, field->name);
	if (!need_met(match, field->need))
		return netlink_fail(req, -EINVAL, value,
			"%s does not fit the rule's protocol (eth_type, ip_proto)", field->name);
	memcpy((uint8_t *)&match->key + field->offset, mnl_attr_get_payload(value), field->len);
	if (mask != NULL)
		memcpy(to, mnl_attr_get_payload(mask), field->len);
	else
		memset(to, 0xff, field->len);
	if (field->need == NEED_IPV4)
		match->addresses = FLOWER_IPV4;
	else if (field->need == NEED_IPV6)
		match->addresses = FLOWER_IPV6;
	else if (field->need == NEED_ARP)
		match->addresses = FLOWER_ARP;
	return 0;
}

static int
parse_tcp_flags(struct netlink_request *req, const struct nlattr **tb, struct flower_match *match)
{
	rte_be16_t beyond = htons((uint16_t)~TCP_FLAGS_MAX);

	if (tb[TCA_FLOWER_KEY_TCP_FLAGS] == NULL)
		return 0;
	if (tb[TCA_FLOWER_KEY_TCP_FLAGS_MASK] == NULL)
		match->mask.tcp_flags = htons(TCP_FLAGS_MAX);
	if (((match->key.tcp_flags | match->mask.tcp_flags) & beyond) != 0)
		return netlink_fail(req, -EINVAL, tb[TCA_FLOWER_KEY_TCP_FLAGS],
			"TCA_FLOWER_KEY_TCP_FLAGS has more than 12 bits");
	return 0;
}

static int
parse_range(struct netlink_request *req, const struct nlattr *min, const struct nlattr *max,
	rte_be16_t port_mask, const struct flower_match *match, struct flower_range *range)
{
	if (min == NULL && max == NULL)
		return 0;
	if (min == NULL || max == NULL)
		return netlink_fail(
			req, -EINVAL, min != NULL ? min : max, "A range of ports needs both ends");
	if (!need_met(match, NEED_TCP) && !need_met(match, NEED_UDP) && !need_met(match, NEED_SCTP))
		return netlink_fail(
			req, -EINVAL, min, "A range of ports needs ip_proto tcp, udp or sctp");
	if (port_mask != 0)
		return netlink_fail(
			req, -EINVAL, min, "A port and a range of it exclude each other");
	range->min = ntohs(mnl_attr_get_u16(min));
	range->max = ntohs(mnl_attr_get_u16(max));
	if (range->min >= range->max)
		return netlink_fail(req, -EINVAL, min,
			"Invalid port range (min must be strictly smaller than max)");
	return 0;
}

static int
parse_fragment_flags(
	struct netlink_request *req, const struct nlattr **tb, struct flower_match *match)
{
	const struct nlattr *value = tb[TCA_FLOWER_KEY_FLAGS];
	const struct nlattr *mask = tb[TCA_FLOWER_KEY_FLAGS_MASK];
	uint32_t known = TCA_FLOWER_KEY_FLAGS_IS_FRAGMENT | TCA_FLOWER_KEY_FLAGS_FRAG_IS_FIRST;
	uint32_t bits;

	if (value == NULL && mask == NULL)
		return 0;
	if (value == NULL || mask == NULL)
		return netlink_fail(req, -EINVAL, value != NULL ? value : mask,
			"TCA_FLOWER_KEY_FLAGS and its mask need each other");
	bits = ntohl(mnl_attr_get_u32(mask));
	if ((bits & ~known) != 0)
		return netlink_fail(req, -EOPNOTSUPP, mask,
			"TCA_FLOWER_KEY_FLAGS: flags 0x%x are not supported", bits & ~known);
	match->key.ip_flags = (uint8_t)(ntohl(mnl_attr_get_u32(value)) & known);
	match->mask.ip_flags = (uint8_t)bits;
	return 0;
}

static int
parse_indev(struct netlink_request *req, const struct nlattr *attr, struct flower_match *match)
{
	struct netlink_dev dev;
	int ret;

	if (attr == NULL)
		return 0;
	if ((ret = netlink_dev_by_name(req, mnl_attr_get_str(attr), &dev)) != 0)
		return ret;
	match->key.indev = dev.ifindex;
	match->mask.indev = UINT32_MAX;
	return 0;
}

static int
parse_match(struct netlink_request *req, const struct nlattr **tb, uint16_t protocol,
	struct flower_match *match)
{
	const struct nlattr *proto = tb[TCA_FLOWER_KEY_IP_PROTO];
	int ret;

	if ((ret = parse_indev(req, tb[TCA_FLOWER_INDEV], match)) != 0 ||
		(ret = parse_types(req, tb, protocol, match)) != 0)
		return ret;
	if (proto != NULL) {
		if (!need_met(match, NEED_IP))
			return netlink_fail(req, -EINVAL, proto,
				"TCA_FLOWER_KEY_IP_PROTO does not fit the rule's eth_type");
		match->key.ip_proto = mnl_attr_get_u8(proto);
		match->mask.ip_proto = 0xff;
	}
	for (unsigned int i = 0; i < RTE_DIM(fields); i++)
		if ((ret = parse_field(req, tb, &fields[i], match)) != 0)
			return ret;
	if ((ret = parse_tcp_flags(req, tb, match)) != 0 ||
		(ret = parse_range(req, tb[TCA_FLOWER_KEY_PORT_SRC_MIN],
			 tb[TCA_FLOWER_KEY_PORT_SRC_MAX], match->mask.src_port, match,
			 &match->src_ports)) != 0 ||
		(ret = parse_range(req, tb[TCA_FLOWER_KEY_PORT_DST_MIN],
			 tb[TCA_FLOWER_KEY_PORT_DST_MAX], match->mask.dst_port, match,
			 &match->dst_ports)) != 0)
		return ret;
	return parse_fragment_flags(req, tb, match);
}

static int
flower_parse(struct netlink_request *req, const struct nlattr *options,
	struct classifier_rule_conf *conf, struct flower_match *match)
{
	const struct nlattr *tb[TCA_FLOWER_MAX + 1];
	int ret;

	ret = netlink_parse_nested(
		req, options, flower_policy, RTE_DIM(flower_policy), tb, TCA_FLOWER_MAX + 1);
	if (ret != 0 || (ret = parse_match(req, tb, conf->place.protocol, match)) != 0)
		return ret;
	conf->flower = match;
	if (tb[TCA_FLOWER_FLAGS] != NULL &&
		(ret = tc_filter_flags_parse(req, tb[TCA_FLOWER_FLAGS], &conf->flags)) != 0)
		return ret;
	if (tb[TCA_FLOWER_CLASSID] != NULL)
		conf->classid = mnl_attr_get_u32(tb[TCA_FLOWER_CLASSID]);
	if (tb[TCA_FLOWER_ACT] != NULL)
		return tc_actions_parse(req, tb[TCA_FLOWER_ACT], conf->actions, &conf->n_actions);
	return 0;
}

/* A template has no more than keys. tc sends flags with it: they may say what is true anyway. */
static int
flower_parse_template(struct netlink_request *req, const struct nlattr *options, uint16_t protocol,
	struct flower_match *match)
{
	const struct nlattr *tb[TCA_FLOWER_MAX + 1];
	uint32_t flags;
	int ret;

	ret = netlink_parse_nested(
		req, options, flower_policy, RTE_DIM(flower_policy), tb, TCA_FLOWER_MAX + 1);
	if (ret != 0)
		return ret;
	if (tb[TCA_FLOWER_ACT] != NULL)
		return netlink_fail(req, -EINVAL, tb[TCA_FLOWER_ACT],
			"TCA_FLOWER_ACT: a template has no actions");
	if (tb[TCA_FLOWER_CLASSID] != NULL)
		return netlink_fail(req, -EINVAL, tb[TCA_FLOWER_CLASSID],
			"TCA_FLOWER_CLASSID: a template has no class");
	if (tb[TCA_FLOWER_FLAGS] != NULL &&
		(ret = tc_filter_flags_parse(req, tb[TCA_FLOWER_FLAGS], &flags)) != 0)
		return ret;
	return parse_match(req, tb, protocol, match);
}

/* Dumping. */

static bool
is_set(const void *mask, size_t len)
{
	const uint8_t *p = mask;

	while (len > 0 && *p == 0)
		p++, len--;
	return len > 0;
}

static void
put_tag(struct netlink_put *put, uint16_t id, uint16_t prio, rte_be16_t key, rte_be16_t mask)
{
	uint16_t tci = ntohs(key), bits = ntohs(mask);

	if ((bits & VLAN_ID_MAX) != 0)
		netlink_put_u16(put, id, tci & VLAN_ID_MAX);
	if ((bits >> VLAN_PRIO_SHIFT) != 0)
		netlink_put_u8(put, prio, (uint8_t)(tci >> VLAN_PRIO_SHIFT));
}

static void
put_types(struct netlink_put *put, const struct flower_match *match)
{
	const struct flower_key *key = &match->key, *mask = &match->mask;

	if (mask->eth_type != 0)
		netlink_put_u16(put, TCA_FLOWER_KEY_ETH_TYPE, key->eth_type);
	put_tag(put, TCA_FLOWER_KEY_VLAN_ID, TCA_FLOWER_KEY_VLAN_PRIO, key->vlan_tci,
		mask->vlan_tci);
	put_tag(put, TCA_FLOWER_KEY_CVLAN_ID, TCA_FLOWER_KEY_CVLAN_PRIO, key->cvlan_tci,
		mask->cvlan_tci);
	if (key->cvlan_tpid != 0) {
		netlink_put_u16(put, TCA_FLOWER_KEY_VLAN_ETH_TYPE, key->cvlan_tpid);
		if (mask->eth_type != 0)
			netlink_put_u16(put, TCA_FLOWER_KEY_CVLAN_ETH_TYPE, key->eth_type);
	} else if (mask->vlan_tpid != 0 && mask->eth_type != 0) {
		netlink_put_u16(put, TCA_FLOWER_KEY_VLAN_ETH_TYPE, key->eth_type);
	}
	if (mask->ip_proto != 0)
		netlink_put_u8(put, TCA_FLOWER_KEY_IP_PROTO, key->ip_proto);
}

static void
put_range(struct netlink_put *put, uint16_t min, uint16_t max, const struct flower_range *range)
{
	if (range->max == 0)
		return;
	netlink_put_u16(put, min, htons(range->min));
	netlink_put_u16(put, max, htons(range->max));
}

static void
put_match(struct netlink_server *server, struct netlink_put *put, const struct flower_match *match)
{
	const struct netlink_conf *conf = netlink_server_conf(server);
	struct netlink_dev dev;

	if (match->mask.indev != 0 &&
		conf->dev_ops->next(conf->dev_arg, match->key.indev - 1, &dev) &&
		dev.ifindex == match->key.indev)
		netlink_put_string(put, TCA_FLOWER_INDEV, dev.name);
	else if (match->mask.indev != 0 && put->bare)
		/* not to come back as a rule for any device: a name that is none */
		netlink_put_string(put, TCA_FLOWER_INDEV, "/");
	put_types(put, match);
	for (unsigned int i = 0; i < RTE_DIM(fields); i++) {
		const struct field *field = &fields[i];
		const uint8_t *mask = (const uint8_t *)&match->mask + field->offset;

		if (!need_met(match, field->need) || !is_set(mask, field->len))
			continue;
		netlink_put_data(
			put, field->attr, (const uint8_t *)&match->key + field->offset, field->len);
		netlink_put_data(put, field->mask_attr, mask, field->len);
	}
	put_range(put, TCA_FLOWER_KEY_PORT_SRC_MIN, TCA_FLOWER_KEY_PORT_SRC_MAX, &match->src_ports);
	put_range(put, TCA_FLOWER_KEY_PORT_DST_MIN, TCA_FLOWER_KEY_PORT_DST_MAX, &match->dst_ports);
	if (match->mask.ip_flags != 0) {
		netlink_put_u32(put, TCA_FLOWER_KEY_FLAGS, htonl(match->key.ip_flags));
		netlink_put_u32(put, TCA_FLOWER_KEY_FLAGS_MASK, htonl(match->mask.ip_flags));
	}
}

static void
flower_put(
	struct netlink_server *server, struct netlink_put *put, const struct classifier_rule *rule)
{
	const struct classifier_rule_conf *conf = classifier_rule_conf(rule);

	if (conf->classid != 0)
		netlink_put_u32(put, TCA_FLOWER_CLASSID, conf->classid);
	put_match(server, put, conf->flower);
	netlink_put_u32(put, TCA_FLOWER_FLAGS, conf->flags | TCA_CLS_FLAGS_NOT_IN_HW);
	tc_actions_put(put, TCA_FLOWER_ACT, conf->actions, conf->n_actions, 0);
}

static void
flower_put_terse(struct netlink_put *put, const struct classifier_rule *rule)
{
	const struct classifier_rule_conf *conf = classifier_rule_conf(rule);

	netlink_put_u32(put, TCA_FLOWER_FLAGS, conf->flags | TCA_CLS_FLAGS_NOT_IN_HW);
	tc_actions_put_terse(put, TCA_FLOWER_ACT, conf->actions, conf->n_actions);
}

static struct netlink_filter_kind flower_kind = {
	.name = "flower",
	.kind = CLASSIFIER_FLOWER,
	.actions_type = TCA_FLOWER_ACT,
	.parse = flower_parse,
	.put = flower_put,
	.put_terse = flower_put_terse,
	.parse_template = flower_parse_template,
	.put_template = put_match,
};

static void __attribute__((constructor)) flower_register(void)
{
	netlink_filter_kind_register(&flower_kind);
}
