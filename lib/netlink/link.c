/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Links: RTM_GETLINK, RTM_NEWLINK and RTM_SETLINK of devices that exist, RTM_GETNSID. */

/* before <linux/if.h>, which then leaves out what both define */
#include <net/if.h>

#include <bsd/string.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <string.h>

#include "netlink/message.h"
#include "netlink/tc.h"

#define LINK_ALTNAME_MAX 128 /* ALTIFNAMSIZ */
/* RTEXT_FILTER_*: what a request may ask for beside the usual, or without. */
#define LINK_EXT_MASKS \
	(RTEXT_FILTER_VF | RTEXT_FILTER_BRVLAN | RTEXT_FILTER_BRVLAN_COMPRESSED | \
		RTEXT_FILTER_SKIP_STATS)
/* Flags that a request can change on Linux, and those that it can change here. */
#define LINK_FLAGS_LINUX \
	(IFF_UP | IFF_PROMISC | IFF_ALLMULTI | IFF_DEBUG | IFF_NOTRAILERS | IFF_NOARP | \
		IFF_DYNAMIC | IFF_MULTICAST | IFF_PORTSEL | IFF_AUTOMEDIA)
#define LINK_FLAGS_OURS (IFF_UP | IFF_PROMISC | IFF_ALLMULTI)

static const struct netlink_attr_policy link_get_policy[] = {
	{ IFLA_IFNAME, "IFLA_IFNAME", NETLINK_ATTR_STRING, 1, IFNAMSIZ },
	{ IFLA_ALT_IFNAME, "IFLA_ALT_IFNAME", NETLINK_ATTR_STRING, 1, LINK_ALTNAME_MAX },
	{ IFLA_EXT_MASK, "IFLA_EXT_MASK", NETLINK_ATTR_U32 },
	{ IFLA_MASTER, "IFLA_MASTER", NETLINK_ATTR_U32 },
	{ IFLA_LINKINFO, "IFLA_LINKINFO", NETLINK_ATTR_NESTED },
	{ IFLA_TARGET_NETNSID, "IFLA_TARGET_NETNSID", NETLINK_ATTR_REFUSED },
};

