# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The same addresses, routes and neighbours, and the same frames, through Debian's kernel as a router and
through millrace in mode ip: the same frames leave.

All frames come in at p0, each from a sender of its own, so that no limit of ICMP errors is met. What
may differ is blanked out: the IPv4 identification and IPv6 flow label of packets that the router itself
makes. KNOWN lists the differences that are meant, with their reasons.
"""

import pathlib
import shutil
import tempfile
import time

import pytest
from frames import read, write
from kernel import Kernel, require
from program import Millrace
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, fragment
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6MLReport2, ICMPv6ND_NA, ICMPv6ND_NS,
                                ICMPv6ND_Redirect, ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr,
                                ICMPv6ParamProblem, IPerror6, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, fragment6)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

# What net_pcap ports have; the guest's NICs are given the same.
MACS = ["02:70:63:61:70:00", "02:70:63:61:70:01"]
HOST, PEER = "02:00:00:00:bb:09", "02:00:00:00:aa:02"
END = b"that was the last one"
OWN = {"192.0.2.1", "203.0.113.1", "2001:db8::1", "2001:db8:1::1"}

CONFIG = """
addr add 192.0.2.1/24 brd + dev p0
addr add 203.0.113.1/24 brd + dev p1
addr add 2001:db8::1/64 dev p0 nodad
addr add 2001:db8:1::1/64 dev p1 nodad
neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0
neigh add 203.0.113.2 lladdr 02:00:00:00:aa:02 dev p1
neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0
neigh add fe80::9 lladdr 02:00:00:00:bb:09 dev p0
neigh add fe80::77 lladdr 02:00:00:00:bb:77 dev p0
neigh add 2001:db8:1::2 lladdr 02:00:00:00:aa:02 dev p1
route add 198.18.0.0/16 via 192.0.2.9
route add 198.51.100.0/24 via 203.0.113.2
route add blackhole 198.19.0.0/24
route add unreachable 198.19.1.0/24
route add prohibit 198.19.2.0/24
route add 2001:db8:18::/48 via 2001:db8::9
route add 2001:db8:51::/48 via 2001:db8:1::2
route add blackhole 2001:db8:190::/48
route add unreachable 2001:db8:191::/48
route add prohibit 2001:db8:192::/48
"""

GUEST = """
    for n in 0 1; do
        ip link set eth$n name p$n
        ip link set p$n address 02:70:63:61:70:0$n
        for f in rp_filter send_redirects accept_redirects; do echo 0 >/proc/sys/net/ipv4/conf/p$n/$f; done
        echo 0 >/proc/sys/net/ipv6/conf/p$n/accept_dad
        echo 0 >/proc/sys/net/ipv6/conf/p$n/addr_gen_mode
    done
    for f in rp_filter send_redirects; do echo 0 >/proc/sys/net/ipv4/conf/all/$f; done
    echo 1 >/proc/sys/net/ipv4/ip_forward
    echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
    echo 0 >/proc/sys/net/ipv4/icmp_ratelimit
    echo 1000000 >/proc/sys/net/ipv4/icmp_msgs_burst
    echo 1000000 >/proc/sys/net/ipv4/icmp_msgs_per_sec
    echo 0 >/proc/sys/net/ipv6/icmp/ratelimit
    echo 3600 >/proc/sys/net/ipv4/ipfrag_time
    echo 3600 >/proc/sys/net/ipv6/ip6frag_time
    ip link set p0 mtu 4000
    ip link set p0 up
    ip link set p1 up
