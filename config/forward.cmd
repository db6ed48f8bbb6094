# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors
#
# Forwards between pairs of ports, without a rule.

start
