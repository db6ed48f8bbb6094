# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""One run of the built program, and the real tc and ip through millrace-exec."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

BUILD = pathlib.Path(os.environ.get("MILLRACE_BUILD", pathlib.Path(__file__).parents[2] / "build")).resolve()
MILLRACE = BUILD / "app" / "millrace"
# The same program, whose ports are NICs with rte_security: test/nic/program.c says how it is told.
MILLRACE_NIC = BUILD / "test" / "nic" / "millrace-nic"
# Suites that run once more on such NICs: what each run's ports are, in that program's words.
TEST_NIC = os.environ.get("MILLRACE_TEST_NIC")
MILLRACE_EXEC = BUILD / "exec" / "millrace-exec"
# Sanitizers are slow, and so is a machine that does something else as well.
PATIENCE = float(os.environ.get("MILLRACE_TEST_PATIENCE", "60"))

# Tests that run beside each other take different CPUs, if there are; main and worker of one share it.
CPUS = sorted(os.sched_getaffinity(0))


def on_one_cpu(n):
    cpu = CPUS[n % len(CPUS)]
    return f"0@{cpu},1@{cpu}"


# us: workers that poll on take CPUs from each other, from their peers in the test and from the kernel,
# which some schedulers then leave waiting for seconds.
IDLE_SLEEP = 100

MEMORY = ["--no-huge", "-m", "512", "--no-shconf", "--no-pci"]


def wait_for(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s for {what}")


class Millrace:
    """One run of the program. Options of EAL and of its own are lists; output is kept in a file."""

    def __init__(self, directory, vdevs, options=(), commands=None, eal=(), memory=None, env=None,
                 lcores=None, ctl=True, stdin=subprocess.DEVNULL, wrapper=(), program=None, idle_sleep=IDLE_SLEEP):
        self.directory = directory
        self.prefix = directory.name
        self.output_path = directory / "output.txt"
        self.ctl = directory / "ctl.sock"
        self.env = dict(os.environ, RUNTIME_DIRECTORY=str(directory), LC_ALL="C")
        if program is None and TEST_NIC:
            # It looks for millrace-exec beside itself, and then on PATH.
            program, path = MILLRACE_NIC, f"{MILLRACE_EXEC.parent}:{os.environ['PATH']}"
            self.env.update(MILLRACE_NIC=TEST_NIC, MILLRACE_NIC_STATS=str(directory / "nic.json"), PATH=path)
        self.env.update(env or {})
        self.argv = list(wrapper) + [str(program or MILLRACE)] + (MEMORY if memory is None else memory)
        self.argv += [f"--file-prefix={self.prefix}", "--lcores",
                      lcores or on_one_cpu(os.getpid()), *eal]
        for vdev in vdevs:
            self.argv += ["--vdev", vdev]
        self.argv += ["--", *([f"--idle-sleep={idle_sleep}"] if idle_sleep else []), *options]
        if ctl:
            self.argv.append(f"--ctl={self.ctl}")
        if commands is not None:
            self.cmdfile = directory / "rules.cmd"
            self.cmdfile.write_text("".join(line + "\n" for line in commands))
            self.argv.append(f"--cmdline-file={self.cmdfile}")
        with open(self.output_path, "wb") as out:
            self.process = subprocess.Popen(self.argv, stdin=stdin, stdout=out,
                                            stderr=subprocess.STDOUT, env=self.env,
                                            cwd=directory)

    def nic_stats(self):
        """Of the NICs of a run that has ended; {} if its ports were none. What must never be, is not."""
        path = self.directory / "nic.json"
        if not path.exists():
            return {}
        stats = json.loads(path.read_text())
        assert stats.pop("pool_full"), "a frame of the NIC's own is missing"
        for device, counters in stats.items():
            for name in ("tx_lost", "tx_lens", "destroyed_in_use", "left", "flows"):
                assert counters[name] == 0, f"device {device}: {name} {counters[name]}"
        return stats

    @property
    def output(self):
        return self.output_path.read_text(errors="replace")

    def wait(self, status=0):
        """Until it ends by itself; says what it printed if that was not as expected."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"does not end:\n{self.output[-4000:]}") from None
        ok = code != 0 if status is None else code == status
        assert ok, f"status {code}, wanted {'not 0' if status is None else status}:\n{self.output}"
        return self.output

    def wait_ready(self):
        """Until the control socket answers."""

        def ready():
            assert self.process.poll() is None, f"ended: {self.output}"
            return self.ctl.exists() and self.run("ip", "link", "show", check=False).returncode == 0

        wait_for(ready, f"the control socket; so far: {self.output[-2000:]}")
        return self

    def wait_output(self, pattern):
        """Until it printed something that matches; returns the match."""
        return wait_for(lambda: re.search(pattern, self.output, re.M), f"'{pattern}' in its output")

    def wait_forwarding(self, port="p0", packets=1):
        wait_for(lambda: self.link_stats(port)["tx"]["packets"] >= packets, "packets")
        return self

    def run(self, *argv, check=True, timeout=PATIENCE, stdin=None):
        """An unmodified program against this control socket."""
        result = subprocess.run(
            [str(MILLRACE_EXEC), "-s", str(self.ctl), *argv], capture_output=True, text=True,
            timeout=timeout, input=stdin, env=dict(os.environ, LC_ALL="C"), check=False)
        if check:
            assert result.returncode == 0, f"{' '.join(argv)}: {result.stderr}{result.stdout}"
        return result

    def tc(self, line, **how):
        return self.run("tc", *line.split(), **how)

    def ip(self, line, **how):
        return self.run("ip", *line.split(), **how)

    def json(self, line):
        result = self.run(*line.split(), check=False)
        code = self.process.poll()
        assert code is None, f"{line}: ended with status {code}:\n{self.output[-4000:]}"
        assert result.returncode == 0, f"{line}: {result.stderr}"
        return json.loads(result.stdout)

    def link_stats(self, port):
        return self.json(f"ip -j -s link show {port}")[0]["stats64"]

    def filters(self, dev, hook):
        """Filters with options, as `tc -j -s filter show` has them."""
        shown = self.json(f"tc -j -s filter show dev {dev} {hook}")
        return [f for f in shown if "options" in f]

    def telemetry(self, command):
        """What rte_telemetry answers to "/command,parameters"; None if it is wrong."""
        path = self.directory / "dpdk" / self.prefix / "dpdk_telemetry.v2"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(PATIENCE)
            s.connect(str(path))
            s.recv(65536)
            s.send(command.encode())
            return json.loads(s.recv(1 << 20))[command.split(",")[0]]

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, status=0):
        if self.process.poll() is None:
            self.signal(signal.SIGINT)
        return self.wait(status)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def worker_tids(self):
        """Threads that forward."""
        out = []
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            if re.search(r"lcore-worker|rte-worker|dpdk-worker", (task / "comm").read_text()):
                out.append(int(task.name))
        return out
