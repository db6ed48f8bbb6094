# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
"""Writes the frames of the unit tests as a corpus: a byte of flags, a byte of cuts, the frame.

usage: corpus.py VECTORS DIRECTORY
"""

import hashlib
import os
import sys

with open(sys.argv[1], encoding="ascii") as lines:
    for number, line in enumerate(lines):
        _, flags, frame = line.split()[:3]
        if frame == "-" or len(frame) > 4000:
            continue
        data = bytes([int(flags, 16), number * 37 % 256]) + bytes.fromhex(frame)
        name = os.path.join(sys.argv[2], hashlib.sha1(data).hexdigest())
        with open(name, "wb") as output:
            output.write(data)
