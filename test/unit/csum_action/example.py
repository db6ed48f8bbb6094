# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
"""Sends frames with wrong sums through the example and compares with scapy's.

usage: example.py CSUM_EXAMPLE
"""

import os
import subprocess
import sys
import tempfile

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import rdpcap, wrpcap

right = [bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / layer3 / layer4 /
               Raw(bytes(range(n))))
         for layer3 in (IP(src="192.0.2.1", dst="198.51.100.7"),
                        IPv6(src="2001:db8::1", dst="2001:db8::2"))
         for layer4 in (UDP(sport=1, dport=2), TCP(sport=1, dport=2))
         for n in range(18, 60)]


def spoil(frame):
    """The same with other values in its checksum fields."""
    version = frame[14] >> 4
    start = 34 if version == 4 else 54
    fields = [start + (6 if frame[23 if version == 4 else 20] == 17 else 16)]
    fields += [24] if version == 4 else []
    out = bytearray(frame)
    for at in fields:
        out[at] ^= 0x55
        out[at + 1] ^= 0xaa
    return bytes(out)


with tempfile.TemporaryDirectory() as directory:
    sent, got = os.path.join(directory, "in.pcap"), os.path.join(directory, "out.pcap")
    wrpcap(sent, [Ether(spoil(frame)) for frame in right])
    result = subprocess.run(
        [sys.argv[1], "--no-huge", "-m", "128", "--no-shconf", "--no-pci", "--no-telemetry",
         "--log-level=error", "--file-prefix=mr-example-%d" % os.getpid(), "--lcores=0@0",
         "--vdev=net_pcap0,rx_pcap=%s,tx_pcap=%s" % (sent, got)],
        stdout=subprocess.PIPE, timeout=60, check=True)
    assert [bytes(frame) for frame in rdpcap(got)] == right, "other frames came out"
    assert b"computed %d\n" % len(right) in result.stdout, result.stdout