"""


class Senders:
    """A new address each time."""

    def __init__(self):
        self.n = 0

    def v4(self, **fields):
        self.n += 1
        return IP(**{"src": f"198.18.{self.n // 250}.{self.n % 250 + 1}", "dst": "198.51.100.7", "id": self.n, **fields})

    def v6(self, **fields):
        self.n += 1
        return IPv6(**{"src": f"2001:db8:18::{self.n:x}", "dst": "2001:db8:51::7", **fields})


def to_us(packet, **fields):
    return Ether(**{"src": HOST, "dst": MACS[0], **fields}) / packet


def payload(size):
    return UDP(sport=1000, dport=2000) / Raw((bytes(range(256)) * (size // 256 + 1))[:size])


# --- what is sent: each yields frames ---


def forwarded_v4(s):
    for ttl in (0, 1, 2, 64, 255):
        yield to_us(s.v4(ttl=ttl) / payload(20))
    for tos in (0, 1, 2, 3, 0x10, 0xb8, 0xff):
        yield to_us(s.v4(tos=tos) / payload(20))
        yield to_us(s.v4(tos=tos, ttl=1) / payload(20))
    for flags in (0, "DF", "evil"):
        yield to_us(s.v4(flags=flags) / payload(20))
    for size in (0, 1, 17, 1000, 1472):
        yield to_us(s.v4() / payload(size))
    yield to_us(s.v4() / payload(4)) / Raw(b"padding of some NIC")
    yield to_us(s.v4(proto=253) / Raw(b"unknown"))
    yield to_us(s.v4(proto=253))
    yield to_us(s.v4() / TCP(flags="S"))
    yield to_us(s.v4(frag=100) / Raw(b"tail"))
    yield to_us(s.v4(flags="MF") / payload(24))


def options_v4(s):
    for options in (b"\x01\x01\x01\x00", b"\x00\x00\x00\x00", b"\x82\x0b" + bytes(9) + b"\x00"):
        yield to_us(s.v4(options=options) / payload(20))
    # Source routes, with addresses left and without.
    yield to_us(s.v4(options=b"\x83\x07\x04\xcb\x00\x71\x02\x00") / payload(20))
    yield to_us(s.v4(options=b"\x89\x07\x04\xcb\x00\x71\x02\x00") / payload(20))


def destinations_v4(s):
    for dst in ("198.19.0.1", "198.19.1.1", "198.19.2.1", "100.64.0.1", "192.0.2.255", "203.0.113.255",
                "255.255.255.255", "0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"):
        yield to_us(s.v4(dst=dst) / payload(20))
        yield to_us(s.v4(dst=dst, ttl=1) / payload(20))


def sources_v4(s):
    """But the router's own addresses: Linux refuses them, unless another packet of the burst had its destination."""
    for src in ("127.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.255"):
        yield to_us(s.v4(src=src) / payload(20))
    yield to_us(s.v4(src="203.0.113.77") / payload(20))


def malformed_v4(s):
    yield to_us(s.v4(chksum=0x1234) / payload(20))
    yield to_us(s.v4(version=5) / payload(20))
    yield to_us(s.v4(ihl=4) / payload(20))
    yield to_us(s.v4(ihl=15) / payload(4))
    yield to_us(s.v4(len=19) / payload(20))
    yield to_us(s.v4(len=100) / payload(20))
    whole = bytes(to_us(s.v4() / payload(20)))
    for length in (14, 20, 33, 34, 50):
        yield Ether(whole[:length])
    yield to_us(s.v4() / payload(20), dst="02:00:00:00:00:77")
    yield to_us(s.v4() / payload(20), dst="ff:ff:ff:ff:ff:ff")
    yield to_us(s.v4() / payload(20), dst="01:00:5e:00:00:01")
    yield to_us(Dot1Q(vlan=7) / s.v4() / payload(20))
    yield to_us(s.v4() / payload(20), type=0x88b5)


def errors_about_v4(s):
    """Whom no error answers (RFC 1812 4.3.2.7)."""
    for kind in (0, 3, 4, 5, 8, 11, 12, 13, 14, 15, 17, 42):
        yield to_us(s.v4(dst="100.64.0.1") / ICMP(type=kind) / Raw(b"quoted" * 6))
        yield to_us(s.v4(ttl=1) / ICMP(type=kind) / Raw(b"quoted" * 6))
    yield to_us(s.v4(dst="100.64.0.1", frag=3) / Raw(b"tail"))
    yield to_us(s.v4(dst="100.64.0.1", flags="MF") / payload(24))
    yield to_us(s.v4(dst="100.64.0.1") / payload(1400))
    yield to_us(s.v4(dst="100.64.0.1", options=b"\x01\x01\x01\x00") / payload(700))


def too_long_v4(s):
    for size in (1473, 1481, 2000, 3000):
        yield to_us(s.v4() / payload(size))
        yield to_us(s.v4(flags="DF") / payload(size))
        yield to_us(s.v4(ttl=1) / payload(size))
    yield to_us(s.v4(flags="MF", frag=185) / payload(2000))
    yield to_us(s.v4(frag=185) / payload(2000))
    yield to_us(s.v4(options=b"\x07\x07\x08\x01\x02\x03\x04\x00") / payload(2000))
    yield to_us(s.v4(options=b"\x94\x04\x00\x00") / payload(2000))


