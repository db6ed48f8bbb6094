#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: scripts/check.sh [FILE...]
#
# Holds the source to its rules without building it: form, licence lines, forbidden calls, who
# includes whom, spelling, manual pages, commit messages. Prints file:line: reason; exits 1 if there
# is one. A tool that is not installed is said to be skipped. CHECK_COMMITS=RANGE names the commits.

set -u
cd "$(dirname "$0")/.." || exit 1

if [ $# -gt 0 ]; then
	files=$(printf '%s\n' "$@")
elif git rev-parse --git-dir >/dev/null 2>&1; then
	files=$(git ls-files)
else
	files=$(find . -type f -not -path './build*' -not -path '*/.*' | cut -c3-)
fi
failed=0

# run NAME TOOL COMMAND...: a failing command fails the check, a missing tool skips it.
run()
{
	name=$1 tool=$2
	shift 2
	if ! command -v "$tool" >/dev/null; then
		echo "check: $name skipped: $tool is not installed" >&2
	elif ! "$@"; then
		echo "check: $name failed" >&2
		failed=1
	fi
}

existing()
{
	echo "$files" | grep -E "$1" | while read -r file; do
		[ -f "$file" ] && echo "$file"
	done
}

# The first line of each file that clang-format would change.
format()
{
	! existing '\.[ch]$' | xargs -r "$clang_format" --dry-run -Werror 2>&1 |
		sed -n 's/^\([^ ]*:[0-9]*\):[0-9]*: error: .*/\1: not as clang-format -i writes it/p' |
		awk -F: '!seen[$1]++' | grep .
}

source_rules()
{
	existing . | xargs -r python3 scripts/check_source.py
}

spelling()
{
	existing '\.(c|h|md|py|sh|cmd|1|build)$|^\.ci/' |
		xargs -r codespell --ignore-words scripts/spelling.txt
}

manuals()
{
	existing '\.[1-8]$' | xargs -r mandoc -Tlint -Wwarning
}

# Those that are not upstream yet; without an upstream the newest one.
commits()
{
	range=${CHECK_COMMITS:-}
	if [ -z "$range" ]; then
		git rev-parse -q --verify '@{upstream}' >/dev/null 2>&1 && range='@{upstream}..HEAD'
	fi
	python3 scripts/check_source.py --commits "${range:--1}"
}

# Versions of clang-format differ in what they write; 14 is Debian 12's.
clang_format=clang-format-14
command -v $clang_format >/dev/null || clang_format=clang-format

run format $clang_format format
run rules python3 source_rules
run spelling codespell spelling
run manuals mandoc manuals
git rev-parse --git-dir >/dev/null 2>&1 && run commits git commits
exit $failed
