# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# Routes between two subnets, with a way out by a gateway.

set fwd ip
ip addr add 192.0.2.1/24 dev p0
ip addr add 198.51.100.1/24 dev p1
ip addr add 2001:db8:1::1/64 dev p0
ip addr add 2001:db8:2::1/64 dev p1
ip route add default via 198.51.100.254
ip -6 route add default via 2001:db8:2::fe
# The gateway's link address, given by hand; without this line it is asked for.
ip neigh add 198.51.100.254 lladdr 02:00:00:00:00:fe dev p1
start
