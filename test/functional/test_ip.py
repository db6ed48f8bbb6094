# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Mode ip as its users see it: unmodified ip, and two hosts that talk through it."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import wait_for


# --- unmodified ip ---


def test_addresses(running):
    running.ip("addr add 192.0.2.1/24 brd + dev p0")
    running.ip("addr add 192.0.2.2/24 dev p0")
    running.ip("addr add 2001:db8::1/64 dev p0")
    shown = {a["local"]: a for a in running.json("ip -j addr show dev p0")[0]["addr_info"]}
    assert shown["192.0.2.1"]["prefixlen"] == 24
    assert shown["192.0.2.1"]["broadcast"] == "192.0.2.255"
    assert shown["192.0.2.2"]["secondary"]
    assert shown["2001:db8::1"]["scope"] == "global"
    assert "addr_info" not in running.json("ip -j -4 addr show dev p1") or \
        running.json("ip -j addr show dev p1")[0]["addr_info"] == []
    # The second takes over the subnet.
    running.ip("addr del 192.0.2.1/24 dev p0")
    shown = running.json("ip -j -4 addr show dev p0")[0]["addr_info"]
    assert [(a["local"], a.get("secondary")) for a in shown] == [("192.0.2.2", None)]
    assert [r["dst"] for r in running.json("ip -j route show")] == ["192.0.2.0/24"]
    running.ip("addr flush dev p0")
    assert running.json("ip -j route show") == []
    assert running.json("ip -j -6 route show") == []


def test_connected_and_local_routes(running):
    running.ip("addr add 192.0.2.1/24 dev p0")
    assert running.ip("route show").stdout.strip() == \
        "192.0.2.0/24 dev p0 proto kernel scope link src 192.0.2.1"
    local = running.json("ip -j route show table local")
    assert [(r["type"], r["dst"]) for r in local] == \
        [("local", "192.0.2.1"), ("broadcast", "192.0.2.255")]
    # They go with the device and come back with it; others do not come back.
    running.ip("route add 198.51.100.0/24 via 192.0.2.2")
    running.ip("link set p0 down")
    assert running.json("ip -j route show table all") == []
    running.ip("link set p0 up")
    assert [r["dst"] for r in running.json("ip -j route show")] == ["192.0.2.0/24"]


def test_routes(running):
    running.ip("addr add 192.0.2.1/24 dev p0")
    running.ip("addr add 203.0.113.1/24 dev p1")
    running.ip("route add default via 192.0.2.254")
    running.ip("route add 198.51.100.0/24 via 203.0.113.2 metric 20")
    running.ip("route add 198.51.100.0/24 via 192.0.2.3 metric 10")
    running.ip("route add blackhole 198.18.0.0/16")
    running.ip("route append 198.51.100.0/24 via 203.0.113.3 metric 20")
    lines = [line.strip() for line in running.ip("route show").stdout.splitlines()]
    assert lines == [
        "default via 192.0.2.254 dev p0",
        "192.0.2.0/24 dev p0 proto kernel scope link src 192.0.2.1",
        "blackhole 198.18.0.0/16",
        "198.51.100.0/24 via 192.0.2.3 dev p0 metric 10",
        "198.51.100.0/24 via 203.0.113.2 dev p1 metric 20",
        "198.51.100.0/24 via 203.0.113.3 dev p1 metric 20",
        "203.0.113.0/24 dev p1 proto kernel scope link src 203.0.113.1",
    ]
    get = running.json("ip -j route get 198.51.100.7")[0]
    assert (get["gateway"], get["dev"], get["prefsrc"]) == ("192.0.2.3", "p0", "192.0.2.1")
    running.ip("route del 198.51.100.0/24 metric 10")
    assert running.ip("route del 198.51.100.0/24 via 192.0.2.3", check=False).returncode == 2
    assert running.json("ip -j route get 198.51.100.7")[0]["gateway"] == "203.0.113.2"
    running.ip("route replace 198.51.100.0/24 via 192.0.2.9 metric 20")
    assert running.json("ip -j route get 198.51.100.7")[0]["gateway"] == "192.0.2.9"
    assert running.ip("route get 198.18.0.1", check=False).returncode == 2
    assert running.ip("route add default via 192.0.2.254", check=False).returncode == 2
    running.ip("route flush proto boot")
    assert [r["dst"] for r in running.json("ip -j route show")] == ["192.0.2.0/24", "203.0.113.0/24"]


