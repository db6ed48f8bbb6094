/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef TEST_NIC_H
#define TEST_NIC_H

/*
 * A NIC with rte_security where there is none, for tests: any ethdev of the process (net_ring,
 * net_pcap, net_af_packet, net_tap, net_null) becomes one whose hardware does ESP, and any software
 * cryptodev one that does the whole protocol. What it does to packets is an implementation of ESP
 * (RFC 4303, 4106, 3948, 2410, 6040) of its own, so that it can judge ours.
 *
 * How: the linker's --wrap puts it between the program and rte_ethdev's control calls (the list is
 * in meson.build); when a port has been started, the Rx and Tx functions of the public
 * rte_eth_fp_ops[] are replaced by its own. Tx callbacks would not do: a callback cannot drop a
 * frame without the caller believing that others were not sent. A frame that the port refuses (ring
 * full) is left as it came. Only public headers are used; what they do not allow is listed at the
 * end.
 *
 * A test links dep_nic, calls nic_attach() after EAL and before it configures the port, and goes on
 * as with a NIC. The program millrace-nic is millrace with all of this; program.c says how it is
 * told.
 *
 * The NIC's conventions, where rte_security leaves them to the driver:
 *
 * - SPIs and UDP ports of a session are in host order, the salt is bytes as they lie in memory.
 * - Tx, inline crypto: the frame is finished ESP in clear, Ethernet to ICV room, and IP's and UDP's
 *   lengths are final. The NIC encrypts and fills in the ICV. It refuses what is not such a frame
 * of the session: tx_malformed.
 * - Tx, inline protocol: l2_len bytes of Ethernet whose type is the OUTER header's, then the inner
 *   packet; bytes behind the inner packet's own length are dropped. Numbers begin behind
 *   conf.ipsec.esn.value and end at 2^32 - 1 or 2^64 - 1 (tx_seq_end).
 * - The NIC knows a Tx frame's session by its metadata alone: set_pkt_metadata(), or the session's
 *   fast_mdata in rte_security_dynfield() where the context has RTE_SEC_CTX_F_FAST_SET_MDATA.
 *   Metadata counts once: it is wiped when the frame is sent. It takes 4 bytes of an mbuf's dynamic
 *   fields and, with a number, hash.fdir.hi; rte_security's field takes 8.
 * - Extended numbers and inline crypto on Tx: `params` of set_pkt_metadata() points to the frame's
 *   64-bit number (uint64_t), whose low half is in the frame. Without it (NULL, or fast metadata)
 * the NIC finds the high half by the last number it saw, which was conf.ipsec.esn.value in the
 * beginning.
 * - Extended numbers on Rx: the high half follows the highest number with a right ICV, which was
 *   conf.ipsec.esn.value in the beginning (RFC 4303, appendix A2; without a window the nearest).
 * - session_update() changes esn.value and life, nothing else.
 * - Lifetimes are inline protocol's: events come from EAL's interrupt thread, once each.
 * - Rx sessions are found by SPI and, in tunnel mode, by the outer destination; a session with
 *   udp_encap takes only UDP-encapsulated frames, one without only others. Frames with IPv6
 * extension headers, fragments and ESP of no session are left alone (rx_other). An rte_flow rule
 * with RTE_FLOW_ACTION_TYPE_SECURITY has to lead to the session (conf: the session; NULL: to any)
 *   unless the port is attached with NIC_NO_STEERING (else: rx_unsteered, left alone).
 * - Rx, inline crypto: text decrypted where it is; header, IV, trailer and ICV stay.
 * - Rx, inline protocol: Ethernet and the inner packet. Whatever is wrong leaves the frame as it
 * came, with RTE_MBUF_F_RX_SEC_OFFLOAD | _FAILED; dummies (next header 59) vanish (rx_dummy).
 * - Rx: with NIC_DYNFIELD or any inline protocol capability, rte_security_dynfield() holds
 * conf.userdata.
 * - Sessions need the port configured with RTE_ETH_RX/TX_OFFLOAD_SECURITY, or they are refused.
 * - Lookaside protocol: m_src (m_dst NULL or the same) begins with the IP header. Outbound takes
 *   headroom for outer header, ESP and IV, and tailroom of the last segment for the rest, or fails.
 *   Wrong ICV: RTE_CRYPTO_OP_STATUS_AUTH_FAILED; no such session: INVALID_SESSION; all else: ERROR.
 *
 * Thread safety: every function here may be called by any thread, at any time after nic_attach().
 * The NIC locks on its packet path, as no NIC does: it is not for measuring throughput.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_security.h>

/* Options of nic_attach(). */
#define NIC_FAST_MDATA 0x1u /* RTE_SEC_CTX_F_FAST_SET_MDATA; registers rte_security_dynfield */
/* Capabilities say RTE_SECURITY_TX_OLOAD_NEED_MDATA: without it a driver that does not tell that
 * it needs metadata, and loses frames of those who believe it (tx_no_session). */
