# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""What a person gets wrong is said in one sentence, the program exits non-zero, nothing is left."""

import os
import re

import pytest
from conftest import MEMORY, NULL_PORTS


def leftovers(directory):
    return [p for p in directory.rglob("*") if p.is_socket() and p.name == "ctl.sock"]


@pytest.mark.parametrize("option, said", [
    ("--no-such-option", "no-such-option"),
    ("--burst=0", "burst"),
    ("--burst=65536", "burst"),
    ("--burst=many", "burst"),
    ("--burst", "burst"),
    ("--forward-mode=teleport", "teleport"),
    ("--port-topology=ring", "ring"),
    ("--rxq=0", "rxq"),
    ("--nb-cores=0", "nb-cores"),
    ("--portmask=0", "portmask"),
    ("--portmask=xyz", "xyz"),
    ("--portlist=0,0", "portlist"),
    ("--portlist=0,,1", "portlist"),
    ("--port-name=0", "port-name"),
    ("--port-name=0,a/b", "port-name"),
    ("--port-name=0,averylongnameindeed", "port-name"),
    ("--ipsec-offload=on", "auto, explicit, off"),
    ("--ipsec-offload", "ipsec-offload"),
    ("--idle-exit=-1", "idle-exit"),
    ("--idle-sleep=1001", "idle-sleep"),
    ("--crypto=gpu", "crypto"),
    ("--stats-period=x", "stats-period"),
    ("word", "word"),
])
def test_wrong_option(millrace, option, said):
    program = millrace(NULL_PORTS, [option])
    output = program.wait(1)
    lines = [line for line in output.splitlines() if said in line]
    assert lines, output
    # Before EAL or a port was touched.
    assert "EAL:" not in output
    assert not leftovers(program.directory)


@pytest.mark.parametrize("options", [["--portlist=0,7"], ["--portmask=0x80"]])
def test_port_that_is_not_there(millrace, options):
    output = millrace(NULL_PORTS, options, commands=["start"]).wait(None)
    assert "7" in output


def test_missing_command_file(millrace):
    output = millrace(NULL_PORTS, ["--cmdline-file=nowhere.cmd"]).wait(None)
    assert re.search(r"nowhere\.cmd: .*No such file", output), output


def test_directory_as_command_file(millrace):
    output = millrace(NULL_PORTS, ["--cmdline-file=/"]).wait(None)
    assert re.search(r"/: .*directory", output), output


def test_missing_pcap_file(millrace):
    output = millrace(["net_pcap0,rx_pcap=nowhere.pcap,tx_pcap=out.pcap"]).wait(None)
    assert "nowhere.pcap" in output


def test_no_port(millrace):
    output = millrace([]).wait(None)
    assert re.search(r"no .*port", output, re.I), output


def test_only_the_main_lcore(millrace):
    output = millrace(NULL_PORTS, commands=["start"], lcores="0@0").wait(None)
    assert "no lcore is left to forward with" in output


@pytest.mark.parametrize("commands, line, said", [
    (["start", "tc qdisc add dev p9 clsact"], 2, "p9"),
    (["# a comment", "", "tc qdisc add dev p0 clsact", "tc filter add dev p0 ingress bogus"], 4, ""),
    (["tc filter add dev p0 ingress matchall action drop"], 1, ""),
    (["ip link set p9 up"], 1, "p9"),
    (["frobnicate the ports"], 1, "frobnicate"),
    (["show port info 99"], 1, "99"),
    (["load nowhere.cmd"], 1, "nowhere.cmd"),
    (["tc qdisc add dev 'p0 clsact"], 1, ""),
])
def test_bad_command_in_a_file(millrace, commands, line, said):
    program = millrace(NULL_PORTS, commands=commands)
    output = program.wait(None)
    found = re.findall(rf"^.*{re.escape(program.cmdfile.name)}:{line}: .+$", output, re.M)
    assert found, output
    assert said in output
    assert not leftovers(program.directory)


def test_commands_after_a_bad_one_do_not_run(millrace):
    program = millrace(NULL_PORTS, ["--ctl=ctl.sock"],
                       commands=["bogus", "tc qdisc add dev p0 clsact", "show drops"])
    output = program.wait(None)
    assert "rules.cmd:1: " in output
    assert "tc_shot" not in output


@pytest.mark.skipif(not os.path.exists("/proc/sys/vm/nr_hugepages"), reason="no hugepages here")
def test_no_hugepages(millrace):
    """More memory than the machine has pages for: one sentence from EAL or us, not a crash."""
    program = millrace(NULL_PORTS, memory=["--in-memory", "--no-pci", "-m", "1048576"])
    output = program.wait(None)
    assert program.process.returncode > 0, output  # not by a signal
    assert re.search(r"hugepage|memory", output, re.I), output


def test_too_little_memory_for_the_pool(millrace):
    program = millrace(NULL_PORTS, ["--total-num-mbufs=100000000"], memory=MEMORY)
    output = program.wait(None)
    assert program.process.returncode > 0, output
    assert re.search(r"mbuf|memory", output, re.I), output


def test_unknown_device(millrace):
    output = millrace(["net_nonsense0"]).wait(None)
    assert "net_nonsense0" in output
