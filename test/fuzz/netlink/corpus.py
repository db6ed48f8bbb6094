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


def sa(spi=0x1000, reqid=7, flags=0):
    """struct xfrm_usersa_info"""
    ends = bytes([192, 0, 2, 1]) + bytes(12), bytes([198, 51, 100, 2]) + bytes(12)
    limits = struct.pack("<8Q", *[2**64 - 1] * 4, 1, 2, 3, 4)
    return bytes(56) + ends[1] + struct.pack(">I", spi) + b"\x32\0\0\0" + ends[0] + limits + bytes(44) + \
        struct.pack("<IIHBBB", 0, reqid, 2, 1, 0, flags) + bytes(7)


def policy(direction=1, action=0, priority=5):
    """struct xfrm_userpolicy_info"""
    sel = bytes([10, 2]) + bytes(14) + bytes([10, 1]) + bytes(14) + bytes(8) + struct.pack("<HBBB", 2, 16, 16, 0) + \
        bytes(11)
    return sel + struct.pack("<8Q", *[2**64 - 1] * 4, 0, 0, 0, 0) + bytes(32) + \
        struct.pack("<IIBBBB", priority, 0, direction, action, 0, 0) + bytes(4)


GCM = nla(18, b"rfc4106(gcm(aes))".ljust(64, b"\0") + struct.pack("<II", 160, 128) + bytes(range(20)))
NULL = nla(2, b"ecb(cipher_null)".ljust(64, b"\0") + struct.pack("<I", 0))
TMPL = nla(5, bytes([198, 51, 100, 2]) + bytes(16) + b"\x32\0\0\0" + struct.pack("<Hxx", 2) +
           bytes([192, 0, 2, 1]) + bytes(12) + struct.pack("<IBBBx", 7, 1, 0, 0) + b"\xff" * 12)
NEWSA, DELSA, GETSA, NEWPOLICY, DELPOLICY, GETPOLICY, ALLOCSPI, ACQUIRE, EXPIRE, UPDPOLICY, UPDSA, POLEXPIRE, \
    FLUSHSA, FLUSHPOLICY, NEWAE, GETAE = range(16, 32)
GETSADINFO, NEWSPDINFO, GETSPDINFO, SETDEFAULT, GETDEFAULT = 35, 36, 37, 39, 40


def xfrm_seeds():
    """Of NETLINK_XFRM."""
    sa_id = bytes([198, 51, 100, 2]) + bytes(12) + struct.pack(">I", 0x1000) + struct.pack("<HBx", 2, 50)
    policy_id = policy()[:56] + struct.pack("<IBxxx", 0, 1)
    esn = nla(23, struct.pack("<6I", 2, 5, 6, 0, 1, 64) + bytes(8))
    yield "sa", message(NEWSA, ACK, sa() + GCM)
    yield "sa_null", message(NEWSA, ACK, sa(0x1001) + NULL)
    yield "sa_esn", message(NEWSA, ACK, sa(0x1002, 7, 128) + GCM + esn + nla(21, struct.pack("<II", 1, 3)) +
                            nla(4, struct.pack("<H", 2) + b"\x11\x94\x11\x94" + bytes(18)) + u32(29, 5) + u32(31, 2) +
                            nla(9, struct.pack("<4Q", 1, 2, 3, 4)) + u32(24, 1) + u32(22, 100))
    yield "sa_pcpu", message(NEWSA, ACK, sa(0x1003) + GCM + nla(33, b"\2") + u32(35, 1))
    yield "sa_twice", message(NEWSA, ACK, sa() + GCM) + message(UPDSA, ACK, sa() + GCM, 2) + \
        message(DELSA, ACK, sa_id, 3)
    yield "sas", message(NEWSA, ACK, sa() + GCM) + message(GETSA, DUMP, b"", 2)
    yield "sa_get", message(NEWSA, ACK, sa() + GCM) + message(GETSA, ACK, sa_id, 2)
    yield "spi", message(ALLOCSPI, ACK, sa(0) + struct.pack("<II", 0x2000, 0x2001))
    yield "expire", message(EXPIRE, ACK, sa() + b"\1" + bytes(7))
    yield "ae", message(GETAE, ACK, sa_id + bytes(24)) + message(NEWAE, ACK | 0x100, sa_id + bytes(24) + u32(11, 3), 2)
    yield "sad", message(GETSADINFO, ACK, bytes(4)) + message(FLUSHSA, ACK, b"\x32\0\0\0", 2)
    for direction in range(3):
        yield f"policy{direction}", message(NEWPOLICY, ACK, policy(direction) + TMPL)
    yield "block", message(UPDPOLICY, ACK, policy(2, 1, 3) + u32(31, 0) + nla(21, struct.pack("<II", 1, 3)))
    yield "policies", message(NEWPOLICY, ACK, policy() + TMPL) + message(GETPOLICY, DUMP, b"", 2)
    yield "policy_get", message(NEWPOLICY, ACK, policy() + TMPL) + message(GETPOLICY, ACK, policy_id, 2) + \
        message(DELPOLICY, ACK, policy_id + nla(16, bytes(6)), 3)
    yield "polexpire", message(POLEXPIRE, ACK, policy() + b"\1" + bytes(7))
    yield "spd", message(GETSPDINFO, ACK, bytes(4)) + message(NEWSPDINFO, ACK, bytes(4) + nla(3, b"\x18\x18"), 2)
    yield "default", message(SETDEFAULT, ACK, b"\1\2\1\0") + message(GETDEFAULT, ACK, bytes(4), 2) + \
        message(FLUSHPOLICY, ACK, b"", 3)


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
    yield "template", message(NEWQDISC, new, clsact) + \
        message(NEWCHAIN, new, tcm(1, INGRESS, 0, ETH_IP) + text(1, "flower") + u32(11, 5) +
                nla(2, nla(8, b"\x08\0") + nla(10, bytes(4)) + nla(11, b"\xff\xff\0\0") + u32(22, 0)), 2) + \
        message(NEWTFILTER, new, flower() + u32(11, 5), 3) + message(GETCHAIN, DUMP, tcm(1, INGRESS), 4)
    yield "chains", message(GETCHAIN, DUMP, tcm(1, INGRESS))
    yield "no_chain", message(DELCHAIN, ACK, tcm(1, INGRESS) + u32(11, 7))
    for i in range(8):
        yield f"ctl{i}", struct.pack("<IHHIIIIII", 32, 0xfff0 + i, 1, 0, 0, 1, 1, 0, 0)


def write(where, name, datagram, protocol):
    with open(os.path.join(where, name), "wb") as f:
        f.write(bytes([protocol]) + datagram)
    length, kind, flags = struct.unpack("<IHH", datagram[:8])
    if kind >= 16 + 104:
        return
    with open(os.path.join(where, name + "_header"), "wb") as f:
        f.write(bytes([protocol | 1]) + struct.pack("<HH", kind - 16, flags) + datagram[16:length])


def main(where):
    for name, datagram in seeds():
        write(where, name, datagram, 0)
    for name, datagram in xfrm_seeds():
        write(where, "xfrm_" + name, datagram, 2)


main(sys.argv[1])
