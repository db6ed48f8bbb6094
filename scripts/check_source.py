#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The rules of this source tree that no ready tool knows. Part of scripts/check.sh.

usage: check_source.py FILE...     prints file:line: reason, exits 1 if there was one
       check_source.py --commits RANGE
"""

import posixpath
import re
import subprocess
import sys

LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
COPYRIGHT = re.compile(r"Copyright \(c\) \d{4}(-\d{4})? The millrace authors")

# Who may include whom: four floors, no circle.
ROOMS = {
    "rcu": set(),
    "packet": set(),
    "action": {"rcu"},
    "sched_nolock": {"rcu"},
    "route": {"rcu"},
    "classifier": {"packet", "action", "rcu"},
    "csum_action": {"packet", "action", "rcu"},
    "ipsec_cache": {"packet", "rcu"},
}
ROOMS["netlink"] = set(ROOMS)
LIBRARIES = set(ROOMS)

# Everywhere: what has a better successor.
FORBIDDEN = [
    (r"rte_smp_(mb|rmb|wmb)\s*\(", "use C11 <stdatomic.h>, and say why the order"),
    (r"__sync_\w+\s*\(", "use C11 <stdatomic.h>, and say why the order"),
    (r"strcpy\s*\(", "use strlcpy"),
    (r"strcat\s*\(", "use strlcat"),
    (r"v?sprintf\s*\(", "use snprintf"),
    (r"gets\s*\(", "use getline"),
    (r"(ato[il]|atoll)\s*\(", "use strtonum"),
]
# In lib/: the caller decides what is said, and whether to go on.
FORBIDDEN_LIB = [
    (r"(v?f?printf|v?dprintf|puts|fputs|putchar|perror|psignal)\s*\(", "a library never prints"),
    (r"(v?err|v?warn)[xc]?\s*\(", "a library never prints"),
    (r"(v?syslog|rte_log|rte_vlog|RTE_LOG\w*)\s*\(", "a library never logs"),
    (r"(exit|_exit|_Exit|quick_exit|abort|rte_exit|rte_panic)\s*\(", "a library never exits"),
]

PIPELINE_LINES = 120  # the map of a packet's way stays one page


def without_comments(text):
    """The C text with comments and the insides of string literals blanked, lines kept."""

    def blank(match):
        word = match.group(0)
        if word[0] in "\"'":
            return word[0] + " " * (len(word) - 2) + word[0]
        return re.sub(r"[^\n]", " ", word)

    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S)


def room_of(path):
    """lib/packet/view.c -> packet, exec/x.c -> exec; None where anything may be included."""
    parts = path.split("/")
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1]
    return parts[0] if parts[0] in ("app", "exec") else None


def include_fault(path, header):
    room, parts = room_of(path), header.split("/")
    if room is None:
        return None
    if ".." in parts:
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), header))
        if room_of(inside) == room:
            return None
        return f'include "{header}" by its room, not by a way up'
    if room == "app":
        return None
    target = parts[0] if len(parts) > 1 else room
    if target == room:
        return None
    if room == "exec":
        return None if header == "netlink/ctl.h" else "exec includes nothing of ours but netlink/ctl.h"
    if room not in ROOMS:
        return f"room {room} is not in the list of who may include whom"
    if target in ROOMS[room]:
        return None
    if target in LIBRARIES or target in ("app", "exec", "test"):
        return f"{room} must not include {target}"
    return None


def check_c(path, text):
    faults = []
    code = without_comments(text)
    rules = FORBIDDEN + (FORBIDDEN_LIB if path.startswith("lib/") else [])
    rules = [(re.compile(r"(?<![\w.>])" + pattern), why) for pattern, why in rules]
    for number, line in enumerate(code.split("\n"), 1):
        for pattern, why in rules:
            if match := pattern.search(line):
                faults.append((number, f"{match.group(0).rstrip('( ')}: {why}"))
    for number, line in enumerate(text.split("\n"), 1):
        if match := re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line):
            header = match.group(1)
            if '"' in line or header.split("/")[0] in LIBRARIES:
                if fault := include_fault(path, header):
                    faults.append((number, fault))
    return faults


def check_text(path, text):
    faults = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            faults.append((number, "white space at the end of the line"))
        if re.match(r"(<<<<<<<|>>>>>>>|=======$)", line) and not path.endswith(".md"):
            faults.append((number, "left by a merge"))
    if text and not text.endswith("\n"):
        faults.append((len(lines), "no newline at the end of the file"))
    return faults


def check_licence(text):
    head = text.split("\n")[:4]
    faults = []
    if not any(LICENCE in line for line in head):
        faults.append((1, f"no line '{LICENCE}' at the top"))
    if not any(COPYRIGHT.search(line) for line in head):
        faults.append((1, "no line 'Copyright (c) YEAR The millrace authors' at the top"))
    return faults


def needs_licence(path, text):
    name = path.rsplit("/", 1)[-1]
    if path.endswith((".c", ".h", ".py", ".sh")) or name == "meson.build":
        return True
    return text.startswith("#!")


def check_file(path):
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except UnicodeDecodeError:
        return []  # a capture or a seed of a fuzzer
    faults = check_text(path, text)
    if needs_licence(path, text):
        faults += check_licence(text)
    if path.endswith((".c", ".h")):
        faults += check_c(path, text)
    if path == "app/pipeline.c" and text.count("\n") > PIPELINE_LINES:
        faults.append((PIPELINE_LINES, f"the map is longer than a page of {PIPELINE_LINES} lines"))
    return faults


def check_commits(commits):
    """Subject `area: what changes`, at most 72 characters, a body that says why."""
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%h%x1f%s%x1f%b%x1e", *commits.split()],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    bad = 0
    for record in log.split("\x1e"):
        if not record.strip():
            continue
        commit, subject, body = record.strip("\n").split("\x1f")
        faults = []
        if len(subject) > 72:
            faults.append(f"the subject has {len(subject)} characters, at most 72")
        if not re.match(r"[\w./, -]+: \S", subject):
            faults.append("the subject is not 'area: what changes'")
        if re.match(r"(fixup|squash|amend)!|(?i:wip\b)", subject):
            faults.append("not a finished commit")
        if not body.strip():
            faults.append("no body: say why, and what was measured")
        for fault in faults:
            print(f"commit {commit}: {fault}: {subject}")
        bad += len(faults)
    return bad


def main(args):
    if args[:1] == ["--commits"]:
        return 1 if check_commits(args[1]) else 0
    bad = 0
    for path in args:
        for number, fault in sorted(check_file(path)):
            print(f"{path}:{number}: {fault}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
