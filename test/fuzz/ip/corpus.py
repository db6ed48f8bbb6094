# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""corpus.py DIR: writes what hosts and routers send, for the fuzzer to start from."""

import hashlib
import os
import struct
import sys

from scapy.all import (ARP, ICMP, ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                       ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6ND_RS, ICMPv6NDOptDstLLAddr,
                       ICMPv6NDOptSrcLLAddr, IP, TCP, UDP, Dot1Q, Ether, IPv6, IPv6ExtHdrDestOpt,
                       IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Raw, fragment,
                       fragment6)

HOST, HOST6, MAC = "192.0.2.9", "2001:db8::9", "02:00:00:00:bb:09"
PORT1, TO_US, IP4, IP6, CUT, MORE, TIME = 1, 2, 4 + 8, 8, 16, 32, 64
FRAGMENT = TO_US | 4


def frames():
    """(flags, frames) of each input."""
    ether = Ether(src=MAC, dst="02:00:00:00:00:01")
    everyone = Ether(src=MAC, dst="ff:ff:ff:ff:ff:ff")
    group = Ether(src=MAC, dst="33:33:ff:00:00:01")
    asks = everyone / ARP(op=1, hwsrc=MAC, psrc=HOST, pdst="192.0.2.1")
    tells = ether / ARP(op=2, hwsrc="02:00:00:00:aa:03", psrc="203.0.113.3", pdst="203.0.113.1")
    yield 0, [asks]
    yield 0, [everyone / ARP(op=1, hwsrc=MAC, psrc=HOST, pdst=HOST)]
    yield TO_US | PORT1, [tells]
    waits = ether / IP(src=HOST, dst="198.51.100.200") / UDP() / b"waits"
    for dst in ("198.51.100.7", "198.51.100.200", "198.18.0.1", "198.19.0.1", "198.19.200.1", "100.64.0.1",
                "192.0.2.1", "192.0.2.255", "192.0.2.77", "203.0.113.77"):
        yield TO_US | IP4, [ether / IP(src=HOST, dst=dst) / UDP(sport=1, dport=2) / b"mill"]
        yield TO_US | IP4, [ether / IP(src=HOST, dst=dst, ttl=1) / TCP()]
    yield TO_US | IP4, [ether / IP(src=HOST, dst="198.51.100.7", flags="DF") / UDP() / Raw(b"x" * 1300)]
    yield TO_US | IP4, [ether / IP(src=HOST, dst="198.51.100.7") / UDP() / Raw(b"x" * 1300)]
    yield TO_US | IP4, [ether / IP(src=HOST, dst="198.51.100.200") / UDP() / Raw(b"x" * 1300)]
    yield TO_US | IP4, [ether / IP(src=HOST, dst="198.51.100.7", options=b"\x94\x04\0\0") / UDP() / Raw(b"x" * 1300)]
    yield TO_US | IP4, [ether / IP(src=HOST, dst="198.51.100.7", options=b"\x83\x07\x04\xc0\0\x02\x01\0") / UDP()]
    for kind in (8, 0, 13, 3, 11, 5):
        yield TO_US | IP4, [ether / IP(src=HOST, dst="192.0.2.1") / ICMP(type=kind) / Raw(b"m" * 40)]
        yield TO_US | IP4, [ether / IP(src=HOST, dst="100.64.0.1") / ICMP(type=kind) / Raw(b"m" * 40)]
    parts = fragment(IP(src=HOST, dst="192.0.2.1", id=7) / ICMP(type=8) / Raw(b"f" * 300), 104)
    yield FRAGMENT, [ether / p for p in parts]
    yield FRAGMENT, [ether / p for p in reversed(parts)]
    yield FRAGMENT | CUT, [ether / p for p in parts + parts[1:]]
    yield FRAGMENT, [ether / p for p in (parts[0], parts[2])]
    yield FRAGMENT | MORE, [ether / p for p in parts]
    yield TO_US | IP4, [ether / Dot1Q(vlan=5) / IP(src=HOST, dst="198.51.100.7") / UDP()]
    yield TO_US, [ether / Raw(b"\x88\xcc" + b"x" * 40)]
    # IPv6
    for dst in ("2001:db8:2::7", "2001:db8:3::7", "2001:db8:4::7", "2001:db8:5::7", "2001:db8::1", "2001:db8:1::77",
                "ff02::1", "fe80::1"):
        yield TO_US | IP6, [ether / IPv6(src=HOST6, dst=dst) / UDP(sport=1, dport=2) / b"mill"]
        yield TO_US | IP6, [ether / IPv6(src=HOST6, dst=dst, hlim=1) / UDP() / b"mill"]
        yield TO_US | IP6, [ether / IPv6(src=HOST6, dst=dst) / UDP() / Raw(b"x" * 1300)]
    yield TO_US | IP6, [ether / IPv6(src=HOST6, dst="2001:db8::1") / ICMPv6EchoRequest(data=b"e" * 60)]
    yield TO_US | IP6, [ether / IPv6(src="fe80::9", dst="fe80::1") / ICMPv6EchoRequest(data=b"e" * 60)]
    yield TO_US | IP6, [ether / IPv6(src=HOST6, dst="2001:db8:5::1") / ICMPv6DestUnreach() / Raw(b"q" * 60)]
    yield TO_US, [ether / IPv6(src=HOST6, dst="2001:db8::1") / IPv6ExtHdrHopByHop() / ICMPv6EchoRequest()]
    yield TO_US, [ether / IPv6(src=HOST6, dst="2001:db8::1") / IPv6ExtHdrRouting(addresses=["2001:db8:2::1"]) / UDP()]
    lladdr, target = ICMPv6NDOptSrcLLAddr(lladdr=MAC), ICMPv6NDOptDstLLAddr(lladdr="02:00:00:00:aa:03")
    ns = ICMPv6ND_NS(tgt="2001:db8::1")
    yield IP6, [group / IPv6(src=HOST6, dst="ff02::1:ff00:1", hlim=255) / ns / lladdr]
    yield IP6, [group / IPv6(src="::", dst="ff02::1:ff00:1", hlim=255) / ns]
    yield TO_US | IP6, [ether / IPv6(src=HOST6, dst="2001:db8::1", hlim=255) / ns]
    na = ICMPv6ND_NA(tgt="2001:db8:1::3", S=1, O=1, R=0) / target
    yield TO_US | IP6 | PORT1, [ether / IPv6(src="2001:db8:1::3", dst="2001:db8:1::1", hlim=255) / na]
    for message in (ICMPv6ND_RS(), ICMPv6ND_RA(), ICMPv6ND_Redirect(tgt="2001:db8::5", dst="2001:db8:2::1") / target):
        yield TO_US | IP6, [ether / IPv6(src="fe80::9", dst="2001:db8::1", hlim=255) / message]
    whole = IPv6(src=HOST6, dst="2001:db8::1") / IPv6ExtHdrFragment(id=9) / ICMPv6EchoRequest(data=b"f" * 300)
    parts = fragment6(whole, 180)
    yield TO_US, [ether / p for p in parts]
    yield TO_US, [ether / p for p in reversed(parts)]
    yield TO_US | CUT, [ether / p for p in parts + parts[1:]]
    whole = IPv6(src=HOST6, dst="2001:db8::1") / IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment(id=9, m=1, nh=58)
    yield TO_US, [ether / whole / Raw(b"o" * 64)]
    # A packet waits, then its neighbour answers, and later again.
    yield TO_US | IP4, [waits, (TO_US | PORT1, tells), waits, (TO_US | IP4 | TIME, waits)]


def main(where):
    for default, packets in frames():
        data = b""
        for packet in packets:
            flags, frame = packet if isinstance(packet, tuple) else (default, packet)
            frame = bytes(frame)
            data += struct.pack("<BH", flags, len(frame)) + frame
        with open(os.path.join(where, hashlib.sha1(data).hexdigest()), "wb") as f:
            f.write(data)


main(sys.argv[1])
