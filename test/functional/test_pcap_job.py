# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Frames with broken checksums become right ones, by plain tc lines; every frame is accounted for."""

import random

import frames
import pytest
from conftest import drops, tshark_statuses

CSUM = "action csum ip4h and tcp and udp and icmp"
RULES = [
    "# checksums are made right on the way in",
    "tc qdisc add dev p0 clsact",
    f"tc filter add dev p0 ingress matchall {CSUM}",
    "start",
]


def test_broken_checksums_in_right_frames_out(pcap_job):
    good = frames.good_frames()
    back, out, _ = pcap_job.run([frames.broken(f) for f in good], RULES)
    assert back == []
    assert out == good  # scapy's frames, byte for byte and in order


def test_tshark_calls_them_good(pcap_job):
    good = frames.good_frames()
    pcap_job.run([frames.broken(f) for f in good], RULES)
    before = tshark_statuses(pcap_job.directory / "in0.pcap")
    after = tshark_statuses(pcap_job.directory / "out1.pcap")
    assert len(before) == len(after) == len(good)
    for was, now in zip(before, after):
        assert was and all("0" in status for status in was.values())
        assert now.keys() == was.keys()
        assert all(set(status) == {"1"} for status in now.values())


def test_right_frames_stay_as_they_are(pcap_job):
    good = frames.good_frames() + [frames.arp()]
    _, out, _ = pcap_job.run(good, RULES)
    assert out == good


def test_without_rules_nothing_changes(pcap_job):
    sent = [frames.broken(f) for f in frames.good_frames()]
    _, out, _ = pcap_job.run(sent, ["start"])
    assert out == sent


def test_on_egress(pcap_job):
    good = frames.good_frames()
    rules = ["tc qdisc add dev p1 clsact", f"tc filter add dev p1 egress matchall {CSUM}", "start"]
    _, out, _ = pcap_job.run([frames.broken(f) for f in good], rules)
    assert out == good


@pytest.mark.parametrize("flags, touched", [("ip4h", {"ip"}), ("udp", {"udp"}), ("tcp", {"tcp"})])
def test_only_the_named_checksums(pcap_job, flags, touched):
    good = [frames.frame(name, 4) for name in ("udp", "tcp")]
    rules = ["tc qdisc add dev p0 clsact",
             f"tc filter add dev p0 ingress matchall action csum {flags}", "start"]
    _, out, _ = pcap_job.run([frames.broken(f) for f in good], rules)
    for data, right, name in zip(out, good, ("udp", "tcp")):
        header, top = frames.field_offsets(right)
        assert (data[header : header + 2] == right[header : header + 2]) == ("ip" in touched)
        assert (data[top : top + 2] == right[top : top + 2]) == (name in touched)


def test_both_ways(pcap_job):
    good = frames.good_frames()
    sent = [frames.broken(f) for f in good]
    back, out, _ = pcap_job.run(sent, RULES, sent1=sent)
    assert out == good
    assert back == sent  # p1 has no rule


def test_more_frames_than_a_ring(pcap_job):
    good = [frames.frame("udp", 4, size=18 + i % 50) for i in range(5000)]
    _, out, _ = pcap_job.run([frames.broken(f) for f in good], RULES)
    assert out == good


def test_no_frame_at_all(pcap_job):
    back, out, _ = pcap_job.run([], RULES)
    assert back == out == []


def test_dropped_frames_are_counted_by_name(pcap_job):
    sent = frames.good_frames()
    rules = ["tc qdisc add dev p0 clsact",
             "tc filter add dev p0 ingress matchall action drop", "start"]
    _, out, output = pcap_job.run(sent, rules)
    assert out == []
    assert drops(output) == {"tc_shot": len(sent)}


def test_cut_and_random_frames_pass_and_none_is_lost(pcap_job):
    rng = random.Random(2)
    sent = []
    for data in frames.good_frames()[::5]:
        for cut in (1, 6, 13, 14, 15, 17, 18, 33, 34, 35, 41, 42, len(data) - 1):
            if cut < len(data):
                sent.append(data[:cut])
        torn = bytearray(data)
        torn[rng.randrange(12, min(len(torn), 60))] ^= rng.randrange(1, 256)
        sent.append(bytes(torn))
    sent += [rng.randbytes(rng.randrange(1, 1500)) for _ in range(200)]
    _, out, _ = pcap_job.run(sent, RULES)
    assert len(out) == len(sent)
    for before, after in zip(sent, out):
        assert len(before) == len(after)
        # Checksums are all that may differ: at most IPv4's and one of layer 4's.
        assert sum(a != b for a, b in zip(before, after)) <= 4
