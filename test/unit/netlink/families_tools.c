/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The real `tc` and `ip` against the families, and what they print. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "csum_action/csum_action.h"
#include "support.h"
#include "tools.h"

static void
link_show(void **state)
{
	struct families *f = begin();

	(void)state;
	f->devs[0].stats = (struct netlink_dev_stats){ .rx_packets = 1,
		.rx_bytes = 60,
		.rx_missed = 3,
		.rx_nombuf = 2,
		.tx_packets = 4,
		.tx_bytes = 240,
		.tx_errors = 5,
		.tx_dropped = 6 };
	f->devs[1].dev.carrier = false;
	RUN(0, "ip link show p0");
	OUT_IS("1: p0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast state UP mode "
	       "DEFAULT group default qlen 1000\n"
	       "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n");
	RUN(0, "ip link show");
	OUT_HAS("2: p1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN");
	RUN(0, "ip -s -j link show dev p0");
	OUT_HAS("\"rx\":{\"bytes\":60,\"packets\":1,\"errors\":0,\"dropped\":2,");
	OUT_HAS("\"tx\":{\"bytes\":240,\"packets\":4,\"errors\":5,\"dropped\":6,");
	RUN(0, "ip -d link show p1");
	OUT_HAS("promiscuity 0 ");
	OUT_HAS("minmtu 68 maxmtu 9000 numtxqueues 2 numrxqueues 1");
	OUT_HAS("parentdev net_test");
	RUN(1, "ip link show nosuch");
	OUT_IS("Device \"nosuch\" does not exist.\n");
	families_destroy(f);
}

static void
link_set(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "ip link set p0 mtu 1400 txqueuelen 50 promisc on allmulticast on alias 'a b'");
	RUN(0, "ip link set p0 address 02:00:00:00:00:ff");
	RUN(0, "ip link show p0");
	OUT_IS("1: p0: <BROADCAST,MULTICAST,ALLMULTI,PROMISC,UP,LOWER_UP> mtu 1400 qdisc "
	       "pfifo_fast "
	       "state UP mode DEFAULT group default qlen 50\n"
	       "    link/ether 02:00:00:00:00:ff brd ff:ff:ff:ff:ff:ff permaddr 02:00:00:00:00:01\n"
	       "    alias a b\n");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->limit, 50);
	RUN(0, "ip link set p0 down");
	RUN(0, "ip link set p0 name out alias ''");
	RUN(0, "ip link show out");
	OUT_HAS("1: out: <BROADCAST,MULTICAST,ALLMULTI,PROMISC> mtu 1400 qdisc pfifo_fast state "
		"DOWN");
	assert_null(strstr(out, "alias"));
	/* the default group and mode are what they are; everything else is refused by name */
	RUN(2, "ip link set out netns 1");
	OUT_IS("Error: IFLA_NET_NS_PID is not supported.\n");
	RUN(2, "ip link set out master p1");
	OUT_IS("Error: IFLA_MASTER is not supported.\n");
	RUN(2, "ip link set out mtu 67");
	OUT_IS("Error: mtu less than device minimum.\n");
	RUN(2, "ip link set out mtu 9001");
	OUT_IS("Error: mtu greater than device maximum.\n");
	RUN(2, "ip link set out arp off");
	OUT_HAS("Interface flags 0x80 cannot be changed");
	RUN(2, "ip link set out name p1");
	OUT_IS("Error: Device \"p1\" exists.\n");
	RUN(2, "ip link set out address 01:00:00:00:00:01");
	OUT_HAS("unicast");
	RUN(2, "ip link add dummy0 type dummy");
	OUT_HAS("IFLA_LINKINFO is not supported");
	/* all or nothing: the driver's no takes the queue length back, too */
	f->devs[0].refuse = -EIO;
	RUN(2, "ip link set out txqueuelen 7 mtu 1300");
	OUT_IS("Error: out: the test says no.\n");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->limit, 50);
	families_destroy(f);
}

static void
qdisc_default(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc show");
	OUT_IS("qdisc pfifo_fast 0: dev p0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 "
	       "1 1 1\n"
	       "qdisc mq 0: dev p1 root \n"
	       "qdisc pfifo_fast 0: dev p1 parent :2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 "
	       "1\n"
	       "qdisc pfifo_fast 0: dev p1 parent :1 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 "
	       "1\n");
	RUN(0, "tc -s -j qdisc show dev p0");
	OUT_IS("[{\"kind\":\"pfifo_fast\",\"handle\":\"0:\",\"root\":true,\"refcnt\":2,\"options\":"
	       "{"
	       "\"bands\":3,\"priomap\":[1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1],\"multiqueue\":false},"
	       "\"bytes\":0,\"packets\":0,\"drops\":0,\"overlimits\":0,\"requeues\":0,\"backlog\":"
	       "0,"
	       "\"qlen\":0}]\n");
	RUN(2, "tc qdisc del dev p0 root");
	OUT_IS("Error: Cannot delete qdisc with handle of zero.\n");
	families_destroy(f);
}

