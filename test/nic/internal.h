/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_NIC_INTERNAL_H
#define TEST_NIC_INTERNAL_H

/* What the files of this room know of each other. `mutex` guards all of a device but the counters.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <intel-ipsec-mb.h>

#include <rte_cryptodev.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mbuf.h>
#include <rte_security_driver.h>

#include "nic.h"

#define NIC_FRAME_MAX 65536u
#define NIC_SESSION_MAX 65535u
#define NIC_HELD_MAX 1024u
#define NIC_RAISED_MAX 64u
#define NIC_CRYPTO_ID 0x20u /* of a cryptodev's metadata: no port has such a number */

enum nic_alg {
	NIC_GCM,
	NIC_NULL
};

/* A cipher and its key. Sizes in bytes; those of NULL are 0. */
struct nic_cipher {
	struct gcm_key_data key;
	aes_gcm_enc_dec_t encrypt, decrypt;
	enum nic_alg alg;
	uint8_t salt[4];
	uint32_t iv_len, icv_len;
};

/* Numbers that came (RFC 4303, 3.4.3). */
struct nic_window {
	uint32_t size; /* 0: all are taken */
	uint64_t top;
	uint64_t *bits; /* of number N: N modulo `n_bits` */
	uint64_t n_bits;
};

struct nic_session {
	struct nic_cipher cipher;
	struct rte_security_ipsec_xform ipsec;
	enum rte_security_session_action_type action;
	uint64_t userdata;
	uint64_t number; /* Tx: the last one */
	uint64_t iv; /* Tx, inline protocol: the last one */
	uint16_t id; /* IPv4: of the last outer header */
	struct nic_window window;
	uint64_t packets, bytes;
	bool soft, hard; /* those events were raised */
	uint32_t inside; /* packets that the device holds */
	uint64_t metadata; /* what names it */
	struct rte_security_session *handle;
	LIST_ENTRY(nic_session) by_spi;
};

LIST_HEAD(nic_sessions, nic_session);
#define NIC_BUCKETS 4096u

/*
 * What metadata names: 10 bits of generation, 6 of the device, 16 of the slot, under a word that
 * other values hardly have. A slot that is used again has another generation.
 */
#define NIC_MDATA_MAGIC (UINT64_C(0x4e494321) << 32)
static inline bool
nic_mdata_is_of(uint64_t metadata, uint32_t id)
{
	return metadata >> 32 == NIC_MDATA_MAGIC >> 32 && (metadata >> 16 & 0x3f) == id;
}

struct nic_slot {
	struct nic_session *session;
	uint32_t generation;
	bool gone_counted; /* destroyed_in_use, once */
};

struct nic_flow {
	struct rte_flow_attr attr;
	int family; /* of the outer header; 0: any */
	uint8_t src[16], src_mask[16], dst[16], dst_mask[16];
	uint32_t spi, spi_mask; /* as on the wire */
	bool udp;
	const void *session; /* NULL: any */
	LIST_ENTRY(nic_flow) next;
};

struct nic_table; /* capabilities */

/* A port or a cryptodev. */
struct nic {
	pthread_mutex_t mutex;
	bool attached;
	uint8_t id; /* as in metadata */
	unsigned int options;
	struct rte_security_ctx ctx;
	struct nic_table *caps;
	struct nic_slot *slots; /* NIC_SESSION_MAX + 1 */
	uint32_t slot_hint;
	struct nic_sessions sessions[NIC_BUCKETS];
	LIST_HEAD(, nic_flow) flows;
	_Atomic uint64_t stats[sizeof(struct nic_stats) / sizeof(uint64_t)];
	_Atomic uint32_t faults[NIC_FAULT_MAX];
	/* cryptodevs */
	struct nic_crypto *crypto;
	/* ports */
	uint16_t port;
	bool rx_on, tx_on; /* the offload is configured */
	enum {
		NIC_ALIVE,
		NIC_UNTIL_STOP,
		NIC_REMOVED
	} dead;
	eth_rx_burst_t rx;
	eth_tx_burst_t tx;
	struct rte_mbuf *held[NIC_HELD_MAX]; /* tx_hold, as given */
	void *held_queue[NIC_HELD_MAX];
	unsigned int n_held;
	/* A packet raised them; EAL's interrupt thread calls. */
	struct rte_eth_event_ipsec_desc raised[NIC_RAISED_MAX];
	unsigned int n_raised;
};

/* Where things are in a frame of ESP, from its first byte. */
struct nic_esp {
	uint32_t l3, esp, end; /* IP header, ESP header, behind the IP packet */
	bool v6, udp;
	uint8_t tos; /* of the outer header */
};

enum nic_verdict {
	NIC_GOOD,
	NIC_BAD_ICV,
	NIC_BAD_REPLAY,
	NIC_BAD_FORM,
	NIC_BAD_END,
	NIC_DUMMY
};

#define NIC_COUNT_OF(name) (offsetof(struct nic_stats, name) / sizeof(uint64_t))
#define nic_count(nic, name) nic_count_at(nic, NIC_COUNT_OF(name), 1)
#define nic_uncount(nic, name) nic_count_at(nic, NIC_COUNT_OF(name), UINT64_MAX)

static inline void
nic_count_at(struct nic *nic, size_t at, uint64_t n)
{
	atomic_fetch_add_explicit(&nic->stats[at], n, memory_order_relaxed);
}

/* crypto.c */
#define NIC_CRYPTO_MAX 8u
struct nic_crypto *nic_crypto_open(void);
void nic_crypto_close(struct nic_crypto *crypto);

