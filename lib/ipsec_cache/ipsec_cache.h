/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_IPSEC_CACHE_H
#define IPSEC_CACHE_IPSEC_CACHE_H

/*
 * IPsec for a router: SAs, policies, ESP, and a cache on each lcore that remembers what policy, SA,
 * route and neighbour say about a flow.
 *
 * What may happen to a packet is decided first, what has to be done to it is done second:
 *
 *   ipsec_cache_open()     ESP for us -> the packets inside it, and the SA they came by
 *   ipsec_cache_decide()   each packet, decrypted or plain -> a decision: route it, drop it, or
 *                          protect it by an SA and send it to a next hop
 *   ipsec_cache_seal()     packets to be protected -> ESP packets
 *   ipsec_cache_poll()     what crypto devices have finished of open and seal
 *
 * The CPU completes inside open and seal. Between decide and seal the caller looks at what a router
 * must (TTL, MTU) and hands packets of an SA that lives on another lcore over to that one.
 *
 * A decision is cached under the whole flow: an epoch is read before the slow look-up, and noted
 * with the result; whoever changes what decisions rest on publishes the change, then bumps the
 * epoch, and frees what it replaced after a grace period. So an entry can be born stale, which
 * costs another look-up, but never wrong; a hit touches no reference count and no shared line that
 * is written. SAs, policies and cached decisions may be used until the worker's next report of
 * quiescence and no longer.
 *
 * SAs and policies are what `ip xfrm` and IKE daemons know them as, down to the kernel's own
 * structures (linux/xfrm.h), and behave as Linux's do (net/xfrm) unless a comment says otherwise.
 *
 * Thread safety: functions that take a struct ipsec_cache_worker are for the one lcore it belongs
 * to; everything else is for the one control thread.
 */

#include <linux/xfrm.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "packet/packet.h"
#include "rcu/rcu.h"

#define IPSEC_CACHE_WINDOW_MAX 4096 /* packets of a replay window */
#define IPSEC_CACHE_TEMPLATES_MAX 6 /* XFRM_MAX_DEPTH; more than one is refused */
#define IPSEC_CACHE_WAYS 8
#define IPSEC_CACHE_DECISIONS_MAX 256 /* of one burst */
#define IPSEC_CACHE_KEY_MAX 36 /* bytes: AES-256 and RFC 4106's salt */

/*
 * Why a packet was dropped. One list makes the enum, the counter's name and the text. The Linux
 * counter of /proc/net/xfrm_stat that says the same stands behind.
 */
#define IPSEC_CACHE_ERROR_LIST(X) \
	/* Inbound ESP. */ \
	X(ESP_NO_SA, "esp_no_sa", "ESP for us with an SPI that no SA has") /* InNoStates */ \
	X(ESP_MALFORMED, "esp_malformed", \
		"ESP that is cut, or whose lengths do not fit the algorithm") /* InHdrError */ \
	X(ESP_REPLAY, "esp_replay", \
		"sequence number seen before or left of the window") /* InStateSeqError */ \
	X(ESP_ICV, "esp_icv", "wrong integrity check value") /* InStateProtoError */ \
	X(ESP_PAD, "esp_pad", "ESP padding or its length is wrong") /* InStateProtoError */ \
	X(ESP_INNER, "esp_inner", \
		"decrypted to something that is no IP packet of the announced version") \
	X(ESP_DUMMY, "esp_dummy", "ESP dummy packet (next header 59)") \
	X(ESP_ECN, "esp_ecn", "RFC 6040: outer CE on an inner packet without ECN") \
	X(ESP_SELECTOR, "esp_selector", \
		"the decrypted packet does not fit its SA's selector") /* InStateMismatch */ \
	X(ESP_ENCAP, "esp_encap", \
		"UDP encapsulation where the SA has none, or the other way") /* InStateMismatch */ \
	X(ESP_KEEPALIVE, "esp_keepalive", "NAT-T keepalive, read") \
	X(ESP_EXPIRED, "esp_expired", \
		"the SA's hard lifetime is over") /* InStateExpired, OutStateExpired */ \
	X(ESP_FRAGMENT, "esp_fragment", "a fragment where ESP needs the whole packet") \
	X(ESP_NOBUF, "esp_nobuf", "no mbuf, headroom or tailroom for ESP") \
	X(ESP_SEQ, "esp_seq", "the SA has no sequence numbers left") /* OutStateSeqError */ \
	X(ESP_DEVICE, "esp_device", "a NIC or crypto device failed it, or is not believed") \
	X(ESP_DEVICE_FULL, "esp_device_full", "a crypto device takes no more packets for now") \
	/* Policy. */ \
	X(POLICY_BLOCK, "policy_block", \
		"a blocking policy, or the default, says so") /* InPolBlock, OutPolBlock */ \
	X(POLICY_NONE, "policy_none", "came by an SA and no policy allows that") /* InNoPols */ \
	X(POLICY_CLEAR, "policy_clear", \
		"came in clear, or by another SA, where a policy wants its SA") /* InTmplMismatch \
										 */ \
	X(POLICY_NO_SA, "policy_no_sa", \
		"a policy wants an SA that is not there yet") /* OutNoStates */ \
	X(POLICY_FRAGMENT, "policy_fragment", \
		"a fragment that a policy with ports might want protected or blocked") \
	X(POLICY_NO_ROUTE, "policy_no_route", \
		"to be protected, and no route to where it goes or to the other end of the " \
		"tunnel") \
	X(HAND_OVER_FULL, "hand_over_full", \
		"for the lcore that the SA lives on, whose ring was full")