def echo_v4(s):
    for dst in ("192.0.2.1", "203.0.113.1"):
        for size in (0, 1, 56, 1400):
            yield to_us(s.v4(dst=dst) / ICMP(id=7, seq=size) / Raw(b"e" * size))
        yield to_us(s.v4(dst=dst, ttl=1, tos=0x28) / ICMP(id=7))
        yield to_us(s.v4(dst=dst) / ICMP(id=7, code=3))
        yield to_us(s.v4(dst=dst) / ICMP(id=7, chksum=0x1234))
        for kind in (0, 3, 5, 11, 17, 42):
            yield to_us(s.v4(dst=dst) / ICMP(type=kind) / Raw(b"quoted" * 6))
    yield to_us(s.v4(dst="192.0.2.1", options=b"\x01\x01\x01\x00") / ICMP(id=9))


def pieces_v4(s):
    """An echo request in fragments: each order, overlapping, without an end, too much of it."""
    def parts():
        return [to_us(p) for p in fragment(s.v4(dst="192.0.2.1", flags=0) / ICMP(id=3) / Raw(bytes(range(256))), 104)]

    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 1, 1, 2), (0, 2), (2, 0, 0, 1)):
        some = parts()
        yield from (some[i] for i in order)
    some = parts()
    some[1][IP].frag = 12
    yield from some
    some = parts()
    some[2][IP].frag = 12
    yield from some
    yield to_us(s.v4(dst="192.0.2.1", flags="MF", frag=8190) / Raw(b"x" * 16))
    yield to_us(s.v4(dst="192.0.2.1", frag=8191) / Raw(b"x" * 100))
    for ecn in ((0, 0), (1, 1), (2, 3), (0, 3), (3, 2)):
        some = parts()
        for part, bits in zip(some, (ecn[0], ecn[1], ecn[1])):
            part[IP].tos = bits
        yield from some


def arp(_):
    everyone = {"src": HOST, "dst": "ff:ff:ff:ff:ff:ff"}

    def ask(pdst, psrc="192.0.2.9", ether=None, **fields):
        return Ether(**{**everyone, **(ether or {})}) / ARP(op=1, hwsrc=HOST, psrc=psrc, pdst=pdst, **fields)

    yield ask("192.0.2.1")
    yield ask("192.0.2.1", ether={"dst": MACS[0]})
    yield ask("203.0.113.1")
    yield ask("192.0.2.77")
    yield ask("203.0.113.2")
    yield ask("198.51.100.7")
    yield ask("192.0.2.9")
    yield ask("127.0.0.1")
    yield ask("224.0.0.1")
    yield ask("192.0.2.1", psrc="0.0.0.0")
    yield ask("192.0.2.1", psrc="198.18.3.3")
    yield ask("192.0.2.1", psrc="192.0.2.1")
    yield ask("192.0.2.1", ptype=0x86dd)
    yield ask("192.0.2.1", hwtype=6)
    yield ask("192.0.2.1", ether={"dst": "02:00:00:00:00:77"})
    yield Ether(**everyone) / ARP(op=2, hwsrc=HOST, psrc="192.0.2.9", hwdst=MACS[0], pdst="192.0.2.1")
    yield Ether(**everyone) / ARP(op=3, hwsrc=HOST, psrc="192.0.2.9", pdst="192.0.2.1")
    yield Ether(bytes(ask("192.0.2.1"))[:40])


def forwarded_v6(s):
    for hlim in (0, 1, 2, 64, 255):
        yield to_us(s.v6(hlim=hlim) / payload(20))
    for tc in (0, 1, 2, 3, 0xb8):
        yield to_us(s.v6(tc=tc, fl=0x12345) / payload(20))
    for size in (0, 1, 17, 1000, 1452):
        yield to_us(s.v6() / payload(size))
    yield to_us(s.v6() / payload(4)) / Raw(b"padding of some NIC")
    yield to_us(s.v6(nh=253) / Raw(b"unknown"))
    yield to_us(s.v6(nh=59))
    yield to_us(s.v6() / IPv6ExtHdrDestOpt() / payload(20))
    yield to_us(s.v6() / IPv6ExtHdrHopByHop() / payload(20))
    yield to_us(s.v6() / IPv6ExtHdrFragment(m=1, id=5) / payload(24))
    yield to_us(s.v6() / IPv6ExtHdrFragment(offset=4, id=5, nh=17) / Raw(b"tail"))
    for size in (1453, 2000, 3000):
        yield to_us(s.v6() / payload(size))
        yield to_us(s.v6(hlim=1) / payload(size))


