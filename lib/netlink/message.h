/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef NETLINK_MESSAGE_H
#define NETLINK_MESSAGE_H

/*
 * Inside the control server: how a message family (link.c, qdisc.c, filter.c) or a kind
 * (act_csum.c, matchall.c) plugs in. Each file registers its table by constructor; there is no
 * central switch. The registry is filled before main() and never changes after: constant data, not
 * state.
 */

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "netlink/netlink.h"

struct netlink_client;

/* One request under way. Lives while its handler runs; a dump's lives until the dump has ended. */
struct netlink_request {
	struct netlink_server *server;
	const struct netlink_conf *conf; /* the server's handles */
	struct netlink_client *client;
	const struct nlmsghdr *nlh; /* the whole message, its length checked; a dump keeps a copy */
	uint32_t portid;
	/* For dumps: zero at the start, then the handler's own, kept between calls. */
	uint64_t cursor[8];
	uint64_t generation; /* first call: note what you dump; a later difference sets interrupted
			      */
	bool interrupted; /* answered with NLM_F_DUMP_INTR */
	bool strict; /* NETLINK_GET_STRICT_CHK: the header and attributes of a dump filter it */
	bool bare; /* answers without statistics and ages: what a save keeps (save.h) */
	const struct netlink_devmap
		*devmap; /* a restore's: whose indexes it speaks of; NULL: ours */
	/* The error, set through netlink_fail(). */
	char why[256];
	uint32_t bad_offset; /* of the attribute in question, 0 for none */
};

/*
 * Message handlers return 0 or -errno. They validate all before they change anything. On success
 * the server acknowledges if NLM_F_ACK was asked; on error it sends the code and `why`.
 */
struct netlink_handler {
	int protocol; /* NETLINK_ROUTE, NETLINK_XFRM */
	uint16_t type; /* RTM_NEWQDISC ... */
	size_t header; /* sizeof(struct tcmsg): shorter messages are refused before doit() */
	int (*doit)(struct netlink_request *req);
	/*
	 * A dump of a shorter message (`struct rtgenmsg` is all that many programs send) sees its
	 * header filled up with zeros. netlink_parse() of a dump without req->strict is the
	 * handler's choice: the kernel then looks at nothing beyond the header.
	 *
	 * One part of a dump (a get with NLM_F_DUMP): put messages until netlink_put_begin() or
	 * netlink_put_end() returns false (no room: return 1 with the cursor at the object that did
	 * not fit) or all are put (return 0). -errno ends the dump with that error. NULL: this type
	 * has no dump.
	 */
	int (*dump)(struct netlink_request *req);
	bool dump_bare; /* a dump's request has no header, attributes follow at once: xfrm's */
	STAILQ_ENTRY(netlink_handler) next;
};

void netlink_handler_register(struct netlink_handler *handler);
/* The handler, or NULL. O(1). */
const struct netlink_handler *netlink_handler_find(int protocol, uint16_t type);

#define NETLINK_REGISTER_HANDLER(h) \
	static void __attribute__((constructor)) netlink_register_##h(void) \
	{ \
		netlink_handler_register(&h); \
	} \
	struct netlink_handler /* swallow the semicolon */

/* Sets the extended ack: a sentence without a final full stop, and the attribute at fault (may be
 * NULL). Returns err. */