enum ipsec_cache_error {
#define X(id, name, text) IPSEC_CACHE_##id,
	IPSEC_CACHE_ERROR_LIST(X)
#undef X
	IPSEC_CACHE_ERROR_MAX
};

struct ipsec_cache;
struct ipsec_cache_worker;
struct ipsec_session; /* what an SA has in a device */
struct ipsec_cache_sa; /* control SA: keys, ids, lifetimes, selectors */
struct ipsec_cache_rt; /* run-time SA: what a packet touches */
struct ipsec_cache_policy;

/* What a route says about a destination. */
enum ipsec_cache_hop_kind {
	IPSEC_CACHE_HOP_NONE, /* dropped or answered with an error by whoever routes */
	IPSEC_CACHE_HOP_LOCAL, /* an address of ours */
	IPSEC_CACHE_HOP_FORWARD,
};
struct ipsec_cache_hop {
	const void *hop; /* FORWARD: the caller's, given back in a decision; may be freed after a
			    bump of the epoch and a grace period */
	uint32_t ifindex; /* of the device it leaves by */
	uint32_t mtu; /* bytes of layer 3 */
	uint8_t kind; /* enum ipsec_cache_hop_kind */
	/* Packets for it wait, its neighbour not being known: what may wait for long names no
	 * session of a device, so the CPU protects it. */
	bool waits;
};

/* Who does the work of SAs; see "devices" below. */
enum ipsec_cache_offload {
	IPSEC_CACHE_OFFLOAD_AUTO, /* the best that the port of an SA's route offers, or the CPU */
	IPSEC_CACHE_OFFLOAD_EXPLICIT, /* what each SA asks for */
	IPSEC_CACHE_OFFLOAD_OFF, /* the CPU; SAs that ask for more are refused */
};

struct ipsec_cache_conf {
	struct rcu *rcu;
	unsigned int n_workers; /* ids 0 .. n_workers - 1 */
	unsigned int cache_entries; /* a worker; rounded up to a power of two; 0: no cache */
	unsigned int max_sas, max_policies; /* 0: 131072 and 65536 */
	int meta_offset; /* of struct packet_meta: marks */
	int socket; /* NUMA socket, or -1 */
	/*
	 * Several lcores share an outbound SA's sequence numbers (an atomic addition a burst)
	 * instead of handing packets over to its home lcore. For peers with large windows.
	 */
	bool share_numbers;
	enum ipsec_cache_offload offload;
	void *arg;
	/* Called by workers and the control thread: the route to dst. `hash` tells flows apart. */
	void (*resolve)(void *arg, uint8_t family, const void *dst, uint32_t hash,
		struct ipsec_cache_hop *hop);
	/*
	 * Called by the control thread: a count that grows as frames leave a device. What was
	 * sealed when it said n is on the wire, or freed, once it says n + 2: only then a session
	 * that frames may name goes. NULL: sealed frames are sent before quiescence is reported.
	 */
	uint64_t (*tx_rounds)(void *arg, uint32_t ifindex);
};

