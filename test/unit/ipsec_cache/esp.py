#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""ESP against scapy: what is sealed has to be what scapy seals, byte for byte, and the other way.

usage: esp.py SHELL [--backend=NAME] [TEST...]

Each function esp_* is a test, named after the rule it holds. Back ends are the shell's; whichever
does the work, the same has to come of it.
"""

import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.all import ICMP, IP, TCP, UDP, Ether, IPv6, Raw, raw  # noqa: E402
from scapy.layers.inet6 import IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN  # noqa: E402
from scapy.layers.ipsec import ESP, SecurityAssociation  # noqa: E402
from scapy.utils import wrpcap  # noqa: E402

OUTER = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
KEYS = {bits: bytes(range(1, bits // 8 + 5)) for bits in (128, 192, 256)}
rng = random.Random(4303)


class Answer(str):
    """What the shell says. A NIC that does ESP by itself says only that it failed, not for what."""

    failures = {f"drop esp_{name}" for name in ("dummy", "ecn", "encap", "icv", "inner", "malformed", "pad", "replay")}

    def __eq__(self, other):
        if str.__eq__(self, "vanished"):
            return str(other) == "drop esp_dummy"
        return str.__eq__(self, other) or (str.__eq__(self, "drop esp_device") and other in self.failures)

    __hash__ = str.__hash__


class Shell:
    """The program under test. Each SA of a test has an SPI of its own."""

    def __init__(self, path, backend="cpu"):
        self.backend = backend
        self.whole = backend.endswith("-protocol")  # numbers and reasons are the device's
        options = [] if backend == "cpu" else [f"--backend={backend}"]
        self.process = subprocess.Popen(
            [path, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.spi = 0x1000
        for src, dst in OUTER.values():
            self.ask(f"local {dst}", "ok")

    def ask(self, line, expect=None):
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().strip()
        assert answer, f"no answer to {line[:200]}"
        if expect is not None:
            assert answer == expect, f"{line[:200]}: {answer}"
        return Answer(answer) if self.whole else answer

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


class Sa:
    """An SA here and in scapy."""

    def __init__(self, shell, outer=4, key=KEYS[128], null=False, nat=None, **words):
        self.shell, self.outer, self.null, self.nat = shell, outer, null, nat
        self.words = words
        self.esn = words.get("esn", 0)
        shell.spi += 1
        self.spi = shell.spi
        self.src, self.dst = OUTER[outer]
        line = f"sa src={self.src} dst={self.dst} spi={self.spi} key={key.hex()}"
        if null:
            line += " null=1"
        if nat:
            line += f" sport={nat[0]} dport={nat[1]}"
        for name, value in words.items():
            line += f" {name}={value}"
        shell.ask(line, "ok")
        self.key = key

    def peer(self, **header):
        """scapy's SA, with an outer header of those fields."""
        if self.outer == 4:
            tunnel = IP(src=self.src, dst=self.dst, ttl=64, **{"id": 0, **header})
        else:
            tunnel = IPv6(src=self.src, dst=self.dst, hlim=64, **header)
        nat = UDP(sport=self.nat[0], dport=self.nat[1]) if self.nat else None
        crypt = {} if self.null else {"crypt_algo": "AES-GCM", "crypt_key": self.key}
        return SecurityAssociation(
            ESP, spi=self.spi, tunnel_header=tunnel, nat_t_header=nat, esn_en=bool(self.esn), **crypt
        )

    def encrypt(self, packet, seq, iv=None, **header):
        """The frame that scapy makes."""
        peer = self.peer(**header)
        peer.esn = seq >> 32
        iv = b"" if self.null else iv or rng.randbytes(8)
        # scapy takes a number of 0 for none: seq_num says it then
        peer.seq_num = seq & 0xFFFFFFFF
        if (seq >> 32) == 0 and self.esn:
            peer.esn = 0
        sealed = peer.encrypt(packet, seq_num=seq & 0xFFFFFFFF, iv=iv or None)
        if self.nat:
            # scapy 2.5 takes the header's own length for the datagram's
            sealed[UDP].len = None
            if self.outer == 6:
                sealed[UDP].chksum = None
        return raw(Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / sealed)

    def seal(self, frame, **words):
        line = f"seal dst={self.dst} spi={self.spi} frame={bytes(frame).hex()}"
        for name, value in words.items():
            line += f" {name}={value}"
        return self.shell.ask(line)

    def open(self, frame, **words):
        line = f"open frame={bytes(frame).hex()}"
        for name, value in words.items():
            line += f" {name}={value}"
        return self.shell.ask(line)

    def show(self):
        words = self.shell.ask(f"show dst={self.dst} spi={self.spi}").split()
        return {name: int(value) for name, value in zip(words[::2], words[1::2])}

    def iv_at(self):
        return 14 + (20 if self.outer == 4 else 40) + (8 if self.nat else 0) + 8


