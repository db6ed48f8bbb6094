/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * A netlink program like any other, run through millrace-exec against exec_server with three
 * devices: every call that the preload library steps in front of, as different programs use it.
 * Built with and without _FORTIFY_SOURCE. Prints what failed; exits 0 if nothing did.
 */

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #x, \
				errno, strerror(errno)); \
			failures++; \
		} \
	} while (0)

struct request {
	struct nlmsghdr nlh;
	struct ifinfomsg ifi;
};

static _Alignas(8) char buf[65536];

static struct request
link_request(uint16_t flags, int ifindex, uint32_t seq)
{
	struct request r = { .nlh = { .nlmsg_len = sizeof(r),
				     .nlmsg_type = RTM_GETLINK,
				     .nlmsg_flags = NLM_F_REQUEST | flags,
				     .nlmsg_seq = seq },
		.ifi = { .ifi_index = ifindex } };

	return r;
}

/* Is that the RTM_NEWLINK of device 1 with sequence number seq? */
static bool
is_link(ssize_t n, uint32_t seq)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)(void *)buf;
	const struct ifinfomsg *ifi = (const struct ifinfomsg *)(nlh + 1);

	return n >= (ssize_t)sizeof(struct request) && nlh->nlmsg_type == RTM_NEWLINK &&
		nlh->nlmsg_seq == seq && ifi->ifi_index == 1;
}

static int
open_socket(int flags)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);

	CHECK(fd >= 0);
	return fd;
}

static bool
works(int fd, uint32_t seq)
{
	struct request r = link_request(0, 1, seq);

	return send(fd, &r, sizeof(r), 0) == (ssize_t)sizeof(r) &&
		is_link(recv(fd, buf, sizeof(buf), 0), seq);
}

static void
names_of_sockets(void)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK }, got;
	socklen_t len = sizeof(got);
	int a = open_socket(0), b = open_socket(0), c, value;

	CHECK(getsockname(a, (struct sockaddr *)&got, &len) == 0 && len == sizeof(got));
	CHECK(got.nl_family == AF_NETLINK && got.nl_pid == 0 && got.nl_groups == 0);
	nl.nl_groups = 5;
	CHECK(bind(a, (struct sockaddr *)&nl, sizeof(nl)) == 0);
	CHECK(getsockname(a, (struct sockaddr *)&got, &len) == 0);
	CHECK(got.nl_pid == (uint32_t)getpid() && got.nl_groups == 5);
	nl.nl_groups = 0;
	/* The pid is taken; the kernel says so when it is asked for by name. */
	nl.nl_pid = (uint32_t)getpid();
	CHECK(bind(b, (struct sockaddr *)&nl, sizeof(nl)) == -1 && errno == EADDRINUSE);
	CHECK(works(b, 3));
	CHECK(getsockname(b, (struct sockaddr *)&got, &len) == 0 && (int)got.nl_pid < -4096);
	CHECK(getpeername(b, (struct sockaddr *)&got, &len) == 0 && got.nl_pid == 0);
	nl.nl_pid = 1234;
	CHECK(bind(b, (struct sockaddr *)&nl, sizeof(nl)) == -1 && errno == EINVAL);
	c = open_socket(0);
	CHECK(bind(c, (struct sockaddr *)&nl, sizeof(nl)) == 0);
	CHECK(getsockname(c, (struct sockaddr *)&got, &len) == 0 && got.nl_pid == 1234);
	CHECK(bind(c, (struct sockaddr *)&nl, 4) == -1 && errno == EINVAL);
	len = 2;
	CHECK(getsockname(c, (struct sockaddr *)&got, &len) == 0 && len == sizeof(got));
	nl.nl_pid = 0;
	CHECK(connect(c, (struct sockaddr *)&nl, sizeof(nl)) == 0);
	nl.nl_pid = 1;
	CHECK(connect(c, (struct sockaddr *)&nl, sizeof(nl)) == -1 && errno == ECONNREFUSED);
	len = sizeof(value);
	CHECK(getsockopt(c, SOL_SOCKET, SO_DOMAIN, &value, &len) == 0 && value == AF_NETLINK);
	CHECK(getsockopt(c, SOL_SOCKET, SO_PROTOCOL, &value, &len) == 0 && value == NETLINK_ROUTE);
	CHECK(getsockopt(c, SOL_SOCKET, SO_TYPE, &value, &len) == 0 && value == SOCK_RAW);
	value = 1;
	CHECK(setsockopt(c, SOL_NETLINK, NETLINK_EXT_ACK, &value, sizeof(value)) == 0);
	value = 0;
	CHECK(getsockopt(c, SOL_NETLINK, NETLINK_EXT_ACK, &value, &len) == 0 && value == 1);
	CHECK(setsockopt(c, SOL_NETLINK, 99, &value, sizeof(value)) == -1 && errno == ENOPROTOOPT);
	value = 0;
	CHECK(setsockopt(c, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &value, sizeof(value)) == -1);
	value = 1 << 20;
	CHECK(setsockopt(c, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)) == 0);
	CHECK(socket(AF_NETLINK, SOCK_STREAM, NETLINK_ROUTE) == -1 && errno == ESOCKTNOSUPPORT);
	close(a);
	close(b);
	close(c);
}