/* NULL and rte_errno: EINVAL, ENOMEM. Tables for packets are made with the first SA or policy. */
struct ipsec_cache *ipsec_cache_create(const struct ipsec_cache_conf *conf);
/* After every reader has gone; wipes all keys. NULL accepted. */
void ipsec_cache_destroy(struct ipsec_cache *ic);

/*
 * What resolve() said may have changed: called after the change is published and before what it
 * replaced is handed to rcu_defer(). Any number of times; costs one addition.
 */
void ipsec_cache_invalidate(struct ipsec_cache *ic);
/* Forwarding begins anew with other workers: SAs find new homes. No worker runs; what is still in a
 * crypto device is given up. */
void ipsec_cache_rehome(struct ipsec_cache *ic);
/* Lifetimes, acquires, notifications. Call some times a second with a clock in milliseconds. */
void ipsec_cache_tick(struct ipsec_cache *ic, uint64_t now_ms);

/* --- packets --- */

/* True once packets have to be asked about: an SA, a policy, or a default that blocks. One load. */
bool ipsec_cache_active(const struct ipsec_cache *ic);
/* The handle of worker `id`. */
struct ipsec_cache_worker *ipsec_cache_worker(struct ipsec_cache *ic, unsigned int id);

/*
 * To be called first in each burst, before any other function here that takes the worker: reads the
 * epoch that this burst's decisions are checked against.
 */
void ipsec_cache_begin(struct ipsec_cache_worker *w);

/* Open and seal say of each packet, by its position, what became of it. */
struct ipsec_cache_result {
	uint64_t done; /* is now what was asked for */
	uint64_t drop; /* failed for error[i]; the mbuf is still the caller's */
	uint64_t hand_over; /* untouched: worker home[i] has to do it */
	uint64_t not_ours; /* open: untouched, no ESP to an address of ours */
	uint64_t pending; /* a device has it: ipsec_cache_poll() gives it back */
	uint8_t error[PACKET_VECTOR_MAX];
	uint8_t home[PACKET_VECTOR_MAX];
	struct ipsec_cache_rt *rt[PACKET_VECTOR_MAX]; /* open: the SA each `done` one came by */
};

/*
 * Takes ESP, bare or in UDP, off the packets of `mask`: frames with an IPv4 or IPv6 packet that is
 * whole (not a fragment) and whose header was checked. A `done` one is a frame of its own again:
 * the inner packet behind 14 bytes for an Ethernet header, of which only the type is set; its view
 * is filled anew. Positions keep their order; the mbuf at a position may become another one. RFC
 * 4303, 4106, 3948, 6040.
 */
void ipsec_cache_open(struct ipsec_cache_worker *w, struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_result *result);

/* What is to be done with a packet. */
enum ipsec_cache_action {
	IPSEC_CACHE_ROUTE, /* not IPsec's business: it goes where routes say */
	IPSEC_CACHE_PROTECT, /* by `rt`, then to `hop` */
	IPSEC_CACHE_DROP, /* for `error` */
};
struct ipsec_cache_decision {
	struct ipsec_cache_rt *rt;
	const void *hop; /* as resolve() gave it for the other end of the tunnel */
	struct ipsec_session *session; /* PROTECT: of the device that does it; NULL: the CPU */
	uint16_t mtu; /* PROTECT: bytes of the longest inner packet that then fits the route */
	uint8_t action; /* enum ipsec_cache_action */
	uint8_t error; /* enum ipsec_cache_error */
};