static const struct netlink_attr_policy link_set_policy[] = {
	{ IFLA_IFNAME, "IFLA_IFNAME", NETLINK_ATTR_STRING, 1, IFNAMSIZ },
	{ IFLA_ALT_IFNAME, "IFLA_ALT_IFNAME", NETLINK_ATTR_STRING, 1, LINK_ALTNAME_MAX },
	{ IFLA_EXT_MASK, "IFLA_EXT_MASK", NETLINK_ATTR_U32 },
	{ IFLA_ADDRESS, "IFLA_ADDRESS", NETLINK_ATTR_BINARY, NETLINK_ADDR_LEN, NETLINK_ADDR_LEN },
	{ IFLA_MTU, "IFLA_MTU", NETLINK_ATTR_U32 },
	{ IFLA_TXQLEN, "IFLA_TXQLEN", NETLINK_ATTR_U32 },
	/* iproute2 sends it without a NUL, and empty to take the alias away */
	{ IFLA_IFALIAS, "IFLA_IFALIAS", NETLINK_ATTR_BINARY, 0, NETLINK_ALIAS_MAX - 1 },
	{ IFLA_BROADCAST, "IFLA_BROADCAST", NETLINK_ATTR_REFUSED },
	{ IFLA_LINK, "IFLA_LINK", NETLINK_ATTR_REFUSED },
	{ IFLA_QDISC, "IFLA_QDISC", NETLINK_ATTR_REFUSED },
	{ IFLA_MASTER, "IFLA_MASTER", NETLINK_ATTR_REFUSED },
	{ IFLA_PROTINFO, "IFLA_PROTINFO", NETLINK_ATTR_REFUSED },
	{ IFLA_MAP, "IFLA_MAP", NETLINK_ATTR_REFUSED },
	{ IFLA_WEIGHT, "IFLA_WEIGHT", NETLINK_ATTR_REFUSED },
	{ IFLA_OPERSTATE, "IFLA_OPERSTATE", NETLINK_ATTR_REFUSED },
	{ IFLA_LINKMODE, "IFLA_LINKMODE", NETLINK_ATTR_REFUSED },
	{ IFLA_LINKINFO, "IFLA_LINKINFO", NETLINK_ATTR_REFUSED },
	{ IFLA_NET_NS_PID, "IFLA_NET_NS_PID", NETLINK_ATTR_REFUSED },
	{ IFLA_NET_NS_FD, "IFLA_NET_NS_FD", NETLINK_ATTR_REFUSED },
	{ IFLA_VFINFO_LIST, "IFLA_VFINFO_LIST", NETLINK_ATTR_REFUSED },
	{ IFLA_VF_PORTS, "IFLA_VF_PORTS", NETLINK_ATTR_REFUSED },
	{ IFLA_PORT_SELF, "IFLA_PORT_SELF", NETLINK_ATTR_REFUSED },
	{ IFLA_AF_SPEC, "IFLA_AF_SPEC", NETLINK_ATTR_REFUSED },
	{ IFLA_GROUP, "IFLA_GROUP", NETLINK_ATTR_REFUSED },
	{ IFLA_PROMISCUITY, "IFLA_PROMISCUITY", NETLINK_ATTR_REFUSED },
	{ IFLA_ALLMULTI, "IFLA_ALLMULTI", NETLINK_ATTR_REFUSED },
	{ IFLA_NUM_TX_QUEUES, "IFLA_NUM_TX_QUEUES", NETLINK_ATTR_REFUSED },
	{ IFLA_NUM_RX_QUEUES, "IFLA_NUM_RX_QUEUES", NETLINK_ATTR_REFUSED },
	{ IFLA_CARRIER, "IFLA_CARRIER", NETLINK_ATTR_REFUSED },
	{ IFLA_LINK_NETNSID, "IFLA_LINK_NETNSID", NETLINK_ATTR_REFUSED },
	{ IFLA_PROTO_DOWN, "IFLA_PROTO_DOWN", NETLINK_ATTR_REFUSED },
	{ IFLA_GSO_MAX_SEGS, "IFLA_GSO_MAX_SEGS", NETLINK_ATTR_REFUSED },
	{ IFLA_GSO_MAX_SIZE, "IFLA_GSO_MAX_SIZE", NETLINK_ATTR_REFUSED },
	{ IFLA_XDP, "IFLA_XDP", NETLINK_ATTR_REFUSED },
	{ IFLA_TARGET_NETNSID, "IFLA_TARGET_NETNSID", NETLINK_ATTR_REFUSED },
	{ IFLA_NEW_IFINDEX, "IFLA_NEW_IFINDEX", NETLINK_ATTR_REFUSED },
	{ IFLA_PROP_LIST, "IFLA_PROP_LIST", NETLINK_ATTR_REFUSED },
	{ IFLA_PERM_ADDRESS, "IFLA_PERM_ADDRESS", NETLINK_ATTR_REFUSED },
	{ IFLA_PROTO_DOWN_REASON, "IFLA_PROTO_DOWN_REASON", NETLINK_ATTR_REFUSED },
	{ IFLA_PARENT_DEV_NAME, "IFLA_PARENT_DEV_NAME", NETLINK_ATTR_REFUSED },
	{ IFLA_GRO_MAX_SIZE, "IFLA_GRO_MAX_SIZE", NETLINK_ATTR_REFUSED },
};

static unsigned int
link_flags(const struct netlink_dev *dev)
{
	unsigned int flags = IFF_BROADCAST | IFF_MULTICAST;

	if (dev->promisc)
		flags |= IFF_PROMISC;
	if (dev->allmulti)
		flags |= IFF_ALLMULTI;
	if (dev->up) {
		flags |= IFF_UP;
		if (dev->carrier)
			flags |= IFF_RUNNING | IFF_LOWER_UP;
	}
	return flags;
}

