/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Devices are the caller's; messages name them by index or by name. */

#include <errno.h>
#include <string.h>

#include "netlink/server.h"

int
netlink_dev_by_index(struct netlink_request *req, uint32_t ifindex, struct netlink_dev *dev)
{
	const struct netlink_conf *conf = req->conf;

	if (ifindex > 0 && conf->dev_ops->next(conf->dev_arg, ifindex - 1, dev) &&
		dev->ifindex == ifindex)
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