/*
 * Decides the packets of `mask`, whose views are filled. by[i]: the SA that packet i was decrypted
 * by, NULL for one that came in clear; by itself NULL: all did. Checks the inbound (for addresses
 * of ours) or forward policy and looks up the outbound one, as Linux does for a packet it forwards.
 * decisions[i] is never NULL and valid until the worker's next quiescence or begin, or until
 * IPSEC_CACHE_DECISIONS_MAX more packets were decided. `in_ifindex`: the device it came in by; 0:
 * it is our own (no inbound and forward policy).
 */
void ipsec_cache_decide(struct ipsec_cache_worker *w, const struct packet_vector *v, uint64_t mask,
	struct ipsec_cache_rt *const *by, uint32_t in_ifindex,
	const struct ipsec_cache_decision **decisions);

/*
 * Makes ESP packets of those in `mask`, which decisions[i] wants protected, in order of position.
 * The caller has decremented the inner TTL and seen that it fits decisions[i]->mtu. A `done` frame
 * has 14 bytes for an Ethernet header before the outer IP header, of which only the type is set;
 * its view is filled anew; the mbuf at its position may become another one. Checksums that were
 * left to a NIC must be complete (D22).
 */
void ipsec_cache_seal(struct ipsec_cache_worker *w, struct packet_vector *v, uint64_t mask,
	const struct ipsec_cache_decision *const *decisions, struct ipsec_cache_result *result);

/* The worker that packets of that decision have to be sealed by: this one, or another. */
unsigned int ipsec_cache_home(struct ipsec_cache_worker *w, const struct ipsec_cache_decision *d);

/*
 * What a device finished: the caller takes the mbuf over and goes on as after open or seal, but
 * that no view is filled. Packets that one worker put into one device come in that order. To be
 * called, after ipsec_cache_begin(), in every loop while the worker is busy, and until it gives
 * fewer than max; when workers stop, until they are not busy or some 100 ms are over. Returns how
 * many.
 */
struct ipsec_cache_done {
	struct rte_mbuf *m; /* NULL, with `failed`: the device lost it, and keeps it */
	struct ipsec_cache_rt *rt;
	const void *hop; /* sealed: where it goes */
	bool sealed; /* else opened */
	bool failed; /* for `error` */
	uint8_t error;
};
unsigned int
ipsec_cache_poll(struct ipsec_cache_worker *w, struct ipsec_cache_done *done, unsigned int max);
/* A device has packets of the worker's. While no worker runs the control thread may ask, and poll.
 */
bool ipsec_cache_busy(const struct ipsec_cache_worker *w);

/*
 * A frame that was sealed for one port and leaves by another, or is copied: the CPU does what that
 * port's NIC was to do, in place. False: it cannot be (the SA is gone, or the NIC was to do more
 * than encrypt): the frame is as it was, still the caller's, and must not leave.
 */
bool ipsec_cache_complete(struct ipsec_cache_worker *w, struct rte_mbuf *m);

struct ipsec_cache_stats {
	uint64_t hits, misses, stale, evictions; /* of decisions */
	uint64_t in_hits, in_misses; /* of inbound SAs */
	uint64_t completed; /* packets that the CPU protected in a device's stead */
	uint64_t sessions; /* that devices have now for SAs */
	uint64_t sessions_dying; /* likewise, and nobody uses any more */
	uint64_t sessions_stuck; /* that a device would not give up */
	uint64_t fallbacks; /* times an SA that a device was to serve went to the CPU instead */
	uint64_t errors[IPSEC_CACHE_ERROR_MAX];
};
/* Sums over the workers. */
void ipsec_cache_stats(const struct ipsec_cache *ic, struct ipsec_cache_stats *stats);

/* --- SAs --- */

struct ipsec_cache_algorithm {
	char name[64]; /* "rfc4106(gcm(aes))", "ecb(cipher_null)", "digest_null"; "" none */
	unsigned int key_bits;
	unsigned int icv_bits; /* AEAD and authentication */
	uint8_t key[IPSEC_CACHE_KEY_MAX];
};

