/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* SAs and policies by the real `ip xfrm`, and what it prints. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ipsec_cache/ipsec_cache.h"
#include "support.h"
#include "tools.h"

#define KEY "0x000102030405060708090a0b0c0d0e0f10111213"
#define ENDS "src 192.0.2.1 dst 198.51.100.2 proto esp spi "
#define AEAD " mode tunnel aead 'rfc4106(gcm(aes))' " KEY " 128"

static void
state_walk(void **state)
{
	struct families *f = begin();

	(void)state;
	RUN(0, "ip xfrm state add " ENDS "0x1000 reqid 7" AEAD);
	RUN(0, "ip xfrm state list");
	OUT_IS("src 192.0.2.1 dst 198.51.100.2\n"
	       "\tproto esp spi 0x00001000 reqid 7 mode tunnel\n"
	       "\treplay-window 0 \n"
	       "\taead rfc4106(gcm(aes)) " KEY " 128\n"
	       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
	       "\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n");
	families_destroy(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_walk),
	};

	test_eal_init("xfrm-tools", "0");
	return cmocka_run_group_tests_name("xfrm_tools", tests, NULL, NULL);
}
