# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""A gateway against Debian's kernel: a host behind millrace talks through an ESP tunnel with the kernel
itself, by ping and by TCP and UDP with sums over every byte, and keys change on the way.

    host a -- v0 [p0 millrace p1] v1 -- eth0 kernel (d0: the address inside)
"""

import hashlib
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from kernel import Kernel, Tap, require
from program import Millrace, wait_for

FRAME = 4096
PORT = 5999
OURS = {4: "203.0.113.1", 6: "2001:db8:113::1"}
THEIRS = {4: "203.0.113.2", 6: "2001:db8:113::2"}
LOCAL = {4: "198.18.1.0/24", 6: "2001:db8:1::/64"}
REMOTE = {4: "198.18.2.0/24", 6: "2001:db8:2::/64"}
INSIDE = {4: "198.18.2.2", 6: "2001:db8:2::2"}
BITS = {128: 20, 192: 28, 256: 36}

GUEST = """
    ip link set eth0 up
    ip addr add 203.0.113.2/24 dev eth0
    ip addr add 2001:db8:113::2/64 dev eth0 nodad
    ip link add d0 type dummy
    ip link set d0 up
    ip addr add 198.18.2.2/24 dev d0
    ip addr add 2001:db8:2::2/64 dev d0 nodad
    ip route add 198.18.1.0/24 via 203.0.113.1 src 198.18.2.2
    ip -6 route add 2001:db8:1::/64 via 2001:db8:113::1 src 2001:db8:2::2