def frame(packet):
    return raw(Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / packet)


def inner(version, size=64, **header):
    """An inner packet of `size` bytes of payload."""
    payload = UDP(sport=1000, dport=2000) / Raw(rng.randbytes(size))
    if version == 4:
        return IP(raw(IP(src="198.51.100.1", dst="203.0.113.1", **header) / payload))
    return IPv6(raw(IPv6(src="2001:db8:1::1", dst="2001:db8:2::1", **header) / payload))


def done(answer):
    assert answer.startswith("done "), answer
    return bytes.fromhex(answer[5:])


def check_seal(sa, packet, seq, cut=0, header=None, **words):
    """Seals a packet; scapy, told number, IV and ID, has to make the same bytes of it."""
    got = done(sa.seal(frame(packet), cut=cut, **words))
    at = sa.iv_at()
    iv = got[at : at + 8]
    fields = dict(header or {})
    if sa.outer == 4:
        fields["id"] = IP(got[14:]).id
    expect = sa.encrypt(packet, seq, iv, **fields)
    assert got[12:] == expect[12:], f"\n got {got[14:].hex()}\nwant {expect[14:].hex()}"
    return got


def check_open(sa, packet, seq, cut=0, expect=None, **words):
    got = done(sa.open(sa.encrypt(packet, seq, **words), cut=cut))
    want = raw(packet) if expect is None else raw(expect)
    assert got[14:] == want, f"\n got {got[14:].hex()}\nwant {want.hex()}"


def outer_fields(outer, packet):
    """What the outer header shows of an inner packet: TOS, DF, flow label."""
    v4 = packet.version == 4
    tos = packet.tos if v4 else packet.tc
    if outer == 4:
        df = packet.flags.DF if v4 else True
        return {"tos": tos, "flags": "DF" if df else 0}
    return {"tc": tos, "fl": 0 if v4 else packet.fl}


def esp_D13_layout_is_scapys(shell):
    for outer in (4, 6):
        for version in (4, 6):
            for bits, key in KEYS.items():
                sa = Sa(shell, outer, key)
                for seq, size in enumerate((0, 1, 2, 3, 4, 18, 64, 255, 1372), 1):
                    packet = inner(version, size)
                    check_seal(sa, packet, seq, header=outer_fields(outer, packet))
                    check_open(sa, packet, seq)


def esp_D13_extended_numbers_are_authenticated(shell):
    for outer in (4, 6):
        sa = Sa(shell, outer, esn=1, oseq=(7 << 32) - 2, seq=(7 << 32) - 2)
        for seq in range((7 << 32) - 1, (7 << 32) + 3):
            packet = inner(4, 50)
            if seq & 0xFFFFFFFF == 0:  # scapy cannot send that number
                done(sa.seal(frame(packet)))
                continue
            check_seal(sa, packet, seq, header=outer_fields(outer, packet))
            check_open(sa, packet, seq)
        wrong = sa.encrypt(inner(4), (9 << 32) + 100)
        assert sa.open(wrong) == "drop esp_icv"


def esp_null_cipher_is_scapys(shell):
    for outer in (4, 6):
        for nat in (None, (4500, 4500)):
            sa = Sa(shell, outer, null=True, nat=nat)
            for seq, size in enumerate((0, 1, 2, 3, 64, 1400), 1):
                packet = inner(4, size)
                check_seal(sa, packet, seq, header=outer_fields(outer, packet))
                check_open(sa, packet, seq, cut=seq * 13)


