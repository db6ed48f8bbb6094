#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Measures what requests cost beside forwarding: the server, the client that waits, and the packets.

millrace forwards (io, matchall with action csum on ingress, net_null with the frame source) on
CPU 1, while netlink_load asks for changes at a steady rate, in turns with silence: many short
windows in one run of the program, so that a machine which drifts drifts for both. The control
thread, the client and this script share CPU 0; its times are those of a machine that has no third.
The server's processor time a request is taken twice: with requests back to back, as a tc batch
sends them, and at the steady rate, where each finds the processor asleep and its caches cold.

Rows: csum (`tc actions change action csum`, two sets of parameters in turns), matchall (`tc filter
replace ... matchall action csum`) and flower (a rule with an action of its own added, then deleted). What of
its loss is not the packets' way to the rule show two rows more, only when they are named: aside (the same
rules in a chain to which no packet goes) and link (requests that change nothing: sockets, kernel and CPU alone).
Written to BUILD/bench/control.json, in us and per cent.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import bench

BUSY_REQUESTS = 20000
BUSY_RUNS = 5

# By row: the server's us a request back to back, p99 us, loss of forwarding in per cent.
TARGETS = {
    "csum": {"cpu_us": 3, "p99_us": 100, "forwarding_percent": 2},
    "matchall": {"cpu_us": 3, "p99_us": 100, "forwarding_percent": 1},
    "flower": {"cpu_us": 3, "p99_us": 100, "forwarding_percent": 3},
    "aside": {"cpu_us": 3, "p99_us": 100, "forwarding_percent": 3},
    "link": {"cpu_us": 3, "p99_us": 100, "forwarding_percent": 3},
}
CONTROLS = ("aside", "link")


def rules():
    yield "tc actions add action csum ip4h udp index 1"
    for port in ("p0", "p1"):
        yield f"tc qdisc add dev {port} clsact"
        yield f"tc filter add dev {port} ingress pref 1 handle 1 matchall action csum ip4h udp index 1"


