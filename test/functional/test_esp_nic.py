# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""ESP by NICs that do it: who gets what (--ipsec-offload, `offload dev`), and what becomes of it when ports
go down, are reset or pulled out, or lose what they were told. Never a byte in clear on the outer wire."""

import contextlib
import re
import subprocess

import nic
import pytest
from conftest import drops, wait_for
from program import MILLRACE_NIC, TEST_NIC
from test_gateways import Pair, wires
from test_ipsec import ALGORITHM, OUT, association, forwarded, plain, start, to_ip, to_port, tunnel

__all__ = ["wires"]

pytestmark = pytest.mark.skipif(not MILLRACE_NIC.exists() or TEST_NIC, reason="millrace-nic is not built")

SECRET = b"to be kept secret"
ENDS = "src 198.18.0.1 dst 198.18.0.2"
KINDS = pytest.mark.parametrize("kind", ["inline_crypto", "inline_protocol"])
WORDS = {"inline_crypto": "inline-crypto", "inline_protocol": "inline-protocol"}


@pytest.fixture
def nic_job(millrace, directory):
    return nic.NicJob(millrace, directory)


def send(nic_job, commands, options=(), n=5, **how):
    sent = [plain(4, SECRET + bytes([i]) * i) for i in range(n)]
    back, out, output = nic_job.run(
        [to_port(0, p) for p in sent], commands, options=["--idle-exit=300", *options], marker=SECRET, **how)
    assert back == []
    assert nic_job.stats["1"]["plaintext"] == 0
    return sent, out, output


def assert_tunnelled(sent, out):
    peer = association(OUT, 4)
    assert [bytes(peer.decrypt(to_ip(data))) for data in out] == [forwarded(p) for p in sent]


@KINDS
def test_auto_takes_the_best_and_says_so(nic_job, kind):
    commands = start(tunnel(4, 4)) + ["show ipsec sa", "show ipsec offload"]
    sent, out, output = send(nic_job, commands, nic=f"0=none+mdata,1={kind}+mdata")
    assert_tunnelled(sent, out)
    nic.assert_quiet(nic_job.stats)
    assert nic_job.stats["1"]["tx_protected"] == 5
    assert len(re.findall(rf"0x0000[12]001 .*  {WORDS[kind]} p1  packets", output)) == 2, output
    assert re.search(r"sessions  2  dying 0  stuck 0", output), output
    assert re.search(rf"^  p1    {WORDS[kind]} out in$", output, re.M), output
    assert re.search(r"^  p0    nothing that an SA here could use$", output, re.M), output


def test_explicit_gives_what_is_asked_for_alone(nic_job):
    lines = tunnel(4, 4)
    lines[0] += " offload dev p1 dir out"
    sent, out, output = send(
        nic_job, start(lines) + ["show ipsec sa"], ["--ipsec-offload=explicit"], nic="0=all+mdata,1=all+mdata")
    assert_tunnelled(sent, out)
    assert "0x00001001  198.18.0.1 -> 198.18.0.2  inline-crypto p1" in output
    assert re.search(r"0x00002001 .*: the SA asks for no device", output), output
    nic.assert_quiet(nic_job.stats)
    assert (nic_job.stats["1"]["tx_protected"], nic_job.stats["1"]["created"]) == (5, 1)


def test_off_asks_for_nothing(nic_job):
    commands = start(tunnel(4, 4)) + ["show ipsec sa", "show ipsec offload"]
    sent, out, output = send(nic_job, commands, ["--ipsec-offload=off"], nic="0=all+mdata,1=all+mdata")
    assert_tunnelled(sent, out)
    assert nic_job.stats["1"]["created"] == 0
    assert "offload is turned off" in output and "not asked (--ipsec-offload=off)" in output


def test_a_port_that_cannot_is_named(nic_job):
    lines = tunnel(4, 4)
    sent, out, output = send(nic_job, start(lines) + ["show ipsec sa"], nic="0=none,1=none")
    assert_tunnelled(sent, out)
    assert len(re.findall(r"0x0000[12]001 .*: p1: its driver has no ", output)) == 2, output


INLINE_PROTOCOL = 2  # RTE_SECURITY_ACTION_TYPE_INLINE_PROTOCOL
RAW = """
import socket, struct, sys
index, flags = int(sys.argv[1]), int(sys.argv[2])
key = bytes(range(16)) + b"salt"
addr = lambda a: socket.inet_aton(a) + bytes(12)
sel = bytes(32) + bytes(8) + struct.pack("=HBBBxxxiI", 2, 0, 0, 0, 0, 0)
lft = struct.pack("=4Q4Q", *[2**64 - 1] * 4, *[0] * 4)
info = (sel + addr("198.18.0.2") + struct.pack("!IBxxx", 0x1001, 50) + addr("198.18.0.1") + lft + bytes(32) +
        bytes(12) + struct.pack("=IIHBBB7x", 0, 1, 2, 1, 64, 0))
