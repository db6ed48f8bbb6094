/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Ports as devices of the control server: what `ip link` shows and changes. */

#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "app.h"
#include "forward/ip.h"
#include "port.h"

static struct port *
port_after(struct app *a, uint32_t ifindex)
{
	struct port *best = NULL;

	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++) {
		struct port *port = port_get(a, i);

		if (port != NULL && port->ifindex > ifindex &&
			(best == NULL || port->ifindex < best->ifindex))
			best = port;
	}
	return best;
}

static bool
device_next(void *arg, uint32_t after, struct netlink_dev *dev)
{
	struct port *port = port_after(arg, after);
	struct rte_ether_addr mac;
	uint16_t id, mtu = RTE_ETHER_MTU;

	if (port == NULL)
		return false;
	id = port->id;
	memset(dev, 0, sizeof(*dev));
	dev->ifindex = port->ifindex;
	strlcpy(dev->name, port->name, sizeof(dev->name));
	strlcpy(dev->alias, port->alias, sizeof(dev->alias));
	rte_eth_dev_get_name_by_port(id, dev->driver);
	if (rte_eth_macaddr_get(id, &mac) == 0)
		memcpy(dev->address, mac.addr_bytes, sizeof(dev->address));
	memcpy(dev->permanent, dev->address, sizeof(dev->permanent));
	rte_eth_dev_get_mtu(id, &mtu);
	dev->mtu = mtu;
	dev->mtu_min = port->info.min_mtu;
	dev->mtu_max = port->info.max_mtu;
	dev->txqueuelen = port->txqueuelen;
	dev->n_rxq = port->n_rxq;
	dev->n_txq = port->n_txq;
	dev->up = port_is_up(port);
	dev->carrier = port->carrier;
	dev->carrier_changes = port->carrier_changes;
	dev->promisc = rte_eth_promiscuous_get(id) == 1;
	dev->allmulti = rte_eth_allmulticast_get(id) == 1;
	dev->ingress = &port->ingress;
	dev->egress = &port->egress;
	dev->root = port->root;
	dev->sched = port->sched;
	return true;
}

static int
device_stats(void *arg, uint32_t ifindex, struct netlink_dev_stats *stats)
{
	struct app *a = arg;
	struct port *port = port_by_ifindex(a, ifindex);
	struct rte_eth_stats eth;
	uint64_t sent, refused;
	int ret;

	if (port == NULL)
		return -ENODEV;
	if ((ret = rte_eth_stats_get(port->id, &eth)) != 0)
		return ret;
	tx_sum(a, port, &sent, &refused);
	memset(stats, 0, sizeof(*stats));
	stats->rx_packets = eth.ipackets;
	stats->rx_bytes = eth.ibytes;
	stats->rx_errors = eth.ierrors;
	stats->rx_missed = eth.imissed;
	stats->rx_nombuf = eth.rx_nombuf;
	stats->rx_dropped = eth.imissed + eth.rx_nombuf;
	stats->tx_packets = eth.opackets;
	stats->tx_bytes = eth.obytes;
	stats->tx_errors = eth.oerrors;
	stats->tx_dropped = refused;
	return 0;
}

/* One thing at a time, each with the way back, so that a refusal leaves nothing changed. */
static int
change_mtu(struct port *port, uint32_t mtu, const char **why)
{
	int ret;

	if (mtu < port->info.min_mtu || (port->info.max_mtu != 0 && mtu > port->info.max_mtu)) {
		*why = "the driver's range does not include that MTU";
		return -EINVAL;
	}
	ret = rte_eth_dev_set_mtu(port->id, (uint16_t)mtu);
	if (ret == -ENOTSUP)
		*why = "the driver cannot change the MTU";
	else if (ret == -EBUSY)
		*why = "the driver changes the MTU only while the port is stopped";
	else if (ret != 0)
		*why = "the driver refused the MTU";
	return ret == -ENOTSUP ? -EOPNOTSUPP : ret;
}

