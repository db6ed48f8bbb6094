# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""corpus.py DIR: writes what tc and ip send, for the fuzzer to start from."""

import os
import struct
import sys

REQUEST, ACK, CREATE, EXCL, DUMP = 1, 4, 0x400, 0x200, 0x300
NEWLINK, GETLINK = 16, 18
NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38
NEWTFILTER, DELTFILTER, GETTFILTER = 44, 45, 46
NEWACTION, DELACTION, GETACTION = 48, 49, 50
GETNSID, NEWCHAIN, DELCHAIN, GETCHAIN = 90, 100, 101, 102
CLSACT, INGRESS, ROOT = 0xfffffff1, 0xfffffff2, 0xffffffff


def nla(kind, data=b""):
    return struct.pack("<HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def text(kind, s):
    return nla(kind, s.encode() + b"\0")


def u32(kind, value):
    return nla(kind, struct.pack("<I", value))


def message(kind, flags, payload, seq=1):
    return struct.pack("<IHHII", 16 + len(payload), kind, REQUEST | flags, seq, 0) + payload


def link(index=0, family=0, change=0, flags=0):
    return struct.pack("<BBHiII", family, 0, 0, index, flags, change)


def tcm(index, parent=0, handle=0, info=0):
    return struct.pack("<BBHiIII", 0, 0, 0, index, handle, parent, info)


def action(kind, options, n=1, cookie=b"", index=0):
    del index
    return nla(n, text(1, kind) + nla(2, options) + (nla(6, cookie) if cookie else b""))


def gen(verdict, index=0):
    """struct tc_gact, and what every action's parameters begin with."""
    return struct.pack("<IIiii", index, 0, verdict, 0, 0)


CSUM = action("csum", nla(1, gen(0) + struct.pack("<I", 0x11)))
DROP = action("gact", nla(2, gen(2)), n=2, cookie=b"cookie")
GOTO = action("gact", nla(2, gen(0x20000000 | 5)))
MIRRED = action("mirred", nla(2, gen(4) + struct.pack("<II", 1, 2)))
SKBEDIT = action("skbedit", nla(2, gen(3)) + u32(3, 1) + u32(5, 7))
VLAN = action("vlan", nla(2, gen(3) + struct.pack("<I", 2)) + nla(3, b"\x0a\0") + nla(4, b"\x81\0"))
ETH_IP = 0x0008
PRIO = 10 << 16


def matchall(actions, flags=0, **place):
    return tcm(1, place.get("parent", INGRESS), 0, PRIO | ETH_IP) + text(1, "matchall") + \
        nla(2, nla(2, actions) + u32(3, flags)) + u32(11, place.get("chain", 0))


def flower():
    keys = nla(3, DROP) + nla(8, b"\x08\0") + nla(9, b"\x11") + nla(10, b"\xc0\0\x02\x01") + \
        nla(11, b"\xff\xff\xff\xff") + nla(18, b"\0\x35") + nla(20, b"\0\x35") + u32(22, 0)
    return tcm(1, INGRESS, 0, PRIO | ETH_IP) + text(1, "flower") + nla(2, keys)


def seeds():
    new = CREATE | EXCL | ACK
    clsact = tcm(1, CLSACT, 0xffff0000) + text(1, "clsact")
    prio = tcm(1, ROOT, 0x10000) + text(1, "prio") + \
        nla(2, struct.pack("<i16B", 3, 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1))
    yield "links", message(GETLINK, DUMP, link() + u32(29, 1))
    yield "link", message(GETLINK, 0, link() + text(3, "p0") + u32(29, 9))
    yield "set", message(NEWLINK, ACK, link(1, 0, 1, 1) + u32(4, 1400) + u32(13, 100) +
                         nla(1, b"\2\0\0\0\0\7"))
    yield "probe", message(NEWLINK, ACK, link())
    yield "nsid", message(GETNSID, 0, struct.pack("<I", 0) + u32(3, 5))
    yield "clsact", message(NEWQDISC, new, clsact)
    yield "prio", message(NEWQDISC, new, prio)
    yield "pfifo", message(NEWQDISC, new, tcm(1, ROOT, 0x20000) + text(1, "pfifo") +
                           nla(2, struct.pack("<I", 50)))
    yield "qdiscs", message(GETQDISC, DUMP, tcm(0))
    yield "no_clsact", message(DELQDISC, ACK, clsact)
    for name, actions in (("csum", CSUM + DROP), ("goto", GOTO), ("mirred", MIRRED),
                          ("skbedit", SKBEDIT), ("vlan", VLAN), ("none", b"")):
        yield "two_" + name, message(NEWQDISC, new, clsact) + \
            message(NEWTFILTER, new, matchall(actions, chain=5), 2)
        yield "filter_" + name, message(NEWTFILTER, new, matchall(actions))
        yield "action_" + name, message(NEWACTION, new, struct.pack("<I", 0) + nla(1, actions))
    yield "flower", message(NEWQDISC, new, clsact) + message(NEWTFILTER, new, flower(), 2)
    yield "filters", message(GETTFILTER, DUMP, tcm(1, INGRESS))
    yield "filter", message(GETTFILTER, ACK, tcm(1, INGRESS, 1, PRIO | ETH_IP) + text(1, "matchall"))
    yield "no_filter", message(DELTFILTER, ACK, tcm(1, INGRESS, 1, PRIO | ETH_IP) +
                               text(1, "matchall"))
    yield "no_filters", message(DELTFILTER, ACK, tcm(1, INGRESS))
    yield "actions", message(GETACTION, DUMP, struct.pack("<I", 0) + nla(1, nla(1, text(1, "gact"))) +
                             nla(2, struct.pack("<II", 1, 1)))
    yield "action", message(GETACTION, ACK, struct.pack("<I", 0) +
                            nla(1, nla(1, text(1, "gact") + u32(3, 1))))
    yield "flush", message(DELACTION, ACK | 0x100, struct.pack("<I", 0) +
                           nla(1, nla(1, text(1, "gact"))))
    yield "chain", message(NEWCHAIN, new, tcm(1, INGRESS) + u32(11, 7))
    yield "chains", message(GETCHAIN, DUMP, tcm(1, INGRESS))
    yield "no_chain", message(DELCHAIN, ACK, tcm(1, INGRESS) + u32(11, 7))
    for i in range(8):
        yield f"ctl{i}", struct.pack("<IHHIIIIII", 32, 0xfff0 + i, 1, 0, 0, 1, 1, 0, 0)


def main(where):
    for name, datagram in seeds():
        with open(os.path.join(where, name), "wb") as f:
            f.write(b"\0" + datagram)
        kind, flags = struct.unpack("<HH", datagram[4:8])
        if kind >= 16 + 104:
            continue
        with open(os.path.join(where, name + "_header"), "wb") as f:
            f.write(b"\1" + struct.pack("<HH", kind - 16, flags) + datagram[16:])


main(sys.argv[1])
