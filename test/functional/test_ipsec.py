# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Mode ip with SAs and policies, as an operator types them: `ip xfrm`, and scapy at the other end."""

import frames
import pytest
from conftest import drops
from program import TEST_NIC
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.layers.l2 import Ether
from scapy.packet import Raw

INSIDE, OUTSIDE = "02:70:63:61:70:00", "02:70:63:61:70:01"  # net_pcap's p0 and p1
HOST, PEER = "02:00:00:00:00:22", "02:00:00:00:00:33"
KEY = bytes(range(16)) + b"salt"
BY_PROTOCOL = "inline_protocol" in (TEST_NIC or "")
OUT, IN = 0x1001, 0x2001
ALGORITHM = f"proto esp mode tunnel reqid 1 replay-window 64 aead rfc4106(gcm(aes)) 0x{KEY.hex()} 128"
ENDS = {4: ("198.18.0.1", "198.18.0.2"), 6: ("2001:db8:18::1", "2001:db8:18::2")}
NETS = {4: ("192.0.2.0/24", "198.51.100.0/24"), 6: ("2001:db8:2::/64", "2001:db8:51::/64")}

ADDRESSES = [
    "set fwd ip",
    "ip addr add 192.0.2.1/24 dev p0",
    "ip addr add 2001:db8:2::1/64 dev p0",
    "ip addr add 198.18.0.1/24 dev p1",
    "ip addr add 2001:db8:18::1/64 dev p1",
    f"ip neigh add 192.0.2.7 lladdr {HOST} dev p0",
    f"ip neigh add 2001:db8:2::7 lladdr {HOST} dev p0",
    f"ip neigh add 198.18.0.2 lladdr {PEER} dev p1",
    f"ip neigh add 2001:db8:18::2 lladdr {PEER} dev p1",
    "ip route add 198.51.100.0/24 via 198.18.0.2",
    "ip route add 2001:db8:51::/64 via 2001:db8:18::2",
]


def tunnel(inner, outer, extra=""):
    """SAs of both directions, and the policies of one family of inner packets."""
    ours, theirs = ENDS[outer]
    local, remote = NETS[inner]
    ends = f"src {ours} dst {theirs}"
    back = f"src {theirs} dst {ours}"
    # As in Linux: an SA's selector is of the family of its ends unless this flag is given.
    extra += " flag af-unspec"
    return [
        f"ip xfrm state add {ends} spi {OUT} {ALGORITHM} {extra}",
        f"ip xfrm state add {back} spi {IN} {ALGORITHM} {extra}",
        f"ip xfrm policy add src {local} dst {remote} dir out tmpl {ends} proto esp reqid 1 mode tunnel",
        f"ip xfrm policy add src {remote} dst {local} dir fwd tmpl {back} proto esp reqid 1 mode tunnel",
        f"ip xfrm policy add src {remote} dst {local} dir in tmpl {back} proto esp reqid 1 mode tunnel",
    ]


def association(spi, outer):
    ours, theirs = ENDS[outer]
    header = (IP if outer == 4 else IPv6)(**({"src": ours, "dst": theirs} if spi == OUT else
                                            {"src": theirs, "dst": ours}))
    return SecurityAssociation(ESP, spi=spi, crypt_algo="AES-GCM", crypt_key=KEY, tunnel_header=header)


def plain(version, payload=b"to be kept secret", ttl=64, back=False, **fields):
    a, b = ("192.0.2.7", "198.51.100.7") if version == 4 else ("2001:db8:2::7", "2001:db8:51::7")
    if back:
        a, b = b, a
    if version == 4:
        header = IP(src=a, dst=b, ttl=ttl, id=77, **fields)
    else:
        header = IPv6(src=a, dst=b, hlim=ttl, **fields)
    return header / UDP(sport=1000, dport=2000) / Raw(payload)


def to_port(port, packet):
    mac, source = ((INSIDE, HOST), (OUTSIDE, PEER))[port]
    return bytes(Ether(dst=mac, src=source) / packet)


def to_ip(data):
    packet = Ether(data)
    assert packet.type in (0x0800, 0x86DD)
    return packet.payload