#define NIC_NEED_MDATA 0x2u
#define NIC_NO_FLOW 0x4u /* "this driver has no rte_flow": -ENOSYS; implies NIC_NO_STEERING */
#define NIC_NO_STEERING 0x8u /* Rx needs no rte_flow rule */
#define NIC_DYNFIELD 0x10u /* inline crypto too writes userdata into rte_security_dynfield */

/* name, what is counted. Of a cryptodev: those of sessions, and crypto_*. */
#define NIC_STATS(X) \
	X(sessions, "that exist now") \
	X(created, "sessions") \
	X(create_failed, "sessions refused, on demand or because of what was asked") \
	X(destroyed, "sessions") \
	X(destroy_failed, "on demand") \
	X(destroyed_in_use, \
		"sessions whose packets came, or were inside, after their destruction") \
	X(updated, "sessions") \
	X(forgotten, "sessions lost on demand or by a reset") \
	X(left, "sessions that were there when the device was closed") \
	X(flows, "rules that exist now") \
	X(flow_created, "rules") \
	X(flow_failed, "rules refused") \
	X(mdata_set, "set_pkt_metadata()") \
	X(mdata_failed, "on demand") \
	X(tx_frames, "that left") \
	X(tx_protected, "of those: by the NIC") \
	X(tx_lost, "frames marked for protection that were not sent, for any of the next seven") \
	X(tx_no_session, "no metadata") \
	X(tx_gone_session, "metadata of a session that is gone") \
	X(tx_wrong_port, "metadata of another port's session") \
	X(tx_malformed, "not what the session protects") \
	X(tx_not_enabled, "the port was not configured with RTE_ETH_TX_OFFLOAD_SECURITY") \
	X(tx_seq_end, "no number left, or a hard lifetime over") \
	X(tx_nombuf, "the NIC had no buffer") \
	X(tx_dropped, "on demand: any frame") \
	X(tx_lens, "sent, but l2_len, l3_len or RTE_MBUF_F_TX_IPV4/6 were not the frame's") \
	X(rx_frames, "that came") \
	X(rx_decrypted, "well") \
	X(rx_failed, "marked FAILED, for any of the next three or on demand") \
	X(rx_icv, "wrong check value") \
	X(rx_replay, "number seen, too old, or 0") \
	X(rx_malformed, "lengths, padding, inner packet, tunnel header") \
	X(rx_dummy, "next header 59: vanished") \
	X(rx_other, "ESP of no session") \
	X(rx_unsteered, "ESP of a session to which no rule leads") \
	X(plaintext, "frames that left with the marker in them") \
	X(events, "callbacks called") \
	X(crypto_in, "operations taken") \
	X(crypto_out, "operations given back") \
	X(crypto_sealed, "security operations outbound that went well") \
	X(crypto_opened, "security operations inbound that went well") \
	X(crypto_failed, "operations given back with an error") \
	X(crypto_lost, "operations never given back, on demand")