static void
qdisc_root(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0,
		"tc qdisc add dev p0 root handle 1: prio bands 4 priomap 0 1 2 3 0 0 0 0 0 0 0 0 0 "
		"0 0 0");
	RUN(0, "tc qdisc show dev p0");
	OUT_IS("qdisc prio 1: root refcnt 2 bands 4 priomap 0 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0\n");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->bands, 4);
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->priomap[3], 3);
	RUN(2, "tc qdisc add dev p0 root handle 1: prio");
	OUT_IS("Error: Exclusivity flag on, cannot modify.\n");
	RUN(2, "tc qdisc add dev p0 root handle 2: prio");
	OUT_IS("Error: NLM_F_REPLACE needed to override.\n");
	RUN(0,
		"tc qdisc change dev p0 root handle 1: prio bands 2 priomap 0 1 0 1 0 1 0 1 0 1 0 "
		"1 0 1 0 1");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->bands, 2);
	RUN(2, "tc qdisc add dev p0 parent 1:1 handle 10: pfifo");
	RUN(0, "tc qdisc replace dev p0 root pfifo limit 77");
	RUN(0, "tc qdisc show dev p0");
	OUT_IS("qdisc pfifo 8001: root refcnt 2 limit 77p\n");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->bands, 1);
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->limit, 77);
	RUN(0, "tc qdisc change dev p0 root pfifo limit 78");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->limit, 78);
	RUN(0, "tc qdisc del dev p0 root");
	RUN(0, "tc qdisc show dev p0");
	OUT_IS("qdisc pfifo_fast 0: root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 "
	       "1\n");
	assert_int_equal(sched_nolock_conf(f->devs[0].sched[0])->limit, 1000);
	RUN(2, "tc qdisc add dev p0 root htb");
	OUT_IS("Error: Specified qdisc kind is unknown: \"htb\".\n");
	RUN(2, "tc qdisc add dev p0 root bfifo limit 10000");
	OUT_IS("Error: Specified qdisc kind is unknown: \"bfifo\".\n");
	RUN(2, "tc qdisc add dev p0 root mq");
	OUT_IS("Error: p0 has one queue: mq needs more.\n");
	RUN(0, "tc qdisc add dev p0 root noqueue");
	RUN(0, "ip link show p0");
	OUT_HAS("qdisc noqueue state UP");
	families_destroy(f);
}

static void
qdisc_mq(void **state)
{
	struct families *f = begin();
	struct sched_nolock *const *sched = f->devs[1].sched;

	(void)state;
	RUN(0, "tc qdisc replace dev p1 root handle 1: mq");
	RUN(0, "tc qdisc add dev p1 parent 1:2 handle 12: pfifo limit 5");
	RUN(0, "tc qdisc show dev p1");
	OUT_IS("qdisc mq 1: root \n"
	       "qdisc pfifo 12: parent 1:2 limit 5p\n"
	       "qdisc pfifo_fast 0: parent 1:1 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n");
	assert_int_equal(sched_nolock_conf(sched[0])->bands, 3);
	assert_int_equal(sched_nolock_conf(sched[1])->limit, 5);
	RUN(2, "tc qdisc add dev p1 parent 1:3 pfifo");
	OUT_IS("Error: Specified class not found.\n");
	RUN(2, "tc qdisc add dev p1 parent 2:1 pfifo");
	OUT_IS("Error: Failed to find specified qdisc.\n");
	RUN(0, "tc qdisc del dev p1 parent 1:2 handle 12:");
	assert_int_equal(sched_nolock_conf(sched[1])->bands, 3);
	RUN(0, "ip link set p1 txqueuelen 9");
	assert_int_equal(sched_nolock_conf(sched[0])->limit, 9);
	assert_int_equal(sched_nolock_conf(sched[1])->limit, 9);
	/* one root for both queues */
	RUN(0, "tc qdisc replace dev p1 root prio");
	RUN(0, "tc qdisc show dev p1");
	OUT_IS("qdisc prio 8001: root refcnt 3 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n");
	RUN(0, "tc qdisc del dev p1 root");
	RUN(0, "ip link show p1");
	OUT_HAS("qdisc mq state");
	families_destroy(f);
}

