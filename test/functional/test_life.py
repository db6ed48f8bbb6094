# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Starting, ending, lcores, topologies, users, and what the packet path does not do."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import time

import frames
import pytest
from conftest import MILLRACE, NULL_PORTS, PATIENCE, drops


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_with_statistics(millrace, number):
    program = millrace(NULL_PORTS, commands=["start"]).wait_ready()
    program.wait_forwarding()
    program.signal(number)
    output = program.wait(0)
    assert re.search(r"[TR]X-packets:\s*[1-9]", output), output


def test_signal_while_it_waits(running):
    running.signal(signal.SIGTERM)
    running.wait(0)


def test_sigpipe_does_not_end_it(running):
    running.signal(signal.SIGPIPE)
    time.sleep(0.2)
    assert "p0" in running.ip("link show").stdout
    running.stop()


def test_closed_stdin_does_not_end_it(millrace):
    program = millrace(NULL_PORTS, ["-i"], stdin=subprocess.PIPE).wait_ready()
    program.process.stdin.close()
    time.sleep(0.3)
    assert "p0" in program.ip("link show").stdout
    program.stop()


def test_prompt(millrace):
    program = millrace(NULL_PORTS, ["-i"], stdin=subprocess.PIPE).wait_ready()

    def say(line):
        program.process.stdin.write(line.encode() + b"\n")
        program.process.stdin.flush()

    for line in ("help", "start", "show port info all", "tc qdisc add dev p0 clsact", "nonsense"):
        say(line)
    program.wait_forwarding()
    for line in ("show port stats all", "show fwd stats all", "show sched all", "show drops",
                 "clear port stats all", "stop", "quit"):
        say(line)
    output = program.wait(0)
    assert "millrace> " in output
    assert "RX-packets" in output
    program.process.stdin.close()


def test_help_and_version():
    for option in ("--help", "--version"):
        result = subprocess.run([str(MILLRACE), "--", option], capture_output=True, text=True,
                                timeout=PATIENCE, check=True)
        assert "millrace" in result.stdout
    assert "--idle-exit" in subprocess.run([str(MILLRACE), "--", "--help"], capture_output=True,
                                           text=True, timeout=PATIENCE, check=True).stdout


def test_stats_period(millrace):
    program = millrace(NULL_PORTS, ["--stats-period=1"], commands=["start"])
    program.wait_output(r"RX-packets:?\s*[1-9]")
    program.stop()


@pytest.mark.parametrize("lcores, cores", [("0@0,1@0", 1), ("0@0,1@0,2@0", 2)])
def test_lcores(millrace, lcores, cores):
    program = millrace(NULL_PORTS, [f"--nb-cores={cores}"], commands=["start"], lcores=lcores)
    program.wait_ready().wait_forwarding("p0").wait_forwarding("p1")
    program.stop()


def test_two_workers_on_two_cpus(millrace):
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs two CPUs")
    program = millrace(NULL_PORTS, ["--nb-cores=2"], commands=["start"], lcores="0@0,1@1,2@0")
    program.wait_ready().wait_forwarding("p0").wait_forwarding("p1")
    program.stop()


def test_queues(millrace):
    program = millrace(NULL_PORTS, ["--nb-cores=2", "--rxq=2", "--txq=2"], commands=["start"],
                       lcores="0@0,1@0,2@0")
    program.wait_ready().wait_forwarding("p0").wait_forwarding("p1")
    program.stop()


@pytest.mark.parametrize("topology, goes", [
    ("paired", {0: 1, 1: 0, 2: 3, 3: 2}),
    ("chained", {0: 1, 1: 2, 2: 3, 3: 0}),
    ("loop", {0: 0, 1: 1, 2: 2, 3: 3}),
])
def test_topology(millrace, directory, topology, goes):
    sent = {}
    vdevs = []
    for port in goes:
        sent[port] = [frames.frame("udp", 4, size=20 + port * 10 + i) for i in range(40)]
        frames.write(directory / f"in{port}.pcap", sent[port])
        vdevs.append(f"net_pcap{port},rx_pcap={directory}/in{port}.pcap,"
                     f"tx_pcap={directory}/out{port}.pcap")
    millrace(vdevs, [f"--port-topology={topology}", "--idle-exit=300"], commands=["start"],
             idle_sleep=None).wait()
    for source, target in goes.items():
        assert frames.read(directory / f"out{target}.pcap") == sent[source]


