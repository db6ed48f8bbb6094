/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * Asks a running millrace for changes at a steady rate, with requests prepared beforehand.
 *
 * netlink_load -s SOCKET [-i ifindex] [-k csum|matchall|flower|aside|link]
 *
 * csum:     RTM_NEWACTION replaces the parameters of action csum index 1, in turns with two sets
 * matchall: RTM_NEWTFILTER replaces a matchall rule on ingress, each time with an action of its own
 * flower:   a flower rule on ingress with an action of its own comes, or goes
 * aside:    the same in a chain to which no packet goes
 * link:     RTM_NEWLINK that changes nothing
 *
 * A line "COUNT RATE" on standard input is a run: so many requests, each begun when it is due at
 * RATE a second (0: as soon as the one before is answered) and acknowledged before the next. It is
 * answered by a line of JSON: how many were refused, how long they took from send() to the ack, how
 * many began more than one period late, and this program's own processor time, all in us.
 */

#include <arpa/inet.h>
#include <bsd/stdlib.h>
#include <err.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_csum.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "netlink/ctl.h"

#define RUN_MAX 1000000
#define REQUESTS 2
#define ASIDE 99 /* the chain */
#define NS 1000000000

struct request {
	_Alignas(8) uint8_t data[512];
	size_t len;
};

static const uint32_t csum_flags[REQUESTS] = {
	TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_UDP,
	TCA_CSUM_UPDATE_FLAG_IPV4HDR | TCA_CSUM_UPDATE_FLAG_UDP | TCA_CSUM_UPDATE_FLAG_TCP,
};

static int64_t
now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

/* A list of one action csum. */
static void
put_csum(struct nlmsghdr *nlh, uint16_t list_type, uint32_t index, uint32_t flags)
{
	struct tc_csum parm = { .index = index, .action = TC_ACT_PIPE, .update_flags = flags };
	struct nlattr *list = mnl_attr_nest_start(nlh, list_type);
	struct nlattr *entry = mnl_attr_nest_start(nlh, 1), *options;

	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "csum");
	options = mnl_attr_nest_start(nlh, TCA_ACT_OPTIONS);
	mnl_attr_put(nlh, TCA_CSUM_PARMS, sizeof(parm), &parm);
	mnl_attr_nest_end(nlh, options);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
}

static struct nlmsghdr *
begin(struct request *r, uint16_t type)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(r->data);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
	return nlh;
}

static void
prepare_csum(struct request *r, uint32_t flags)
{
	struct nlmsghdr *nlh = begin(r, RTM_NEWACTION);

	mnl_nlmsg_put_extra_header(nlh, sizeof(struct tcamsg));
	put_csum(nlh, TCA_ACT_TAB, 1, flags);
	r->len = nlh->nlmsg_len;
}

static void
prepare_matchall(struct request *r, int ifindex, uint32_t flags)
{
	struct nlmsghdr *nlh = begin(r, RTM_NEWTFILTER);
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));
	struct nlattr *options;

	tcm->tcm_ifindex = ifindex;
	tcm->tcm_handle = 1;
	tcm->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);
	tcm->tcm_info = TC_H_MAKE(1u << 16, htons(ETH_P_ALL));
	mnl_attr_put_strz(nlh, TCA_KIND, "matchall");
	options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
	put_csum(nlh, TCA_MATCHALL_ACT, 0, flags);
	mnl_attr_nest_end(nlh, options);
	r->len = nlh->nlmsg_len;
}

/* A rule with an action of its own comes, or goes. */
static void
prepare_flower(struct request *r, int ifindex, uint32_t chain, bool add)
{
	struct nlmsghdr *nlh = begin(r, add ? RTM_NEWTFILTER : RTM_DELTFILTER);
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));
	struct nlattr *options;

	tcm->tcm_ifindex = ifindex;
	tcm->tcm_handle = 1;
	tcm->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);
	tcm->tcm_info = TC_H_MAKE(2u << 16, htons(ETH_P_IP));
	mnl_attr_put_strz(nlh, TCA_KIND, "flower");
	if (chain != 0)
		mnl_attr_put_u32(nlh, TCA_CHAIN, chain);
	if (add) {
		options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
		mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_ETH_TYPE, htons(ETH_P_IP));
		mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_DST, htonl(0xc6336401));
		put_csum(nlh, TCA_FLOWER_ACT, 0, csum_flags[0]);
		mnl_attr_nest_end(nlh, options);
	}
	r->len = nlh->nlmsg_len;
}

static void
prepare_link(struct request *r, int ifindex)
{
	struct nlmsghdr *nlh = begin(r, RTM_NEWLINK);
	struct ifinfomsg *ifi;

	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = ifindex;
	r->len = nlh->nlmsg_len;
}