"""


class Site:
    """Namespaces a and m, the gateway in m, the kernel behind a tap device in m."""

    def __init__(self, directory):
        self.names = {n: f"me{os.getpid()}{n}" for n in "am"}
        self.directory = directory
        self.guest = self.gateway = None
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        self.sh("m", f"ip link add v0 type veth peer name eth0 netns {self.names['a']}")
        self.sh("m", "ip tuntap add v1 mode tap")
        for link in ("v0", "v1"):
            self.sh("m", f"sysctl -qw net.ipv6.conf.{link}.disable_ipv6=1")
            self.sh("m", f"ip link set {link} mtu {1400 if link == 'v0' else 1500} up")
        self.sh("m", "ethtool -K v0 tx off")
        self.sh("a", "ethtool -K eth0 tx off")
        for line in ("ip link set lo up", "ip link set eth0 mtu 1400 up", "ip addr add 198.18.1.2/24 dev eth0",
                     "ip addr add 2001:db8:1::2/64 dev eth0 nodad", "ip route add default via 198.18.1.1",
                     "ip -6 route add default via 2001:db8:1::1"):
            self.sh("a", line)

    def sh(self, n, line, check=True):
        argv = ["ip", "netns", "exec", self.names[n], *line.split()]
        result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        if check:
            assert result.returncode == 0, f"{line}: {result.stdout}{result.stderr}"
        return result.stdout

    def start(self):
        vdevs = [f"net_af_packet{i},iface=v{i},framesz={FRAME},blocksz={FRAME * 2},framecnt=512"
                 for i in range(2)]
        commands = ["set fwd ip", "ip link set p0 mtu 1400", "ip addr add 198.18.1.1/24 dev p0", "ip addr add 2001:db8:1::1/64 dev p0",
                    "ip addr add 203.0.113.1/24 dev p1", "ip addr add 2001:db8:113::1/64 dev p1",
                    "ip route add 198.18.2.0/24 via 203.0.113.2",
                    "ip -6 route add 2001:db8:2::/64 via 2001:db8:113::2", "start"]
        self.gateway = Millrace(
            self.directory, vdevs, [f"--mbuf-size={FRAME + 384}", "--total-num-mbufs=4096", "-i"],
            commands=commands, wrapper=["ip", "netns", "exec", self.names["m"]])
        self.gateway.wait_output("start|forward")
        self.gateway.wait_ready()
        self.guest.run(GUEST)

    def close(self):
        if self.gateway is not None:
            self.gateway.kill()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def site():
    require()
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces")
    with tempfile.TemporaryDirectory(prefix="mr-") as directory:
        os.chmod(directory, 0o755)
        s = Site(pathlib.Path(directory))
        try:
            with Kernel([Tap("v1", s.names["m"])]) as s.guest:
                s.start()
                yield s
                s.gateway.stop()
        finally:
            s.close()


class Tunnel:
    """Both ends' SAs and policies. Keys change by rekey()."""

    def __init__(self, site, outer, bits=128, esn=False):
        self.site, self.outer, self.spi = site, outer, 0x1000
        self.words = "flag af-unspec" + (" flag esn" if esn else "")
        self.bits = bits
        ends, back = f"src {OURS[outer]} dst {THEIRS[outer]}", f"src {THEIRS[outer]} dst {OURS[outer]}"
        for inner in (4, 6):
            here, there = f"src {LOCAL[inner]} dst {REMOTE[inner]}", f"src {REMOTE[inner]} dst {LOCAL[inner]}"
            site.gateway.ip(f"xfrm policy add {here} dir out tmpl {ends} proto esp reqid 5 mode tunnel")
            site.gateway.ip(f"xfrm policy add {there} dir fwd tmpl {back} proto esp reqid 5 mode tunnel")
            site.guest.run(f"""
                ip xfrm policy add {there} dir out tmpl {back} proto esp reqid 5 mode tunnel
                ip xfrm policy add {here} dir in tmpl {ends} proto esp reqid 5 mode tunnel""")
        self.rekey()

    def state(self, spi, outbound):
        src, dst = (OURS, THEIRS) if outbound else (THEIRS, OURS)
        return f"src {src[self.outer]} dst {dst[self.outer]} proto esp spi {spi}"

    def rekey(self):
        """Receivers first. The kernel takes the newest SA by the second it was added in, so that the
        old ones have to go before it is sure to use a new one."""
        new = self.spi + 2
        rest = {spi: f"mode tunnel reqid 5 replay-window 64 {self.words} aead rfc4106(gcm(aes)) "
                     f"0x{random.Random(spi).randbytes(BITS[self.bits]).hex()} 128" for spi in (new, new + 1)}
        guest = {spi: text.replace("rfc4106(gcm(aes))", "'rfc4106(gcm(aes))'") for spi, text in rest.items()}
        out, back = self.state(new, True), self.state(new + 1, False)
        self.site.gateway.ip(f"xfrm state add {back} {rest[new + 1]}")
        self.site.guest.run(f"""
            ip xfrm state add {out} {guest[new]}
            ip xfrm state add {back} {guest[new + 1]}""")
        self.site.gateway.ip(f"xfrm state add {out} {rest[new]}")
        if self.spi > 0x1000:
            self.site.gateway.ip(f"xfrm state delete {self.state(self.spi, True)}")
            self.site.guest.run(f"ip xfrm state delete {self.state(self.spi + 1, False)}")
            time.sleep(0.1)  # what is on its way
            self.site.guest.run(f"ip xfrm state delete {self.state(self.spi, True)}")
            self.site.gateway.ip(f"xfrm state delete {self.state(self.spi + 1, False)}")
        self.spi = new

    def close(self):
        for where in (self.site.gateway.ip, lambda line: self.site.guest.run("ip " + line)):
            where("xfrm state flush")
            where("xfrm policy flush")


@pytest.fixture
def tunnel(site):
    made = []

    def make(*args, **how):
        made.append(Tunnel(site, *args, **how))
        return made[-1]

    yield make
    for t in made:
        t.close()


@pytest.mark.parametrize("outer,bits,esn", [(4, 128, False), (6, 256, False), (4, 192, True), (6, 128, True)])
def test_ping(site, tunnel, outer, bits, esn):
    tunnel(outer, bits, esn)
    for inner in (4, 6):
        wait_for(lambda: "1 received" in site.sh("a", f"ping -c 1 -W 1 {INSIDE[inner]}", check=False),  # noqa: B023
                 "a first ping")
        for size in (1, 57, 1000, 1300):
            out = site.sh("a", f"ping -c 5 -i 0.02 -W 2 -s {size} {INSIDE[inner]}")
            assert " 0% packet loss" in out
        # In fragments, which the host makes and the kernel puts together. (The first answer may be too
        # long for the host's link: then the kernel is told so, through the tunnel.)
        site.sh("a", f"ping -c 1 -W 1 -s 3000 {INSIDE[inner]}", check=False)
        assert " 0% packet loss" in site.sh("a", f"ping -c 3 -i 0.05 -W 2 -s 3000 {INSIDE[inner]}")
    shown = site.guest.run("ip -s xfrm state list; cat /proc/net/xfrm_stat").stdout
    for line in shown.splitlines():
        name, _, value = line.partition(" ")
        # No SA is there yet for what IPv6 sends by itself while the tunnel is made.
        if name.startswith("Xfrm") and name not in ("XfrmOutNoStates", "XfrmAcquireError"):
            assert value.strip() == "0", shown
    drops = site.gateway.ip("-s xfrm state list").stdout
    assert "replay 0 failed 0" in drops


