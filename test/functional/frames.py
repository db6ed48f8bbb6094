#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Frames whose checksums are right, by scapy's reckoning, and the same frames with them broken.

usage: frames.py OUT.pcap             writes the broken ones, for the demo
       frames.py --none OUT.pcap      writes a file without a frame
"""

import logging
import struct
import sys

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

# pylint: disable=wrong-import-position,no-name-in-module
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter, RawPcapReader

LINKTYPE_ETHERNET = 1
MAC = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


def l3(version):
    if version == 4:
        return IP(src="192.0.2.1", dst="198.51.100.2")
    return IPv6(src="2001:db8::1", dst="2001:db8:1::2")


def l4(name, version):
    if name == "udp":
        return UDP(sport=40000, dport=50000)
    if name == "tcp":
        return TCP(sport=40000, dport=50000, seq=1, flags="PA")
    if version == 4:
        return ICMP(id=7, seq=1)
    return ICMPv6EchoRequest(id=7, seq=1)


def frame(name, version, tags=0, size=100):
    """A whole frame as bytes, all checksums right."""
    packet = Ether(**MAC)
    for tag in range(tags):
        packet /= Dot1Q(vlan=10 + tag)
    packet /= l3(version) / l4(name, version)
    # Sizes odd and even, so that the last byte's place counts.
    packet /= Raw(bytes(i & 255 for i in range(size)))
    return bytes(packet)


def field_offsets(data):
    """Where the checksums of a frame() stand: (IPv4 header's or None, layer 4's)."""
    at = 12
    while data[at : at + 2] == b"\x81\x00":
        at += 4
    ip = at + 2
    if data[ip] >> 4 == 4:
        proto, top, header = data[ip + 9], ip + (data[ip] & 15) * 4, ip + 10
    else:
        proto, top, header = data[ip + 6], ip + 40, None
        if proto == 0:  # hop by hop
            proto, top = data[top], top + 8 + data[top + 1] * 8
    return header, top + {1: 2, 6: 16, 17: 6, 58: 2}[proto]


def broken(data):
    """The same bytes with every checksum wrong, and not the 0 that means none."""
    out = bytearray(data)
    for at in field_offsets(data):
        if at is not None:
            wrong = struct.unpack_from("!H", out, at)[0] ^ 0x5A5A
            struct.pack_into("!H", out, at, wrong or 0x5A5B)
    return bytes(out)


def good_frames():
    """UDP, TCP and ICMP over IPv4 and IPv6, without and with VLAN tags, lengths odd and even."""
    out = []
    for version in (4, 6):
        for name in ("udp", "tcp", "icmp"):
            for tags in (0, 1, 2):
                for size in (18, 101, 1400):
                    out.append(frame(name, version, tags, size))
    out.append(
        bytes(Ether(**MAC) / l3(6) / IPv6ExtHdrHopByHop() / l4("udp", 6) / Raw(b"extension"))
    )
    return out


def arp():
    return bytes(Ether(**MAC) / ARP(psrc="192.0.2.1", pdst="192.0.2.2")) + bytes(18)


def write(path, frames):
    with PcapWriter(str(path), linktype=LINKTYPE_ETHERNET) as f:
        f.write_header(None)
        for data in frames:
            f.write(Raw(data))


def read(path):
    reader = RawPcapReader(str(path))
    try:
        return [data for data, _ in reader]
    finally:
        reader.close()


if __name__ == "__main__":
    write(sys.argv[-1], [] if "--none" in sys.argv else [broken(f) for f in good_frames()])
