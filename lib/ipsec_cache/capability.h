/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef IPSEC_CACHE_CAPABILITY_H
#define IPSEC_CACHE_CAPABILITY_H

/* What rte_security is asked for on behalf of an SA, and whether a device can do it. Thread safety:
 * reentrant. */

#include <rte_crypto_sym.h>
#include <rte_security.h>

#include "ipsec_cache/rt.h"

/* Capabilities of a device, and algorithms of a capability, that are looked at: a list that does
 * not end is left there. */
#define IPSEC_CAPABILITIES_MAX 1024

/* A session's configuration. It points into itself and to the SA's key: not to be copied. */
struct ipsec_want {
	struct rte_security_session_conf conf;
	struct rte_crypto_sym_xform xform[2];
};

/* For an SA by that action; userdata and where numbers begin are the caller's. */
void ipsec_want_fill(struct ipsec_want *want, const struct ipsec_cache_rt *rt,
	enum rte_security_session_action_type action, bool in);

/*
 * The capability of `ctx` by which all of that can be had. NULL, and *missing says what is lacking
 * from the one that comes nearest: a clause that follows the device's name.
 */
const struct rte_security_capability *
ipsec_capability_find(void *ctx, const struct ipsec_want *want, const char **missing);

/* *missing where a device has no such capability at all. */
extern const char ipsec_no_inline_crypto[];
/* Where it has one, and no session is to be had: from the driver, or here. */
extern const char ipsec_no_session[], ipsec_no_room[];

/* The same for a crypto device without rte_security, by its own list. */
struct rte_cryptodev_capabilities;
bool ipsec_capability_crypto(const struct rte_cryptodev_capabilities *list,
	const struct ipsec_want *want, const char **missing);

#endif /* IPSEC_CACHE_CAPABILITY_H */
