# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Debian's kernel and a small initramfs for it: busybox, dash, tc, ip, ethtool and the modules
for traffic control and IPsec.

The linux-image and ethtool packages are downloaded and unpacked, never installed. What is left of them
(kernel and initramfs, 30 MB) is kept in MILLRACE_KERNEL_CACHE, or else in kernel-cache of the build
directory; a lock makes other tests wait while it is made, which takes 10 s.
"""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("MILLRACE_BUILD", HERE / "../../../build")).resolve()
CACHE = pathlib.Path(os.environ.get("MILLRACE_KERNEL_CACHE", BUILD / "kernel-cache"))

# What of /lib/modules/VERSION/kernel goes into the initramfs.
MODULES = re.compile(
    r"(arch/x86/crypto|crypto|lib|net/(802|8021q|bridge|core|ipv4|ipv6|key|llc|psample|sched|xfrm)|drivers/virtio)/.*|"
    r"drivers/(char/virtio_console|net/(virtio_net|net_failover|veth|dummy|ifb|tun))\.ko")
# Of the machine the tests run on. busybox's own sh would prefer its own ip and tc.
TOOLS = ["sh", "ip", "tc"]


class Unavailable(Exception):
    """The kernel cannot be had here; the text says what is missing."""


def output(*argv, **how):
    """What a command printed. A failure is the last line of what it said."""
    try:
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, LC_ALL="C"), **how).stdout
    except FileNotFoundError:
        raise Unavailable(f"{argv[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode().strip() or f"status {error.returncode}"
        raise Unavailable(f"{argv[0]} {argv[1]}: {said.splitlines()[-1]}") from None


def find(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Unavailable(f"{name} is not installed")
    return path


def kernel_package():
    """The package that linux-image-amd64 stands for."""
    match = re.search(rb"Depends: (linux-image-\S+)", output("apt-cache", "depends", "linux-image-amd64"))
    if match is None:
        raise Unavailable("apt knows no linux-image-amd64: apt-get update was not run")
    return match.group(1).decode()


def members(package):
    """(path, mode, contents) of the files in a package of the distribution, which is downloaded."""
    with tempfile.TemporaryDirectory() as where:
        output("apt-get", "-qq", "download", package, cwd=where)
        [deb] = pathlib.Path(where).glob("*.deb")
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as tar:
            with tarfile.open(fileobj=tar.stdout, mode="r|") as archive:
                for member in archive:
                    if member.isfile():
                        yield member.name.lstrip("./"), member.mode, archive.extractfile(member).read()


def install(root, path, data, mode=0o755):
    """Writes a file below the root of the initramfs."""
    path = root / path.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def install_program(root, path, name=None):
    """A program and the libraries it is linked with. Returns nothing; a static one has none."""
    install(root, name or path, pathlib.Path(path).read_bytes())
    listed = subprocess.run(["ldd", path], check=False, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", listed):
        install(root, library, pathlib.Path(library).read_bytes())


def cpio(root):
    """The files below root in cpio's newc format, owned by root."""

    def entry(name, mode, data):
        numbers = [entry.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        entry.inode += 1
        head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name + b"\0"
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)

    entry.inode = 1
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root)).encode()
        if path.is_symlink():
            yield entry(name, stat.S_IFLNK | 0o777, os.readlink(path).encode())
        elif path.is_dir():
            yield entry(name, stat.S_IFDIR | 0o755, b"")
        else:
            yield entry(name, path.stat().st_mode, path.read_bytes())
    yield entry(b"TRAILER!!!", 0, b"")


def fill(root, package):
    """Everything the guest has. Returns the kernel."""
    busybox = find("busybox")
    install_program(root, busybox, "bin/busybox")
    for name in output(busybox, "--list").decode().split():
        link = root / "bin" / name
        if not link.exists():
            link.symlink_to("busybox")
    (root / "sbin").mkdir()
    (root / "sbin/modprobe").symlink_to("../bin/busybox")
    for name in TOOLS:
        (root / "bin" / name).unlink(missing_ok=True)
        install_program(root, find(name), f"bin/{name}")
    for directory in ("proc", "sys", "dev", "run", "tmp"):
        (root / directory).mkdir()
    install(root, "init", (HERE / "init.sh").read_bytes())

    kernel = version = None
    for path, mode, data in members(package):
        if path.startswith("boot/vmlinuz-"):
            kernel = data
        module = re.fullmatch(r"lib/modules/([^/]+)/(kernel/(.*)|modules\.(order|builtin))", path)
        if module and (module.group(3) is None or MODULES.fullmatch(module.group(3))):
            version = module.group(1)
            install(root, path, data, mode)
    output(busybox, "depmod", "-b", str(root), version)
    for path, mode, data in members("ethtool"):
        if path.endswith("/ethtool") and mode & 0o111:
            install(root, "bin/ethtool", data)
    return kernel


def image():
    """(kernel, initramfs), made if they are not there. Raises Unavailable."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        package = kernel_package()
        parts = [pathlib.Path(find(name)).read_bytes() for name in TOOLS]
        parts += [(HERE / name).read_bytes() for name in ("image.py", "init.sh")]
        name = f"{package}-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"
        kernel, initramfs = CACHE / f"{package}.kernel", CACHE / f"{name}.cpio"
        if not (kernel.exists() and initramfs.exists()):
            for old in CACHE.glob("linux-image-*"):
                old.unlink()
            with tempfile.TemporaryDirectory(dir=CACHE) as where:
                root = pathlib.Path(where) / "root"
                root.mkdir()
                kernel.write_bytes(fill(root, package))
                made = pathlib.Path(where) / "cpio"
                with open(made, "wb") as out:
                    out.writelines(cpio(root))
                made.rename(initramfs)
    return kernel, initramfs
