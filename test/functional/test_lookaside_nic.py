# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Crypto devices that do ESP by themselves, and such that fail (test/nic)."""

import re

import nic
import pytest
import test_ipsec
from conftest import drops
from program import MILLRACE_NIC

pytestmark = pytest.mark.skipif(not MILLRACE_NIC.exists(), reason="millrace-nic is not built")

SECRET = b"never in clear, says the tripwire"
WHOLE = {"options": ("--idle-exit=300", "--crypto=lookaside"), "eal": ("--vdev", "crypto_null0")}


@test_ipsec.BOTH
def test_a_device_that_does_esp(millrace, directory, inner, outer):
    """Lookaside protocol, out and in; scapy is the peer."""
    job = nic.NicJob(millrace, directory)
    sent = [test_ipsec.plain(inner, SECRET + bytes([i]) * i) for i in range(40)]
    back_sent = [test_ipsec.plain(inner, SECRET + bytes([i]) * i, back=True) for i in range(30)]
    back, out, output = job.run(
        [test_ipsec.to_port(0, p) for p in sent],
        test_ipsec.start(test_ipsec.tunnel(inner, outer)) + ["show ipsec sa"],
        sent1=[test_ipsec.encrypted(p, outer, seq) for seq, p in enumerate(back_sent, start=1)],
        nic="1=none,crypto0=protocol", marker=SECRET, **WHOLE)
    assert len(re.findall("lookaside-protocol crypto_null0", output)) == 2, output
    peer = test_ipsec.association(test_ipsec.OUT, outer)
    assert [bytes(peer.decrypt(test_ipsec.to_ip(data))) for data in out] == [test_ipsec.forwarded(p) for p in sent]
    assert [bytes(test_ipsec.to_ip(data)) for data in back] == [test_ipsec.forwarded(p) for p in back_sent]
    stats = job.stats["crypto0"]
    assert (stats["crypto_sealed"], stats["crypto_opened"]) == (40, 30)
    assert job.stats["1"]["plaintext"] == 0


@pytest.mark.parametrize("fault,lost", [("op_error:3", 3), ("op_lose:1", 1), ("op_hold:1", 64), ("op_full:5", None), ("op_dead:1", None)])
def test_a_device_that_fails(millrace, directory, fault, lost):
    """What it does not do is dropped by name, or done by the CPU; nothing leaves in clear."""
    job = nic.NicJob(millrace, directory)
    sent = [test_ipsec.plain(4, SECRET + bytes([i])) for i in range(64)]
    _, out, output = job.run(
        [test_ipsec.to_port(0, p) for p in sent], test_ipsec.start(test_ipsec.tunnel(4, 4)) + ["show drops"],
        nic=f"1=none,crypto0=none+{fault}", marker=SECRET,
        options=WHOLE["options"], eal=("--vdev", "crypto_aesni_gcm0"))
    assert job.stats["1"]["plaintext"] == 0
    gone = sum(count for name, count in drops(output).items() if name in ("esp_device", "esp_device_full"))
    assert gone == 64 - len(out), output
    assert gone > 0 if lost is None else gone == lost, output
