# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# Makes the checksums right of what p0 receives, IPv4 header and layer 4, then forwards it.

tc qdisc add dev p0 clsact
tc filter add dev p0 ingress matchall action csum ip4h and tcp and udp and icmp
start
