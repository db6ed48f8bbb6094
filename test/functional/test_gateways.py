# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Two gateways back to back: hosts with the kernel's own stack, an ESP tunnel between two millraces, and
a wire between them that loses and reorders. Every byte must arrive, through rekeys as well."""

import os
import pathlib
import subprocess
import sys
import threading

import pytest
from conftest import drops, wait_for
from program import on_one_cpu
from test_ip import may_make_namespaces

HERE = pathlib.Path(__file__).parent
KEY = "0x" + "5a" * 20
FRAME = 8192


class Wires:
    """a --v0 [p0 gateway 1 p1] v1 ... v2 [p0 gateway 2 p1] v3-- b; the dots are wire.py."""

    def __init__(self):
        self.names = {n: f"mg{os.getpid()}{n}" for n in "abm"}
        self.processes = []
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for i in range(4):
            peer = {0: "eth0 netns " + self.names["a"], 3: "eth0 netns " + self.names["b"]}.get(i, f"w{i}")
            self.sh("m", f"ip link add v{i} type veth peer name {peer}")
            for link in [f"v{i}"] + ([f"w{i}"] if i in (1, 2) else []):
                self.sh("m", f"sysctl -qw net.ipv6.conf.{link}.disable_ipv6=1")
                self.sh("m", f"ethtool -K {link} tx off")
                self.sh("m", f"ip link set {link} up")
        for n, i in (("a", 1), ("b", 2)):
            self.sh(n, "ip link set lo up")
            self.sh(n, "ip link set eth0 mtu 1400 up")
            self.sh(n, "ethtool -K eth0 tx off")
            self.sh(n, f"ip addr add 198.18.{i}.2/24 dev eth0")
            self.sh(n, f"ip route add default via 198.18.{i}.1")
            self.sh(n, f"ip addr add 2001:db8:{i}::2/64 dev eth0 nodad")
            self.sh(n, f"ip -6 route add default via 2001:db8:{i}::1")

    def argv(self, n, *words):
        return ["ip", "netns", "exec", self.names[n], *words]

    def sh(self, n, line, check=True):
        result = subprocess.run(
            self.argv(n, *line.split()), capture_output=True, text=True, timeout=60, check=False)
        if check:
            assert result.returncode == 0, f"{n}: {line}: {result.stdout}{result.stderr}"
        return result.stdout

    def start(self, n, script, *args, **how):
        process = subprocess.Popen(
            self.argv(n, sys.executable, str(HERE / script), *args), stdout=subprocess.PIPE, text=True, **how)
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


class Gateway:
    """One of the two; `side` 1 has host a behind it."""

    def __init__(self, start, wires, side):
        self.side, other = side, 3 - side
        first = 0 if side == 1 else 2
        vdevs = [f"net_af_packet{i},iface=v{first + i},framesz={FRAME},blocksz={FRAME * 2},framecnt=512"
                 for i in range(2)]
        inside, outside = ("p0", "p1") if side == 1 else ("p1", "p0")
        self.ours, self.theirs = f"203.0.113.{side}", f"203.0.113.{other}"
        self.nets = [(f"198.18.{side}.0/24", f"198.18.{other}.0/24"),
                     (f"2001:db8:{side}::/64", f"2001:db8:{other}::/64")]
        commands = ["set fwd ip", f"ip addr add 198.18.{side}.1/24 dev {inside}",
                    f"ip addr add 2001:db8:{side}::1/64 dev {inside}",
                    f"ip addr add {self.ours}/24 dev {outside}",
                    f"ip route add 198.18.{other}.0/24 via {self.theirs}",
                    f"ip -6 route add 2001:db8:{other}::/64 dev {outside}"]
        for here, there in self.nets:
            out = f"tmpl src {self.ours} dst {self.theirs} proto esp reqid 9 mode tunnel"
            back = f"tmpl src {self.theirs} dst {self.ours} proto esp reqid 9 mode tunnel"
            commands += [f"ip xfrm policy add src {here} dst {there} dir out {out}",
                         f"ip xfrm policy add src {there} dst {here} dir fwd {back}"]
        self.program = start(
            vdevs, [f"--mbuf-size={FRAME + 384}", "--total-num-mbufs=4096", "-i"],
            commands=commands + ["start"], lcores=on_one_cpu(side),
            wrapper=["ip", "netns", "exec", wires.names["m"]])
        self.program.wait_output("start|forward")
        self.program.wait_ready()

    def assert_by_nic(self):
        """Where its ports are NICs that do ESP (program.TEST_NIC), that was their work."""
        for port, counters in self.program.nic_stats().items():
            if port == str(2 - self.side):
                assert counters["tx_protected"] > 0 and counters["rx_decrypted"] > 0, counters

    def state(self, verb, spi, out):
        src, dst = (self.ours, self.theirs) if out else (self.theirs, self.ours)
        rest = f" mode tunnel reqid 9 replay-window 128 flag af-unspec aead " \
               f"rfc4106(gcm(aes)) {KEY[:-8]}{spi:08x} 128"
        self.program.ip(f"xfrm state {verb} src {src} dst {dst} proto esp spi {spi}" +
                        (rest if verb == "add" else ""))


class Pair:
    def __init__(self, start, wires):
        self.gateways = [Gateway(start, wires, side) for side in (1, 2)]
        self.spi = 0x1000
        self.rekey()

    def rekey(self):
        """As IKE does: who receives first, then who sends; the old ones stay for what is on its way."""
        new = self.spi + 2
        for spi, sender in ((new, 0), (new + 1, 1)):
            self.gateways[1 - sender].state("add", spi, out=False)
            self.gateways[sender].state("add", spi, out=True)
        if self.spi > 0x1002:
            for spi, sender in ((self.spi - 2, 0), (self.spi - 1, 1)):
                self.gateways[sender].state("delete", spi, out=True)
                self.gateways[1 - sender].state("delete", spi, out=False)
        self.spi = new


@pytest.fixture
def wires():
    if not may_make_namespaces():
        pytest.skip("needs root, network namespaces, ping, iperf3 and ethtool")
    w = Wires()
    yield w
    w.close()


def transfer(wires, how, target, megabytes):
    """Sends bytes that only their sum tells apart from others; returns both ends' reports."""
    server = wires.start("b", "transfer.py", "receive", how)
    assert server.stdout.readline().strip() == "ready"
    client = wires.start("a", "transfer.py", "send", how, target, str(megabytes))
    sent = client.communicate(timeout=60)[0].split()
    got = server.communicate(timeout=60)[0].split()
    return sent, got


