# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Every file in config/ runs as it is, and options.cmd tells the truth."""

import pathlib
import re
import subprocess

import pytest
from conftest import MILLRACE, NULL_PORTS, PATIENCE

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "config"


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.cmd")), ids=lambda path: path.name)
def test_runs(millrace, path):
    program = millrace(NULL_PORTS, [f"--cmdline-file={path}"]).wait_ready()
    # net_null's frames are for nobody: a router drops them.
    if path.name in ("ip.cmd", "ipsec.cmd"):
        program.wait_output("^ip packet forwarding")
    else:
        program.wait_forwarding("p1")
    program.stop()


def test_every_option_is_listed_with_its_default():
    shown = subprocess.run([str(MILLRACE), "--", "--help"], capture_output=True, text=True,
                           timeout=PATIENCE, check=True).stdout
    shown = shown.rsplit("\noptions:\n", maxsplit=1)[-1]  # EAL's stand before
    listed = (CONFIG / "options.cmd").read_text()
    options = re.findall(r"^ .*--([a-z-]+)(?:=\S+)?\s+.*?(?:\(([^()]*)\))?$", shown, re.M)
    assert len(options) > 20
    for name, default in options:
        if name in ("help", "version"):
            continue
        line = re.search(rf"^#.* --{name}(=(\S*))?(\s+not given: .+)?(\s.*)?$", listed, re.M)
        assert line, f"--{name} is not in options.cmd"
        if default and re.fullmatch(r"[\da-z]+", default) and default not in ("all", "computed"):
            assert line.group(2) == default, f"--{name}"