struct nic_stats {
#define NIC_STATS_FIELD(name, what) uint64_t name;
	NIC_STATS(NIC_STATS_FIELD)
#undef NIC_STATS_FIELD
};

/* The NIC's `n`-th counter's name and value in a struct nic_stats, or NULL behind the last. */
const char *nic_stats_name(unsigned int n);
uint64_t nic_stats_value(const struct nic_stats *stats, unsigned int n);

/*
 * Faults on demand. Those of the first list strike the next N occasions, and are then over; N =
 * NIC_ALWAYS never ends. Those of the second are in force with the value N until changed.
 */
#define NIC_ALWAYS UINT32_MAX
#define NIC_FAULTS_NEXT(X) \
	X(session_create, "rte_security_session_create() fails: rte_errno is fault create_errno") \
	X(session_destroy, "rte_security_session_destroy() fails with -EBUSY") \
	X(set_mdata, "rte_security_set_pkt_metadata() fails with -EIO (not with fast metadata)") \
	X(flow_create, "rte_flow_create() fails with -ENOMEM") \
	X(flow_destroy, "rte_flow_destroy() fails with -EIO") \
	X(tx_drop, "a frame vanishes on Tx") \
	X(tx_forget, "before a protected frame is sent all sessions are lost") \
	X(rx_icv, "a frame with a right ICV is FAILED") \
	X(rx_lost, "steering lost: a frame for a session comes encrypted and without flags") \
	X(rx_good, "a frame with a wrong ICV counts as good") \
	X(rx_userdata, "rte_security_dynfield() holds another session's userdata, or garbage") \
	X(op_lose, "an operation never comes back") \
	X(op_error, "an operation comes back with RTE_CRYPTO_OP_STATUS_ERROR") \
	X(op_auth, "an operation comes back with RTE_CRYPTO_OP_STATUS_AUTH_FAILED")
#define NIC_FAULTS_LEVEL(X) \
	X(create_errno, "errno of session_create, in the beginning ENOMEM") \
	X(session_max, "sessions that fit, in the beginning 65535: more fail with ENOSPC") \
	X(tx_hold, "1: protected frames stay in the NIC, and hold their sessions, until 0") \
	X(op_full, "operations that an enqueue takes, plus 1; 0: no limit") \
	X(op_hold, "1: operations stay in the device until 0") \
	X(op_reorder, "1: operations come back last first") \
	X(op_dead, "1: the device takes nothing and gives nothing back")

enum nic_fault {
#define NIC_FAULT_ENUM(name, what) NIC_FAULT_##name,
	NIC_FAULTS_NEXT(NIC_FAULT_ENUM)
	NIC_FAULTS_LEVEL(NIC_FAULT_ENUM)
#undef NIC_FAULT_ENUM
		NIC_FAULT_MAX
};

/* By its name, or -1. */
int nic_fault_by_name(const char *name);

/* One entry of a capability table. */
#define NIC_ALG_GCM128 0x1u
#define NIC_ALG_GCM192 0x2u
#define NIC_ALG_GCM256 0x4u
#define NIC_ALG_NULL 0x8u /* cipher NULL and authentication NULL */
struct nic_cap {
	enum rte_security_session_action_type action;
	enum rte_security_session_protocol protocol;
	enum rte_security_ipsec_sa_protocol proto;
	enum rte_security_ipsec_sa_mode mode;
	enum rte_security_ipsec_sa_direction direction;
	struct rte_security_ipsec_sa_options options; /* that it can do */
	uint32_t replay_win_sz_max;
	uint32_t ol_flags;
	unsigned int algs; /* NIC_ALG_*; NULL+NULL comes with two entries, as RFC 2410 is one */
	uint16_t icv_min, icv_max, icv_step; /* bytes, of GCM */
};

/*
 * Makes the port a NIC: from now on, as capabilities a preset says (see nic_caps_preset()).
 * `options` are NIC_*. Errors: -ENODEV (port out of range), -EEXIST (attached already), -ENOENT
 * (no such preset), -ENOMEM. It stays one until nic_detach(), which needs the port closed.
 */
