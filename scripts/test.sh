#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: scripts/test.sh [-q]
#
# Installs what the tests need, then runs all of them: the source checks, every suite as built by
# gcc, unit and functional tests under ASan and UBSan, stress tests under ThreadSanitizer, and the
# fuzzers as built by clang, 30 s each. Warnings are errors. -q: only the checks and the first build.
# The last line is `N passed, N failed`; exits non-zero if anything failed.

set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/packages.sh

quick=no
case "${1:-}" in
"") ;;
-q) quick=yes ;;
*)
	sed -n '/^# usage/,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 1
	;;
esac

export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
exec </dev/null
passed=0 failed=0 skipped=0
bad=()

# step NAME COMMAND...: one thing that passes or fails as a whole.
step()
{
	local name=$1 start=$SECONDS
	shift
	echo "== $name"
	if "$@"; then
		passed=$((passed + 1))
		echo "-- $name: ok, $((SECONDS - start)) s"
		return 0
	fi
	failed=$((failed + 1))
	bad+=("$name")
	echo "-- $name: FAILED"
	return 1
}

# build DIR SETUP-OPTION...: configured once.
build()
{
	local dir=$1
	shift
	if [ ! -f "$dir/build.ninja" ]; then
		rm -rf "$dir"
		meson setup "$dir" "$@" >"$dir.log" 2>&1 ||
			{ cat "$dir.log"; rm -f "$dir.log"; return 1; }
		rm -f "$dir.log"
	else
		meson configure "$dir" "$@" || return 1
	fi
	ninja -C "$dir" >"$dir/compile.log" 2>&1 || { tail -n 50 "$dir/compile.log"; return 1; }
}

# suites DIR NAME MESON-OPTION...: runs tests and adds what their log says to the sums.
suites()
{
	local dir=$1 name=$2 start=$SECONDS log sum
	shift 2
	echo "== $name"
	log=$dir/meson-logs/$name.json
	rm -f "$log"
	"${run_in[@]}" meson test -C "$dir" --no-rebuild --logbase "$name" --print-errorlogs "$@" ||
		echo "meson test: status $?"
	if [ ! -s "$log" ]; then
		echo "-- $name: no test is registered"
		return 0
	fi
	sum=$(python3 scripts/count_tests.py "$log") ||
		{ failed=$((failed + 1)); bad+=("$name"); return 1; }
	while read -r result test; do
		case $result in
		passed) passed=$((passed + 1)) ;;
		skipped) skipped=$((skipped + 1)) ;;
		*) failed=$((failed + 1)); bad+=("$test ($name, $result)") ;;
		esac
	done <<<"$sum"
	echo "-- $name: $((SECONDS - start)) s"
}

finish()
{
	local name
	echo
	for name in "${bad[@]}"; do
		echo "FAILED: $name"
	done
	if [ "$skipped" -gt 0 ]; then
		echo "$passed passed, $failed failed, $skipped skipped"
	else
		echo "$passed passed, $failed failed"
	fi
	[ "$failed" -eq 0 ]
	exit
}

# Sanitizers need an address space laid out as they know it; containers may forbid to ask for one.
run_in=()
fixed=()
setarch "$(uname -m)" -R true 2>/dev/null && fixed=(setarch "$(uname -m)" -R)

# shellcheck disable=SC2086
step "packages" need_packages $test_packages || finish
step "source checks" scripts/check.sh
step "build with gcc" build build --werror && suites build all --timeout-multiplier 2
[ $quick = yes ] && finish

# Instrumented code makes gcc suspect what is not so: warnings are for the plain builds.
run_in=("${fixed[@]}")
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:abort_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
step "build with ASan and UBSan" build build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 &&
	suites build-asan asan --suite unit --suite functional --timeout-multiplier 5
step "build with ThreadSanitizer" build build-tsan -Db_sanitize=thread -Db_lundef=false -Doptimization=1 &&
	suites build-tsan tsan --suite stress --timeout-multiplier 5
export CC=clang-14
step "build with clang" build build-clang --werror && suites build-clang fuzz --suite fuzz --timeout-multiplier 2
finish