/* nic.c */
extern struct nic nic_ports[RTE_MAX_ETHPORTS];
struct nic *nic_of_port(uint16_t port); /* NULL: not ours */
struct nic *nic_of_crypto(uint8_t dev);
int nic_open(struct nic *nic, uint8_t id, const char *preset, unsigned int options);
void nic_shut(struct nic *nic);
bool nic_strikes(struct nic *nic, enum nic_fault fault); /* of the first list: now, and one less */
uint32_t nic_level(const struct nic *nic, enum nic_fault fault);
bool nic_marked(const uint8_t *frame, uint32_t len);

/* esp.c: all work on flat bytes. */
int nic_cipher_init(struct nic_cipher *cipher, const struct rte_crypto_sym_xform *xform);
bool nic_find_esp(const uint8_t *frame, uint32_t len, struct nic_esp *at);
bool nic_find_esp_ip(const uint8_t *packet, uint32_t len, uint32_t l3, struct nic_esp *at);
/* Inline crypto: in place. NIC_BAD_FORM: not a frame that could be protected. */
enum nic_verdict
nic_encrypt(struct nic_session *s, uint8_t *frame, uint32_t len, const uint32_t *high);
enum nic_verdict nic_decrypt(struct nic_session *s, uint8_t *frame, const struct nic_esp *at);
/* Inline and lookaside protocol: from the inner packet to the outer one and back, both behind `l2`
 * bytes that are copied. `out` has room for NIC_FRAME_MAX bytes. */
enum nic_verdict nic_encapsulate(struct nic_session *s, const uint8_t *in, uint32_t len,
	uint32_t l2, uint8_t *out, uint32_t *out_len);
enum nic_verdict nic_decapsulate(struct nic_session *s, const uint8_t *in, const struct nic_esp *at,
	bool forgive, uint8_t *out, uint32_t *out_len);
uint64_t nic_number_near(uint64_t top, uint32_t low);

/* outer.c: the tunnel's header. */
uint32_t
nic_outer_write(struct nic_session *s, const uint8_t *inner, uint8_t *out, uint32_t esp_len);
void nic_outer_udp6(uint8_t *ip, uint32_t len);
bool nic_outer_verify(const struct nic_session *s, const uint8_t *in, const struct nic_esp *at);
bool nic_inner_finish(const struct nic_session *s, const struct nic_esp *at, uint8_t *inner);
uint32_t nic_inner_len(const uint8_t *inner, uint32_t len); /* 0: none that fits */
void nic_ttl_less(uint8_t *ip);

/* window.c */
int nic_window_init(struct nic_window *w, uint32_t size, uint64_t top);
uint64_t nic_window_number(const struct nic_window *w, uint32_t low, bool esn);
bool nic_window_check(const struct nic_window *w, uint64_t number);
void nic_window_add(struct nic_window *w, uint64_t number);

/* caps.c */
struct nic_table *nic_table_of(const char *preset, unsigned int options, int *err);
const struct rte_security_capability *nic_table_rows(const struct nic_table *table);
bool nic_table_allows(const struct nic_table *table, const struct rte_security_session_conf *conf);
bool nic_table_has(const struct nic_table *table, enum rte_security_session_action_type action);
void nic_tables_free(struct nic *nic);

/* session.c */
extern const struct rte_security_ops nic_ops;
struct nic_session *nic_session_of(struct nic *nic, uint64_t metadata);
uint64_t nic_handle_metadata(const void *handle);
struct nic_session *nic_session_of_handle(struct nic *nic, const void *handle);
struct nic_session *nic_session_in(struct nic *nic, const uint8_t *frame, const struct nic_esp *at);
struct nic_session *nic_session_next(struct nic *nic, uint32_t *slot);
void nic_forget(struct nic *nic);
void nic_came_late(struct nic *nic, uint64_t metadata); /* its session is gone */

/* mdata.c */
int nic_mdata_init(bool dynfield);
void nic_mdata_set(struct rte_mbuf *m, uint64_t session, const uint64_t *number);
uint64_t nic_mdata_get(const struct nic *nic, struct rte_mbuf *m, bool *has_high, uint32_t *high);
void nic_mdata_wipe(struct rte_mbuf *m);
void nic_mdata_userdata(struct rte_mbuf *m, uint64_t userdata);

/* buf.c: frames as flat bytes, and back. */
int nic_pool_open(void);
uint32_t nic_flat(const struct rte_mbuf *m, uint8_t *to); /* length, 0: longer than NIC_FRAME_MAX */
struct rte_mbuf *nic_buf(const struct rte_mbuf *like, const uint8_t *bytes, uint32_t len);
struct rte_mbuf *nic_buf_write(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len);
void nic_buf_fill(struct rte_mbuf *m, const uint8_t *bytes, uint32_t len); /* whoever shares it */

/* rx.c, tx.c */
uint16_t nic_rx(struct nic *nic, void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t nic_tx(struct nic *nic, void *queue, struct rte_mbuf **pkts, uint16_t n);
void nic_tx_release(struct nic *nic, bool send);

/* event.c, flow.c */
void nic_events_clear(struct nic *nic);
void nic_flows_clear(struct nic *nic);
bool nic_steered(struct nic *nic, const struct nic_session *s, const uint8_t *frame,
	const struct nic_esp *at);
void nic_raise(struct nic *nic, enum rte_eth_event_ipsec_subtype subtype, uint64_t metadata);
void nic_lifetime(struct nic *nic, struct nic_session *s, uint32_t bytes);

#endif /* TEST_NIC_INTERNAL_H */
