/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* netlink_restore(): a saved state takes the place of the one that is. */

#include <bsd/string.h>
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netlink/save.h"
#include "netlink/tc.h"
#include "route/route.h"

#define HEADER_LEN (NLMSG_HDRLEN + sizeof(struct netlink_save_header))
#define BUS_NAME_MAX 256

/* A saved state in memory. `data` is changed where messages become requests. */
struct image {
	uint8_t *data;
	size_t len;
	size_t first, end; /* where its messages are */
	struct netlink_devmap *devmap;
};

struct restore {
	struct netlink_server *server;
	struct netlink_saved *saved;
	char why[NETLINK_WHY_MAX];
	uint32_t number; /* of the message in question; 0: none */
	uint16_t type;
};

static const struct netlink_attr_policy link_policy[] = {
	{ IFLA_ADDRESS, "IFLA_ADDRESS", NETLINK_ATTR_BINARY, NETLINK_ADDR_LEN, NETLINK_ADDR_LEN },
	{ IFLA_IFNAME, "IFLA_IFNAME", NETLINK_ATTR_STRING, 1, IF_NAMESIZE },
	{ IFLA_MTU, "IFLA_MTU", NETLINK_ATTR_U32 },
	{ IFLA_TXQLEN, "IFLA_TXQLEN", NETLINK_ATTR_U32 },
	{ IFLA_IFALIAS, "IFLA_IFALIAS", NETLINK_ATTR_STRING, 0, NETLINK_ALIAS_MAX },
	{ IFLA_PARENT_DEV_NAME, "IFLA_PARENT_DEV_NAME", NETLINK_ATTR_STRING, 1, BUS_NAME_MAX },
};

static int
fail(struct restore *r, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int
fail(struct restore *r, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return err;
}

static struct nlmsghdr *
message_at(const struct image *image, size_t off)
{
	return (struct nlmsghdr *)(void *)(image->data + off);
}

#define FOREACH_MESSAGE(image, off, nlh) \
	for ((off) = (image)->first; \
		(off) < (image)->end && ((nlh) = message_at(image, off), true); \
		(off) += NLMSG_ALIGN((nlh)->nlmsg_len))

static void
image_free(struct image *image)
{
	if (image->data != NULL)
		explicit_bzero(image->data, image->len); /* keys */
	free(image->data);
	free(image->devmap);
}

/* Reading. */

static int
image_read(struct restore *r, struct image *image, int fd)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0)
		return fail(r, -errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(r, -EINVAL, "not a regular file");
	if ((image->data = malloc((size_t)st.st_size + 1)) == NULL)
		return fail(r, -ENOMEM, "%s", strerror(ENOMEM));
	while (image->len < (size_t)st.st_size) {
		n = read(fd, image->data + image->len, (size_t)st.st_size - image->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(r, -errno, "%s", strerror(errno));
		if (n == 0)
			break;
		image->len += (size_t)n;
	}
	return 0;
}

static int
image_load(struct restore *r, struct image *image, const char *path)
{
	/* Not to wait for the other end of a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0)
		return fail(r, -errno, "%s", strerror(errno));
	ret = image_read(r, image, fd);
	close(fd);
	return ret;
}

/* The state as it is, to be put back. */
static int
image_take(struct restore *r, struct image *image)
{
	char *data = NULL;
	uint32_t n;
	FILE *out = open_memstream(&data, &image->len);
	int ret;

	if (out == NULL)
		return fail(r, -ENOMEM, "%s", strerror(ENOMEM));
	ret = netlink_save_to(r->server, out, &n, r->why);
	if (fclose(out) != 0 && ret == 0)
		ret = fail(r, -ENOMEM, "%s", strerror(ENOMEM));
	image->data = (uint8_t *)data;
	return ret;
}

/* Checks, before anything is touched. */

static int
check_header(struct restore *r, struct image *image)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)image->data;
	struct netlink_save_header header;

	if (image->len < HEADER_LEN)
		return fail(r, -EINVAL, "not a saved state");
	memcpy(&header, nlh + 1, sizeof(header));
	if (memcmp(header.magic, NETLINK_SAVE_MAGIC, sizeof(header.magic)) != 0)
		return fail(r, -EINVAL, "not a saved state");
	if (header.version == bswap_32(NETLINK_SAVE_VERSION))
		return fail(r, -EINVAL, "saved on a machine of the other byte order");
	if (header.version != NETLINK_SAVE_VERSION)
		return fail(r, -EINVAL, "saved in format %u, but this program reads format %u",
			header.version, NETLINK_SAVE_VERSION);
	if (nlh->nlmsg_len != HEADER_LEN || nlh->nlmsg_type != NLMSG_NOOP || header.zero != 0)
		return fail(r, -EINVAL, "its header is damaged");
	image->first = HEADER_LEN;
	return 0;
}