/* An SA as it is asked for and as it is shown. */
struct ipsec_cache_sa_spec {
	struct xfrm_usersa_info info; /* curlft, stats and seq are filled in by describe */
	struct ipsec_cache_algorithm aead, crypt, auth;
	bool has_encap;
	struct xfrm_encap_tmpl encap;
	struct xfrm_mark mark;
	uint32_t set_mark, set_mark_mask;
	uint32_t if_id;
	uint32_t extra_flags; /* XFRM_SA_XFLAG_* */
	uint32_t tfcpad;
	bool has_replay, esn_form; /* numbers below given; as XFRMA_REPLAY_ESN_VAL */
	uint64_t oseq, seq; /* 64 bits, also without ESN */
	uint32_t replay_window; /* packets, as the ESN form or info.replay_window gave it */
	uint32_t replay_maxage, replay_maxdiff; /* XFRMA_ETIMER_THRESH, XFRMA_REPLAY_THRESH */
	bool has_pcpu;
	uint32_t pcpu; /* RFC 9611: outbound for this worker only */
	uint32_t offload_ifindex; /* XFRMA_OFFLOAD_DEV; 0 none */
	uint8_t offload_flags;
	char offload_name[16]; /* of that device, for sentences; "" if nobody knows */
	uint8_t dir; /* XFRMA_SA_DIR: 0 not said, 1 in, 2 out */
	uint64_t last_used; /* seconds since 1970; describe */
};

/* What selects one SA: Linux's xfrm_state_lookup(). */
struct ipsec_cache_sa_id {
	xfrm_address_t daddr;
	__be32 spi;
	uint16_t family;
	uint8_t proto;
	uint32_t mark;
};

/*
 * Adds an SA. `update`: completes a larval one of allocspi, or changes the lifetimes of one that
 * works; Linux passes over a difference in anything else, here it is refused. info.curlft's bytes
 * and packets, if not 0, are behind it already. 0 or -errno with *why a sentence, nothing changed:
 * -EEXIST, -ESRCH (update), -EINVAL, -ENOSYS (algorithm; as Linux says), -EOPNOTSUPP, -ENOSPC,
 * -ENOMEM.
 */
int ipsec_cache_sa_add(struct ipsec_cache *ic, const struct ipsec_cache_sa_spec *spec, bool update,
	const char **why);
int ipsec_cache_sa_del(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id); /* 0, -ESRCH */
/* An IKE daemon says that its lifetime is over: the event is sent, and if `hard` it goes. */
int ipsec_cache_sa_expire(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id, bool hard);
/* When EVENT_AE comes: packets, and tenths of a second. 0, -ESRCH. */
int ipsec_cache_sa_thresholds(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id,
	uint32_t maxdiff, uint32_t maxage);
/*
 * A larval SA with an SPI of [min, max] that is free; *sa. In any mode, as in Linux: the SA that
 * completes it says its own. 0, -ENOENT (none free), -EINVAL...
 */
int ipsec_cache_sa_alloc_spi(struct ipsec_cache *ic, const struct xfrm_userspi_info *info,
	const struct xfrm_mark *mark, uint32_t if_id, struct ipsec_cache_sa **sa, const char **why);
struct ipsec_cache_sa *
ipsec_cache_sa_find(struct ipsec_cache *ic, const struct ipsec_cache_sa_id *id);
/* proto 0 or IPSEC_PROTO_ANY: all. 0, or -ESRCH if there was none. */
int ipsec_cache_sa_flush(struct ipsec_cache *ic, uint8_t proto);
/* In the order they were added: the first whose number is greater than *after, which is set. */
struct ipsec_cache_sa *ipsec_cache_sa_next(struct ipsec_cache *ic, uint64_t *after);
void ipsec_cache_sa_describe(const struct ipsec_cache_sa *sa, struct ipsec_cache_sa_spec *spec);
/* What does an SA's work, and why not something better. */
struct ipsec_cache_backend {
	char name[64]; /* "cpu-gcm", "inline-crypto p0" ... */
	char why_not[160]; /* a clause without its full stop; "": nothing is better */
};
void ipsec_cache_sa_backend(const struct ipsec_cache *ic, const struct ipsec_cache_sa *sa,
	struct ipsec_cache_backend *backend);
