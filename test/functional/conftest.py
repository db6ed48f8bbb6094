# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""What functional tests stand on: the built program, started with a name of its own, the real tc and
ip through millrace-exec, and pcap files. Nothing of the machine's own network is touched."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import frames
import pytest
from program import MEMORY, MILLRACE, MILLRACE_EXEC, PATIENCE, Millrace, wait_for

# What tests take from here.
__all__ = ["MEMORY", "MILLRACE", "MILLRACE_EXEC", "PATIENCE", "wait_for"]

CHECKSUM_OPTIONS = ["ip", "udp", "tcp"]


@pytest.fixture
def directory():
    """A short path: names of Unix sockets end at 107 bytes."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="mr-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def millrace(directory):
    """millrace(vdevs, options...) starts one; each has a directory of its own. All end with the test."""
    started = []

    def start(*args, **kwargs):
        where = kwargs.pop("directory", None)
        if where is None:
            where = directory / f"m{len(started)}"
            where.mkdir()
        program = Millrace(where, *args, **kwargs)
        started.append(program)
        return program

    yield start
    for program in started:
        program.kill()


NULL_PORTS = ["net_null0", "net_null1"]


@pytest.fixture
def running(millrace):
    """Two net_null ports, control socket ready, nothing forwarded: with -i it waits for `start`, and
    the end of its standard input does not end it."""
    return millrace(NULL_PORTS, ["-i"]).wait_ready()


class PcapJob:
    """The main job: frames in, rules, frames out."""

    def __init__(self, start, directory):
        self.start, self.directory = start, directory

    def run(self, sent, commands, options=("--idle-exit=300",), sent1=(), made=0, **how):
        """Returns (what left p0, what left p1, output). `made`: packets of the program's own, among
        them fragments beyond the first; those that are put together count the other way."""
        d = self.directory
        frames.write(d / "in0.pcap", sent)
        frames.write(d / "in1.pcap", sent1)
        vdevs = [f"net_pcap{i},rx_pcap={d}/in{i}.pcap,tx_pcap={d}/out{i}.pcap" for i in range(2)]
        program = self.start(vdevs, list(options), commands=commands, **how)
        output = program.wait()
        self.nics = program.nic_stats()
        assert_accounted(output, len(sent) + len(sent1), made)
        return frames.read(d / "out0.pcap"), frames.read(d / "out1.pcap"), output


@pytest.fixture
def pcap_job(millrace, directory):
    return PcapJob(millrace, directory)


def tshark_statuses(path):
    """For each frame the checksum statuses that tshark finds: '1' is good, '0' is bad."""
    fields = ["ip", "udp", "tcp", "icmp", "icmpv6"]
    argv = ["tshark", "-r", str(path), "-T", "json", "-n"]
    for name in CHECKSUM_OPTIONS:
        argv += ["-o", f"{name}.check_checksum:TRUE"]
    for name in fields:
        argv += ["-e", f"{name}.checksum.status"]
    out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [
        {key.split(".")[0]: value for key, value in packet["_source"].get("layers", {}).items()}
        for packet in json.loads(out)
    ]


def drops(output):
    """{reason: packets} of the last `show drops` in the output."""
    table = re.split(r"^  drop +packets +bytes +reason$", output, flags=re.M)
    if len(table) == 1:
        return {}
    rows = re.findall(r"^  (\w+) +(\d+) +(\d+)  \S", table[-1], re.M)
    return {name: int(packets) for name, packets, _ in rows}


def assert_accounted(output, sent, made=0):
    """Every frame was received, and left or has a named reason why not."""
    last = output.rsplit("Accumulated forward statistics for all ports", maxsplit=1)[-1]
    rx, tx = (int(re.search(rf"{way}X-packets: (\d+)", last).group(1)) for way in "RT")
    assert rx == sent, output
    assert rx + made == tx + sum(drops(output).values()), output
