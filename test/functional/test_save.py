# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""`save` and `restore`: what a restored instance shows with the real tc and ip, files that are wrong
in every way, and that a refused one changes nothing."""

import os
import random
import re
import stat
import struct
import subprocess

import pytest
from conftest import wait_for

PORTS = ["net_null0", "net_null1", "net_null2"]
QUEUES = ["--rxq=2", "--txq=2"]
# Mutations of a saved file: thousands by this variable.
MUTATIONS = int(os.environ.get("MILLRACE_SAVE_MUTATIONS", "400"))

LINKS = [
    "link set p0 mtu 1400", "link set p0 address 02:00:00:00:00:77", "link set p1 txqueuelen 77",
    "link set p1 alias uplink", "link set p2 down", "link set p1 promisc on",
    "link set p0 allmulticast on",
]
ROUTING = [
    "addr add 192.0.2.1/24 brd + dev p0", "addr add 192.0.2.2/24 dev p0", "addr add 192.0.2.3/32 dev p1",
    "addr add 203.0.113.1/24 dev p1 label p1:x", "addr add 2001:db8::1/64 dev p0",
    "addr add 2001:db8:1::1/64 dev p1 noprefixroute", "addr add fe80::7/64 dev p0",
    # reached by way of a route that sorts behind, and of one that is taken away below
    "route add 10.9.0.0/16 dev p1 scope link", "route add default via 10.9.0.1",
    "route add 198.18.0.0/16 via 203.0.113.9 mtu 1400 advmss 1000", "route add 198.19.0.0/16 via 203.0.113.77 metric 5",
    "route append 198.18.0.0/16 via 203.0.113.5", "route prepend 198.18.0.0/16 via 203.0.113.7",
    "route add 100.64.0.0/10 via 100.127.0.1 dev p0 onlink src 192.0.2.2",
    "route add 198.51.100.0/24 nexthop via 192.0.2.7 weight 3 nexthop via 203.0.113.8 "
    "nexthop dev p1 weight 250",
    "route add blackhole 198.51.100.128/25", "route add unreachable 198.51.100.0/25 metric 9",
    "route add prohibit 2001:db8:7::/48",
    "-6 route add 2001:db8:8::/48 via 2001:db8::2", "-6 route append 2001:db8:8::/48 via fe80::2 dev p1",
    "-6 route add default via fe80::1 dev p0 metric 7 proto static",
    "route del 203.0.113.0/24 dev p1",
    "neigh add 192.0.2.9 lladdr 02:00:00:00:bb:09 dev p0",
    "neigh add 2001:db8::9 lladdr 02:00:00:00:bb:09 dev p0 protocol static",
    "neigh add 192.0.2.10 lladdr 02:00:00:00:bb:10 dev p0 nud noarp",
    "neigh add 192.0.2.11 lladdr 02:00:00:00:bb:11 dev p0 nud reachable",
]
RULES = [
    "qdisc add dev p0 clsact",
    "qdisc add dev p1 root handle 1: prio bands 4 priomap 3 3 3 3 2 2 2 2 1 1 1 1 0 0 0 0",
    "qdisc add dev p1 clsact",
    "qdisc add dev p2 root handle 8: mq",
    "qdisc add dev p2 parent 8:1 handle 81: pfifo limit 33",
    "qdisc add dev p2 parent 8:2 handle 82: pfifo_fast",
    "qdisc add dev p2 ingress",
    # explicit: one bound once, one twice, one not at all; with and without a cookie
    "actions add action gact drop index 7 cookie 0123456789abcdef",
    "actions add action csum ip4h and udp index 3",
    "actions add action gact pass random determ drop 5 index 900 cookie aa",
    "actions add action mirred egress mirror dev p2 index 12 skip_hw",
    # chains: made, with and without rules, and made by rules
    "chain add dev p0 ingress chain 5",
    "chain add dev p0 ingress chain 6",
    # templates: with a rule, of two tags
    "chain add dev p0 egress chain 8 protocol ip flower dst_ip 0.0.0.0/16 ip_proto tcp src_port 1",
    "filter add dev p0 egress chain 8 pref 1 protocol ip flower dst_ip 10.0.0.0/8 action pass",
    "chain add dev p1 ingress chain 9 protocol 802.1ad flower vlan_id 1 vlan_ethtype 802.1q cvlan_id 1 "
    "cvlan_ethtype ip src_ip 0.0.0.0/8",
    "filter add dev p0 ingress chain 6 pref 2 protocol ip flower ip_proto tcp dst_port 80 "
    "action goto chain 77",
    "filter add dev p0 ingress chain 77 pref 1 matchall action gact index 7",
    "filter add dev p0 ingress pref 5 handle 9 matchall action goto chain 6",
    # several masks in one priority, the first come with the highest handle
    "filter add dev p0 egress pref 10 protocol ip handle 40 flower src_ip 192.0.2.0/24 action pass",
    "filter add dev p0 egress pref 10 protocol ip handle 4 flower dst_ip 198.51.100.7 action drop",
    "filter add dev p0 egress pref 10 protocol ip handle 30 flower src_ip 198.51.100.0/24 "
    "action gact index 7",
    "filter add dev p0 egress pref 10 protocol ip handle 2 flower ip_proto udp src_port 53 "
    "action csum ip4h and udp pipe index 3 action mirred egress redirect dev p1",
    "filter add dev p0 egress pref 11 protocol ipv6 flower dst_ip 2001:db8::/32 skip_hw "
    "action mirred egress mirror dev p2 index 12 action mirred ingress redirect dev p0",
    "filter add dev p0 egress pref 12 protocol 802.1q flower vlan_id 7 vlan_ethtype ip "
    "src_ip 203.0.113.1 action pass",
    "filter add dev p0 egress pref 13 protocol ip flower indev p1 ip_proto tcp "
    "dst_port 1000-2000 action drop",
    "filter add dev p0 egress pref 14 protocol arp flower arp_op request action pass",
    "filter add dev p1 parent 1: pref 3 protocol ip flower ip_proto udp flowid 1:2",
    "filter add dev p1 parent 1: pref 4 matchall flowid 1:4 action pass",
    "filter add dev p1 ingress matchall action drop index 55",
    "filter add dev p2 parent ffff: pref 1 protocol ip flower action gact index 55",
    "filter add dev p2 parent ffff: pref 2 protocol all matchall action pass action drop",
    "actions add action skbedit mark 5 priority 1:2 index 4 cookie 77",
    "actions add action vlan push id 5 protocol 802.1ad priority 3 index 4",
    "actions add action vlan pop index 6",
    "actions add action pedit ex munge ip ttl set 9 munge eth dst set 02:00:00:00:00:09 pipe index 4",
    "actions add action police rate 1mbit burst 20k conform-exceed drop/pipe index 4",
    "filter add dev p1 egress pref 1 matchall action skbedit queue_mapping 1 pipe "
    "action vlan modify id 9 pipe action pedit munge offset 0 u32 set 0x12345678",
    "filter add dev p1 egress pref 2 protocol ip flower ip_proto tcp action police "
    "rate 10mbit burst 100k mtu 2000 drop",
]
KINDS = ["gact", "csum", "mirred", "skbedit", "vlan", "pedit", "police"]
# What counts or ages, or differs with the instance.
CHANGING = {"stats", "stats64", "installed", "last_used", "used", "install", "first_used", "expires",
            "ifindex", "rule_hit", "hit"}


def stripped(shown):
    if isinstance(shown, dict):
        return {key: stripped(value) for key, value in shown.items() if key not in CHANGING}
    if isinstance(shown, list):
        return [stripped(value) for value in shown]
    return shown


def everything(program):
    """What tc and ip show of it."""
    shown = {"link": program.json("ip -j -d link show"), "qdisc": program.json("tc -j qdisc show")}
    for dev in [link["ifname"] for link in shown["link"]]:
        for where in ("ingress", "egress", "parent 1:", "parent ffff:", "root"):
            for what in ("filter", "chain"):
                line = f"tc -j {what} show dev {dev} {where}"
                if what == "chain" and where == "root":
                    continue
                shown[line] = program.json(line)
        shown[f"class {dev}"] = program.tc(f"class show dev {dev}").stdout
    for line in ("addr", "route show table all", "-6 route show table all",
                 "neigh show nud permanent", "neigh show nud noarp"):
        shown[line] = program.json(f"ip -j {line}")
    for kind in KINDS:
        shown[kind] = program.json(f"tc -j actions ls action {kind}")
    return stripped(shown)


class Prompting:
    """An instance whose prompt we type at. An answer is one line of `save` or `restore`."""

    ANSWER = re.compile(r"(?:^|> )((?:Saved \d|Restored \d|save: |restore: ).*)\n", re.M)

    def __init__(self, start, vdevs=PORTS, options=(), **how):
        self.program = start(vdevs, ["-i", *options], stdin=subprocess.PIPE, **how).wait_ready()
        self.seen = 0

    def type(self, lines):
        self.program.process.stdin.write("".join(line + "\n" for line in lines).encode())
        self.program.process.stdin.flush()

    def answers(self, lines):
        """Types all of them; their answers."""
        self.type(lines)

        def come():
            code = self.program.process.poll()
            assert code is None, f"ended with status {code}:\n{self.program.output[-4000:]}"
            found = [m.group(1) for m in self.ANSWER.finditer(self.program.output, self.seen)]
            return found if len(found) == len(lines) else None

        found = wait_for(come, "the answers to " + "; ".join(lines[:3]))
        self.seen = len(self.program.output)
        return found

    def answer(self, line):
        return self.answers([line])[0]

    def state(self, path):
        """The bytes that `save` writes."""
        assert self.answer(f"save {path}").startswith("Saved ")
        return path.read_bytes()

    def rich(self):
        for line in LINKS + ROUTING:
            self.program.ip(line)
        self.program.run("tc", "-batch", "-", stdin="\n".join(RULES) + "\n")
        return self


@pytest.fixture
def prompting(millrace):
    return lambda *args, **kwargs: Prompting(millrace, *args, **kwargs)


@pytest.fixture
def rich(prompting):
    return prompting(options=QUEUES).rich()


def test_restored_shows_the_same(rich, prompting, directory):
    first, second = directory / "first", directory / "second"
    state = rich.state(first)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    other = prompting(options=QUEUES)
    assert everything(other.program) != everything(rich.program)
    answer = other.answer(f"restore {first}")
    assert answer == f"Restored {len(messages(state)) - 2} objects from {first}"
    assert everything(other.program) == everything(rich.program)
    assert other.state(second) == state
    # flower asks masks as they came: 30 and 40 share the first
    assert handles(state, 1, 10) == [30, 40, 4, 2]
    # Names of rules' own actions and handles go on as they would have.
    for program in (rich.program, other.program):
        program.tc("filter add dev p0 ingress pref 90 matchall action pass")
        program.tc("filter add dev p0 egress pref 10 protocol ip flower src_ip 203.0.113.9 action drop")
        program.tc("actions add action gact pass")
    assert everything(other.program) == everything(rich.program)


def test_shared_blocks(prompting, directory):
    one, two = prompting(), prompting()
    for line in ("qdisc add dev p0 ingress_block 7 egress_block 8 clsact", "qdisc add dev p1 ingress_block 7 ingress",
                 "chain add block 7 chain 3", "filter add block 7 pref 1 matchall action goto chain 3",
                 "filter add block 7 chain 3 pref 1 protocol ip flower ip_proto udp action drop",
                 "filter add block 8 pref 1 matchall action pass"):
        one.program.tc(line)
    state = one.state(directory / "s")
    assert two.answer(f"restore {directory / 's'}").startswith("Restored ")
    assert two.state(directory / "t") == state
    assert everything(two.program) == everything(one.program)
    assert "ip_proto udp" in two.program.tc("filter show block 7").stdout
    two.program.tc("qdisc del dev p0 clsact")
    assert "ip_proto udp" in two.program.tc("filter show block 7").stdout


def test_restore_takes_the_place_of_what_is_there(rich, prompting, directory):
    state = rich.state(directory / "s")
    other = prompting(options=QUEUES)
    tc = other.program.tc
    tc("qdisc add dev p0 root handle 9: pfifo limit 5")
    tc("qdisc add dev p0 ingress")
    tc("qdisc add dev p1 clsact")
    tc("chain add dev p1 egress chain 9")
    tc("filter add dev p1 egress pref 1 matchall action drop index 7")
    tc("filter add dev p0 ingress pref 1 matchall action mirred egress redirect dev p2 index 3")
    tc("actions add action csum ip4h index 3")
    for line in ("addr add 198.18.0.1/16 dev p1", "addr add 2001:db8::99/64 dev p1",
                 "route add 192.0.2.0/24 via 198.18.0.2", "route add blackhole default",
                 "neigh add 192.0.2.9 lladdr 02:00:00:00:cc:cc dev p0",
                 "neigh add 198.18.0.5 lladdr 02:00:00:00:cc:cc dev p1"):
        other.program.ip(line)
    assert other.answer(f"restore {directory / 's'}").startswith("Restored ")
    assert other.state(directory / "t") == state
    assert everything(other.program) == everything(rich.program)


def test_restore_twice_and_empty(rich, prompting, directory):
    empty = prompting(options=QUEUES)
    empty_state, state = empty.state(directory / "empty"), rich.state(directory / "s")
    for name, bytes_ in (("s", state), ("s", state), ("empty", empty_state), ("s", state)):
        assert rich.answer(f"restore {directory / name}").startswith("Restored ")
        assert strip_addresses(rich.state(directory / "t")) == strip_addresses(bytes_)


def strip_addresses(state):
    """net_null's addresses are random at each start."""
    return state if isinstance(state, str) else re.sub(rb"\x0a\x00\x01\x00......", b"", state, flags=re.S)


