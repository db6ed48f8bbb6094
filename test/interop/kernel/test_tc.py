# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The same tc file and the same frames through Debian's kernel and through millrace: the same
frames leave, tc shows the same rules with the same counts.

Each file in tc/ is a case. The kernel bridges p0 and p1 as millrace's mode io joins them; all frames
come in at p0. Lines of a file that begin with `#:` say what is special about it:

    #: unordered WHY        frames that leave a port are compared without their order
    #: without SORT WHY     frames of a sort of traffic.py's are left out

Chains' templates are compared by what they refuse and what tc shows of them.

Besides there are files of random rules (random_tc.py), MILLRACE_TC_RANDOM of them, in which lines may be
refused: then by both.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import random_tc
import traffic
from frames import read, write
from kernel import Kernel, require
from program import Millrace, wait_for

CASES = sorted(pathlib.Path(__file__).with_name("tc").glob("*.tc"))
SHOWN = 4
# How many files of random rules; each takes 3 s.
RANDOM = int(os.environ.get("MILLRACE_TC_RANDOM", "5"))

# What may differ between two shows of the same rule: times, numbers that are given out, references.
PASSING = {"installed", "last_used", "first_used", "expires", "ref", "bind", "index"}
ETHER_HEADER = 14

BRIDGE = """
    ip link add br0 type bridge stp_state 0 mcast_snooping 0
    for n in 0 1; do
        ip link set eth$n name p$n
        ip link set p$n master br0
        ip link set p$n type bridge_slave learning off
        ip link set p$n up
    done
    ip link set br0 up
    until grep -qx 3 /sys/class/net/p0/brport/state && grep -qx 3 /sys/class/net/p1/brport/state; do
        sleep 0.1
    done
"""

CLEAN = """
    set +e
    for n in 0 1; do
        tc qdisc del dev p$n clsact
        tc qdisc del dev p$n root
    done
    for kind in csum gact mirred pedit police skbedit vlan; do
        tc actions flush action $kind
    done
    true
"""


@pytest.fixture(scope="module")
def kernel():
    require()
    with Kernel() as guest:
        guest.run(BRIDGE)
        yield guest


@pytest.fixture
def directory():
    path = pathlib.Path(tempfile.mkdtemp(prefix="mr-"))
    yield path
    shutil.rmtree(path)


# What one side did: frames that left p0 and p1, what tc shows for each hook, which lines it refused.
Outcome = collections.namedtuple("Outcome", "left shown refused")


def hooks(rules):
    """("p0", "ingress") for each place where the file puts filters."""
    found = re.findall(r"^filter add dev (p\d) (ingress|egress|parent \S+)", rules, re.M)
    return list(dict.fromkeys(found))


def refused_lines(loaded):
    return [int(line) for line in re.findall(r"^Command failed -:(\d+)", loaded.stderr, re.M)]


def through_kernel(kernel, rules, sent):
    before = int(kernel.run("cat /sys/class/net/p0/statistics/rx_packets").stdout)
    try:
        loaded = kernel.run("tc -force -b -", input=rules, check=False)
        kernel.send(0, sent)
        wait_for(lambda: int(kernel.run("cat /sys/class/net/p0/statistics/rx_packets").stdout) ==
                 before + len(sent), "frames in the guest")
        left = [kernel.receive(nic) for nic in range(2)]
        shown = {hook: kernel.json("tc -j -s filter show dev " + " ".join(hook)) for hook in hooks(rules)}
    finally:
        kernel.run(CLEAN)
    return Outcome(left, shown, refused_lines(loaded))


def through_millrace(directory, rules, sent):
    write(directory / "in0.pcap", sent)
    write(directory / "in1.pcap", [])
    vdevs = [f"net_pcap{i},rx_pcap={directory}/in{i}.pcap,tx_pcap={directory}/out{i}.pcap" for i in range(2)]
    program = Millrace(directory, vdevs, ["-i"], stdin=subprocess.PIPE)
    try:
        program.wait_ready()
        loaded = program.run("tc", "-force", "-b", "-", stdin=rules, check=False)
        program.process.stdin.write(b"start\n")
        program.process.stdin.flush()
        wait_for(lambda: program.link_stats("p0")["rx"]["packets"] == len(sent), "frames in the program")
        shown = {hook: program.json("tc -j -s filter show dev " + " ".join(hook)) for hook in hooks(rules)}
        program.stop()
    finally:
        program.kill()
        program.process.stdin.close()
    return Outcome([read(directory / f"out{i}.pcap") for i in range(2)], shown, refused_lines(loaded))


