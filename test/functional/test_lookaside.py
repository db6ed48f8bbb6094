# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""All that test_ipsec.py holds the CPU to, with crypto devices beside the packets' way."""

import re
import subprocess

import pytest
import test_ipsec
from program import MILLRACE
from test_ipsec import *  # noqa: F401,F403: its tests, which take the fixture below

DEVICES = ["crypto_aesni_gcm0", "crypto_null0"]


@pytest.fixture
def millrace(millrace):
    """As conftest's, with --crypto=lookaside and devices for it."""

    def start(vdevs, options=(), **how):
        return millrace([*vdevs, *DEVICES], ["--crypto=lookaside", *options], **how)

    return start


def test_the_devices_do_it(pcap_job):
    sent = [test_ipsec.plain(4, bytes([i])) for i in range(40)]
    _, out, output = pcap_job.run(
        [test_ipsec.to_port(0, p) for p in sent],
        test_ipsec.start(test_ipsec.tunnel(4, 4)) + ["show ipsec sa"])
    assert len(out) == 40, output
    assert len(re.findall(r"lookaside-crypto crypto_aesni_gcm0", output)) == 2, output


def test_lookaside_without_a_device_is_refused(directory):
    """Never silently something else."""
    result = subprocess.run(
        [str(MILLRACE), "--no-huge", "-m", "256", "--no-shconf", "--no-pci", f"--file-prefix={directory.name}",
         "--lcores", "0@0,1@0", "--vdev", "net_null0", "--", "--crypto=lookaside"],
        capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert "--crypto=lookaside: EAL has no crypto device" in result.stderr
