# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""The prompt as a person at a terminal has it: what is said where, lines that are too long, ^C."""

import os
import pty
import shutil
import time

import pytest
from conftest import NULL_PORTS, wait_for

pytestmark = pytest.mark.skipif(shutil.which("setsid") is None, reason="needs setsid of util-linux")


class Terminal:
    def __init__(self, start):
        self.master, slave = pty.openpty()
        self.program = start(NULL_PORTS, ["-i"], stdin=slave, wrapper=["setsid", "--ctty"])
        os.close(slave)
        self.program.wait_ready()
        self.at = 0
        self.until_prompt()

    def send(self, text):
        os.write(self.master, text.encode())

    def new(self):
        return self.program.output.replace("\r", "")[self.at:]

    def until_prompt(self):
        wait_for(lambda: self.new().endswith("millrace> "), "the prompt")
        said = self.new()
        self.at += len(said)
        return said

    def say(self, line):
        """What is printed between the line and the next prompt."""
        self.send(line + ("" if line.endswith("\x03") else "\r"))
        wait_for(lambda: "\n" in self.new(), "an answer")
        time.sleep(0.1)  # something behind the prompt would be wrong
        said = self.until_prompt()
        return said[said.index("\n") + 1:-len("millrace> ")]


@pytest.fixture
def terminal(millrace):
    opened = Terminal(millrace)
    yield opened
    os.close(opened.master)


def test_errors_stand_before_the_next_prompt(terminal):
    assert terminal.say("show port info 7") == "there is no port 7\n"
    assert terminal.say("set burst 0") == "set burst: 0 is too small (1 to 512)\n"
    assert terminal.say("load /nowhere/at/all") == "/nowhere/at/all: No such file or directory\n"
    assert terminal.say("tc qdisc add dev p9 clsact") == (
        'Cannot find device "p9"\ntc exited with status 1\n')


def test_a_tool_alone_says_what_is_missing(terminal, directory):
    assert terminal.say("tc") == "tc needs to be told what to do, as in: tc qdisc show\n"
    assert terminal.say(" ip # ") == "ip needs to be told what to do, as in: ip link show\n"
    (directory / "tool.cmd").write_text("tc\n")
    assert "tool.cmd:1: tc needs to be told what to do, as in: tc qdisc show\n" in terminal.say(
        f"load {directory / 'tool.cmd'}")


def test_hints_for_testpmd_commands(terminal):
    assert terminal.say("csum set ip hw 0").startswith(
        "command not found: csum set ip hw 0; here: checksums are a tc action")
    assert "action csum" in terminal.say("set fwd csum")
    # Not again for a line that is empty.
    assert terminal.say("") == ""


def test_line_too_long_does_nothing(terminal):
    actions = " ".join(f"action pass index {i}" for i in range(1, 40))
    said = terminal.say("tc filter add dev p0 ingress matchall " + actions)
    assert said.startswith("the prompt takes lines of fewer than 512 characters"), said
    assert "index" not in terminal.say("tc actions ls action gact")


def test_interrupt_ends_the_tool_alone(terminal):
    terminal.send("tc monitor\r")
    time.sleep(0.5)
    terminal.program.tc("qdisc add dev p0 clsact")
    wait_for(lambda: "clsact" in terminal.new(), "the monitor")
    terminal.send("\x03")
    assert terminal.until_prompt().endswith("tc was ended by signal 2\nmillrace> ")
    # Back to editing: ^C is a key again, and ^D on an empty line leaves.
    assert terminal.say("nothing\x03") == "" and "forwarding lcores: 1" in terminal.say("show config cores")
    terminal.send("\x04")
    terminal.program.wait(0)
