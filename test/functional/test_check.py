# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""scripts/check_source.py finds what it is there for, and nothing else."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_source  # pylint: disable=wrong-import-position


@pytest.mark.parametrize("path, line, found", [
    ("lib/rcu/x.c", "rte_smp_mb();", True),
    ("app/x.c", "__sync_fetch_and_add(&a, 1);", True),
    ("app/x.c", "strcpy(a, b);", True),
    ("app/x.c", "strlcpy(a, b, 1);", False),
    ("app/x.c", "sprintf(a, b);", True),
    ("app/x.c", "snprintf(a, 1, b);", False),
    ("app/x.c", "printf(a);", False),
    ("lib/rcu/x.c", "printf(a);", True),
    ("lib/rcu/x.c", "/* printf(a); */", False),
    ("lib/rcu/x.c", 'call("printf(a);");', False),
    ("lib/rcu/x.c", "snprintf(a, 1, b);", False),
    ("lib/rcu/x.c", "exit(1);", True),
    ("lib/rcu/x.c", "thing->exit(1);", False),
    ("lib/rcu/x.c", "rcu_exit(1);", False),
    ("lib/rcu/x.c", "RTE_LOG(ERR, EAL, a);", True),
    ("lib/rcu/x.c", '#include "packet/packet.h"', True),
    ("lib/rcu/x.c", '#include "rcu/rcu.h"', False),
    ("lib/rcu/x.c", "#include <stdio.h>", False),
    ("lib/action/x.c", '#include "rcu/rcu.h"', False),
    ("lib/action/x.c", '#include "packet/packet.h"', True),
    ("lib/csum_action/x.c", '#include "packet/packet.h"', False),
    ("lib/csum_action/x.c", '#include "classifier/classifier.h"', True),
    ("lib/netlink/x.c", '#include "csum_action/csum_action.h"', False),
    ("lib/netlink/x.c", '#include "app/app.h"', True),
    ("lib/netlink/x.c", '#include "../../app/app.h"', True),
    ("exec/x.c", '#include "netlink/ctl.h"', False),
    ("exec/sub/x.c", '#include "../x.h"', False),
    ("exec/sub/x.c", '#include "../../app/app.h"', True),
    ("exec/x.c", '#include "netlink/netlink.h"', True),
    ("app/x.c", '#include "netlink/netlink.h"', False),
    ("test/unit/x.c", '#include "netlink/netlink.h"', False),
])
def test_rule(path, line, found):
    assert bool(check_source.check_c(path, line + "\n")) == found


def test_white_space():
    assert check_source.check_text("x.c", "a \n") == [(1, "white space at the end of the line")]
    assert check_source.check_text("x.c", "a") != []
    assert check_source.check_text("x.c", "a\n") == []
