# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# Every option of the command line, as it is when it is not given; `millrace -- --help` prints the
# same list. Options stand after `--`, EAL's before it. This file runs as it is: it only starts.
#
# what runs
#   -i, --interactive             not given: no prompt, runs until a signal or --idle-exit
#   -a, --auto-start              not given: with -i, waits for `start`
#   --cmdline-file=FILE           not given: no commands
#   --cmdline-file-noecho=FILE    not given: no commands
#   --idle-exit=MS                not given: never leaves by itself
#   --stats-period=0              seconds between statistics, 0 for none
#
# who forwards what to whom
#   --forward-mode=io
#   --port-topology=paired
#   --portlist=                   not given: all ports, by number
#   --portmask=                   not given: all ports
#   --nb-cores=1
#   --burst=32
#   --idle-sleep=0                an lcore that found nothing polls on; US: it sleeps as long
#
# frames that txonly and flowgen make
#   --txpkts=                     not given: 64 bytes, flowgen 300
#   --tx-ip=198.18.0.1,198.18.0.2
#   --tx-udp=9,9
#   --tx-cksum=good
#   --txonly-multi-flow           not given: one flow
#   --flowgen-flows=1024
#   --eth-peer=                   not given: 02:00:00:00:00:PORT
#
# ports
#   --rxq=1
#   --txq=1
#   --rxd=1024
#   --txd=1024
#   --csum-offload=auto
#   --max-pkt-len=                not given: the port's own
#   --port-name=                  not given: p0, p1, ...
#
# IPsec in mode ip
#   --ipsec-cache=16384
#   --ipsec-numbers=home
#   --crypto=cpu
#   --ipsec-offload=auto
#
# memory
#   --mbcache=250
#   --mbuf-size=2176
#   --total-num-mbufs=            not given: computed from ports, queues and rings
#
# control
#   --ctl=                        not given: millrace.sock in EAL's runtime directory
#   --ctl-group=                  not given: only the user who started it
#
# measuring
#   --record-core-cycles          not given: not counted
#   --record-burst-stats          not given: not counted

start
