# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""What came out of a tunnel, and what we say about it, goes back into one or nowhere."""

import pytest
from conftest import drops
from scapy.layers.inet import ICMP, IP, IPOption_Timestamp, fragment
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, PadN
from scapy.packet import Raw
from test_ipsec import OUT, association, encrypted, plain, start, to_ip, to_port, tunnel

SECRET = b"to be kept secret"


def opened(frames):
    """What the peer finds in them; that all are ESP is checked by its opening them."""
    peer = association(OUT, 4)
    return [peer.decrypt(to_ip(data)) for data in frames]


def test_an_echo_with_options_is_answered_through_the_tunnel(pcap_job):
    """The reply has no options: policies are asked about where it lies, not about what was there."""
    four = IP(src="198.51.100.7", dst="192.0.2.1", options=[IPOption_Timestamp(timestamp=1)])
    four = four / ICMP(id=3, seq=4) / Raw(SECRET)
    six = IPv6(src="2001:db8:51::7", dst="2001:db8:2::1") / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 12)])
    six = six / ICMPv6EchoRequest(id=3, seq=4, data=SECRET)
    _, out, output = pcap_job.run(
        [], start(tunnel(4, 4) + tunnel(6, 4)[2:]) + ["show drops"],
        sent1=[encrypted(p, 4, seq) for seq, p in enumerate((four, six), start=1)])
    assert len(out) == 2, output
    assert not any(SECRET in data for data in out)
    answers = opened(out)
    four = next(p for p in answers if p.version == 4)
    assert (four.src, four.dst, four.ihl) == ("192.0.2.1", "198.51.100.7", 5)
    assert four[ICMP].type == 0 and bytes(four[ICMP].payload) == SECRET
    six = next(p for p in answers if p.version == 6)
    assert (six.src, six.dst) == ("2001:db8:2::1", "2001:db8:51::7")
    assert six[ICMPv6EchoReply].data == SECRET


@pytest.mark.parametrize("version", [4, 6])
def test_errors_about_what_was_decrypted_are_protected(pcap_job, version):
    """They quote it; and come from the address that the tunnel's policies know."""
    low = plain(version, SECRET, ttl=1, back=True)
    _, out, output = pcap_job.run(
        [], start(tunnel(version, 4)) + ["show drops"], sent1=[encrypted(low, 4, 1)], made=1)
    assert drops(output) == {"ip_ttl": 1}
    answer, = opened(out)
    assert answer.src == ("192.0.2.1" if version == 4 else "2001:db8:2::1")
    assert SECRET in bytes(answer)


@pytest.mark.parametrize("version", [4, 6])
def test_errors_that_no_tunnel_takes_are_not_sent(pcap_job, version):
    """Only the way in is protected here: the error would show on the way out what came in."""
    low = plain(version, SECRET, ttl=1, back=True)
    ways_in = [line for line in tunnel(version, 4) if "dir out" not in line]
    back, out, output = pcap_job.run(
        [], start(ways_in) + ["show drops"], sent1=[encrypted(low, 4, 1)], made=1)
    assert (back, out) == ([], [])
    assert drops(output) == {"ip_ttl": 1, "policy_none": 1}


def test_a_reassembled_request_is_answered_through_the_tunnel_or_not_at_all(pcap_job):
    """Fragmented inside the tunnel, so each part has an ESP of its own."""
    ask = IP(src="198.51.100.7", dst="192.0.2.1", id=9) / ICMP(id=3, seq=4) / Raw(SECRET * 120)
    parts = [encrypted(p, 4, seq) for seq, p in enumerate(fragment(ask, 1000), start=1)]
    both = tunnel(4, 4)
    _, out, output = pcap_job.run(
        [], start(both), sent1=parts, made=1 - len(parts) + 1)
    answers = opened(out)
    assert len(answers) == 2, output
    assert b"".join(bytes(p.payload) for p in answers)[8:] == SECRET * 120
    ways_in = [line for line in both if "dir out" not in line]
    _, out, output = pcap_job.run([], start(ways_in), sent1=parts, made=1 - len(parts))
    assert out == []
    assert drops(output) == {"policy_none": 1}
