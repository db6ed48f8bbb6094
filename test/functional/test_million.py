# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Many `tc -b` lines in ten files from two clients at once: they load, are shown as they were given, and
are deleted to nothing, with no memory lost.

MILLRACE_TC_LINES says how many: 10000 unless asked otherwise, 1000000 for the full run of a minute or two
(`meson test -C build million` with it in the environment), which also needs 1.5 GB of memory. What the
full run took and kept is printed (pytest -s).
"""

import os
import re
import subprocess
import threading
import time

from program import MILLRACE_EXEC

LINES = int(os.environ.get("MILLRACE_TC_LINES", "10000"))
FILES = 10
CLIENTS = 2
PATIENCE = 60 + LINES / 1000
# What a rule with its own action may leave behind once all are gone: chunks of counters and tables that
# are kept for the next ones, and what malloc() holds on to.
KEPT_BYTES = 40
# AddressSanitizer does, to find uses after it.
KEEPS_FREED = os.environ.get("MILLRACE_SANITIZER", "none") != "none"
KEPT_ALWAYS = 16 << 20


def key(n):
    """The nth rule's key, in tc's words and order."""
    address = f"198.18.{n >> 8 & 255}.{n & 255}"
    if n % 3 == 0:
        return ("ip_proto udp", f"dst_ip {address}", f"src_ip 10.{n >> 16}.0.0/16", "dst_port 53")
    if n % 3 == 1:
        return ("ip_proto tcp", f"dst_ip {address}", f"src_port {1 + (n >> 16)}")
    return (f"dst_ip {address}", f"src_ip 10.0.{n >> 16}.1")


def place(n):
    """Three priorities of chain 0 and one of chain 7."""
    return (7, 9) if n % 10 == 9 else (0, 1 + n % 3)


def line(verb, n):
    chain, pref = place(n)
    where = f"filter {verb} dev p0 ingress chain {chain} protocol ip pref {pref} handle {n + 1} flower"
    return f"{where} {' '.join(key(n))} action drop\n" if verb == "add" else where + "\n"


def write_files(directory, verb, numbers):
    """FILES of them."""
    paths = []
    for i in range(FILES):
        paths.append(directory / f"{verb}{i}")
        paths[-1].write_text("".join(line(verb, n) for n in numbers[i::FILES]))
    return paths


def load(program, paths):
    """All files, by two clients at once. Seconds."""
    failed = []

    def client(mine):
        for path in mine:
            run = program.run("tc", "-b", str(path), check=False, timeout=PATIENCE)
            if run.returncode != 0:
                failed.append(run.stderr[-500:])

    start = time.monotonic()
    threads = [threading.Thread(target=client, args=(paths[i::CLIENTS],)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    return time.monotonic() - start


def shown(program):
    """Yields (chain, pref, handle, keys) of each rule as tc shows it."""
    argv = [str(MILLRACE_EXEC), "-s", str(program.ctl), "tc", "filter", "show", "dev", "p0", "ingress"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as tc:
        rule = None
        for text in tc.stdout:
            head = re.match(r"filter protocol ip pref (\d+) flower chain (\d+) (?:handle (\S+))?", text)
            if head is not None:
                if rule is not None:
                    yield rule
                rule = head.group(3) and (int(head.group(2)), int(head.group(1)), int(head.group(3), 16), [])
            elif re.match(r"  (ip_proto|dst_ip|src_ip|dst_port|src_port) ", text):
                rule[3].append(text.strip())
        if rule is not None:
            yield rule
    assert tc.returncode == 0


def resident(program):
    with open(f"/proc/{program.process.pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def settled(program, most):
    """Resident bytes once they are no more than `most`, or after a while whatever they are."""
    end = time.monotonic() + 30
    while resident(program) > most and time.monotonic() < end:
        time.sleep(0.1)
    return resident(program)


def test_lines(running, directory):
    program = running
    program.tc("qdisc add dev p0 clsact")
    numbers = list(range(LINES))
    adds = write_files(directory, "add", numbers)
    # Out again the other way round, so that no file meets its own order.
    dels = write_files(directory, "del", numbers[::-1])
    sizes, seconds = [resident(program)], []
    for _ in range(2):
        seconds.append(load(program, adds))
        sizes.append(resident(program))
        n = 0
        for chain, pref, handle, keys in shown(program):
            assert ((chain, pref), tuple(keys)) == (place(handle - 1), key(handle - 1))
            n += 1
        assert n == LINES
        seconds.append(load(program, dels))
        assert not list(shown(program))
        assert program.tc("actions ls action gact").stdout == ""
        sizes.append(settled(program, sizes[0] + KEPT_ALWAYS + KEPT_BYTES * LINES))
        assert KEEPS_FREED or sizes[-1] <= sizes[0] + KEPT_ALWAYS + KEPT_BYTES * LINES, sizes
    # What was kept once is not kept twice.
    assert KEEPS_FREED or sizes[4] <= sizes[2] + KEPT_ALWAYS, sizes
    print(f"\n{LINES} lines: added in {seconds[0]:.1f} and {seconds[2]:.1f} s, deleted in {seconds[1]:.1f} and "
          f"{seconds[3]:.1f} s; resident MiB before, full, empty, full, empty: "
          + ", ".join(str(size >> 20) for size in sizes))