SEND_TCP = """
import socket, sys
data = sys.stdin.buffer.read()
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) as s:
    s.sendall(data)
"""


def test_tcp_through_rekeys(site, tunnel):
    t = tunnel(4)
    data = random.Random(3).randbytes(3 << 20)
    wait_for(lambda: "1 received" in site.sh("a", f"ping -c 1 -W 1 {INSIDE[4]}", check=False), "a first ping")
    got = []
    site.guest.run(f"(nc -l -p {PORT} >/tmp/got) >/dev/null 2>&1 &")
    time.sleep(0.5)
    sender = threading.Thread(target=lambda: got.append(subprocess.run(
        ["ip", "netns", "exec", site.names["a"], sys.executable, "-c", SEND_TCP, INSIDE[4], str(PORT)],
        input=data, capture_output=True, timeout=120, check=False)))
    sender.start()
    rekeys = 0
    while sender.is_alive() or rekeys < 3:
        t.rekey()
        rekeys += 1
    sender.join()
    assert got[0].returncode == 0, got[0].stderr
    wait_for(lambda: site.guest.run("wc -c </tmp/got").stdout.strip() == str(len(data)), "all of it", 30)
    assert site.guest.run("sha256sum </tmp/got").stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert site.gateway.ip("-s xfrm state list").stdout.count("failed 0") == 2


SEND_UDP = """
import socket, sys, time
data = sys.stdin.buffer.read()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for at in range(0, len(data), 1000):
        s.sendto(data[at : at + 1000], (sys.argv[1], int(sys.argv[2])))
        time.sleep(0.004)
"""


def udp_counts(site):
    """(arrived, with a wrong sum): for a port that nobody has, the kernel sums first and counts then."""
    names, values = [line.split() for line in site.guest.run("grep ^Udp: /proc/net/snmp").stdout.splitlines()]
    count = dict(zip(names, values))
    return int(count["NoPorts"]), int(count["InCsumErrors"])


def test_udp_through_rekeys(site, tunnel):
    """None is lost: the old SAs stay until what was sent by them has come."""
    t = tunnel(4)
    datagrams = 800
    wait_for(lambda: "1 received" in site.sh("a", f"ping -c 1 -W 1 {INSIDE[4]}", check=False), "a first ping")
    before = udp_counts(site)[0]
    with subprocess.Popen(["ip", "netns", "exec", site.names["a"], sys.executable, "-c", SEND_UDP, INSIDE[4],
                           str(PORT)], stdin=subprocess.PIPE) as sender:
        sender.stdin.write(random.Random(4).randbytes(datagrams * 1000))
        sender.stdin.close()
        rekeys = 0
        while sender.poll() is None:
            t.rekey()
            rekeys += 1
    assert sender.returncode == 0 and rekeys > 0
    wait_for(lambda: udp_counts(site)[0] - before >= datagrams, "all of it", 10)
    assert udp_counts(site) == (before + datagrams, 0)


def test_what_comes_in_clear_is_dropped_by_both(site, tunnel):
    tunnel(4)
    wait_for(lambda: "1 received" in site.sh("a", f"ping -c 1 -W 1 {INSIDE[4]}", check=False), "a first ping")
    site.guest.run("ip xfrm policy flush")  # the kernel answers in clear now
    out = site.sh("a", f"ping -c 3 -i 0.1 -W 1 {INSIDE[4]}", check=False)
    assert "100% packet loss" in out