int netlink_fail(struct netlink_request *req, int err, const struct nlattr *attr, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* What an attribute must be. */
enum netlink_attr_type {
	NETLINK_ATTR_U8,
	NETLINK_ATTR_U16,
	NETLINK_ATTR_U32,
	NETLINK_ATTR_U64,
	NETLINK_ATTR_BINARY, /* min..max bytes; max 0: no bound */
	NETLINK_ATTR_STRING, /* terminated within its payload, at most max bytes with the NUL */
	NETLINK_ATTR_NESTED,
	NETLINK_ATTR_FLAG,
	NETLINK_ATTR_REFUSED, /* the kernel knows it, we do not serve it: -EOPNOTSUPP with its name
			       */
	NETLINK_ATTR_IGNORED, /* accepted for what the kernel ignores as well; say why beside it */
};

struct netlink_attr_policy {
	uint16_t type; /* TCA_KIND */
	const char *name; /* "TCA_KIND"; NULL: a hole */
	enum netlink_attr_type what;
	uint16_t min, max;
};

/*
 * Sorts attributes into tb[0..n_tb) by type (NULL where absent). An attribute that the policy does
 * not list is refused by number, one that is too short, too long, badly nested or given twice by
 * name; a length that does not fit the message by position. 0, -EINVAL or -EOPNOTSUPP (unknown).
 */
int
netlink_parse(struct netlink_request *req, size_t header, const struct netlink_attr_policy *policy,
	size_t n_policy, const struct nlattr **tb, size_t n_tb);
int netlink_parse_nested(struct netlink_request *req, const struct nlattr *nest,
	const struct netlink_attr_policy *policy, size_t n_policy, const struct nlattr **tb,
	size_t n_tb);

/*
 * Puts one message into the answer: of a doit (NLM_F_MULTI as in `flags`) or of a dump (always
 * set). False when the datagram has no room; the first message of a datagram always has
 * NETLINK_MESSAGE_MAX bytes. Attributes are added with netlink_put*(), which mark the message as
 * overflowed when there is no room; netlink_put_end() returns false for such a message and takes it
 * back. A dump then returns 1; a doit -EMSGSIZE.
 */
#define NETLINK_MESSAGE_MAX 32768
struct netlink_put {
	struct nlmsghdr *nlh;
	size_t room; /* bytes from nlh that the message may have */
	bool overflowed;
	bool bare; /* the request's: no statistics, no ages */
};
bool netlink_put_begin(struct netlink_request *req, struct netlink_put *put, uint16_t type,
	uint16_t flags, const void *header, size_t header_len);
bool netlink_put_end(struct netlink_request *req, struct netlink_put *put);

void netlink_put_data(struct netlink_put *put, uint16_t type, const void *data, size_t len);
void netlink_put_u8(struct netlink_put *put, uint16_t type, uint8_t value);
void netlink_put_u16(struct netlink_put *put, uint16_t type, uint16_t value);
void netlink_put_u32(struct netlink_put *put, uint16_t type, uint32_t value);
void netlink_put_u64(struct netlink_put *put, uint16_t type, uint64_t value);
void netlink_put_string(struct netlink_put *put, uint16_t type, const char *value);
struct nlattr *
netlink_put_nest(struct netlink_put *put, uint16_t type); /* with NLA_F_NESTED clear, as tc's are */
void netlink_put_nest_end(struct netlink_put *put, struct nlattr *nest);

/* True if anybody would get such a message: building it is half the cost of a change. O(1). */
bool netlink_notify_wanted(const struct netlink_server *server, const struct netlink_request *req,
	int protocol, unsigned int group);

/*
 * Multicast. Builds one message in a buffer of the server's and sends it to every subscriber of
 * `group` (RTNLGRP_TC ...) and, with NLM_F_ECHO in the request, to the requester. req may be NULL
 * (a change nobody asked for: portid and seq 0).
 */
bool netlink_notify_begin(struct netlink_server *server, struct netlink_request *req,
	struct netlink_put *put, uint16_t type, uint16_t flags, const void *header,
	size_t header_len);
void netlink_notify_end(struct netlink_server *server, struct netlink_request *req,
	struct netlink_put *put, int protocol, unsigned int group);

/*
 * What a family keeps for each server beside the caller's handles: the qdiscs of devices. The
 * server calls create() for each registered family before it serves, dev_gone() when a device is
 * about to go (after RTM_DELLINK was sent), and destroy(), in reverse order, when it ends. Any may
 * be NULL.
 */
struct netlink_family {
	int (*create)(struct netlink_server *server, void **state); /* 0 or -errno */
	void (*destroy)(struct netlink_server *server, void *state);
	void (*dev_gone)(struct netlink_server *server, void *state, uint32_t ifindex);
	unsigned int id; /* given at registration: index into the server's array of states */
	STAILQ_ENTRY(netlink_family) next;
};
#define NETLINK_FAMILIES_MAX 16
void netlink_family_register(struct netlink_family *family);
void *netlink_family_state(struct netlink_server *server, const struct netlink_family *family);

#define NETLINK_REGISTER_FAMILY(f) \
	static void __attribute__((constructor)) netlink_register_family_##f(void) \
	{ \
		netlink_family_register(&f); \
	} \
	struct netlink_family /* swallow the semicolon */

/* The handles the server was created with. */
const struct netlink_conf *netlink_server_conf(const struct netlink_server *server);

/*
 * link.c: one RTM_NEWLINK or RTM_DELLINK to RTNLGRP_LINK. netlink_server_dev_changed() and
 * netlink_server_dev_gone() (server.c) call it; req may be NULL.
 */
void netlink_link_notify(struct netlink_server *server, struct netlink_request *req, uint16_t type,
	uint32_t ifindex);

/* Devices of another instance, or of one that ran before, and which of ours they are. */
struct netlink_devmap {
	bool own; /* a state of this instance: an index that is not there is of a device that left
		   */
	uint32_t n;
	struct {
		uint32_t theirs, ours; /* ifindexes */
	} dev[];
};
/* Ours, or 0. */
uint32_t netlink_devmap_find(const struct netlink_devmap *map, uint32_t theirs);

/* The device, or false with the request failed (-ENODEV "Cannot find device ..."): by index, as the
 * request counts them: what is kept is dev->ifindex. */
int netlink_dev_by_index(struct netlink_request *req, uint32_t ifindex, struct netlink_dev *dev);
int netlink_dev_by_name(struct netlink_request *req, const char *name, struct netlink_dev *dev);

/* A kind of action: two small files, the library's and this one's act_<kind>.c. */
struct netlink_action_kind {
	const struct action_ops *ops;
	/*
	 * TCA_ACT_OPTIONS -> an unpublished snapshot (verdict and kind's own fields; cookie and
	 * flags are filled in by the caller) and the index asked for. `old` is the snapshot being
	 * replaced or NULL.
	 */
	int (*parse)(struct netlink_request *req, const struct nlattr *options,
		const struct action_params *old, uint32_t *index, struct action_params **params);
	/* Puts the kind's attributes (inside TCA_OPTIONS), without the TM attribute. */
	void (*put)(struct netlink_put *put, const struct action *action,
		const struct action_params *params);
	uint16_t tm_type; /* TCA_CSUM_TM: where struct tcf_t goes */
	STAILQ_ENTRY(netlink_action_kind) next;
};
void netlink_action_kind_register(struct netlink_action_kind *kind);
const struct netlink_action_kind *netlink_action_kind_find(const char *name);
const struct netlink_action_kind *netlink_action_kind_of(const struct action_ops *ops);
/* The one after `kind`, the first for NULL; NULL at the end. */
const struct netlink_action_kind *netlink_action_kind_next(const struct netlink_action_kind *kind);

/* A kind of filter: cls_<kind>.c. */
struct flower_match;
struct netlink_filter_kind {
	const char *name; /* "matchall" */
	enum classifier_kind kind;
	uint16_t actions_type; /* TCA_MATCHALL_ACT: where its list of actions is */
	/*
	 * TCA_OPTIONS -> conf's kind-specific part and classid, flags, actions (see
	 * tc_actions_parse()). `match` is zeroed room for what conf->flower may point to.
	 */
	int (*parse)(struct netlink_request *req, const struct nlattr *options,
		struct classifier_rule_conf *conf, struct flower_match *match);
	void (*put)(struct netlink_server *server, struct netlink_put *put,
		const struct classifier_rule *rule);
	/* Flags and actions without their parameters. NULL: such dumps are refused, as by Linux. */
	void (*put_terse)(struct netlink_put *put, const struct classifier_rule *rule);
	/*
	 * TCA_OPTIONS of a chain's template -> `match` (zeroed), and back. `protocol` is the one
	 * that the message's header says. NULL: there are no templates of this kind.
	 */
	int (*parse_template)(struct netlink_request *req, const struct nlattr *options,
		uint16_t protocol, struct flower_match *match);
	void (*put_template)(struct netlink_server *server, struct netlink_put *put,
		const struct flower_match *match);
	STAILQ_ENTRY(netlink_filter_kind) next;
};
void netlink_filter_kind_register(struct netlink_filter_kind *kind);
const struct netlink_filter_kind *netlink_filter_kind_find(const char *name);
const struct netlink_filter_kind *netlink_filter_kind_of(enum classifier_kind kind);

#endif /* NETLINK_MESSAGE_H */