def test_route_get_asks_as_packets_do(running):
    running.ip("addr add 192.0.2.1/24 dev p0")
    running.ip("addr add 203.0.113.1/24 dev p1")
    running.ip("addr add 2001:db8::1/64 dev p0")
    running.ip("route add 198.51.100.0/24 via 203.0.113.2")
    running.ip("route add default via 192.0.2.254")
    running.ip("-6 route add default via 2001:db8::2")

    def get(line):
        return running.ip(f"route get {line}").stdout.split("\n")[0].strip()

    # As Debian's kernel says it.
    assert get("198.51.100.7 from 192.0.2.1") == "198.51.100.7 from 192.0.2.1 via 203.0.113.2 dev p1"
    assert get("198.51.100.7 from 192.0.2.9 iif p0") == "198.51.100.7 from 192.0.2.9 via 203.0.113.2 dev p1"
    shown = running.json("ip -j route get 198.51.100.7 from 192.0.2.9 iif p0")[0]
    assert shown["iif"] == "p0" and "prefsrc" not in shown
    assert get("198.51.100.7 oif p0") == "198.51.100.7 via 192.0.2.254 dev p0 src 192.0.2.1"
    assert get("198.51.100.7 oif p1") == "198.51.100.7 via 203.0.113.2 dev p1 src 203.0.113.1"
    assert running.json("ip -j route get 2001:db8:5::1 from 2001:db8::1 oif p0")[0]["gateway"] == "2001:db8::2"
    for line, why in (("198.51.100.7 from 198.18.0.1", "not an address of ours"),
                      ("198.51.100.7 iif p0", "has a source"),
                      ("198.51.100.7 from 203.0.113.1 iif p0", "does not come in"),
                      ("198.51.100.7 from 192.0.2.9 iif p9", "p9"),
                      ("100.64.0.1 oif p1", "unreachable")):
        result = running.ip(f"route get {line}", check=False)
        assert result.returncode != 0 and why in result.stderr, (line, result.stderr)


def test_metrics(running):
    running.ip("addr add 192.0.2.1/24 dev p0")
    running.ip("addr add 2001:db8::1/64 dev p0")
    running.ip("route add 198.51.100.0/24 via 192.0.2.2 mtu 1400 advmss 1360")
    running.ip("route add 198.51.100.0/25 mtu 1300 nexthop via 192.0.2.2 nexthop via 192.0.2.3")
    running.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2 mtu 1280")
    assert running.ip("route show 198.51.100.0/24").stdout.strip() == \
        "198.51.100.0/24 via 192.0.2.2 dev p0 mtu 1400 advmss 1360"
    assert "mtu 1280" in running.ip("-6 route show 2001:db8:9::/48").stdout
    assert "mtu 1400" in running.ip("route get 198.51.100.200").stdout
    assert running.ip("route del 198.51.100.0/24 mtu 1399", check=False).returncode == 2
    running.ip("route replace 198.51.100.0/24 via 192.0.2.2")
    assert "mtu" not in running.ip("route show 198.51.100.0/24").stdout
    running.ip("route del 198.51.100.0/24")