def destinations_v6(s):
    for dst in ("2001:db8:190::1", "2001:db8:191::1", "2001:db8:192::1", "2001:db8:99::1", "::", "::1", "ff02::1",
                "ff02::2", "ff0e::1"):
        yield to_us(s.v6(dst=dst) / payload(20))
        yield to_us(s.v6(dst=dst, hlim=1) / payload(20))
    for kind in (1, 2, 3, 4, 100, 127, 128, 129, 200):
        yield to_us(s.v6(dst="2001:db8:99::1") / ICMPv6DestUnreach(type=kind) / Raw(b"quoted" * 8))
    yield to_us(s.v6(dst="2001:db8:99::1") / payload(1300))


def sources_v6(s):
    for src in ("::", "::1", "ff02::1", "2001:db8::1", "2001:db8:1::77"):
        yield to_us(s.v6(src=src) / payload(20))


def malformed_v6(s):
    yield to_us(s.v6(version=5) / payload(20))
    yield to_us(s.v6(plen=200) / payload(20))
    yield to_us(s.v6(plen=4) / payload(20))
    whole = bytes(to_us(s.v6() / payload(20)))
    for length in (14, 40, 53, 54, 60):
        yield Ether(whole[:length])
    yield to_us(s.v6() / payload(20), dst="02:00:00:00:00:77")
    yield to_us(s.v6() / payload(20), dst="33:33:00:00:00:01")


def echo_v6(s):
    for dst in ("2001:db8::1", "2001:db8:1::1"):
        for size in (0, 1, 56, 1400):
            yield to_us(s.v6(dst=dst) / ICMPv6EchoRequest(id=7, seq=size, data=b"e" * size))
        yield to_us(s.v6(dst=dst, hlim=1) / ICMPv6EchoRequest(id=8))
        yield to_us(s.v6(dst=dst) / ICMPv6EchoRequest(id=8, cksum=0x1234))
        for kind in (1, 2, 3, 4, 129, 200):
            yield to_us(s.v6(dst=dst) / ICMPv6DestUnreach(type=kind) / Raw(b"quoted" * 8))


def pieces_v6(s):
    def parts():
        whole = s.v6(dst="2001:db8::1") / IPv6ExtHdrFragment(id=s.n) / ICMPv6EchoRequest(data=bytes(range(256)))
        return [to_us(p) for p in fragment6(whole, 160)]

    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 1, 1, 2), (0, 2), (2, 0, 0, 1)):
        some = parts()
        yield from (some[i] for i in order if i < len(some))
    some = parts()
    some[1][IPv6ExtHdrFragment].offset -= 1
    yield from some
    # What RFC 8200 4.5 wants said.
    yield to_us(s.v6(dst="2001:db8::1") / IPv6ExtHdrFragment(id=77, m=1, nh=58) / Raw(b"x" * 63))
    yield to_us(s.v6(dst="2001:db8::1") / IPv6ExtHdrFragment(id=78, m=0) / ICMPv6EchoRequest(data=b"atomic"))


def discovery(_):
    """Neighbour discovery of one host and of nobody."""
    lladdr = ICMPv6NDOptSrcLLAddr(lladdr=HOST)
    group = {"src": HOST, "dst": "33:33:ff:00:00:01"}

    def ask(tgt="2001:db8::1", src="2001:db8::9", dst="ff02::1:ff00:1", ether=None, options=lladdr, hlim=255, **fields):
        packet = IPv6(src=src, dst=dst, hlim=hlim) / ICMPv6ND_NS(tgt=tgt, **fields)
        return Ether(**{**group, **(ether or {})}) / (packet / options if options is not None else packet)

    yield ask()
    yield ask(dst="2001:db8::1", ether={"dst": MACS[0]})
    yield ask(dst="2001:db8::1", ether={"dst": MACS[0]}, options=None)
    yield ask(tgt="2001:db8:1::1")
    yield ask(tgt="2001:db8::77")
    yield ask(tgt="2001:db8::9")
    yield ask(hlim=254)
    yield ask(code=1)
    yield ask(cksum=0x1234)
    yield ask(tgt="ff02::1")
    yield ask(src="::", options=None)
    yield ask(src="::")
    yield ask(src="::", dst="2001:db8::1", ether={"dst": MACS[0]}, options=None)
    yield ask(options=Raw(b"\x01\x00\x02\x00\x00\x00\xbb\x09"))
    yield ask(options=Raw(b"\x01\x02\x02\x00\x00\x00\xbb\x09"))
    yield Ether(src=HOST, dst=MACS[0]) / IPv6(src="2001:db8::9", dst="2001:db8::1", hlim=255) / \
        ICMPv6ND_NA(tgt="2001:db8::9", S=0, O=1) / ICMPv6NDOptDstLLAddr(lladdr=HOST)
    yield Ether(src=HOST, dst="33:33:00:00:00:02") / IPv6(src="2001:db8::9", dst="ff02::2", hlim=255) / ICMPv6ND_RS()
    yield Ether(src=HOST, dst=MACS[0]) / IPv6(src="fe80::9", dst="2001:db8::1", hlim=255) / \
        ICMPv6ND_Redirect(tgt="2001:db8::77", dst="2001:db8:51::7")
    yield to_us(IPv6(src="2001:db8::9", dst="2001:db8:51::7") / payload(20))


