# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The kernel that other tests compare with boots, forwards, and counts."""

import os
import subprocess

import frames
import pytest
from kernel import Kernel, Tap, require
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether


@pytest.fixture(scope="module")
def guest():
    require()
    with Kernel() as kernel:
        yield kernel


def test_run(guest):
    result = guest.run("cat; echo err >&2; exit 3", check=False, input="in")
    assert (result.returncode, result.stdout, result.stderr) == (3, "in", "err\n")
    assert guest.run("true").stdout == ""
    with pytest.raises(AssertionError, match="does not exist"):
        guest.run("ip link show nothing")


def test_forward(guest):
    guest.run("""
        echo 1 >/proc/sys/net/ipv4/ip_forward
        ip link set eth0 up
        ip link set eth1 up
        ip addr add 192.0.2.254/24 dev eth0
        ip addr add 198.51.100.254/24 dev eth1
        ip neigh add 198.51.100.2 lladdr 02:00:00:00:00:02 dev eth1
        tc qdisc add dev eth0 clsact
        tc filter add dev eth0 ingress protocol ip matchall action csum ip4h udp
    """)
    good = bytearray(frames.frame("udp", 4))
    good[:6] = bytes.fromhex("020000000100")
    guest.send(0, [frames.broken(good)])
    [left] = guest.receive(1, 1, 10)
    packet = Ether(left)
    assert (packet.src, packet.dst, packet[IP].ttl) == ("02:00:00:00:01:01", "02:00:00:00:00:02", 63)
    assert left[34:] == good[34:], "UDP's checksum is mended"
    [action] = guest.json("tc -j -s actions list action csum")[1]["actions"]
    assert action["stats"]["packets"] == 1


def test_ipsec(guest):
    """The modules for what the ESP tests need are there."""
    guest.run("""
        add="ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp"
        $add spi 1 mode tunnel aead "rfc4106(gcm(aes))" 0x$(printf %040d 1) 128
        $add spi 2 mode tunnel enc "cbc(aes)" 0x$(printf %032d 1) auth-trunc "hmac(sha256)" 0x$(printf %064d 1) 128
        $add spi 3 mode tunnel enc "rfc3686(ctr(aes))" 0x$(printf %040d 1) auth-trunc "hmac(sha1)" 0x$(printf %040d 1) 96
        $add spi 4 mode tunnel aead "rfc7539esp(chacha20,poly1305)" 0x$(printf %072d 1) 128
        ip xfrm state add src 2001:db8::1 dst 2001:db8::2 proto esp spi 5 mode transport \\
            aead "rfc4106(gcm(aes))" 0x$(printf %040d 1) 128 flag esn replay-window 64
    """)
    assert guest.run("ip xfrm state list").stdout.count("proto esp") == 5


def test_tap():
    require()
    name = f"mrk{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], check=False).returncode != 0:
        pytest.skip("no network namespace can be made: not root, or forbidden")
    inside = ["ip", "netns", "exec", name]
    try:
        with Kernel([Tap("tap0", name)]) as kernel:
            kernel.run("ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up")
            for line in ("ip addr add 192.0.2.2/24 dev tap0", "ip link set tap0 up"):
                subprocess.run(inside + line.split(), check=True)
            kernel.run("ping -c 1 -w 10 192.0.2.2")
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