int nic_attach(uint16_t port, const char *preset, unsigned int options);
void nic_detach(uint16_t port);

/* The same for a cryptodev and its rte_security context; presets: "protocol", "none". */
int nic_crypto_attach(uint8_t dev, const char *preset);
void nic_crypto_detach(uint8_t dev);

/*
 * Replaces the capabilities: "all" (inline crypto and protocol, every algorithm and option),
 * "inline_crypto", "inline_protocol", "protocol" (lookaside), "none" (an empty table), "null" (no
 * table: capabilities_get() says NULL), "endless" (5000 entries of no use before the end). Those
 * who hold the old table keep it. Errors: -ENODEV, -ENOENT (no such preset), -ENOMEM.
 */
int nic_caps_preset(uint16_t port, const char *preset);
int nic_crypto_caps_preset(uint8_t dev, const char *preset);
/* Adds one, and removes all of one action. -ENODEV, -ENOMEM, and 0 if it is done. */
int nic_caps_add(uint16_t port, const struct nic_cap *cap);
int nic_caps_remove(uint16_t port, enum rte_security_session_action_type action);
int nic_crypto_caps_add(uint8_t dev, const struct nic_cap *cap);
/* All that it can: to be narrowed and added. */
struct nic_cap nic_cap_of(enum rte_security_session_action_type action,
	enum rte_security_ipsec_sa_direction direction);

/* Faults, and what was counted. -ENODEV; a fault that is none of the device's kind does nothing. */
int nic_fault(uint16_t port, enum nic_fault fault, uint32_t n);
int nic_crypto_fault(uint8_t dev, enum nic_fault fault, uint32_t n);
int nic_stats(uint16_t port, struct nic_stats *stats);
int nic_crypto_stats(uint8_t dev, struct nic_stats *stats);

/* An operation that op_lose took and nobody has taken from here yet, or NULL: to be freed. */
struct rte_crypto_op *nic_crypto_lost(uint8_t dev);

/* Sessions that exist, at most n of them in no order; how many were written. */
struct nic_session_info {
	uint32_t spi;
	enum rte_security_session_action_type action;
	enum rte_security_ipsec_sa_direction direction;
	uint64_t userdata;
	uint64_t number; /* the last one sent, or the highest that came */
	uint64_t packets;
};
unsigned int nic_sessions(uint16_t port, struct nic_session_info *to, unsigned int n);
unsigned int nic_crypto_sessions(uint8_t dev, struct nic_session_info *to, unsigned int n);

/*
 * What no frame that leaves any NIC may contain: `len` bytes, at most 64, 0 for none. Frames with
 * it are counted (plaintext) and sent.
 */
void nic_marker(const void *bytes, size_t len);

/*
 * Calls what is registered with rte_eth_dev_callback_register() for the port, in this thread:
 *   nic_event_ipsec   RTE_ETH_EVENT_IPSEC of that subtype and metadata
 *   nic_event_storm   n of them, of all subtypes in turn, with userdata of sessions and garbage
 *   nic_event         "intr_reset": all sessions are lost, nothing goes in or out until the port is
 *                     stopped or reset; "intr_rmv": nothing goes in or out any more; "forget": all
 *                     sessions are lost, and nobody is told; -ENOENT for other names
 * -ENODEV if the port is no NIC.
 */
int nic_event(uint16_t port, const char *name);
int nic_event_ipsec(uint16_t port, enum rte_eth_event_ipsec_subtype subtype, uint64_t metadata);
int nic_event_storm(uint16_t port, unsigned int n);

/* True when every buffer of the NICs' own is back: what a test says at its end. */
bool nic_pool_full(void);

/*
 * What public headers do not allow (22.11): transmission that completes later, other than by
 * tx_hold; rte_eth_recycle_mbufs (23.11) would bypass the NIC; RTE_CRYPTO_OP_SESSIONLESS and raw
 * data-path operations pass to the real cryptodev. Transport mode is inline crypto's only.
 */

#endif /* TEST_NIC_H */
