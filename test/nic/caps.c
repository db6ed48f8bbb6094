/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* Tables of capabilities: rte_security's rows and, for each, the algorithms it points to. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ALGS_MAX 3u /* entries of a row: GCM, or cipher and authentication NULL, and the end */
#define ENDLESS 5000u
#define WINDOW_MAX 4096u

struct row {
	struct nic_cap cap;
	struct rte_cryptodev_capabilities algs[ALGS_MAX + 1];
};

struct nic_table {
	struct rte_security_capability *rows; /* NULL: capabilities_get() says NULL */
	struct row *of;
	unsigned int n;
	struct nic_table *old; /* somebody may still look at it */
};

static struct rte_cryptodev_capabilities
alg_gcm(const struct nic_cap *cap)
{
	struct rte_cryptodev_capabilities c = { .op = RTE_CRYPTO_OP_TYPE_SYMMETRIC };
	unsigned int sizes = cap->algs & (NIC_ALG_GCM128 | NIC_ALG_GCM192 | NIC_ALG_GCM256);

	c.sym.xform_type = RTE_CRYPTO_SYM_XFORM_AEAD;
	c.sym.aead.algo = RTE_CRYPTO_AEAD_AES_GCM;
	c.sym.aead.block_size = 16;
	c.sym.aead.key_size.min = (sizes & NIC_ALG_GCM128) != 0 ? 16
		: (sizes & NIC_ALG_GCM192) != 0                 ? 24
								: 32;
	c.sym.aead.key_size.max = (sizes & NIC_ALG_GCM256) != 0 ? 32
		: (sizes & NIC_ALG_GCM192) != 0                 ? 24
								: 16;
	c.sym.aead.key_size.increment = sizes == (NIC_ALG_GCM128 | NIC_ALG_GCM256) ? 16
		: c.sym.aead.key_size.min == c.sym.aead.key_size.max               ? 0
										   : 8;
	c.sym.aead.digest_size.min = cap->icv_min;
	c.sym.aead.digest_size.max = cap->icv_max;
	c.sym.aead.digest_size.increment = cap->icv_step;
	c.sym.aead.aad_size.min = 8;
	c.sym.aead.aad_size.max = 12;
	c.sym.aead.aad_size.increment = 4;
	c.sym.aead.iv_size.min = c.sym.aead.iv_size.max = 12;
	return c;
}

static void
row_algs(struct row *row)
{
	unsigned int n = 0;

	if ((row->cap.algs & ~NIC_ALG_NULL) != 0)
		row->algs[n++] = alg_gcm(&row->cap);
	if ((row->cap.algs & NIC_ALG_NULL) != 0) {
		row->algs[n].op = row->algs[n + 1].op = RTE_CRYPTO_OP_TYPE_SYMMETRIC;
		row->algs[n].sym.xform_type = RTE_CRYPTO_SYM_XFORM_CIPHER;
		row->algs[n].sym.cipher.algo = RTE_CRYPTO_CIPHER_NULL;
		row->algs[n].sym.cipher.block_size = 1;
		n++;
		row->algs[n].sym.xform_type = RTE_CRYPTO_SYM_XFORM_AUTH;
		row->algs[n].sym.auth.algo = RTE_CRYPTO_AUTH_NULL;
		row->algs[n].sym.auth.block_size = 1;
		n++;
	}
	row->algs[n].op = RTE_CRYPTO_OP_TYPE_UNDEFINED;
}

static struct rte_security_capability
capability(const struct row *row)
{
	struct rte_security_capability c = {
		.action = row->cap.action,
		.protocol = row->cap.protocol,
		.crypto_capabilities = row->algs,
		.ol_flags = row->cap.ol_flags,
	};

	if (row->cap.protocol != RTE_SECURITY_PROTOCOL_IPSEC)
		return c;
	c.ipsec.proto = row->cap.proto;
	c.ipsec.mode = row->cap.mode;
	c.ipsec.direction = row->cap.direction;
	c.ipsec.options = row->cap.options;
	c.ipsec.replay_win_sz_max = row->cap.replay_win_sz_max;
	return c;
}

/* A table of n rows (action NONE is the end), or NULL without memory. */
static struct nic_table *
table_make(const struct nic_cap *caps, unsigned int n)
{
	struct nic_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->n = n;
	t->of = calloc(n + 1, sizeof(*t->of));
	t->rows = calloc(n + 1, sizeof(*t->rows));
	if (t->of == NULL || t->rows == NULL) {
		free(t->of);
		free(t->rows);
		free(t);
		return NULL;
	}
	for (unsigned int i = 0; i < n; i++) {
		t->of[i].cap = caps[i];
		row_algs(&t->of[i]);
		t->rows[i] = capability(&t->of[i]);
	}
	t->rows[n].action = RTE_SECURITY_ACTION_TYPE_NONE;
	return t;
}