def encrypted(packet, outer, seq, spi=IN):
    """As the peer sends it."""
    return to_port(1, association(spi, outer).encrypt(packet, seq_num=seq))


def forwarded(packet):
    """What routing does to it."""
    packet = packet.copy()
    if IPv6 in packet:
        packet.hlim -= 1
    else:
        packet.ttl -= 1
        del packet.chksum
    return bytes(packet)


def start(commands):
    return ADDRESSES + commands + ["start"]


def assert_by_nic(job, port, counter, n):
    """The NIC did it, where this suite's ports are NICs that do ESP (program.TEST_NIC)."""
    if job.nics:
        assert job.nics[port][counter] == n, job.nics[port]


BOTH = pytest.mark.parametrize("inner,outer", [(4, 4), (6, 4), (4, 6), (6, 6)])


@BOTH
def test_what_a_policy_wants_leaves_as_esp(pcap_job, inner, outer):
    sent = [plain(inner, bytes([65 + i]) * (i * 33)) for i in range(40)]
    back, out, output = pcap_job.run(
        [to_port(0, p) for p in sent], start(tunnel(inner, outer)) + ["show ipsec cache"])
    assert back == []
    assert len(out) == 40, output
    peer = association(OUT, outer)
    for seq, (packet, data) in enumerate(zip(sent, out), start=1):
        frame = Ether(data)
        assert (frame.dst, frame.src) == (PEER, OUTSIDE)
        esp = to_ip(data)
        assert esp[ESP].seq == seq and esp[ESP].spi == OUT
        assert b"AAAA" not in data
        assert bytes(peer.decrypt(esp)) == forwarded(packet), seq
    assert_by_nic(pcap_job, "1", "tx_protected", 40)


@BOTH
def test_esp_for_us_is_opened_and_forwarded(pcap_job, inner, outer):
    sent = [plain(inner, bytes([65 + i]) * (i * 33), back=True) for i in range(40)]
    back, out, output = pcap_job.run(
        [], start(tunnel(inner, outer)),
        sent1=[encrypted(p, outer, seq) for seq, p in enumerate(sent, start=1)])
    assert out == []
    assert [bytes(to_ip(data)) for data in back] == [forwarded(p) for p in sent], output
    assert all(Ether(data).dst == HOST for data in back)
    assert_by_nic(pcap_job, "1", "rx_decrypted", 40)


@pytest.mark.skipif(BY_PROTOCOL, reason="the NIC opens it before tc sees it")
def test_redirected_esp_came_in_by_the_other_port(pcap_job):
    """Policies see the device that tc says it came in by, whoever opens it."""
    policies = [line.replace("dir fwd", "dev p0 dir fwd") for line in tunnel(4, 4)]
    sent = [plain(4, bytes([i]), back=True) for i in range(9)]
    frames_in = [Ether(encrypted(p, 4, seq)) for seq, p in enumerate(sent, start=1)]
    for frame in frames_in:
        frame.dst = INSIDE
    back, _, output = pcap_job.run(
        [], start(policies + [
            "ip xfrm policy add src 198.51.100.0/24 dst 192.0.2.0/24 dir fwd priority 9 action block",
            "tc qdisc add dev p1 clsact",
            "tc filter add dev p1 ingress matchall action mirred ingress redirect dev p0"]),
        sent1=[bytes(frame) for frame in frames_in])
    assert [bytes(to_ip(data)) for data in back] == [forwarded(p) for p in sent], output


