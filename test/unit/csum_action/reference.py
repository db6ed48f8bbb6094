# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
"""What the checksum action must make of a frame, byte by byte and from the RFCs alone.

update(frame, flags) returns the frame that must come out and the name of the reason that must be
counted. Slow on purpose: no trick that the C code could share.
"""

IP4H, ICMP, IGMP, TCP, UDP, UDPLITE, SCTP = 1, 2, 4, 8, 16, 32, 64
ALL = 127


class Stop(Exception):
    """Layer 4 cannot be reached; .reason says why."""

    def __init__(self, reason, protocol=None):
        super().__init__(reason)
        self.reason = reason
        self.protocol = protocol


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "big")


def ones(data):
    """RFC 1071: the complement of the one's-complement sum, as an integer."""
    total = 0
    for i, byte in enumerate(data):
        total += byte << 8 if i % 2 == 0 else byte
        if total > 0xffff:
            total -= 0xffff
    return 0xffff - total


def crc32c(data):
    """Bit by bit."""
    register = 0xffffffff
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82f63b78 if register & 1 else 0)
    return register ^ 0xffffffff


def layer2(frame):
    """(ethertype, where layer 3 begins)."""
    at = 12
    for _ in range(4):
        if len(frame) < at + 2:
            raise Stop("cut_l2")
        kind = number(frame, at, 2)
        if kind not in (0x8100, 0x88a8, 0x9100):
            return kind, at + 2
        at += 4
        if _ == 3:
            raise Stop("vlan_depth")
    raise AssertionError


def ipv4_final(options):
    """Index in options of the final destination of an unexpired source route, or None."""
    at, found, seen = 0, None, False
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if at + 1 >= len(options):
            raise Stop("malformed_ext")
        size = options[at + 1]
        if size < 2 or at + size > len(options):
            raise Stop("malformed_ext")
        if options[at] in (131, 137):
            pointer = options[at + 2] if size >= 3 else 0
            if seen or (size - 3) % 4 or pointer < 4 or pointer % 4:
                raise Stop("malformed_ext")
            seen = True
            if pointer <= size:
                found = at + size - 4
        at += size
    return found


class Packet:
    """Where things are: l3, end of L, and if reached l4, protocol, addresses."""

    def __init__(self, frame):
        self.frame = frame
        self.version = 0
        self.stop = None
        try:
            kind, self.l3 = layer2(frame)
            if kind == 0x0800:
                self.ipv4()
            elif kind == 0x86dd:
                self.ipv6()
            else:
                raise Stop("not_ip")
        except Stop as stop:
            self.stop = stop

    def ipv4(self):
        f, at = self.frame, self.l3
        have = len(f) - at
        if have < 20 or f[at] >> 4 != 4:
            raise Stop("malformed_l3")
        self.header = (f[at] & 15) * 4
        total = number(f, at + 2, 2)
        if self.header < 20 or self.header > have or total < self.header:
            raise Stop("malformed_l3")
        self.version = 4
        self.cut = total > have
        self.end = at + min(total, have)
        self.source, self.destination = f[at + 12:at + 16], f[at + 16:at + 20]
        options = f[at + 20:at + self.header]
        final = ipv4_final(options)
        if final is not None:
            self.destination = options[final:final + 4]
        self.protocol = f[at + 9]
        if number(f, at + 6, 2) & 0x3fff:
            raise Stop("fragment", self.protocol)
        self.l4 = at + self.header
        if self.l4 >= self.end:
            raise Stop("cut_l4")
        if self.protocol in (50, 51):
            raise Stop("opaque")

    def ipv6(self):
        f, at = self.frame, self.l3
        have = len(f) - at
        if have < 40 or f[at] >> 4 != 6:
            raise Stop("malformed_l3")
        self.version = 6
        length = 40 + number(f, at + 4, 2)
        self.cut = length > have
        self.end = at + min(length, have)
        self.source, self.destination = f[at + 8:at + 24], f[at + 24:at + 40]
        self.extensions(f[at + 6], at + 40, length == 40)

    def extensions(self, kind, at, empty):
        f = self.frame
        jumbo = home = False
        walked = 0
        while kind in (0, 43, 44, 60, 50, 51, 59):
            if kind in (50, 51, 59):
                raise Stop("opaque")
            if kind == 0 and walked:
                raise Stop("malformed_ext")
            if walked == 32:
                raise Stop("ext_limit")
            limit = len(f) if kind == 0 and empty else self.end
            if at + 8 > limit:
                raise Stop("malformed_ext")
            size = 8 if kind == 44 else 8 + f[at + 1] * 8
            if at + size > limit:
                raise Stop("malformed_ext")
            header = f[at:at + size]
            if kind in (0, 60):
                for option, where in self.options(header):
                    body = header[where + 2:where + 2 + header[where + 1]]
                    if option == 0xc2 and kind == 0:
                        if jumbo or len(body) != 4 or where % 4 != 2 or not empty:
                            raise Stop("malformed_ext")
                        length = number(body, 0, 4)
                        if length < 65536 or self.l3 + 40 + length > len(f):
                            raise Stop("malformed_ext")
                        jumbo = True
                        self.end = self.l3 + 40 + length
                    if option == 201 and kind == 60:
                        if home or len(body) != 16:
                            raise Stop("malformed_ext")
                        home = True
                        self.source = body
                if at + size > self.end:
                    raise Stop("malformed_ext")
            elif kind == 43:
                self.routing(header)
            else:
                bits = number(header, 2, 2)
                if jumbo:
                    raise Stop("malformed_ext")
                if bits & 0xfff8 or bits & 1:
                    raise Stop("fragment", header[0])
            kind = header[0]
            at += size
            walked += 1
        if at >= self.end:
            raise Stop("cut_l4")
        if at > 65535:
            raise Stop("ext_limit")
        self.protocol, self.l4 = kind, at

    @staticmethod
    def options(header):
        at = 2
        while at < len(header):
            if header[at] == 0:
                at += 1
                continue
            if at + 1 >= len(header) or at + 2 + header[at + 1] > len(header):
                raise Stop("malformed_ext")
            yield header[at], at
            at += 2 + header[at + 1]

    def routing(self, header):
        kind, left, entries = header[2], header[3], (len(header) - 8) / 16
        if left == 0:
            return
        if kind == 0:
            if entries != int(entries) or left > entries:
                raise Stop("malformed_ext")
            self.destination = header[-16:]
        elif kind == 2:
            if entries != 1 or left != 1:
                raise Stop("malformed_ext")
            self.destination = header[-16:]
        elif kind == 4:
            if header[4] + 1 > entries or left > header[4] + 1:
                raise Stop("malformed_ext")
            self.destination = header[8:24]
        else:
            raise Stop("opaque")