static void
qdisc_clsact(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(2, "tc filter add dev p0 ingress matchall action pass");
	OUT_HAS("Error: Parent Qdisc doesn't exists.");
	RUN(0, "tc filter show dev p0 ingress");
	OUT_IS("");
	RUN(0, "tc qdisc add dev p0 clsact");
	assert_non_null(classifier_hook_block(&f->devs[0].ingress));
	assert_non_null(classifier_hook_block(&f->devs[0].egress));
	RUN(2, "tc qdisc add dev p0 clsact");
	OUT_IS("Error: Exclusivity flag on, cannot modify.\n");
	RUN(2, "tc qdisc add dev p0 ingress");
	RUN(2, "tc filter add dev p0 parent ffff: matchall action pass");
	RUN(0, "tc qdisc replace dev p0 clsact");
	RUN(0, "tc -j qdisc show dev p0 clsact");
	OUT_HAS("{\"kind\":\"clsact\",\"handle\":\"ffff:\",\"parent\":\"ffff:fff1\",\"options\":{}"
		"}");
	RUN(0, "tc qdisc del dev p0 clsact");
	assert_null(classifier_hook_block(&f->devs[0].ingress));
	assert_null(classifier_hook_block(&f->devs[0].egress));
	RUN(2, "tc qdisc del dev p0 clsact");
	OUT_IS("Error: Cannot find specified qdisc on specified device.\n");
	RUN(0, "tc qdisc add dev p0 ingress");
	RUN(0, "tc filter add dev p0 parent ffff: protocol all prio 1 matchall action csum sctp");
	RUN(0, "tc filter show dev p0 parent ffff:");
	OUT_IS("filter protocol all pref 1 matchall chain 0 \n"
	       "filter protocol all pref 1 matchall chain 0 handle 0x1 \n"
	       "  not_in_hw\n"
	       "\taction order 1: csum (sctp) action pass\n"
	       "\tindex 1 ref 1 bind 1\n\n");
	RUN(0, "tc qdisc del dev p0 ingress");
	RUN(0, "tc actions ls action csum");
	assert_null(strstr(out, "index"));
	families_destroy(f);
}

static void
filter_matchall(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 clsact");
	RUN(0, "tc filter add dev p0 ingress matchall action csum ip4h and udp pipe action drop");
	RUN(0, "tc -s filter show dev p0 ingress");
	OUT_IS("filter protocol all pref 49152 matchall chain 0 \n"
	       "filter protocol all pref 49152 matchall chain 0 handle 0x1 \n"
	       "  not_in_hw (rule hit 0)\n"
	       "\taction order 1: csum (iph, udp) action pipe\n"
	       "\tindex 1 ref 1 bind 1\n"
	       "\tAction statistics:\n"
	       "\tSent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n"
	       "\tbacklog 0b 0p requeues 0\n\n"
	       "\taction order 2: gact action drop\n"
	       "\t random type none pass val 0\n"
	       "\t index 1 ref 1 bind 1\n"
	       "\tAction statistics:\n"
	       "\tSent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n"
	       "\tbacklog 0b 0p requeues 0\n\n");
	RUN(0,
		"tc filter add dev p0 egress prio 10 protocol ip handle 0x7 matchall skip_hw "
		"action pass");
	RUN(0, "tc -j filter show dev p0 egress");
	OUT_HAS("{\"protocol\":\"ip\",\"pref\":10,\"kind\":\"matchall\",\"chain\":0},");
	OUT_HAS("\"options\":{\"handle\":7,\"skip_hw\":true,\"not_in_hw\":true,");
	RUN(2, "tc filter add dev p0 egress prio 10 protocol ip handle 0x7 matchall action pass");
	OUT_HAS("Error: Filter already exists.");
	RUN(2, "tc filter add dev p0 egress prio 10 protocol ipv6 matchall action pass");
	OUT_HAS("Error: Filter with specified priority/protocol not found.");
	RUN(2, "tc filter add dev p0 egress prio 11 protocol ip matchall skip_sw action pass");
	OUT_HAS("skip_sw: filters are not offloaded to devices");
	RUN(2, "tc filter add dev p0 egress prio 11 protocol ip u32 match u32 0 0");
	OUT_HAS("\"u32\" is not supported");
	RUN(2, "tc filter add dev p0 egress prio 11 matchall action mpls pop protocol ip");
	OUT_HAS("\"mpls\" is not supported");
	RUN(2, "tc filter change dev p0 egress prio 12 protocol ip handle 1 matchall action pass");
	OUT_HAS("Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter");
	RUN(0,
		"tc filter replace dev p0 egress prio 10 protocol ip handle 0x7 matchall action "
		"drop");
	RUN(0, "tc filter get dev p0 egress prio 10 protocol ip handle 7 matchall");
	OUT_HAS("gact action drop");
	RUN(2, "tc filter get dev p0 egress prio 10 protocol ip handle 8 matchall");
	OUT_HAS("Specified filter handle not found");
	RUN(2, "tc filter del dev p0 egress prio 11 protocol ip matchall");
	OUT_HAS("Filter with specified priority/protocol not found");
	RUN(2, "tc filter del dev p0 egress chain 5 prio 11 protocol ip matchall");
	OUT_HAS("Cannot find specified filter chain");
	RUN(0, "tc filter del dev p0 egress prio 10 protocol ip handle 7 matchall");
	RUN(0, "tc filter show dev p0 egress");
	OUT_IS("");
	RUN(0, "tc filter del dev p0 ingress");
	RUN(0, "tc filter show dev p0 ingress");
	OUT_IS("");
	RUN(0, "tc filter add dev p0 ingress prio 1 protocol ip matchall action pass");
	RUN(1, "tc -br filter show dev p0 ingress");
	OUT_HAS("there are no terse dumps of \"matchall\"");
	families_destroy(f);
}

