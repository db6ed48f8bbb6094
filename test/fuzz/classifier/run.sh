#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: run.sh FUZZER
# Runs the fuzzer for CLASSIFIER_FUZZ_SECONDS (20) from nothing, or on from CLASSIFIER_FUZZ_CORPUS.

set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
corpus=${CLASSIFIER_FUZZ_CORPUS:-$dir/corpus}
mkdir -p "$corpus"
status=0
"$1" -max_total_time="${CLASSIFIER_FUZZ_SECONDS:-20}" -max_len=4096 -len_control=0 -timeout=10 \
	-print_final_stats=1 -artifact_prefix="${CLASSIFIER_FUZZ_ARTIFACTS:-$dir/}" "$corpus" \
	>"$dir/log" 2>&1 || status=$?
tail -n 40 "$dir/log"
exit $status