def flag_of(version, protocol):
    if protocol == 1 and version == 4 or protocol == 58 and version == 6:
        return ICMP
    if protocol == 2 and version == 4:
        return IGMP
    return {6: TCP, 17: UDP, 136: UDPLITE, 132: SCTP}.get(protocol, 0)


def layer4(packet):
    """(offset of the field in layer 4, its new bytes) or a reason."""
    data = packet.frame[packet.l4:packet.end]
    protocol = packet.protocol
    pseudo = (packet.source + packet.destination + len(data).to_bytes(4, "big") +
              bytes([0, 0, 0, protocol]))
    if protocol == 6:
        if len(data) < 20 or not 20 <= (data[12] >> 4) * 4 <= len(data):
            return "malformed_l4"
        return 16, ones(pseudo + data[:16] + b"\0\0" + data[18:]).to_bytes(2, "big")
    if protocol == 132:
        if len(data) < 12:
            return "malformed_l4"
        return 8, crc32c(data[:8] + b"\0\0\0\0" + data[12:]).to_bytes(4, "little")
    if len(data) < 8:
        return "malformed_l4"
    if protocol in (17, 136):
        length = number(data, 4, 2)
        covered = len(data)
        if protocol == 136:
            if length:
                covered = length
            if not 8 <= covered <= len(data):
                return "malformed_l4"
        elif length != len(data) and not (length == 0 and len(data) > 65535):
            return "malformed_l4"
        elif packet.version == 4 and data[6:8] == b"\0\0":
            return "udp_none"
        value = ones(pseudo + data[:6] + b"\0\0" + data[8:covered])
        return 6, (value or 0xffff).to_bytes(2, "big")
    if protocol == 58:
        return 2, ones(pseudo + data[:2] + b"\0\0" + data[4:]).to_bytes(2, "big")
    return 2, ones(data[:2] + b"\0\0" + data[4:]).to_bytes(2, "big")


def update(frame, flags):
    """(the frame afterwards, the reason counted)."""
    packet = Packet(frame)
    out = bytearray(frame)
    if packet.version == 0:
        return bytes(out), packet.stop.reason
    if packet.cut:
        return bytes(out), "cut_l3"
    header = False
    if packet.version == 4 and flags & IP4H:
        at = packet.l3
        head = frame[at:at + 10] + b"\0\0" + frame[at + 12:at + packet.header]
        out[at + 10:at + 12] = ones(head).to_bytes(2, "big")
        header = True
    reason = "computed" if header else "unasked"
    if flags & ~IP4H == 0:
        return bytes(out), reason
    if packet.stop is not None:
        wanted = flag_of(packet.version, packet.stop.protocol)
        if packet.stop.reason == "fragment" and wanted and not wanted & flags:
            return bytes(out), reason
        return bytes(out), packet.stop.reason
    if not flag_of(packet.version, packet.protocol) & flags:
        return bytes(out), reason
    result = layer4(packet)
    if isinstance(result, str):
        return bytes(out), result
    at, value = result
    out[packet.l4 + at:packet.l4 + at + len(value)] = value
    return bytes(out), "computed"
