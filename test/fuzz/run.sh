#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: run.sh NAME FUZZER [OPTION...] [-- COMMAND...]
# Runs the fuzzer with libFuzzer's options for NAME_FUZZ_SECONDS (20): from nothing, or from the files
# that COMMAND, given a directory, writes there; on from NAME_FUZZ_CORPUS, if that is set. What it
# finds is kept in NAME_FUZZ_ARTIFACTS, if that is set.

set -e
eval "seconds=\${$1_FUZZ_SECONDS:-20} corpus=\$$1_FUZZ_CORPUS artifacts=\$$1_FUZZ_ARTIFACTS"
fuzzer=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
corpus=${corpus:-$dir/corpus}
mkdir -p "$corpus"
options=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	options="$options $1"
	shift
done
if [ $# -gt 1 ]; then
	shift
	"$@" "$corpus"
fi
status=0
# shellcheck disable=SC2086 # several options
"$fuzzer" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 $options \
	-artifact_prefix="${artifacts:-$dir/}" "$corpus" >"$dir/log" 2>&1 || status=$?
tail -n 40 "$dir/log"
# libFuzzer ends with 77 after what it finds, which meson takes for a skip.
[ "$status" -eq 0 ]