def test_devices_go_by_name(rich, prompting, directory):
    """Indexes differ after a port came back, and so do buses: names count, also in mirred."""
    rich.state(directory / "s")
    other = prompting(["net_null5", "net_null6", "net_null7"], QUEUES)
    other.type(["port detach 0", "port attach net_null5"])
    wait_for(lambda: other.program.json("ip -j link show")[-1]["ifindex"] > 3, "the port")
    assert "p0" in other.program.ip("link show").stdout
    assert other.answer(f"restore {directory / 's'}").startswith("Restored ")
    shown, wanted = everything(other.program), everything(rich.program)
    for links in (shown["link"], wanted["link"], shown["addr"], wanted["addr"]):
        links.sort(key=lambda link: link["ifname"])
        for link in links:
            link.pop("parentdev", None)
    for qdiscs in (shown["qdisc"], wanted["qdisc"]):
        qdiscs.sort(key=lambda q: (q["dev"], q.get("parent", ""), q["handle"]))
    assert shown == wanted
    to = other.program.json("tc -j actions get action mirred index 12")[-1]["actions"][0]["to_dev"]
    assert to == "p2"


def test_routes_many(prompting, directory):
    """Routes by the ten thousand, and a traffic lookup that agrees."""
    one, two = prompting(PORTS[:2]), prompting(PORTS[:2])
    one.program.ip("addr add 192.0.2.1/24 dev p0")
    one.program.run("ip", "-batch", "-", stdin="".join(
        f"route add 198.{18 + n // 10000}.{n // 100 % 100}.{n % 100 * 2}/31 via 192.0.2.{2 + n % 7}\n"
        for n in range(20000)))
    state = one.state(directory / "s")
    assert two.answer(f"restore {directory / 's'}").startswith("Restored 20004 ")
    assert two.program.ip("route show").stdout == one.program.ip("route show").stdout
    assert strip_addresses(two.state(directory / "t")) == strip_addresses(state)
    assert two.program.json("ip -j route get 198.19.55.77")[0]["gateway"] == \
        one.program.json("ip -j route get 198.19.55.77")[0]["gateway"]


