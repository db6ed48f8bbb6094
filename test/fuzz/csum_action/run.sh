#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: run.sh PYTHON CORPUS.PY VECTORS FUZZER
# Runs the fuzzer for CSUM_FUZZ_SECONDS (20), from the unit tests' frames on.

set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/corpus"
"$1" "$2" "$3" "$dir/corpus"
status=0
"$4" -max_total_time="${CSUM_FUZZ_SECONDS:-20}" -max_len=2048 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="${CSUM_FUZZ_ARTIFACTS:-$dir/}" "$dir/corpus" >"$dir/log" 2>&1 || status=$?
tail -n 40 "$dir/log"
exit $status
