# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Real programs through millrace-exec: tools.py BUILD_DIR_OF_EXEC EXEC_SERVER PROBE..."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time

EXEC = os.path.join(os.path.abspath(sys.argv[1]), "millrace-exec")
SERVER = sys.argv[2]
PROBES = sys.argv[3:]
failed = 0


class Server:
    """An exec_server on a socket of its own."""

    def __init__(self, where, devices=3):
        self.path = os.path.join(where, "ctl.sock")
        self.process = subprocess.Popen([SERVER, self.path, str(devices)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)
        assert self.process.returncode == 0, self.process.returncode
        return self.process.stdout.read()


def run(*args, stdin=None, env=None, timeout=60):
    return subprocess.run(args, input=stdin, text=True, capture_output=True, timeout=timeout,
                          env=env, check=False)


def expect(what, result, code, out=None, err=None):
    global failed
    bad = []
    if result.returncode != code:
        bad.append(f"exit status {result.returncode} instead of {code}")
    if out is not None and out not in result.stdout:
        bad.append(f"no {out!r} in what it wrote")
    if err is not None and err not in result.stderr:
        bad.append(f"no {err!r} in its errors")
    if bad:
        failed += 1
        print(f"{what}: {'; '.join(bad)}\n{result.stdout}{result.stderr}", file=sys.stderr)


def own_errors(where):
    """What millrace-exec says itself."""
    nobody = os.path.join(where, "nobody")
    expect("no program", run(EXEC), 125, err="usage: millrace-exec")
    expect("bad option", run(EXEC, "-x"), 125, err="usage: millrace-exec")
    expect("--help", run(EXEC, "--help"), 0, out="usage: millrace-exec")
    expect("--version", run(EXEC, "--version"), 0, out="millrace-exec ")
    expect("--only", run(EXEC, "--only=tc", "true"), 125, err="--only=tc: neither route nor xfrm")
    expect("-f and -s", run(EXEC, "-f", "a", "-s", "b", "true"), 125, err="exclude each other")
    expect("no socket", run(EXEC, "-s", nobody, "true"), 125,
           err=f"cannot connect to {nobody}: No such file or directory, is millrace running?")
    expect("long prefix", run(EXEC, "-f", "x" * 200, "true"), 125, err="file prefix too long")
    expect("not found", run(EXEC, "-s", nobody, "no-such-program"), 127, err="no-such-program: ")
    expect("not a program", run(EXEC, "-s", nobody, "/etc/passwd"), 126, err="/etc/passwd: ")
    # An ELF header without a loader is all that makes a program static.
    static = os.path.join(where, "static")
    with open(static, "wb") as f:
        f.write(b"\x7fELF\x02\x01\x01".ljust(54, b"\0") + b"\x38\0\0\0".ljust(10, b"\0"))
    os.chmod(static, 0o755)
    expect("static", run(EXEC, "-s", nobody, static), 126, err="is statically linked")
    if os.getuid() == 0:
        suid = os.path.join(where, "suid")
        shutil.copy("/bin/true", suid)
        os.chown(suid, 65534, 65534)
        os.chmod(suid, 0o755 | stat.S_ISUID)
        expect("setuid", run(EXEC, "-s", nobody, suid), 126, err="set-user-ID")
    # Where the default socket is: EAL's runtime directory.
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "MILLRACE_SOCKET")}
    env["RUNTIME_DIRECTORY"] = where
    expect("default", run(EXEC, "-f", "edge", "true", env=env), 125,
           err=f"{where}/dpdk/edge/millrace.sock")
    expect("default prefix", run(EXEC, "true", env=env), 125, err=f"{where}/dpdk/rte/millrace.sock")