static bool
is_part(uint16_t type)
{
	return type == RTM_NEWLINK || type == RTM_NEWADDR || type == RTM_NEWROUTE ||
		type == RTM_NEWNEIGH || type == RTM_NEWQDISC || type == RTM_NEWCHAIN ||
		type == RTM_NEWACTION || type == RTM_NEWTFILTER || netlink_xfrm_is_part(type);
}

/* Of a message of either protocol. */
static const struct netlink_handler *
handler_of(uint16_t type)
{
	return netlink_xfrm_is_part(type)
		? netlink_handler_find(NETLINK_XFRM, (uint16_t)(type - NETLINK_SAVE_XFRM))
		: netlink_handler_find(NETLINK_ROUTE, type);
}

static const char *
name_of(uint16_t type)
{
	return netlink_xfrm_is_part(type)
		? netlink_type_name(NETLINK_XFRM, (uint16_t)(type - NETLINK_SAVE_XFRM))
		: netlink_type_name(NETLINK_ROUTE, type);
}

static bool
attrs_fit(const uint8_t *at, size_t left)
{
	size_t step;

	for (; left > 0; at += step, left -= step) {
		const struct nlattr *attr = (const struct nlattr *)(const void *)at;

		if (left < sizeof(*attr) || attr->nla_len < sizeof(*attr) || attr->nla_len > left)
			return false;
		step = RTE_MIN(left, (size_t)NLA_ALIGN(attr->nla_len));
	}
	return true;
}

/* The first attribute of `type` among those in there, which fit, or NULL. */
static const struct nlattr *
attr_find(const uint8_t *at, size_t left, uint16_t type)
{
	const struct nlattr *attr = (const struct nlattr *)(const void *)at;

	for (; mnl_attr_ok(attr, (int)(left - (size_t)((const uint8_t *)attr - at)));
		attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

/* An attribute that holds others; one that is not there fits. */
static bool
nest_fits(const struct nlattr *nest)
{
	return nest == NULL ||
		attrs_fit(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest));
}

static const struct nlattr *
nest_find(const struct nlattr *nest, uint16_t type)
{
	return nest == NULL
		? NULL
		: attr_find(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), type);
}

/* A list of actions, down to the attributes of each kind. */
static bool
actions_fit(const struct nlattr *list)
{
	const struct nlattr *entry;

	if (list == NULL)
		return true;
	if (!nest_fits(list))
		return false;
	for (entry = mnl_attr_get_payload(list);
		mnl_attr_ok(entry, (int)((const char *)list + list->nla_len - (const char *)entry));
		entry = mnl_attr_next(entry))
		if (!nest_fits(entry) || !nest_fits(nest_find(entry, TCA_ACT_OPTIONS)))
			return false;
	return true;
}

/*
 * Attributes, also those inside others, as far down as kinds are alike: damage is found before
 * anything is touched. What they mean is their handlers' business.
 */
static bool
contents_fit(const struct nlmsghdr *nlh, size_t header)
{
	const uint8_t *at = (const uint8_t *)nlh + NLMSG_HDRLEN + NLMSG_ALIGN(header);
	size_t left = nlh->nlmsg_len - NLMSG_HDRLEN - NLMSG_ALIGN(header);
	const struct netlink_filter_kind *kind = NULL;
	const struct nlattr *name, *options;

	if (!attrs_fit(at, left))
		return false;
	if (nlh->nlmsg_type == RTM_NEWACTION)
		return actions_fit(attr_find(at, left, TCA_ROOT_TAB));
	if (nlh->nlmsg_type != RTM_NEWTFILTER && nlh->nlmsg_type != RTM_NEWCHAIN)
		return true;
	name = attr_find(at, left, TCA_KIND);
	options = attr_find(at, left, TCA_OPTIONS);
	if (name != NULL && mnl_attr_validate(name, MNL_TYPE_NUL_STRING) == 0)
		kind = netlink_filter_kind_find(mnl_attr_get_str(name));
	return nest_fits(options) &&
		(kind == NULL || actions_fit(nest_find(options, kind->actions_type)));
}

