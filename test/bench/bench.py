#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Compares two forwarding programs on the same frames, the same devices and the same CPU.

Each run starts the programs one after the other, in turns, so that a machine which drifts drifts for
both. Both are fed by the preloaded frame source (test/bench/source) and measured from outside with
one yardstick: packets that the ports sent in a window, from DPDK's telemetry, and the processor time
that the forwarding threads had in it, from the kernel. A polling thread never sleeps, so

    cycles a packet = processor seconds of the forwarding threads * TSC Hz / packets.

Windows while a program warms up are thrown away. Printed and written to BUILD/bench/ROW.json:
medians, spread (of the runs' medians, in per cent), ratio, and the target beside each figure.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

WORKER = re.compile(r"lcore-worker|rte-worker|dpdk-worker")


ESP_OUT, ESP_IN = 0x1001, 0x2001
ESP_KEY = bytes(range(20))


class BenchError(Exception):
    pass


# ---- frames ----------------------------------------------------------------------------------


def ones_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def udp_frame(size, flow, good):
    """An Ethernet frame of `size` bytes: UDP over IPv4, both checksums right or both wrong."""
    src, dst = bytes([198, 18, 0, 1]), bytes([198, 19, flow >> 8 & 255, flow & 255])
    payload = bytes((i * 7 + flow) & 255 for i in range(size - 14 - 20 - 8))
    length = 8 + len(payload)
    udp = struct.pack("!HHHH", 1024 + flow % 60000, 9, length, 0) + payload
    check = ~ones_sum(src + dst + struct.pack("!HH", 17, length) + udp) & 0xFFFF or 0xFFFF
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, flow & 0xFFFF, 0, 64, 17, 0, src, dst)
    ip_check = ~ones_sum(ip) & 0xFFFF
    if not good:  # wrong, and never the zero that means "none"
        check = (check ^ 0x5555) or 0x1234
        ip_check ^= 0x5555
    udp = udp[:6] + struct.pack("!H", check) + udp[8:]
    ip = ip[:10] + struct.pack("!H", ip_check) + ip[12:]
    return b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0" + ip + udp


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


class Source:
    """The frames of a row: `flows` frames of `size` bytes, sent round-robin."""

    def __init__(self, size, flows=1, good=True):
        self.size, self.flows, self.good = size, flows, good

    def write(self, path):
        write_pcap(path, [udp_frame(self.size, i, self.good) for i in range(self.flows)])

    def text(self):
        sums = "right" if self.good else "wrong non-zero"
        return (
            f"net_null with copied UDP/IPv4 frames of {self.size} B, {self.flows} flow(s), "
            f"{sums} checksums"
        )


class EspSource(Source):
    """The same as ESP tunnel packets for millrace, which takes each number any number of times."""

    def write(self, path):
        write_pcap(path, [esp_frame(udp_frame(self.size, i, True), i + 1) for i in range(self.flows)])

    def text(self):
        return super().text() + ", in an ESP tunnel"


def esp_frame(frame, seq):
    # Only these rows need it.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # pylint: disable=import-outside-toplevel

    packet = frame[14:]
    pad = -(len(packet) + 2) % 4
    header = struct.pack("!II", ESP_IN, seq)
    iv = struct.pack("!Q", seq)
    text = packet + bytes(range(1, pad + 1)) + bytes([pad, 4])
    sealed = AESGCM(ESP_KEY[:16]).encrypt(ESP_KEY[16:] + iv, text, header)
    esp = header + iv + sealed
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(esp), 0, 0, 64, 50, 0,
                     bytes([203, 0, 113, 254]), bytes([203, 0, 113, 129]))
    ip = ip[:10] + struct.pack("!H", ~ones_sum(ip) & 0xFFFF) + ip[12:]
    return frame[:14] + ip + esp


# ---- one program -----------------------------------------------------------------------------