static void
link_put_stats(struct netlink_put *put, const struct netlink_dev_stats *s)
{
	struct rtnl_link_stats64 s64 = { 0 };
	struct rtnl_link_stats s32 = { 0 };

	s64.rx_packets = s->rx_packets;
	s64.tx_packets = s->tx_packets;
	s64.rx_bytes = s->rx_bytes;
	s64.tx_bytes = s->tx_bytes;
	s64.rx_errors = s->rx_errors;
	s64.tx_errors = s->tx_errors;
	s64.rx_dropped = s->rx_dropped + s->rx_nombuf;
	s64.tx_dropped = s->tx_dropped;
	s64.multicast = s->multicast;
	s64.rx_missed_errors = s->rx_missed;
	netlink_put_data(put, IFLA_STATS64, &s64, sizeof(s64));

	s32.rx_packets = (uint32_t)s64.rx_packets;
	s32.tx_packets = (uint32_t)s64.tx_packets;
	s32.rx_bytes = (uint32_t)s64.rx_bytes;
	s32.tx_bytes = (uint32_t)s64.tx_bytes;
	s32.rx_errors = (uint32_t)s64.rx_errors;
	s32.tx_errors = (uint32_t)s64.tx_errors;
	s32.rx_dropped = (uint32_t)s64.rx_dropped;
	s32.tx_dropped = (uint32_t)s64.tx_dropped;
	s32.multicast = (uint32_t)s64.multicast;
	s32.rx_missed_errors = (uint32_t)s64.rx_missed_errors;
	netlink_put_data(put, IFLA_STATS, &s32, sizeof(s32));
}

static void
link_put(struct netlink_server *server, struct netlink_put *put, const struct netlink_dev *dev,
	bool with_stats)
{
	static const uint8_t broadcast[NETLINK_ADDR_LEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t none[NETLINK_ADDR_LEN];
	const struct netlink_conf *conf = netlink_server_conf(server);
	struct netlink_dev_stats stats = { 0 };

	netlink_put_string(put, IFLA_IFNAME, dev->name);
	netlink_put_u32(put, IFLA_TXQLEN, dev->txqueuelen);
	netlink_put_u8(put, IFLA_OPERSTATE, dev->up && dev->carrier ? IF_OPER_UP : IF_OPER_DOWN);
	netlink_put_u8(put, IFLA_LINKMODE, IF_LINK_MODE_DEFAULT);
	netlink_put_u32(put, IFLA_MTU, dev->mtu);
	netlink_put_u32(put, IFLA_MIN_MTU, dev->mtu_min);
	netlink_put_u32(put, IFLA_MAX_MTU, dev->mtu_max);
	netlink_put_u32(put, IFLA_GROUP, 0);
	netlink_put_u32(put, IFLA_PROMISCUITY, dev->promisc);
	netlink_put_u32(put, IFLA_ALLMULTI, dev->allmulti);
	netlink_put_u32(put, IFLA_NUM_TX_QUEUES, dev->n_txq);
	netlink_put_u32(put, IFLA_NUM_RX_QUEUES, dev->n_rxq);
	netlink_put_u8(put, IFLA_CARRIER, dev->carrier);
	netlink_put_string(put, IFLA_QDISC, tc_root_name(server, dev));
	if (dev->alias[0] != '\0')
		netlink_put_data(put, IFLA_IFALIAS, dev->alias, strlen(dev->alias) + 1);
	netlink_put_u32(put, IFLA_CARRIER_CHANGES, dev->carrier_changes);
	netlink_put_u8(put, IFLA_PROTO_DOWN, 0);
	netlink_put_data(put, IFLA_ADDRESS, dev->address, NETLINK_ADDR_LEN);
	netlink_put_data(put, IFLA_BROADCAST, broadcast, NETLINK_ADDR_LEN);
	if (with_stats && conf->dev_ops->stats(conf->dev_arg, dev->ifindex, &stats) == 0)
		link_put_stats(put, &stats);
	if (memcmp(dev->permanent, none, sizeof(none)) != 0)
		netlink_put_data(put, IFLA_PERM_ADDRESS, dev->permanent, NETLINK_ADDR_LEN);
	if (dev->driver[0] != '\0')
		netlink_put_string(put, IFLA_PARENT_DEV_NAME, dev->driver);
}

static struct ifinfomsg
link_header(const struct netlink_dev *dev, unsigned int change)
{
	struct ifinfomsg ifi = { 0 };

	ifi.ifi_family = AF_UNSPEC;
	ifi.ifi_type = ARPHRD_ETHER;
	ifi.ifi_index = (int)dev->ifindex;
	ifi.ifi_flags = link_flags(dev);
	ifi.ifi_change = change;
	return ifi;
}

static void
link_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	const struct netlink_dev *dev, unsigned int change)
{
	struct ifinfomsg ifi = link_header(dev, change);
	struct netlink_put put;

	if (!netlink_notify_wanted(server, req, NETLINK_ROUTE, RTNLGRP_LINK) ||
		!netlink_notify_begin(server, req, &put, type, 0, &ifi, sizeof(ifi)))
		return;
	link_put(server, &put, dev, true);
	netlink_notify_end(server, req, &put, NETLINK_ROUTE, RTNLGRP_LINK);
}

