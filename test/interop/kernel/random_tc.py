# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""tc files made at random, whose rules match frames of traffic.py's often enough to meet each other."""

import ipaddress
import random

CHAINS = 4
PROTOCOLS = ["ip", "ip", "ip", "ipv6", "ipv6", "all", "802.1Q", "802.1ad", "arp"]
PORTS = ["53", "80", "9", "40000", "1-99", "100-1024", "1023-50000", "7-12"]
TCP_FLAGS = ["0x2", "0x2/0x2", "0x10/0x17", "0x0/0x4", "0x1/0x1"]


def masked(rng, value, bits):
    """The address with or without a prefix length, written as a network: Linux shows it as it was given."""
    if rng.random() < 0.4:
        return value
    return str(ipaddress.ip_network(f"{value}/{rng.randint(1, bits)}", strict=False))


def l4_keys(rng, version):
    proto = rng.choice(["udp", "udp", "tcp", "tcp", "sctp", "icmp" if version == 4 else "icmpv6"])
    keys = [f"ip_proto {proto}"]
    if proto.startswith("icmp"):
        kinds = [0, 3, 8, 11] if version == 4 else [128, 135]
        if rng.random() < 0.6:
            keys.append(f"type {rng.choice(kinds)}")
        if rng.random() < 0.3:
            keys.append(f"code {rng.choice([0, 1, 3])}")
        return keys
    if rng.random() < 0.6:
        keys.append(f"dst_port {rng.choice(PORTS)}")
    if rng.random() < 0.3:
        keys.append(f"src_port {rng.choice(PORTS)}")
    if proto == "tcp" and rng.random() < 0.4:
        keys.append(f"tcp_flags {rng.choice(TCP_FLAGS)}")
    return keys


def ip_keys(rng, version):
    keys = []
    if rng.random() < 0.4:
        keys.append("src_ip " + (masked(rng, rng.choice(["192.0.2.1", "203.0.113.127", "203.0.113.254"]), 32)
                                 if version == 4 else masked(rng, rng.choice(["2001:db8::1", "2001:db8::ff"]), 128)))
    if rng.random() < 0.4:
        keys.append("dst_ip " + (masked(rng, rng.choice(["198.51.100.2", "198.51.100.128"]), 32)
                                 if version == 4 else masked(rng, rng.choice(["2001:db8:1::2", "2001:db8:7f::1"]), 128)))
    if rng.random() < 0.2:
        keys.append("ip_tos " + rng.choice(["0x10", "0xb8/0xfc", "0x3/0x3", "0x0/0x8"]))
    if rng.random() < 0.2:
        keys.append("ip_ttl " + rng.choice(["1", "64", "0x40/0x40", "255", "0/0x80"]))
    if rng.random() < 0.6:
        keys += l4_keys(rng, version)
    return keys


def arp_keys(rng):
    choices = [rng.choice(["arp_op request", "arp_op reply"]), rng.choice(["arp_sip 192.0.2.1", "arp_sip 192.0.2.0/30"]),
               "arp_tip 198.51.100.2", "arp_sha 02:00:00:00:00:01", "arp_tha 02:00:00:00:00:00/ff:ff:ff:ff:ff:00"]
    return rng.sample(choices, rng.randint(0, 2))


def inner_keys(rng, kind):
    return {"ipv4": lambda: ip_keys(rng, 4), "ipv6": lambda: ip_keys(rng, 6)}.get(kind, lambda: [])()


def tag_keys(rng):
    keys = []
    if rng.random() < 0.5:
        keys.append(f"vlan_id {rng.choice([0, 1, 10, 20, 100, 200, 4094])}")
    if rng.random() < 0.3:
        keys.append(f"vlan_prio {rng.choice([0, 1, 3, 5, 6])}")
    kind = rng.choice(["", "ipv4", "ipv6", "802.1q"])
    if kind:
        keys.append(f"vlan_ethtype {kind}")
    if kind != "802.1q":
        return keys + inner_keys(rng, kind)
    if rng.random() < 0.5:
        keys.append(f"cvlan_id {rng.choice([10, 20])}")
    kind = rng.choice(["", "ipv4", "ipv6"])
    return keys + ([f"cvlan_ethtype {kind}"] if kind else []) + inner_keys(rng, kind)


def keys_of(rng, protocol):
    keys = []
    if rng.random() < 0.2:
        keys.append("dst_mac " + rng.choice(["02:00:00:00:00:02", "ff:ff:ff:ff:ff:ff",
                                             "01:00:00:00:00:00/01:00:00:00:00:00"]))
    if rng.random() < 0.1:
        keys.append("src_mac 02:00:00:00:00:00/ff:ff:ff:ff:00:00")
    if rng.random() < 0.1:
        keys.append("indev " + rng.choice(["p0", "p1"]))
    if protocol == "ip":
        keys += ip_keys(rng, 4)
    elif protocol == "ipv6":
        keys += ip_keys(rng, 6)
    elif protocol == "arp":
        keys += arp_keys(rng)
    elif protocol != "all":
        keys += tag_keys(rng)
    return " ".join(keys)


def actions(rng, protocol):
    """A list of actions, most of which let the packet meet other rules."""
    edits = ["action skbedit mark 5 pipe", "action pipe"]
    if protocol == "ip":
        edits += ["action pedit ex munge ip ttl set 64 pipe action csum ip4h pipe",
                  "action pedit ex munge ip dst set 198.51.100.128 pipe action csum ip4h udp tcp pipe"]
    if protocol == "ipv6":
        edits += ["action pedit ex munge ip6 hoplimit set 1 pipe",
                  "action pedit ex munge ip6 src set 2001:db8::ff pipe action csum udp tcp pipe"]
    if protocol in ("802.1Q", "802.1ad"):
        edits += ["action vlan pop pipe", "action vlan modify id 10 pipe"]
    end = rng.choice(["drop", "ok", "continue", "continue", "continue", "pipe", "reclassify", "jump 1",
                      *[f"goto chain {rng.randrange(1, CHAINS)}"] * 4])
    out = " ".join(rng.sample(edits, rng.choice([0, 0, 1, 2])))
    return f"{out} action {end}" + (" action ok" if end.startswith("jump") else "")


def rules(seed):
    """A tc file, with lines that tc refuses among them."""
    rng = random.Random(seed)
    protocols, replaced = {}, {}
    lines = ["qdisc add dev p0 clsact"]
    lines += [f"chain add dev p0 ingress chain {chain}" for chain in range(1, CHAINS)]
    for _ in range(rng.randint(10, 60)):
        chain = rng.choice([0, 0, 0, *range(1, CHAINS)])
        pref = rng.randint(1, 12)
        protocol = protocols.setdefault((chain, pref), rng.choice(PROTOCOLS))
        place = f"dev p0 ingress chain {chain} protocol {protocol} pref {pref}"
        roll = rng.random()
        if roll < 0.1:
            lines.append(f"filter del {place}")
        elif roll < 0.2:
            # Handles that are not given out; the same keys each time, for Linux keeps a rule's mask.
            handle = rng.randint(101, 103)
            keys = replaced.setdefault((chain, pref, handle), keys_of(rng, protocol))
            lines.append(f"filter replace {place} handle {handle} flower {keys} {actions(rng, protocol)}")
        else:
            lines.append(f"filter add {place} flower {keys_of(rng, protocol)} {actions(rng, protocol)}")
    return "".join(line + "\n" for line in lines)
