/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Devices are the caller's; messages name them by index or by name. */

#include <errno.h>
#include <string.h>

#include "netlink/server.h"

uint32_t
netlink_devmap_find(const struct netlink_devmap *map, uint32_t theirs)
{
	for (uint32_t i = 0; i < map->n; i++)
		if (map->dev[i].theirs == theirs)
			return map->dev[i].ours;
	return 0;
}

int
netlink_dev_by_index(struct netlink_request *req, uint32_t ifindex, struct netlink_dev *dev)
{
	const struct netlink_conf *conf = req->conf;
	uint32_t ours = ifindex;

	if (req->devmap != NULL)
		ours = netlink_devmap_find(req->devmap, ifindex);
	if (ours > 0 && conf->dev_ops->next(conf->dev_arg, ours - 1, dev) && dev->ifindex == ours)
		return 0;
	return netlink_fail(req, -ENODEV, NULL, "Cannot find device with index %u", ifindex);
}

int
netlink_dev_by_name(struct netlink_request *req, const char *name, struct netlink_dev *dev)
{
	const struct netlink_conf *conf = req->conf;

	dev->ifindex = 0;
	while (conf->dev_ops->next(conf->dev_arg, dev->ifindex, dev))
		if (strcmp(dev->name, name) == 0)
			return 0;
	return netlink_fail(req, -ENODEV, NULL, "Cannot find device \"%s\"", name);
}