def local_v4(s):
    """For addresses of the router, and nothing that it answers."""
    for dst in ("192.0.2.1", "203.0.113.1"):
        yield to_us(s.v4(dst=dst) / payload(20))
        yield to_us(s.v4(dst=dst) / TCP(dport=7, flags="S"))
        yield to_us(s.v4(dst=dst, proto=253) / Raw(b"unknown"))
        yield to_us(s.v4(dst=dst) / ICMP(type=13))


def local_v6(s):
    for dst in ("2001:db8::1", "2001:db8:1::1"):
        yield to_us(s.v6(dst=dst) / payload(20))
        yield to_us(s.v6(dst=dst) / TCP(dport=7, flags="S"))
        yield to_us(s.v6(dst=dst, nh=253) / Raw(b"unknown"))
        yield to_us(s.v6(dst=dst) / IPv6ExtHdrRouting(addresses=["2001:db8:51::7"]) / payload(20))


def scopes_v6(s):
    yield to_us(s.v6(src="fe80::9") / payload(20))
    yield to_us(s.v6(dst="fe80::77") / payload(20))


def options_v6(s):
    """Unknown hop-by-hop options: skipped, dropped, said to be wrong."""
    for kind in (0x1e, 0x5e, 0x9e, 0xde):
        yield to_us(s.v6(nh=0) / Raw(bytes([17, 0, kind, 4, 0, 0, 0, 0])) / payload(20))


def asks(s):
    """Neighbours that nobody knows are asked for."""
    yield to_us(s.v4(dst="203.0.113.77") / payload(20))
    yield to_us(s.v4(dst="192.0.2.78") / payload(20))
    yield to_us(s.v4(dst="192.0.2.0") / payload(20))
    yield to_us(s.v6(dst="2001:db8:1::77") / payload(20))
    yield to_us(s.v6(dst="2001:db8::78") / payload(20))


CASES = {f.__name__: f for f in (
    forwarded_v4, options_v4, destinations_v4, sources_v4, malformed_v4, errors_about_v4, too_long_v4, echo_v4,
    pieces_v4, local_v4, arp, forwarded_v6, destinations_v6, sources_v6, malformed_v6, echo_v6, pieces_v6, local_v6,
    scopes_v6, options_v6, discovery, asks)}


def about(*addresses):
    """Errors about packets to or from those, and the packets themselves."""
    def which(packet):
        inner = packet.getlayer(IPerror) or packet.getlayer(IPerror6)
        return bool(addresses & {packet.payload.src, getattr(inner, "dst", None)})

    addresses = set(addresses)
    return which


def option_in_tail(packet):
    return IP in packet and packet[IP].frag > 0


MARTIANS = "0/8 and 240/4 are martians to millrace (RFC 1812 5.3.7), unicast to Linux; so is :: as a destination"
HOST_PATH = "nothing listens on the router: packets for it are dropped as no_host_path, and nobody is told"
# (case, who alone says it, why, which frames)
KNOWN = [
    ("destinations_v4", "kernel", MARTIANS, about("0.1.2.3", "240.0.0.1")),
    ("destinations_v6", "kernel", MARTIANS, about("::")),
    ("sources_v4", "kernel", MARTIANS, about("0.1.2.3", "240.0.0.1")),
    ("too_long_v4", "kernel", "options that are not copied become NOPs there, and are left out here", option_in_tail),
    ("too_long_v4", "millrace", "likewise", option_in_tail),
    ("local_v4", "kernel", HOST_PATH, lambda packet: ICMP in packet or TCP in packet),
    ("local_v6", "kernel", HOST_PATH, lambda packet: IPv6 in packet),
    ("scopes_v6", "kernel", "packets from or to link-local addresses are not forwarded (RFC 4291 2.5.6), and nobody is "
     "told; Linux forwards those whose destination is on the link that they came by",
     lambda packet: packet[IPv6].dst == "fe80::77" or about("2001:db8:51::7")(packet)),
    ("options_v6", "kernel", "hop-by-hop options are not looked at (RFC 8200 4), so those that are unknown pass",
     lambda packet: ICMPv6ParamProblem in packet),
    ("options_v6", "millrace", "likewise", lambda packet: packet.dst == PEER),
]

