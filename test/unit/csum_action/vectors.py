# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
"""Writes the frames of rules A1-A20: name, flags, frame in, frame out, reason.

Right frames are scapy's, wrong ones are made from them; what must come out is scapy's too, or the
frame itself where it must stay untouched, or said in figures. reference.py has to agree with every
line, and adds random ones.

usage: vectors.py OUTPUT [RANDOM-FRAMES]
"""

import random
import struct
import sys

from scapy.contrib.igmp import IGMP as IGMPPacket
from scapy.layers.inet import ICMP as ICMPPacket, IP, TCP as TCPPacket, UDP as UDPPacket
from scapy.layers.inet import IPOption, IPOption_LSRR, IPOption_NOP, IPOption_SSRR
from scapy.layers.inet6 import (ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, HAO, Jumbo, PadN,
                                RouterAlert, in6_chksum)
from scapy.layers.l2 import Dot1Q, Dot3, Ether, LLC, SNAP
from scapy.layers.sctp import SCTP as SCTPPacket, SCTPChunkData
from scapy.packet import Raw
from scapy.utils import checksum

import reference
from reference import ALL, ICMP, IGMP, IP4H, SCTP, TCP, UDP, UDPLITE

V4 = {"src": "192.0.2.1", "dst": "198.51.100.7"}
V6 = {"src": "2001:db8::1", "dst": "2001:db8:1::7"}
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
PAYLOAD = bytes(range(1, 24))  # odd

lines = []


def emit(name, flags, before, after, reason):
    """One line; the bytewise reference must say the same."""
    before, after = bytes(before), bytes(after)
    got = reference.update(before, flags)
    assert got == (after, reason), "%s: %s\n %s\n %s\n %s" % (
        name, got[1], before.hex(), got[0].hex(), after.hex())
    lines.append("%s %x %s %s %s" % (name, flags, before.hex() or "-", after.hex() or "-", reason))


def untouched(name, frame, reason, flags=ALL):
    emit(name, flags, frame, frame, reason)


def set16(frame, at, value):
    out = bytearray(frame)
    out[at:at + 2] = struct.pack("!H", value)
    return bytes(out)


def spoil(frame, at, size=2):
    """The frame with another, non-zero, value in its field."""
    out = bytearray(frame)
    for i in range(size):
        out[at + i] ^= 0x5a
    if not any(out[at:at + size]):
        out[at] = 1
    return bytes(out)


def right(name, frame, fields, flags=ALL):
    """A right frame must survive, and come back from any spoilt state. fields: (offset, size)."""
    frame = bytes(frame)
    emit(name, flags, frame, frame, "computed")
    for at, size in fields:
        emit(name, flags, spoil(frame, at, size), frame, "computed")
    bad = frame
    for at, size in fields:
        bad = spoil(bad, at, size)
    emit(name, flags, bad, frame, "computed")
    return frame


def ipv4_header(**fields):
    return IP(ttl=64, id=0x1234, **V4, **fields)


