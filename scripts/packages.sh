# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# Read by the other scripts: what has to be installed, and how.

# To build and run; libdpdk-dev brings DPDK and all its drivers.
build_packages="gcc libbsd-dev libc6-dev libdpdk-dev libipsec-mb-dev libmnl-dev libpcap-dev meson ninja-build pkg-config iproute2"
demo_packages="$build_packages python3-scapy tshark"
test_packages="$demo_packages clang-14 clang-format-14 codespell git libcmocka-dev libclang-rt-14-dev mandoc
	ethtool iperf3 iputils-ping procps traceroute
	python3-cryptography python3-pytest spin strace qemu-system-x86 busybox-static"
bench_packages="$build_packages dpdk-dev libcmocka-dev python3 python3-cryptography"

# as_root COMMAND...: runs it as root, by sudo where we are not.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -n "$@" </dev/null
	else
		echo "$0: neither root nor sudo: cannot run $*" >&2
		return 1
	fi
}

# need_packages NAME...: installs those that are missing, and touches nothing if none is.
need_packages()
{
	missing=
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
			missing="$missing $package"
	done
	[ -z "$missing" ] && return 0
	echo "installing:$missing"
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
		--no-install-recommends $missing </dev/null >/dev/null 2>&1 && return 0
	# The lists are absent or old: fetch them and try once more, this time aloud.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update \
		</dev/null || return 1
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
		--no-install-recommends $missing </dev/null >/dev/null
}
