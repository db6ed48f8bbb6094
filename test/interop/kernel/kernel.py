# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Debian's kernel in a virtual machine, as the peer or the judge of a test.

    from kernel import Kernel, Tap, require

    require()                                   # skips the test where no kernel can be had
    with Kernel(nics=2) as k:
        k.run("ip link set eth0 up; ip link set eth1 up")
        k.run("tc -b -", input="qdisc add dev eth0 clsact\\n...")
        k.send(0, [frame, frame])
        left = k.receive(1)

The machine is QEMU without KVM, boots in about 10 s (TCG on one CPU), has no disk, and dies with its
`with` block. Its NICs are virtio-net, named eth0, eth1, ... in the guest, with MAC addresses
02:00:00:00:01:00, ...:01, down and without addresses. A NIC is

* None: the other end of the cable is the test, which sends and receives whole frames as bytes with
  send() and receive() over Unix datagram sockets: no tap device, no privileges;
* Tap(name, netns=None): a tap device of that name, which QEMU makes if it is not there, inside a
  network namespace if one is named. The namespace is made by the test.

`nics` is a list of those, or the number of Nones. Nothing is offloaded: what is sent is what arrives,
checksums are made by the guest, GRO is off. The guest sends nothing by itself: no IPv6 link-local
address, no router solicitation. Modules load when a command needs them: sch_*, cls_*, act_*, esp4, esp6,
xfrm_*, all of crypto, veth, dummy, ifb, 8021q.

run() runs a shell script (sh -e) as root in the guest (dash, busybox, tc, ip, ethtool) and returns
what subprocess.run() would; with check=True (the default) a failure is an AssertionError that says what the
script printed. Scripts run one after another. tc() and json() are run() for what is asked most.
"""

import base64
import contextlib
import dataclasses
import json
import pathlib
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from image import Unavailable, find, image

BOOT_SECONDS = 120
FRAME_MAX = 65536
# So long nothing may come before receive() believes that nothing will.
SILENCE = 0.5


@dataclasses.dataclass
class Tap:
    """A NIC's other end: a tap device."""

    name: str
    netns: str = None


def require():
    """Skips the calling test, with the reason, where the kernel cannot be had."""
    import pytest  # pylint: disable=import-outside-toplevel

    try:
        find("qemu-system-x86_64")
        image()
    except Unavailable as reason:
        pytest.skip(f"no kernel to compare with: {reason}")


class Wire:
    """The test's end of a NIC: a socket, and a thread that empties it."""

    def __init__(self, directory, index):
        self.theirs = str(directory / f"nic{index}")
        self.mine = str(directory / f"test{index}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.mine)
        self.frames = queue.Queue()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        """Until close() sends an empty datagram."""
        while frame := self.socket.recv(FRAME_MAX):
            self.frames.put(frame)

    def send(self, frame):
        """Waits while QEMU's queue is full."""
        self.socket.sendto(frame, self.theirs)

    def receive(self, timeout):
        try:
            return self.frames.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.mine)
        self.thread.join()
        self.socket.close()

    def netdev(self, index):
        return (f"dgram,id=n{index},local.type=unix,local.path={self.theirs},"
                f"remote.type=unix,remote.path={self.mine}")


class Kernel:
    """One machine. Use as a context manager."""

    def __init__(self, nics=2, memory=256):
        self.nics = [None] * nics if isinstance(nics, int) else list(nics)
        self.memory = memory
        self.wires, self.process, self.port = {}, None, None

    def __enter__(self):
        kernel, initramfs = image()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="mrk-"))
        try:
            self.start(kernel, initramfs)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def argv(self, kernel, initramfs):
        argv = [find("qemu-system-x86_64"), "-machine", "pc,accel=tcg", "-cpu", "max", "-m", str(self.memory),
                "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                "-kernel", kernel, "-initrd", initramfs,
                "-append", "console=ttyS0 panic=-1 mitigations=off nokaslr no_timer_check random.trust_cpu=on net.ifnames=0",
                "-serial", f"file:{self.directory}/console",
                "-chardev", f"socket,id=port,path={self.directory}/port,server=on,wait=off",
                "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port"]
        for index, nic in enumerate(self.nics):
            if nic is None:
                self.wires[index] = Wire(self.directory, index)
                netdev = self.wires[index].netdev(index)
            else:
                netdev = f"tap,id=n{index},ifname={nic.name},script=no,downscript=no,vnet_hdr=off"
            argv += ["-netdev", netdev, "-device",
                     f"virtio-net-pci,netdev=n{index},mac=02:00:00:00:01:{index:02x},romfile="]
        names = {nic.netns for nic in self.nics if nic is not None and nic.netns is not None}
        assert len(names) <= 1, "QEMU can be in one network namespace only"
        for name in names:
            argv = [find("ip"), "netns", "exec", name] + argv
        return [str(arg) for arg in argv]

    def start(self, kernel, initramfs):
        with open(self.directory / "qemu", "wb") as log:
            self.process = subprocess.Popen(self.argv(kernel, initramfs), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + BOOT_SECONDS
        self.port = socket.socket(socket.AF_UNIX)
        self.port.settimeout(BOOT_SECONDS)
        while self.port.connect_ex(str(self.directory / "port")) != 0:
            assert self.process.poll() is None, f"qemu ended: {self.said('qemu')}"
            assert time.monotonic() < end, "qemu does not listen"
            time.sleep(0.01)
        self.answers = self.port.makefile("rb")
        assert self.line(BOOT_SECONDS) == b"ready\n", f"no guest: {self.said('console')}"

    def said(self, name):
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / name).read_text(errors="replace")[-4000:]
        return ""

    def line(self, timeout):
        """One line from the guest. Nothing in time is a TimeoutError; it ended: an empty one."""
        self.port.settimeout(timeout)
        try:
            return self.answers.readline()
        except TimeoutError:
            raise TimeoutError(f"no answer after {timeout} s: {self.said('console')}") from None

    def run(self, script, check=True, timeout=60, input=""):
        """Runs a shell script in the guest: a CompletedProcess, with text."""
        for text in (script, input):
            self.port.sendall(base64.b64encode(text.encode()) + b"\n")
        answer = self.line(timeout)
        assert answer.endswith(b"\n"), f"the guest died: {self.said('console')}"
        status, *streams = answer[:-1].split(b" ")
        out, err = (base64.b64decode(stream).decode(errors="replace") for stream in streams)
        if check:
            assert int(status) == 0, f"{script}: {err}{out}"
        return subprocess.CompletedProcess(script, int(status), out, err)

    def tc(self, line, **how):
        return self.run(f"tc {line}", **how)

    def json(self, line):
        """What a command printed, parsed."""
        return json.loads(self.run(line).stdout or "[]")

    def received(self, nic):
        """How many frames the guest got on a NIC so far."""
        return int(self.run(f"cat /sys/class/net/eth{nic}/statistics/rx_packets").stdout)

    def send(self, nic, frames):
        for frame in frames:
            self.wires[nic].send(frame)

    def receive(self, nic, count=None, timeout=SILENCE):
        """The frames that left a NIC: `count` of them, or all until it was silent for `timeout` seconds."""
        frames = []
        while count is None or len(frames) < count:
            frame = self.wires[nic].receive(timeout)
            if frame is None:
                break
            frames.append(frame)
        return frames

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self.port is not None:
            self.port.close()
        for wire in self.wires.values():
            wire.close()
        shutil.rmtree(self.directory)