def basics():
    udp4 = right("csum_basic_udp4", ETHER / ipv4_header() / UDPPacket(sport=1000, dport=2000) /
                 Raw(PAYLOAD), [(24, 2), (40, 2)])
    right("csum_basic_tcp4", ETHER / ipv4_header() / TCPPacket(sport=1, dport=2, seq=77) /
          Raw(PAYLOAD), [(24, 2), (50, 2)])
    right("csum_basic_tcp4_options", ETHER / ipv4_header() /
          TCPPacket(sport=1, dport=2, options=[("MSS", 1460), ("SAckOK", b""), ("WScale", 7)]) /
          Raw(PAYLOAD), [(24, 2), (50, 2)])
    right("csum_A10_icmp_has_no_pseudo_header", ETHER / ipv4_header() /
          ICMPPacket(id=5, seq=9) / Raw(PAYLOAD), [(24, 2), (36, 2)])
    right("csum_A10_igmp_has_no_pseudo_header", ETHER / ipv4_header(proto=2) /
          IGMPPacket(type=0x16, gaddr="233.252.0.1"), [(24, 2), (36, 2)])
    right("csum_basic_udp6", ETHER / IPv6(**V6) / UDPPacket(sport=1000, dport=2000) /
          Raw(PAYLOAD), [(60, 2)])
    right("csum_basic_tcp6", ETHER / IPv6(**V6) / TCPPacket(sport=1, dport=2) / Raw(PAYLOAD),
          [(70, 2)])
    right("csum_A10_icmp6_has_a_pseudo_header", ETHER / IPv6(**V6) /
          ICMPv6EchoRequest(id=3, seq=4, data=PAYLOAD), [(56, 2)])
    # only what is asked for
    emit("csum_flags_only_udp", UDP, spoil(spoil(udp4, 24), 40), spoil(udp4, 24), "computed")
    emit("csum_flags_only_ip4h", IP4H, spoil(spoil(udp4, 24), 40), spoil(udp4, 40), "computed")
    untouched("csum_flags_not_tcp", spoil(udp4, 40), "unasked", TCP)
    untouched("csum_flags_none", spoil(udp4, 40), "unasked", 0)
    untouched("csum_A10_icmp6_number_in_ipv4", set16(
        bytes(ETHER / ipv4_header(proto=58) / Raw(b"\x80\0" + b"\x12\x34" + bytes(8))), 24, 1),
        "unasked", ICMP)
    untouched("csum_A10_icmp_number_in_ipv6",
              ETHER / IPv6(nh=1, **V6) / Raw(b"\x08\0\x12\x34" + bytes(8)), "unasked", ALL)


def a1():
    good = bytes(ETHER / ipv4_header() / UDPPacket(sport=9, dport=9) / Raw(PAYLOAD))

    def with_byte(at, value, length=None):
        return good[:at] + bytes([value]) + good[at + 1:length]

    name = "csum_A1_malformed_ipv4_untouched"
    for value in (0x05, 0x35, 0x55, 0x65, 0x75, 0xf5, 0x44, 0x40, 0x43):
        untouched(name, with_byte(14, value), "malformed_l3")
    untouched(name, with_byte(14, 0x44), "malformed_l3", IP4H)
    untouched(name, with_byte(14, 0x4f, 14 + 59), "malformed_l3")
    untouched(name, set16(with_byte(14, 0x46), 16, 23), "malformed_l3")
    for total in (0, 1, 19):
        untouched(name, set16(good, 16, total), "malformed_l3")
    for length in range(14, 34):
        untouched(name, good[:length], "malformed_l3")
    v6 = bytes(ETHER / IPv6(**V6) / UDPPacket(sport=9, dport=9))
    untouched(name, v6[:14] + b"\x45" + v6[15:], "malformed_l3")
    for length in range(14, 54):
        untouched(name, v6[:length], "malformed_l3")
    for length in range(34, len(good)):
        untouched("csum_A7_frame_shorter_than_ip", good[:length], "cut_l3")
    for length in range(54, len(v6)):
        untouched("csum_A7_frame_shorter_than_ip", v6[:length], "cut_l3")


def a2():
    name = "csum_A2_fragment_layer4_untouched"
    for flags, frag in ((1, 0), (1, 8), (0, 8), (0, 8191), (3, 0)):
        good = bytes(ETHER / ipv4_header(flags=flags, frag=frag, proto=17) / Raw(PAYLOAD * 2))
        emit(name, ALL, spoil(good, 24), good, "fragment")
        emit(name, IP4H, spoil(good, 24), good, "computed")
        untouched(name, spoil(good, 24), "fragment", UDP)
        untouched(name, spoil(good, 24), "unasked", TCP)
    good = ETHER / ipv4_header(flags=2) / UDPPacket(sport=1, dport=2) / Raw(PAYLOAD)
    right("csum_A2_dont_fragment_is_no_fragment", good, [(24, 2), (40, 2)])
    for offset, more in ((0, 1), (5, 0), (5, 1)):
        untouched(name, ETHER / IPv6(**V6) / IPv6ExtHdrFragment(nh=17, offset=offset, m=more, id=7) /
                  Raw(PAYLOAD * 2), "fragment")


def with_zero_result(build, field):
    """Bytes of a frame whose sum comes to 0, by two bytes at the end of an even payload."""
    frame = bytes(build(b"\0\0"))
    value = struct.unpack("!H", frame[field:field + 2])[0]
    return bytes(build(struct.pack("!H", value)))