static void
ways_to_send(void)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK };
	struct request r = link_request(0, 1, 1);
	struct iovec iov[2] = { { &r, 16 }, { (char *)&r + 16, sizeof(r) - 16 } };
	struct msghdr msg = {
		.msg_name = &nl, .msg_namelen = sizeof(nl), .msg_iov = iov, .msg_iovlen = 2
	};
	struct mmsghdr many[3];
	int fd = open_socket(0);

	CHECK(sendto(fd, &r, sizeof(r), 0, (struct sockaddr *)&nl, sizeof(nl)) == sizeof(r));
	CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 1));
	CHECK(sendto(fd, &r, sizeof(r), 0, NULL, 0) == sizeof(r));
	CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 1));
	r.nlh.nlmsg_seq = 2;
	CHECK(sendmsg(fd, &msg, 0) == sizeof(r));
	CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 2));
	CHECK(write(fd, &r, sizeof(r)) == sizeof(r));
	CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 2));
	CHECK(writev(fd, iov, 2) == sizeof(r));
	CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 2));
	for (int i = 0; i < 3; i++)
		many[i].msg_hdr = msg;
	CHECK(sendmmsg(fd, many, 3, 0) == 3 && many[2].msg_len == sizeof(r));
	for (int i = 0; i < 3; i++)
		CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 2));
	nl.nl_pid = 1;
	CHECK(sendto(fd, &r, sizeof(r), 0, (struct sockaddr *)&nl, sizeof(nl)) == -1 &&
		errno == ECONNREFUSED);
	CHECK(sendto(fd, &r, sizeof(r), 0, (struct sockaddr *)&nl, 3) == -1 && errno == EINVAL);
	CHECK(send(fd, &r, 0, 0) == 0);
	CHECK(works(fd, 4));
	close(fd);
}

