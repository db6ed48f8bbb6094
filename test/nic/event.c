/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Events of a port: who wants them, and calling those. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_alarm.h>

#include "internal.h"
#include "wrap.h"

struct callback {
	uint16_t port; /* RTE_ETH_ALL: of all */
	enum rte_eth_event_type event;
	rte_eth_dev_cb_fn fn;
	void *arg;
	TAILQ_ENTRY(callback) next;
};

static TAILQ_HEAD(, callback) callbacks = TAILQ_HEAD_INITIALIZER(callbacks);

/* Held while one is called, which may change the list itself. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int
__wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	struct callback *c;
	int ret = __real_rte_eth_dev_callback_register(port, event, fn, arg);

	if (ret != 0)
		return ret;
	pthread_mutex_lock(&mutex);
	TAILQ_FOREACH (c, &callbacks, next) {
		if (c->port == port && c->event == event && c->fn == fn && c->arg == arg)
			break;
	}
	if (c == NULL && (c = calloc(1, sizeof(*c))) != NULL) {
		*c = (struct callback){ .port = port, .event = event, .fn = fn, .arg = arg };
		TAILQ_INSERT_TAIL(&callbacks, c, next);
	}
	pthread_mutex_unlock(&mutex);
	return c != NULL ? 0 : -ENOMEM;
}

/* As rte_ethdev's: -EAGAIN while callbacks are called, and an argument of -1 means any. */
int
__wrap_rte_eth_dev_callback_unregister(
	uint16_t port, enum rte_eth_event_type event, rte_eth_dev_cb_fn fn, void *arg)
{
	struct callback *c, *after;
	int ret;

	if (pthread_mutex_trylock(&mutex) != 0)
		return -EAGAIN;
	ret = __real_rte_eth_dev_callback_unregister(port, event, fn, arg);
	for (c = TAILQ_FIRST(&callbacks); ret == 0 && c != NULL; c = after) {
		after = TAILQ_NEXT(c, next);
		if (c->port == port && c->event == event && c->fn == fn &&
			(c->arg == arg || arg == (void *)-1)) {
			TAILQ_REMOVE(&callbacks, c, next);
			free(c);
		}
	}
	pthread_mutex_unlock(&mutex);
	return ret;
}

static void
call(struct nic *nic, enum rte_eth_event_type event, void *what)
{
	struct callback *c, *after;

	pthread_mutex_lock(&mutex);
	for (c = TAILQ_FIRST(&callbacks); c != NULL; c = after) {
		struct callback copy = *c;

		after = TAILQ_NEXT(c, next);
		if (copy.event != event || (copy.port != nic->port && copy.port != RTE_ETH_ALL))
			continue;
		nic_count(nic, events);
		copy.fn(nic->port, event, copy.arg, what);
	}
	pthread_mutex_unlock(&mutex);
}

int
nic_event_ipsec(uint16_t port, enum rte_eth_event_ipsec_subtype subtype, uint64_t metadata)
{
	struct nic *nic = nic_of_port(port);
	struct rte_eth_event_ipsec_desc desc = { .subtype = subtype, .metadata = metadata };

	if (nic == NULL)
		return -ENODEV;
	call(nic, RTE_ETH_EVENT_IPSEC, &desc);
	return 0;
}

/* Userdata of the sessions in turn, every other time something that never was one. */
static uint64_t
storm_metadata(struct nic *nic, unsigned int i, uint32_t *slot)
{
	struct nic_session *s;
	uint64_t metadata = i % 4 == 1 ? UINT64_MAX : UINT64_C(0x6a72a9e) * i;

	if (i % 2 != 0)
		return metadata;
	pthread_mutex_lock(&nic->mutex);
	if ((s = nic_session_next(nic, slot)) == NULL) {
		*slot = 0;
		s = nic_session_next(nic, slot);
	}
	if (s != NULL)
		metadata = s->userdata;
	pthread_mutex_unlock(&nic->mutex);
	return metadata;
}

int
nic_event_storm(uint16_t port, unsigned int n)
{
	struct nic *nic = nic_of_port(port);
	uint32_t slot = 0;

	if (nic == NULL)
		return -ENODEV;
	for (unsigned int i = 0; i < n; i++) {
		/* One more than there are. */
		enum rte_eth_event_ipsec_subtype subtype =
			(enum rte_eth_event_ipsec_subtype)((i / 2) % (RTE_ETH_EVENT_IPSEC_MAX + 1));

		nic_event_ipsec(port, subtype, storm_metadata(nic, i, &slot));
	}
	return 0;
}

