/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nlsock.h"
#include "query.h"
#include "real.h"

#define ANSWER_MAX 32768

struct request {
	struct nlmsghdr nlh;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg addr;
	};
	struct nlattr attr;
	char name[IF_NAMESIZE];
};

static void
build(struct request *r, uint16_t type, uint32_t ifindex, const char *name)
{
	memset(r, 0, sizeof(*r));
	r->nlh.nlmsg_type = type;
	r->nlh.nlmsg_seq = 1;
	r->nlh.nlmsg_flags = NLM_F_REQUEST;
	if (ifindex == 0 && name == NULL)
		r->nlh.nlmsg_flags |= NLM_F_DUMP;
	r->nlh.nlmsg_len = NLMSG_LENGTH(
		type == RTM_GETADDR ? sizeof(struct ifaddrmsg) : sizeof(struct ifinfomsg));
	if (type == RTM_GETLINK)
		r->link.ifi_index = (int)ifindex;
	if (name == NULL)
		return;
	strncpy(r->name, name, sizeof(r->name) - 1);
	r->attr.nla_type = IFLA_IFNAME;
	r->attr.nla_len = (uint16_t)(sizeof(r->attr) + strlen(r->name) + 1);
	r->nlh.nlmsg_len += NLA_ALIGN(r->attr.nla_len);
}

/* 1: more is to come, 0: the end, -1: errno. */
static int
take(const uint8_t *data, size_t len, query_fn fn, void *arg)
{
	int err;

	while (len >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)data;

		if (nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > len)
			break;
		if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE) {
			if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(err)))
				break;
			memcpy(&err, nlh + 1, sizeof(err));
			errno = -err;
			return err == 0 ? 0 : -1;
		}
		if (!fn(arg, nlh))
			return -1;
		if ((nlh->nlmsg_flags & NLM_F_MULTI) == 0)
			return 0;
		if (NLMSG_ALIGN(nlh->nlmsg_len) >= len)
			return 1;
		data += NLMSG_ALIGN(nlh->nlmsg_len);
		len -= NLMSG_ALIGN(nlh->nlmsg_len);
	}
	errno = EPROTO;
	return -1;
}

int
query(uint16_t type, uint32_t ifindex, const char *name, query_fn fn, void *arg)
{
	int fd, r = -1, err;
	struct request req;
	uint8_t *buf;

	if ((fd = nlsock_open(SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) < 0)
		return -1;
	build(&req, type, ifindex, name);
	if ((buf = malloc(ANSWER_MAX)) != NULL &&
		send(fd, &req, req.nlh.nlmsg_len, 0) == (ssize_t)req.nlh.nlmsg_len) {
		do {
			ssize_t n = recv(fd, buf, ANSWER_MAX, 0);

			if (n < 0 && errno == EINTR)
				r = 1;
			else if (n <= 0)
				r = -1;
			else
				r = take(buf, (size_t)n, fn, arg);
		} while (r > 0);
	}
	err = errno;
	free(buf);
	close(fd);
	errno = err;
	return r;
}

const void *
query_attr(const struct nlmsghdr *nlh, size_t header, uint16_t type, size_t *len)
{
	size_t off = NLMSG_SPACE(header);

	while (off + sizeof(struct nlattr) <= nlh->nlmsg_len) {
		const struct nlattr *attr =
			(const struct nlattr *)(const void *)((const uint8_t *)nlh + off);

		if (attr->nla_len < sizeof(*attr) || attr->nla_len > nlh->nlmsg_len - off)
			break;
		if ((attr->nla_type & NLA_TYPE_MASK) == type) {
			*len = attr->nla_len - sizeof(*attr);
			return attr + 1;
		}
		off += NLA_ALIGN(attr->nla_len);
	}
	return NULL;
}
