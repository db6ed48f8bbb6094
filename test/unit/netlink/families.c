/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rte_rcu_qsbr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "classifier/gact.h"
#include "classifier/mirred.h"
#include "classifier/pedit.h"
#include "classifier/police.h"
#include "classifier/skbedit.h"
#include "classifier/vlan.h"
#include "csum_action/csum_action.h"
#include "families.h"
#include "ipsec_cache/ipsec_cache.h"
#include "netlink/ctl.h"
#include "support.h"

#define DATAGRAM 65536
#define SNAPSHOT (1024 * 1024)
#define TM_LEN (NLA_HDRLEN + 32) /* struct tcf_t: ages, which differ from second to second */

static uint16_t
dev_tx(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static void
dev_drop(void *arg, struct rte_mbuf **pkts, uint16_t n)
{
	(void)arg;
	rte_pktmbuf_free_bulk(pkts, n);
}

static void
dev_create(struct families *f, unsigned int i)
{
	struct families_dev *d = &f->devs[i];
	struct netlink_dev *dev = &d->dev;
	struct sched_nolock_conf conf;

	dev->ifindex = i + 1;
	snprintf(dev->name, sizeof(dev->name), "p%u", i);
	strlcpy(dev->driver, "net_test", sizeof(dev->driver));
	memcpy(dev->address, (uint8_t[]){ 2, 0, 0, 0, 0, (uint8_t)(i + 1) }, NETLINK_ADDR_LEN);
	memcpy(dev->permanent, dev->address, NETLINK_ADDR_LEN);
	dev->mtu = 1500;
	dev->mtu_min = 68;
	dev->mtu_max = 9000;
	dev->txqueuelen = 1000;
	dev->n_rxq = 1;
	dev->n_txq = (uint16_t)(i + 1);
	dev->up = dev->carrier = true;
	dev->ingress = &d->ingress;
	dev->egress = &d->egress;
	dev->root = d->root;
	dev->sched = d->sched;
	d->present = true;
	for (unsigned int q = 0; q < dev->n_txq; q++) {
		sched_nolock_conf_pfifo_fast(&conf);
		conf.n_workers = 1;
		conf.tx = dev_tx;
		conf.drop = dev_drop;
		conf.rcu = f->rcu;
		conf.bypass = true;
		conf.priority_offset = conf.class_offset = -1;
		conf.socket = -1;
		d->sched[q] = sched_nolock_create(&conf);
		assert_non_null(d->sched[q]);
	}
}

static bool
dev_next(void *arg, uint32_t after, struct netlink_dev *dev)
{
	struct families *f = arg;

	for (unsigned int i = 0; i < FAMILIES_DEVS; i++) {
		if (!f->devs[i].present || f->devs[i].dev.ifindex <= after)
			continue;
		*dev = f->devs[i].dev;
		return true;
	}
	return false;
}

static int
dev_stats(void *arg, uint32_t ifindex, struct netlink_dev_stats *stats)
{
	struct families *f = arg;

	*stats = f->devs[ifindex - 1].stats;
	return 0;
}

static int
dev_change(void *arg, uint32_t ifindex, const struct netlink_dev_change *change, const char **why)
{
	struct families *f = arg;
	struct families_dev *d = &f->devs[ifindex - 1];
	struct netlink_dev *dev = &d->dev;
	int refuse = d->refuse;

	d->refuse = 0;
	if (refuse != 0) {
		*why = "the test says no";
		return refuse;
	}
	if ((change->set & NETLINK_SET_UP) != 0)
		dev->up = change->up;
	if ((change->set & NETLINK_SET_MTU) != 0)
		dev->mtu = change->mtu;
	if ((change->set & NETLINK_SET_ADDRESS) != 0)
		memcpy(dev->address, change->address, NETLINK_ADDR_LEN);
	if ((change->set & NETLINK_SET_TXQUEUELEN) != 0)
		dev->txqueuelen = change->txqueuelen;
	if ((change->set & NETLINK_SET_PROMISC) != 0)
		dev->promisc = change->promisc;
	if ((change->set & NETLINK_SET_ALLMULTI) != 0)
		dev->allmulti = change->allmulti;
	if ((change->set & NETLINK_SET_NAME) != 0)
		strlcpy(dev->name, change->name, sizeof(dev->name));
	if ((change->set & NETLINK_SET_ALIAS) != 0)
		strlcpy(dev->alias, change->alias, sizeof(dev->alias));
	return 0;
}

static const struct netlink_dev_ops dev_ops = {
	.next = dev_next,
	.stats = dev_stats,
	.change = dev_change,
};

static void
serve(struct families *f)
{
	struct pollfd pfd = { .fd = netlink_server_fd(f->server), .events = POLLIN };

	while (poll(&pfd, 1, 0) > 0)
		netlink_server_dispatch(f->server);
}

static void
ctl_send(struct families *f, int fd, uint16_t type, uint32_t a, uint32_t b, uint32_t c)
{
	struct netlink_ctl ctl = { .arg = { a, b, c } };

	ctl.nlh.nlmsg_len = sizeof(ctl);
	ctl.nlh.nlmsg_type = type;
	assert_int_equal(send(fd, &ctl, sizeof(ctl), 0), sizeof(ctl));
	serve(f);
}

int
families_connect(struct families *f, uint32_t groups)
{
	return families_connect_to(f, NETLINK_ROUTE, groups);
}

int
families_connect_to(struct families *f, int protocol, uint32_t groups)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct netlink_ctl ctl;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strlcpy(addr.sun_path, f->path, sizeof(addr.sun_path));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ctl_send(f, fd, NETLINK_CTL_HELLO, NETLINK_CTL_VERSION, (uint32_t)protocol, 0);
	/* without a control buffer the descriptor that comes along is closed */
	assert_int_equal(recv(fd, &ctl, sizeof(ctl), MSG_DONTWAIT), sizeof(ctl));
	assert_int_equal(ctl.arg[0], 0);
	ctl_send(f, fd, NETLINK_CTL_BIND, 0, groups, 0);
	ctl_send(f, fd, NETLINK_CTL_SETSOCKOPT, NETLINK_EXT_ACK, 1, 0);
	ctl_send(f, fd, NETLINK_CTL_RCVBUF, DATAGRAM, 0, 0);
	return fd;
}