struct nic_cap
nic_cap_of(enum rte_security_session_action_type action,
	enum rte_security_ipsec_sa_direction direction)
{
	struct nic_cap cap = {
		.action = action,
		.protocol = RTE_SECURITY_PROTOCOL_IPSEC,
		.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP,
		.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL,
		.direction = direction,
		.algs = NIC_ALG_GCM128 | NIC_ALG_GCM192 | NIC_ALG_GCM256 | NIC_ALG_NULL,
		.icv_min = 8,
		.icv_max = 16,
		.icv_step = 4,
	};

	cap.options.esn = 1;
	cap.options.udp_encap = 1;
	cap.options.stats = 1;
	if (action == RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO)
		return cap;
	cap.options.copy_dscp = 1;
	cap.options.copy_flabel = 1;
	cap.options.copy_df = 1;
	cap.options.dec_ttl = 1;
	cap.options.ecn = 1;
	cap.options.tunnel_hdr_verify = RTE_SECURITY_IPSEC_TUNNEL_VERIFY_SRC_DST_ADDR;
	cap.options.udp_ports_verify = 1;
	if (direction == RTE_SECURITY_IPSEC_SA_DIR_INGRESS)
		cap.replay_win_sz_max = WINDOW_MAX;
	return cap;
}

static unsigned int
both(struct nic_cap *caps, enum rte_security_session_action_type action, unsigned int options)
{
	for (unsigned int i = 0; i < 2; i++) {
		caps[i] = nic_cap_of(action,
			i == 0 ? RTE_SECURITY_IPSEC_SA_DIR_EGRESS
			       : RTE_SECURITY_IPSEC_SA_DIR_INGRESS);
		if (i == 0 && (options & NIC_NEED_MDATA) != 0)
			caps[i].ol_flags = RTE_SECURITY_TX_OLOAD_NEED_MDATA;
	}
	return 2;
}

static struct nic_table *
table_endless(void)
{
	struct nic_cap *caps = calloc(ENDLESS, sizeof(*caps));
	struct nic_table *t;

	if (caps == NULL)
		return NULL;
	for (unsigned int i = 0; i < ENDLESS; i++) {
		caps[i] = nic_cap_of(
			RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO, RTE_SECURITY_IPSEC_SA_DIR_EGRESS);
		if (i % 2 == 0)
			caps[i].proto = RTE_SECURITY_IPSEC_SA_PROTO_AH;
		else
			caps[i].protocol = RTE_SECURITY_PROTOCOL_DOCSIS;
	}
	t = table_make(caps, ENDLESS);
	free(caps);
	return t;
}

/* NULL, and *err, for no such preset or without memory. */
struct nic_table *
nic_table_of(const char *preset, unsigned int options, int *err)
{
	bool all = strcmp(preset, "all") == 0;
	struct nic_table *t;
	struct nic_cap caps[4];
	unsigned int n = 0;

	*err = -ENOMEM;
	if (strcmp(preset, "endless") == 0)
		return table_endless();
	if (all || strcmp(preset, "inline_crypto") == 0)
		n += both(caps + n, RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO, options);
	if (all || strcmp(preset, "inline_protocol") == 0)
		n += both(caps + n, RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL, options);
	if (strcmp(preset, "protocol") == 0)
		n += both(caps + n, RTE_SECURITY_ACTION_TYPE_LOOKASIDE_PROTOCOL, 0);
	if (n == 0 && strcmp(preset, "none") != 0 && strcmp(preset, "null") != 0) {
		*err = -ENOENT;
		return NULL;
	}
	t = table_make(caps, n);
	if (t != NULL && strcmp(preset, "null") == 0) {
		free(t->rows);
		t->rows = NULL;
	}
	return t;
}

const struct rte_security_capability *
nic_table_rows(const struct nic_table *t)
{
	return t->rows;
}

static unsigned int
alg_of(const struct rte_crypto_sym_xform *x)
{
	if (x == NULL)
		return 0;
	if (x->type != RTE_CRYPTO_SYM_XFORM_AEAD)
		return NIC_ALG_NULL; /* nic_cipher_init() refuses others */
	return x->aead.key.length == 16    ? NIC_ALG_GCM128
		: x->aead.key.length == 24 ? NIC_ALG_GCM192
		: x->aead.key.length == 32 ? NIC_ALG_GCM256
					   : 0;
}