unsigned int ipsec_cache_sa_count(const struct ipsec_cache *ic);
/* Of the hash table by SPI, for `ip -s xfrm state count`; 0 before the first SA. */
unsigned int ipsec_cache_sa_buckets(const struct ipsec_cache *ic);
/* Grows with each change of SAs or policies: dumps that were interrupted. */
uint64_t ipsec_cache_generation(const struct ipsec_cache *ic);

/* --- devices that do ESP, or a part of it (rte_security) --- */

/*
 * A port whose NIC may do the cryptography of ESP (inline crypto) or all of it (inline protocol).
 * SAs get a session on the port that their route names, if it can do them to the last option, and
 * not otherwise: the CPU's packets and a NIC's are the same on the wire. A session has one port;
 * packets that leave by another are the CPU's at once, and the SA follows its route within a
 * second. When a device fails, SAs go on in software.
 *
 * What is sealed for a NIC carries RTE_MBUF_F_TX_SEC_OFFLOAD and that port in m->port: it is to be
 * sent by that port, or to be given to ipsec_cache_complete() first. What a NIC has opened, or
 * failed at, carries one of IPSEC_CACHE_RX_FLAGS until ipsec_cache_open() has seen it: it is not to
 * be sent with it.
 */
#define IPSEC_CACHE_RX_FLAGS (RTE_MBUF_F_RX_SEC_OFFLOAD | RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED)
struct ipsec_cache_dev {
	uint32_t ifindex; /* as resolve() names it */
	uint16_t port_id;
	const char *name; /* lives as long as the device: what sentences call it */
};
/* A port was started, with the SECURITY offloads that it has. 0; -EEXIST; -ENOTSUP: its driver has
 * no rte_security; -ENOSPC, -ENOMEM. */
int ipsec_cache_dev_add(struct ipsec_cache *ic, const struct ipsec_cache_dev *dev);
/*
 * A device goes: entries and SAs let go of it at once (E5); sessions end after a grace period and
 * when frames have left, or in ipsec_cache_dev_stopped().
 */
void ipsec_cache_dev_gone(struct ipsec_cache *ic, uint32_t ifindex);
/* A device that has gone, a grace period ago (rcu_barrier()), was stopped and is about to be
 * closed: no session is left behind. */
void ipsec_cache_dev_stopped(struct ipsec_cache *ic, uint32_t ifindex);
/* RTE_ETH_EVENT_IPSEC of a port: subtype and metadata, whatever they are. Any thread. */
void ipsec_cache_dev_event(struct ipsec_cache *ic, unsigned int subtype, uint64_t metadata);

/*
 * A crypto device (cryptodev) that does SAs' cryptography beside the packets' way (lookaside
 * crypto), or all of ESP (lookaside protocol, by its rte_security): asynchronous, so that
 * ipsec_cache_poll() gives packets back. SAs that no port does get a session on the first device
 * that can do them. It is configured with a queue pair for each worker, 0 .. n_queue_pairs - 1, of
 * 1024 descriptors or more, and started; workers beyond do the work themselves. At most 1024
 * packets of a worker are in a device. One that gives nothing back for 100 ms has failed: SAs go on
 * by the CPU, it is not asked again, and what it still has stays its own. It must be stopped before
 * ipsec_cache_destroy(), and closed after that.
 */
struct ipsec_cache_crypto {
	uint8_t dev_id;
	uint16_t n_queue_pairs;
	const char *name; /* lives as long as the instance: what sentences call it */
};
/* 0; -ENOTSUP: no symmetric cryptography; -ENOSPC, -ENOMEM. */
int ipsec_cache_crypto_add(struct ipsec_cache *ic, const struct ipsec_cache_crypto *crypto);

/* --- policies --- */

struct ipsec_cache_policy_spec {
	struct xfrm_userpolicy_info info;
	unsigned int n_tmpl;
	struct xfrm_user_tmpl tmpl[IPSEC_CACHE_TEMPLATES_MAX];
	struct xfrm_mark mark;
	uint32_t if_id;
	uint8_t type; /* XFRM_POLICY_TYPE_MAIN */
};

/*
 * `update`: takes the place of one with the same selector, direction, mark and if_id, or is added
 * where there is none, as in Linux. 0 or -errno with *why: -EEXIST, -EINVAL, -EOPNOTSUPP (more than
 * one template ...), -ENOSPC, -ENOMEM.
 */