static void
resolve(void *arg, uint8_t family, const void *dst, uint32_t hash, struct ipsec_cache_hop *hop)
{
	(void)family;
	(void)dst;
	(void)hash;
	*hop = (struct ipsec_cache_hop){
		.hop = arg, .ifindex = 1, .mtu = 1500, .kind = IPSEC_CACHE_HOP_FORWARD
	};
}

static struct ipsec_cache *
ipsec_create(struct families *f)
{
	struct ipsec_cache_conf conf = {
		.rcu = f->rcu,
		.n_workers = FAMILIES_WORKERS,
		.socket = -1,
		.meta_offset = -1,
		.arg = f,
		.resolve = resolve,
	};
	struct ipsec_cache *ic = ipsec_cache_create(&conf);

	assert_non_null(ic);
	return ic;
}

struct families *
families_create(const char *name)
{
	static unsigned int serial; /* a failed test leaves its socket behind */
	struct families *f = calloc(1, sizeof(*f));
	size_t size = rte_rcu_qsbr_get_memsize(1);
	struct netlink_conf conf = { .group = (gid_t)-1, .dev_ops = &dev_ops };

	assert_non_null(f);
	f->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(size, RTE_CACHE_LINE_SIZE));
	assert_non_null(f->qsbr);
	assert_int_equal(rte_rcu_qsbr_init(f->qsbr, 1), 0);
	f->rcu = rcu_create(f->qsbr);
	f->actions = action_table_create(f->rcu, 1);
	f->classifier = classifier_create(f->rcu, f->actions);
	assert_non_null(f->classifier);
	f->ipsec = ipsec_create(f);
	for (unsigned int i = 0; i < FAMILIES_DEVS; i++)
		dev_create(f, i);
	snprintf(f->path, sizeof(f->path), "/tmp/mr-%s-%d-%u", name, (int)getpid(), serial++);
	conf.path = f->path;
	conf.rcu = f->rcu;
	conf.actions = f->actions;
	conf.classifier = f->classifier;
	conf.ipsec = f->ipsec;
	conf.dev_arg = f;
	f->server = netlink_server_create(&conf, f->error, sizeof(f->error));
	if (f->server == NULL)
		fail_msg("%s", f->error);
	f->fd = families_connect(f, 0);
	return f;
}