void
netlink_link_notify(
	struct netlink_server *server, struct netlink_request *req, uint16_t type, uint32_t ifindex)
{
	const struct netlink_conf *conf = netlink_server_conf(server);
	struct netlink_dev dev;

	if (ifindex == 0 || !conf->dev_ops->next(conf->dev_arg, ifindex - 1, &dev) ||
		dev.ifindex != ifindex)
		return;
	link_notify(server, req, type, &dev, type == RTM_DELLINK ? ~0u : 0);
}

/* The device that header or attributes name. -ENODEV with text, or -EINVAL if nothing names one. */
static int
link_find(struct netlink_request *req, const struct ifinfomsg *ifi, const struct nlattr **tb,
	struct netlink_dev *dev)
{
	const struct nlattr *name = tb[IFLA_IFNAME] != NULL ? tb[IFLA_IFNAME] : tb[IFLA_ALT_IFNAME];

	if (ifi->ifi_family == AF_BRIDGE)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "There are no bridges");
	if (ifi->ifi_index > 0)
		return netlink_dev_by_index(req, (uint32_t)ifi->ifi_index, dev);
	if (ifi->ifi_index < 0)
		return netlink_fail(req, -EINVAL, NULL, "ifindex can't be negative");
	if (name != NULL)
		return netlink_dev_by_name(req, mnl_attr_get_str(name), dev);
	return netlink_fail(req, -EINVAL, NULL, "Neither ifindex nor IFLA_IFNAME names a device");
}

static int
link_ext_mask(struct netlink_request *req, const struct nlattr **tb, bool *with_stats)
{
	uint32_t mask = 0;

	if (tb[IFLA_EXT_MASK] != NULL)
		mask = mnl_attr_get_u32(tb[IFLA_EXT_MASK]);
	if ((mask & ~LINK_EXT_MASKS) != 0)
		return netlink_fail(req, -EOPNOTSUPP, tb[IFLA_EXT_MASK],
			"IFLA_EXT_MASK 0x%x asks for what is not supported", mask);
	*with_stats = (mask & RTEXT_FILTER_SKIP_STATS) == 0;
	return 0;
}

static int
link_get(struct netlink_request *req)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[IFLA_MAX + 1];
	struct ifinfomsg header;
	struct netlink_dev dev;
	struct netlink_put put;
	bool with_stats = true;
	int ret;

	if ((ret = netlink_parse(req, sizeof(*ifi), link_get_policy, RTE_DIM(link_get_policy), tb,
		     IFLA_MAX + 1)) != 0 ||
		(ret = link_ext_mask(req, tb, &with_stats)) != 0 ||
		(ret = link_find(req, ifi, tb, &dev)) != 0)
		return ret;
	header = link_header(&dev, 0);
	if (!netlink_put_begin(req, &put, RTM_NEWLINK, 0, &header, sizeof(header)))
		return -EMSGSIZE;
	link_put(req->server, &put, &dev, with_stats);
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