def a3_to_a6():
    none = set16(bytes(ETHER / ipv4_header() / UDPPacket(sport=1, dport=2) / Raw(PAYLOAD)), 40, 0)
    emit("csum_A3_udp4_zero_stays_zero", ALL, spoil(none, 24), none, "udp_none")
    untouched("csum_A3_udp4_zero_stays_zero", none, "udp_none", UDP)

    def udp4(tail):
        return ETHER / ipv4_header() / UDPPacket(sport=1, dport=2, chksum=None) / Raw(b"ab" + tail)

    def udp6(tail):
        return ETHER / IPv6(**V6) / UDPPacket(sport=1, dport=2) / Raw(b"ab" + tail)

    def tcp4(tail):
        return ETHER / ipv4_header() / TCPPacket(sport=1, dport=2) / Raw(b"ab" + tail)

    def icmp(tail):
        return ETHER / ipv4_header() / ICMPPacket(id=1, seq=2) / Raw(b"ab" + tail)

    def igmp(tail):
        data = b"\x17\0" + b"\0\0" + b"\xe9\xfc\0\1" + tail
        return ETHER / ipv4_header(proto=2) / Raw(data[:2] + struct.pack("!H", checksum(data)) +
                                                 data[4:])

    frame = set16(with_zero_result(udp4, 40), 40, 0xffff)
    emit("csum_A4_udp4_zero_is_sent_as_ffff", ALL, spoil(frame, 40), frame, "computed")
    emit("csum_A4_udp4_zero_is_sent_as_ffff", ALL, frame, frame, "computed")
    frame = set16(with_zero_result(udp6, 60), 60, 0xffff)
    emit("csum_A4_udp6_zero_is_sent_as_ffff", ALL, spoil(frame, 60), frame, "computed")
    frame = set16(with_zero_result(tcp4, 50), 50, 0)
    emit("csum_A5_tcp_zero_stays_zero", ALL, spoil(frame, 50), frame, "computed")
    emit("csum_A5_tcp_zero_stays_zero", ALL, set16(frame, 50, 0xffff), frame, "computed")
    frame = set16(with_zero_result(icmp, 36), 36, 0)
    emit("csum_A5_icmp_zero_stays_zero", ALL, spoil(frame, 36), frame, "computed")
    frame = set16(with_zero_result(igmp, 36), 36, 0)
    emit("csum_A5_igmp_zero_stays_zero", ALL, spoil(frame, 36), frame, "computed")
    # an IPv4 header whose sum comes to 0: the id makes up for it
    head = bytearray(bytes(ETHER / ipv4_header() / UDPPacket(sport=1, dport=2)))
    value = struct.unpack("!H", head[24:26])[0]
    ident = struct.unpack("!H", head[18:20])[0]
    total = ident + value
    head[18:20] = struct.pack("!H", (total & 0xffff) + (total >> 16))
    zero = set16(bytes(head), 24, 0)
    assert checksum(zero[14:34]) == 0
    emit("csum_A5_ipv4_header_zero_stays_zero", ALL, set16(zero, 24, 0xffff), zero, "computed")
    # nothing but zeros: the sum is 0, so its complement is not
    blank = bytes(ETHER / ipv4_header(proto=1) / Raw(bytes(8)))
    emit("csum_A5_all_zero_icmp_is_ffff", ALL, blank, set16(blank, 36, 0xffff), "computed")
    emit("csum_A5_all_zero_icmp_is_ffff", ALL, spoil(blank, 36), set16(blank, 36, 0xffff),
         "computed")
    good = bytes(udp6(b"xy"))
    emit("csum_A6_udp6_zero_is_recomputed", ALL, set16(good, 60, 0), good, "computed")