def environment(server):
    s = server.path
    expect("status of the program", run(EXEC, "-s", s, "sh", "-c", "exit 33"), 33)
    expect("options after PROGRAM are its own", run(EXEC, "-s", s, "echo", "-s", "x"), 0, out="-s x")
    env = dict(os.environ, LD_PRELOAD="/lib/other.so")
    r = run(EXEC, "-s", s, "sh", "-c", "echo $LD_PRELOAD", env=env)
    expect("LD_PRELOAD is kept", r, 0, out="libmillrace-preload.so:/lib/other.so")
    # A sanitized millrace-exec would rather be the first library itself.
    env = dict(os.environ, ASAN_OPTIONS="verify_asan_link_order=0")
    r = run(EXEC, "-s", s, EXEC, "sh", "-c", "echo $LD_PRELOAD $MILLRACE_SOCKET", env=env)
    expect("one inside another", r, 0, out=f"libmillrace-preload.so {s}\n")
    r = subprocess.run([EXEC, "-s", os.path.basename(s), "sh", "-c", "cd /; echo $MILLRACE_SOCKET"],
                       cwd=os.path.dirname(s), capture_output=True, text=True, check=False)
    expect("a relative socket", r, 0, out=s)


def iproute2(server):
    def ip(*args):
        return run(EXEC, "-s", server.path, "ip", *args)

    def tc(*args, stdin=None):
        return run(EXEC, "-s", server.path, "tc", *args, stdin=stdin)

    expect("ip link show", ip("link", "show"), 0, out="3: p2: <BROADCAST,MULTICAST,UP,LOWER_UP>")
    expect("ip -j", ip("-j", "link", "show", "p1"), 0, out='"ifname":"p1"')
    expect("ip -s", ip("-s", "link", "show", "dev", "p0"), 0, out="RX:")
    expect("ip set", ip("link", "set", "p0", "mtu", "1400"), 0)
    expect("mtu was set", ip("link", "show", "p0"), 0, out="mtu 1400")
    expect("no such device", ip("link", "show", "nope"), 1, err='"nope"')
    expect("tc qdisc", tc("qdisc", "show", "dev", "p0"), 0, out="qdisc pfifo_fast")
    batch = "qdisc add dev p1 clsact\n# a comment\nqdisc show dev p1\nqdisc del dev p1 clsact\n"
    expect("tc -b", tc("-b", "-", stdin=batch), 0, out="qdisc clsact")
    expect("a bad line", tc("-b", "-", stdin="qdisc add dev nope clsact\n"), 1)
    r = run(EXEC, "-s", server.path, "--only=xfrm", "ip", "link", "show", "lo")
    expect("--only=xfrm leaves links alone", r, 0, out="LOOPBACK")
    r = run(EXEC, "-s", server.path, "--only=route", "ip", "link", "show", "p0")
    expect("--only=route", r, 0, out="p0")


def server_goes(server):
    """Who waits for a server that ends is not left waiting."""
    with subprocess.Popen([EXEC, "-s", server.path, "ip", "monitor", "link"], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as monitor:
        time.sleep(0.3)
        server.stop()
        _, err = monitor.communicate(timeout=20)
        if "EOF on netlink" not in err:
            expect(f"ip monitor says {err!r}", run("false"), 0)
    expect("no server left", run(EXEC, "-s", server.path, "ip", "link"), 125,
           err="is millrace running?")


def main():
    if shutil.which("ip") is None or shutil.which("tc") is None:
        print("skipped: iproute2 is not installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="millrace-exec-") as where:
        own_errors(where)
        server = Server(where)
        environment(server)
        for probe in PROBES:
            expect(probe, run(EXEC, "-s", server.path, probe), 0)
        iproute2(server)
        print(server.stop(), end="")
        # With many links a dump has many parts.
        server = Server(where, 2000)
        r = run(EXEC, "-s", server.path, "ip", "-o", "link", "show")
        expect("2000 links", r, 0, out="2000: p1999:")
        if r.stdout.count("\n") != 2000:
            expect(f"{r.stdout.count(chr(10))} of 2000 links", r, 1)
        server_goes(server)
    return failed != 0


sys.exit(main())
