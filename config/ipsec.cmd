# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# An ESP tunnel by hand: what goes from 192.0.2.0/24 to 203.0.113.0/24 and back is encrypted between
# 198.51.100.1 (we) and 198.51.100.2. The keys are an example's: make your own, for instance by
#   xxd -l 20 -p /dev/urandom
# and let an IKE daemon do all of this where keys have to change.

set fwd ip
ip addr add 192.0.2.1/24 dev p0
ip addr add 198.51.100.1/24 dev p1
ip route add 203.0.113.0/24 via 198.51.100.2
ip xfrm state add src 198.51.100.1 dst 198.51.100.2 proto esp spi 0x1001 mode tunnel reqid 1 aead rfc4106(gcm(aes)) 0x000102030405060708090a0b0c0d0e0f10111213 128
ip xfrm state add src 198.51.100.2 dst 198.51.100.1 proto esp spi 0x2001 mode tunnel reqid 1 replay-window 64 aead rfc4106(gcm(aes)) 0x131211100f0e0d0c0b0a09080706050403020100 128
ip xfrm policy add src 192.0.2.0/24 dst 203.0.113.0/24 dir out tmpl src 198.51.100.1 dst 198.51.100.2 proto esp reqid 1 mode tunnel
ip xfrm policy add src 203.0.113.0/24 dst 192.0.2.0/24 dir fwd tmpl src 198.51.100.2 dst 198.51.100.1 proto esp reqid 1 mode tunnel
start
