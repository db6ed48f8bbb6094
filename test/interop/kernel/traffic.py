# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Frames of many sorts, each different from all others, for rules to tell apart."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "functional"))

# pylint: disable=wrong-import-position
import frames
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Raw

V4 = {"src": "192.0.2.1", "dst": "198.51.100.2"}
V6 = {"src": "2001:db8::1", "dst": "2001:db8:1::2"}
ETHER_MIN = 60


def ether(**fields):
    return Ether(**{**frames.MAC, **fields})


def untagged():
    """Layers above Ethernet."""
    for sport, dport in ((40000, 53), (53, 40000), (40000, 80), (1024, 1023), (65535, 1), (100, 200)):
        yield IP(**V4) / UDP(sport=sport, dport=dport)
        yield IP(**V4) / TCP(sport=sport, dport=dport)
        yield IPv6(**V6) / UDP(sport=sport, dport=dport)
        yield IPv6(**V6) / TCP(sport=sport, dport=dport)
        yield IP(**V4) / SCTP(sport=sport, dport=dport)
    for flags in ("S", "SA", "A", "FA", "R", "PA", "SEC", "FPU", ""):
        yield IP(**V4) / TCP(sport=1000, dport=2000, flags=flags)
        yield IPv6(**V6) / TCP(sport=1000, dport=2000, flags=flags)
    for kind, code in ((8, 0), (0, 0), (3, 1), (3, 3), (11, 0), (13, 0)):
        yield IP(**V4) / ICMP(type=kind, code=code)
    yield IPv6(**V6) / ICMPv6EchoRequest(id=1)
    yield IPv6(**V6) / ICMPv6ND_NS(tgt="2001:db8:1::2")
    for ttl in (0, 1, 2, 63, 64, 128, 255):
        yield IP(**V4, ttl=ttl) / UDP(sport=7, dport=9)
        yield IPv6(**V6, hlim=ttl) / UDP(sport=7, dport=9)
    for tos in (0x10, 0x08, 0x04, 0x02, 0xB8, 0x03, 0xFF):
        yield IP(**V4, tos=tos) / UDP(sport=7, dport=10)
        yield IPv6(**V6, tc=tos) / UDP(sport=7, dport=10)
    for host in (1, 2, 127, 128, 254, 255):
        yield IP(src=f"203.0.113.{host}", dst=f"198.51.100.{host}") / UDP(sport=7, dport=11)
        yield IPv6(src=f"2001:db8::{host:x}", dst=f"2001:db8:{host:x}::1") / UDP(sport=7, dport=11)
    yield IP(**V4, flags="DF") / UDP(sport=7, dport=12)
    yield IPv6(**V6) / IPv6ExtHdrDestOpt() / UDP(sport=7, dport=13)
    yield IP(**V4, options=b"\x01\x01\x01\x00") / UDP(sport=7, dport=13)
    yield IP(**V4, proto=47)
    yield IP(**V4, proto=253)
    yield IPv6(**V6, nh=253)
    for op in (1, 2):
        for host in (1, 2):
            yield ARP(op=op, hwsrc="02:00:00:00:00:01", psrc=f"192.0.2.{host}",
                      hwdst="02:00:00:00:00:02", pdst="198.51.100.2")


def fragments():
    yield IP(**V4, flags="MF", id=1) / UDP(sport=7, dport=12)
    yield IP(**V4, flags="MF", id=1, frag=6, proto=17)
    yield IP(**V4, id=1, frag=12, proto=17)
    yield IP(**V4, flags="MF", id=2) / TCP(sport=7, dport=12)
    yield IPv6(**V6) / IPv6ExtHdrFragment(m=1, id=1) / UDP(sport=7, dport=12)
    yield IPv6(**V6) / IPv6ExtHdrFragment(m=0, offset=6, id=1, nh=17)


def tagged():
    """Tags, and what is in them."""
    for vlan, prio in ((1, 0), (10, 3), (10, 5), (20, 3), (4094, 7), (0, 6)):
        yield Dot1Q(vlan=vlan, prio=prio) / IP(**V4) / UDP(sport=40000, dport=53)
        yield Dot1Q(vlan=vlan, prio=prio) / IPv6(**V6) / TCP(sport=40000, dport=80)
    for outer, inner in ((100, 10), (100, 20), (200, 10)):
        yield Dot1AD(vlan=outer) / Dot1Q(vlan=inner, prio=2) / IP(**V4) / UDP(sport=40000, dport=53)
        yield Dot1Q(vlan=outer, prio=1) / Dot1Q(vlan=inner) / IPv6(**V6) / UDP(sport=40000, dport=53)
    yield Dot1Q(vlan=10) / ARP(psrc="192.0.2.1", pdst="198.51.100.2")
    yield Dot1AD(vlan=100) / IP(**V4) / TCP(sport=40000, dport=80)


def addressed():
    """Other Ethernet headers."""
    for layers in (IP(**V4) / UDP(sport=5, dport=6), IPv6(**V6) / UDP(sport=5, dport=6)):
        for src, dst in (("02:00:00:00:00:aa", "02:00:00:00:00:bb"), ("02:00:00:00:ff:aa", "02:00:00:01:00:bb"),
                         ("02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff"), ("02:00:00:00:00:01", "33:33:00:00:00:01")):
            yield ether(src=src, dst=dst) / layers
    yield ether(type=0x88B5)


SORTS = {"untagged": untagged, "fragments": fragments, "tagged": tagged, "addressed": addressed}


def corpus(without=()):
    """[frame] but for the named sorts: at least 60 bytes, checksums right but in every seventh that has one."""
    out = []
    for sort in SORTS:
        for number, packet in enumerate(SORTS[sort]() if sort not in without else ()):
            if Ether not in packet:
                packet = ether() / packet
            mark = f"{sort[0]}{number:03d}".encode()
            data = bytes(packet / Raw(mark * (4 + number % 5)))
            data += mark * ((ETHER_MIN - len(data) + 3) // 4 if len(data) < ETHER_MIN else 0)
            out.append(damaged(data) if number % 7 == 3 else data)
    assert len(set(out)) == len(out)
    return out


def damaged(data):
    """With checksums that are wrong, where it is one of the plain sorts that frames.py knows."""
    plain = data[12:14] in (b"\x08\x00", b"\x86\xdd") and (data[23] in (6, 17) if data[12] == 8 else data[20] in (6, 17))
    return frames.broken(data) if plain else data


def describe(frame):
    return Ether(frame).summary() + " " + frame.hex()
