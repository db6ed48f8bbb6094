/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <err.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "app.h"
#include "control.h"
#include "forward/ip.h"
#include "port_esp.h"
#include "prompt/prompt.h"
#include "prompt/show.h"
#include "telemetry.h"

#define RECLAIM_MS 10 /* between looks at deferred frees, while there are any */
#define TICK_MS 100 /* otherwise: links, idleness, statistics */
/*
 * Between ticks while requests come one after the other: a tick for each would cost the requests
 * time, and the workers the cache lines in which they report quiescence.
 */
#define TICK_MIN_MS 1
#define TRIM_EACH 4 /* chunks of a slab in one round, a millisecond */

enum source {
	SOURCE_SIGNAL,
	SOURCE_NETLINK,
	SOURCE_STDIN,
};

struct control {
	struct app *app;
	int epoll, signal;
	bool quit;
	bool idle_watch;
	uint64_t idle_since, idle_seen; /* TSC, packets received */
	uint64_t next_links, next_stats, next_rounds;
	uint64_t next_tick; /* not before, if there was something else to do */
	uint64_t requests, quiet_since; /* served so far, and since when no more came */
	bool trimmed; /* since then */
};

static void
signals_of_loop(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGCHLD);
}

void
control_signals_block(void)
{
	sigset_t set;

	signals_of_loop(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void
control_signals_unblock(void)
{
	sigset_t set;

	signals_of_loop(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static int
watch(struct control *c, int fd, enum source source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event);
}

struct control *
control_create(struct app *a)
{
	struct control *c = calloc(1, sizeof(*c));
	sigset_t set;

	if (c == NULL) {
		warnx("no memory for the event loop");
		return NULL;
	}
	c->app = a;
	signals_of_loop(&set);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->signal = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->epoll < 0 || c->signal < 0 || watch(c, c->signal, SOURCE_SIGNAL) != 0 ||
		watch(c, netlink_server_fd(a->netlink), SOURCE_NETLINK) != 0) {
		warn("event loop");
		control_destroy(c);
		return NULL;
	}
	return c;
}

void
control_destroy(struct control *c)
{
	if (c == NULL)
		return;
	if (c->signal >= 0)
		close(c->signal);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c);
}

void
control_quit(struct control *c)
{
	c->quit = true;
}

bool
control_quitting(const struct control *c)
{
	return c->quit;
}

void
control_watch_stdin(struct control *c)
{
	/* A regular file cannot be polled (EPERM): it is always readable, so read it now. */
	if (watch(c, STDIN_FILENO, SOURCE_STDIN) != 0 && errno == EPERM) {
		while (!c->quit && prompt_readable(c->app->prompt))
			;
	}
}

static uint64_t
packets_received(const struct app *a)
{
	unsigned int n;
	const struct stream *streams = streams_get(a, &n);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += atomic_load_explicit(&streams[i].rx_packets, memory_order_relaxed);
	return sum;
}

void
control_idle_watch(struct control *c)
{
	c->idle_watch = c->app->opt.idle_exit != 0;
	c->idle_since = rte_get_timer_cycles();
	c->idle_seen = packets_received(c->app);
}

static void
idle_check(struct control *c, uint64_t now)
{
	uint64_t seen = packets_received(c->app);

	if (seen != c->idle_seen || !queues_empty(c->app)) {
		c->idle_seen = seen;
		c->idle_since = now;
	} else if ((now - c->idle_since) / (rte_get_timer_hz() / 1000) >= c->app->opt.idle_exit) {
		c->quit = true;
	}
}

/*
 * Slabs and glibc keep what a million rules took for the next million. It goes back to the system
 * when no client has asked for anything for a second, for it may take some milliseconds.
 */
static void
trim(struct control *c, uint64_t now)
{
	struct netlink_server_stats stats;

	netlink_server_stats(c->app->netlink, &stats);
	if (stats.requests != c->requests || rcu_pending(c->app->rcu) > 0) {
		c->requests = stats.requests;
		c->quiet_since = now;
		c->trimmed = false;
	} else if (!c->trimmed && now - c->quiet_since >= rte_get_timer_hz()) {
		c->trimmed = slab_trim(action_table_slab(c->app->actions), TRIM_EACH);
		if (c->trimmed)
			malloc_trim(0);
	}
}

void
control_tick(struct control *c)
{
	struct app *a = c->app;
	uint64_t now = rte_get_timer_cycles();

	rcu_reclaim(a->rcu, 0);
	trim(c, now);
	ip_control(a);
	ports_poll_events(a);
	if (now >= c->next_rounds) {
		ports_esp_rounds(a);
		c->next_rounds = now + RECLAIM_MS * rte_get_timer_hz() / 1000;
	}
	telemetry_answer(a);
	/* A round may be one request of many: drivers are not asked with each. */
	if (now >= c->next_links) {
		ports_poll_links(a);
		c->next_links = now + TICK_MS * rte_get_timer_hz() / 1000;
	}
	if (c->idle_watch)
		idle_check(c, now);
	if (a->opt.stats_period != 0 && now >= c->next_stats) {
		if (c->next_stats != 0)
			show_port_stats_all(a);
		c->next_stats = now + a->opt.stats_period * rte_get_timer_hz();
	}
}

static void
signals_read(struct control *c)
{
	struct signalfd_siginfo info;

	while (read(c->signal, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		/* SIGCHLD only wakes the loop: control_run_child() asks for the status itself. */
		if (info.ssi_signo != SIGCHLD)
			c->quit = true;
	}
}

/* One round. While a child of the prompt runs, its commands wait: stdin is the child's. */
static void
turn(struct control *c, bool with_prompt)
{
	struct epoll_event events[4];
	int timeout = rcu_pending(c->app->rcu) > 0 ? RECLAIM_MS : TICK_MS;
	uint64_t now;
	int n;

	if (c->idle_watch && timeout > (int)c->app->opt.idle_exit / 4)
		timeout = (int)c->app->opt.idle_exit / 4 + 1;
	if (ip_timeout(c->app) >= 0)
		timeout = RTE_MIN(timeout, ip_timeout(c->app));
	n = epoll_wait(c->epoll, events, RTE_DIM(events), timeout);
	for (int i = 0; i < n; i++) {
		switch ((enum source)events[i].data.u32) {
		case SOURCE_SIGNAL:
			signals_read(c);
			break;
		case SOURCE_NETLINK:
			netlink_server_dispatch(c->app->netlink);
			break;
		case SOURCE_STDIN:
			if (with_prompt && !prompt_readable(c->app->prompt))
				epoll_ctl(c->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
			break;
		}
	}
	now = rte_get_timer_cycles();
	if (n > 0 && now < c->next_tick)
		return;
	c->next_tick = now + TICK_MIN_MS * rte_get_timer_hz() / 1000;
	control_tick(c);
}

void
control_run(struct control *c)
{
	while (!c->quit)
		turn(c, true);
}

int
control_run_child(struct control *c, pid_t pid)
{
	int status;
	bool paused;

	/* Level-triggered input that nobody may read now would spin the loop. */
	paused = epoll_ctl(c->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL) == 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (c->quit) {
			kill(pid, SIGTERM);
			waitpid(pid, &status, 0);
			return -1;
		}
		turn(c, false);
	}
	if (paused)
		watch(c, STDIN_FILENO, SOURCE_STDIN);
	return status;
}