void
families_destroy(struct families *f)
{
	const struct action_ops *kinds[] = { &gact_action_ops, &csum_action_ops, &mirred_action_ops,
		&skbedit_action_ops, &vlan_action_ops, &pedit_action_ops, &police_action_ops };

	close(f->fd);
	netlink_server_destroy(f->server);
	ipsec_cache_destroy(f->ipsec);
	for (unsigned int i = 0; i < FAMILIES_DEVS; i++) {
		assert_null(classifier_hook_block(&f->devs[i].ingress));
		assert_null(classifier_hook_block(&f->devs[i].egress));
		for (unsigned int q = 0; q < f->devs[i].dev.n_txq; q++) {
			assert_null(classifier_hook_block(&f->devs[i].root[q]));
			sched_nolock_destroy(f->devs[i].sched[q]);
		}
	}
	rcu_barrier(f->rcu);
	classifier_destroy(f->classifier);
	rcu_barrier(f->rcu);
	/* what stands there by itself stays until it is deleted; nothing may be bound any more */
	for (unsigned int k = 0; k < RTE_DIM(kinds); k++) {
		struct action *a;

		while ((a = action_next(f->actions, kinds[k], 1)) != NULL)
			assert_int_equal(action_del(a), 0);
	}
	action_table_destroy(f->actions);
	rcu_destroy(f->rcu);
	free(f->qsbr);
	free(f);
}

struct nlmsghdr *
families_message(struct families *f, void *buf, uint16_t type, uint16_t flags, size_t len)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++f->seq;
	mnl_nlmsg_put_extra_header(nlh, len);
	return nlh;
}

/* The error of an ack, its text kept. */
static int
ack_error(struct families *f, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	size_t off = sizeof(*err);
	const struct nlattr *attr;
	const char *end;

	f->error[0] = '\0';
	if ((nlh->nlmsg_flags & NLM_F_CAPPED) == 0 && err->error != 0)
		off += mnl_nlmsg_get_payload_len(nlh) >= sizeof(*err)
			? err->msg.nlmsg_len - sizeof(struct nlmsghdr)
			: 0;
	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) == 0)
		return err->error;
	attr = mnl_nlmsg_get_payload_offset(nlh, off);
	end = mnl_nlmsg_get_payload_tail(nlh);
	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr))
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG)
			strlcpy(f->error, mnl_attr_get_str(attr), sizeof(f->error));
	return err->error;
}

