#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""Prints `passed|skipped|failed NAME` for each test in meson's log. usage: count_tests.py LOG.json"""

import json
import sys

WORDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def main():
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            word = WORDS.get(test["result"], "failed")
            print(word, test["name"])
            if word == "skipped":
                why = (test.get("stdout") or test.get("stderr") or "no reason given").strip()
                print(f"skipped: {test['name']}: {why.splitlines()[-1]}", file=sys.stderr)


if __name__ == "__main__":
    main()
