/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* netlink_save(): the control state as a file. */

#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
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

#include "classifier/flower.h"
#include "netlink/save.h"
#include "netlink/tc.h"

#define KEEP_MAX 9
#define LINK_FLAGS (IFF_UP | IFF_PROMISC | IFF_ALLMULTI)

/* What is kept of a message: its attributes at the top level that are state. */
struct part {
	uint16_t type;
	size_t header;
	uint16_t keep[KEEP_MAX];
};

static const struct part link_part = { RTM_NEWLINK, sizeof(struct ifinfomsg),
	{ IFLA_IFNAME, IFLA_MTU, IFLA_TXQLEN, IFLA_ADDRESS, IFLA_IFALIAS, IFLA_PARENT_DEV_NAME } };
static const struct part addr_part = { RTM_NEWADDR, sizeof(struct ifaddrmsg),
	{ IFA_ADDRESS, IFA_LOCAL, IFA_LABEL, IFA_BROADCAST, IFA_PROTO, IFA_FLAGS } };
static const struct part route_part = { RTM_NEWROUTE, sizeof(struct rtmsg),
	{ RTA_TABLE, RTA_DST, RTA_PRIORITY, RTA_METRICS, RTA_PREFSRC, RTA_GATEWAY, RTA_OIF,
		RTA_MULTIPATH, RTA_PREF } };
static const struct part neigh_part = { RTM_NEWNEIGH, sizeof(struct ndmsg),
	{ NDA_DST, NDA_LLADDR, NDA_PROTOCOL } };
static const struct part qdisc_part = { RTM_NEWQDISC, sizeof(struct tcmsg),
	{ TCA_KIND, TCA_OPTIONS, TCA_INGRESS_BLOCK, TCA_EGRESS_BLOCK } };
static const struct part chain_part = { RTM_NEWCHAIN, sizeof(struct tcmsg),
	{ TCA_CHAIN, TCA_KIND, TCA_OPTIONS } };
static const struct part action_part = { RTM_NEWACTION, sizeof(struct tcamsg), { TCA_ROOT_TAB } };
static const struct part filter_part = { RTM_NEWTFILTER, sizeof(struct tcmsg),
	{ TCA_KIND, TCA_CHAIN, TCA_OPTIONS } };

/* Where filters can stand. */
struct place {
	uint32_t ifindex, parent;
	struct classifier_block *block;
};

/* Filters of one priority, until all of them are known: they leave by rank. */
struct held {
	uint64_t rank;
	size_t off, number;
};

struct saver {
	struct netlink_server *server;
	FILE *out;
	uint32_t n;
	const struct place *at; /* what is dumped */
	struct place *places;
	size_t n_places, places_room;
	uint64_t prio; /* chain << 16 | priority of what is held */
	struct held *held;
	size_t n_held, held_room;
	uint8_t *bytes; /* their messages */
	size_t n_bytes, bytes_room;
	_Alignas(8) uint8_t message[NETLINK_MESSAGE_MAX];
};

/* errno as an error and as a sentence. */
static int
say_errno(char why[NETLINK_WHY_MAX])
{
	int err = errno != 0 ? -errno : -EIO;

	strlcpy(why, strerror(-err), NETLINK_WHY_MAX);
	return err;
}

/* Room for one more of `size` bytes each. */
static int
reserve(void *array, size_t *room, size_t want, size_t size)
{
	size_t n = *room == 0 ? 64 : *room;
	void *old, *grown;

	if (want <= *room)
		return 0;
	while (n < want)
		n *= 2;
	memcpy(&old, array, sizeof(old));
	if ((grown = reallocarray(old, n, size)) == NULL)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*room = n;
	return 0;
}

