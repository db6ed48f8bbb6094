#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: verify.sh none|error MODEL [-DNAME[=VALUE] ...]
#
# Verifies MODEL with spin, exhaustively, and expects no error, or an error. Exit 77: no spin here.

command -v spin > /dev/null && command -v cc > /dev/null || exit 77

expect=$1
model=$2
shift 2
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

spin "$@" -a "$model" > spin.out 2>&1 || { cat spin.out; exit 99; }
cc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c || exit 99
./pan -m200000 > pan.out 2>&1
grep -E '^pan|errors:|states, stored|depth too small' pan.out

# A search that was cut short proves nothing.
if grep -qE 'max search depth too small|Search not completed|out of memory' pan.out &&
	! grep -qE 'errors: [1-9]' pan.out; then
	echo "the search was not exhaustive"
	exit 1
fi
case $expect in
none) grep -q 'errors: 0' pan.out ;;
error) grep -qE 'errors: [1-9]' pan.out && grep -q 'assertion violated' pan.out ;;
*) exit 99 ;;
esac