def test_names_come_back_by_bus_name(prompting, directory):
    one = prompting()
    one.program.ip("link set p1 name wan")
    one.program.tc("qdisc add dev wan clsact")
    one.program.tc("filter add dev wan ingress protocol ip flower indev wan "
                   "action mirred egress redirect dev p0")
    one.state(directory / "s")
    two = prompting()
    assert two.answer(f"restore {directory / 's'}").startswith("Restored ")
    assert everything(two.program) == everything(one.program)
    assert [link["ifname"] for link in two.program.json("ip -j link show")] == ["p0", "wan", "p2"]


def test_what_a_driver_cannot_change_is_left(prompting, directory):
    one = prompting(["net_null0"])
    one.program.ip("link set p0 mtu 1400 address 02:00:00:00:00:77 alias away")
    one.program.tc("qdisc add dev p0 clsact")
    one.state(directory / "s")
    other = prompting(["net_ring0"])
    before = other.program.json("ip -j link show")[0]
    assert other.answer(f"restore {directory / 's'}") == f"Restored 2 objects from {directory / 's'}"
    said = other.program.wait_output(r"^Left as they are: (\d) settings .* the first: (p0: .*)$")
    assert said.group(1) == "2" and "the driver cannot change the" in said.group(2)
    after = other.program.json("ip -j link show")[0]
    assert [after[k] == before[k] for k in ("mtu", "address")] == [True, True]
    assert after["ifalias"] == "away"
    assert "clsact" in other.program.tc("qdisc show dev p0").stdout