def test_nat_traversal(pcap_job):
    """RFC 3948, both ways; IKE is nobody's here, a keepalive is read."""
    extra = "encap espinudp 4500 4500 0.0.0.0"
    sent = [plain(4), plain(4, b"x" * 200)]
    udp = UDP(sport=4500, dport=4500)
    back_sent = [plain(4, b"back", back=True), plain(4, b"y" * 99, back=True)]
    peer = SecurityAssociation(
        ESP, spi=IN, crypt_algo="AES-GCM", crypt_key=KEY, nat_t_header=udp,
        tunnel_header=IP(src="198.18.0.2", dst="198.18.0.1"))
    arriving = []
    for seq, p in enumerate(back_sent, start=1):
        packet = peer.encrypt(p, seq_num=seq)
        del packet[UDP].len, packet[UDP].chksum, packet[IP].len, packet[IP].chksum
        arriving.append(to_port(1, packet))
    outer = IP(src="198.18.0.2", dst="198.18.0.1")
    arriving.append(to_port(1, outer / udp / Raw(b"\xff")))
    arriving.append(to_port(1, outer / udp / Raw(b"\0\0\0\0" + b"IKE" * 20)))
    back, out, output = pcap_job.run(
        [to_port(0, p) for p in sent], start(tunnel(4, 4, extra)) + ["show drops"], sent1=arriving)
    assert [bytes(to_ip(data)) for data in back] == [forwarded(p) for p in back_sent], output
    assert len(out) == 2
    opener = SecurityAssociation(
        ESP, spi=OUT, crypt_algo="AES-GCM", crypt_key=KEY, nat_t_header=udp,
        tunnel_header=IP(src="198.18.0.1", dst="198.18.0.2"))
    for packet, data in zip(sent, out):
        esp = to_ip(data)
        assert esp.proto == 17 and esp[UDP].len == len(esp) - 20
        assert bytes(opener.decrypt(esp)) == forwarded(packet)
    assert drops(output)["esp_keepalive"] == 1
    assert drops(output)["no_host_path"] == 1


def test_nothing_a_policy_wants_passes_in_clear(pcap_job):
    """Out without an SA; in without ESP; by the wrong SA; a fragment whose ports nobody sees."""
    policies = tunnel(4, 4)[2:]
    no_sa = pcap_job.run([to_port(0, plain(4))], start(policies) + ["show drops"])
    assert no_sa[:2] == ([], [])
    assert drops(no_sa[2])["policy_no_sa"] == 1

    clear = pcap_job.run(
        [], start(tunnel(4, 4)), sent1=[to_port(1, plain(4, back=True))])
    assert clear[:2] == ([], [])
    assert drops(clear[2])["policy_clear"] == 1

    # Decrypted, but nothing allows it.
    none = pcap_job.run([], start(tunnel(4, 4)[:2]), sent1=[encrypted(plain(4, back=True), 4, 1)])
    assert none[:2] == ([], [])
    assert drops(none[2])["policy_none"] == 1

    # An address behind the tunnel that the policy does not name.
    stray = IP(src="203.0.113.9", dst="192.0.2.7") / UDP() / Raw(b"x")
    other = pcap_job.run([], start(tunnel(4, 4)), sent1=[encrypted(stray, 4, 1)])
    assert other[:2] == ([], [])
    assert drops(other[2])["policy_none"] == 1

    ports = [line.replace("dir out", "proto udp dport 2000 dir out") for line in tunnel(4, 4)]
    parts = fragment(plain(4, b"z" * 3000), 1400)
    pieces = pcap_job.run([to_port(0, p) for p in parts], start(ports))
    assert pieces[:2] == ([], []), pieces[2]
    assert drops(pieces[2])["policy_fragment"] == len(parts)


def test_default_and_blocking_policies(pcap_job):
    block = ["ip xfrm policy add src 192.0.2.0/24 dst 198.51.100.0/24 dir out action block"]
    _, out, output = pcap_job.run([to_port(0, plain(4)), to_port(0, plain(6))], start(block))
    assert [to_ip(data).version for data in out] == [6]
    assert drops(output)["policy_block"] == 1
    _, out, output = pcap_job.run(
        [to_port(0, plain(4)), to_port(0, plain(6))],
        start(["ip xfrm policy setdefault fwd block",
               "ip xfrm policy add src 2001:db8:2::/64 dst 2001:db8:51::/64 dir fwd"]))
    assert [to_ip(data).version for data in out] == [6]
    assert drops(output)["policy_block"] == 1