def esp_D20_udp_encapsulation(shell):
    for outer in (4, 6):
        sa = Sa(shell, outer, nat=(4500, 4500))
        for seq, size in enumerate((0, 1, 77, 1300), 1):
            packet = inner(4, size)
            got = check_seal(sa, packet, seq, header=outer_fields(outer, packet))
            udp = IP(got[14:])[UDP] if outer == 4 else IPv6(got[14:])[UDP]
            assert udp.len == len(got) - 14 - (20 if outer == 4 else 40)
            if outer == 4:
                assert udp.chksum == 0
            check_open(sa, packet, seq)
        # a checksum that is not zero is accepted, and not looked at
        sealed = bytearray(sa.encrypt(inner(4), 10))
        sealed[sa.iv_at() - 10 : sa.iv_at() - 8] = b"\x12\x34"
        done(sa.open(sealed))
        # one that moved is still the peer; its port is another
        sealed = bytearray(sa.encrypt(inner(4), 11))
        sealed[sa.iv_at() - 16 : sa.iv_at() - 14] = b"\x77\x77"
        done(sa.open(sealed))


def udp_frame(outer, data, dport=4500, dst=None):
    src, own = OUTER[outer]
    ip = IP(src=src, dst=dst or own) if outer == 4 else IPv6(src=src, dst=dst or own)
    return frame(ip / UDP(sport=4500, dport=dport) / Raw(data))


def esp_D20_what_is_no_esp(shell):
    sa = Sa(shell, nat=(4500, 4500))
    for outer in (4, 6):
        assert sa.open(udp_frame(outer, b"\xff")) == "drop esp_keepalive"
        assert sa.open(udp_frame(outer, b"\0\0\0\0" + bytes(28))) == "not ours"  # IKE
        assert sa.open(udp_frame(outer, b"\1\2\3\4\5\6\7\10")) == "not ours"  # too short for ESP
        assert sa.open(udp_frame(outer, b"")) == "not ours"
        assert sa.open(udp_frame(outer, bytes([1]) * 64, dport=4501)) == "not ours"
        assert sa.open(udp_frame(outer, bytes([1]) * 64)) == "drop esp_no_sa"
        other = "192.0.2.99" if outer == 4 else "2001:db8::99"
        assert sa.open(udp_frame(outer, bytes([1]) * 64, dst=other)) == "not ours"
        assert sa.open(udp_frame(outer, b"\xff", dst=other)) == "not ours"
    # bare where UDP is wanted, and the other way
    bare = Sa(shell)
    sa.nat = None
    assert sa.open(sa.encrypt(inner(4), 1)) == "drop esp_encap"
    bare.nat = (4500, 4500)
    assert bare.open(bare.encrypt(inner(4), 1)) == "drop esp_encap"
    # UDP's own length: too long, too short, and shorter than IP says
    sa.nat = (4500, 4500)
    for length, answer in ((2000, "drop esp_malformed"), (7, "drop esp_malformed"), (12, "not ours")):
        sealed = bytearray(sa.encrypt(inner(4), 2))
        sealed[14 + 24 : 14 + 26] = length.to_bytes(2, "big")
        assert sa.open(sealed) == answer, length
    sealed = sa.encrypt(inner(4), 3)
    packet = IP(sealed[14:])
    packet.len += 9
    del packet.chksum
    done(sa.open(sealed[:14] + raw(packet) + bytes(9)))


def esp_D15_segments(shell):
    for outer in (4, 6):
        for version in (4, 6):
            sa, seq = Sa(shell, outer, window=4096), 0
            for size in (0, 5, 90, 700):
                packet = inner(version, size)
                for cut in list(range(1, 90)) + [128, 200, 333]:
                    seq += 1
                    check_seal(sa, packet, seq, cut=cut, header=outer_fields(outer, packet))
                    check_open(sa, packet, seq, cut=cut)


def esp_D15_shared_frames_are_not_written(shell):
    sa = Sa(shell)
    for seq, cut in enumerate((0, 33, 64, 100, 500), 1):
        packet = inner(4, 600)
        fields = outer_fields(4, packet)
        check_seal(sa, packet, seq, cut=cut, header=fields, share=1)
        # what comes past the NIC that has its window is not to be told from a replay
        answer = sa.open(sa.encrypt(packet, seq), cut=cut, share=1)
        assert answer == "drop esp_device" if shell.backend == "inline-protocol" else answer.startswith("done"), answer