static void
ways_to_receive(size_t size)
{
	struct sockaddr_nl from;
	socklen_t len = sizeof(from);
	struct request r = link_request(0, 1, 7);
	struct iovec iov = { buf, size }, none = { NULL, 0 };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1
	};
	struct mmsghdr many[3] = { 0 };
	int fd = open_socket(0), on = 1;
	ssize_t n;

	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	memset(&from, 0xff, sizeof(from));
	CHECK(is_link(recvfrom(fd, buf, size, 0, (struct sockaddr *)&from, &len), 7));
	CHECK(from.nl_family == AF_NETLINK && from.nl_pid == 0 && from.nl_groups == 0);
	CHECK(len == sizeof(from));
	/* As iproute2 does: the length first, then the message. */
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	msg.msg_iov = &none;
	n = recvmsg(fd, &msg, MSG_PEEK | MSG_TRUNC);
	CHECK(n > (ssize_t)sizeof(r) && (msg.msg_flags & MSG_TRUNC) != 0);
	msg.msg_iov = &iov;
	CHECK(recvmsg(fd, &msg, 0) == n && is_link(n, 7));
	CHECK(msg.msg_namelen == sizeof(from) && msg.msg_flags == 0 && msg.msg_controllen == 0);
	/* Cut short it says so. */
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	CHECK(recv(fd, buf, 20, MSG_TRUNC) == n);
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	CHECK(read(fd, buf, size) == n && is_link(n, 7));
	for (int i = 0; i < 3; i++) {
		many[i].msg_hdr.msg_iov = &iov;
		many[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	CHECK(recvmmsg(fd, many, 3, MSG_WAITFORONE, NULL) >= 1);
	CHECK(is_link(many[0].msg_len, 7));
	/* Credentials are the kernel's. */
	CHECK(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	{
		_Alignas(struct cmsghdr) char control[256];
		struct cmsghdr *cmsg;
		struct ucred cred = { .pid = 1 };

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		CHECK(recvmsg(fd, &msg, 0) == n);
		cmsg = CMSG_FIRSTHDR(&msg);
		CHECK(cmsg != NULL && cmsg->cmsg_type == SCM_CREDENTIALS);
		if (cmsg != NULL)
			memcpy(&cred, CMSG_DATA(cmsg), sizeof(cred));
		CHECK(cred.pid == 0 && cred.uid == 0);
	}
	close(fd);
}

/* The kernel has the answer ready when send() returns. */
static void
read_without_blocking(void)
{
	int fd = open_socket(SOCK_NONBLOCK);
	struct request r = link_request(0, 1, 9);

	CHECK(recv(fd, buf, sizeof(buf), 0) == -1 && errno == EAGAIN);
	for (int i = 0; i < 2000; i++) {
		CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
		CHECK(is_link(recv(fd, buf, sizeof(buf), 0), 9));
	}
	CHECK(recv(fd, buf, sizeof(buf), 0) == -1 && errno == EAGAIN);
	/* Several requests, then everything there is. */
	for (int i = 0; i < 10; i++)
		CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	for (int i = 0; i < 10; i++)
		CHECK(is_link(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), 9));
	CHECK(recv(fd, buf, sizeof(buf), 0) == -1 && errno == EAGAIN);
	CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 0);
	close(fd);
}

static void
dumps(void)
{
	struct request r = link_request(NLM_F_DUMP, 0, 11);
	int fd = open_socket(0), links = 0;
	bool done = false;

	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	while (!done) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		struct nlmsghdr *nlh = (struct nlmsghdr *)(void *)buf;

		CHECK(n > 0);
		if (n <= 0)
			break;
		for (; NLMSG_OK(nlh, (uint32_t)n); nlh = NLMSG_NEXT(nlh, n)) {
			links += nlh->nlmsg_type == RTM_NEWLINK;
			done |= nlh->nlmsg_type == NLMSG_DONE;
		}
	}
	CHECK(links == 3);
	close(fd);
}

static void
copies_of_descriptors(void)
{
	int fd = open_socket(0), a, b, c, d, e;

	a = dup(fd);
	CHECK(dup2(fd, 200) == 200);
	CHECK(dup3(fd, 201, O_CLOEXEC) == 201);
	b = fcntl(fd, F_DUPFD, 300);
	c = fcntl(fd, F_DUPFD_CLOEXEC, 300);
	CHECK(b >= 300 && c > b && (fcntl(c, F_GETFD) & FD_CLOEXEC) != 0);
	close(fd);
	CHECK(works(a, 1) && works(200, 2) && works(201, 3) && works(b, 4) && works(c, 5));
	/* Over another one, and over itself. */
	d = open_socket(0);
	CHECK(dup2(a, d) == d && works(d, 6));
	CHECK(dup2(d, d) == d && works(d, 7));
	/* A file takes its place: it is no netlink socket any more. */
	e = open("/dev/zero", O_RDWR);
	CHECK(dup2(e, d) == d);
	CHECK(write(d, "x", 1) == 1 && read(d, buf, 4) == 4 && buf[0] == 0);
	close(a);
	close(200);
	close(201);
	close(b);
	close(d);
	close(e);
	CHECK(works(c, 8));
	close(c);
	CHECK(send(c, buf, 1, 0) == -1 && errno == EBADF);
}

