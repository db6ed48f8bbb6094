#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The NIC of the tests against scapy: it has to seal what scapy opens, and open what scapy seals.

usage: esp.py SHELL [TEST...]      each function esp_* is a test
"""

import logging
import random
import subprocess
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.all import IP, UDP, Ether, IPv6, Raw, raw  # noqa: E402
from scapy.layers.ipsec import ESP, SecurityAssociation  # noqa: E402

OUTER = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:db8::1", "2001:db8::2")}
KEYS = [bytes(range(1, bits // 8 + 5)) for bits in (128, 192, 256)]
NATS = (None, (4500, 4500))
rng = random.Random(4303)


class Shell:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.spi = 0x1000

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().strip()
        assert answer, f"no answer to {line[:200]}"
        return answer

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def frame(packet, version=None):
    kind = {} if version is None else {"type": {4: 0x0800, 6: 0x86DD}[version]}
    return raw(Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01", **kind) / packet)


def inner(version, size=64, **header):
    payload = UDP(sport=1000, dport=2000) / Raw(rng.randbytes(size))
    if version == 4:
        return IP(raw(IP(src="198.51.100.1", dst="203.0.113.1", **header) / payload))
    return IPv6(raw(IPv6(src="2001:db8:1::1", dst="2001:db8:2::1", **header) / payload))


class Sa:
    """A session, both ways in one NIC, and the same SA in scapy."""

    def __init__(self, shell, action, outer=4, key=KEYS[0], nat=None, ways=(0, 1), **words):
        self.shell, self.outer, self.nat, self.key = shell, outer, nat, key
        self.esn, self.icv = words.get("esn", 0), words.get("icv", 16)
        self.src, self.dst = OUTER[outer]
        shell.spi += 1
        self.spi = shell.spi
        for out in ways:
            line = f"sa action={action} out={out} spi={self.spi} src={self.src} dst={self.dst}"
            if key:
                line += f" key={key.hex()}"
            if nat:
                line += f" sport={nat[0]} dport={nat[1]}"
            for name, value in words.items():
                if name != "window" or not out:
                    line += f" {name}={value}"
            answer = shell.ask(line)
            assert answer == "ok", f"{line}: {answer}"

    def peer(self, seq, **header):
        if self.outer == 4:
            tunnel = IP(src=self.src, dst=self.dst, ttl=64, **{"id": 0, **header})
        else:
            tunnel = IPv6(src=self.src, dst=self.dst, hlim=64, **header)
        nat = UDP(sport=self.nat[0], dport=self.nat[1]) if self.nat else None
        crypt = {"crypt_algo": "AES-GCM", "crypt_key": self.key} if self.key else {}
        sa = SecurityAssociation(
            ESP, spi=self.spi, tunnel_header=tunnel, nat_t_header=nat, esn_en=bool(self.esn), **crypt
        )
        sa.esn = seq >> 32
        sa.seq_num = seq & 0xFFFFFFFF
        return sa

    def seal(self, packet, seq, iv=None, **header):
        """The frame that scapy makes."""
        iv = (iv or rng.randbytes(8)) if self.key else None
        sealed = self.peer(seq, **header).encrypt(packet, seq_num=seq & 0xFFFFFFFF, iv=iv)
        if self.nat:
            sealed[UDP].len = None
            if self.outer == 6:
                sealed[UDP].chksum = None
        return frame(sealed)

    def clear(self, packet, seq, iv):
        """The same frame before it is encrypted, as inline crypto takes it."""
        text = raw(packet)
        pad = -(len(text) + 2) % 4
        text += bytes(range(1, pad + 1)) + bytes([pad, 4 if packet.version == 4 else 41])
        body = self.spi.to_bytes(4, "big") + (seq & 0xFFFFFFFF).to_bytes(4, "big")
        body += iv + text + bytes(self.icv if self.key else 0)
        kind = 17 if self.nat else 50
        if self.nat:
            body = raw(UDP(sport=self.nat[0], dport=self.nat[1], chksum=0, len=8 + len(body)))[:8] + body
        if self.outer == 4:
            return frame(IP(src=self.src, dst=self.dst, ttl=64, id=0, proto=kind) / Raw(body))
        return frame(IPv6(src=self.src, dst=self.dst, hlim=64, nh=kind) / Raw(body))

    def tx(self, data, cut=0, **words):
        line = f"tx spi={self.spi} frame={data.hex()} cut={cut}"
        for name, value in words.items():
            line += f" {name}={value}"
        return self.shell.ask(line)

    def rx(self, data, cut=0):
        return self.shell.ask(f"rx frame={bytes(data).hex()} cut={cut}")

    def header_len(self):
        return 14 + (20 if self.outer == 4 else 40) + (8 if self.nat else 0)


def said(answer, word):
    assert answer.startswith(word + " "), answer[:100]
    return bytes.fromhex(answer[len(word) + 1 :])


def esp_crypto_tx_is_scapys(shell):
    for outer in (4, 6):
        for key in KEYS + [None]:
            for nat in (NATS if outer == 4 else NATS[:1]):  # no UDP checksum over a text to come
                sa = Sa(shell, "crypto", outer, key, nat)
                for seq, size in enumerate((0, 1, 2, 3, 64, 255, 1372), 1):
                    packet, iv = inner(rng.choice((4, 6)), size), rng.randbytes(8) if key else b""
                    for cut in (0, 61):
                        got = said(sa.tx(sa.clear(packet, seq, iv), cut), "wire")
                        assert got == sa.seal(packet, seq, iv)


def esp_crypto_tx_takes_extended_numbers(shell):
    sa = Sa(shell, "crypto", esn=1, seq=(7 << 32) - 2)
    packet = inner(4)
    for seq in ((7 << 32) - 1, (7 << 32) + 1, (5 << 32) + 9):
        iv = rng.randbytes(8)
        got = said(sa.tx(sa.clear(packet, seq, iv), number=seq), "wire")
        assert got == sa.seal(packet, seq, iv), hex(seq)
    sa = Sa(shell, "crypto", esn=1, seq=(7 << 32) - 2)
    for seq in ((7 << 32) - 1, (7 << 32) + 2, (7 << 32) - 1, (7 << 32) + 3):
        iv = rng.randbytes(8)
        assert said(sa.tx(sa.clear(packet, seq, iv)), "wire") == sa.seal(packet, seq, iv), hex(seq)


def esp_crypto_tx_refuses_what_is_no_such_frame(shell):
    sa = Sa(shell, "crypto")
    data = sa.clear(inner(4, 20), 1, bytes(8))
    said(sa.tx(data), "wire")
    for at, value in ((34, 0xEE), (len(data) - 18, 200), (len(data) - 19, 77), (17, 200), (23, 6)):
        wrong = bytearray(data)
        wrong[at] = value
        assert sa.tx(wrong) == "lost tx_malformed", at
    assert sa.tx(sa.clear(inner(4), 0, bytes(8))) == "lost tx_malformed"
    assert shell.ask(f"tx spi=3 frame={data.hex()}") == "lost tx_no_session"


def esp_crypto_rx_opens_scapys(shell):
    for outer in (4, 6):
        for key in KEYS + [None]:
            for nat in NATS:
                sa = Sa(shell, "crypto", outer, key, nat)
                for seq, size in enumerate((0, 1, 2, 3, 64, 255, 1372), 1):
                    packet, iv = inner(rng.choice((4, 6)), size), rng.randbytes(8) if key else b""
                    sealed, at = sa.seal(packet, seq, iv), sa.header_len()
                    got = said(sa.rx(sealed, rng.choice((0, 49))), "good")
                    end = len(sealed) - (16 if key else 0)
                    want = sa.clear(packet, seq, iv)
                    assert got[:at] == sealed[:at] and got[at:end] == want[at:end] and got[end:] == sealed[end:]


def esp_every_bit_counts(shell):
    for action in ("crypto", "protocol"):
        for esn in (0, 1):
            sa = Sa(shell, action, esn=esn, window=64 if action == "protocol" else 0)
            sealed = sa.seal(inner(4, 21), 1)
            for at in range(38, len(sealed)):
                wrong = bytearray(sealed)
                wrong[at] ^= 1 << rng.randrange(8)
                got = said(sa.rx(wrong), "failed")
                assert action == "crypto" or got == bytes(wrong)
            said(sa.rx(sealed), "good")


def esp_extended_numbers_come_in(shell):
    for action, window in (("crypto", 0), ("protocol", 64), ("protocol", 0)):
        sa = Sa(shell, action, esn=1, window=window, seq=(7 << 32) - 20)
        for seq in ((7 << 32) - 2, (7 << 32) + 1, (7 << 32) - 1, (7 << 32) + 3):
            said(sa.rx(sa.seal(inner(4), seq)), "good")
        said(sa.rx(sa.seal(inner(4), (9 << 32) + 4)), "failed")


def esp_protocol_opens_scapys(shell):
    for outer in (4, 6):
        for key in KEYS + [None]:
            for nat in NATS:
                sa = Sa(shell, "protocol", outer, key, nat, window=64)
                for seq, size in enumerate((0, 1, 2, 3, 64, 255, 1372), 1):
                    packet = inner(rng.choice((4, 6)), size)
                    sealed = sa.seal(packet, seq)
                    assert said(sa.rx(sealed, rng.choice((0, 49))), "good") == frame(packet)
                    assert said(sa.rx(sealed), "failed") == sealed, "a replay"


def esp_protocol_seals_scapys(shell):
    for outer in (4, 6):
        for key in KEYS + [None]:
            for nat in NATS:
                sa = Sa(shell, "protocol", outer, key, nat, seq=41)
                for seq, size in enumerate((0, 1, 2, 3, 64, 255, 1372), 42):
                    packet = inner(rng.choice((4, 6)), size)
                    data = frame(packet, outer) + bytes(rng.randrange(9))
                    got = said(sa.tx(data, rng.choice((0, 57))), "wire")
                    at = sa.header_len() + 8
                    more = {"id": IP(got[14:]).id} if outer == 4 else {}
                    assert got == sa.seal(packet, seq, got[at : at + 8], **more)


def esp_protocol_window(shell):
    sa = Sa(shell, "protocol", window=32)

    def come(seq):
        return sa.rx(sa.seal(inner(4), seq)).split()[0]

    for seq, what in ((1000, "good"), (1000, "failed"), (969, "good"), (968, "failed"), (1001, "good"),
                      (969, "failed"), (970, "good"), (5000, "good"), (4969, "good"), (4968, "failed")):
        assert come(seq) == what, seq


def esp_protocol_outer_header(shell):
    for outer in (4, 6):
        for version in (4, 6):
            name, ecn = ("tos", "tos") if version == 4 else ("tc", "tc")
            more = {"flags": "DF"} if version == 4 else {"fl": 0x54321}
            packet = inner(version, **{name: 0xB9}, **more)
            field = "tos" if outer == 4 else "tc"

            def header(**words):
                sa = Sa(shell, "protocol", outer, **words)
                return (IP if outer == 4 else IPv6)(said(sa.tx(frame(packet, outer)), "wire")[14:])

            assert getattr(header(), field) == 0
            assert getattr(header(dscp=10), field) == 40
            assert getattr(header(copy_dscp=1), field) == 0xB8
            assert getattr(header(ecn=1), field) == 1
            assert getattr(header(copy_dscp=1, ecn=1, dscp=1), field) == 0xB9
            if outer == 4:
                assert header(ttl=9).ttl == 9 and not header().flags.DF and header(df=1).flags.DF
                assert header(copy_df=1).flags.DF == (version == 4)
            else:
                assert header(ttl=9).hlim == 9 and header(flabel=7).fl == 7
                assert header(copy_flabel=1).fl == (0x54321 if version == 6 else 0)


def esp_protocol_inner_header(shell):
    """RFC 6040, figure 4: what the inner ECN becomes, and the sum of its header."""
    for version in (4, 6):
        name, time = ("tos", "ttl") if version == 4 else ("tc", "hlim")
        plain = Sa(shell, "protocol")
        ecn = Sa(shell, "protocol", ecn=1)
        dscp = Sa(shell, "protocol", copy_dscp=1)
        ttl = Sa(shell, "protocol", dec_ttl=1)
        table = {0: (0, 0, 0, None), 2: (2, 1, 2, 3), 1: (1, 1, 1, 3), 3: (3, 3, 3, 3)}
        seq = 0
        for inside, row in table.items():
            packet = inner(version, **{name: 0x48 | inside, time: 20})
            for outside in range(4):
                seq += 1

                def sealed(sa):
                    return sa.rx(sa.seal(packet, seq, tos=0xB8 | outside))

                def like(**fields):
                    other = packet.copy()
                    for field, value in fields.items():
                        setattr(other, field, value)
                    if version == 4:
                        del other.chksum
                    return frame(other)

                assert said(sealed(plain), "good") == frame(packet)
                becomes = row[outside]
                if becomes is None:
                    said(sealed(ecn), "failed")
                else:
                    assert said(sealed(ecn), "good") == like(**{name: 0x48 | becomes}), (inside, outside)
                assert said(sealed(dscp), "good") == like(**{name: 0xB8 | inside})
                assert said(sealed(ttl), "good") == like(**{time: 19})


def seal_text(sa, text, seq):
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head, iv = sa.spi.to_bytes(4, "big") + seq.to_bytes(4, "big"), rng.randbytes(8)
    sealed = AESGCM(sa.key[:-4]).encrypt(sa.key[-4:] + iv, text, head)
    sealed = sealed[: len(sealed) - 16 + sa.icv]
    return frame(IP(src=sa.src, dst=sa.dst, proto=50) / Raw(head + iv + sealed))


def esp_protocol_form(shell):
    """Padding, next header, dummies, TFC padding, ICVs of 8 and 12 bytes."""
    sa, packet = Sa(shell, "protocol"), raw(inner(4, 4))
    answers = {
        packet + bytes([1, 2, 2, 4]): "good",
        packet + bytes([1, 3, 2, 4]): "failed",
        packet + bytes([1, 2, 200, 4]): "failed",
        packet + bytes([1, 2, 2, 41]): "failed",
        packet + bytes([1, 2, 2, 50]): "failed",
        packet[:-4] + bytes([1, 2, 2, 4]): "failed",
        packet + bytes(100) + bytes([1, 2, 2, 4]): "good",
        packet + bytes([1, 2, 2, 59]): "none",
    }
    for seq, (text, what) in enumerate(answers.items(), 1):
        got = sa.rx(seal_text(sa, text, seq))
        assert got.split()[0] == what, (text.hex(), got[:100])
        if what == "good":
            assert said(got, "good")[14:] == packet
    for icv in (8, 12):
        sa = Sa(shell, "protocol", icv=icv)
        assert said(sa.rx(seal_text(sa, packet + bytes([1, 2, 2, 4]), 1)), "good")[14:] == packet
        wire = said(sa.tx(frame(IP(packet), 4)), "wire")
        assert said(sa.rx(wire), "good") == frame(IP(packet))
        assert len(wire) == 14 + 20 + 8 + 8 + len(packet) + 4 + icv


def esp_others_are_left_alone(shell):
    sa = Sa(shell, "protocol")
    sealed = sa.seal(inner(4, 200), 1)
    for other in (
        frame(inner(4)),
        frame(IP(src=sa.src, dst="192.0.2.77", proto=50) / Raw(sealed[34:])),
        frame(IP(src=sa.src, dst=sa.dst, proto=50, flags="MF") / Raw(sealed[34:])),
        frame(IP(src=sa.src, dst=sa.dst) / UDP(sport=4500, dport=4500) / Raw(sealed[34:])),
        sealed[:100],
        sealed[:35] + b"\xee" + sealed[36:],
    ):
        assert said(sa.rx(other), "plain") == other
    said(sa.rx(sealed), "good")


def main(args):
    shell, bad = Shell(args[0]), 0
    for name, test in list(globals().items()):
        if not name.startswith("esp_") or (args[1:] and name not in args[1:]):
            continue
        try:
            test(shell)
            print(f"ok {name}", flush=True)
        except AssertionError as error:
            bad += 1
            print(f"FAILED {name}: line {error.__traceback__.tb_next.tb_lineno}: {error}", flush=True)
    if shell.close() != 0:
        print("FAILED: the shell did not end well")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
