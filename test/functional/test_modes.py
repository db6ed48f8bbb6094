# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Forward modes that make or sink packets, their options, and that what they make passes tc."""

import re

import frames
import pytest
from conftest import assert_accounted, drops
from scapy.all import IP, UDP, Ether

FEW = 200  # frames that are looked at; the rest only have to be like them


def made(millrace, directory, options, mode="txonly", rules=()):
    """Runs a mode for a moment on a port that writes what it sends; returns frames and output."""
    frames.write(directory / "none.pcap", [])
    vdevs = [f"net_pcap{i},rx_pcap={directory}/none.pcap,tx_pcap={directory}/out{i}.pcap"
             for i in range(2)]
    program = millrace(vdevs, [f"--forward-mode={mode}", "-i", *options], eal=["--log-level=error"],
                       commands=[*rules, "start"])
    program.wait_ready()
    program.wait_forwarding("p0", FEW)
    program.wait_forwarding("p1", FEW)
    output = program.stop()
    return frames.read(directory / "out1.pcap")[:FEW], output


def sums(raw):
    """(IPv4 header sum is right, UDP sum: right, wrong or absent) with scapy as the judge."""
    packet = Ether(raw)
    again = Ether(raw)
    del again[IP].chksum
    del again[UDP].chksum
    again = Ether(bytes(again))
    if packet[UDP].chksum == 0:
        udp = "absent"
    else:
        udp = "right" if packet[UDP].chksum == again[UDP].chksum else "wrong"
    return packet[IP].chksum == again[IP].chksum, udp


@pytest.mark.parametrize("which, want", [("good", (True, "right")), ("bad", (False, "wrong")),
                                         ("none", (True, "absent"))])
def test_txonly_checksums(millrace, directory, which, want):
    out, _ = made(millrace, directory, [f"--tx-cksum={which}", "--txonly-multi-flow"])
    assert len(out) == FEW
    assert {sums(raw) for raw in out} == {want}


def test_txonly_makes_what_was_asked_for(millrace, directory):
    out, _ = made(millrace, directory, [
        "--txpkts=100,64,37", "--tx-ip=192.0.2.7,203.0.113.9", "--tx-udp=1234,4321",
        "--eth-peer=1,02:00:00:00:00:99"])
    for raw in out:
        packet = Ether(raw)
        assert len(raw) == 201
        assert packet.dst == "02:00:00:00:00:99"
        assert (packet[IP].src, packet[IP].dst) == ("192.0.2.7", "203.0.113.9")
        assert (packet[UDP].sport, packet[UDP].dport) == (1234, 4321)
        assert packet[IP].len == 201 - 14 and packet[UDP].len == 201 - 34
        assert sums(raw) == (True, "right")


def test_txonly_multi_flow_varies_the_source(millrace, directory):
    out, _ = made(millrace, directory, ["--txonly-multi-flow"])
    assert len({Ether(raw)[IP].src for raw in out}) > 100
    out, _ = made(millrace, directory, [])
    assert {Ether(raw)[IP].src for raw in out} == {"198.18.0.1"}


def test_flowgen_goes_round_its_flows(millrace, directory):
    out, _ = made(millrace, directory, ["--flowgen-flows=16"], mode="flowgen")
    destinations = [Ether(raw)[IP].dst for raw in out]
    assert len(set(destinations)) == 16
    assert destinations[:16] == destinations[16:32]
    assert {len(raw) for raw in out} == {300}
    assert {sums(raw) for raw in out} == {(True, "right")}


def test_made_packets_pass_the_egress_hook(millrace, directory):
    out, _ = made(millrace, directory, ["--tx-cksum=bad"], rules=[
        "tc qdisc add dev p1 clsact",
        "tc filter add dev p1 egress matchall action csum ip4h and udp"])
    assert {sums(raw) for raw in out} == {(True, "right")}


def test_rxonly_sinks_by_name(millrace, directory):
    good = frames.good_frames()
    frames.write(directory / "in.pcap", good)
    frames.write(directory / "none.pcap", [])
    program = millrace([f"net_pcap0,rx_pcap={directory}/in.pcap,tx_pcap={directory}/out0.pcap",
                        f"net_pcap1,rx_pcap={directory}/none.pcap,tx_pcap={directory}/out1.pcap"],
                       ["--forward-mode=rxonly", "--idle-exit=300"], commands=["start"])
    output = program.wait()
    assert_accounted(output, len(good))
    assert drops(output) == {"rx_sink": len(good)}


def test_mode_is_set_while_stopped(millrace):
    program = millrace(["net_null0", "net_null1"], ["-i"], commands=[
        "set fwd txonly", "start", "stop", "set fwd io", "start tx_first 3", "stop"])
    program.wait_ready()
    output = program.stop()
    assert re.search(r"^txonly packet forwarding", output, re.M)
    assert re.search(r"^io packet forwarding", output, re.M)


@pytest.mark.parametrize("option", ["--txpkts=20", "--txpkts=64,0", "--txpkts=60000", "--tx-ip=1.2.3",
                                    "--tx-udp=70000", "--tx-cksum=maybe", "--eth-peer=1,xyz",
                                    "--forward-mode=magic", "--flowgen-flows=0"])
def test_bad_options_are_named(millrace, option):
    program = millrace(["net_null0"], [option])
    output = program.wait(1)
    assert option.split("=")[0] in output