# --- both routers ---


@pytest.fixture(scope="module")
def kernel():
    require()
    with Kernel() as guest:
        guest.run(GUEST)
        guest.run("ip -b -", input=CONFIG)
        # What it says of itself.
        guest.receive(0, timeout=2)
        guest.receive(1, timeout=1)
        yield guest


@pytest.fixture
def directory():
    path = pathlib.Path(tempfile.mkdtemp(prefix="mr-"))
    yield path
    shutil.rmtree(path)


def through_kernel(guest, sent, seconds):
    """The last frame is the one that is waited for: all others were served before."""
    guest.send(0, sent)
    left = [[], []]
    end = time.monotonic() + 60
    while not any(END in frame for frame in left[1]):
        assert time.monotonic() < end, "the guest does not forward"
        left[1] += guest.receive(1, 1, 1)
    left[0] = guest.receive(0, timeout=seconds)
    left[1] += guest.receive(1)
    return left


def through_millrace(directory, sent, seconds):
    write(directory / "in0.pcap", sent)
    write(directory / "in1.pcap", [])
    vdevs = [f"net_pcap{i},rx_pcap={directory}/in{i}.pcap,tx_pcap={directory}/out{i}.pcap" for i in range(2)]
    commands = ["set fwd ip"] + [f"ip {line}" for line in CONFIG.replace(" nodad", "").strip().split("\n")] + ["start"]
    program = Millrace(directory, vdevs, [f"--idle-exit={round(seconds * 1000)}", "--mbuf-size=4480"],
                       commands=commands)
    program.wait()
    return [[bytes(f) for f in read(directory / f"out{i}.pcap")] for i in range(2)]


def blanked(frame):
    """Without what each router makes up, and without Ethernet's padding."""
    packet = Ether(frame)
    if IP in packet and packet[IP].src in OWN:
        packet[IP].id = 0
        del packet[IP].chksum
    if IPv6 in packet and packet[IPv6].src in OWN:
        packet[IPv6].fl = 0
    return bytes(packet)


def said(frames):
    return "\n".join(sorted(Ether(f).summary() + " " + f.hex() for f in frames))


def explained(name, who, frames):
    """Those that KNOWN does not name. Each entry must be met."""
    for case, side, _, which in KNOWN:
        if (case, side) == (name, who):
            rest = [f for f in frames if not which(Ether(f))]
            assert len(rest) < len(frames), f"{name}: a known difference is gone"
            frames = rest
    return frames


@pytest.mark.parametrize("name", CASES)
def test_same_frames_leave(kernel, directory, name):
    sent = [bytes(frame) for frame in CASES[name](Senders())]
    sent.append(bytes(to_us(Senders().v4() / UDP(sport=9, dport=9) / Raw(END))))
    # Whoever asks for a neighbour asks three times, a second apart, and then says that it is not there.
    seconds = 5 if name == "asks" else 0.5
    theirs, ours = through_kernel(kernel, sent, seconds), through_millrace(directory, sent, seconds)
    sides = []
    for left in (theirs, ours):
        frames = [(port, blanked(frame)) for port in range(2) for frame in left[port]
                  if ICMPv6MLReport2 not in Ether(frame)]  # of groups that the kernel joins
        sides.append(sorted(set(frames)) if name == "asks" else frames)
    missing, extra = sides[0], [f for f in sides[1] if f not in sides[0] or sides[0].remove(f)]
    missing = explained(name, "kernel", [f for _, f in missing])
    extra = explained(name, "millrace", [f for _, f in extra])
    assert not missing and not extra, \
        f"{name}:\nthe kernel alone:\n{said(missing)}\nmillrace alone:\n{said(extra)}"