/* No device here is or has a bridge, a master or a kind: a dump of those that do is empty. */
static bool
link_dump_selects_none(const struct netlink_request *req, const struct nlattr **tb)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(req->nlh);

	return ifi->ifi_family == AF_BRIDGE || tb[IFLA_LINKINFO] != NULL ||
		(tb[IFLA_MASTER] != NULL && mnl_attr_get_u32(tb[IFLA_MASTER]) != 0);
}

static int
link_dump(struct netlink_request *req)
{
	const struct netlink_conf *conf = req->conf;
	const struct nlattr *tb[IFLA_MAX + 1];
	struct ifinfomsg header;
	struct netlink_dev dev;
	struct netlink_put put;
	bool with_stats = true;
	int ret;

	if ((ret = netlink_parse(req, sizeof(header), link_get_policy, RTE_DIM(link_get_policy), tb,
		     IFLA_MAX + 1)) != 0 ||
		(ret = link_ext_mask(req, tb, &with_stats)) != 0)
		return ret;
	if (link_dump_selects_none(req, tb))
		return 0;
	while (conf->dev_ops->next(conf->dev_arg, (uint32_t)req->cursor[0], &dev)) {
		header = link_header(&dev, 0);
		if (!netlink_put_begin(
			    req, &put, RTM_NEWLINK, NLM_F_MULTI, &header, sizeof(header)))
			return 1;
		link_put(req->server, &put, &dev, with_stats);
		if (!netlink_put_end(req, &put))
			return 1;
		req->cursor[0] = dev.ifindex;
	}
	return 0;
}

/* Flags: 0 in ifi_change stands for all of them, as in old programs. */
static int
link_parse_flags(struct netlink_request *req, const struct ifinfomsg *ifi,
	const struct netlink_dev *dev, struct netlink_dev_change *change)
{
	unsigned int now = link_flags(dev), mask = ifi->ifi_change, want, other;

	if (ifi->ifi_flags == 0 && mask == 0)
		return 0;
	if (mask == 0 || mask == ~0u)
		/* programs that set all flags seldom know of multicast */
		mask = LINK_FLAGS_LINUX & ~(unsigned int)IFF_MULTICAST;
	want = (ifi->ifi_flags & mask) | (now & ~mask);
	other = (want ^ now) & LINK_FLAGS_LINUX & ~(unsigned int)LINK_FLAGS_OURS;
	if (other != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL,
			"Interface flags 0x%x cannot be changed: only up, promisc and allmulticast",
			other);
	if (((want ^ now) & IFF_UP) != 0)
		change->set |= NETLINK_SET_UP;
	if (((want ^ now) & IFF_PROMISC) != 0)
		change->set |= NETLINK_SET_PROMISC;
	if (((want ^ now) & IFF_ALLMULTI) != 0)
		change->set |= NETLINK_SET_ALLMULTI;
	change->up = (want & IFF_UP) != 0;
	change->promisc = (want & IFF_PROMISC) != 0;
	change->allmulti = (want & IFF_ALLMULTI) != 0;
	return 0;
}

/* A name Linux would take: dev_valid_name(). */
static bool
link_name_valid(const char *name)
{
	if (name[0] == '\0' || strlen(name) >= IFNAMSIZ || strcmp(name, ".") == 0 ||
		strcmp(name, "..") == 0)
		return false;
	for (; *name != '\0'; name++)
		if (*name == '/' || *name == ':' || (unsigned char)*name <= ' ' || *name == 0x7f)
			return false;
	return true;
}

static int
link_parse_name(struct netlink_request *req, const struct nlattr *attr,
	const struct netlink_dev *dev, struct netlink_dev_change *change)
{
	const char *name = mnl_attr_get_str(attr);
	struct netlink_dev other = { 0 };

	if (strcmp(name, dev->name) == 0)
		return 0;
	if (!link_name_valid(name))
		return netlink_fail(req, -EINVAL, attr, "Not a valid interface name");
	while (req->conf->dev_ops->next(req->conf->dev_arg, other.ifindex, &other))
		if (strcmp(other.name, name) == 0)
			return netlink_fail(req, -EEXIST, attr, "Device \"%s\" exists", name);
	change->set |= NETLINK_SET_NAME;
	strlcpy(change->name, name, sizeof(change->name));
	return 0;
}

