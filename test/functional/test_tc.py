# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The real tc and ip: what they add they show, what is not supported is refused by name."""

import json

import frames
import pytest
from conftest import NULL_PORTS, wait_for


def test_skbedit_chooses_the_queue(millrace):
    """Of the port that the packets leave by, also when it came in by another; the first, if it is not there."""
    program = millrace(NULL_PORTS, ["--rxq=2", "--txq=2"]).wait_ready()

    def sent():
        leaves = [q for q in program.json("tc -j -s qdisc show dev p1") if "parent" in q]
        return [q["packets"] for q in sorted(leaves, key=lambda q: q["parent"]) if q["parent"] != "ffff:fff1"]

    def grows(before, after):
        return [b < a for b, a in zip(before, after)]

    program.wait_forwarding("p1")
    wait_for(lambda: all(sent()), "packets on both queues")
    for hook, queue, grown in (("dev p1 egress", 1, [False, True]), ("dev p0 ingress", 0, [True, False]),
                               ("dev p1 egress", 7, [True, False])):
        program.tc(f"qdisc replace {hook.rsplit(maxsplit=1)[0]} clsact")
        program.tc(f"filter add {hook} matchall action skbedit queue_mapping {queue}")
        settled = sent()
        before = wait_for(lambda: (now := sent()) != settled and now, "bursts under way to leave")
        wait_for(lambda: any(grows(before, sent())), "more packets")
        assert grows(before, sent()) == grown, (hook, queue)
        program.tc(f"filter del {hook}")
    program.stop()


def test_prio_on_a_queue_of_mq(millrace, directory):
    """A burst comes with all kinds in turns; the queue's bands send theirs one after the other, and each
    rule, and the queue, counts its own."""
    kinds = [("udp", 3), ("icmp", 2), ("tcp", 1)]  # with the band
    sent = {kind: [frames.frame(kind, 4, size=10 + i) for i in range(8)] for kind, _ in kinds}
    other = [frames.frame("udp", 6, size=10 + i) for i in range(8)]
    frames.write(directory / "in0.pcap", [f for turn in zip(*sent.values(), other) for f in turn])
    frames.write(directory / "in1.pcap", [])
    out = [directory / f"out1.{queue}.pcap" for queue in range(2)]
    p0 = f"net_pcap0,rx_pcap={directory}/in0.pcap,tx_pcap={directory}/out0.0.pcap,tx_pcap={directory}/out0.1.pcap"
    p1 = f"net_pcap1,rx_pcap={directory}/in1.pcap,tx_pcap={out[0]},tx_pcap={out[1]}"
    program = millrace([p0, p1], ["--burst=64", "--txq=2"], commands=[
        "tc qdisc replace dev p1 root handle 8: mq",
        "tc qdisc add dev p1 parent 8:2 handle 82: prio bands 3",
        *(f"tc filter add dev p1 parent 82: pref {band} protocol ip flower ip_proto {kind} "
          f"flowid 82:{band} action pass" for kind, band in kinds),
        "tc qdisc add dev p1 clsact",
        "tc filter add dev p1 egress protocol ip matchall action skbedit queue_mapping 1",
        "start",
    ]).wait_ready()
    program.wait_forwarding("p1", 4 * 8)
    stats = {f["options"]["keys"]["ip_proto"]: f["options"]["actions"][0]["stats"]
             for f in program.filters("p1", "parent 82:")}
    qdiscs = {q["handle"]: q for q in program.json("tc -j -s qdisc show dev p1")}
    classes = program.tc("class show dev p1").stdout
    program.stop()
    bands = [sent[kind] for kind, _ in sorted(kinds, key=lambda k: k[1])]
    assert frames.read(out[1]) == [f for band in bands for f in band]
    assert frames.read(out[0]) == other
    for kind, _ in kinds:
        assert (stats[kind]["packets"], stats[kind]["bytes"]) == (8, sum(map(len, sent[kind]))), kind
    assert qdiscs["82:"]["packets"] == 3 * 8
    assert qdiscs["82:"]["bytes"] == sum(len(f) for band in bands for f in band)
    assert qdiscs["8:"]["packets"] == 4 * 8
    assert all(f"class prio 82:{band} parent 82:" in classes for _, band in kinds)


def test_link_show(running):
    links = running.json("ip -j link show")
    assert [link["ifname"] for link in links] == ["p0", "p1"]
    assert all("UP" in link["flags"] for link in links)
    assert "p0" in running.ip("-s link show").stdout
    assert running.json("ip -j -s link show p1")[0]["stats64"]["rx"]["packets"] == 0


def test_unknown_device(running):
    result = running.ip("link show p9", check=False)
    assert result.returncode == 1
    assert "p9" in result.stderr


def test_link_set(running):
    running.ip("link set p0 down")
    assert "UP" not in running.json("ip -j link show p0")[0]["flags"]
    running.ip("link set p0 up")
    assert "UP" in running.json("ip -j link show p0")[0]["flags"]
    running.ip("link set p0 mtu 1400")
    assert running.json("ip -j link show p0")[0]["mtu"] == 1400
    running.ip("link set p0 address 02:00:00:00:00:77")
    assert running.json("ip -j link show p0")[0]["address"] == "02:00:00:00:00:77"


