# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""strongSwan's charon, unmodified, twice: each in a network namespace of its own, its SAs and policies in
a millrace of its own. What the one sends by, the other receives by; a rekey leaves no old one behind."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "functional"))
from conftest import MILLRACE_EXEC, NULL_PORTS, directory, millrace, wait_for  # noqa: E402,F401  pylint: disable=C0413

CHARON = next((p for p in ("/usr/lib/ipsec/charon", "/usr/libexec/ipsec/charon") if os.access(p, os.X_OK)), None)
ADDRESS = ("192.0.2.1", "192.0.2.2")
NET = ("198.18.1.0/24", "198.18.2.0/24")

SETTINGS = """charon {{
    port = 500
    port_nat_t = 4500
    install_routes = no
    load = random nonce aes sha1 sha2 hmac kdf gmp pubkey kernel-netlink socket-default vici
    plugins {{ vici {{ socket = unix://{vici} }} }}
    filelog {{ log {{ path = {log} }} }}
}}
"""
CONNECTION = """connections {{ peer {{
    version = 2
    local_addrs = {ours}
    remote_addrs = {theirs}
    proposals = aes128-sha256-modp2048
    local {{ auth = psk }}
    remote {{ auth = psk }}
    children {{ net {{
        local_ts = {here}
        remote_ts = {there}
        esp_proposals = aes128gcm16
        mode = tunnel
        replay_window = 128
    }} }}
}} }}
secrets {{ ike {{ secret = "an example's" }} }}
"""


class Daemon:
    """A namespace, a charon in it, and the millrace that it thinks is the kernel's xfrm."""

    def __init__(self, start, where, side):
        self.side, self.where = side, where
        self.name = f"mc{os.getpid()}{'ab'[side]}"
        self.vici, self.log = where / "vici", where / "log"
        self.process = None
        self.program = start(NULL_PORTS, ["-i"], commands=["set fwd ip"], directory=where).wait_ready()
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        (where / "strongswan.conf").write_text(SETTINGS.format(vici=self.vici, log=self.log))
        (where / "swanctl.conf").write_text(CONNECTION.format(
            ours=ADDRESS[side], theirs=ADDRESS[1 - side], here=NET[side], there=NET[1 - side]))

    def sh(self, line, check=True):
        return subprocess.run(["ip", "netns", "exec", self.name, *line.split()], check=check,
                              capture_output=True, text=True, timeout=60)

    def run(self):
        """/run is its own: there charon keeps the number of the one process that it wants to be."""
        argv = [str(MILLRACE_EXEC), "-s", str(self.program.ctl), "--only=xfrm", CHARON]
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.name, "sh", "-c",
             'mount -t tmpfs none /run && exec "$@"', "sh", *argv],
            env=dict(os.environ, STRONGSWAN_CONF=str(self.where / "strongswan.conf")),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.vici.exists, "charon")
        self.swanctl("--load-all", f"--file={self.where / 'swanctl.conf'}")

    def swanctl(self, *words):
        result = subprocess.run(
            ["swanctl", *words, f"--uri=unix://{self.vici}"], capture_output=True, text=True, timeout=60,
            check=False, env=dict(os.environ, STRONGSWAN_CONF=str(self.where / "strongswan.conf")))
        log = self.log.read_text() if self.log.exists() else ""
        assert result.returncode == 0, f"{words}: {result.stdout}{result.stderr}\n{log[-4000:]}"
        return result.stdout

    def sas(self):
        """{(src, dst, spi): key}"""
        text = self.program.ip("xfrm state").stdout
        return {m[:3]: m[3] for m in re.findall(
            r"^src (\S+) dst (\S+)\n\tproto esp spi (\S+) .*?aead rfc4106\(gcm\(aes\)\) (\S+) 128", text, re.M | re.S)}

    def close(self):
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


@pytest.fixture
def daemons(millrace, directory):  # noqa: F811  pylint: disable=W0621
    if CHARON is None or shutil.which("swanctl") is None:
        pytest.skip("no charon and swanctl (Debian: strongswan-charon, strongswan-swanctl)")
    if os.getuid() != 0:
        pytest.skip("needs root and network namespaces")
    both = []
    try:
        for side in range(2):
            where = directory / f"c{side}"
            where.mkdir()
            both.append(Daemon(millrace, where, side))
        a, b = both
        subprocess.run(["ip", "-n", a.name, "link", "add", "eth0", "type", "veth",
                        "peer", "eth0", "netns", b.name], check=True)
        for daemon in both:
            daemon.sh("ip link set lo up")
            daemon.sh(f"ip addr add {ADDRESS[daemon.side]}/24 dev eth0")
            daemon.sh("ip link set eth0 up")
            daemon.run()
        yield both
    finally:
        for daemon in both:
            daemon.close()


def test_two_daemons_agree(daemons):  # pylint: disable=W0621
    a, b = daemons
    a.swanctl("--initiate", "--child=net", "--timeout=30")
    first = wait_for(a.sas, "SAs")
    assert len(first) == 2
    assert {key[:2] for key in first} == {ADDRESS, ADDRESS[::-1]}
    assert b.sas() == first
    for daemon in daemons:
        here, there = NET[daemon.side], NET[1 - daemon.side]
        text = daemon.program.ip("xfrm policy").stdout
        for src, dst, way in ((here, there, "out"), (there, here, "in"), (there, here, "fwd")):
            assert re.search(rf"^src {src} dst {dst} \n\tdir {way} ", text, re.M), text
        # The kernel has none of them.
        assert daemon.sh("ip xfrm state").stdout == ""
    assert "esp" in a.swanctl("--list-sas").lower()

    a.swanctl("--rekey", "--child=net")
    second = wait_for(lambda: len(a.sas()) == 2 and not set(a.sas()) & set(first) and a.sas(), "a rekey")
    wait_for(lambda: b.sas() == second, "the other's")
    a.swanctl("--terminate", "--ike=peer")
    for daemon in daemons:
        wait_for(lambda d=daemon: not d.sas() and not re.search(r"dir (out|fwd)", d.program.ip(
            "xfrm policy").stdout.split("socket")[0]), "nothing to be left")
        assert all(key not in daemon.program.output for key in (*first.values(), *second.values()))