def a7():
    name = "csum_A7_udp_length_wrong_untouched"
    good = bytes(ETHER / ipv4_header() / UDPPacket(sport=1, dport=2) / Raw(PAYLOAD))
    for length in (0, 1, 7, 8, len(PAYLOAD) + 7, len(PAYLOAD) + 9, 0xffff):
        untouched(name, set16(good, 38, length), "malformed_l4", UDP)
    good = bytes(ETHER / IPv6(**V6) / UDPPacket(sport=1, dport=2) / Raw(PAYLOAD))
    for length in (0, 7, 8, len(PAYLOAD) + 7, len(PAYLOAD) + 9):
        untouched(name, set16(good, 58, length), "malformed_l4")
    for size in range(1, 8):
        untouched(name, ETHER / ipv4_header(proto=17) / Raw(bytes(range(1, size + 1))),
                  "malformed_l4", UDP)
    for size in range(1, 20):
        untouched("csum_A7_tcp_header_cut", ETHER / ipv4_header(proto=6) /
                  Raw(bytes(range(1, size + 1))), "malformed_l4", TCP)
    tcp = bytes(ETHER / ipv4_header() / TCPPacket(sport=1, dport=2) / Raw(b"abc"))
    for offset in (0, 1, 4, 6, 15):
        untouched("csum_A7_tcp_data_offset_lies", tcp[:46] + bytes([offset << 4]) + tcp[47:],
                  "malformed_l4", TCP)
    for proto, flag in ((1, ICMP), (2, IGMP)):
        for size in range(1, 8):
            untouched("csum_A7_icmp_igmp_header_cut", ETHER / ipv4_header(proto=proto) /
                      Raw(bytes(range(1, size + 1))), "malformed_l4", flag)
    untouched("csum_A7_nothing_after_ip", ETHER / ipv4_header(proto=17), "cut_l4", UDP)
    untouched("csum_A7_nothing_after_ip", ETHER / IPv6(nh=17, **V6), "cut_l4", UDP)


def udplite(version, coverage, data):
    """Ethernet frame with a right UDP-Lite checksum by scapy's sum over the RFC's pseudo-header."""
    size = 8 + len(data)
    header = struct.pack("!HHHH", 7, 8, coverage, 0)
    covered = (header + data)[:coverage or size]
    if version == 4:
        pseudo = bytes([192, 0, 2, 1, 198, 51, 100, 7, 0, 136]) + struct.pack("!H", size)
        base = ETHER / ipv4_header(proto=136)
    else:
        base = ETHER / IPv6(nh=136, **V6)
        pseudo = bytes(base)[22:54] + struct.pack("!II", size, 136)
    value = checksum(pseudo + covered) or 0xffff
    return bytes(base / Raw(header[:6] + struct.pack("!H", value) + data))


def a8_a9():
    for version, field in ((4, 40), (6, 60)):
        for coverage in (0, 8, 9, 15, 16, 8 + len(PAYLOAD)):
            frame = udplite(version, coverage, PAYLOAD)
            emit("csum_A8_udplite_coverage", ALL, spoil(frame, field), frame, "computed")
            emit("csum_A8_udplite_coverage", UDPLITE, set16(frame, field, 0), frame, "computed")
        for coverage in (1, 7, 9 + len(PAYLOAD), 0xffff):
            frame = udplite(version, 0, PAYLOAD)
            untouched("csum_A8_udplite_coverage_wrong_untouched",
                      set16(frame, field - 2, coverage), "malformed_l4", UDPLITE)
    for base, at in ((ETHER / ipv4_header(), 34), (ETHER / IPv6(**V6), 54)):
        for extra in (b"", b"abcd", bytes(range(100))):
            frame = bytes(base / SCTPPacket(sport=1, dport=2, tag=0xdeadbeef) /
                          SCTPChunkData(data=extra))
            crc = reference.crc32c(frame[at:at + 8] + bytes(4) + frame[at + 12:])
            assert frame[at + 8:at + 12] == struct.pack("<I", crc), "scapy's CRC32c differs"
            right("csum_A9_sctp_crc32c", frame, [(at + 8, 4)])
            emit("csum_A9_sctp_crc32c", SCTP, frame[:at + 8] + bytes(4) + frame[at + 12:], frame,
                 "computed")
    frame = bytes(ETHER / ipv4_header() / SCTPPacket(sport=1, dport=2, tag=3))
    padded = frame + b"\1\2\3\4\5"
    emit("csum_A9_sctp_bounded_by_L", SCTP, spoil(padded, 42, 4), padded, "computed")
    untouched("csum_A9_sctp_header_cut", ETHER / ipv4_header(proto=132) / Raw(b"12345678901"),
              "malformed_l4", SCTP)