attr = lambda t, d: struct.pack("=HH", 4 + len(d), t) + d + bytes(-len(d) % 4)
aead = b"rfc4106(gcm(aes))".ljust(64, b"\\0") + struct.pack("=II", 160, 128) + key
body = info + attr(18, aead) + attr(28, struct.pack("=iBxxx", index, flags))
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 6)
s.setsockopt(270, 11, 1)  # extended acks
s.sendall(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)
answer = s.recv(65536)
print(struct.unpack_from("=i", answer, 16)[0], answer[36:].decode(errors="replace"))
s.sendall(struct.pack("=IHHII", 16 + 40, 18, 0x305, 2, 0) + bytes(40))
answer = s.recv(65536)
at = answer.find(struct.pack("=HHi", 13, 28, index))
if at < 0:
    at = answer.find(struct.pack("=HHi", 12, 28, index))
print(answer[at + 8] if at >= 0 else None)
"""


def test_the_packet_flag_asks_for_inline_protocol(millrace):
    """`offload packet` of newer iproute2, as a message; dumps have it as Linux's."""
    program = nic.start(millrace, ["net_ring0", "net_ring1"], ["-i"], nic="0=all+mdata,1=all+mdata",
                        commands=["set fwd ip", "ip addr add 198.18.0.1/24 dev p1"]).wait_ready()
    assert program.run("python3", "-c", RAW, "2", "5").stdout.split()[0] == "0"
    assert [s["action"] for s in nic.sessions(program, 1)] == [INLINE_PROTOCOL]
    assert program.run("python3", "-c", RAW, "2", "4").stdout.split()[-1] == "4"
    shown = program.ip("-d xfrm state list").stdout
    assert "dev p1 dir out" in shown, shown
    rows = program.telemetry("/millrace/ipsec/sa").values()
    assert [(row["spi"], row["backend"], row["why_not"]) for row in rows] == [("0x00001001", "inline-protocol p1", "")]
    assert program.telemetry("/millrace/ipsec/sa,1") == {}
    assert program.telemetry("/millrace/ipsec/sa,x") is None
    assert program.telemetry("/millrace/ipsec")["sessions"] == 1
    program.ip("xfrm state flush")
    assert program.run("python3", "-c", RAW, "77", "4").stdout.startswith("-19 ")
    nic.caps(program, 1, "inline_crypto")
    refused = program.run("python3", "-c", RAW, "2", "4").stdout
    assert refused.startswith("-95 ") and "p1" in refused and "0x00001001" in refused, refused
    nic.caps(program, 1, "inline_protocol")
    assert program.run("python3", "-c", RAW, "2", "6").stdout.startswith("0 ")
    # The other has not ended yet.
    assert sorted(s["out"] for s in nic.sessions(program, 1))[0] == 0


def test_io_mode_lets_nothing_out_that_a_nic_opened(nic_job):
    """An SA was made in mode ip; then ports are joined as wires."""
    lines = [line for line in start(tunnel(4, 4))[:-1] if not line.startswith("set fwd")]
    arriving = [to_port(1, association(0x2001, 4).encrypt(plain(4, SECRET, back=True), seq_num=n + 1))
                for n in range(5)]
    back, out, output = nic_job.run(
        [], ["set fwd ip", *lines, "set fwd io", "start"], sent1=arriving, marker=SECRET,
        nic="0=all+mdata,1=all+mdata")
    assert (back, out) == ([], [])
    assert nic_job.stats["1"]["rx_decrypted"] == 5
    assert drops(output)["esp_unseen"] == 5


# --- two gateways, traffic all the while ---

PATTERN = "6d696c6c72616365"  # "millrace": ping fills its packets with it
OUTSIDE = (1, 0)