def test_port_that_left(prompting, directory):
    """What names a port that is gone cannot be made anew, nor become something else."""
    one = prompting()
    one.program.tc("qdisc add dev p0 clsact")
    one.program.tc("filter add dev p0 ingress pref 1 matchall action mirred egress mirror dev p2")
    one.state(directory / "s")
    one.type(["port detach 2"])
    wait_for(lambda: len(one.program.json("ip -j link show")) == 2, "its end")
    answer = one.answer(f"restore {directory / 's'}")
    assert answer.endswith('message 3 (RTM_NEWLINK): there is no device "p2" here')
    state = one.state(directory / "t")
    answer = one.answer(f"restore {directory / 't'}")
    assert answer.endswith("message 4 (RTM_NEWTFILTER): Cannot find device with index 3")
    assert one.state(directory / "u") == state
    one.program.tc("filter add dev p0 ingress pref 2 protocol ip flower indev p1 action drop")
    one.type(["port detach 1"])
    wait_for(lambda: len(one.program.json("ip -j link show")) == 1, "its end")
    one.program.tc("filter del dev p0 ingress pref 1")
    one.state(directory / "v")
    answer = one.answer(f"restore {directory / 'v'}")
    assert 'message 3 (RTM_NEWTFILTER): Cannot find device "/"; the state before is back but for ' \
        "1 objects" in answer