static void
flower(void **state)
{
	struct families *f = begin();
	static const char *const same[][2] = {
		{ "protocol ip flower ip_proto udp src_ip 192.0.2.0/24 dst_ip 198.51.100.7 "
		  "src_port 53 "
		  "dst_port 1000-2000",
			"  eth_type ipv4\n  ip_proto udp\n  dst_ip 198.51.100.7\n"
			"  src_ip 192.0.2.0/24\n  src_port 53\n  dst_port 1000-2000\n"
			"  not_in_hw\n" },
		{ "protocol ipv6 flower ip_proto tcp src_ip 2001:db8::/32 tcp_flags 0x2/0x12 "
		  "ip_ttl 64",
			"  eth_type ipv6\n  ip_proto tcp\n  ip_ttl 64\n  src_ip 2001:db8::/32\n"
			"  tcp_flags 0x2/12\n  not_in_hw\n" },
		{ "protocol ip flower ip_proto icmp type 8 code 0 ip_flags frag/firstfrag",
			"  eth_type ipv4\n  ip_proto icmp\n  icmp_type 8\n  icmp_code 0\n"
			"  ip_flags frag/firstfrag\n  not_in_hw\n" },
		{ "protocol arp flower arp_sip 192.0.2.1 arp_op request",
			"  eth_type arp\n  arp_sip 192.0.2.1\n  arp_op request\n  not_in_hw\n" },
		{ "protocol 802.1Q flower vlan_id 7 vlan_prio 3 vlan_ethtype ipv4 ip_proto tcp "
		  "dst_port 80",
			"  vlan_id 7\n  vlan_prio 3\n  vlan_ethtype ip\n  eth_type ipv4\n"
			"  ip_proto tcp\n  dst_port 80\n  not_in_hw\n" },
		{ "protocol 802.1ad flower vlan_id 7 vlan_ethtype 802.1q cvlan_id 8 cvlan_ethtype "
		  "ipv6",
			"  vlan_id 7\n  vlan_ethtype 802.1Q\n  cvlan_id 8\n  cvlan_ethtype ipv6\n"
			"  eth_type ipv6\n  not_in_hw\n" },
		{ "protocol all flower indev p1 dst_mac 02:00:00:00:00:00/ff:ff:ff:00:00:00",
			"  indev p1\n  dst_mac 02:00:00:00:00:00/24\n  not_in_hw\n" },
	};

	(void)state;
	RUN(0, "tc qdisc add dev p0 clsact");
	for (unsigned int i = 0; i < RTE_DIM(same); i++) {
		RUN(0, "tc filter add dev p0 ingress prio 1 %s action drop", same[i][0]);
		RUN(0, "tc filter show dev p0 ingress");
		OUT_HAS("flower chain 0 handle 0x1 \n");
		OUT_HAS(same[i][1]);
		OUT_HAS("gact action drop");
		RUN(0, "tc filter del dev p0 ingress");
	}
	RUN(0,
		"tc filter add dev p0 ingress prio 1 protocol ip handle 7 flower ip_proto tcp "
		"action pass");
	RUN(0, "tc filter add dev p0 ingress prio 1 protocol ip flower ip_proto udp action pass");
	RUN(2, "tc filter add dev p0 ingress prio 1 protocol ip flower ip_proto udp action drop");
	OUT_HAS("Filter already exists");
	RUN(0,
		"tc filter replace dev p0 ingress prio 1 protocol ip handle 7 flower ip_proto sctp "
		"dst_port 5 action drop");
	RUN(0, "tc filter get dev p0 ingress prio 1 protocol ip handle 7 flower");
	OUT_HAS("ip_proto sctp\n  dst_port 5\n");
	RUN(0, "tc -br filter show dev p0 ingress");
	OUT_HAS("flower chain 0 handle 0x7 \n  not_in_hw\n\taction order 1: ");
	assert_null(strstr(out, "ip_proto"));
	RUN(2, "tc filter add dev p0 ingress prio 2 protocol ip flower ct_state +trk");
	OUT_HAS("TCA_FLOWER_KEY_CT_STATE is not supported");
	RUN(2, "tc filter add dev p0 ingress prio 2 protocol ip flower enc_key_id 5");
	OUT_HAS("TCA_FLOWER_KEY_ENC_KEY_ID is not supported");
	RUN(2, "tc filter add dev p0 ingress prio 2 protocol ip flower indev nosuch");
	OUT_HAS("Cannot find device");
	RUN(2, "tc filter add dev p0 ingress prio 2 protocol ip flower skip_sw");
	families_destroy(f);
}