def cpu_ns(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


class Load:
    """netlink_load on CPU 0, until the end of the `with` block."""

    def __init__(self, args, prefix, kind):
        path = os.path.join(bench.runtime_dir(prefix), "millrace.sock")
        program = os.path.join(args.build, "test", "bench", "netlink", "netlink_load")
        self.process = subprocess.Popen(
            [program, "-s", path, "-k", kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)

    def run(self, count, rate):
        self.process.stdin.write(f"{count} {rate}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise bench.BenchError("netlink_load ended")
        return json.loads(answer)


def window(running, args, load):
    """One window, with requests if there is a load: what forwarding and the control thread took."""
    pid = running.process.pid
    control, asked = cpu_ns(pid, pid), None
    times, packets, start = running.worker_times(), running.packets(), time.monotonic()
    if load is None:
        time.sleep(args.seconds)
    else:
        asked = load.run(int(args.seconds * args.rate), args.rate)
    times2, packets2, end = running.worker_times(), running.packets(), time.monotonic()
    busy = sum(times2[tid] - times.get(tid, 0) for tid in times2)
    if packets2 == packets or busy <= 0:
        running.fail(f"{packets2 - packets} packets and {busy} ns of forwarding in a window")
    return {
        "cycles": busy * 1e-9 * running.tsc_hz() / (packets2 - packets),
        "control_ns": cpu_ns(pid, pid) - control,
        "seconds": end - start,
        "asked": asked,
    }


def busy_us(running, load):
    """The control thread's us a request, back to back: the median of some runs."""
    pid, figures = running.process.pid, []
    for _ in range(BUSY_RUNS):
        before = cpu_ns(pid, pid)
        load.run(BUSY_REQUESTS, 0)
        figures.append((cpu_ns(pid, pid) - before) / BUSY_REQUESTS / 1000)
    return statistics.median(figures)


def row(running, args, kind):
    quiet, loud = [], []
    with Load(args, running.prefix, kind) as load:
        cpu_us = busy_us(running, load)
        for i in range(args.windows):
            for on in ((False, True), (True, False))[i % 2]:
                (loud if on else quiet).append(window(running, args, load if on else None))
    # What the thread does anyhow (timers, and this script's questions to telemetry are not its own).
    idle = sum(w["control_ns"] for w in quiet) / sum(w["seconds"] for w in quiet)
    asked = [w["asked"] for w in loud]
    requests = sum(a["requests"] for a in asked)
    failed = sum(a["failed"] for a in asked)
    if failed:
        raise bench.BenchError(f"{kind}: {failed} of {requests} requests were refused")
    # The share of each pair of neighbours: what drifts is the same for both.
    lost = [(on["cycles"] / off["cycles"] - 1) * 100 for off, on in zip(quiet, loud)]
    spent = sum(w["control_ns"] - idle * w["seconds"] for w in loud)
    result = {
        "row": kind,
        "requests_a_second": round(requests / sum(a["seconds"] for a in asked)),
        "cpu_us": round(cpu_us, 2),
        "paced_cpu_us": round(spent / requests / 1000, 2),
        "p50_us": round(statistics.median(a["p50_us"] for a in asked), 1),
        "p99_us": round(statistics.median(a["p99_us"] for a in asked), 1),
        "max_us": round(max(a["max_us"] for a in asked), 1),
        "late": sum(a["late"] for a in asked),
        "client_us": round(statistics.median(a["client_us"] for a in asked), 2),
        "quiet_cycles": round(statistics.median(w["cycles"] for w in quiet), 2),
        "loud_cycles": round(statistics.median(w["cycles"] for w in loud), 2),
        "forwarding_percent": round(statistics.median(lost), 2),
        "error_percent": round(statistics.stdev(lost) / len(lost) ** 0.5, 2),
    }
    result["targets"] = TARGETS[kind]
    result["met"] = all(result[name] <= most for name, most in TARGETS[kind].items())
    return result


def show(r):
    t = r["targets"]
    print(
        f"{r['row']:9} server {r['cpu_us']} us a request back to back (<= {t['cpu_us']})\n"
        f"{'':9} {r['requests_a_second']} a second: server {r['paced_cpu_us']} us each, "
        f"p50 {r['p50_us']} us, p99 {r['p99_us']} us (<= {t['p99_us']}), max {r['max_us']} us, "
        f"{r['late']} begun late\n"
        f"{'':9} forwarding {r['quiet_cycles']} -> {r['loud_cycles']} cycles a packet, "
        f"{r['forwarding_percent']} +- {r['error_percent']} % more (<= {t['forwarding_percent']})"
        f"  {'met' if r['met'] else 'MISSED'}",
        flush=True,
    )


def profile(running, args, kind):
    """Prints the system calls of the control thread in one second of requests (strace -c)."""
    pid = running.process.pid
    with Load(args, running.prefix, kind) as load:
        load.run(1000, args.rate)
        tracer = subprocess.Popen(["strace", "-c", "-p", str(pid)])
        time.sleep(0.5)
        load.run(args.rate, 0)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("rows", nargs="*", help=f"of {', '.join(TARGETS)} (default: all)")
    p.add_argument("--build", default=os.path.join(root, "build"), help="build directory")
    p.add_argument("--millrace", help="default: BUILD/app/millrace")
    p.add_argument("--rate", type=int, default=10000, help="requests a second (default 10000)")
    p.add_argument("--windows", type=int, default=100, help="of each sort (default 100)")
    p.add_argument("--seconds", type=float, default=0.2, help="length of a window (default 0.2)")
    p.add_argument("--size", type=int, default=64, help="of the frames (default 64)")
    p.add_argument("--syscalls", action="store_true", help="only count the server's system calls")
    p.add_argument("--strict", action="store_true", help="exit 1 if a target is missed")
    args = p.parse_args()
    for name in args.rows:
        if name not in TARGETS:
            p.error(f"no row {name}")
    args.workers = args.queues = 1
    args.counter = "opackets"
    bench.built(args)
    source = bench.Source(args.size, good=False)
    program = bench.millrace(args, 32, rules())
    results = []
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        source.write(os.path.join(directory, "frames.pcap"))
        try:
            with bench.Running(program, args, directory, source) as running:
                os.sched_setaffinity(0, {0})
                running.wait_forwarding()
                running.window(0.5)
                for name in args.rows or [name for name in TARGETS if name not in CONTROLS]:
                    if args.syscalls:
                        profile(running, args, name)
                        continue
                    results.append(row(running, args, name))
                    show(results[-1])
        except bench.BenchError as e:
            sys.exit(f"control.py: {e}")
    if args.syscalls:
        return
    record = {
        "bench": "control",
        "machine": bench.machine(),
        "load_average": round(os.getloadavg()[0], 2),
        "source": source.text(),
        "windows": args.windows,
        "seconds": args.seconds,
        "unit": "us a request, us, TSC cycles a packet, per cent",
        "command": " ".join(running.argv),
        "rows": results,
    }
    with open(os.path.join(args.build, "bench", "control.json"), "w", encoding="utf-8") as f:
        json.dump(record, f, indent=1)
        f.write("\n")
    sys.exit(1 if args.strict and not all(r["met"] for r in results) else 0)


if __name__ == "__main__":
    main()