def test_several_next_hops(running):
    running.ip("addr add 192.0.2.1/24 dev p0")
    running.ip("addr add 2001:db8::1/64 dev p0")
    running.ip("route add 198.51.100.0/24 nexthop via 192.0.2.2 weight 3 nexthop via 192.0.2.3")
    hops = running.json("ip -j route show 198.51.100.0/24")[0]["nexthops"]
    assert [(h["gateway"], h["weight"]) for h in hops] == [("192.0.2.2", 3), ("192.0.2.3", 1)]
    running.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2")
    running.ip("-6 route append 2001:db8:9::/48 via 2001:db8::3")
    hops = running.json("ip -j -6 route show 2001:db8:9::/48")[0]["nexthops"]
    assert [h["gateway"] for h in hops] == ["2001:db8::2", "2001:db8::3"]
    running.ip("-6 route del 2001:db8:9::/48 via 2001:db8::2")
    assert running.json("ip -j -6 route show 2001:db8:9::/48")[0]["gateway"] == "2001:db8::3"


@pytest.mark.parametrize("line,why", [
    ("route add 198.51.100.0/24 via 198.18.0.1", "Nexthop has invalid gateway"),
    ("route add 198.51.100.0/24 via 192.0.2.1", "Nexthop has invalid gateway"),
    ("route add 198.51.100.1/24 via 192.0.2.2", "Invalid prefix for given prefix length"),
    ("route add 198.51.100.0/24 via 192.0.2.2 src 198.18.0.1", "Invalid prefsrc address"),
    ("route add 198.51.100.0/24 via 192.0.2.2 window 1400", "RTAX_WINDOW"),
    ("route add 198.51.100.0/24 via 192.0.2.2 mtu lock 1400", "RTAX_LOCK"),
    ("route add 198.51.100.0/24 via 192.0.2.2 mtu 67", "RTAX_MTU: 67 is less than 68"),
    ("route add 198.51.100.0/24 dev p0 mtu 1400", "The MTU of a route without a gateway"),
    ("route add 198.51.100.0/24 via 192.0.2.2 table 9", "table 9"),
    ("route add 198.51.100.0/24 tos 16 via 192.0.2.2", "TOS"),
    ("route add multicast 224.0.0.0/4 dev p0", "type"),
    ("-6 route add 2001:db8:9::/48 via 2001:db8:5::1", "Nexthop has invalid gateway"),
    ("addr add 192.0.2.9/24 peer 192.0.2.10 dev p0", "peer"),
    ("addr add 224.0.0.1/24 dev p0", "Not an address"),
    ("addr add 192.0.2.9/24 valid_lft 10 preferred_lft 10 dev p0", "lifetimes"),
    ("neigh add proxy 192.0.2.3 dev p0", "Proxy"),
])
def test_refused_by_name(running, line, why):
    running.ip("addr add 192.0.2.1/24 dev p0")
    before = running.ip("route show table all").stdout
    result = running.ip(line, check=False)
    assert result.returncode != 0
    assert why in result.stderr
    assert running.ip("route show table all").stdout == before


def test_neighbours(running):
    running.ip("addr add 192.0.2.1/24 dev p0")
    running.ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:22 dev p0")
    running.ip("neigh add 2001:db8::2 lladdr 02:00:00:00:00:22 dev p0 nud reachable")
    shown = {n["dst"]: n for n in running.json("ip -j -s neigh show")}
    assert shown["192.0.2.2"]["lladdr"] == "02:00:00:00:00:22"
    assert shown["192.0.2.2"]["state"] == ["PERMANENT"]
    assert shown["2001:db8::2"]["state"] == ["REACHABLE"]
    running.ip("neigh replace 192.0.2.2 lladdr 02:00:00:00:00:33 dev p0 nud stale")
    shown = running.json("ip -j -4 neigh show")
    assert [(n["lladdr"], n["state"]) for n in shown] == [("02:00:00:00:00:33", ["STALE"])]
    running.ip("neigh del 192.0.2.2 dev p0")
    running.ip("neigh flush all")
    assert running.json("ip -j neigh show") == []
    assert running.ip("neigh del 192.0.2.2 dev p0", check=False).returncode == 2