def test_hostile_esp_harms_no_other(pcap_job):
    good = [plain(4, bytes([i]) * 60, back=True) for i in range(1, 9)]
    frames_in = [encrypted(p, 4, seq) for seq, p in enumerate(good, start=1)]
    bent = bytearray(frames_in[0])
    bent[-20] ^= 1
    replayed = frames_in[0]
    unknown = encrypted(plain(4, back=True), 4, 1, spi=0x7777)
    cut = to_port(1, IP(src="198.18.0.2", dst="198.18.0.1", proto=50) / Raw(b"\0\0\x20\x01\0\0\0\x09abc"))
    mixed = []
    for i, data in enumerate(frames_in):
        mixed += [data, (bytes(bent), replayed, unknown, cut)[i % 4]]
    back, _, output = pcap_job.run([], start(tunnel(4, 4)) + ["show drops"], sent1=mixed)
    assert [bytes(to_ip(data)) for data in back] == [forwarded(p) for p in good], output
    got = drops(output)
    assert got["esp_no_sa"] == 2
    if BY_PROTOCOL:
        # The NIC says that it failed and not why; the SA then goes on in software.
        assert sum(got.values()) == len(good) and got["esp_device"] > 0
        return
    assert got["esp_malformed"] == 2
    # The bent one has a number that is used up already the first time it comes.
    assert got["esp_replay"] + got.get("esp_icv", 0) == 4


def test_too_big_for_the_tunnel(pcap_job):
    """D18: DF is answered with the inner MTU, the rest fragmented before it is sealed."""
    df = plain(4, b"d" * 1450, flags="DF")
    nodf = plain(4, b"n" * 1450)
    six = plain(6, b"s" * 1440)
    back, out, output = pcap_job.run(
        [to_port(0, df), to_port(0, nodf), to_port(0, six)],
        start(tunnel(4, 4) + tunnel(6, 4)[2:]) + ["show drops"], made=3)
    assert drops(output)["ip_too_big"] == 2, output
    answers = [to_ip(data) for data in back]
    four = next(p for p in answers if p.version == 4)
    assert (four[ICMP].type, four[ICMP].code) == (3, 4)
    mtu = four[ICMP].nexthopmtu
    assert 1420 <= mtu <= 1450
    assert next(p for p in answers if p.version == 6)[ICMPv6PacketTooBig].mtu == mtu
    peer = association(OUT, 4)
    parts = [peer.decrypt(to_ip(data)) for data in out]
    assert len(parts) == 2
    assert all(len(data) <= 14 + 1500 for data in out)
    assert len(parts[0]) <= mtu and len(parts[0]) > mtu - 8
    whole = bytes(parts[0].payload) + bytes(parts[1].payload)
    assert whole == bytes(nodf.payload)


def test_our_own_packets_are_protected_too(pcap_job):
    """An echo request through the tunnel to an address of ours is answered through the tunnel."""
    ask = IP(src="198.51.100.7", dst="192.0.2.1") / ICMP(id=3, seq=4) / Raw(b"hello there")
    clear = to_port(1, ask)
    _, out, output = pcap_job.run(
        [], start(tunnel(4, 4)) + ["show drops"], sent1=[encrypted(ask, 4, 1), clear])
    assert len(out) == 1, output
    answer = association(OUT, 4).decrypt(to_ip(out[0]))
    assert (answer.src, answer.dst) == ("192.0.2.1", "198.51.100.7")
    assert answer[ICMP].type == 0 and bytes(answer[ICMP].payload) == b"hello there"
    assert answer.ttl == 64
    assert drops(output)["policy_clear"] == 1


def test_ttl_and_dscp(pcap_job):
    low = plain(4, ttl=1)
    marked = plain(4, tos=0xB8 | 2)
    back, out, output = pcap_job.run(
        [to_port(0, low), to_port(0, marked)], start(tunnel(4, 4)), made=1)
    assert (to_ip(back[0])[ICMP].type, to_ip(back[0]).src) == (11, "192.0.2.1")
    assert len(out) == 1, output
    assert to_ip(out[0]).tos == 0xB8 | 2
    assert association(OUT, 4).decrypt(to_ip(out[0])).tos == 0xB8 | 2