/* flowid chooses the band of a root prio. */
static void
filter_prio(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 root handle 1: prio");
	assert_non_null(classifier_hook_block(&f->devs[0].root[0]));
	RUN(0, "tc filter add dev p0 parent 1: prio 1 protocol ip matchall flowid 1:2");
	RUN(0, "tc filter show dev p0");
	OUT_IS("filter parent 1: protocol ip pref 1 matchall chain 0 \n"
	       "filter parent 1: protocol ip pref 1 matchall chain 0 handle 0x1 flowid 1:2 \n"
	       "  not_in_hw\n");
	RUN(2, "tc filter add dev p0 parent 1:1 prio 1 protocol ip matchall flowid 1:2");
	RUN(2, "tc filter add dev p0 parent 2: prio 1 protocol ip matchall flowid 1:2");
	RUN(0, "tc class show dev p0");
	OUT_IS("class prio 1:1 parent 1: \nclass prio 1:2 parent 1: \nclass prio 1:3 parent 1: \n");
	RUN(0, "tc qdisc replace dev p0 root pfifo");
	assert_null(classifier_hook_block(&f->devs[0].root[0]));
	RUN(2, "tc filter add dev p0 parent 8001: prio 1 protocol ip matchall flowid 1:2");
	OUT_HAS("Qdisc not classful");
	/* On all queues of a device, or on one of mq. */
	RUN(0, "tc qdisc add dev p1 root handle 1: prio");
	RUN(0, "tc filter add dev p1 parent 1: prio 1 protocol ip matchall flowid 1:2");
	assert_non_null(classifier_hook_block(&f->devs[1].root[0]));
	assert_ptr_equal(classifier_hook_block(&f->devs[1].root[0]),
		classifier_hook_block(&f->devs[1].root[1]));
	RUN(0, "tc qdisc replace dev p1 root handle 2: mq");
	assert_null(classifier_hook_block(&f->devs[1].root[1]));
	RUN(0, "tc qdisc add dev p1 parent 2:2 handle 22: prio");
	RUN(0, "tc filter add dev p1 parent 22: prio 1 protocol ip matchall flowid 22:3");
	RUN(0, "tc filter show dev p1 parent 22:");
	OUT_HAS("matchall chain 0 handle 0x1 flowid 22:3");
	assert_null(classifier_hook_block(&f->devs[1].root[0]));
	assert_non_null(classifier_hook_block(&f->devs[1].root[1]));
	RUN(0, "tc qdisc replace dev p1 parent 2:2 pfifo");
	assert_null(classifier_hook_block(&f->devs[1].root[1]));
	RUN(0, "tc qdisc del dev p1 root");
	RUN(0, "tc class show dev p1");
	OUT_IS("class mq :1 root \nclass mq :2 root \n");
	families_destroy(f);
}

static void
filter_chains(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 clsact");
	RUN(0, "tc filter add dev p0 ingress chain 3 prio 1 protocol all matchall action drop");
	RUN(0, "tc filter add dev p0 ingress prio 2 protocol all matchall action goto chain 3");
	RUN(0, "tc filter show dev p0 ingress");
	OUT_HAS("action order 1: gact action goto chain 3");
	OUT_HAS("matchall chain 3 handle 0x1");
	RUN(0, "tc filter show dev p0 ingress chain 3");
	assert_null(strstr(out, "chain 0"));
	OUT_HAS("filter protocol all pref 1 matchall handle 0x1");
	RUN(0, "tc filter del dev p0 ingress chain 3");
	RUN(0, "tc filter del dev p0 ingress chain 3");
	RUN(0, "tc chain add dev p0 ingress chain 11");
	RUN(2, "tc chain add dev p0 ingress chain 11");
	OUT_HAS("Filter chain already exists");
	RUN(0, "tc chain show dev p0 ingress");
	OUT_IS("chain parent ffff: chain 0 \nchain parent ffff: chain 11 \n");
	RUN(0, "tc chain get dev p0 ingress chain 11");
	RUN(0, "tc chain del dev p0 ingress chain 11");
	RUN(2, "tc chain get dev p0 ingress chain 11");
	OUT_HAS("Cannot find specified filter chain");
	RUN(255, "tc actions add action gact goto chain 3 index 9");
	OUT_HAS("can't goto NULL proto/chain");
	families_destroy(f);
}

static void
chain_templates(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 clsact");
	RUN(2, "tc chain add dev p0 ingress chain 5 protocol ip flower action drop");
	OUT_HAS("TCA_FLOWER_ACT: a template has no actions");
	RUN(2, "tc chain add dev p0 ingress chain 5 protocol ip flower classid 1:1");
	OUT_HAS("TCA_FLOWER_CLASSID: a template has no class");
	RUN(2, "tc chain add dev p0 ingress chain 5 protocol ip matchall");
	OUT_HAS("Chain templates are not supported with specified classifier");
	RUN(0, "tc chain show dev p0 ingress");
	OUT_IS("");
	RUN(0, "tc chain add dev p0 ingress chain 5 protocol ip flower dst_ip 0.0.0.0/16");
	RUN(0, "tc chain show dev p0 ingress");
	OUT_IS("chain parent ffff: flower chain 5 \n  eth_type ipv4\n  dst_ip 0.0.0.0/16\n");
	RUN(0, "tc chain get dev p0 ingress chain 5");
	OUT_HAS("flower chain 5 \n  eth_type ipv4\n  dst_ip 0.0.0.0/16");
	RUN(2, "tc chain del dev p0 ingress chain 5 protocol ip flower dst_ip 0.0.0.0/16");
	OUT_HAS("a chain is named by its index alone");
	RUN(2, "tc filter add dev p0 ingress chain 5 protocol ip matchall action drop");
	OUT_HAS("Chain template is set to a different filter kind");
	RUN(2,
		"tc filter add dev p0 ingress chain 5 protocol ip flower dst_ip 10.1.2.0/24 action "
		"drop");
	OUT_HAS("Mask does not fit the template");
	RUN(2, "tc filter add dev p0 ingress chain 5 protocol ip flower src_ip 10.1.0.0/16");
	OUT_HAS("Mask does not fit the template");
	RUN(0, "tc filter show dev p0 ingress");
	OUT_IS("");
	RUN(0, "tc filter add dev p0 ingress chain 5 protocol ip flower dst_ip 10.1.0.0/16");
	RUN(0, "tc filter add dev p0 ingress chain 5 protocol ip flower dst_ip 10.0.0.0/8");
	RUN(0, "tc chain del dev p0 ingress chain 5");
	RUN(0, "tc filter add dev p0 ingress chain 5 protocol ip matchall action drop");
	families_destroy(f);
}