static int
check_message(struct restore *r, const struct nlmsghdr *nlh, size_t left)
{
	const struct netlink_handler *handler;

	r->type = 0;
	if (left < sizeof(*nlh) || nlh->nlmsg_len < sizeof(*nlh))
		return fail(r, -EINVAL, "the file ends in it or is damaged");
	r->type = nlh->nlmsg_type;
	if (nlh->nlmsg_len > left)
		return fail(r, -EINVAL, "its length is %u where %zu bytes are left", nlh->nlmsg_len,
			left);
	if (nlh->nlmsg_type == NLMSG_DONE)
		return 0;
	handler = handler_of(nlh->nlmsg_type);
	if (!is_part(nlh->nlmsg_type) || handler == NULL)
		return fail(
			r, -EINVAL, "messages of type %u are no part of a state", nlh->nlmsg_type);
	if (nlh->nlmsg_len > NETLINK_MESSAGE_MAX ||
		nlh->nlmsg_len < NLMSG_HDRLEN + NLMSG_ALIGN(handler->header) ||
		nlh->nlmsg_len % NLMSG_ALIGNTO != 0)
		return fail(r, -EINVAL, "no such message has %u bytes", nlh->nlmsg_len);
	if (nlh->nlmsg_seq != r->number)
		return fail(r, -EINVAL, "it says that it is message %u", nlh->nlmsg_seq);
	if (!contents_fit(nlh, handler->header))
		return fail(r, -EINVAL, "an attribute does not fit into it");
	if (nlh->nlmsg_type == RTM_NEWNEIGH && !netlink_neigh_is_part(mnl_nlmsg_get_payload(nlh)))
		return fail(r, -EINVAL, "neighbours that were learnt are no part of a state");
	return 0;
}

/* Finds image->end, and that everything up to there is whole. */
static int
check_messages(struct restore *r, struct image *image, uint32_t *n_links)
{
	size_t off = image->first;
	int ret;

	*n_links = 0;
	for (r->number = 1;; r->number++) {
		const struct nlmsghdr *nlh = message_at(image, off);

		if (off == image->len) {
			r->number = 0;
			return fail(r, -EINVAL, "the end of the file is missing");
		}
		if ((ret = check_message(r, nlh, image->len - off)) != 0)
			return ret;
		image->end = off;
		off += NLMSG_ALIGN(nlh->nlmsg_len);
		if (nlh->nlmsg_type == NLMSG_DONE)
			break;
		*n_links += nlh->nlmsg_type == RTM_NEWLINK;
	}
	r->saved->objects = r->number - 1;
	r->number = 0;
	if (off < image->len)
		return fail(r, -EINVAL, "%zu bytes follow the end of the state", image->len - off);
	return 0;
}

static int
link_parse(struct restore *r, const struct nlmsghdr *nlh, const struct nlattr *tb[IFLA_MAX + 1])
{
	struct netlink_local local;
	int ret;

	netlink_local_init(&local, r->server, nlh, NULL);
	ret = netlink_parse(&local.req, sizeof(struct ifinfomsg), link_policy, RTE_DIM(link_policy),
		tb, IFLA_MAX + 1);
	if (ret == 0 && tb[IFLA_IFNAME] == NULL)
		ret = netlink_fail(&local.req, -EINVAL, NULL, "IFLA_IFNAME is missing");
	if (ret != 0)
		strlcpy(r->why, local.req.why, sizeof(r->why));
	return ret;
}

static uint32_t
dev_find(struct netlink_server *server, const char *name, bool bus)
{
	const struct netlink_conf *conf = &server->conf;
	struct netlink_dev dev = { 0 };

	while (conf->dev_ops->next(conf->dev_arg, dev.ifindex, &dev))
		if (strcmp(bus ? dev.driver : dev.name, name) == 0)
			return dev.ifindex;
	return 0;
}

static bool
dev_taken(const struct netlink_devmap *map, uint32_t ours)
{
	for (uint32_t i = 0; i < map->n; i++)
		if (map->dev[i].ours == ours)
			return true;
	return false;
}