int ipsec_cache_policy_add(struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *spec,
	bool update, const char **why);
/* By index, or (index 0) by selector, direction, mark and if_id. NULL: none. */
struct ipsec_cache_policy *
ipsec_cache_policy_find(struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *which);
int ipsec_cache_policy_del(
	struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *which); /* 0, -ENOENT */
/* As ipsec_cache_sa_expire(). 0, -ENOENT. */
int ipsec_cache_policy_expire(
	struct ipsec_cache *ic, const struct ipsec_cache_policy_spec *which, bool hard);
int ipsec_cache_policy_flush(struct ipsec_cache *ic); /* 0, -ESRCH if there was none */
struct ipsec_cache_policy *ipsec_cache_policy_next(struct ipsec_cache *ic, uint64_t *after);
void ipsec_cache_policy_describe(
	const struct ipsec_cache_policy *policy, struct ipsec_cache_policy_spec *spec);
/* Policies of a direction (XFRM_POLICY_IN, OUT, FWD). */
unsigned int ipsec_cache_policy_count(const struct ipsec_cache *ic, uint8_t dir);
unsigned int ipsec_cache_policy_buckets(const struct ipsec_cache *ic); /* as for SAs */
/* What packets without a policy meet: XFRM_USERPOLICY_ACCEPT or _BLOCK each. */
void ipsec_cache_default_get(const struct ipsec_cache *ic, struct xfrm_userpolicy_default *def);
void ipsec_cache_default_set(struct ipsec_cache *ic, const struct xfrm_userpolicy_default *def);

/* --- those who listen (netlink's monitor groups, IKE daemons) --- */

enum ipsec_cache_event {
	IPSEC_CACHE_EVENT_SA_ADD, /* object: struct ipsec_cache_sa */
	IPSEC_CACHE_EVENT_SA_UPDATE,
	IPSEC_CACHE_EVENT_SA_DEL,
	IPSEC_CACHE_EVENT_SA_EXPIRE_SOFT,
	IPSEC_CACHE_EVENT_SA_EXPIRE_HARD, /* it goes; no SA_DEL follows, as in Linux */
	IPSEC_CACHE_EVENT_SA_FLUSH, /* object: uint8_t, the protocol */
	IPSEC_CACHE_EVENT_AE, /* replay numbers moved past their threshold; struct ipsec_cache_sa */
	IPSEC_CACHE_EVENT_POLICY_ADD, /* object: struct ipsec_cache_policy */
	IPSEC_CACHE_EVENT_POLICY_UPDATE,
	IPSEC_CACHE_EVENT_POLICY_DEL,
	IPSEC_CACHE_EVENT_POLICY_EXPIRE_SOFT,
	IPSEC_CACHE_EVENT_POLICY_EXPIRE_HARD,
	IPSEC_CACHE_EVENT_POLICY_FLUSH, /* object: NULL */
	IPSEC_CACHE_EVENT_ACQUIRE, /* object: struct ipsec_cache_acquire */
	IPSEC_CACHE_EVENT_MAPPING, /* a NAT moved the peer: struct ipsec_cache_mapping */
};
/* Traffic met a policy whose SA is not there. A larval SA stands for it until one comes. */
struct ipsec_cache_acquire {
	const struct ipsec_cache_policy *policy;
	const struct xfrm_user_tmpl *tmpl;
	struct xfrm_selector sel; /* the packet's */
	xfrm_address_t saddr, daddr; /* of the SA that is wanted */
	uint32_t seq;
	bool *told; /* set by the listener: somebody has heard it; else it is said again later */
};
struct ipsec_cache_mapping {
	const struct ipsec_cache_sa *sa;
	xfrm_address_t saddr;
	__be16 sport;
};
/* One listener; NULL: none. Called by the control thread, from within the calls above. */
void ipsec_cache_listen(struct ipsec_cache *ic,
	void (*fn)(void *arg, enum ipsec_cache_event event, const void *object), void *arg);

#endif /* IPSEC_CACHE_IPSEC_CACHE_H */