class Program:
    """argv gets EAL options in front of `--`; `commands` go into a command file."""

    def __init__(self, name, path, options, commands):
        self.name, self.path, self.options, self.commands = name, path, options, commands

    def argv(self, prefix, workers, memory, cmdfile):
        lcores = ",".join(["0@0"] + [f"{w}@{w % os.cpu_count()}" for w in range(1, workers + 1)])
        eal = memory + ["--no-pci", "--lcores", lcores, f"--file-prefix={prefix}"]
        for port in range(2):
            eal += ["--vdev", f"net_null{port}"]
        return [self.path] + eal + ["--"] + self.options + [f"--cmdline-file={cmdfile}"]


def runtime_dir(prefix):
    base = os.environ.get("RUNTIME_DIRECTORY")
    if base is None:
        base = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return os.path.join(base, "dpdk", prefix)


class Telemetry:
    def __init__(self, prefix):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(10)
        self.sock.connect(os.path.join(runtime_dir(prefix), "dpdk_telemetry.v2"))
        self.sock.recv(65536)

    def ask(self, command):
        self.sock.send(command.encode())
        return list(json.loads(self.sock.recv(65536)).values())[0]

    def close(self):
        self.sock.close()


class Running:
    """A program under way, until the end of the `with` block."""

    def __init__(self, program, args, directory, source):
        self.program, self.args = program, args
        self.prefix = f"bench-{os.getpid()}-{program.name}"
        cmdfile = os.path.join(directory, program.name + ".cmd")
        with open(cmdfile, "w", encoding="ascii") as f:
            f.write("".join(line + "\n" for line in program.commands))
        self.log = os.path.join(directory, program.name + ".log")
        self.source_log = os.path.join(directory, program.name + ".source")
        env = dict(os.environ, LD_PRELOAD=args.source, MILLRACE_SOURCE_LOG=self.source_log)
        if source is not None:
            env["MILLRACE_SOURCE"] = os.path.join(directory, "frames.pcap")
        self.argv = program.argv(self.prefix, args.workers, memory_options(), cmdfile)
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=out, stderr=out, env=env
            )
        self.telemetry = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.telemetry is not None:
            self.telemetry.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        shutil.rmtree(runtime_dir(self.prefix), ignore_errors=True)

    def fail(self, what):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            tail = "".join(f.readlines()[-15:])
        raise BenchError(f"{self.program.name}: {what}\n{' '.join(self.argv)}\n{tail}")

    def wait_forwarding(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.fail(f"ended with status {self.process.returncode}")
            try:
                if self.telemetry is None:
                    self.telemetry = Telemetry(self.prefix)
                if self.packets() > 0:
                    return
            except (OSError, ValueError, TypeError, KeyError):
                pass  # not up yet
            time.sleep(0.1)
        self.fail("forwards nothing after 30 s")

    def packets(self):
        ports = self.telemetry.ask("/ethdev/list")
        counter = self.args.counter
        return sum(self.telemetry.ask(f"/ethdev/stats,{port}")[counter] for port in ports)

    def worker_times(self):
        """Processor time in ns of each thread that may forward."""
        times = {}
        base = f"/proc/{self.process.pid}/task"
        for tid in os.listdir(base):
            with open(f"{base}/{tid}/comm", encoding="ascii") as f:
                if not WORKER.search(f.read()):
                    continue
            with open(f"{base}/{tid}/schedstat", encoding="ascii") as f:
                times[tid] = int(f.read().split()[0])
        return times

    def window(self, seconds):
        """(cycles a packet, million packets a second) over one window."""
        times, packets, start = self.worker_times(), self.packets(), time.monotonic()
        time.sleep(seconds)
        times2, packets2, end = self.worker_times(), self.packets(), time.monotonic()
        busy = sum(times2[tid] - times.get(tid, 0) for tid in times2)
        if packets2 == packets:
            self.fail("stopped forwarding")
        if busy <= 0:
            self.fail("has no forwarding thread by a known name")
        sent = packets2 - packets
        return busy * 1e-9 * self.tsc_hz() / sent, sent / (end - start) / 1e6

    def tsc_hz(self):
        with open(self.source_log, encoding="ascii") as f:
            return json.loads(f.readline())["tsc_hz"]


# ---- a row -----------------------------------------------------------------------------------


def memory_options():
    try:
        with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="ascii") as f:
            if int(f.read()) >= 300:
                return ["--in-memory", "-m", "512"]
    except OSError:
        pass
    return ["--no-huge", "-m", "512", "--no-shconf"]


