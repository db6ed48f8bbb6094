/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_vect.h>

#include "app.h"
#include "control.h"
#include "prompt/prompt.h"
#include "prompt/traffic.h"
#include "telemetry.h"

static int
eal_start(int argc, char **argv)
{
	control_signals_block();
	/*
	 * A million rules deleted at once come back as small chunks. glibc would keep those apart
	 * and merge all of them in one go later, 26 ms in which no client is served.
	 */
	mallopt(M_MXFAST, 0);
	rte_set_application_usage_hook(options_usage);
	if (rte_eal_init(argc, argv) < 0) {
		fprintf(stderr, "millrace: EAL did not start: %s\n", rte_strerror(rte_errno));
		return -1;
	}
	/* EAL allows 256 bits unless told otherwise (--force-max-simd-bitwidth, which then stays).
	 */
	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	return 0;
}

/* Command file, then prompt or forwarding, then the loop. */
static int
serve(struct app *a)
{
	const char *why = NULL;

	telemetry_serve(true);
	if (a->opt.cmdline_file != NULL &&
		prompt_file(a->prompt, a->opt.cmdline_file, a->opt.cmdline_echo) != 0) {
		if (strncmp(prompt_error(a->prompt), "stopped in ", 11) != 0)
			fprintf(stderr, "millrace: %s\n", prompt_error(a->prompt));
		if (!a->opt.interactive)
			return 1;
	}
	if (!control_quitting(a->control) && !a->ever_forwarded &&
		(!a->opt.interactive || a->opt.auto_start))
		why = traffic_start(a, 0);
	if (why != NULL) {
		fprintf(stderr, "millrace: start: %s\n", why);
		if (!a->opt.interactive)
			return 1;
	}
	if (a->opt.interactive && !control_quitting(a->control))
		prompt_interactive(a->prompt);
	control_idle_watch(a->control);
	control_run(a->control);
	return 0;
}

int
main(int argc, char **argv)
{
	struct app *a = &app;
	int eal_argc, ret;

	if ((ret = options_parse(argc, argv, &a->opt, &eal_argc)) != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	if (eal_start(eal_argc, argv) != 0)
		return EXIT_FAILURE;
	telemetry_register(); /* without --no-telemetry; nothing else depends on it */
	ret = app_open(a) == 0 ? serve(a) : EXIT_FAILURE;
	telemetry_serve(false);
	app_close(a); /* says what a device kept for itself */
	rte_eal_cleanup();
	return ret;
}