def plain(shown):
    """What must be the same of what tc showed."""
    if isinstance(shown, dict):
        return {key: plain(value) for key, value in shown.items() if key not in PASSING}
    if isinstance(shown, list):
        return [plain(value) for value in shown]
    return shown


def allow(shown, hook, header, tagged):
    """Takes out of tc's rules what is known to be counted in another way; doc/classifier.md has the reasons."""
    for action in (a for rule in shown for a in rule.get("options", {}).get("actions", [])):
        stats = action["stats"]
        if action["kind"] == "mirred":
            del stats["overlimits"]
        if tagged:
            del stats["bytes"]
        elif hook[1] == "ingress":
            stats["bytes"] += header * stats["packets"]
    return shown


def by_place(shown):
    """Linux shows chains as they came, millrace by their numbers."""
    places = [(rule["chain"], rule["pref"], rule.get("options", {}).get("handle", 0)) for rule in shown]
    assert len(set(places)) == len(places)
    return dict(zip(places, shown))


def differences(linux, ours, ordered, tagged):
    """Sentences."""
    if linux.refused != ours.refused:
        yield f"Linux refused lines {linux.refused}, millrace {ours.refused}"
    for port in range(2):
        theirs, mine = collections.Counter(linux.left[port]), collections.Counter(ours.left[port])
        for who, extra in (("Linux", theirs - mine), ("millrace", mine - theirs)):
            for frame in list(extra)[:SHOWN]:
                yield f"p{port}: only {who} sent {traffic.describe(frame)}"
            if len(extra) > SHOWN:
                yield f"p{port}: and {len(extra) - SHOWN} others that only {who} sent"
        if theirs == mine and ordered and linux.left[port] != ours.left[port]:
            yield f"p{port}: the order differs"
    for hook, shown in linux.shown.items():
        theirs = by_place(plain(allow(shown, hook, ETHER_HEADER, tagged)))
        mine = by_place(plain(allow(ours.shown[hook], hook, 0, tagged)))
        for place in sorted(theirs.keys() | mine.keys()):
            if theirs.get(place) != mine.get(place):
                yield f"{hook}:\n  Linux    {theirs.get(place)}\n  millrace {mine.get(place)}"


@pytest.mark.parametrize("seed", range(RANDOM))
def test_random(kernel, directory, seed):
    rules = random_tc.rules(seed)
    sent = traffic.corpus(["fragments"])
    linux = through_kernel(kernel, rules, sent)
    found = list(differences(linux, through_millrace(directory, rules, sent), True, True))
    assert not found, "\n" + "\n".join(found) + "\n" + rules