static const struct nlattr *
attr_find(const struct nlmsghdr *nlh, size_t header, uint16_t type)
{
	const struct nlattr *attr;

	const char *end = mnl_nlmsg_get_payload_tail(nlh);

	for (attr = mnl_nlmsg_get_payload_offset(nlh, header);
		mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

/* Makes s->message of what is to be kept. Its number comes when it is written. */
static struct nlmsghdr *
keep(struct saver *s, const struct nlmsghdr *nlh, const struct part *part)
{
	struct nlmsghdr *to = mnl_nlmsg_put_header(s->message);
	const struct nlattr *attr;

	to->nlmsg_type = part->type;
	to->nlmsg_flags = NLM_F_MULTI;
	memcpy(mnl_nlmsg_put_extra_header(to, part->header), mnl_nlmsg_get_payload(nlh),
		part->header);
	for (size_t i = 0; i < KEEP_MAX && part->keep[i] != 0; i++)
		if ((attr = attr_find(nlh, part->header, part->keep[i])) != NULL)
			mnl_attr_put(to, attr->nla_type, mnl_attr_get_payload_len(attr),
				mnl_attr_get_payload(attr));
	return to;
}

static int
write_message(struct saver *s, struct nlmsghdr *nlh)
{
	nlh->nlmsg_seq = ++s->n;
	return fwrite(nlh, NLMSG_ALIGN(nlh->nlmsg_len), 1, s->out) == 1 ? 0 : -errno;
}

/* Links. */

static int
link_each(void *arg, const struct nlmsghdr *nlh)
{
	struct saver *s = arg;
	struct nlmsghdr *to = keep(s, nlh, &link_part);
	struct ifinfomsg *ifi = mnl_nlmsg_get_payload(to);

	ifi->ifi_flags &= LINK_FLAGS;
	ifi->ifi_change = LINK_FLAGS;
	return write_message(s, to);
}

static int
save_links(struct saver *s, char why[NETLINK_WHY_MAX])
{
	_Alignas(8) uint8_t buffer[128];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);

	nlh->nlmsg_type = RTM_GETLINK;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	return netlink_local_dump(s->server, nlh, link_each, s, why);
}

/* Addresses, routes, neighbours. */

static int
addr_each(void *arg, const struct nlmsghdr *nlh)
{
	struct saver *s = arg;

	return write_message(s, keep(s, nlh, &addr_part));
}

/* Those of table local come back with the addresses. */
static int
route_each(void *arg, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct saver *s = arg;

	return rtm->rtm_table == RT_TABLE_MAIN ? write_message(s, keep(s, nlh, &route_part)) : 0;
}

static int
neigh_each(void *arg, const struct nlmsghdr *nlh)
{
	struct saver *s = arg;

	if (!netlink_neigh_is_part(mnl_nlmsg_get_payload(nlh)))
		return 0;
	return write_message(s, keep(s, nlh, &neigh_part));
}

static int
save_routing(struct saver *s, char why[NETLINK_WHY_MAX])
{
	static const struct {
		uint16_t type;
		size_t header;
		int (*each)(void *arg, const struct nlmsghdr *nlh);
	} dumps[] = {
		{ RTM_GETADDR, sizeof(struct ifaddrmsg), addr_each },
		{ RTM_GETROUTE, sizeof(struct rtmsg), route_each },
		{ RTM_GETNEIGH, sizeof(struct ndmsg), neigh_each },
	};
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < RTE_DIM(dumps); i++) {
		_Alignas(8) uint8_t buffer[128];
		struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);

		nlh->nlmsg_type = dumps[i].type;
		mnl_nlmsg_put_extra_header(nlh, dumps[i].header);
		ret = netlink_local_dump(s->server, nlh, dumps[i].each, s, why);
	}
	return ret;
}

/* Qdiscs, and the blocks of filters that they have. */

static int
tc_dump(struct saver *s, uint16_t type, const struct place *at,
	int (*each)(void *arg, const struct nlmsghdr *nlh), char why[NETLINK_WHY_MAX])
{
	_Alignas(8) uint8_t buffer[128];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));

	nlh->nlmsg_type = type;
	if (at != NULL) {
		tcm->tcm_ifindex = (int)at->ifindex;
		tcm->tcm_parent = at->parent;
	}
	s->at = at;
	return netlink_local_dump(s->server, nlh, each, s, why);
}

/* Notes the block that filters of `parent` stand in, if there is one, once. */
static int
note_place(struct saver *s, const struct nlmsghdr *nlh, uint32_t ifindex, uint32_t parent)
{
	struct tcmsg tcm = { .tcm_ifindex = (int)ifindex, .tcm_parent = parent };
	struct netlink_local local;
	struct tc_block *block;

	netlink_local_init(&local, s->server, nlh, NULL);
	if (tc_block_find(&local.req, &tcm, true, &block) != 0)
		return 0;
	for (size_t i = 0; i < s->n_places; i++)
		if (s->places[i].block == block->block)
			return 0;
	if (reserve(&s->places, &s->places_room, s->n_places + 1, sizeof(*s->places)) != 0)
		return -ENOMEM;
	s->places[s->n_places++] = block->shared != NULL
		? (struct place){ block->ifindex, block->parent, block->block }
		: (struct place){ ifindex, parent, block->block };
	return 0;
}

static int
qdisc_each(void *arg, const struct nlmsghdr *nlh)
{
	static const uint32_t minors[] = { 0, TC_H_MIN_INGRESS, TC_H_MIN_EGRESS };
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);
	struct saver *s = arg;
	int ret;

	if (tcm->tcm_handle == 0)
		return 0; /* comes with its device */
	for (size_t i = 0; i < RTE_DIM(minors); i++)
		if ((ret = note_place(s, nlh, (uint32_t)tcm->tcm_ifindex,
			     TC_H_MAKE(tcm->tcm_handle, minors[i]))) != 0)
			return ret;
	return write_message(s, keep(s, nlh, &qdisc_part));
}