def esp_D15_trailers_and_room(shell):
    sa = Sa(shell)
    # Ethernet's own padding, zeros or not, is no part of the packet
    for seq, tail in enumerate((b"", b"\0" * 6, b"\xff" * 17), 1):
        packet = inner(4, 1)
        got = done(sa.seal(frame(packet) + tail))
        at = sa.iv_at()
        fields = {**outer_fields(4, packet), "id": IP(got[14:]).id}
        assert got[14:] == sa.encrypt(packet, seq, got[at : at + 8], **fields)[14:]
        got = done(sa.open(sa.encrypt(packet, seq) + tail))
        assert got[14:] == raw(packet)
    # tags are not part of it either
    tagged = frame(packet)[:12] + bytes.fromhex("8100006488a80007") + frame(packet)[12:]
    done(sa.seal(tagged))
    sealed = sa.encrypt(packet, 4)
    got = done(sa.open(sealed[:12] + bytes.fromhex("81000064") + sealed[12:]))
    assert got[14:] == raw(packet)
    # no headroom, no tailroom
    for room in (0, 30, 63):
        done(sa.seal(frame(inner(4, 100)), headroom=room))
    done(sa.seal(frame(inner(4, 2048 - 14 - 28)), cut=2048))


def esp_D17_outer_header(shell):
    noecn, nopmtudisc, dont_encap_dscp = 1, 4, 1
    for outer in (4, 6):
        plain, ecn, dscp, df = (
            Sa(shell, outer),
            Sa(shell, outer, flags=noecn),
            Sa(shell, outer, xflags=dont_encap_dscp),
            Sa(shell, outer, flags=nopmtudisc),
        )
        seq = 0
        for version in (4, 6):
            for tos in (0, 1, 2, 3, 0xB8, 0xBB, 0xFF):
                for flag in (0, "DF") if version == 4 else (None,):
                    seq += 1
                    header = {"tos": tos, "flags": flag} if version == 4 else {"tc": tos, "fl": 0xABCDE}
                    packet = inner(version, 10, **header)
                    name = "tos" if outer == 4 else "tc"
                    fields = outer_fields(outer, packet)
                    check_seal(plain, packet, seq, header=fields)
                    check_seal(ecn, packet, seq, header={**fields, name: tos & 0xFC})
                    check_seal(dscp, packet, seq, header={**fields, name: tos & 3})
                    if outer == 4:
                        fields["flags"] = 0
                    check_seal(df, packet, seq, header=fields)
    if shell.whole:
        return
    # IDs: 0 where nothing can be cut, else different ones
    sa, ids = Sa(shell), []
    for _ in range(50):
        ids.append(IP(done(sa.seal(frame(inner(4))))[14:]).id)
        assert IP(done(sa.seal(frame(inner(4, flags="DF"))))[14:]).id == 0
    assert len(set(ids)) == 50


def esp_D17_rfc6040_on_the_way_in(shell):
    # RFC 6040, figure 4: rows are inner Not-ECT, ECT(1), ECT(0), CE
    table = {0: (0, 0, 0, None), 1: (1, 1, 1, 3), 2: (2, 1, 2, 3), 3: (3, 3, 3, 3)}
    for outer in (4, 6):
        sa, noecn, dscp = Sa(shell, outer), Sa(shell, outer, flags=1), Sa(shell, outer, flags=2)
        name, seq = ("tos" if outer == 4 else "tc"), 0
        for version in (4, 6):
            field = "tos" if version == 4 else "tc"
            for was, row in table.items():
                for mark, becomes in enumerate(row):
                    seq += 1
                    tos = 0x48 | was
                    packet = inner(version, 8, **{field: tos})
                    sealed = sa.encrypt(packet, seq, **{name: 0xB8 | mark})
                    if becomes is None:
                        assert sa.open(sealed) == "drop esp_ecn"
                        assert dscp.open(dscp.encrypt(packet, seq, **{name: mark})) == "drop esp_ecn"
                    else:
                        expect = packet.copy()
                        setattr(expect, field, 0x48 | becomes)
                        if version == 4:
                            del expect.chksum
                        assert done(sa.open(sealed))[14:] == raw(expect)
                        setattr(expect, field, 0xB8 | becomes)
                        if version == 4:
                            del expect.chksum
                        got = done(dscp.open(dscp.encrypt(packet, seq, **{name: 0xB8 | mark})))
                        assert got[14:] == raw(expect)
                    check_open(noecn, packet, seq, **{name: mark})