/* Which device of ours a link is. Names are tried for all of them before bus names for any. */
static int
map_link(struct restore *r, const struct nlmsghdr *nlh, struct netlink_devmap *map, bool bus)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_MAX + 1];
	uint32_t theirs = (uint32_t)ifi->ifi_index, ours;
	const char *name;
	int ret;

	if ((ret = link_parse(r, nlh, tb)) != 0)
		return ret;
	name = mnl_attr_get_str(tb[IFLA_IFNAME]);
	ours = dev_find(r->server, name, false);
	if ((ours == 0) != bus)
		return 0;
	if (bus && tb[IFLA_PARENT_DEV_NAME] != NULL)
		ours = dev_find(r->server, mnl_attr_get_str(tb[IFLA_PARENT_DEV_NAME]), true);
	if (ours == 0 || (bus && dev_taken(map, ours)))
		return fail(r, -ENODEV, "there is no device \"%s\" here", name);
	if (ifi->ifi_index <= 0 || netlink_devmap_find(map, theirs) != 0 || dev_taken(map, ours))
		return fail(r, -EINVAL,
			"device \"%s\" or its index %d stands there twice, or is "
			"none",
			name, ifi->ifi_index);
	map->dev[map->n].theirs = theirs;
	map->dev[map->n].ours = ours;
	map->n++;
	return 0;
}

static int
map_links(struct restore *r, struct image *image, uint32_t n_links)
{
	struct nlmsghdr *nlh;
	size_t off;
	int ret;

	image->devmap = calloc(1, sizeof(*image->devmap) + n_links * sizeof(image->devmap->dev[0]));
	if (image->devmap == NULL)
		return fail(r, -ENOMEM, "%s", strerror(ENOMEM));
	for (unsigned int pass = 0; pass < 2; pass++)
		FOREACH_MESSAGE(image, off, nlh)
		{
			r->number = nlh->nlmsg_seq;
			r->type = nlh->nlmsg_type;
			if (nlh->nlmsg_type == RTM_NEWLINK &&
				(ret = map_link(r, nlh, image->devmap, pass == 1)) != 0)
				return ret;
		}
	r->number = 0;
	return 0;
}

/* The device that an object stands on, as the file counts them; 0: its attributes say. */
static uint32_t
device_of(const struct nlmsghdr *nlh)
{
	const void *header = mnl_nlmsg_get_payload(nlh);

	switch (nlh->nlmsg_type) {
	case RTM_NEWADDR:
		return ((const struct ifaddrmsg *)header)->ifa_index;
	case RTM_NEWNEIGH:
		return (uint32_t)((const struct ndmsg *)header)->ndm_ifindex;
	case RTM_NEWLINK:
	case RTM_NEWROUTE:
	case RTM_NEWACTION:
		return 0;
	default:
		return (uint32_t)((const struct tcmsg *)header)->tcm_ifindex;
	}
}

/* Filters and chains of blocks that qdiscs share have no device. */
static bool
on_shared_block(const struct nlmsghdr *nlh)
{
	return (nlh->nlmsg_type == RTM_NEWTFILTER || nlh->nlmsg_type == RTM_NEWCHAIN) &&
		device_of(nlh) == TCM_IFINDEX_MAGIC_BLOCK;
}

/* Devices that objects stand on must be in the file themselves. */
static int
check_devices(struct restore *r, const struct image *image)
{
	struct nlmsghdr *nlh;
	size_t off;

	FOREACH_MESSAGE(image, off, nlh)
	{
		uint32_t ifindex = device_of(nlh);

		if (netlink_xfrm_is_part(nlh->nlmsg_type) || nlh->nlmsg_type == RTM_NEWLINK ||
			nlh->nlmsg_type == RTM_NEWROUTE || nlh->nlmsg_type == RTM_NEWACTION ||
			on_shared_block(nlh) || netlink_devmap_find(image->devmap, ifindex) != 0)
			continue;
		r->number = nlh->nlmsg_seq;
		r->type = nlh->nlmsg_type;
		return fail(r, -ENODEV, "the file does not say which device has index %u", ifindex);
	}
	return 0;
}

static int
image_check(struct restore *r, struct image *image)
{
	uint32_t n_links;
	int ret;

	if ((ret = check_header(r, image)) != 0 ||
		(ret = check_messages(r, image, &n_links)) != 0 ||
		(ret = map_links(r, image, n_links)) != 0)
		return ret;
	return check_devices(r, image);
}

/* Taking away what is there. */