def test_batch_of_many_routes(running, directory):
    lines = ["addr add 192.0.2.1/24 dev p0"]
    for i in range(20000):
        lines.append(f"route add 198.18.{i >> 8}.{i & 255}/32 via 192.0.2.{2 + i % 4}")
    batch = directory / "routes"
    batch.write_text("".join(line + "\n" for line in lines))
    running.run("ip", "-batch", str(batch))
    shown = running.json("ip -j route show")
    assert len(shown) == 20001
    assert len(running.json("ip -j route show via 192.0.2.5")) == 5000
    assert running.json("ip -j route get 198.18.77.9")[0]["gateway"] == "192.0.2.3"
    running.ip("route flush via 192.0.2.3")
    assert len(running.json("ip -j route show")) == 15001


def test_monitor(running, directory):
    from conftest import MILLRACE_EXEC

    log = directory / "monitor"
    with open(log, "wb") as out:
        monitor = subprocess.Popen(
            [str(MILLRACE_EXEC), "-s", str(running.ctl), "ip", "-o", "monitor", "address", "route",
             "neigh"], stdout=out)
    try:
        wanted = ["192.0.2.1/24", "Deleted 198.51.100.0/24 via 192.0.2.2",
                  "192.0.2.2 dev p0 lladdr 02:00:00:00:00:22 PERMANENT"]

        def seen():
            for line in ["addr replace 192.0.2.1/24 dev p0",
                         "route replace 198.51.100.0/24 via 192.0.2.2",
                         "route del 198.51.100.0/24",
                         "neigh replace 192.0.2.2 lladdr 02:00:00:00:00:22 dev p0",
                         "addr del 192.0.2.1/24 dev p0"]:
                running.ip(line)
            return all(text in log.read_text() for text in wanted)

        wait_for(seen, f"{wanted}")
    finally:
        monitor.kill()
        monitor.wait()


# --- two hosts with the kernel's own stack, and millrace between them ---