int
nic_event(uint16_t port, const char *name)
{
	struct nic *nic = nic_of_port(port);
	bool reset = strcmp(name, "intr_reset") == 0, rmv = strcmp(name, "intr_rmv") == 0;

	if (nic == NULL)
		return -ENODEV;
	if (!reset && !rmv && strcmp(name, "forget") != 0)
		return -ENOENT;
	pthread_mutex_lock(&nic->mutex);
	if (reset && nic->dead == NIC_ALIVE)
		nic->dead = NIC_UNTIL_STOP;
	if (rmv)
		nic->dead = NIC_REMOVED;
	else
		nic_forget(nic);
	if (reset)
		nic_flows_clear(nic);
	pthread_mutex_unlock(&nic->mutex);
	if (reset)
		call(nic, RTE_ETH_EVENT_INTR_RESET, NULL);
	if (rmv)
		call(nic, RTE_ETH_EVENT_INTR_RMV, NULL);
	return 0;
}

/* In EAL's interrupt thread. */
static void
deliver(void *arg)
{
	struct rte_eth_event_ipsec_desc descs[NIC_RAISED_MAX];
	struct nic *nic = arg;
	unsigned int n;

	pthread_mutex_lock(&nic->mutex);
	n = nic->n_raised;
	memcpy(descs, nic->raised, n * sizeof(descs[0]));
	nic->n_raised = 0;
	pthread_mutex_unlock(&nic->mutex);
	for (unsigned int i = 0; i < n; i++)
		call(nic, RTE_ETH_EVENT_IPSEC, &descs[i]);
}

/* Under the mutex: the NIC tells later, as interrupts do. */
void
nic_raise(struct nic *nic, enum rte_eth_event_ipsec_subtype subtype, uint64_t metadata)
{
	if (nic->n_raised == NIC_RAISED_MAX)
		return;
	nic->raised[nic->n_raised++] =
		(struct rte_eth_event_ipsec_desc){ .subtype = subtype, .metadata = metadata };
	if (nic->n_raised == 1)
		rte_eal_alarm_set(1, deliver, nic);
}

void
nic_events_clear(struct nic *nic)
{
	struct callback *c, *after;

	rte_eal_alarm_cancel(deliver, nic);
	pthread_mutex_lock(&mutex);
	for (c = TAILQ_FIRST(&callbacks); c != NULL; c = after) {
		after = TAILQ_NEXT(c, next);
		if (c->port == nic->port) {
			TAILQ_REMOVE(&callbacks, c, next);
			free(c);
		}
	}
	pthread_mutex_unlock(&mutex);
}

static bool
over(uint64_t limit, uint64_t value)
{
	return limit != 0 && value >= limit;
}

/* A packet more: `bytes` of it. Only inline protocol has limits. */
void
nic_lifetime(struct nic *nic, struct nic_session *s, uint32_t bytes)
{
	const struct rte_security_ipsec_lifetime *life = &s->ipsec.life;
	bool p_soft, p_hard, soft, hard;

	s->packets++;
	s->bytes += bytes;
	if (s->action != RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL)
		return;
	p_soft = over(life->packets_soft_limit, s->packets);
	p_hard = over(life->packets_hard_limit, s->packets);
	soft = p_soft || over(life->bytes_soft_limit, s->bytes);
	hard = p_hard || over(life->bytes_hard_limit, s->bytes);
	if (soft && !s->soft)
		nic_raise(nic,
			p_soft ? RTE_ETH_EVENT_IPSEC_SA_PKT_EXPIRY
			       : RTE_ETH_EVENT_IPSEC_SA_BYTE_EXPIRY,
			s->userdata);
	if (hard && !s->hard)
		nic_raise(nic,
			p_hard ? RTE_ETH_EVENT_IPSEC_SA_PKT_HARD_EXPIRY
			       : RTE_ETH_EVENT_IPSEC_SA_BYTE_HARD_EXPIRY,
			s->userdata);
	s->soft |= soft;
	s->hard |= hard;
}
