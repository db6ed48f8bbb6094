#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# The guest's only process: brings the devices up, then runs what kernel.py asks for over a virtio
# port. A request is two lines, script and its standard input; the answer one line, status, standard
# output and standard error. All but the status are base64.

export PATH=/bin:/sbin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run

# Nothing speaks unless a test makes it: no link-local addresses, no router solicitations.
echo 1 >/proc/sys/net/ipv6/conf/default/addr_gen_mode
echo 0 >/proc/sys/net/ipv6/conf/default/accept_ra
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
echo 0 >/proc/sys/net/ipv6/conf/default/router_solicitations
echo 3 >/proc/sys/kernel/printk

modprobe virtio_pci && modprobe virtio_console && modprobe virtio_net
while [ ! -e /dev/vport0p1 ]; do
	mdev -s
	sleep 0.05
done
ip link set lo up
for nic in /sys/class/net/eth*; do
	# Frames arrive as they were sent.
	ethtool -K "${nic##*/}" gro off lro off 2>/dev/null
done

exec 3<>/dev/vport0p1
echo ready >&3
while read -r script <&3 && read -r input <&3; do
	printf %s "$script" | base64 -d >/run/script
	printf %s "$input" | base64 -d >/run/input
	sh -e /run/script </run/input >/run/out 2>/run/err 3>&-
	echo "$? $(base64 -w 0 /run/out) $(base64 -w 0 /run/err)" >&3
done
poweroff -f