/* Chains. Those that rules made come back with the rules. */

static int
chain_each(void *arg, const struct nlmsghdr *nlh)
{
	struct saver *s = arg;
	const struct nlattr *attr = attr_find(nlh, sizeof(struct tcmsg), TCA_CHAIN);
	uint32_t index = mnl_attr_get_u32(attr);
	const struct flower_match *template = classifier_chain_template(s->at->block, index);
	struct nlmsghdr *to;
	struct tcmsg *tcm;

	if (!classifier_chain_explicit(s->at->block, index))
		return 0;
	to = keep(s, nlh, &chain_part);
	tcm = mnl_nlmsg_get_payload(to);
	tcm->tcm_parent = s->at->parent; /* a dump names the qdisc alone, as Linux's does */
	/* nor the type of a template's outer tag */
	if (template != NULL)
		tcm->tcm_info = template->key.vlan_tpid;
	return write_message(s, to);
}

/* Actions. Those that rules made come back with the rules. */

static int
save_action(struct saver *s, const struct action *action, char why[NETLINK_WHY_MAX])
{
	_Alignas(8) uint8_t buffer[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct nlattr *list, *entry;
	int ret;

	nlh->nlmsg_type = RTM_GETACTION;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct tcamsg));
	list = mnl_attr_nest_start(nlh, TCA_ROOT_TAB);
	entry = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_strz(nlh, TCA_ACT_KIND, action->ops->kind);
	mnl_attr_put_u32(nlh, TCA_ACT_INDEX, action->index);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	if ((ret = netlink_local_request(s->server, nlh, NULL, why)) != 0)
		return ret;
	ret = write_message(
		s, keep(s, (const struct nlmsghdr *)(const void *)s->server->tx, &action_part));
	if (ret != 0)
		strlcpy(why, strerror(-ret), NETLINK_WHY_MAX);
	return ret;
}

static int
save_actions(struct saver *s, char why[NETLINK_WHY_MAX])
{
	struct action_table *table = s->server->conf.actions;
	const struct netlink_action_kind *kind = NULL;
	int ret;

	while ((kind = netlink_action_kind_next(kind)) != NULL) {
		const struct action *action = action_next(table, kind->ops, 1);

		while (action != NULL) {
			if (action->refs > action->binds &&
				(ret = save_action(s, action, why)) != 0)
				return ret;
			if (action->index == UINT32_MAX)
				break;
			action = action_next(table, kind->ops, action->index + 1);
		}
	}
	return 0;
}

/* Filters. */

static int
held_compare(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int
held_write(struct saver *s)
{
	int ret = 0;

	for (size_t i = 1; i < s->n_held; i++)
		if (s->held[i].rank < s->held[i - 1].rank) {
			qsort(s->held, s->n_held, sizeof(*s->held), held_compare);
			break;
		}
	for (size_t i = 0; ret == 0 && i < s->n_held; i++)
		ret = write_message(s, (struct nlmsghdr *)(void *)(s->bytes + s->held[i].off));
	s->n_held = s->n_bytes = 0;
	return ret;
}

static int
hold(struct saver *s, const struct nlmsghdr *nlh, uint64_t rank)
{
	size_t len = NLMSG_ALIGN(nlh->nlmsg_len);

	if (reserve(&s->held, &s->held_room, s->n_held + 1, sizeof(*s->held)) != 0 ||
		reserve(&s->bytes, &s->bytes_room, s->n_bytes + len, 1) != 0)
		return -ENOMEM;
	memcpy(s->bytes + s->n_bytes, nlh, len);
	s->held[s->n_held] = (struct held){ rank, s->n_bytes, s->n_held };
	s->n_held++;
	s->n_bytes += len;
	return 0;
}

static int
filter_each(void *arg, const struct nlmsghdr *nlh)
{
	struct saver *s = arg;
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *chain = attr_find(nlh, sizeof(*tcm), TCA_CHAIN);
	struct classifier_place place = { 0 };
	struct classifier_rule *rule;
	uint64_t prio;
	int ret;

	if (attr_find(nlh, sizeof(*tcm), TCA_OPTIONS) == NULL)
		return 0; /* the priority as such */
	place.chain = mnl_attr_get_u32(chain);
	place.prio = TC_H_MAJ(tcm->tcm_info) >> 16;
	place.handle = tcm->tcm_handle;
	prio = (uint64_t)place.chain << 16 | place.prio;
	if (prio != s->prio && (ret = held_write(s)) != 0)
		return ret;
	s->prio = prio;
	rule = classifier_rule_find(s->at->block, &place);
	return hold(s, keep(s, nlh, &filter_part), rule != NULL ? classifier_rule_rank(rule) : 0);
}

static int
save_filters(struct saver *s, char why[NETLINK_WHY_MAX])
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < s->n_places; i++) {
		ret = tc_dump(s, RTM_GETTFILTER, &s->places[i], filter_each, why);
		if (ret == 0 && (ret = held_write(s)) != 0)
			strlcpy(why, strerror(-ret), NETLINK_WHY_MAX);
	}
	return ret;
}