def test_beside_traffic(prompting, directory):
    one = prompting(PORTS[:2])
    one.program.tc("qdisc add dev p0 clsact")
    one.program.run("tc", "-batch", "-", stdin="".join(
        f"filter add dev p0 ingress pref {1 + n % 3} protocol {('ip', 'ipv6', 'arp')[n % 3]} flower "
        f"src_mac 02:00:00:00:{n >> 8:02x}:{n & 255:02x} action drop index {n + 1}\n"
        for n in range(6000)))
    state = one.state(directory / "s")
    one.type(["start"])
    one.program.wait_forwarding()
    for _ in range(5):
        assert one.answer(f"restore {directory / 's'}").startswith("Restored 6003 ")
    assert one.state(directory / "t") == state
    one.program.wait_forwarding("p1")
    one.type(["stop", "quit"])
    one.program.wait(0)


def test_printed_by_tc(rich, directory):
    """The file is what tc's own monitor prints."""
    rich.state(directory / "s")
    shown = rich.program.tc(f"monitor file {directory / 's'}").stdout
    for word in ("qdisc prio 1: dev p1 root", "chain dev p0 ingress chain 5", "index 7 ref",
                 "filter dev p0 egress protocol ip pref 10 flower", "Redirect to device p1"):
        assert word in shown, shown
    shown = rich.program.ip(f"monitor file {directory / 's'}").stdout
    for word in ("inet 192.0.2.2/24 scope global secondary p0", "default via 10.9.0.1 dev p1",
                 "192.0.2.9 dev p0 lladdr 02:00:00:00:bb:09 PERMANENT"):
        assert word in shown, shown