def cpu_seconds(program):
    """What a worker has used so far."""
    (tid,) = program.worker_tids()
    fields = pathlib.Path(f"/proc/{program.process.pid}/task/{tid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("idle_sleep", [None, 1000])
def test_idle_sleep(millrace, idle_sleep):
    """With nothing to do a worker takes its CPU, or next to nothing of it; configuring waits for neither."""
    program = millrace(["net_ring0", "net_ring1"], commands=["start"], idle_sleep=idle_sleep).wait_ready()
    before, start = cpu_seconds(program), time.monotonic()
    for _ in range(20):
        program.tc("qdisc replace dev p0 clsact")
    time.sleep(max(0, start + 2 - time.monotonic()))
    used = (cpu_seconds(program) - before) / (time.monotonic() - start)
    assert used < 0.1 if idle_sleep else used > 0.1
    program.stop()


def test_port_names(millrace):
    program = millrace(NULL_PORTS, ["--port-name=0,wan", "--port-name=1,lan"]).wait_ready()
    assert [link["ifname"] for link in program.json("ip -j link show")] == ["wan", "lan"]
    program.tc("qdisc add dev wan clsact")
    program.stop()


def test_down_port_passes_nothing(millrace, directory):
    sent = frames.good_frames()
    frames.write(directory / "in0.pcap", sent)
    frames.write(directory / "in1.pcap", [])
    vdevs = [f"net_pcap{i},rx_pcap={directory}/in{i}.pcap,tx_pcap={directory}/out{i}.pcap"
             for i in range(2)]
    output = millrace(vdevs, ["--idle-exit=300"],
                      commands=["ip link set p1 down", "start"]).wait()
    assert frames.read(directory / "out1.pcap") == []
    assert drops(output) == {"tx_down": len(sent)}


def test_ordinary_user(millrace, directory):
    if os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    user = pwd.getpwnam("nobody")
    where = directory / "nobody"
    where.mkdir()
    os.chown(where, user.pw_uid, user.pw_gid)
    probe = subprocess.run(
        ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
         str(MILLRACE), "--", "--version"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("user nobody cannot reach the build directory")
    program = millrace(
        NULL_PORTS, directory=where, commands=["start"], env={"HOME": str(where)},
        wrapper=["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"])
    program.wait_ready().wait_forwarding()
    program.stop()


def test_hugepages(millrace):
    try:
        with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="ascii") as f:
            free = int(f.read())
    except OSError:
        free = 0
    if free < 256:
        pytest.skip(f"needs 256 free hugepages of 2 MB, there are {free}")
    program = millrace(NULL_PORTS, commands=["start"], memory=["--in-memory", "-m", "512", "--no-pci"])
    program.wait_ready().wait_forwarding()
    program.stop()


def test_no_system_call_on_the_packet_path(millrace):
    """strace sees none of a forwarding thread, with filters, an action and a scheduler in its way."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    program = millrace(NULL_PORTS, commands=[
        "tc qdisc add dev p0 clsact",
        "tc filter add dev p0 ingress matchall action csum ip4h and udp",
        "start",
    ], idle_sleep=None).wait_ready()
    program.wait_forwarding("p1")
    tids = program.worker_tids()
    assert tids
    trace = program.directory / "trace"
    tracer = subprocess.Popen(["strace", "-o", str(trace), "-p", str(tids[0])],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(0.5)
    if tracer.poll() is not None:
        pytest.skip(f"strace may not attach here: {tracer.stdout.read().decode().strip()}")
    before = program.link_stats("p1")["tx"]["packets"]
    # Control work beside it must not make the worker call the kernel either.
    for _ in range(3):
        program.tc("filter replace dev p0 ingress pref 1 handle 1 matchall action csum ip4h")
        time.sleep(0.3)
    after = program.link_stats("p1")["tx"]["packets"]
    tracer.send_signal(signal.SIGINT)
    tracer.wait(PATIENCE)
    tracer.stdout.close()
    assert after > before
    calls = [line for line in trace.read_text().splitlines()
             if not line.startswith(("strace:", "---", "+++"))]
    assert calls == []
    program.stop()