static int
open_control(const char *path)
{
	struct netlink_ctl ctl = {
		.nlh = { .nlmsg_len = sizeof(ctl), .nlmsg_type = NETLINK_CTL_HELLO },
		.arg = { NETLINK_CTL_VERSION, NETLINK_ROUTE, (uint32_t)getpid() },
	};
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(addr.sun_path))
		errx(1, "%s: the name is too long for a socket", path);
	memcpy(addr.sun_path, path, strlen(path));
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0)
		err(1, "%s", path);
	/* The descriptor that comes with the answer is of no use here: it is closed with it. */
	if (send(fd, &ctl, sizeof(ctl), 0) != (ssize_t)sizeof(ctl) ||
		recv(fd, &ctl, sizeof(ctl), 0) != (ssize_t)sizeof(ctl))
		err(1, "%s: hello", path);
	if (ctl.arg[0] != 0)
		errx(1, "%s: hello: %s", path, strerror(-(int)ctl.arg[0]));
	return fd;
}

/* Sends one and waits for its ack: 0 or -errno of it. */
static int
ask(int fd, const struct request *r)
{
	static _Alignas(8) uint8_t buf[4096];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)(void *)buf;

	if (send(fd, r->data, r->len, 0) != (ssize_t)r->len)
		err(1, "send");
	if (recv(fd, buf, sizeof(buf), 0) < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
		nlh->nlmsg_type != NLMSG_ERROR)
		errx(1, "the server left, or answered with something that is no ack");
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error;
}

static void
wait_until(int64_t due)
{
	struct timespec t = { .tv_sec = due / NS, .tv_nsec = due % NS };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static int
by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double
percentile_us(const int64_t *sorted, unsigned int n, double share)
{
	return (double)sorted[(unsigned int)((n - 1) * share)] * 1e-3;
}

static void
run(int fd, const struct request *requests, unsigned int n, unsigned int rate)
{
	static int64_t took[RUN_MAX];
	int64_t period = rate != 0 ? NS / rate : 0, begun, cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	int64_t start = now(CLOCK_MONOTONIC);
	unsigned int failed = 0, late = 0;

	for (unsigned int i = 0; i < n; i++) {
		int64_t due = start + i * period;

		if (rate != 0 && now(CLOCK_MONOTONIC) < due)
			wait_until(due);
		begun = now(CLOCK_MONOTONIC);
		late += rate != 0 && begun > due + period;
		failed += ask(fd, &requests[i % REQUESTS]) != 0;
		took[i] = now(CLOCK_MONOTONIC) - begun;
	}
	begun = now(CLOCK_MONOTONIC) - start;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	qsort(took, n, sizeof(took[0]), by_value);
	printf("{\"requests\": %u, \"failed\": %u, \"late\": %u, \"seconds\": %.4f, "
	       "\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"client_us\": %.2f}\n",
		n, failed, late, (double)begun * 1e-9, percentile_us(took, n, 0.5),
		percentile_us(took, n, 0.99), percentile_us(took, n, 1), (double)cpu * 1e-3 / n);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static const char usage[] =
		"usage: netlink_load -s SOCKET [-i ifindex] [-k csum|matchall|flower|aside|link]";
	struct request requests[REQUESTS] = { 0 };
	const char *path = NULL, *kind = "csum", *wrong = NULL;
	unsigned int n, rate;
	char line[64];
	int c, ifindex = 1, fd;

	while ((c = getopt(argc, argv, "s:i:k:")) != -1) {
		if (c == 's')
			path = optarg;
		else if (c == 'i')
			ifindex = (int)strtonum(optarg, 1, INT_MAX, &wrong);
		else if (c == 'k')
			kind = optarg;
		else
			errx(1, "%s", usage);
	}
	if (wrong != NULL)
		errx(1, "-i: the interface index is %s", wrong);
	if (path == NULL || optind != argc)
		errx(1, "%s", usage);
	for (unsigned int i = 0; i < REQUESTS; i++) {
		if (strcmp(kind, "csum") == 0)
			prepare_csum(&requests[i], csum_flags[i]);
		else if (strcmp(kind, "flower") == 0)
			prepare_flower(&requests[i], ifindex, 0, i % 2 == 0);
		else if (strcmp(kind, "aside") == 0)
			prepare_flower(&requests[i], ifindex, ASIDE, i % 2 == 0);
		else if (strcmp(kind, "link") == 0)
			prepare_link(&requests[i], ifindex);
		else if (strcmp(kind, "matchall") == 0)
			prepare_matchall(&requests[i], ifindex, csum_flags[i]);
		else
			errx(1, "%s", usage);
	}
	/* A sleep ends when it is due, not up to 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	fd = open_control(path);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "%u %u", &n, &rate) != 2 || n < 1 || n > RUN_MAX)
			errx(1, "a run is COUNT (1 to %d) and RATE, not: %s", RUN_MAX, line);
		run(fd, requests, n, rate);
	}
	close(fd);
	return 0;
}