static bool
is_netlink(int fd)
{
	struct sockaddr_nl got;
	socklen_t len = sizeof(got);

	return getsockname(fd, (struct sockaddr *)&got, &len) == 0 && got.nl_family == AF_NETLINK;
}

/* Closed, the number stands for what is opened next. */
static bool
becomes_a_file(int fd)
{
	return close(fd) == 0 && open("/dev/null", O_RDWR) == fd && write(fd, "x", 1) == 1 &&
		read(fd, buf, 1) == 0;
}

static void
children(void)
{
	int fd = open_socket(0), status = -1;
	pid_t pid;

	CHECK(works(fd, 1));
	if ((pid = fork()) == 0)
		_exit(works(fd, 2) && works(fd, 3) && becomes_a_file(fd) ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(works(fd, 4) && is_netlink(fd));
	/* What a child of vfork() closes stays open here. */
	if ((pid = vfork()) == 0) {
		close(fd);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(works(fd, 5) && is_netlink(fd));
	close(fd);
}

static void
closing_in_bulk(void)
{
	int fd = open_socket(0), keep, other;

	CHECK((keep = dup2(fd, 20)) == 20);
	other = dup2(fd, 40);
	/* The library's own descriptors survive; it could not serve 20 any more without. */
	closefrom(21);
	CHECK(send(other, buf, 1, 0) == -1 && errno == EBADF);
	CHECK(works(keep, 1));
	CHECK(dup2(keep, 41) == 41);
	CHECK(close_range(21, ~0u, 0) == 0);
	CHECK(fcntl(41, F_GETFD) == -1 && errno == EBADF);
	for (int i = 21; i < 2000; i++)
		close(i);
	CHECK(works(keep, 2));
	/* Another file where one of them is. */
	for (int i = 700; i < 800; i++)
		CHECK(dup2(STDIN_FILENO, i) == i);
	CHECK(bind(keep, (struct sockaddr *)&(struct sockaddr_nl){ .nl_family = AF_NETLINK },
		      sizeof(struct sockaddr_nl)) == 0);
	CHECK(works(keep, 3));
	closefrom(700);
	CHECK(works(keep, 4));
	close(keep);
	CHECK(close_range(3, ~0u, 0) == 0);
	fd = open_socket(0);
	CHECK(works(fd, 5));
	close(fd);
}

static void
names_of_interfaces(void)
{
	char name[IF_NAMESIZE];
	struct if_nameindex *list = if_nameindex();
	struct ifaddrs *addrs = NULL, *a;
	struct ifreq ifr = { .ifr_name = "p1" };
	struct ethtool_value value = { .cmd = ETHTOOL_GSG };
	int udp = socket(AF_INET, SOCK_DGRAM, 0), n = 0;

	CHECK(if_nametoindex("p0") == 1 && if_nametoindex("p2") == 3);
	CHECK(if_nametoindex("lo") == 0 && errno == ENODEV);
	CHECK(if_nametoindex("a-name-that-is-too-long") == 0 && errno == ENODEV);
	CHECK(if_indextoname(2, name) == name && strcmp(name, "p1") == 0);
	CHECK(if_indextoname(99, name) == NULL && errno == ENXIO);
	CHECK(list != NULL);
	for (; list != NULL && list[n].if_index != 0; n++)
		CHECK(list[n].if_name[0] == 'p' && list[n].if_index == (unsigned int)n + 1);
	CHECK(n == 3);
	if_freenameindex(list);
	CHECK(getifaddrs(&addrs) == 0);
	for (a = addrs, n = 0; a != NULL; a = a->ifa_next) {
		CHECK(a->ifa_name[0] == 'p');
		if (a->ifa_addr->sa_family == AF_PACKET) {
			const struct sockaddr_ll *ll =
				(const struct sockaddr_ll *)(void *)a->ifa_addr;

			CHECK(ll->sll_ifindex == ++n && ll->sll_halen == 6 && ll->sll_addr[0] == 2);
			CHECK((a->ifa_flags & IFF_UP) != 0);
		}
	}
	CHECK(n == 3);
	freeifaddrs(addrs);
	CHECK(ioctl(udp, SIOCGIFINDEX, &ifr) == 0 && ifr.ifr_ifindex == 2);
	CHECK(ioctl(udp, SIOCGIFNAME, &ifr) == 0 && strcmp(ifr.ifr_name, "p1") == 0);
	ifr.ifr_data = (char *)&value;
	CHECK(ioctl(udp, SIOCETHTOOL, &ifr) == -1 && errno == EOPNOTSUPP);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "lo");
	CHECK(ioctl(udp, SIOCSIFMTU, &ifr) == -1 && errno == EOPNOTSUPP);
	CHECK(ioctl(udp, FIONREAD, &n) == 0 && n == 0);
	close(udp);
}

static void
notifications(void)
{
	struct {
		struct request r;
		struct nlattr attr;
		uint32_t mtu;
	} set = { .r = link_request(NLM_F_ACK, 3, 1), .attr = { 8, IFLA_MTU } };
	int mon = open_socket(0), fd = open_socket(0), group = RTNLGRP_LINK;
	struct nlmsghdr *nlh = (struct nlmsghdr *)(void *)buf;
	bool lost = false;

	set.r.nlh.nlmsg_len = sizeof(set);
	set.r.nlh.nlmsg_type = RTM_NEWLINK;
	CHECK(setsockopt(mon, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0);
	/* Joining has no answer; a request behind it has. */
	CHECK(works(mon, 1));
	for (uint32_t i = 0; i < 5000; i++) {
		set.mtu = 1000 + i % 100;
		CHECK(send(fd, &set, sizeof(set), 0) == sizeof(set));
		CHECK(recv(fd, buf, sizeof(buf), 0) > 0 && nlh->nlmsg_type == NLMSG_ERROR);
		CHECK(((struct nlmsgerr *)NLMSG_DATA(nlh))->error == 0);
	}
	for (int i = 0; i < 6000 && !lost; i++) {
		ssize_t n = recv(mon, buf, sizeof(buf), 0);

		lost = n == -1 && errno == ENOBUFS;
		CHECK(lost || (n > 0 && nlh->nlmsg_type == RTM_NEWLINK));
	}
	CHECK(lost);
	CHECK(works(mon, 2));
	close(mon);
	close(fd);
}

static void *
hammer(void *arg)
{
	uintptr_t bad = 0;

	(void)arg;
	for (uint32_t i = 0; i < 200; i++) {
		_Alignas(8) char mine[8192];
		struct request r = link_request(0, 1, i);
		int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

		if (fd < 0 || send(fd, &r, sizeof(r), 0) != (ssize_t)sizeof(r) ||
			recv(fd, mine, sizeof(mine), 0) < (ssize_t)sizeof(r))
			bad++;
		close(fd);
	}
	return (void *)bad;
}

static void
threads(void)
{
	pthread_t t[8];
	void *bad;

	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&t[i], NULL, hammer, NULL) == 0);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_join(t[i], &bad) == 0 && bad == NULL);
}