static void
shared_blocks(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 ingress_block 1 egress_block 2 clsact");
	RUN(0, "tc qdisc add dev p1 ingress_block 1 ingress");
	RUN(0, "tc qdisc show dev p0 ingress");
	OUT_IS("qdisc clsact ffff: parent ffff:fff1 ingress_block 1 egress_block 2 \n");
	RUN(0, "tc qdisc show dev p1 ingress");
	OUT_IS("qdisc ingress ffff: parent ffff:fff1 ingress_block 1 ---------------- \n");
	assert_ptr_equal(classifier_hook_block(&f->devs[0].ingress),
		classifier_hook_block(&f->devs[1].ingress));
	RUN(0, "tc filter add block 1 prio 1 protocol ip flower dst_ip 192.0.2.1 action drop");
	RUN(0, "tc filter show block 1");
	OUT_HAS("filter protocol ip pref 1 flower chain 0 handle 0x1");
	/* By the device they are shown, and not changed. */
	RUN(0, "tc filter show dev p1 ingress");
	OUT_HAS("filter block 1 protocol ip pref 1 flower chain 0 handle 0x1");
	RUN(2, "tc filter add dev p1 ingress prio 2 matchall action drop");
	OUT_HAS("This filter block is shared. Please use the block index to manipulate");
	RUN(2, "tc filter del dev p0 ingress prio 1");
	OUT_HAS("This filter block is shared");
	RUN(0, "tc filter show block 2");
	OUT_IS("");
	RUN(0, "tc chain add block 1 chain 5");
	RUN(0, "tc chain show block 1");
	OUT_IS("chain chain 0 \nchain chain 5 \n");
	RUN(2, "tc filter add block 3 matchall action drop");
	OUT_HAS("Block of given index was not found");
	RUN(2, "tc chain add block 3 chain 1");
	OUT_HAS("Block of given index was not found");
	RUN(1, "tc filter show block 3");
	OUT_HAS("Cannot find block \"3\"");
	/* What is there keeps its blocks. */
	RUN(0,
		"tc filter replace block 1 prio 1 handle 1 protocol ip flower dst_ip 192.0.2.1 "
		"action pass");
	RUN(2, "tc qdisc change dev p1 ingress_block 2 ingress");
	OUT_HAS("Change of blocks is not supported");
	RUN(0, "tc qdisc del dev p1 ingress");
	RUN(0, "tc qdisc add dev p1 ingress_block 1 egress_block 1 clsact");
	assert_non_null(classifier_hook_block(&f->devs[1].ingress));
	assert_ptr_equal(classifier_hook_block(&f->devs[1].ingress),
		classifier_hook_block(&f->devs[1].egress));
	RUN(0, "tc qdisc del dev p0 clsact");
	assert_null(classifier_hook_block(&f->devs[0].ingress));
	RUN(2, "tc filter add block 2 matchall action drop");
	RUN(0, "tc filter show block 1");
	OUT_HAS("dst_ip 192.0.2.1");
	/* With its last qdisc it goes. */
	RUN(0, "tc qdisc del dev p1 clsact");
	RUN(0, "tc qdisc add dev p1 ingress_block 1 ingress");
	RUN(0, "tc filter show block 1");
	OUT_IS("");
	RUN(2, "tc qdisc add dev p0 ingress_block 1 egress_block 1 ingress");
	OUT_HAS("Egress block sharing is not supported");
	RUN(2, "tc qdisc add dev p0 root ingress_block 1 pfifo");
	OUT_HAS("Ingress block sharing is not supported");
	RUN(0, "tc qdisc show dev p0");
	assert_null(strstr(out, "clsact"));
	families_destroy(f);
}