static bool
icv_fits(const struct nic_cap *cap, const struct rte_crypto_sym_xform *x)
{
	uint16_t len;

	if (x->type != RTE_CRYPTO_SYM_XFORM_AEAD)
		return true;
	len = x->aead.digest_length;
	return len >= cap->icv_min && len <= cap->icv_max &&
		(cap->icv_step == 0 || (len - cap->icv_min) % cap->icv_step == 0);
}

static bool
options_fit(struct rte_security_ipsec_sa_options can, struct rte_security_ipsec_sa_options want)
{
	uint32_t a, b;

	_Static_assert(sizeof(can) == sizeof(a), "options are 32 bits");
	memcpy(&a, &can, sizeof(a));
	memcpy(&b, &want, sizeof(b));
	return (b & ~a) == 0;
}

static bool
row_allows(const struct nic_cap *cap, const struct rte_security_session_conf *conf)
{
	const struct rte_security_ipsec_xform *ipsec = &conf->ipsec;

	return cap->action == conf->action_type && cap->protocol == conf->protocol &&
		cap->proto == ipsec->proto && cap->mode == ipsec->mode &&
		cap->direction == ipsec->direction && options_fit(cap->options, ipsec->options) &&
		(ipsec->replay_win_sz <= cap->replay_win_sz_max ||
			cap->action == RTE_SECURITY_ACTION_TYPE_INLINE_CRYPTO) &&
		(cap->algs & alg_of(conf->crypto_xform)) != 0 && icv_fits(cap, conf->crypto_xform);
}

bool
nic_table_allows(const struct nic_table *t, const struct rte_security_session_conf *conf)
{
	if (conf->protocol != RTE_SECURITY_PROTOCOL_IPSEC || conf->crypto_xform == NULL)
		return false;
	for (unsigned int i = 0; i < t->n; i++) {
		if (row_allows(&t->of[i].cap, conf))
			return true;
	}
	return false;
}

bool
nic_table_has(const struct nic_table *t, enum rte_security_session_action_type action)
{
	for (unsigned int i = 0; i < t->n; i++) {
		if (t->of[i].cap.action == action)
			return true;
	}
	return false;
}

static int
replace(struct nic *nic, struct nic_table *t)
{
	if (t == NULL)
		return -ENOMEM;
	t->old = nic->caps;
	nic->caps = t;
	return 0;
}

void
nic_tables_free(struct nic *nic)
{
	struct nic_table *t;

	while ((t = nic->caps) != NULL) {
		nic->caps = t->old;
		free(t->rows);
		free(t->of);
		free(t);
	}
}

static int
preset_set(struct nic *nic, const char *preset)
{
	struct nic_table *t;
	int err = -ENODEV;

	if (nic == NULL)
		return err;
	if ((t = nic_table_of(preset, nic->options, &err)) == NULL)
		return err;
	pthread_mutex_lock(&nic->mutex);
	err = replace(nic, t);
	pthread_mutex_unlock(&nic->mutex);
	return err;
}

/* A copy without the rows of one action, and with a row more if there is one. */
static int
change(struct nic *nic, enum rte_security_session_action_type without, const struct nic_cap *more)
{
	struct nic_cap *caps;
	unsigned int n = 0;
	int ret;

	if (nic == NULL)
		return -ENODEV;
	pthread_mutex_lock(&nic->mutex);
	if ((caps = calloc(nic->caps->n + 1, sizeof(*caps))) == NULL) {
		pthread_mutex_unlock(&nic->mutex);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < nic->caps->n; i++) {
		if (more != NULL || nic->caps->of[i].cap.action != without)
			caps[n++] = nic->caps->of[i].cap;
	}
	if (more != NULL)
		caps[n++] = *more;
	ret = replace(nic, table_make(caps, n));
	pthread_mutex_unlock(&nic->mutex);
	free(caps);
	return ret;
}

int
nic_caps_preset(uint16_t port, const char *preset)
{
	return preset_set(nic_of_port(port), preset);
}

int
nic_crypto_caps_preset(uint8_t dev, const char *preset)
{
	return preset_set(nic_of_crypto(dev), preset);
}

int
nic_caps_add(uint16_t port, const struct nic_cap *cap)
{
	return change(nic_of_port(port), RTE_SECURITY_ACTION_TYPE_NONE, cap);
}

int
nic_crypto_caps_add(uint8_t dev, const struct nic_cap *cap)
{
	return change(nic_of_crypto(dev), RTE_SECURITY_ACTION_TYPE_NONE, cap);
}

int
nic_caps_remove(uint16_t port, enum rte_security_session_action_type action)
{
	return change(nic_of_port(port), action, NULL);
}
