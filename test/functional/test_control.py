# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The control socket: who may have it, clients that misbehave, several at once."""

import grp
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess

import pytest
from conftest import MILLRACE, MILLRACE_EXEC, NULL_PORTS, wait_for


def connect(program):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(str(program.ctl))
    return s


def test_only_the_owner_may_use_it(running):
    assert stat.S_IMODE(running.ctl.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None,
                    reason="needs root and setpriv")
def test_a_group_may_use_it(millrace):
    group, nobody = grp.getgrnam("users"), pwd.getpwnam("nobody")
    program = millrace(NULL_PORTS, ["-i", f"--ctl-group={group.gr_name}"],
                       eal=["--log-level=millrace,info"]).wait_ready()
    is_ = program.ctl.stat()
    assert (stat.S_IMODE(is_.st_mode), is_.st_uid, is_.st_gid) == (0o660, 0, group.gr_gid)
    knock = ("import socket, sys\n"
             "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])")
    for gid, said in (group.gr_gid, ""), (nobody.pw_gid, "PermissionError"):
        result = subprocess.run(
            ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={gid}", "--clear-groups",
             "/usr/bin/python3", "-c", knock, str(program.ctl)],
            capture_output=True, text=True, check=False)
        assert said in result.stderr and (result.returncode == 0) == (said == ""), result.stderr
    # Who comes is logged.
    program.wait_output(rf"control client: pid \d+ uid {nobody.pw_uid} came")
    program.stop()


def test_group_that_is_not_there(millrace):
    assert "nosuchgroup is no group" in millrace(NULL_PORTS, ["--ctl-group=nosuchgroup"]).wait(1)


def test_it_is_gone_afterwards(running):
    running.stop()
    assert not running.ctl.exists()


def test_default_place(millrace):
    program = millrace(NULL_PORTS, ctl=False)
    program.ctl = program.directory / "dpdk" / program.prefix / "millrace.sock"
    program.wait_ready()
    shown = subprocess.run([str(MILLRACE_EXEC), "-f", program.prefix, "ip", "link", "show"],
                           env=program.env, capture_output=True, text=True, check=True)
    assert "p0" in shown.stdout
    program.stop()


def test_second_program_is_refused(millrace, running):
    second = millrace(NULL_PORTS, [f"--ctl={running.ctl}"], ctl=False)
    output = second.wait(None)
    assert str(running.ctl) in output
    # The first one did not notice.
    assert "p0" in running.ip("link show").stdout


def test_stale_socket_is_replaced(millrace, running):
    running.kill()
    assert running.ctl.exists()
    second = millrace(NULL_PORTS, [f"--ctl={running.ctl}"], ctl=False)
    second.ctl = running.ctl
    second.wait_ready()
    second.stop()


def test_something_else_in_its_place(millrace, directory):
    place = directory / "file"
    place.write_text("mine")
    output = millrace(NULL_PORTS, [f"--ctl={place}"], ctl=False).wait(None)
    assert str(place) in output
    assert place.read_text() == "mine"


def test_directory_that_is_not_there(millrace):
    output = millrace(NULL_PORTS, ["--ctl=/nowhere/at/all/ctl.sock"], ctl=False).wait(None)
    assert "/nowhere/at/all/ctl.sock" in output


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None,
                    reason="needs root and setpriv")
def test_no_permission_for_it(millrace, directory):
    where = directory / "nobody"
    where.mkdir()
    user = pwd.getpwnam("nobody")
    os.chown(where, user.pw_uid, user.pw_gid)
    as_nobody = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    if subprocess.run(as_nobody + [str(MILLRACE), "--", "--version"], capture_output=True,
                      check=False).returncode != 0:
        pytest.skip("user nobody cannot reach the build directory")
    path = directory / "ctl.sock"  # only root may write here
    output = millrace(NULL_PORTS, [f"--ctl={path}"], ctl=False, directory=where,
                      env={"HOME": str(where)}, wrapper=as_nobody).wait(None)
    assert re.search(rf"{path}.*[Pp]ermission denied", output), output


def test_path_too_long(millrace, directory):
    path = str(directory / ("x" * 200))
    output = millrace(NULL_PORTS, [f"--ctl={path}"], ctl=False).wait(None)
    assert re.search("control socket.* longer than 107 bytes", output), output