/* SAs and policies. */

static int
xfrm_each(void *arg, struct nlmsghdr *nlh)
{
	return write_message(arg, nlh);
}

/* The whole. */

static int
save_objects(struct saver *s, char why[NETLINK_WHY_MAX])
{
	int ret;

	if ((ret = save_links(s, why)) != 0 || (ret = save_routing(s, why)) != 0 ||
		(ret = tc_dump(s, RTM_GETQDISC, NULL, qdisc_each, why)) != 0)
		return ret;
	for (size_t i = 0; i < s->n_places; i++)
		if ((ret = tc_dump(s, RTM_GETCHAIN, &s->places[i], chain_each, why)) != 0)
			return ret;
	if ((ret = save_actions(s, why)) != 0 || (ret = save_filters(s, why)) != 0)
		return ret;
	return netlink_xfrm_save(s->server, xfrm_each, s, why);
}

static bool
write_frame(FILE *out, uint16_t type, const void *payload, size_t len)
{
	struct nlmsghdr nlh = { .nlmsg_len = (uint32_t)(NLMSG_HDRLEN + len),
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_MULTI };

	return fwrite(&nlh, sizeof(nlh), 1, out) == 1 && fwrite(payload, len, 1, out) == 1;
}

int
netlink_save_to(struct netlink_server *server, FILE *out, uint32_t *n, char why[NETLINK_WHY_MAX])
{
	struct netlink_save_header header = { .version = NETLINK_SAVE_VERSION };
	struct saver *s = calloc(1, sizeof(*s));
	const int done = 0;
	int ret;

	if (s == NULL)
		return say_errno(why);
	s->server = server;
	s->out = out;
	memcpy(header.magic, NETLINK_SAVE_MAGIC, sizeof(header.magic));
	if (!write_frame(out, NLMSG_NOOP, &header, sizeof(header)))
		ret = say_errno(why);
	else
		ret = save_objects(s, why);
	if (ret == 0 && (!write_frame(out, NLMSG_DONE, &done, sizeof(done)) || fflush(out) != 0))
		ret = say_errno(why);
	*n = s->n;
	free(s->places);
	free(s->held);
	free(s->bytes);
	free(s);
	return ret;
}

/* The file: the old one stays until the new one is on the disk. */

static int
fail(struct netlink_saved *saved, int err, const char *path, const char *why)
{
	snprintf(saved->text, sizeof(saved->text), "%s: %s", path, why);
	return err;
}

static int
write_file(struct netlink_server *server, int fd, struct netlink_saved *saved,
	char why[NETLINK_WHY_MAX])
{
	FILE *out = fdopen(fd, "w");
	int ret;

	if (out == NULL) {
		ret = say_errno(why);
		close(fd);
		return ret;
	}
	ret = netlink_save_to(server, out, &saved->objects, why);
	if (ret == 0 && fsync(fd) != 0)
		ret = say_errno(why);
	if (fclose(out) != 0 && ret == 0)
		ret = say_errno(why);
	return ret;
}

/* So that the new name outlives a crash; where a file system cannot do that, it is not asked for.
 */
static void
sync_directory(char *path)
{
	int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

static int
save_file(struct netlink_server *server, const char *path, struct netlink_saved *saved)
{
	char why[NETLINK_WHY_MAX] = "", *temporary;
	int fd, ret;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return fail(saved, -ENOMEM, path, strerror(ENOMEM));
	if ((fd = mkostemp(temporary, O_CLOEXEC)) < 0) {
		ret = fail(saved, -errno, path, strerror(errno));
		free(temporary);
		return ret;
	}
	ret = write_file(server, fd, saved, why);
	if (ret == 0 && rename(temporary, path) != 0)
		ret = say_errno(why);
	if (ret != 0) {
		unlink(temporary);
		fail(saved, ret, path, why);
	} else {
		sync_directory(temporary);
	}
	free(temporary);
	return ret;
}

int
netlink_save(struct netlink_server *server, const char *path, struct netlink_saved *saved)
{
	char *target = realpath(path, NULL); /* a symbolic link stays one */
	struct stat st;
	int ret;

	memset(saved, 0, sizeof(*saved));
	if (target != NULL && stat(target, &st) == 0 && !S_ISREG(st.st_mode))
		ret = fail(saved, -EINVAL, path, "not a regular file");
	else
		ret = save_file(server, target != NULL ? target : path, saved);
	free(target);
	return ret;
}