def seal_text(sa, text, seq, iv=b"\1\2\3\4\5\6\7\10"):
    """A frame whose decrypted text is `text`: trailer and all is the caller's."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head = sa.spi.to_bytes(4, "big") + (seq & 0xFFFFFFFF).to_bytes(4, "big")
    aad = head[:4] + seq.to_bytes(8, "big") if sa.esn else head
    sealed = AESGCM(sa.key[:-4]).encrypt(sa.key[-4:] + iv, text, aad)
    icv = sa.words.get("icv", 128) // 8
    sealed = sealed[: len(sealed) - 16 + icv]
    return frame(IP(src=sa.src, dst=sa.dst, proto=50, ttl=64) / Raw(head + iv + sealed))


def esp_D14_padding(shell):
    sa, seq = Sa(shell, window=4096), 0
    packet = raw(inner(4, 4))  # 32 bytes
    for pad in range(0, 256):
        seq += 1
        total = len(packet) + pad + 2
        frame_ = seal_text(sa, packet + bytes(range(1, pad + 1)) + bytes([pad, 4]), seq)
        if total % 4 != 0:
            assert sa.open(frame_) == "drop esp_malformed", pad
            continue
        for cut in (0, 51):
            seq += 1
            frame_ = seal_text(sa, packet + bytes(range(1, pad + 1)) + bytes([pad, 4]), seq)
            assert done(sa.open(frame_, cut=cut))[14:] == packet
            # each byte of it wrong
            for at in range(0, pad, 37):
                seq += 1
                padding = bytearray(range(1, pad + 1))
                padding[at] ^= 0x40
                frame_ = seal_text(sa, packet + bytes(padding) + bytes([pad, 4]), seq)
                assert sa.open(frame_, cut=cut) == "drop esp_pad"
    # a number of them that leaves less than nothing
    for length in (4, 8, 36):
        for pad in (length - 1, length, 255):
            seq += 1
            answer = sa.open(seal_text(sa, bytes(length - 2) + bytes([pad, 4]), seq))
            assert answer == "drop esp_pad", (length, pad)
    # nothing but a trailer
    seq += 1
    assert sa.open(seal_text(sa, bytes([1, 2, 2, 4]), seq)) == "drop esp_inner"


def esp_D14_every_truncation(shell):
    for outer, nat in ((4, None), (6, None), (4, (4500, 4500))):
        sa = Sa(shell, outer, nat=nat)
        sealed = sa.encrypt(inner(4, 30), 1)
        for size in range(14, len(sealed)):
            answer = sa.open(sealed[:size])
            assert not answer.startswith("done"), size
            # the same with lengths that fit
            packet = bytearray(sealed[:size])
            header = 34 if outer == 4 else 54
            if size > header + (8 if nat else 0):
                if outer == 4:
                    packet[16:18] = (size - 14).to_bytes(2, "big")
                else:
                    packet[18:20] = (size - 54).to_bytes(2, "big")
                if nat:
                    packet[header + 4 : header + 6] = (size - header).to_bytes(2, "big")
                answer = sa.open(packet)
                # a NIC takes for ESP that is cut what may as well be IKE that is cut
                cut = ("not ours", "drop esp_device") if nat and shell.backend != "cpu" else ("not ours",)
                assert answer in ("drop esp_malformed", "drop esp_icv", *cut), (size, answer)
        done(sa.open(sealed))


def esp_D7_every_bit_counts(shell):
    for esn in (0, 1):
        sa = Sa(shell, esn=esn)
        sealed = sa.encrypt(inner(4, 21), 1)
        for at in range(34, len(sealed)):
            for bit in range(8):
                wrong = bytearray(sealed)
                wrong[at] ^= 1 << bit
                answer = sa.open(wrong)
                assert answer in ("drop esp_icv", "drop esp_no_sa", "drop esp_encap", "drop esp_replay"), (at, answer)
        assert sa.show()["seq"] == 0, "a wrong packet moved the window"
        done(sa.open(sealed))


def esp_D18_dummies_and_tfc(shell):
    sa = Sa(shell)
    assert sa.open(seal_text(sa, rng.randbytes(60) + bytes([1, 2, 2, 59]), 1)) == "drop esp_dummy"
    packet = inner(4, 40)
    for version in (4, 6):
        packet = inner(version, 40)
        for seq, more in enumerate((4, 8, 100, 1000), 2 if version == 4 else 10):
            text = raw(packet) + rng.randbytes(more)
            pad = -(len(text) + 2) % 4
            text += bytes(range(1, pad + 1)) + bytes([pad, 4 if version == 4 else 41])
            assert done(sa.open(seal_text(sa, text, seq), cut=rng.choice((0, 60))))[14:] == raw(packet)
    # sent
    tfc = Sa(shell, tfc=1000)
    for size, cut in ((10, 0), (500, 0), (1200, 0), (10, 48)):
        packet = inner(4, size)
        got = done(tfc.seal(frame(packet), cut=cut))
        around = 34 + 16 + 16
        text = max(1000, len(raw(packet))) + 2
        assert len(got) == around + text + -text % 4, size
        peer = tfc.peer()
        clear = peer.decrypt(IP(got[14:]))
        assert raw(clear)[: len(raw(packet))] == raw(packet)
        assert done(tfc.open(got))[14:] == raw(packet)


def esp_D19_inner_protocol_and_version(shell):
    sa, seq = Sa(shell, window=4096), 0

    def text(packet, proto):
        pad = -(len(packet) + 2) % 4
        return packet + bytes(range(1, pad + 1)) + bytes([pad, proto])

    v4, v6 = raw(inner(4, 9)), raw(inner(6, 9))
    for proto in range(256):
        for packet, right in ((v4, 4), (v6, 41)):
            seq += 1
            answer = sa.open(seal_text(sa, text(packet, proto), seq))
            if proto == right:
                done(answer)
            else:
                assert answer == ("drop esp_dummy" if proto == 59 else "drop esp_inner"), proto
    # lengths that lie: version, header length, total length
    for at, value in ((0, 0x44), (0, 0x55), (0, 0x65), (3, 19), (3, 255), (2, 1)):
        seq += 1
        wrong = bytearray(v4)
        wrong[at] = value
        assert sa.open(seal_text(sa, text(bytes(wrong), 4), seq)) == "drop esp_inner", (at, value)
    for at, value in ((0, 0x45), (5, 200), (4, 1)):
        seq += 1
        wrong = bytearray(v6)
        wrong[at] = value
        assert sa.open(seal_text(sa, text(bytes(wrong), 41), seq)) == "drop esp_inner"
    for packet, proto in ((v4[:19], 4), (v6[:39], 41), (b"", 4)):
        seq += 1
        assert sa.open(seal_text(sa, text(packet, proto), seq)) == "drop esp_inner"


def esp_D1_to_D6_numbers(shell):
    packet = inner(4)
    sa = Sa(shell, window=32)

    def come(seq):
        answer = sa.open(sa.encrypt(packet, seq))
        return "ok" if answer.startswith("done") else answer

    assert sa.open(seal_text(sa, raw(packet) + bytes([1, 2, 2, 4]), 0)) == "drop esp_replay"
    assert come(1000) == "ok"
    assert come(1000) == "drop esp_replay"
    assert come(1000 - 31) == "ok"
    assert come(1000 - 32) == "drop esp_replay"
    assert come(1001) == "ok"
    assert come(1001 - 32) == "drop esp_replay"
    assert come(1 << 31) == "ok"
    assert come(1001) == "drop esp_replay"
    assert come(0xFFFFFFFF) == "ok"
    if shell.whole:
        return
    assert sa.show() == {
        "oseq": 0,
        "seq": 0xFFFFFFFF,
        "packets": 5,
        "bytes": 5 * len(raw(packet)),
        "old": 3 + 1,
        "seen": 1,
        "icv": 0,
    }


def esp_D11_numbers_end(shell):
    sa = Sa(shell, oseq=0xFFFFFFFD)
    packet = inner(4)
    for seq in (0xFFFFFFFE, 0xFFFFFFFF):
        check_seal(sa, packet, seq, header=outer_fields(4, packet))
    for _ in range(3):
        assert sa.seal(frame(packet)) == "drop esp_seq"
    assert sa.show()["oseq"] == 0xFFFFFFFF
    sa = Sa(shell, esn=1, oseq=(1 << 64) - 2)
    check_seal(sa, packet, (1 << 64) - 1, header=outer_fields(4, packet))
    assert sa.seal(frame(packet)) == "drop esp_seq"


def esp_icv_lengths(shell):
    for bits in (64, 96, 128):
        sa = Sa(shell, icv=bits, oseq=10)
        packet = inner(4, 2)
        pad = -(len(raw(packet)) + 2) % 4
        text = raw(packet) + bytes(range(1, pad + 1)) + bytes([pad, 4])
        assert done(sa.open(seal_text(sa, text, 1)))[14:] == raw(packet)
        got = done(sa.seal(frame(packet)))
        iv = got[sa.iv_at() : sa.iv_at() + 8]
        assert got[34:] == seal_text(sa, text, 11, iv)[34:]
        for cut in (0, len(got) - 5, len(got) - 9):
            wrong = bytearray(got)
            wrong[-1] ^= 1
            assert sa.open(wrong, cut=cut) == "drop esp_icv"
        sealed = seal_text(sa, text, 2)
        done(sa.open(sealed, cut=len(sealed) - 3))


def esp_D16_fragments_are_not_decrypted(shell):
    sa = Sa(shell)
    sealed = IP(sa.encrypt(inner(4, 200), 1)[14:])
    for flags, frag in (("MF", 0), (0, 5), ("MF", 5)):
        part = sealed.copy()
        part.flags, part.frag = flags, frag
        del part.chksum
        assert sa.open(frame(part)) == "drop esp_fragment"
        part.dst = "192.0.2.77"
        assert sa.open(frame(part)) == "not ours"
    six = IPv6(src=OUTER[6][0], dst=OUTER[6][1]) / IPv6ExtHdrFragment(offset=3, m=1, nh=50) / Raw(bytes(80))
    assert sa.open(frame(six)) == "drop esp_fragment"


def esp_D21_whose_it_is(shell):
    sa = Sa(shell)
    sealed = IP(sa.encrypt(inner(4), 1)[14:])
    other = sealed.copy()
    other.dst = "192.0.2.77"
    del other.chksum
    assert sa.open(frame(other)) == "not ours"
    for spi in (0, 1, 255, 0xFFFFFFFF):
        wrong = bytearray(raw(sealed))
        wrong[20:24] = spi.to_bytes(4, "big")
        assert sa.open(frame(IP(bytes(wrong)))) == "drop esp_no_sa"
    # the same SPI of the other family is another SA
    six = Sa(shell, outer=6)
    four = IP(src=OUTER[4][0], dst=OUTER[4][1], proto=50) / Raw(raw(IPv6(six.encrypt(inner(4), 1)[14:]).payload))
    assert sa.open(frame(four)) == "drop esp_no_sa"
    assert sa.open(frame(IP(src=OUTER[4][0], dst=OUTER[4][1]) / ICMP())) == "not ours"
    assert sa.open(frame(IP(src=OUTER[4][0], dst=OUTER[4][1]) / TCP())) == "not ours"
    # behind an extension header it is still ESP
    esp = IPv6(six.encrypt(inner(4), 2)[14:])
    longer = IPv6(src=esp.src, dst=esp.dst) / IPv6ExtHdrDestOpt(nh=50, options=[PadN(optdata=b"\0" * 4)]) / Raw(
        raw(esp.payload)
    )
    if shell.whole:  # which the NIC does not look behind
        assert six.open(frame(longer)) == "drop esp_device"
    else:
        done(six.open(frame(longer)))


def esp_lifetimes(shell):
    packet = inner(4)
    sa = Sa(shell, packets=3)
    for _ in range(3):
        done(sa.seal(frame(packet)))
    assert sa.seal(frame(packet)) == "drop esp_expired"
    assert sa.open(sa.encrypt(packet, 1)) == "drop esp_expired"
    sa = Sa(shell, bytes=2 * len(raw(packet)))
    done(sa.open(sa.encrypt(packet, 1)))
    done(sa.open(sa.encrypt(packet, 2)))
    assert sa.open(sa.encrypt(packet, 3)) == "drop esp_expired"
    assert sa.show()["seq"] == 2


def esp_refused(shell):
    base = f"sa src=192.0.2.1 dst=192.0.2.2 spi=77 "
    for words in (
        "key=" + "11" * 19,
        "key=" + "11" * 16,
        "key=" + "11" * 20 + " icv=100",
        "key=" + "11" * 20 + " icv=32",
        "key=" + "11" * 20 + " window=4097",
        "key=" + "11" * 20 + " oseq=4294967296",
    ):
        answer = shell.ask(base + words)
        assert answer.startswith("refused ") and len(answer.split()) > 4, answer


def esp_random_both_ways(shell):
    """Any mixture of it all."""
    for _ in range(150):
        outer, version = rng.choice((4, 6)), rng.choice((4, 6))
        esn = rng.randrange(2)
        start = rng.randrange(1, 1 << (40 if esn else 31))
        sa = Sa(
            shell,
            outer,
            rng.choice(list(KEYS.values())),
            null=rng.random() < 0.2,
            nat=rng.choice((None, (4500, 4500))),
            esn=esn,
            oseq=start,
            seq=start,
            window=rng.choice((32, 64, 1024, 4096)),
        )
        for seq in range(start + 1, start + 6):
            packet = inner(version, rng.randrange(1300))
            cut = rng.choice((0, 0, rng.randrange(1, 300)))
            check_seal(sa, packet, seq, cut=cut, header=outer_fields(outer, packet), share=rng.randrange(2))
            check_open(sa, packet, seq, cut=rng.choice((0, cut)))


def tshark(frames, sas, fields):
    """What tshark, knowing the keys, says of frames: a line of fields each."""
    command = ["tshark", "-n", "-r", "-", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]
    for option in ("esp.enable_encryption_decode:TRUE", "esp.enable_authentication_check:TRUE"):
        command += ["-o", option]
    for sa in sas:
        family = f"IPv{sa.outer}"
        name, key = ("NULL", "") if sa.null else ("AES-GCM with 16 octet ICV [RFC4106]", "0x" + sa.key.hex())
        command += ["-o", f'uat:esp_sa:"{family}","*","*","0x{sa.spi:08x}","{name}","{key}","NULL",""']
    for field in fields:
        command += ["-e", field]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "esp.pcap")
        wrpcap(path, [Ether(f) for f in frames])
        with open(path, "rb") as capture:
            run = subprocess.run(command, stdin=capture, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in run.stdout.splitlines()]


def esp_tshark_reads_what_is_sealed(shell):
    if shutil.which("tshark") is None:
        print("skipped: tshark is not installed")
        return
    sas = [
        Sa(shell, outer, key, nat=nat)
        for outer in (4, 6)
        for key in KEYS.values()
        for nat in (None, (4500, 4500))
    ]
    frames, sizes = [], []
    for sa in sas:
        for size in (0, 3, 100, 1200):
            frames.append(done(sa.seal(frame(inner(4, size, id=size)))))
            sizes.append(size)
    wrong = bytearray(frames[0])
    wrong[-1] ^= 1
    lines = tshark(frames + [bytes(wrong)], sas, ["esp.sequence", "esp.icv_good", "ip.src", "udp.length"])
    assert len(lines) == len(frames) + 1
    for at, (line, size) in enumerate(zip(lines, sizes)):
        sequence, good, sources, lengths = line
        assert sequence == str(at % 4 + 1), line
        assert good in ("1", "True"), (at, line)
        assert sources.split(",")[-1] == "198.51.100.1", line
        assert lengths.split(",")[-1] == str(8 + size), line
    assert lines[-1][1] not in ("1", "True"), "tshark looks at no check value"


def main(args):
    backend = "cpu"
    if args[1:] and args[1].startswith("--backend="):
        backend = args.pop(1).split("=")[1]
    shell, bad = Shell(args[0], backend), 0
    for name, test in list(globals().items()):
        if not name.startswith("esp_") or (args[1:] and name not in args[1:]):
            continue
        try:
            test(shell)
            print(f"ok {name}", flush=True)
        except AssertionError as error:
            bad += 1
            print(f"FAILED {name}: line {error.__traceback__.tb_next.tb_lineno}: {error}", flush=True)
    words = shell.ask("backends").split()
    print(" ".join(words))
    counts = {name: int(value) for name, value in zip(words[::2], words[1::2])}
    if backend != "cpu" and not args[1:]:
        if counts["sealed"] < 100 or counts["opened"] < 100 or counts["lost"] != 0:
            print("FAILED: the device did little or nothing, or lost frames")
            bad += 1
    if shell.close() != 0:
        print("FAILED: the shell did not end well")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