class Hosts:
    """Namespaces a, b and one in the middle whose interfaces have no address: they are millrace's."""

    def __init__(self, mtu):
        self.names = {n: f"mr{os.getpid()}{n}" for n in "abm"}
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        for n, i in (("a", 0), ("b", 1)):
            self.sh("m", f"ip link add v{i} type veth peer name eth0 netns {self.names[n]}")
            self.sh("m", f"sysctl -qw net.ipv6.conf.v{i}.disable_ipv6=1")
            self.sh("m", f"ip link set v{i} mtu {mtu} up")
            self.sh(n, f"ip link set eth0 mtu {mtu} up")
            self.sh(n, "ip link set lo up")
            # No NIC computes these checksums and no NIC cuts segments.
            self.sh(n, "ethtool -K eth0 tx off")
            self.sh("m", f"ethtool -K v{i} tx off")
            self.sh(n, f"ip addr add 198.18.{i}.2/24 dev eth0")
            self.sh(n, f"ip addr add 2001:db8:{i}::2/64 dev eth0 nodad")
            self.sh(n, f"ip route add default via 198.18.{i}.1")
            self.sh(n, f"ip -6 route add default via 2001:db8:{i}::1")

    def argv(self, n, line):
        return ["ip", "netns", "exec", self.names[n], *line.split()]

    def sh(self, n, line, check=True):
        result = subprocess.run(
            self.argv(n, line), capture_output=True, text=True, timeout=60, check=False)
        if check:
            assert result.returncode == 0, f"{n}: {line}: {result.stdout}{result.stderr}"
        return result.stdout

    def close(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def may_make_namespaces():
    if os.geteuid() != 0 or not all(shutil.which(t) for t in ("ping", "iperf3", "ethtool")):
        return False
    name = f"mr{os.getpid()}x"
    ok = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ok.returncode == 0


@pytest.fixture(params=[1500, 9000])
def hosts(request, millrace):
    if not may_make_namespaces():
        pytest.skip("needs root, network namespaces, ping, iperf3 and ethtool")
    h = Hosts(request.param)
    h.mtu = request.param
    try:
        # net_af_packet has the kernel put IPv4 fragments together before it sees them: room for
        # whole packets, which millrace fragments again.
        frame = 32768
        vdevs = [f"net_af_packet{i},iface=v{i},framesz={frame},blocksz={frame * 2},framecnt=512"
                 for i in range(2)]
        commands = ["set fwd ip"]
        for i in range(2):
            commands += [f"ip addr add 198.18.{i}.1/24 dev p{i}",
                         f"ip addr add 2001:db8:{i}::1/64 dev p{i}"]
        h.program = millrace(
            vdevs, [f"--mbuf-size={frame + 128 + 256}", "--total-num-mbufs=4096", "-i"],
            commands=commands + ["start"], wrapper=["ip", "netns", "exec", h.names["m"]])
        h.program.wait_output("start|forward")
        h.program.wait_ready()
        yield h
        h.program.stop()
    finally:
        h.close()


def test_hosts_talk(hosts):
    wait_for(lambda: "0% packet loss" in hosts.sh("a", "ping -c 1 -W 1 198.18.1.2", check=False),
             "a first ping")
    size = hosts.mtu - 28
    for target in ("198.18.1.2", "198.18.0.1"):
        out = hosts.sh("a", f"ping -c 20 -i 0.02 -W 2 -M do -s {min(size, 1400)} {target}")
        assert " 0% packet loss" in out
    for target in ("2001:db8:1::2", "2001:db8::1"):
        out = hosts.sh("a", f"ping -c 20 -i 0.02 -W 2 -s 1000 {target}")
        assert " 0% packet loss" in out
    # Fragments pass, in both directions, and are put together for an address of the router.
    assert " 0% packet loss" in hosts.sh("a", "ping -c 5 -i 0.05 -W 2 -s 24000 198.18.1.2")
    assert " 0% packet loss" in hosts.sh("a", "ping -c 5 -i 0.05 -W 2 -s 12000 198.18.0.1")
    neigh = {n["dst"]: n["state"] for n in hosts.program.json("ip -j neigh show")}
    assert neigh["198.18.1.2"] in (["REACHABLE"], ["STALE"], ["DELAY"], ["PROBE"])


def test_errors_reach_hosts(hosts):
    out = hosts.sh("a", "ping -c 1 -W 2 -t 1 198.18.1.2", check=False)
    assert "From 198.18.0.1" in out and "Time to live exceeded" in out
    out = hosts.sh("a", "ping -c 1 -W 2 192.0.2.1", check=False)
    assert "Net Unreachable" in out
    wait_for(lambda: "Host Unreachable" in hosts.sh("a", "ping -c 1 -W 8 198.18.1.77", check=False),
             "host unreachable")
    out = hosts.sh("a", "ping -c 1 -W 2 -t 1 2001:db8:1::2", check=False)
    assert "Hop limit" in out
    out = hosts.sh("a", "ping -c 1 -W 2 2001:db8:77::1", check=False)
    assert "No route" in out
    if shutil.which("traceroute"):
        out = hosts.sh("a", "traceroute -n -w 2 -q 1 198.18.1.2")
        assert re.search(r"^ *1 +198\.18\.0\.1 ", out, re.M) and "198.18.1.2 " in out


@pytest.mark.parametrize("target,how", [
    ("198.18.1.2", ""), ("198.18.1.2", "-u -b 20M -l 1400"),
    ("2001:db8:1::2", ""), ("2001:db8:1::2", "-u -b 20M -l 1400")])
def test_iperf3(hosts, target, how):
    server = subprocess.Popen(hosts.argv("b", "iperf3 -s -1"), stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: ":5201" in hosts.sh("b", "ss -tln"), "iperf3's server")
        out = json.loads(hosts.sh("a", f"iperf3 -c {target} -t 2 -J {how}"))
        assert out["end"]["sum_received" if not how else "sum"]["bytes"] > 1000000
    finally:
        server.kill()
        server.wait()