def l4_sum6(frame, at, nh, field):
    """Lets scapy compute the sum of frame[at:] with the addresses of the IPv6 layer given."""
    value = in6_chksum(nh, IPv6(bytes(frame)[14:]), bytes(frame)[at:])
    return set16(frame, at + field, value)


def a11_to_a16():
    hop = IPv6ExtHdrHopByHop(options=[RouterAlert()])
    dest = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 12)])
    home = IPv6ExtHdrDestOpt(options=[HAO(hoa="2001:db8:5::5")])
    udp = UDPPacket(sport=1, dport=2) / Raw(PAYLOAD)
    for extensions in (hop, dest, hop / dest, hop / dest / dest, dest / hop.copy()):
        frame = bytes(ETHER / IPv6(**V6) / extensions / udp)
        at = len(frame) - len(PAYLOAD) - 8
        if extensions.nh == 0 or isinstance(extensions.payload, IPv6ExtHdrHopByHop):
            untouched("csum_A11_hop_by_hop_not_first", frame, "malformed_ext")
            continue
        right("csum_A11_options_headers", frame, [(at + 6, 2)])
    frame = bytes(ETHER / IPv6(**V6) / home / udp)
    right("csum_A11_home_address_is_the_source", frame, [(len(frame) - len(PAYLOAD) - 2, 2)])
    for layer, field in ((TCPPacket(sport=1, dport=2) / Raw(PAYLOAD), 16),
                         (ICMPv6EchoRequest(data=PAYLOAD), 2)):
        frame = bytes(ETHER / IPv6(**V6) / hop / dest / layer)
        at = len(frame) - len(bytes(layer))
        right("csum_A11_options_headers", frame, [(at + field, 2)])
    routing(udp)
    # A13
    frame = bytes(ETHER / IPv6(**V6) / IPv6ExtHdrFragment(nh=17, offset=0, m=0, id=1) / udp)
    frame = set16(frame, 68, in6_chksum(17, IPv6(**V6), frame[62:68] + b"\0\0" + frame[70:]))
    right("csum_A13_atomic_fragment_is_whole", frame, [(68, 2)])
    opaque()
    jumbo()
    limits()


def routing(udp):
    via = ["2001:db8:2::1", "2001:db8:3::1", "2001:db8:4::9"]

    def srh(left, last, addresses=via, tlv=b"", kind=4, size=None):
        body = b"".join(bytes(IPv6(dst=a))[24:40] for a in addresses) + tlv
        length = len(body) // 8 if size is None else size
        return bytes([17, length, kind, left, last, 0, 0, 0]) + body

    def frame(header, final):
        """UDP behind a raw routing header; final: what the pseudo-header has."""
        inner = bytes(UDPPacket(sport=1, dport=2) / Raw(PAYLOAD))
        sum_ = in6_chksum(17, IPv6(src=V6["src"], dst=final), inner)
        inner = inner[:6] + struct.pack("!H", sum_ or 0xffff) + inner[8:]
        return bytes(ETHER / IPv6(nh=43, **V6) / Raw(header + inner)), 14 + 40 + len(header) + 6

    def good(name, header, final):
        data, field = frame(header, final)
        right(name, data, [(field, 2)])

    def bad(header, reason, name="csum_A12_routing_header_lies_untouched"):
        untouched(name, frame(header, V6["dst"])[0], reason)

    name = "csum_A12_routing_final_destination"
    data = bytes(ETHER / IPv6(**V6) / IPv6ExtHdrRouting(addresses=via, segleft=3) / udp)
    right(name, data, [(len(data) - len(PAYLOAD) - 2, 2)])
    for left in (1, 2, 3):
        good(name, srh(left, 0, kind=0), via[-1])
    good(name, srh(1, 0, via[:1], kind=2), via[0])
    for left in (1, 2, 3):
        good(name, srh(left, 2), via[0])
    good(name, srh(1, 0, via[:1]), via[0])
    good(name, srh(3, 2, tlv=b"\5\6" + bytes(6)), via[0])
    name = "csum_A12_no_segments_left_header_destination"
    for kind in (0, 2, 3, 4, 99):
        good(name, srh(0, 2, kind=kind), V6["dst"])
    bad(srh(4, 0, kind=0), "malformed_ext")
    bad(srh(1, 0, kind=0, tlv=bytes(8)), "malformed_ext")
    bad(srh(2, 0, via[:1], kind=2), "malformed_ext")
    bad(srh(1, 0, via[:2], kind=2), "malformed_ext")
    bad(srh(1, 3), "malformed_ext")
    bad(srh(4, 2)[:3] + b"\4" + srh(4, 2)[4:], "malformed_ext")
    bad(srh(1, 2, size=200), "malformed_ext")
    bad(srh(1, 0, [], kind=0), "malformed_ext")
    for kind in (1, 3, 5, 253):
        bad(srh(1, 0, kind=kind), "opaque", "csum_A12_unknown_routing_type_untouched")


