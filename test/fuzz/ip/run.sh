#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: run.sh PYTHON CORPUS.PY FUZZER
# Runs the fuzzer for IP_FUZZ_SECONDS (20), from frames that hosts and routers send on. What it finds
# is kept in IP_FUZZ_ARTIFACTS, if that is set.

set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/corpus"
"$1" "$2" "$dir/corpus"
status=0
"$3" -max_total_time="${IP_FUZZ_SECONDS:-20}" -max_len=4096 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="${IP_FUZZ_ARTIFACTS:-$dir/}" "$dir/corpus" >"$dir/log" 2>&1 || status=$?
tail -n 40 "$dir/log"
exit $status
