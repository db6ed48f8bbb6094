# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""millrace whose ports are NICs with rte_security (test/nic/nic.h), and what those counted.

    job = NicJob(millrace, directory)
    back, out, output = job.run(sent, commands, nic="0=all+mdata,1=inline_crypto+fast", marker=b"secret")
    job.stats["1"]["tx_protected"]          # when it has ended
    assert_quiet(job.stats)                 # nothing lost, nothing in clear, nothing left behind

    program = start(millrace, vdevs, options, nic="0=all+mdata,1=all+mdata", commands=...).wait_ready()
    stats(program, 1)["sessions"]           # while it runs
    sessions(program, 1), fault(program, 1, "tx_drop", 3), event(program, 1, "intr_reset"),
    caps(program, 1, "none"), marker(program, b"secret")
"""

import json
import os

from conftest import PcapJob
from program import MILLRACE_EXEC, MILLRACE_NIC

# Of a NIC that nobody told to fail: what should not have happened.
NEVER = ["tx_lost", "tx_dropped", "tx_lens", "plaintext", "destroyed_in_use", "left", "create_failed",
         "flow_failed", "sessions", "flows"]


def environment(nic, marker=None, stats_path=None):
    # The program looks for millrace-exec beside itself, and then on PATH.
    env = {"MILLRACE_NIC": nic, "PATH": f"{MILLRACE_EXEC.parent}:{os.environ['PATH']}"}
    if marker is not None:
        env["MILLRACE_NIC_MARKER"] = marker.hex()
    if stats_path is not None:
        env["MILLRACE_NIC_STATS"] = str(stats_path)
    return env


def start(millrace, *args, nic, marker=None, stats_path=None, env=None, **how):
    """As the fixture `millrace` does, but the program with NICs."""
    env = dict(environment(nic, marker, stats_path), **(env or {}))
    return millrace(*args, program=MILLRACE_NIC, env=env, **how)


class NicJob(PcapJob):
    """The main job on NICs; `stats` has their counters afterwards, by device."""

    def run(self, *args, nic="0=all+mdata,1=all+mdata", marker=None, env=None, lost=0, made=0, **how):
        """`lost`: frames that the NICs take and do not send."""
        path = self.directory / "nic.json"
        env = dict(environment(nic, marker, path), **(env or {}))
        result = super().run(*args, made=made - lost, program=MILLRACE_NIC, env=env, **how)
        self.stats = json.loads(path.read_text())
        assert self.stats["pool_full"], "a frame of the NIC's own is missing"
        return result


def assert_quiet(stats, but=()):
    for device, counters in stats.items():
        if device == "pool_full":
            continue
        wrong = {name: counters[name] for name in NEVER if counters[name] != 0 and name not in but}
        assert not wrong, f"device {device}: {wrong}"


def told(program, command):
    assert program.telemetry(command) == "ok", command


def stats(program, device):
    return program.telemetry(f"/nic/stats,{device}")


def sessions(program, device):
    """[{spi, action, out, number, packets, userdata}]"""
    return list(program.telemetry(f"/nic/sessions,{device}").values())


def fault(program, device, name, n=1):
    told(program, f"/nic/fault,{device},{name},{n}")


def caps(program, device, preset):
    told(program, f"/nic/caps,{device},{preset}")


def event(program, port, name, *more):
    told(program, "/nic/event," + ",".join(str(word) for word in (port, name, *more)))


def marker(program, data):
    told(program, f"/nic/marker,{data.hex()}")
