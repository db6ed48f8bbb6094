#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: corpus.sh DIRECTORY
# Writes an IPv4 and an IPv6 packet there, as the text of each SA: mode, cut, bytes.

set -e
v4='\105\0\0\34\0\0\0\0\100\21\0\0\306\63\144\1\313\0\161\1\0\1\0\7\0\10\0\0'
v6='\140\0\0\0\0\10\21\100\40\1\15\270\0\1\0\0\0\0\0\0\0\0\0\1\40\1\15\270\0\2\0\0\0\0\0\0\0\0\0\1\0\1\0\7\0\10\0\0'
for sa in 0 1 2 3 4 5 6 7; do
	mode=$(printf '%o' $((sa * 2 + 33)))
	printf "\\$mode\0$v4" >"$1/v4-$sa"
	printf "\\$mode\17$v6" >"$1/v6-$sa"
	# opened by a NIC: as ESP still, and whole
	mode=$(printf '%o' $((sa * 2 + 97)))
	printf "\\$mode\0$v4" >"$1/v4-$sa-esp"
	mode=$(printf '%o' $((sa * 2 + 64)))
	printf "\\$mode\0\0\0\0\0\0\0\0\0\0\0\0\0\10\0$v4" >"$1/v4-$sa-whole"
done