def test_fragmented_esp_is_put_together_first(pcap_job):
    """D16."""
    packet = plain(4, b"f" * 1400, back=True)
    esp = association(IN, 4).encrypt(packet, seq_num=1)
    parts = fragment(esp, 700)
    assert len(parts) > 1
    back, _, output = pcap_job.run(
        [], start(tunnel(4, 4)), sent1=[to_port(1, p) for p in parts], made=1 - len(parts))
    if BY_PROTOCOL:
        # The numbers that came are known to the NIC alone, which opens no fragments.
        assert back == [] and drops(output) == {"esp_device": 1}
        return
    assert [bytes(to_ip(data)) for data in back] == [forwarded(packet)], output


def test_tcp_inner_segments_of_two_flows(pcap_job):
    """Flows interleaved: each keeps its order, one SA numbers both."""
    sent = []
    for i in range(60):
        sent.append(IP(src="192.0.2.7", dst=f"198.51.100.{7 + i % 2}") /
                    TCP(sport=1, dport=2, seq=i) / Raw(b"q" * i))
    _, out, output = pcap_job.run([to_port(0, p) for p in sent], start(tunnel(4, 4)))
    peer = association(OUT, 4)
    assert [bytes(peer.decrypt(to_ip(data))) for data in out] == [forwarded(p) for p in sent], output


@pytest.mark.parametrize("options", [[], ["--ipsec-numbers=shared"]])
def test_two_lcores_share_an_sa(millrace, directory, options):
    """D12: no number twice; from one lcore, so that they follow the order of sending, or from both."""
    count = 1000  # fewer than the ring of packets handed over holds
    third = "02:70:63:61:70:02"
    for port, mac in ((0, INSIDE), (2, third)):
        frames.write(directory / f"in{port}.pcap",
                     [bytes(Ether(dst=mac, src=HOST) / plain(4, bytes([port]) * 8 + i.to_bytes(4, "big")))
                      for i in range(count)])
    frames.write(directory / "in1.pcap", [])
    vdevs = [f"net_pcap{i},rx_pcap={directory}/in{i}.pcap,tx_pcap={directory}/out{i}.pcap" for i in range(3)]
    program = millrace(
        vdevs, ["--idle-exit=300", "--nb-cores=2", "--port-topology=chained", *options],
        commands=start(tunnel(4, 4))[:-1] + ["ip link set p1 txqueuelen 100000", "start"], lcores="0@0,1@0,2@1")
    output = program.wait()
    peer = association(OUT, 4)
    seqs, payloads = [], {0: [], 2: []}
    for data in frames.read(directory / "out1.pcap"):
        packet = to_ip(data)
        seqs.append(packet[ESP].seq)
        inner = bytes(peer.decrypt(packet)[UDP].payload)
        payloads[inner[0]].append(int.from_bytes(inner[8:], "big"))
    assert len(seqs) == len(set(seqs)) == 2 * count, output
    assert payloads == {0: list(range(count)), 2: list(range(count))}
    if not options:
        assert seqs == sorted(seqs)


def test_refusals_change_nothing(running):
    state = f"src 198.18.0.1 dst 198.18.0.2 spi 0x1001 {ALGORITHM}"
    running.ip(f"xfrm state add {state}")
    before = running.ip("xfrm state list").stdout
    for line in (f"xfrm state add {state}",
                 f"xfrm state add {state.replace('0x1001', '5')}",
                 f"xfrm state add {state.replace('0x1001', '7000').replace('tunnel', 'transport')}",
                 f"xfrm state add {state.replace('0x1001', '7000').replace(' 128', ' 104')}",
                 f"xfrm state add {state.replace('0x1001', '7000').replace('rfc4106(gcm(aes))', 'rot13')}",
                 "xfrm state delete src 198.18.0.1 dst 198.18.0.2 proto esp spi 0x9999"):
        result = running.ip(line, check=False)
        assert result.returncode != 0, line
        assert result.stderr.strip(), line
    assert running.ip("xfrm state list").stdout == before
    running.ip("xfrm state delete src 198.18.0.1 dst 198.18.0.2 proto esp spi 0x1001")
    assert running.ip("xfrm state list").stdout == ""