def opaque():
    name = "csum_A14_opaque_untouched"
    for proto in (50, 51):
        frame = bytes(ETHER / ipv4_header(proto=proto) / Raw(PAYLOAD * 2))
        emit(name, ALL, spoil(frame, 24), frame, "opaque")
    for proto in (50, 51, 59):
        untouched(name, ETHER / IPv6(nh=proto, **V6) / Raw(PAYLOAD * 2), "opaque")
        untouched(name, ETHER / IPv6(nh=0, **V6) / Raw(bytes([proto, 0, 1, 4, 0, 0, 0, 0]) +
                                                     PAYLOAD), "opaque")
    untouched(name, ETHER / IPv6(nh=59, **V6), "opaque")
    untouched("csum_A14_other_protocols_untouched", ETHER / ipv4_header(proto=47) / Raw(PAYLOAD),
              "unasked", ALL & ~IP4H)


def jumbo():
    size = 66000

    def build(option, plen=0, nh=17, udp_length=0):
        inner = struct.pack("!HHHH", 1, 2, udp_length, 0) + bytes(i & 255 for i in range(size - 16))
        head = bytes([nh, (len(option) + 2) // 8 - 1]) + option
        frame = bytes(ETHER / IPv6(nh=0, plen=plen, **V6)) + head + inner
        pseudo = frame[22:54] + struct.pack("!II", len(inner), 17)
        return set16(frame, 54 + 8 + 6, checksum(pseudo + inner) or 0xffff)

    option = bytes(Jumbo(jumboplen=size))
    good = build(option)
    emit("csum_A15_jumbogram", ALL, spoil(good, 68), good, "computed")
    name = "csum_A15_malformed_jumbo_untouched"
    untouched(name, good[:-1], "malformed_ext")
    untouched(name, build(option, plen=100), "malformed_ext")
    untouched(name, build(struct.pack("!BBI", 0xc2, 4, 65535)), "malformed_ext")
    untouched(name, build(struct.pack("!BBI", 0xc2, 4, 0xffffffff)), "malformed_ext")
    untouched(name, build(struct.pack("!BBI", 0xc2, 3, size)), "malformed_ext")
    untouched(name, build(struct.pack("!BBI", 0xc2, 5, size)), "malformed_ext")
    # at an offset that is not 4 n + 2, and twice
    untouched(name, build(b"\0" + option + b"\1\5" + bytes(5)), "malformed_ext")
    untouched(name, build(option + b"\1\0" + option), "malformed_ext")
    untouched(name, build(b"\1\4\0\0\0\0"), "malformed_ext")
    untouched(name, build(option, nh=44), "malformed_ext")


def limits():
    tail = bytes(UDPPacket(sport=1, dport=2) / Raw(PAYLOAD))
    value = in6_chksum(17, IPv6(**V6), tail)
    tail = set16(tail, 6, value)
    pad = bytes([60, 0, 1, 4, 0, 0, 0, 0])
    last = bytes([17, 0, 1, 4, 0, 0, 0, 0])
    for n in (1, 2, 31):
        frame = bytes(ETHER / IPv6(nh=60, **V6) / Raw(pad * n + last + tail))
        right("csum_A16_extension_chain", frame, [(54 + 8 * (n + 1) + 6, 2)])
    untouched("csum_A16_extension_chain_too_long",
              ETHER / IPv6(nh=60, **V6) / Raw(pad * 32 + last + tail), "ext_limit")
    untouched("csum_A16_extension_chain_too_long",
              ETHER / IPv6(nh=60, **V6) / Raw(pad * 180), "ext_limit")
    name = "csum_A16_extension_header_lies_untouched"
    for header in (b"\x11\xff\1\4\0\0\0\0", b"\x11\0\1\5\0\0\0\0", b"\x11\0\1\xff\0\0\0\0",
                   b"\x11\0\0\0\0\0\0\1", b"\x11\0\1\3\0\0\0\7"):
        untouched(name, ETHER / IPv6(nh=60, **V6) / Raw(header + tail), "malformed_ext")
    untouched(name, ETHER / IPv6(nh=60, **V6) / Raw(last[:7]), "malformed_ext")
    untouched(name, ETHER / IPv6(nh=60, **V6), "malformed_ext")
    untouched(name, ETHER / IPv6(nh=60, **V6) / Raw(last), "cut_l4")


def a17_a18():
    for pad in (b"\0" * 18, b"\xff" * 18, b"\1", bytes(range(200))):
        for layer, at, size in ((UDPPacket(sport=1, dport=2) / Raw(b"x"), 40, 2),
                                (TCPPacket(sport=1, dport=2), 50, 2),
                                (ICMPPacket(id=1) / Raw(b"xyz"), 36, 2)):
            right("csum_A17_padding_never_counts", bytes(ETHER / ipv4_header() / layer) + pad,
                  [(24, 2), (at, size)])
        right("csum_A17_padding_never_counts",
              bytes(ETHER / IPv6(**V6) / UDPPacket(sport=1, dport=2) / Raw(b"x")) + pad, [(60, 2)])
        untouched("csum_A17_padding_is_no_udp_header",
                  bytes(ETHER / ipv4_header(proto=17) / Raw(b"1234")) + pad, "malformed_l4", UDP)
    name = "csum_A18_ipv4_options"
    record = IPOption(b"\x07\x0b\x04" + bytes(8))
    for options in ([IPOption_NOP()] * 4, [record], [IPOption(b"\0" * 4)],
                    [IPOption(b"\x44\x0c\x05\0" + bytes(8))], [IPOption_NOP()] * 40):
        frame = bytes(ETHER / ipv4_header(options=options) / UDPPacket(sport=1, dport=2) /
                      Raw(PAYLOAD))
        at = 14 + (frame[14] & 15) * 4
        right(name, frame, [(24, 2), (at + 6, 2)])
    route = ["192.0.2.77", "203.0.113.5"]
    for kind in (IPOption_LSRR, IPOption_SSRR):
        for pointer, final in ((4, route[1]), (8, route[1]), (12, V4["dst"]), (16, V4["dst"])):
            options = [kind(routers=route, pointer=pointer), IPOption_NOP()]
            inner = UDPPacket(sport=1, dport=2) / Raw(PAYLOAD)
            want = bytes(IP(src=V4["src"], dst=final) / inner)[26:28]
            frame = bytearray(bytes(ETHER / ipv4_header(options=options) / inner))
            at = 14 + (frame[14] & 15) * 4
            frame[at + 6:at + 8] = want
            right("csum_A18_source_route_final_destination", frame, [(24, 2), (at + 6, 2)])
    for bad in (b"\x83\x0b\x03" + bytes(9), b"\x83\x0b\x05" + bytes(9), b"\x83\x0a\x04" + bytes(9),
                b"\x83\x02\x01\x01", b"\x83\x0b\x00" + bytes(9), b"\x83\x07\x04" + bytes(4) +
                b"\x89\x07\x04" + bytes(4) + b"\1\1", b"\x07\x00\1\1", b"\x07\x01\1\1",
                b"\x07\x05\1\1", b"\1\1\1\x07"):
        frame = bytearray(bytes(ETHER / ipv4_header(options=[IPOption_NOP()] * len(bad)) /
                                UDPPacket(sport=1, dport=2, chksum=0x1234) / Raw(PAYLOAD)))
        frame[34:34 + len(bad)] = bad
        frame[24:26] = b"\0\0"
        after = set16(frame, 24, checksum(bytes(frame[14:14 + (frame[14] & 15) * 4])))
        emit("csum_A18_option_lies_layer4_untouched", ALL, frame, after, "malformed_ext")


def a19():
    inner = ipv4_header() / UDPPacket(sport=1, dport=2) / Raw(PAYLOAD)
    for tags in ((0x8100,), (0x88a8,), (0x9100,), (0x8100, 0x8100), (0x88a8, 0x8100),
                 (0x9100, 0x8100), (0x88a8, 0x88a8, 0x8100), (0x8100, 0x8100, 0x8100)):
        for vlan in (0, 5):
            frame = bytes(inner)
            kind = 0x0800
            for tag in reversed(tags):
                frame = struct.pack("!HH", 0x6000 | vlan, kind) + frame
                kind = tag
            frame = bytes(ETHER)[:12] + struct.pack("!H", kind) + frame
            at = 14 + 4 * len(tags)
            right("csum_A19_vlan_tags", frame, [(at + 10, 2), (at + 26, 2)])
            for length in range(at):
                untouched("csum_A19_cut_in_a_tag_untouched", frame[:length], "cut_l2")
    frame = ETHER / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / inner
    untouched("csum_A19_four_tags_untouched", frame, "vlan_depth")
    six = ETHER / Dot1Q(vlan=3) / IPv6(**V6) / UDPPacket(sport=1, dport=2) / Raw(PAYLOAD)
    right("csum_A19_vlan_tags", six, [(64, 2)])
    untouched("csum_A19_llc_snap_untouched",
              Dot3(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / LLC() / SNAP() / inner,
              "not_ip")
    untouched("csum_A19_not_ip_untouched", ETHER / Raw(b""), "not_ip")
    untouched("csum_A19_not_ip_untouched", set16(bytes(ETHER / inner), 12, 0x0806), "not_ip")
    untouched("csum_A19_not_ip_untouched", b"", "cut_l2")


def a27():
    for size in (65535 - 28, 65535 - 29):
        frame = bytes(ETHER / ipv4_header() / UDPPacket(sport=65535, dport=65535) /
                      Raw(b"\xff" * size))
        emit("csum_A27_64k_of_ff", ALL, spoil(spoil(frame, 24), 40), frame, "computed")
    frame = bytes(ETHER / IPv6(**V6) / TCPPacket(sport=65535, dport=65535) /
                  Raw(b"\xff" * (65535 - 20)))
    emit("csum_A27_64k_of_ff", ALL, spoil(frame, 70), frame, "computed")


def random_frames(count):
    """Right frames, bent: bits flipped, cut, padded. The bytewise reference says what comes out."""
    rand = random.Random(4)
    pool = [bytes.fromhex(line.split()[2]) for line in lines if len(line) < 2000 and
            line.split()[4] not in ("cut_l2", "cut_l3", "malformed_l3", "not_ip")]
    for _ in range(count):
        frame = bytearray(rand.choice(pool))
        for _ in range(rand.choice((0, 1, 1, 2, 4))):
            if not frame:
                break
            at = rand.randrange(len(frame))
            kind = rand.randrange(4)
            if kind == 0:
                frame[at] ^= 1 << rand.randrange(8)
            elif kind == 1:
                frame[at] = rand.choice((0, 255, rand.randrange(256)))
            elif kind == 2:
                del frame[at:]
            else:
                frame += bytes(rand.randrange(256) for _ in range(rand.randrange(20)))
        flags = rand.choice((ALL, ALL, rand.randrange(128)))
        after, reason = reference.update(bytes(frame), flags)
        emit("csum_random", flags, frame, after, reason)


def main():
    basics()
    a1()
    a2()
    a3_to_a6()
    a7()
    a8_a9()
    a11_to_a16()
    a17_a18()
    a19()
    a27()
    random_frames(int(sys.argv[2]) if len(sys.argv) > 2 else 4000)
    with open(sys.argv[1], "w", encoding="ascii") as output:
        output.write("\n".join(sorted(lines, key=lambda line: line.split()[0])) + "\n")


main()
