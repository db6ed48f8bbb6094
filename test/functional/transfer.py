# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""usage: transfer.py receive tcp|udp
       transfer.py send tcp|udp ADDRESS MEGABYTES

One end of a transfer. Each prints how many bytes (udp: datagrams) it had and a sum over them that does
not depend on their order (udp) or does (tcp). The receiver prints `ready` first.
"""

import hashlib
import random
import socket
import sys
import time

PORT = 5999
DATAGRAM = 1000


def pattern(megabytes):
    return random.Random(7).randbytes(megabytes << 20)


def receive_tcp():
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        print("ready", flush=True)
        peer = server.accept()[0]
        total, digest = 0, hashlib.sha256()
        while data := peer.recv(65536):
            total += len(data)
            digest.update(data)
    print(total, digest.hexdigest())


def send_tcp(address, megabytes):
    data = pattern(megabytes)
    with socket.create_connection((address, PORT), timeout=20) as peer:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)
    print(len(data), hashlib.sha256(data).hexdigest())


def unordered(datagrams):
    return sum(int.from_bytes(hashlib.sha256(d).digest()[:8], "big") for d in datagrams) & (1 << 64) - 1


def receive_udp():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        s.bind(("::", PORT))
        print("ready", flush=True)
        got = []
        s.settimeout(30)
        while (data := s.recv(65536)) != b"end":
            got.append(data)
            s.settimeout(5)
    print(len(got), unordered(got))


def send_udp(address, megabytes):
    data = pattern(megabytes)
    datagrams = [i.to_bytes(4, "big") + data[i * DATAGRAM : (i + 1) * DATAGRAM]
                 for i in range(len(data) // DATAGRAM)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for i, d in enumerate(datagrams):
            s.sendto(d, (address, PORT))
            if i % 4 == 3:
                time.sleep(0.004)
        time.sleep(0.5)
        for _ in range(10):
            s.sendto(b"end", (address, PORT))
    print(len(datagrams), unordered(datagrams))


def main():
    verb, how = sys.argv[1:3]
    if verb == "receive":
        {"tcp": receive_tcp, "udp": receive_udp}[how]()
    else:
        {"tcp": send_tcp, "udp": send_udp}[how](sys.argv[3], int(sys.argv[4]))


main()
