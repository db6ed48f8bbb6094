# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The program on NICs with rte_security: that it runs there at all, and that the NICs tell the truth."""

import nic
import pytest
from program import MILLRACE_NIC, wait_for
from test_ipsec import encrypted, forwarded, plain, start, to_ip, to_port, tunnel

pytestmark = pytest.mark.skipif(not MILLRACE_NIC.exists(), reason="millrace-nic is not built")


@pytest.fixture
def nic_job(millrace, directory):
    return nic.NicJob(millrace, directory)


def test_a_tunnel_without_offload_is_the_cpus(nic_job):
    """The NIC sees ESP and no session."""
    sent = [plain(4, b"to be kept secret" + bytes([i]) * i) for i in range(20)]
    back_sent = [plain(4, b"from there", back=True) for _ in range(20)]
    back, out, output = nic_job.run(
        [to_port(0, p) for p in sent], start(tunnel(4, 4)),
        sent1=[encrypted(p, 4, seq) for seq, p in enumerate(back_sent, start=1)],
        options=["--idle-exit=300", "--ipsec-offload=off"], marker=b"to be kept secret")
    assert [bytes(to_ip(data)) for data in back] == [forwarded(p) for p in back_sent], output
    assert len(out) == 20
    nic.assert_quiet(nic_job.stats)
    outside = nic_job.stats["1"]
    assert (outside["tx_frames"], outside["rx_frames"]) == (20, 20)
    assert outside["tx_protected"] == outside["rx_decrypted"] == 0


def test_the_tripwire_sees_plaintext(nic_job):
    sent = [plain(4, b"to be kept secret"), plain(4, b"nothing special")]
    _, out, _ = nic_job.run([to_port(0, p) for p in sent], start([]), marker=b"kept secret")
    assert len(out) == 2
    assert nic_job.stats["1"]["plaintext"] == 1 and nic_job.stats["0"]["plaintext"] == 0
    with pytest.raises(AssertionError):
        nic.assert_quiet(nic_job.stats)


def test_faults_and_counters_while_it_runs(millrace, directory):
    program = nic.start(millrace, ["net_ring0", "net_ring1"], ["-i"], nic="0=all,1=none+session_max:5,crypto0=protocol")
    program.wait_ready()
    assert nic.stats(program, 0)["sessions"] == 0
    assert nic.sessions(program, 0) == []
    assert "crypto_in" in nic.stats(program, "crypto0")
    assert program.telemetry("/nic/stats,7") is None
    assert program.telemetry("/nic/fault,0,no_such,1") is None
    nic.fault(program, 1, "tx_drop", 3)
    nic.caps(program, 1, "endless")
    nic.marker(program, b"abc")
    nic.event(program, 0, "storm", 10)
    # the program wants to know of removals
    nic.event(program, 1, "intr_rmv")
    assert nic.stats(program, 1)["events"] == 1
    wait_for(lambda: "was removed" in program.output, "the port's removal")
    program.stop()


def test_what_is_told_wrong_is_refused(millrace):
    for how in ("0=nothing", "0", "x=all", "0=all+tx_drop", "0=all+no_such:1"):
        program = nic.start(millrace, ["net_null0"], nic=how)
        assert "MILLRACE_NIC" in program.wait(status=1)


def test_a_dropped_frame_is_counted(nic_job):
    _, out, _ = nic_job.run(
        [to_port(0, plain(4))] * 5, start([]), nic="0=all+mdata,1=all+mdata+tx_drop:2", lost=2)
    assert len(out) == 3
    assert nic_job.stats["1"]["tx_dropped"] == 2