def messages(state):
    """(offset, length, type) of each message."""
    found, off = [], 0
    while off < len(state):
        length, kind = struct.unpack_from("=IH", state, off)
        found.append((off, length, kind))
        off += (length + 3) & ~3
    return found


NEWNEIGH = 28


def learnt(state):
    """With a neighbour that was not set by hand."""
    off = next(off for off, _, kind in messages(state) if kind == NEWNEIGH)
    return state[:off + 24] + struct.pack("=H", 1) + state[off + 26:]


def handles(state, dev, prio):
    """Of filters at a priority of a device's egress, in the order of the file."""
    found = [struct.unpack_from("=iIII", state, off + 20) for off, _, kind in messages(state)
             if kind == 44]
    return [handle for ifindex, handle, parent, info in found
            if (ifindex, parent, info >> 16) == (dev, 0xfffffff3, prio)]


def attributes(state, off, end):
    """Offsets of all attributes in [off, end), also nested ones; None: there are none."""
    found = []
    while off < end:
        if end - off < 4:
            return None
        length = struct.unpack_from("=H", state, off)[0]
        if length < 4 or off + length > end:
            return None
        found.append(off)
        if length > 8:
            found += attributes(state, off + 4, off + length) or []
        off += (length + 3) & ~3
    return found


HEADERS = {16: 16, 20: 8, 24: 12, 28: 12, 36: 20, 100: 20, 48: 4, 44: 20}  # by message type


def resized(state, offset, fmt, value):
    out = bytearray(state)
    struct.pack_into(fmt, out, offset, value & (0xffffffff if fmt == "=I" else 0xffff))
    return bytes(out)