static void
filter_offload_flags(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 clsact");
	RUN(0, "tc actions add action csum ip4h index 1");
	RUN(0, "tc actions add action csum ip4h index 2 skip_hw");
	/* Stands alone: the same, or refused with nothing changed. */
	RUN(2, "tc filter add dev p0 ingress prio 1 matchall skip_hw action csum ip4h index 1");
	OUT_HAS("Mismatch between action and filter offload flags: \"csum\" index 1 has no "
		"skip_hw");
	RUN(2, "tc filter add dev p0 ingress prio 1 matchall action csum ip4h index 2");
	OUT_HAS("\"csum\" index 2 has skip_hw, the filter has not");
	RUN(2,
		"tc filter add dev p0 ingress prio 1 matchall skip_hw action csum ip4h index 1 "
		"action csum ip4h index 1");
	RUN(0, "tc filter show dev p0 ingress");
	OUT_IS("");
	RUN(0, "tc -s actions ls action csum");
	OUT_HAS("index 1 ref 1 bind 0");
	OUT_HAS("index 2 ref 1 bind 0");
	RUN(0, "tc filter add dev p0 ingress prio 1 matchall skip_hw action csum ip4h index 2");
	/* Came with a filter: none is as good as the filter's, and becomes it. */
	RUN(0, "tc filter add dev p0 ingress prio 2 matchall action csum ip4h index 3");
	RUN(0, "tc actions get action csum index 3 | grep -c skip_hw || true");
	OUT_IS("0\n");
	RUN(0, "tc filter add dev p0 ingress prio 3 flower skip_hw action csum ip4h index 3");
	RUN(0, "tc actions get action csum index 3");
	OUT_HAS("skip_hw");
	RUN(2, "tc filter add dev p0 ingress prio 4 matchall action csum ip4h index 3");
	OUT_HAS("\"csum\" index 3 has skip_hw, the filter has not");
	RUN(2, "tc filter add dev p0 ingress prio 5 matchall action csum ip4h skip_hw");
	families_destroy(f);
}

static void
actions(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "tc actions add action pass index 5 cookie 0102");
	RUN(255, "tc actions add action drop index 5");
	RUN(0, "tc actions add action csum icmp and igmp index 4294967295");
	RUN(0, "tc actions get action csum index 4294967295");
	OUT_HAS("action order 1: csum (icmp, igmp) action pass");
	OUT_HAS("index 4294967295 ref 1 bind 0");
	RUN(0, "tc actions replace action drop index 5");
	RUN(0, "tc -s actions ls action gact");
	OUT_HAS("total acts 1\n");
	OUT_HAS("\taction order 0: gact action drop\n\t random type none pass val 0\n"
		"\t index 5 ref 1 bind 0");
	OUT_HAS("\tcookie 0102\n\tnot_in_hw\n");
	RUN(0, "tc qdisc add dev p0 clsact");
	RUN(0, "tc filter add dev p0 egress prio 1 protocol all matchall action gact index 5");
	RUN(0, "tc filter show dev p0 egress");
	OUT_HAS("gact action drop");
	OUT_HAS("index 5 ref 2 bind 1");
	RUN(255, "tc actions del action gact index 5");
	OUT_HAS("is used by 1 filters");
	RUN(1, "tc actions flush action gact");
	RUN(0, "tc filter del dev p0 egress");
	RUN(0, "tc actions add action continue random determ drop 10 index 6");
	RUN(0, "tc actions get action gact index 6");
	OUT_HAS("random type determ drop val 10");
	RUN(0, "tc actions flush action gact");
	RUN(0, "tc actions ls action gact");
	assert_null(strstr(out, "index"));
	RUN(255, "tc actions get action gact index 5");
	OUT_HAS("TC action with specified index not found");
	RUN(255, "tc actions del action gact index 5 action csum index 4294967295");
	RUN(0, "tc actions get action csum index 4294967295");
	RUN(0, "tc actions del action csum index 4294967295");
	families_destroy(f);
}

/* What each kind of action says of itself. */
static void
action_kinds(void **state)
{
	static const char *const same[][2] = {
		{ "skbedit priority 1:2 mark 7/0xff queue_mapping 3 pipe",
			"skbedit queue_mapping 3 priority 1:2 mark 7/0xff pipe\n" },
		{ "vlan push id 7 priority 3 protocol 802.1ad",
			"vlan  push id 7 protocol 802.1ad priority 3 pipe\n" },
		{ "vlan pop pass", "vlan  pop pass\n" },
		{ "pedit ex munge ip ttl add 0xff munge tcp dport set 80 pipe",
			"key #0  at ipv4+8: add ff000000 mask 00ffffff\n" },
		{ "police rate 8mbit burst 10000 conform-exceed drop/pipe",
			"rate 8Mbit burst 10000b mtu 2Kb action drop/pipe overhead 0b" },
		{ "police pkts_rate 1000 pkts_burst 200 conform-exceed drop",
			"mtu 4096Mb pkts_rate 1000 pkts_burst 200 action drop" },
		{ "mirred egress redirect dev p1", "mirred (Egress Redirect to device p1) stolen" },
		{ "mirred ingress mirror dev p1", "mirred (Ingress Mirror to device p1) pipe" },
	};
	static const char *const refused[][2] = {
		{ "skbedit ptype host", "TCA_SKBEDIT_PTYPE is not supported" },
		{ "vlan pop_eth", "pop_eth and push_eth are not supported" },
		{ "police rate 8mbit burst 10000 overhead 20", "overhead, mpu and linklayer atm" },
	};
	struct families *f = begin();

	(void)state;
	RUN(0, "tc qdisc add dev p0 clsact");
	for (unsigned int i = 0; i < RTE_DIM(same); i++) {
		RUN(0, "tc filter add dev p0 ingress prio 1 protocol all matchall action %s",
			same[i][0]);
		RUN(0, "tc filter show dev p0 ingress");
		OUT_HAS(same[i][1]);
		OUT_HAS("ref 1 bind 1");
		RUN(0, "tc filter del dev p0 ingress");
	}
	for (unsigned int i = 0; i < RTE_DIM(refused); i++) {
		RUN(2, "tc filter add dev p0 ingress prio 1 protocol all matchall action %s",
			refused[i][0]);
		OUT_HAS(refused[i][1]);
	}
	families_destroy(f);
}