static int
change_address(struct port *port, const uint8_t address[NETLINK_ADDR_LEN], const char **why)
{
	struct rte_ether_addr mac;
	int ret;

	memcpy(mac.addr_bytes, address, sizeof(mac.addr_bytes));
	if (!rte_is_valid_assigned_ether_addr(&mac)) {
		*why = "a device's address is neither zero nor a group address";
		return -EADDRNOTAVAIL;
	}
	ret = rte_eth_dev_default_mac_addr_set(port->id, &mac);
	if (ret == -ENOTSUP) {
		*why = "the driver cannot change the address";
		return -EOPNOTSUPP;
	}
	if (ret != 0)
		*why = "the driver refused the address";
	return ret;
}

static int
change_modes(struct port *port, const struct netlink_dev_change *c, const char **why)
{
	bool promisc = rte_eth_promiscuous_get(port->id) == 1;
	int ret = 0;

	if ((c->set & NETLINK_SET_PROMISC) != 0)
		ret = c->promisc ? rte_eth_promiscuous_enable(port->id)
				 : rte_eth_promiscuous_disable(port->id);
	if (ret == 0 && (c->set & NETLINK_SET_ALLMULTI) != 0)
		ret = c->allmulti ? rte_eth_allmulticast_enable(port->id)
				  : rte_eth_allmulticast_disable(port->id);
	if (ret != 0) {
		if (promisc)
			rte_eth_promiscuous_enable(port->id);
		else
			rte_eth_promiscuous_disable(port->id);
		*why = "the driver refused the receive mode";
		return ret == -ENOTSUP ? -EOPNOTSUPP : ret;
	}
	return 0;
}

static int
device_change(void *arg, uint32_t ifindex, const struct netlink_dev_change *c, const char **why)
{
	struct app *a = arg;
	struct port *port = port_by_ifindex(a, ifindex);
	struct rte_ether_addr old_mac;
	uint16_t old_mtu;
	int ret;

	*why = NULL;
	if (port == NULL)
		return -ENODEV;
	if ((c->set & NETLINK_SET_NAME) != 0) {
		struct port *other = port_by_name(a, c->name);

		if ((*why = port_name_check(c->name)) != NULL)
			return -EINVAL;
		if (other != NULL && other != port) {
			*why = "another device has that name";
			return -EEXIST;
		}
	}
	rte_eth_dev_get_mtu(port->id, &old_mtu);
	rte_eth_macaddr_get(port->id, &old_mac);
	if ((c->set & NETLINK_SET_MTU) != 0 && (ret = change_mtu(port, c->mtu, why)) != 0)
		return ret;
	if ((c->set & NETLINK_SET_ADDRESS) != 0 &&
		(ret = change_address(port, c->address, why)) != 0)
		goto back_mtu;
	if ((ret = change_modes(port, c, why)) != 0)
		goto back_address;
	/* What cannot fail comes last. */
	if ((c->set & NETLINK_SET_NAME) != 0)
		strlcpy(port->name, c->name, sizeof(port->name));
	if ((c->set & NETLINK_SET_TXQUEUELEN) != 0)
		port->txqueuelen = c->txqueuelen; /* the bands are the qdisc's, so the server's */
	if ((c->set & NETLINK_SET_ALIAS) != 0)
		strlcpy(port->alias, c->alias, sizeof(port->alias));
	if ((c->set & NETLINK_SET_UP) != 0)
		port_set_up(a, port, c->up);
	ip_port_changed(a, port);
	return 0;

back_address:
	if ((c->set & NETLINK_SET_ADDRESS) != 0)
		rte_eth_dev_default_mac_addr_set(port->id, &old_mac);
back_mtu:
	if ((c->set & NETLINK_SET_MTU) != 0)
		rte_eth_dev_set_mtu(port->id, old_mtu);
	return ret;
}

const struct netlink_dev_ops port_dev_ops = {
	.next = device_next,
	.stats = device_stats,
	.change = device_change,
};
