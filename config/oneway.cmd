# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# Lets frames pass from p0 to p1 and drops what comes the other way; `show drops` counts those.

tc qdisc add dev p1 clsact
tc filter add dev p1 ingress matchall action drop
start