static void
actions_many(void **state)
{
	struct families *f = begin();
	unsigned int n = 0;

	(void)state;
	RUN(0,
		"sh -c 'for i in $(seq 1000); do echo actions add action csum udp index $i; done | "
		"tc -b -'");
	RUN(0, "tc actions ls action csum");
	for (const char *p = out; (p = strstr(p, "csum (udp)")) != NULL; p++)
		n++;
	assert_int_equal(n, 1000);
	RUN(0, "tc actions flush action csum");
	assert_int_equal(action_count(f->actions, &csum_action_ops), 0);
	families_destroy(f);
}

static void
monitor(void **state)
{
	struct families *f = begin();
	char file[sizeof(f->path) + 8];

	(void)state;
	/* The shell runs inside millrace-exec, so all that it starts does. */
	snprintf(file, sizeof(file), "%s.out", f->path);
	setenv("FILE", file, 1);
	RUN(0,
		"sh -c '"
		"tc monitor > $FILE & sleep 2; "
		"tc qdisc add dev p0 clsact; "
		"tc chain add dev p0 ingress chain 8 protocol ip flower ip_proto udp; "
		"tc chain del dev p0 ingress chain 8; "
		"tc filter add dev p0 ingress prio 1 protocol all matchall action drop; "
		"tc filter del dev p0 ingress prio 1 protocol all handle 1 matchall; "
		"tc actions add action pass index 9; "
		"tc actions flush action gact; "
		"tc qdisc del dev p0 clsact; "
		"tc qdisc add dev p0 root pfifo limit 3; "
		"sleep 1; kill $!; wait; cat $FILE; rm $FILE'");
	OUT_HAS("qdisc clsact ffff: dev p0 parent ffff:fff1");
	OUT_HAS("added chain dev p0 parent ffff: flower chain 8 \n  eth_type ipv4\n  ip_proto "
		"udp\n");
	OUT_HAS("deleted chain dev p0 parent ffff: flower chain 8 \n  eth_type ipv4\n  ip_proto "
		"udp");
	OUT_HAS("added filter dev p0 ingress protocol all pref 1 matchall chain 0 handle 0x1");
	OUT_HAS("deleted filter dev p0 ingress protocol all pref 1 matchall chain 0 handle 0x1");
	OUT_HAS("index 1 ref 1 bind 1");
	assert_null(strstr(out, "ref 2"));
	OUT_HAS("Added action \n\taction order 1: gact action pass\n");
	OUT_HAS("Flushed table  gact (1 entries)");
	OUT_HAS("deleted qdisc clsact ffff: dev p0 parent ffff:fff1");
	OUT_HAS("deleted qdisc pfifo_fast 0: dev p0 root");
	OUT_HAS("qdisc pfifo 8001: dev p0 root refcnt 2 limit 3p");
	families_destroy(f);
}

static void
monitor_link(void **state)
{
	struct families *f = begin();
	char file[sizeof(f->path) + 8];

	(void)state;
	/* The shell runs inside millrace-exec, so all that it starts does. */
	snprintf(file, sizeof(file), "%s.out", f->path);
	setenv("FILE", file, 1);
	RUN(0,
		"sh -c '"
		"ip monitor link > $FILE & sleep 2; "
		"ip link set p0 mtu 1234; "
		"ip link set p1 down; "
		"sleep 1; kill $!; wait; cat $FILE; rm $FILE'");
	OUT_HAS("1: p0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1234 qdisc pfifo_fast state UP");
	OUT_HAS("2: p1: <BROADCAST,MULTICAST> mtu 1500 qdisc mq state DOWN");
	families_destroy(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_show),
		cmocka_unit_test(link_set),
		cmocka_unit_test(qdisc_default),
		cmocka_unit_test(qdisc_root),
		cmocka_unit_test(qdisc_mq),
		cmocka_unit_test(qdisc_clsact),
		cmocka_unit_test(filter_matchall),
		cmocka_unit_test(flower),
		cmocka_unit_test(filter_prio),
		cmocka_unit_test(filter_chains),
		cmocka_unit_test(chain_templates),
		cmocka_unit_test(shared_blocks),
		cmocka_unit_test(filter_offload_flags),
		cmocka_unit_test(actions),
		cmocka_unit_test(action_kinds),
		cmocka_unit_test(actions_many),
		cmocka_unit_test(monitor),
		cmocka_unit_test(monitor_link),
	};

	test_eal_init("families-tools", "0");
	return cmocka_run_group_tests_name("families_tools", tests, NULL, NULL);
}
