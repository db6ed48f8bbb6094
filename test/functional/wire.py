# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""usage: wire.py LINK LINK LOSS DISORDER [protocols]

A wire between two interfaces that drops a share of the frames and lets a share of them be overtaken by
three later ones. With `protocols` it prints, when it is terminated, what kinds of frames it saw.
"""

import random
import select
import signal
import socket
import sys

ETH_P_ALL = 3


def kind(frame):
    ether = frame[12:14]
    if ether == b"\x08\x06":
        return "arp"
    if ether == b"\x08\x00":
        return "esp" if frame[23] == 50 else f"ip-{frame[23]}"
    if ether == b"\x86\xdd":
        if frame[20] == 58 and (frame[38:40] == b"\xff\x02" or frame[38:40] == b"\xfe\x80"):
            return "icmp6-link"
        return "esp" if frame[20] == 50 else f"ip6-{frame[20]}"
    return ether.hex()


def main():
    loss, disorder = float(sys.argv[3]), float(sys.argv[4])
    chance = random.Random(1)
    ends = []
    seen = set()
    for name in sys.argv[1:3]:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.bind((name, 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        ends.append(s)

    def leave(*_):
        if "protocols" in sys.argv[5:]:
            print("\n".join(sorted(seen)), flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, leave)
    late = {s: [] for s in ends}
    while True:
        for s in select.select(ends, [], [], 0.05)[0]:
            frame, address = s.recvfrom(65535)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            seen.add(kind(frame))
            if chance.random() < loss:
                continue
            other = ends[1 - ends.index(s)]
            if chance.random() < disorder:
                late[s].append([3, frame])
                continue
            other.send(frame)
            for item in late[s]:
                item[0] -= 1
            while late[s] and late[s][0][0] <= 0:
                other.send(late[s].pop(0)[1])


main()