@pytest.mark.parametrize("loss,disorder", [(0, 0), (0.01, 0.02)])
def test_every_byte_arrives(millrace, wires, loss, disorder):
    wires.start("m", "wire.py", "w1", "w2", str(loss), str(disorder))
    pair = Pair(millrace, wires)
    wait_for(lambda: "1 received" in wires.sh("a", "ping -c 1 -W 1 198.18.2.2", check=False), "a first ping")
    done = threading.Event()
    rekeys = []

    def keep_rekeying():
        while not done.wait(0.1):
            pair.rekey()
            rekeys.append(pair.spi)

    thread = threading.Thread(target=keep_rekeying)
    thread.start()
    try:
        for target in ("198.18.2.2", "2001:db8:2::2"):
            sent, got = transfer(wires, "tcp", target, 4)
            assert sent == got, (sent, got)
        sent, got = transfer(wires, "udp", "198.18.2.2", 1)
    finally:
        done.set()
        thread.join()
    assert len(rekeys) > 1
    if loss == 0:
        assert sent == got, "datagrams were lost in rekeys"
    else:
        assert 0.9 < int(got[0]) / int(sent[0]) <= 1
    for gateway in pair.gateways:
        gateway.program.stop()
        assert drops(gateway.program.output).get("esp_icv", 0) == 0
        gateway.assert_by_nic()


def test_nothing_is_in_clear_on_the_wire(millrace, wires):
    log = wires.start("m", "wire.py", "w1", "w2", "0", "0", "protocols")
    pair = Pair(millrace, wires)
    wait_for(lambda: "1 received" in wires.sh("a", "ping -c 1 -W 1 198.18.2.2", check=False), "a first ping")
    wires.sh("a", "ping -c 20 -i 0.02 -s 700 198.18.2.2")
    wires.sh("a", "ping -c 20 -i 0.02 -s 700 2001:db8:2::2")
    log.terminate()
    protocols = log.communicate(timeout=20)[0].split()
    assert set(protocols) <= {"arp", "esp", "icmp6-link"}, protocols
    assert "esp" in protocols
    for gateway in pair.gateways:
        gateway.program.stop()
        gateway.assert_by_nic()