def summary(values, best=min):
    median = statistics.median(values)
    return {
        "values": [round(v, 2) for v in values],
        "median": round(median, 2),
        "best": round(best(values), 2),
        "spread_percent": round((max(values) - min(values)) / median * 100, 1),
    }


def compare(programs, args, source):
    """Runs the programs in turns; a run's figure is the median of its windows."""
    cycles = {p.name: [] for p in programs}
    mpps = {p.name: [] for p in programs}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        if source is not None:
            source.write(os.path.join(directory, "frames.pcap"))
        for run in range(args.runs):
            order = programs if run % 2 == 0 else programs[::-1]
            for program in order:
                with Running(program, args, directory, source) as running:
                    running.wait_forwarding()
                    running.window(args.warmup)
                    windows = [running.window(args.seconds) for _ in range(args.windows)]
                    commands = {running.program.name: " ".join(running.argv)}
                cycles[program.name].append(statistics.median(w[0] for w in windows))
                mpps[program.name].append(statistics.median(w[1] for w in windows))
                args.commands.update(commands)
    return {
        name: {"cycles": summary(cycles[name]), "mpps": summary(mpps[name], max)} for name in cycles
    }


COMMON = ["--mbcache=256", "--total-num-mbufs=16384"]


def testpmd(args, burst, mode, commands=()):
    options = COMMON + [f"--nb-cores={args.workers}", f"--burst={burst}", f"--forward-mode={mode}"]
    options += [f"--rxq={args.queues}", f"--txq={args.queues}"]
    # Without -i it starts forwarding by itself once the file has run.
    return Program("testpmd", args.testpmd, options, list(commands))


def millrace(args, burst, commands=()):
    options = COMMON + [f"--nb-cores={args.workers}", f"--burst={burst}", "--forward-mode=io"]
    options += [f"--rxq={args.queues}", f"--txq={args.queues}"]
    return Program("millrace", args.millrace, options, list(commands) + ["start"])


def csum_rules():
    for port in ("p0", "p1"):
        yield f"tc qdisc add dev {port} clsact"
        yield f"tc filter add dev {port} ingress matchall action csum ip4h udp"


def csum_testpmd():
    yield "port stop all"
    for port in range(2):
        for layer in ("ip", "udp", "tcp"):
            yield f"csum set {layer} sw {port}"
    yield "port start all"


def row_io(args):
    """io through the empty pipeline against testpmd io."""
    sizes = args.sizes or [None, 64]
    for size in sizes:
        for burst in args.bursts or [32]:
            source = Source(size) if size else None
            name = f"io-{size or 'zeros'}-burst{burst}"
            programs = [testpmd(args, burst, "io"), millrace(args, burst)]
            yield name, source, programs, {"kind": "difference", "at_most": 8}


def row_csum(args):
    """matchall + csum ip4h udp against testpmd csum, wrong checksums going in."""
    targets = {64: 1.4, 512: 2.2, 1500: 1.6} if args.native else {64: 1.45, 512: 3, 1500: 3.5}
    for size in args.sizes or [64, 512, 1500]:
        for burst in args.bursts or [32]:
            programs = [
                testpmd(args, burst, "csum", csum_testpmd()),
                millrace(args, burst, csum_rules()),
            ]
            target = {"kind": "faster", "at_least": targets.get(size)}
            name = f"csum{'-native' if args.native else ''}-{size}-burst{burst}"
            yield name, Source(size, good=False), programs, target


