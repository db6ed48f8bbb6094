#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# usage: scripts/demo.sh
#
# From nothing to the main job: installs packages, builds, sends frames whose checksums are broken
# through millrace with one tc filter, and shows them before and after. Then a forwarding rate.
# Needs no NIC and no hugepages, and leaves nothing behind but packages and build/.

set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh

say()
{
	printf '\n== %s\n' "$*"
}

# checksums FILE: how many frames, and what tshark thinks of their checksums.
checksums()
{
	tshark -n -r "$1" -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE \
		-o tcp.check_checksum:TRUE -T fields -E occurrence=f -e frame.protocols \
		-e ip.checksum.status -e udp.checksum.status -e tcp.checksum.status \
		-e icmp.checksum.status -e icmpv6.checksum.status 2>/dev/null |
		awk -F '\t' '
			function word(s) { return s == "" ? "-" : s == 1 ? "good" : s == 0 ? "BAD" : "?" }
			{
				sub(/^eth:(ethertype:)?/, "", $1); gsub(/:(ethertype|data)/, "", $1); gsub(/ipv6.hopopts/, "hopopts", $1)
				n[$1 "\t" word($2) "\t" word($3 $4 $5 $6)]++
			}
			END { for (key in n) printf "%s\t%d\n", key, n[key] }' | sort |
		awk -F '\t' 'BEGIN { printf "   %-24s %-12s %-9s %s\n", "frames", "IPv4 header", "layer 4", "count" }
			{ printf "   %-24s %-12s %-9s %d\n", $1, $2, $3, $4 }'
}

say "packages"
# shellcheck disable=SC2086
need_packages $demo_packages

say "build"
[ -f build/build.ninja ] || meson setup build >/dev/null
ninja -C build app/millrace exec/millrace-exec >build/demo-compile.log ||
	{ tail -n 40 build/demo-compile.log; exit 1; }
# The preload library is a target of its own: build what is left, quietly.
ninja -C build >build/demo-compile.log || { tail -n 40 build/demo-compile.log; exit 1; }

mkdir -p build/demo
millrace="build/app/millrace --no-huge -m 512 --no-shconf --no-pci --log-level=error --file-prefix=demo-$$"

say "frames with broken checksums: build/demo/in.pcap"
/usr/bin/python3 test/functional/frames.py build/demo/in.pcap
/usr/bin/python3 test/functional/frames.py --none build/demo/none.pcap
checksums build/demo/in.pcap

say "the rules: config/csum.cmd"
grep -v '^#' config/csum.cmd | sed '/^$/d; s/^/   /'

say "millrace, from build/demo/in.pcap to build/demo/p1.pcap"
command="$millrace --vdev net_pcap0,rx_pcap=build/demo/in.pcap,tx_pcap=build/demo/p0.pcap
	--vdev net_pcap1,rx_pcap=build/demo/none.pcap,tx_pcap=build/demo/p1.pcap
	-- --cmdline-file=config/csum.cmd --idle-exit=300"
echo "   $command" | sed 's/^\t/     /'
$command

say "the same frames afterwards: build/demo/p1.pcap"
checksums build/demo/p1.pcap
if checksums build/demo/p1.pcap | grep -q BAD; then
	echo "demo: some checksum is still wrong" >&2
	exit 1
fi
[ "$(tshark -r build/demo/in.pcap 2>/dev/null | wc -l)" -eq "$(tshark -r build/demo/p1.pcap 2>/dev/null | wc -l)" ] ||
	{ echo "demo: frames are missing" >&2; exit 1; }

say "forwarding between two net_null ports"
workers=0@0,1@$(($(nproc) > 1))
# Its own statistics every second, of which this shows the rates.
timeout --signal=INT 6 $millrace --lcores "$workers" --vdev net_null0 --vdev net_null1 \
	-- --cmdline-file=config/forward.cmd --stats-period=1 </dev/null 2>&1 |
	awk '/NIC statistics for port/ { port = $6 }
		/Tx-pps/ && $2 > 0 { printf "   p%d sends %6.2f million packets a second\n", port, $2 / 1e6 }
		/Accumulated/ { last = 1 }
		last && /X-packets/ { print "   all:" $0 }'

say "done: README.md says more"