/* A megabyte of requests and no read: with the kernel the answers would be lost, never the program.
 */
static void
a_sender_that_does_not_read(void)
{
	int fd = open_socket(SOCK_NONBLOCK);
	struct request r = link_request(0, 1, 1);
	int sent = 0, got = 0;

	while (sent < 20000 && send(fd, &r, sizeof(r), 0) == (ssize_t)sizeof(r))
		sent++;
	CHECK(sent > 100 && (sent == 20000 || errno == EAGAIN));
	while (recv(fd, buf, sizeof(buf), 0) > 0)
		got++;
	CHECK(got == sent);
	close(fd);
}

int
main(void)
{
	struct sockaddr_nl got;
	socklen_t len = sizeof(got);
	/* Not known to the compiler, so that a fortified build checks it. */
	volatile size_t size = sizeof(buf);
	int fd;

	names_of_sockets();
	ways_to_send();
	ways_to_receive(size);
	read_without_blocking();
	dumps();
	copies_of_descriptors();
	children();
	closing_in_bulk();
	names_of_interfaces();
	notifications();
	threads();
	a_sender_that_does_not_read();
	/* Other protocols stay the kernel's. */
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
	CHECK(fd >= 0 && getsockname(fd, (struct sockaddr *)&got, &len) == 0);
	close(fd);
	return failures != 0;
}
