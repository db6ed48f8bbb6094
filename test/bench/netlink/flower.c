/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * What a flower rule costs the control server, from the socket to the classifier's tables:
 * processor time of the serving process for each.
 *
 * netlink_flower [-n rules] [-r rounds] [-o file.json]
 *
 * A child sends `rules` rules of one mask, each with an action of its own, sixteen a datagram; with
 * an ack for each, as the kernel gives them, or for the last alone. Medians of the rounds. A
 * request that is refused ends it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <err.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_gact.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/median.h"
#include "families.h"
#include "support.h"

#define BATCH 16
#define ROUNDS_MAX 101

static double
cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t
put_rule(uint8_t *to, uint32_t i, bool ack)
{
	struct tc_gact drop = { .action = TC_ACT_SHOT };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(to);
	struct tcmsg *tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));
	struct nlattr *options, *list, *entry, *inner;

	nlh->nlmsg_type = RTM_NEWTFILTER;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | (ack ? NLM_F_ACK : 0);
	nlh->nlmsg_seq = i;
	tcm->tcm_ifindex = 1;
	tcm->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);
	tcm->tcm_info = TC_H_MAKE(1u << 16, htons(ETH_P_IP));
	mnl_attr_put_strz(nlh, TCA_KIND, "flower");
	options = mnl_attr_nest_start(nlh, TCA_OPTIONS);
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_DST, htonl(0x0a000000 + i));
	mnl_attr_put_u32(nlh, TCA_FLOWER_KEY_IPV4_DST_MASK, UINT32_MAX);
	list = mnl_attr_nest_start(nlh, TCA_FLOWER_ACT);
	entry = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_strz(nlh, TCA_ACT_KIND, "gact");
	inner = mnl_attr_nest_start(nlh, TCA_ACT_OPTIONS);
	mnl_attr_put(nlh, TCA_GACT_PARMS, sizeof(drop), &drop);
	mnl_attr_nest_end(nlh, inner);
	mnl_attr_nest_end(nlh, entry);
	mnl_attr_nest_end(nlh, list);
	mnl_attr_put_u32(nlh, TCA_FLOWER_FLAGS, 0);
	mnl_attr_put_u16(nlh, TCA_FLOWER_KEY_ETH_TYPE, htons(ETH_P_IP));
	mnl_attr_nest_end(nlh, options);
	return nlh->nlmsg_len;
}

/* In the child. Refusals are acked always. */
static void
await(int fd, unsigned int acks)
{
	static _Alignas(8) uint8_t buf[65536];

	while (acks-- > 0) {
		const struct nlmsgerr *e = mnl_nlmsg_get_payload((struct nlmsghdr *)(void *)buf);

		if (recv(fd, buf, sizeof(buf), 0) <= 0 || e->error != 0)
			_exit(1);
	}
}

static void
client(int fd, uint32_t rules, bool each)
{
	static _Alignas(8) uint8_t data[65536];
	cpu_set_t any;

	/* EAL keeps the parent on one CPU. */
	memset(&any, 0xff, sizeof(any));
	(void)sched_setaffinity(0, sizeof(any), &any);
	for (uint32_t i = 0; i < rules;) {
		size_t len = 0;
		uint32_t end = i + BATCH;

		for (; i < end; i++)
			len += put_rule(data + len, i, each || i + 1 == end);
		if (send(fd, data, len, 0) != (ssize_t)len)
			_exit(1);
		await(fd, each ? BATCH : 1);
	}
	_exit(0);
}

static void
add_clsact(struct families *f)
{
	_Alignas(8) char buf[256];
	struct nlmsghdr *nlh = families_message(f, buf, RTM_NEWQDISC,
		NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, sizeof(struct tcmsg));
	struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

	tcm->tcm_ifindex = 1;
	tcm->tcm_parent = TC_H_CLSACT;
	tcm->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	mnl_attr_put_strz(nlh, TCA_KIND, "clsact");
	if (families_request(f, nlh) != 0)
		errx(1, "clsact: %s", f->error);
}

/* Seconds of processor time a rule. */
static double
run(uint32_t rules, bool each)
{
	struct families *f = families_create("bench");
	struct pollfd p = { .fd = netlink_server_fd(f->server), .events = POLLIN };
	int status = -1;
	double start;
	pid_t pid;

	add_clsact(f);
	if ((pid = fork()) < 0)
		err(1, "fork");
	if (pid == 0)
		client(f->fd, rules, each);
	start = cpu_time();
	while (waitpid(pid, &status, WNOHANG) == 0)
		while (poll(&p, 1, 1) > 0)
			netlink_server_dispatch(f->server);
	start = cpu_time() - start;
	if (status != 0)
		errx(1, "a rule was refused");
	families_destroy(f);
	return start / rules;
}

int
main(int argc, char **argv)
{
	static const char *const names[] = { "flower_16_ack", "flower_16" };
	uint32_t rules = 100000;
	unsigned int rounds = 5;
	double cpu[ROUNDS_MAX];
	FILE *json = NULL;
	int c;

	while ((c = getopt(argc, argv, "n:r:o:")) != -1) {
		if (c == 'n')
			rules = (uint32_t)strtoul(optarg, NULL, 10) / BATCH * BATCH;
		else if (c == 'r')
			rounds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c != 'o')
			errx(1, "usage: netlink_flower [-n rules] [-r rounds] [-o file.json]");
		else if ((json = fopen(optarg, "w")) == NULL)
			err(1, "%s", optarg);
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || rules == 0)
		errx(1, "-r: 1 to %d; -n: %d or more", ROUNDS_MAX, BATCH);
	test_eal_init("bench-flower", "0");
	printf("%-20s %12s\n", "row", "cpu ns each");
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int r = 0; r < rounds; r++)
			cpu[r] = run(rules, i == 0);
		printf("%-20s %12.0f\n", names[i], median(cpu, rounds) * 1e9);
		fflush(stdout);
		if (json != NULL)
			fprintf(json, "%s\t\"%s_cpu_ns\": %.1f", i > 0 ? ",\n" : "{\n", names[i],
				median(cpu, rounds) * 1e9);
	}
	if (json != NULL && (fprintf(json, "\n}\n") < 0 || fclose(json) != 0))
		err(1, "json");
	return 0;
}
