#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: scripts/bench.sh [bench.py options and rows]
#
# Measures every row: whole programs against dpdk-testpmd (test/bench/bench.py), requests beside
# forwarding (test/bench/control.py) and the libraries' own benchmarks (meson test --benchmark).
# Results stand in build/bench. Have nothing else running.

set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh

# shellcheck disable=SC2086
need_packages $bench_packages
[ -f build/build.ninja ] || meson setup build
ninja -C build
mkdir -p build/bench
python3 test/bench/bench.py --build build "$@"
# A row was named: then the others are not wanted.
for word in "$@"; do
	case $word in
	io | csum | ip) exit 0 ;;
	esac
done
python3 test/bench/control.py --build build
meson test -C build --benchmark --no-rebuild --print-errorlogs --verbose
