/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_XFRM_H
#define NETLINK_XFRM_H

/*
 * What the messages of NETLINK_XFRM share. They are the kernel's, which reads their attributes
 * leniently: one that a message has no use for is passed over there. Here it is refused by name.
 */

#include <linux/xfrm.h>

#include "ipsec_cache/ipsec_cache.h"
#include "netlink/message.h"

/* Of newer headers than Debian's. */
#define XFRM_ATTR_SA_DIR 33 /* XFRMA_SA_DIR */
#define XFRM_ATTR_NAT_KEEPALIVE 34 /* XFRMA_NAT_KEEPALIVE_INTERVAL */
#define XFRM_ATTR_SA_PCPU 35 /* XFRMA_SA_PCPU */
#define XFRM_ATTRS 36

#define XFRM_BIT(type) (UINT64_C(1) << (type))

/*
 * The instance, with `req` noted as who asked for the changes that follow; NULL with the request
 * failed if this program has no IPsec.
 */
struct ipsec_cache *xfrm_begin(struct netlink_request *req);
/* Returns `ret`. */
int xfrm_end(struct netlink_request *req, int ret);

/* The message's attributes; those whose XFRM_BIT() is not in `allowed` are refused by name. */
int xfrm_parse(struct netlink_request *req, size_t header, uint64_t allowed,
	const struct nlattr *tb[XFRM_ATTRS]);
/* Copies a fixed header or payload, which may not be aligned. */
void xfrm_header(const struct netlink_request *req, void *header, size_t len);
void xfrm_payload(const struct nlattr *attr, void *to, size_t len);
/* 0 where the attribute is absent. */
uint32_t xfrm_u32(const struct nlattr *attr);
void xfrm_mark(const struct nlattr *attr, struct xfrm_mark *mark);
/* A failed call of the library, whose sentence is why. */
int xfrm_fail(struct netlink_request *req, int err, const char *why);

/*
 * A selector's device: an index of the request's (a restore's are those of another run) becomes
 * ours. 0, -ENODEV.
 */
int xfrm_selector(struct netlink_request *req, struct xfrm_selector *sel);

/* xfrm_sa.c: an SA as XFRM_MSG_NEWSA has it, both ways. The caller wipes `spec`. */
int xfrm_sa_parse(struct netlink_request *req, struct ipsec_cache_sa_spec *spec);
void xfrm_sa_put(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec);
void xfrm_replay_put(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec);
/* The end of many messages: mark, if_id, direction and CPU. */
void xfrm_sa_put_tail(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec);
/* One NEWSA into the answer. */
bool xfrm_sa_answer(struct netlink_request *req, const struct ipsec_cache_sa *sa, uint16_t flags);
void xfrm_sa_id_of(const struct ipsec_cache_sa_spec *spec, struct xfrm_usersa_id *id);

/* xfrm_policy.c */
void xfrm_policy_put(struct netlink_put *put, const struct ipsec_cache_policy_spec *spec);

/* xfrm_ae.c: what XFRM_MSG_NEWAE has behind its header. */
void
xfrm_ae_header(const struct ipsec_cache_sa_spec *spec, uint32_t flags, struct xfrm_aevent_id *id);
void xfrm_ae_put(struct netlink_put *put, const struct ipsec_cache_sa_spec *spec, uint32_t flags);

/* xfrm_notify.c: tells subscribers of an event; req may be NULL. */
void xfrm_notify(struct netlink_server *server, struct netlink_request *req,
	enum ipsec_cache_event event, const void *object);

#endif /* NETLINK_XFRM_H */