def ip_rules():
    yield "set fwd ip"
    for port in range(2):
        # The source's frames are for this station.
        yield f"ip link set p{port} address 02:00:00:00:00:02"
        yield f"ip addr add 203.0.113.{1 + 128 * port}/25 dev p{port}"
    yield "ip route add 198.19.0.0/16 via 203.0.113.254"
    yield "ip neigh add 203.0.113.254 lladdr 02:00:00:00:00:fe dev p1"


def row_ip(args):
    """IPv4 forwarding by one route, without rules; testpmd io is the source's own cost."""
    for size in args.sizes or [64]:
        for burst in args.bursts or [32]:
            programs = [testpmd(args, burst, "io"), millrace(args, burst, ip_rules())]
            # performance.md's 60 cycles with a source of 23.
            yield f"ip-{size}-burst{burst}", Source(size), programs, {
                "kind": "difference", "at_most": 37}


def esp_rules(inbound):
    yield from ip_rules()
    ours, theirs = "203.0.113.129", "203.0.113.254"
    rest = f"mode tunnel reqid 1 aead rfc4106(gcm(aes)) 0x{ESP_KEY.hex()} 128"
    if inbound:
        # No window: the source sends the same numbers over and over.
        yield f"ip xfrm state add src {theirs} dst {ours} proto esp spi {ESP_IN} replay-window 0 {rest}"
        yield f"ip xfrm policy add dst 198.19.0.0/16 dir fwd tmpl src {theirs} dst {ours} " \
              "proto esp reqid 1 mode tunnel"
    else:
        yield f"ip xfrm state add src {ours} dst {theirs} proto esp spi {ESP_OUT} {rest}"
        yield f"ip xfrm policy add dst 198.19.0.0/16 dir out tmpl src {ours} dst {theirs} " \
              "proto esp reqid 1 mode tunnel"


def row_esp(args):
    """An ESP tunnel, AES-128-GCM, one SA; testpmd io is the source's own cost. Sizes are those of the
    frames in clear; targets are performance.md's cycles less those of its source."""
    targets = {"out": {64: 145 - 23, 256: 190 - 31, 1420: 410 - 100},
               "in": {64: 165 - 23, 256: 200 - 31, 1420: 430 - 100}}
    for way in ("out", "in"):
        for size in args.sizes or [64, 256, 1420]:
            source = EspSource(size) if way == "in" else Source(size)
            for burst in args.bursts or [32]:
                programs = [testpmd(args, burst, "io"), millrace(args, burst, esp_rules(way == "in"))]
                yield f"esp-{way}-{size}-burst{burst}", source, programs, {
                    "kind": "difference", "at_most": targets[way].get(size)}


ROWS = {"io": row_io, "csum": row_csum, "ip": row_ip, "esp": row_esp}


def judge(result, target):
    peer, ours = (result[name]["cycles"]["median"] for name in result)
    figures = {
        "ratio": round(ours / peer, 3),
        "faster": round(peer / ours, 2),
        "difference": round(ours - peer, 1),
    }
    figures["target"] = target
    value = figures[target["kind"]]
    if target.get("at_most") is not None:
        figures["met"] = value <= target["at_most"]
    elif target.get("at_least") is not None:
        figures["met"] = value >= target["at_least"]
    return figures


def target_text(figures):
    kind = figures["target"]["kind"]
    if figures["target"].get("at_most") is not None:
        want = f"at most {figures['target']['at_most']}"
    elif figures["target"].get("at_least") is not None:
        want = f"at least {figures['target']['at_least']}"
    else:
        want = "none"
    met = {True: "met", False: "MISSED", None: ""}[figures.get("met")]
    unit = {"difference": "cycles more", "faster": "times faster", "ratio": "of its cycles"}[kind]
    return f"{figures[kind]} {unit} (target {want}) {met}"