@pytest.mark.parametrize("line", ["link set p0 mtu 1", "link set p0 mtu 1000000",
                                  "link set p0 address 01:00:00:00:00:01",
                                  "link add type dummy", "link del p0"])
def test_link_set_refused(running, line):
    before = running.json("ip -j link show")
    result = running.ip(line, check=False)
    assert result.returncode != 0
    assert result.stderr.strip()
    assert running.json("ip -j link show") == before


def test_root_qdisc_is_pfifo_fast(running):
    shown = running.json("tc -j qdisc show dev p0")
    assert [(q["kind"], q["root"]) for q in shown] == [("pfifo_fast", True)]
    assert shown[0]["options"]["bands"] == 3
    assert shown[0]["options"]["priomap"] == [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]


def test_clsact_add_show_del(running):
    running.tc("qdisc add dev p0 clsact")
    assert "clsact" in [q["kind"] for q in running.json("tc -j qdisc show dev p0")]
    assert running.tc("qdisc add dev p0 clsact", check=False).returncode == 2
    running.tc("qdisc del dev p0 clsact")
    assert "clsact" not in [q["kind"] for q in running.json("tc -j qdisc show dev p0")]
    assert running.tc("qdisc del dev p0 clsact", check=False).returncode == 2


@pytest.mark.parametrize("hook", ["ingress", "egress"])
@pytest.mark.parametrize("action, kind", [("pass", "gact"), ("drop", "gact"),
                                          ("csum ip4h and udp", "csum")])
def test_filter_add_show_del(running, hook, action, kind):
    running.tc("qdisc add dev p0 clsact")
    running.tc(f"filter add dev p0 {hook} pref 7 matchall action {action}")
    shown = running.filters("p0", hook)
    assert len(shown) == 1
    assert shown[0]["kind"] == "matchall" and shown[0]["pref"] == 7
    assert shown[0]["options"]["actions"][0]["kind"] == kind
    assert running.tc(f"-s filter show dev p0 {hook}").stdout.count(kind) >= 1
    running.tc(f"filter del dev p0 {hook} pref 7")
    assert running.filters("p0", hook) == []


def test_filter_needs_its_hook(running):
    result = running.tc("filter add dev p0 ingress matchall action pass", check=False)
    assert result.returncode == 2
    assert result.stderr.strip()


def test_batch(running):
    lines = ["qdisc add dev p0 clsact"]
    lines += [f"filter add dev p0 ingress pref {n} matchall action drop" for n in range(1, 201)]
    running.run("tc", "-batch", "-", stdin="\n".join(lines) + "\n")
    assert len(running.filters("p0", "ingress")) == 200


def test_batch_stops_at_the_bad_line(running):
    lines = ["qdisc add dev p0 clsact", "qdisc add dev p0 clsact", "qdisc add dev p1 clsact"]
    result = running.run("tc", "-batch", "-", stdin="\n".join(lines) + "\n", check=False)
    assert result.returncode != 0
    assert "-:2" in result.stderr
    assert "clsact" not in running.tc("qdisc show dev p1").stdout


@pytest.mark.parametrize("line, said", [
    ("qdisc add dev p0 root sfq", "sfq"),
    ("qdisc add dev p0 root tbf rate 1mbit burst 10kb latency 70ms", "tbf"),
    ("filter add dev p0 ingress protocol ip u32 match ip dst 192.0.2.1/32 action drop", "u32"),
    ("filter add dev p0 ingress bpf object-pinned /nowhere action drop", ""),
    ("filter add dev p0 ingress matchall action connmark", "connmark"),
])
def test_unsupported_is_refused_by_name(running, line, said):
    running.tc("qdisc add dev p0 clsact")
    result = running.tc(line, check=False)
    assert result.returncode != 0
    assert said in result.stderr, result.stderr
    assert running.filters("p0", "ingress") == []


def test_replace_keeps_one(running):
    running.tc("qdisc add dev p0 clsact")
    for action in ("pass", "drop"):
        running.tc(f"filter replace dev p0 ingress pref 1 handle 1 matchall action {action}")
    shown = running.filters("p0", "ingress")
    assert len(shown) == 1
    assert shown[0]["options"]["actions"][0]["control_action"]["type"] == "drop"


def test_counters_move(millrace):
    program = millrace(["net_null0", "net_null1"], commands=[
        "tc qdisc add dev p0 clsact",
        "tc filter add dev p0 ingress matchall action pass",
        "tc qdisc add dev p1 clsact",
        "tc filter add dev p1 ingress matchall action drop",
        "start",
    ]).wait_ready()
    program.wait_forwarding("p1")
    stats = program.filters("p0", "ingress")[0]["options"]["actions"][0]["stats"]
    assert stats["packets"] > 0 and stats["bytes"] > 0 and stats["drops"] == 0
    stats = program.filters("p1", "ingress")[0]["options"]["actions"][0]["stats"]
    assert stats["packets"] > 0 and 0 < stats["drops"] <= stats["packets"]
    # Whatever p1 receives is dropped, so nothing leaves p0.
    assert program.link_stats("p0")["tx"]["packets"] == 0
    program.stop()


def test_json_is_json(running):
    running.tc("qdisc add dev p0 clsact")
    running.tc("filter add dev p0 ingress matchall action csum ip4h")
    for line in ("-j -s qdisc show", "-j -s filter show dev p0 ingress", "-j actions list action csum"):
        json.loads(running.tc(line).stdout)
