# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Checksums left to a port that computes them: net_tap, whose driver does it by code of its own, in a
namespace where its frames come out of an interface of the kernel's. Whoever computes, scapy and tshark
find the same bytes right."""

import os
import re
import subprocess

import frames
import pytest
from conftest import tshark_statuses

CAPTURE = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    data, (_, _, kind, _, _) = s.recvfrom(65535)
    if kind != socket.PACKET_OUTGOING:
        print(data.hex(), flush=True)
"""


@pytest.fixture
def namespace():
    name = f"mr{os.getpid()}t"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode != 0 or not os.path.exists("/dev/net/tun"):
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        pytest.skip("needs root, network namespaces and /dev/net/tun")
    yield ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "del", name], check=True)


class Run:
    """Frames from a file through `csum` on ingress, out of net_tap; what the kernel got, and counters."""

    def __init__(self, millrace, directory, namespace, sent, options):
        path = directory / "in.pcap"
        frames.write(path, sent)
        program = millrace(
            [f"net_pcap0,rx_pcap={path},tx_pcap={directory}/back.pcap", "net_tap0,iface=tap0"],
            ["-i", *options], stdin=subprocess.PIPE, wrapper=namespace).wait_ready()
        program.tc("qdisc add dev p0 clsact")
        program.tc("filter add dev p0 ingress matchall action csum ip4h and tcp and udp and icmp")
        with subprocess.Popen(namespace + ["/usr/bin/python3", "-c", CAPTURE, "tap0"],
                              stdout=subprocess.PIPE, text=True) as capture:
            try:
                assert capture.stdout.readline() == "ready\n"
                program.process.stdin.write(b"start\n")
                program.process.stdin.flush()
                self.got = [bytes.fromhex(capture.stdout.readline()) for _ in sent]
            finally:
                capture.kill()
        program.process.stdin.write(b"show csum\nquit\n")
        program.process.stdin.close()
        self.output = program.wait()

    def count(self, reason):
        found = re.search(rf"^ +{reason} +(\d+)", self.output, re.M)
        return int(found.group(1)) if found else 0


def untagged():
    """The kernel takes tags off before it shows a frame."""
    return [f for f in frames.good_frames() if f[12:14] != b"\x81\x00"]


@pytest.mark.parametrize("how", ["auto", "off"])
def test_both_ways_give_the_same_bytes(millrace, directory, namespace, how):
    good = untagged()
    run = Run(millrace, directory, namespace, [frames.broken(f) for f in good],
              [f"--csum-offload={how}"])
    assert run.got == good  # scapy's frames, byte for byte and in order
    # What the driver offers was left to it, and only then.
    assert (run.count("left") > len(good) / 2) == (how == "auto")
    assert run.count("left") + run.count("computed") == len(good)
    frames.write(directory / "got.pcap", run.got)
    for status in tshark_statuses(directory / "got.pcap"):
        assert status and all(set(s) == {"1"} for s in status.values())