# Chains with templates, and rules of which they take some.
TEMPLATES = """\
qdisc add dev p0 clsact
chain add dev p0 ingress chain 1 protocol ip flower
chain add dev p0 ingress chain 1 protocol ip matchall
chain add dev p0 ingress chain 1 protocol ip flower dst_ip 0.0.0.0/16
chain add dev p0 ingress chain 1 protocol ip flower dst_ip 0.0.0.0/16
filter add dev p0 ingress chain 1 protocol ip pref 1 matchall action drop
filter add dev p0 ingress chain 1 protocol ip pref 1 flower dst_ip 198.51.0.0/16 action drop
filter add dev p0 ingress chain 1 protocol ip pref 1 flower dst_ip 198.0.0.0/8 action drop
filter add dev p0 ingress chain 1 protocol ip pref 1 flower dst_ip 198.51.100.0/24 action drop
filter add dev p0 ingress chain 1 protocol ip pref 1 flower src_ip 198.51.0.0/16 action drop
filter add dev p0 ingress chain 1 protocol ip pref 2 flower dst_ip 198.51.0.0/16 ip_proto tcp action drop
filter add dev p0 ingress chain 1 protocol ip pref 2 flower dst_mac 02:00:00:00:00:01 action drop
filter add dev p0 ingress chain 1 protocol ipv6 pref 3 flower src_ip 2001:db8::/32 action drop
filter add dev p0 ingress chain 1 protocol ipv6 pref 3 flower src_ip 0:0:ff00::/40 action drop
filter add dev p0 ingress chain 1 protocol all pref 4 flower action drop
filter add dev p0 ingress chain 1 protocol arp pref 5 flower arp_tip 198.51.0.0/16 action drop
filter add dev p0 ingress chain 1 protocol 802.1q pref 6 flower vlan_id 5 action drop
chain add dev p0 ingress chain 2 protocol ip flower ip_proto tcp dst_port 1-9 tcp_flags 0/2 ip_ttl 0 ip_tos 0/0xfc
filter add dev p0 ingress chain 2 protocol ip pref 1 flower ip_proto tcp dst_port 100-1000 action drop
filter add dev p0 ingress chain 2 protocol ip pref 2 flower ip_proto udp dst_port 53 action drop
filter add dev p0 ingress chain 2 protocol ip pref 3 flower ip_proto udp src_port 53-54 action drop
filter add dev p0 ingress chain 2 protocol ip pref 4 flower ip_proto tcp tcp_flags 2/2 ip_ttl 7 action drop
filter add dev p0 ingress chain 2 protocol ip pref 5 flower ip_proto tcp tcp_flags 6/6 action drop
filter add dev p0 ingress chain 2 protocol ip pref 6 flower ip_tos 8/8 action drop
filter add dev p0 ingress chain 2 protocol ip pref 7 flower ip_tos 8 action drop
filter add dev p0 ingress chain 2 protocol ip pref 8 flower ip_proto tcp src_ip 0.0.0.0/0 action drop
filter add dev p0 ingress chain 2 protocol ip pref 9 flower indev p0 action drop
chain add dev p0 ingress chain 3 protocol 802.1q flower vlan_id 1 vlan_ethtype 802.1q cvlan_id 1 cvlan_ethtype ip
filter add dev p0 ingress chain 3 protocol 802.1q pref 1 flower vlan_id 9 action drop
filter add dev p0 ingress chain 3 protocol 802.1q pref 2 flower vlan_prio 3 action drop
filter add dev p0 ingress chain 3 protocol 802.1q pref 3 flower vlan_id 9 vlan_ethtype ip action drop
filter add dev p0 ingress chain 3 protocol 802.1ad pref 4 flower vlan_id 9 vlan_ethtype 802.1q cvlan_id 7 action drop
filter add dev p0 ingress chain 3 protocol 802.1ad pref 5 flower vlan_id 9 vlan_ethtype 802.1q cvlan_prio 7 action drop
filter add dev p0 ingress chain 3 protocol ip pref 6 flower action drop
chain add dev p0 ingress chain 4 protocol arp flower arp_tip 0.0.0.0/8 arp_sha 00:00:00:00:00:00 arp_op 1
filter add dev p0 ingress chain 4 protocol arp pref 1 flower arp_tip 198.0.0.0/8 arp_op 2 action drop
filter add dev p0 ingress chain 4 protocol arp pref 2 flower arp_tha 02:00:00:00:00:01 action drop
filter add dev p0 ingress chain 4 protocol ip pref 3 flower dst_ip 198.0.0.0/8 action drop
chain del dev p0 ingress chain 2
filter add dev p0 ingress chain 2 protocol ip pref 1 matchall action drop
"""


def test_templates(kernel, directory):
    def outcome(run):
        loaded = run("tc -force -b -", TEMPLATES)
        said = re.findall(r"^Error: (?:cls_\w+: )?(.*)", loaded.stderr, re.M)
        filters = by_place(plain(json.loads(run("tc -j filter show dev p0 ingress", "").stdout)))
        chains = sorted(json.loads(run("tc -j chain show dev p0 ingress", "").stdout), key=lambda c: c["chain"])
        return refused_lines(loaded), said, filters, chains

    try:
        linux = outcome(lambda line, text: kernel.run(line, input=text, check=False))
    finally:
        kernel.run(CLEAN)
    program = Millrace(directory, ["net_null0", "net_null1"], ["-i"], stdin=subprocess.PIPE)
    try:
        program.wait_ready()
        ours = outcome(lambda line, text: program.run(*line.split(), stdin=text, check=False))
        program.stop()
    finally:
        program.kill()
        program.process.stdin.close()
    assert len(linux[0]) > 9 and len(linux[2]) > 9
    assert ours[0] == linux[0]
    assert ours[2:] == linux[2:]
    theirs = [line for line in linux[1] if "template" in line]
    assert [line for line in ours[1] if line in theirs] == theirs


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_same(kernel, directory, path):
    rules = path.read_text()
    without = re.findall(r"^#: without (\w+)", rules, re.M)
    sent = traffic.corpus(without)
    linux = through_kernel(kernel, rules, sent)
    ours = through_millrace(directory, rules, sent)
    assert any(left for left in linux.left), "the kernel forwards nothing"
    assert not linux.refused, "the kernel refused lines"
    found = list(differences(linux, ours, "#: unordered" not in rules,
                             "tagged" not in without))
    assert not found, "\n" + "\n".join(found)