static int
link_parse_address(
	struct netlink_request *req, const struct nlattr *attr, struct netlink_dev_change *change)
{
	static const uint8_t none[NETLINK_ADDR_LEN];

	memcpy(change->address, mnl_attr_get_payload(attr), NETLINK_ADDR_LEN);
	if ((change->address[0] & 1) != 0 || memcmp(change->address, none, sizeof(none)) == 0)
		return netlink_fail(req, -EADDRNOTAVAIL, attr,
			"IFLA_ADDRESS must be a unicast address other than 00:00:00:00:00:00");
	change->set |= NETLINK_SET_ADDRESS;
	return 0;
}

static int
link_parse_mtu(struct netlink_request *req, const struct nlattr *attr,
	const struct netlink_dev *dev, struct netlink_dev_change *change)
{
	change->mtu = mnl_attr_get_u32(attr);
	if (change->mtu < dev->mtu_min)
		return netlink_fail(req, -EINVAL, attr, "mtu less than device minimum");
	if (dev->mtu_max != 0 && change->mtu > dev->mtu_max)
		return netlink_fail(req, -EINVAL, attr, "mtu greater than device maximum");
	change->set |= NETLINK_SET_MTU;
	return 0;
}

static int
link_parse_alias(
	struct netlink_request *req, const struct nlattr *attr, struct netlink_dev_change *change)
{
	const char *alias = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);

	if (len > 0 && alias[len - 1] == '\0')
		len--;
	if (memchr(alias, '\0', len) != NULL)
		return netlink_fail(req, -EINVAL, attr, "IFLA_IFALIAS holds a NUL");
	memcpy(change->alias, alias, len);
	change->alias[len] = '\0';
	change->set |= NETLINK_SET_ALIAS;
	return 0;
}

static int
link_parse_change(struct netlink_request *req, const struct ifinfomsg *ifi,
	const struct nlattr **tb, const struct netlink_dev *dev, struct netlink_dev_change *change)
{
	int ret;

	memset(change, 0, sizeof(*change));
	if ((ret = link_parse_flags(req, ifi, dev, change)) != 0)
		return ret;
	if (tb[IFLA_MTU] != NULL && (ret = link_parse_mtu(req, tb[IFLA_MTU], dev, change)) != 0)
		return ret;
	if (tb[IFLA_ADDRESS] != NULL &&
		(ret = link_parse_address(req, tb[IFLA_ADDRESS], change)) != 0)
		return ret;
	if (tb[IFLA_IFALIAS] != NULL &&
		(ret = link_parse_alias(req, tb[IFLA_IFALIAS], change)) != 0)
		return ret;
	if (tb[IFLA_IFNAME] != NULL &&
		(ret = link_parse_name(req, tb[IFLA_IFNAME], dev, change)) != 0)
		return ret;
	if (tb[IFLA_TXQLEN] != NULL) {
		change->txqueuelen = mnl_attr_get_u32(tb[IFLA_TXQLEN]);
		change->set |= NETLINK_SET_TXQUEUELEN;
	}
	return 0;
}

static int
link_change(struct netlink_request *req, const struct ifinfomsg *ifi, const struct nlattr **tb,
	const struct netlink_dev *dev)
{
	const struct netlink_conf *conf = req->conf;
	struct netlink_dev_change change;
	struct netlink_dev after;
	const char *why = NULL;
	int ret;

	if ((ret = link_parse_change(req, ifi, tb, dev, &change)) != 0)
		return ret;
	if (change.set == 0)
		return 0;
	if ((change.set & NETLINK_SET_TXQUEUELEN) != 0 &&
		(ret = tc_txqueuelen_changed(req, dev, change.txqueuelen)) != 0)
		return ret;
	ret = conf->dev_ops->change(conf->dev_arg, dev->ifindex, &change, &why);
	if (ret != 0) {
		if ((change.set & NETLINK_SET_TXQUEUELEN) != 0)
			(void)tc_txqueuelen_changed(req, dev, dev->txqueuelen);
		return netlink_fail(
			req, ret, NULL, "%s: %s", dev->name, why != NULL ? why : strerror(-ret));
	}
	if (netlink_dev_by_index(req, dev->ifindex, &after) == 0)
		link_notify(req->server, req, RTM_NEWLINK, &after,
			link_flags(dev) ^ link_flags(&after));
	return 0;
}