class NicPair(Pair):
    def __init__(self, millrace, wires, kind, options=()):
        def begin(vdevs, own, **how):
            return nic.start(millrace, vdevs, [*own, *options], nic=f"0={kind}+mdata,1={kind}+mdata",
                             marker=bytes.fromhex(PATTERN) * 2, **how)

        super().__init__(begin, wires)
        self.wires = wires
        wires.start("m", "wire.py", "w1", "w2", "0", "0")
        self.ping()

    def ping(self):
        wait_for(lambda: "1 received" in self.wires.sh(
            "a", f"ping -c 1 -W 1 -s 200 -p {PATTERN} 198.18.2.2", check=False), "a ping")

    def anew(self):
        """Both ends forget their SAs and get others, as when IKE starts over."""
        for gateway in self.gateways:
            gateway.program.ip("xfrm state flush")
        self.spi += 2
        for spi, sender in ((self.spi, 0), (self.spi + 1, 1)):
            self.gateways[1 - sender].state("add", spi, out=False)
            self.gateways[sender].state("add", spi, out=True)

    def by_nic(self):
        """The NIC protects: soon, for the CPU did while the neighbour was not known."""
        before = self.stats(0)["tx_protected"], self.stats(1)["rx_decrypted"]

        def more():
            self.ping()
            return self.stats(0)["tx_protected"] > before[0] and self.stats(1)["rx_decrypted"] > before[1]

        wait_for(more, "the NIC's work")

    @contextlib.contextmanager
    def traffic(self):
        """All the while in both directions."""
        pinging = subprocess.Popen(
            self.wires.argv("a", "ping", "-q", "-i", "0.01", "-s", "200", "-p", PATTERN, "-w", "60", "198.18.2.2"),
            stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            pinging.kill()
            pinging.wait()

    def stats(self, side):
        return nic.stats(self.gateways[side].program, OUTSIDE[side])

    def routes(self, side):
        """What goes with a link that is down, as in Linux."""
        g, n = self.gateways[side], 3 - (side + 1)
        g.program.ip(f"route replace 198.18.{n}.0/24 via {g.theirs}")

    def finish(self, but=()):
        for side, gateway in enumerate(self.gateways):
            stats = self.stats(side)
            assert stats["plaintext"] == 0
            for name in ("destroyed_in_use", "tx_lost"):
                assert name in but or stats[name] == 0, stats
        for gateway in self.gateways:
            gateway.program.stop()
            assert "did not come back" not in gateway.program.output, gateway.program.output


@KINDS
def test_sas_outlive_their_ports_troubles(millrace, wires, kind):
    pair = NicPair(millrace, wires, kind)
    one = pair.gateways[0].program
    pair.by_nic()
    with pair.traffic():
        for _ in range(2):
            nic.event(one, 1, "intr_reset")
        wait_for(lambda: "(p1) was reset" in one.output, "the reset")
        pair.ping()
        one.ip("link set p1 down")
        assert one.telemetry("/millrace/ipsec")["sessions"] == 0
        one.ip("link set p1 up")
        pair.routes(0)
        pair.ping()
        wait_for(lambda: one.telemetry("/millrace/ipsec")["sessions"] == 2, "new sessions")
        wait_for(lambda: one.telemetry("/millrace/ipsec")["sessions_dying"] == 0, "the end of the old")
        pair.by_nic()
        # The port of the route changes its mind about what it can do, and SAs are made anew.
        nic.caps(one, 1, "none")
        pair.anew()
        pair.ping()
        assert all("p1: " in sa["why_not"] for sa in one.telemetry("/millrace/ipsec/sa").values())
    pair.finish()


@KINDS
def test_a_nic_that_forgets_or_storms(millrace, wires, kind):
    """It is left, with the reason; none of its frames is sent as it was."""
    pair = NicPair(millrace, wires, kind)
    one = pair.gateways[0].program
    pair.by_nic()
    with pair.traffic():
        # Among other things it says that lifetimes are over.
        nic.event(one, 1, "storm", 20000)
        pair.anew()
        pair.by_nic()
        nic.fault(one, 1, "set_mdata", 50)
        pair.ping()
        pair.by_nic()
        nic.event(one, 1, "forget")
        wait_for(lambda: any("does not know its session" in sa["why_not"]
                             for sa in one.telemetry("/millrace/ipsec/sa").values()), "the SA to leave it")
        pair.ping()
        pair.anew()
        pair.by_nic()
    pair.finish(but=("tx_lost", "destroyed_in_use"))  # what it forgot counts as that


@KINDS
def test_a_port_is_pulled_out(millrace, wires, kind):
    pair = NicPair(millrace, wires, kind)
    one = pair.gateways[0].program
    pair.by_nic()
    with pair.traffic():
        nic.event(one, 1, "intr_rmv")
        wait_for(lambda: "(p1) was removed" in one.output, "the removal")
        wait_for(lambda: one.telemetry("/millrace/ipsec")["sessions"] == 0, "the end of sessions")
        wait_for(lambda: one.telemetry("/millrace/ipsec")["sessions_dying"] == 0, "the end of sessions")
        assert len(one.telemetry("/millrace/ipsec/sa")) == 2
    for gateway in pair.gateways:
        gateway.program.stop()
        assert "did not come back" not in gateway.program.output


@KINDS
def test_mirrored_and_redirected(millrace, wires, kind):
    """tc takes sealed frames elsewhere: as ciphertext, or not at all."""
    pair = NicPair(millrace, wires, kind)
    one = pair.gateways[0].program
    pair.by_nic()
    one.tc("qdisc add dev p1 clsact")
    one.tc("filter add dev p1 egress matchall action mirred egress mirror dev p0")
    pair.ping()
    one.tc("filter del dev p1 egress")
    inside = nic.stats(one, 0)["plaintext"]
    one.tc("filter add dev p1 egress matchall action mirred egress redirect dev p0")
    pair.wires.sh("a", f"ping -c 3 -i 0.1 -W 1 -s 200 -p {PATTERN} 198.18.2.2", check=False)
    one.tc("filter del dev p1 egress")
    # What comes back to host a in clear is meant to; nothing of what was redirected is.
    assert nic.stats(one, 0)["plaintext"] == inside
    pair.ping()
    assert pair.stats(0)["plaintext"] == 0
    pair.finish()
