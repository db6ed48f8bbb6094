#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: run.sh FUZZER
# Runs the fuzzer for IPSEC_FUZZ_SECONDS (20) from a few packets, or on from IPSEC_FUZZ_CORPUS.

set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
corpus=${IPSEC_FUZZ_CORPUS:-$dir/corpus}
mkdir -p "$corpus"
# An IPv4 and an IPv6 packet as the text of each SA: mode, cut, bytes.
v4='\105\0\0\34\0\0\0\0\100\21\0\0\306\63\144\1\313\0\161\1\0\1\0\7\0\10\0\0'
v6='\140\0\0\0\0\10\21\100\40\1\15\270\0\1\0\0\0\0\0\0\0\0\0\1\40\1\15\270\0\2\0\0\0\0\0\0\0\0\0\1\0\1\0\7\0\10\0\0'
for sa in 0 1 2 3 4 5 6 7; do
	mode=$(printf '%o' $((sa * 2 + 33)))
	printf "\\$mode\0$v4" >"$corpus/v4-$sa"
	printf "\\$mode\17$v6" >"$corpus/v6-$sa"
done
status=0
"$1" -max_total_time="${IPSEC_FUZZ_SECONDS:-20}" -max_len=1024 -len_control=0 -timeout=10 \
	-print_final_stats=1 -artifact_prefix="${IPSEC_FUZZ_ARTIFACTS:-$dir/}" "$corpus" \
	>"$dir/log" 2>&1 || status=$?
tail -n 40 "$dir/log"
exit $status