/*
 * RTM_NEWLINK and RTM_SETLINK. An RTM_NEWLINK that names nothing is how iproute2 asks whether the
 * message is known at all: it wants -ENODEV.
 */
static int
link_set(struct netlink_request *req)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(req->nlh);
	const struct nlattr *tb[IFLA_MAX + 1];
	struct netlink_dev dev;
	bool with_stats = true;
	int ret;

	if ((ret = netlink_parse(req, sizeof(*ifi), link_set_policy, RTE_DIM(link_set_policy), tb,
		     IFLA_MAX + 1)) != 0 ||
		(ret = link_ext_mask(req, tb, &with_stats)) != 0)
		return ret;
	if (ifi->ifi_index == 0 && tb[IFLA_IFNAME] == NULL && tb[IFLA_ALT_IFNAME] == NULL)
		return netlink_fail(req, -ENODEV, NULL, "No device is named");
	if ((ret = link_find(req, ifi, tb, &dev)) != 0) {
		if (ret == -ENODEV && (req->nlh->nlmsg_flags & NLM_F_CREATE) != 0)
			return netlink_fail(req, -EOPNOTSUPP, NULL,
				"Links cannot be made over this socket: attach a port");
		return ret;
	}
	if (tb[IFLA_ALT_IFNAME] != NULL && ifi->ifi_index > 0)
		return netlink_fail(req, -EOPNOTSUPP, tb[IFLA_ALT_IFNAME],
			"IFLA_ALT_IFNAME: alternative names are not supported");
	if (req->nlh->nlmsg_type == RTM_NEWLINK && (req->nlh->nlmsg_flags & NLM_F_EXCL) != 0)
		return netlink_fail(req, -EEXIST, NULL, "Device \"%s\" exists", dev.name);
	if (req->nlh->nlmsg_type == RTM_NEWLINK && (req->nlh->nlmsg_flags & NLM_F_REPLACE) != 0)
		return netlink_fail(req, -EOPNOTSUPP, NULL, "Links cannot be replaced");
	if (ifi->ifi_index == 0)
		tb[IFLA_IFNAME] = NULL; /* named the device: no renaming */
	return link_change(req, ifi, tb, &dev);
}

/* There is one namespace, and it has no number: iproute2 asks before it shows links. */
static int
link_get_nsid(struct netlink_request *req)
{
	struct rtgenmsg header = { .rtgen_family = AF_UNSPEC };
	struct netlink_put put;

	if (!netlink_put_begin(req, &put, RTM_NEWNSID, 0, &header, sizeof(header)))
		return -EMSGSIZE;
	netlink_put_u32(&put, NETNSA_NSID, (uint32_t)NETNSA_NSID_NOT_ASSIGNED);
	return netlink_put_end(req, &put) ? 0 : -EMSGSIZE;
}

static int
link_dump_nsid(struct netlink_request *req)
{
	(void)req;
	return 0;
}

static struct netlink_handler link_get_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETLINK,
	.header = sizeof(struct ifinfomsg),
	.doit = link_get,
	.dump = link_dump,
};
NETLINK_REGISTER_HANDLER(link_get_handler);

static struct netlink_handler link_new_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_NEWLINK,
	.header = sizeof(struct ifinfomsg),
	.doit = link_set,
};
NETLINK_REGISTER_HANDLER(link_new_handler);

static struct netlink_handler link_set_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_SETLINK,
	.header = sizeof(struct ifinfomsg),
	.doit = link_set,
};
NETLINK_REGISTER_HANDLER(link_set_handler);

static struct netlink_handler link_nsid_handler = {
	.protocol = NETLINK_ROUTE,
	.type = RTM_GETNSID,
	.header = sizeof(struct rtgenmsg),
	.doit = link_get_nsid,
	.dump = link_dump_nsid,
};
NETLINK_REGISTER_HANDLER(link_nsid_handler);