struct root {
	uint32_t ifindex, parent;
};

struct roots {
	struct root *root;
	size_t n;
};

static int
root_each(void *arg, const struct nlmsghdr *nlh)
{
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);
	struct roots *roots = arg;
	struct root *grown;

	/* leaves go with their root */
	if (tcm->tcm_handle == 0 ||
		(tcm->tcm_parent != TC_H_ROOT && tcm->tcm_parent != TC_H_INGRESS))
		return 0;
	grown = reallocarray(roots->root, roots->n + 1, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	roots->root = grown;
	grown[roots->n++] = (struct root){ (uint32_t)tcm->tcm_ifindex, tcm->tcm_parent };
	return 0;
}

static int
clear_qdiscs(struct restore *r)
{
	_Alignas(8) uint8_t buffer[64];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));
	struct roots roots = { 0 };
	int ret;

	nlh->nlmsg_type = RTM_GETQDISC;
	ret = netlink_local_dump(r->server, nlh, root_each, &roots, r->why);
	nlh->nlmsg_type = RTM_DELQDISC;
	for (size_t i = 0; ret == 0 && i < roots.n; i++) {
		tcm->tcm_ifindex = (int)roots.root[i].ifindex;
		tcm->tcm_parent = roots.root[i].parent;
		ret = netlink_local_request(r->server, nlh, NULL, r->why);
	}
	free(roots.root);
	return ret;
}

/* All of a kind; nothing is bound any more. */
static int
flush_actions(struct restore *r, const struct netlink_action_kind *kind)
{
	_Alignas(8) uint8_t buffer[128];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct nlattr *list, *entry;

	nlh->nlmsg_type = RTM_DELACTION;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ROOT;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct tcamsg));
	list = mnl_attr_nest_start(nlh, TCA_ROOT_TAB);
	entry = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_strz(nlh, TCA_ACT_KIND, kind->ops->kind);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	return netlink_local_request(r->server, nlh, NULL, r->why);
}

/* With the devices' addresses go their routes. What was learnt of neighbours stays. */
static void
clear_addresses(struct route_table *t)
{
	const struct route_address *a;

	while (t != NULL && (a = route_address_nth(t, 0)) != NULL) {
		struct route_address gone = *a;

		(void)route_address_del(t, gone.ifindex, gone.family, gone.addr, gone.len);
	}
}

static void
clear_routes(struct route_table *t)
{
	if (t == NULL)
		return;
	route_flush(t, AF_INET);
	route_flush(t, AF_INET6);
}

static void
clear_neighs(struct route_table *t)
{
	const struct route_neigh *n;
	struct route_neigh_info info;
	uint64_t at = 0;

	while (t != NULL && (n = route_neigh_next(t, &at)) != NULL) {
		route_neigh_describe(t, n, &info);
		if ((info.state & (NUD_PERMANENT | NUD_NOARP)) != 0 ||
			(info.flags & NTF_EXT_LEARNED) != 0)
			(void)route_neigh_del(t, info.ifindex, info.family, info.addr);
	}
}

static int
clear(struct restore *r)
{
	const struct netlink_conf *conf = &r->server->conf;
	const struct netlink_action_kind *kind = NULL;
	int ret;

	netlink_xfrm_clear(r->server);
	clear_routes(conf->route);
	clear_neighs(conf->route);
	if ((ret = clear_qdiscs(r)) != 0)
		return ret;
	/* Of very many rules a part lets go of its actions after a grace period only. */
	rcu_barrier(conf->rcu);
	while ((kind = netlink_action_kind_next(kind)) != NULL)
		if (action_count(conf->actions, kind->ops) != 0 &&
			(ret = flush_actions(r, kind)) != 0)
			return ret;
	return 0;
}

/* Links: one setting a request, those that differ; a driver that cannot is no error. */

static int
link_request(struct restore *r, struct nlmsghdr *nlh)
{
	char why[NETLINK_WHY_MAX];
	int ret;

	nlh->nlmsg_type = RTM_SETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if ((ret = netlink_local_request(r->server, nlh, NULL, why)) == -EOPNOTSUPP) {
		if (r->saved->left++ == 0)
			strlcpy(r->saved->text, why, sizeof(r->saved->text));
		return 0;
	}
	return ret == 0 ? 0 : fail(r, ret, "%s", why);
}