def machine():
    info = {"kernel": platform.release(), "cpus": os.cpu_count(), "memory": memory_options()[0]}
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        model = re.search(r"model name\s*:\s*(.*)", f.read())
    info["cpu"] = model.group(1) if model else platform.machine()
    dpdk = subprocess.run(
        ["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True, check=False
    )
    info["dpdk"] = dpdk.stdout.strip()
    return info


def run_row(row, args):
    missed = 0
    for name, source, programs, target in ROWS[row](args):
        args.commands = {}
        result = compare(programs, args, source)
        figures = judge(result, target)
        record = {
            "name": name,
            "machine": machine(),
            "load_average": round(os.getloadavg()[0], 2),
            "source": source.text() if source else "net_null, zeros, nothing copied",
            "workers": args.workers,
            "runs": args.runs,
            "windows": args.windows,
            "seconds": args.seconds,
            "unit": "TSC cycles a packet",
            "commands": args.commands,
            "programs": result,
            **figures,
        }
        path = os.path.join(args.build, "bench", name + ".json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(record, f, indent=1)
            f.write("\n")
        shown = "  ".join(
            f"{p} {r['cycles']['median']} ({r['cycles']['best']}, +-{r['cycles']['spread_percent']}%)"
            for p, r in result.items()
        )
        print(f"{name:18} {shown}  {target_text(figures)}", flush=True)
        missed += figures.get("met") is False
    return missed


def need_file(path):
    if not os.path.exists(path):
        sys.exit(f"{os.path.basename(sys.argv[0])}: {path} is not there")


def built(args):
    """Finds what is measured and what feeds it in the build directory, and where results go."""
    args.millrace = args.millrace or os.path.join(args.build, "app", "millrace")
    args.source = os.path.join(
        os.path.abspath(args.build), "test", "bench", "source", "libmillrace_source.so"
    )
    need_file(args.millrace)
    need_file(args.source)
    os.makedirs(os.path.join(args.build, "bench"), exist_ok=True)


def numbers(text):
    return [int(word) if word != "zeros" else None for word in text.split(",")]


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)} (default: all)")
    p.add_argument("--build", default=os.path.join(root, "build"), help="build directory")
    p.add_argument("--runs", type=int, default=5, help="starts of each program (default 5)")
    p.add_argument("--windows", type=int, default=3, help="windows a run (default 3)")
    p.add_argument("--seconds", type=float, default=0.5, help="length of a window (default 0.5)")
    p.add_argument("--warmup", type=float, default=0.5, help="discarded before them (default 0.5)")
    p.add_argument("--sizes", type=numbers, help="frame sizes, 'zeros' for no source")
    p.add_argument("--bursts", type=numbers, help="burst sizes (default 32)")
    p.add_argument("--workers", type=int, default=1, help="forwarding lcores (default 1)")
    p.add_argument("--queues", type=int, default=1, help="queues a port (default 1)")
    p.add_argument("--counter", default="opackets", choices=["opackets", "ipackets"])
    p.add_argument("--testpmd", default=shutil.which("dpdk-testpmd") or "dpdk-testpmd",
                   help="the program to compare with (default: Debian's)")
    p.add_argument("--native", action="store_true",
                   help="that testpmd is built -O3 -march=native: compare with its targets")
    p.add_argument("--millrace", help="default: BUILD/app/millrace")
    p.add_argument("--strict", action="store_true", help="exit 1 if a target is missed")
    args = p.parse_args()
    for row in args.rows:
        if row not in ROWS:
            p.error(f"no row {row}")
    built(args)
    need_file(args.testpmd)
    print("TSC cycles a packet, median (best, spread of the runs)")
    try:
        missed = sum(run_row(row, args) for row in args.rows or ROWS)
    except BenchError as e:
        sys.exit(f"bench.py: {e}")
    sys.exit(1 if missed and args.strict else 0)


if __name__ == "__main__":
    main()