int
families_talk(struct families *f, const struct nlmsghdr *nlh, void *answer, size_t size,
	size_t *answer_len)
{
	bool dump = (nlh->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP && (nlh->nlmsg_type & 3) == 2;
	char *buf = malloc(DATAGRAM);
	int ret = 1;

	*answer_len = 0;
	assert_non_null(buf);
	assert_int_equal(send(f->fd, nlh, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	serve(f);
	for (;;) {
		ssize_t n = recv(f->fd, buf, DATAGRAM, MSG_DONTWAIT);
		int left = (int)n;

		if (n <= 0)
			break;
		for (const struct nlmsghdr *m = (void *)buf; mnl_nlmsg_ok(m, left);
			m = mnl_nlmsg_next(m, &left)) {
			assert_int_equal(m->nlmsg_seq, nlh->nlmsg_seq);
			if (m->nlmsg_type == NLMSG_ERROR) {
				ret = ack_error(f, m);
			} else if (m->nlmsg_type == NLMSG_DONE) {
				ret = *(const int *)mnl_nlmsg_get_payload(m);
			} else {
				assert_true(*answer_len + m->nlmsg_len <= size);
				memcpy((char *)answer + *answer_len, m, m->nlmsg_len);
				*answer_len += MNL_ALIGN(m->nlmsg_len);
			}
		}
		assert_int_equal(left, 0);
		serve(f);
	}
	free(buf);
	if (dump)
		assert_true(ret <= 0);
	return ret;
}

int
families_request(struct families *f, const struct nlmsghdr *nlh)
{
	char answer[4096];
	size_t len;
	int ret = families_talk(f, nlh, answer, sizeof(answer), &len);

	assert_true(ret <= 0);
	assert_int_equal(len, 0);
	return ret;
}

/* Sets ages, sequence numbers and port ids to zero. */
static void
mask(char *buf, size_t len)
{
	int left = (int)len;

	for (struct nlmsghdr *m = (void *)buf; mnl_nlmsg_ok(m, left);
		m = mnl_nlmsg_next(m, &left)) {
		m->nlmsg_seq = 0;
		m->nlmsg_pid = 0;
	}
	for (size_t i = 0; i + TM_LEN <= len; i += 4) {
		const struct nlattr *attr = (const void *)(buf + i);

		if (attr->nla_len == TM_LEN && attr->nla_type > 0 && attr->nla_type <= 6)
			memset(buf + i + NLA_HDRLEN, 0, TM_LEN - NLA_HDRLEN);
	}
}

struct dump {
	char *buf;
	size_t len;
};

static void
dump_add(struct families *f, struct dump *d, const struct nlmsghdr *nlh)
{
	size_t len;

	assert_int_equal(families_talk(f, nlh, d->buf + d->len, SNAPSHOT - d->len, &len), 0);
	d->len += len;
}

static void
dump_filters(struct families *f, struct dump *d, int ifindex, uint32_t parent)
{
	char buf[256];
	struct nlmsghdr *nlh =
		families_message(f, buf, RTM_GETTFILTER, NLM_F_DUMP, sizeof(struct tcmsg));
	struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

	tcm->tcm_ifindex = ifindex;
	tcm->tcm_parent = parent;
	dump_add(f, d, nlh);
}

static void
dump_actions(struct families *f, struct dump *d, const char *kind)
{
	char buf[256];
	struct nlmsghdr *nlh =
		families_message(f, buf, RTM_GETACTION, NLM_F_DUMP, sizeof(struct tcamsg));
	struct nlattr *list = mnl_attr_nest_start(nlh, TCA_ROOT_TAB);
	struct nlattr *entry = mnl_attr_nest_start(nlh, 1);

	mnl_attr_put_strz(nlh, TCA_ACT_KIND, kind);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	dump_add(f, d, nlh);
}

void *
families_snapshot(struct families *f, size_t *len)
{
	static const char *const kinds[] = { "gact", "csum", "mirred", "skbedit", "vlan", "pedit",
		"police" };
	struct dump d = { .buf = malloc(SNAPSHOT) };
	char buf[256];

	assert_non_null(d.buf);
	dump_add(
		f, &d, families_message(f, buf, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg)));
	dump_add(f, &d, families_message(f, buf, RTM_GETQDISC, NLM_F_DUMP, sizeof(struct tcmsg)));
	for (int i = 1; i <= FAMILIES_DEVS; i++) {
		dump_filters(f, &d, i, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS));
		dump_filters(f, &d, i, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS));
		dump_filters(f, &d, i, 0);
	}
	for (unsigned int k = 0; k < RTE_DIM(kinds); k++)
		dump_actions(f, &d, kinds[k]);
	mask(d.buf, d.len);
	*len = d.len;
	return d.buf;
}

bool
families_tools(void)
{
	const char *exec = getenv("MILLRACE_EXEC");

	return exec != NULL && access(exec, X_OK) == 0 &&
		system("command -v tc ip > /dev/null 2>&1") == 0;
}

/* What the child writes until it closes its end, served meanwhile. */
static size_t
serve_child(struct families *f, int fd, char *out, size_t size)
{
	struct pollfd pfds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = netlink_server_fd(f->server), .events = POLLIN },
	};
	size_t used = 0;
	ssize_t n = 1;

	while (n > 0) {
		assert_true(poll(pfds, 2, 10000) > 0);
		if (pfds[1].revents != 0)
			netlink_server_dispatch(f->server);
		if (pfds[0].revents == 0)
			continue;
		assert_true(used < size - 1);
		n = read(fd, out + used, size - 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	return used;
}

int
families_run(struct families *f, char *out, size_t size, const char *fmt, ...)
{
	char command[2048];
	int fds[2], n, status;
	va_list ap;
	pid_t pid;

	n = snprintf(command, sizeof(command), "exec %s -s %s ", getenv("MILLRACE_EXEC"), f->path);
	va_start(ap, fmt);
	vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, ap);
	va_end(ap);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fflush(NULL);
	if ((pid = fork()) == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	close(fds[1]);
	out[serve_child(f, fds[0], out, size)] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	serve(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