def mutations(state, count):
    """Every length field wrong in several ways, cut short, bytes and whole messages changed."""
    rng = random.Random(1)
    found = []
    for off, length, kind in messages(state):
        found += [resized(state, off, "=I", v) for v in
                  (0, 1, 15, 16, 17, length - 4, length + 4, length + 1, 0x7fffffff, 0xffffffff)]
        found.append(state[:off] + state[off + ((length + 3) & ~3):])  # left out
        found.append(state[:off] + state[off:off + length] + state[off:])  # twice
        for at in attributes(state, off + 16 + HEADERS.get(kind, 16), off + length) or []:
            n = struct.unpack_from("=H", state, at)[0]
            found += [resized(state, at, "=H", v) for v in (0, 3, 4, n - 4, n - 1, n + 1, n + 4, 0xffff)]
    found += [state[:n] for n in range(0, len(state), max(1, len(state) // 200))]
    rng.shuffle(found)
    found = found[:count * 2 // 3]
    while len(found) < count:
        out = bytearray(state)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            out[rng.randrange(len(out))] = rng.choice((0, 1, 4, 255, rng.randrange(256)))
        found.append(bytes(out))
    return [m for m in found if m != state]


def test_damaged_files(rich, directory):
    """All or nothing: refused, and the state is as it was to the byte; or whole, and what it says
    can be saved and restored again."""
    base, one, two = directory / "base", directory / "one", directory / "two"
    state = rich.state(base)
    refused = taken = 0
    for number, damaged in enumerate(mutations(state, MUTATIONS)):
        path = directory / "damaged"
        path.write_bytes(damaged)
        answer, saved = rich.answers([f"restore {path}", f"save {one}"])
        assert saved.startswith("Saved "), saved
        if answer.startswith("restore: "):
            refused += 1
            assert str(path) in answer and "state before" not in answer, answer
            assert one.read_bytes() == state, f"mutation {number}: {answer}"
            continue
        taken += 1
        again = rich.answers([f"restore {one}", f"save {two}", f"restore {base}", f"save {two}.b"])
        assert all(a.startswith(("Restored", "Saved")) for a in again), f"{number}: {again}"
        assert two.read_bytes() == one.read_bytes(), f"mutation {number}"
        assert (directory / "two.b").read_bytes() == state, f"mutation {number}"
    assert refused > taken
    rich.program.stop()  # with no mbuf lost, and in sanitizer builds no memory
    print(f"{refused} refused, {taken} taken")


@pytest.mark.parametrize("change, said", [
    (lambda s: b"", "not a saved state"),
    (lambda s: s[:20], "not a saved state"),
    (lambda s: b"\x7fELF" * 100, "not a saved state"),
    (lambda s: s[:24] + struct.pack("=I", 2) + s[28:], "format 2, but this program reads format 1"),
    (lambda s: s[:24] + struct.pack(">I" if struct.pack("=I", 1)[0] else "<I", 1) + s[28:],
     "the other byte order"),
    (lambda s: s[:-20], "the end of the file is missing"),
    (lambda s: s[:-30], "where"),
    (lambda s: s + b"\0\0\0\0", "4 bytes follow the end"),
    (learnt, "neighbours that were learnt are no part of a state"),
    (lambda s: s.replace(b"matchall\0", b"matchcat\0"), '"matchcat" is not supported'),
    (lambda s: s.replace(b"p2\0", b"p9\0", 1).replace(b"net_null2", b"net_null9"),
     'there is no device "p9" here'),
])
def test_wrong_files(rich, directory, change, said):
    state = rich.state(directory / "s")
    shown = everything(rich.program)
    wrong = directory / "wrong"
    wrong.write_bytes(change(state))
    answer = rich.answer(f"restore {wrong}")
    assert answer.startswith(f"restore: {wrong}: ") and said in answer, answer
    assert rich.state(directory / "t") == state
    assert everything(rich.program) == shown
    rich.program.stop()


def test_no_file(rich, directory):
    state = rich.state(directory / "s")
    pipe = directory / "pipe"
    os.mkfifo(pipe)
    for path, said in ((directory / "none", "No such file"), (directory, "not a regular file"),
                       (pipe, "not a regular file"), ("/dev/null", "not a regular file"),
                       (directory / "s" / "x", "Not a directory"), ("a" * 300, "File name too long")):
        answer = rich.answer(f"restore {path}")
        assert answer.startswith(f"restore: {path}: ") and said in answer, answer
    for path, said in ((directory / "none" / "x", "No such file"), (directory, "not a regular file"),
                       (pipe, "not a regular file"), ("/dev/null", "not a regular file"),
                       ("a" * 300, "File name too long")):
        answer = rich.answer(f"save {path}")
        assert answer.startswith(f"save: {path}: ") and said in answer, answer
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert rich.state(directory / "t") == state
    assert sorted(p.name for p in directory.iterdir() if p.name != "m0") == ["pipe", "s", "t"]


def test_failed_save_leaves_the_old_file(prompting, directory):
    """There is no room: as a limit on the size of files says it, which ends no program here."""
    one = prompting(wrapper=["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"])
    old = one.state(directory / "s")
    one.program.run("tc", "-batch", "-", stdin="actions add action gact drop\n" * 2000)
    subprocess.run(["prlimit", "--pid", str(one.program.process.pid), "--fsize=65536"], check=True)
    answer = one.answer(f"save {directory / 's'}")
    assert answer == f"save: {directory / 's'}: File too large"
    assert (directory / "s").read_bytes() == old
    assert sorted(p.name for p in directory.iterdir()) == ["m0", "s"]


def test_link_to_a_file(rich, directory):
    (directory / "link").symlink_to("real")
    (directory / "real").write_text("old")
    state = rich.state(directory / "link")
    assert (directory / "link").is_symlink()
    assert (directory / "real").read_bytes() == state


def test_command_file(millrace, directory):
    """In a command file an error of theirs ends it, as any other."""
    program = millrace(PORTS[:2], commands=[
        "tc qdisc add dev p0 clsact", f"save {directory}/s", "tc qdisc del dev p0 clsact",
        f"restore {directory}/s", "tc filter add dev p0 ingress matchall action drop",
        f"restore {directory}/none", "save /nowhere/s"])
    output = program.wait(1)
    assert f"rules.cmd:6: restore: {directory}/none: No such file or directory" in output