static int
link_set(struct restore *r, const struct netlink_dev *dev, uint16_t type, const void *data,
	size_t len)
{
	_Alignas(8) uint8_t buffer[64 + NETLINK_ALIAS_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	ifi->ifi_index = (int)dev->ifindex;
	mnl_attr_put(nlh, type, len, data);
	return link_request(r, nlh);
}

static int
link_set_flag(
	struct restore *r, const struct netlink_dev *dev, unsigned int flag, bool is, bool want)
{
	_Alignas(8) uint8_t buffer[64];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	if (is == want)
		return 0;
	ifi->ifi_index = (int)dev->ifindex;
	ifi->ifi_change = flag;
	ifi->ifi_flags = want ? flag : 0;
	return link_request(r, nlh);
}

static int
link_set_u32(
	struct restore *r, const struct netlink_dev *dev, const struct nlattr *attr, uint32_t is)
{
	if (attr == NULL || mnl_attr_get_u32(attr) == is)
		return 0;
	return link_set(r, dev, mnl_attr_get_type(attr), mnl_attr_get_payload(attr),
		mnl_attr_get_payload_len(attr));
}

static int
link_restore(struct restore *r, const struct image *image, const struct nlmsghdr *nlh)
{
	const struct netlink_conf *conf = &r->server->conf;
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	uint32_t ours = netlink_devmap_find(image->devmap, (uint32_t)ifi->ifi_index);
	const struct nlattr *tb[IFLA_MAX + 1];
	const char *name, *alias = "";
	struct netlink_dev dev;
	int ret;

	if ((ret = link_parse(r, nlh, tb)) != 0)
		return ret;
	if (!conf->dev_ops->next(conf->dev_arg, ours - 1, &dev) || dev.ifindex != ours)
		return fail(r, -ENODEV, "the device is gone");
	name = mnl_attr_get_str(tb[IFLA_IFNAME]);
	if (tb[IFLA_IFALIAS] != NULL)
		alias = mnl_attr_get_str(tb[IFLA_IFALIAS]);
	if ((strcmp(name, dev.name) != 0 &&
		    (ret = link_set(r, &dev, IFLA_IFNAME, name, strlen(name) + 1)) != 0) ||
		(strcmp(alias, dev.alias) != 0 &&
			(ret = link_set(r, &dev, IFLA_IFALIAS, alias, strlen(alias))) != 0) ||
		(ret = link_set_u32(r, &dev, tb[IFLA_MTU], dev.mtu)) != 0 ||
		(ret = link_set_u32(r, &dev, tb[IFLA_TXQLEN], dev.txqueuelen)) != 0)
		return ret;
	if (tb[IFLA_ADDRESS] != NULL &&
		memcmp(mnl_attr_get_payload(tb[IFLA_ADDRESS]), dev.address, NETLINK_ADDR_LEN) !=
			0 &&
		(ret = link_set(r, &dev, IFLA_ADDRESS, mnl_attr_get_payload(tb[IFLA_ADDRESS]),
			 NETLINK_ADDR_LEN)) != 0)
		return ret;
	if ((ret = link_set_flag(r, &dev, IFF_PROMISC, dev.promisc,
		     (ifi->ifi_flags & IFF_PROMISC) != 0)) != 0 ||
		(ret = link_set_flag(r, &dev, IFF_ALLMULTI, dev.allmulti,
			 (ifi->ifi_flags & IFF_ALLMULTI) != 0)) != 0)
		return ret;
	return link_set_flag(r, &dev, IFF_UP, dev.up, (ifi->ifi_flags & IFF_UP) != 0);
}

/* Making what an image says. */

/*
 * Links come first, since a link that goes up or down changes addresses and routes; then addresses,
 * in place of those that are there; then routes, in place of those that addresses brought.
 */
enum stage {
	STAGE_LINKS,
	STAGE_ADDRESSES,
	STAGE_OTHERS,
	STAGES
};

static enum stage
stage_of(const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_type == RTM_NEWLINK    ? STAGE_LINKS
		: nlh->nlmsg_type == RTM_NEWADDR ? STAGE_ADDRESSES
						 : STAGE_OTHERS;
}

static void
stage_begin(struct restore *r, enum stage stage)
{
	if (stage == STAGE_ADDRESSES)
		clear_addresses(r->server->conf.route);
	else if (stage == STAGE_OTHERS)
		clear_routes(r->server->conf.route);
}

/* Of IPv4 several may have one destination and metric, in their order. */
static uint16_t
request_flags(const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type == RTM_NEWROUTE && rtm->rtm_family == AF_INET)
		return NLM_F_CREATE | NLM_F_APPEND;
	if (nlh->nlmsg_type == RTM_NEWNEIGH)
		return NLM_F_CREATE | NLM_F_REPLACE;
	return NLM_F_CREATE | NLM_F_EXCL;
}