def test_clients_at_once(running):
    env = dict(os.environ, LC_ALL="C")
    argv = [str(MILLRACE_EXEC), "-s", str(running.ctl), "tc"]
    running.tc("qdisc add dev p0 clsact")
    clients = []
    for i in range(8):
        lines = "".join(
            f"filter add dev p0 ingress pref {1 + i * 20 + n} matchall action pass\n"
            for n in range(20))
        client = subprocess.Popen(argv + ["-b", "-"], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        client.stdin.write(lines)
        client.stdin.close()
        clients.append(client)
    for client in clients:
        assert client.wait(60) == 0, client.stdout.read()
        client.stdout.close()
    assert len(running.filters("p0", "ingress")) == 160


def test_client_that_dies_in_a_dump(running):
    running.tc("qdisc add dev p0 clsact")
    running.run("tc", "-b", "-", stdin="".join(
        f"filter add dev p0 ingress pref {n} matchall action pass\n" for n in range(1, 300)))
    # RTM_GETTFILTER, NLM_F_REQUEST | NLM_F_DUMP, struct tcmsg: p0's ingress.
    ask = struct.pack("=IHHII", 36, 46, 0x301, 1, 0) + struct.pack("=BxHiIII", 0, 0, 1, 0, 0xFFFFFFF2, 0)
    for _ in range(5):
        s = connect(running)
        s.send(ask)
        s.recv(65536)
        s.close()
    assert len(running.filters("p0", "ingress")) == 299


def test_client_that_never_reads(running):
    running.tc("qdisc add dev p0 clsact")
    running.run("tc", "-b", "-", stdin="".join(
        f"filter add dev p0 ingress pref {n} matchall action pass\n" for n in range(1, 300)))
    ask = struct.pack("=IHHII", 36, 46, 0x301, 1, 0) + struct.pack("=BxHiIII", 0, 0, 1, 0, 0xFFFFFFF2, 0)
    s = connect(running)
    s.setblocking(False)
    try:
        for _ in range(2000):
            s.send(ask)
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass  # it pushes back, or has cut us off
    assert len(running.filters("p0", "ingress")) == 299
    s.close()


@pytest.mark.parametrize("data", [
    b"\0", b"\xff" * 15, b"\xff" * 16, b"\0" * 16,
    struct.pack("=IHHII", 15, 18, 1, 1, 0),
    struct.pack("=IHHII", 17, 18, 0x301, 1, 0) + b"\0",
    struct.pack("=IHHII", 0xFFFFFFFF, 18, 0x301, 1, 0) + b"\0" * 16,
    struct.pack("=IHHII", 16, 0xFFFF, 0x301, 1, 0),
    struct.pack("=IHHII", 40, 44, 5, 1, 0) + struct.pack("=BxHiIII", 0, 0, 1, 0, 0, 0) + b"\3\0\1\0",
    struct.pack("=IHHII", 40, 44, 5, 1, 0) + struct.pack("=BxHiIII", 0, 0, 1, 0, 0, 0) + b"\xff\xff\1\0",
])
def test_malformed_message(running, data):
    before = running.json("ip -j link show")
    s = connect(running)
    s.send(data)
    s.settimeout(0.2)
    try:
        s.recv(65536)
    except TimeoutError:
        pass
    s.close()
    assert running.json("ip -j link show") == before
    running.stop()


def test_client_killed_while_it_monitors(running):
    for _ in range(3):
        monitor = subprocess.Popen(
            [str(MILLRACE_EXEC), "-s", str(running.ctl), "tc", "monitor"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        running.tc("qdisc add dev p0 clsact")
        wait_for(lambda: monitor.poll() is None, "tc monitor")
        monitor.kill()
        monitor.wait()
        monitor.stdout.close()
        running.tc("qdisc del dev p0 clsact")
    running.stop()


def test_program_is_not_ended_by_dying_clients(running):
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE):
        clients = [connect(running) for _ in range(20)]
        child = subprocess.Popen(
            [str(MILLRACE_EXEC), "-s", str(running.ctl), "ip", "monitor", "link"],
            stdout=subprocess.DEVNULL)
        child.send_signal(number)
        child.wait()
        for client in clients:
            client.close()
    assert "p0" in running.ip("link show").stdout
    running.stop()


def test_show_rcu_counts_what_was_replaced(millrace):
    """A rule that went counts as deferred, and is freed or waits."""
    commands = ["tc qdisc add dev p0 clsact", "tc filter add dev p0 ingress matchall action drop",
                "tc filter del dev p0 ingress", "show rcu", "quit"]
    output = millrace(["net_null0", "net_null1"], ["-i"], commands=commands).wait()
    deferred, freed, waiting = map(int, re.search(
        r"deferred (\d+)  freed (\d+)  waiting (\d+)", output).groups())
    assert deferred > 0 and deferred == freed + waiting