static int
apply_message(struct restore *r, const struct image *image, struct nlmsghdr *nlh)
{
	r->number = nlh->nlmsg_seq;
	r->type = nlh->nlmsg_type;
	if (nlh->nlmsg_type == RTM_NEWLINK)
		return link_restore(r, image, nlh);
	if (netlink_xfrm_is_part(nlh->nlmsg_type))
		return netlink_xfrm_restore(r->server, nlh, image->devmap, r->why);
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | request_flags(nlh);
	return netlink_local_request(r->server, nlh, image->devmap, r->why);
}

/* Up to the first error; with `lost` beyond it, the first one's reason in r->why. */
static int
apply(struct restore *r, const struct image *image, unsigned int *lost)
{
	char first[NETLINK_WHY_MAX] = "";
	struct nlmsghdr *nlh;
	bool defaults = false;
	size_t off;
	int ret;

	for (enum stage stage = STAGE_LINKS; stage < STAGES; stage++) {
		stage_begin(r, stage);
		FOREACH_MESSAGE(image, off, nlh)
		{
			defaults |= netlink_xfrm_is_default(nlh->nlmsg_type);
			if (stage_of(nlh) != stage || (ret = apply_message(r, image, nlh)) == 0)
				continue;
			if (lost == NULL)
				return ret;
			if ((*lost)++ == 0)
				strlcpy(first, r->why, sizeof(first));
		}
	}
	if (!defaults)
		netlink_xfrm_finish(r->server);
	strlcpy(r->why, first, sizeof(r->why));
	return 0;
}

/* One sentence: the file, the message, the reason. */
static int
report(struct restore *r, int err, const char *path)
{
	struct netlink_saved *saved = r->saved;
	const char *type = name_of(r->type);

	saved->left = 0;
	if (r->number == 0)
		snprintf(saved->text, sizeof(saved->text), "%s: %s", path, r->why);
	else
		snprintf(saved->text, sizeof(saved->text), "%s: message %u (%s): %s", path,
			r->number, type != NULL ? type : "of an unknown type", r->why);
	return err;
}

/*
 * Puts the state back that was there. What cannot be put back, for want of memory or of a device
 * that left meanwhile, is left out, and said.
 */
static void
put_back(struct restore *r, const struct image *before)
{
	char first[NETLINK_WHY_MAX] = "";
	struct netlink_saved none = { 0 };
	struct restore back = { .server = r->server, .saved = &none };
	unsigned int lost = 0;
	size_t len;

	if (clear(&back) != 0)
		strlcpy(first, back.why, sizeof(first));
	(void)apply(&back, before, &lost);
	if (first[0] == '\0')
		strlcpy(first, back.why, sizeof(first));
	if (first[0] == '\0')
		return;
	len = strlen(r->saved->text);
	snprintf(r->saved->text + len, sizeof(r->saved->text) - len,
		"; the state before is back but for %u objects: %s", lost, first);
}

int
netlink_restore(struct netlink_server *server, const char *path, struct netlink_saved *saved)
{
	struct restore r = { .server = server, .saved = saved };
	struct image image = { 0 }, before = { 0 };
	uint32_t n_before;
	int ret;

	memset(saved, 0, sizeof(*saved));
	if ((ret = image_load(&r, &image, path)) != 0 || (ret = image_check(&r, &image)) != 0) {
		report(&r, ret, path);
		goto out;
	}
	n_before = saved->objects;
	r.number = 0;
	if ((ret = image_take(&r, &before)) != 0 || (ret = image_check(&r, &before)) != 0) {
		r.number = 0;
		report(&r, ret, "the state as it is");
		goto out;
	}
	before.devmap->own = true;
	saved->objects = n_before;
	if ((ret = clear(&r)) == 0)
		ret = apply(&r, &image, NULL);
	if (ret != 0) {
		report(&r, ret, path);
		put_back(&r, &before);
	}
out:
	image_free(&image);
	image_free(&before);
	return ret;
}
