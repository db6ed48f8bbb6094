/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/* The replay window as RFC 4303 describes it, and nothing clever. */

#include <errno.h>
#include <stdlib.h>

#include "internal.h"

int
nic_window_init(struct nic_window *w, uint32_t size, uint64_t top)
{
	w->size = size;
	w->top = top;
	w->n_bits = (size + UINT64_C(64)) & ~UINT64_C(63);
	w->bits = calloc(w->n_bits / 64, sizeof(*w->bits));
	return w->bits != NULL ? 0 : -ENOMEM;
}

static bool
bit(const struct nic_window *w, uint64_t number)
{
	uint64_t at = number % w->n_bits;

	return (w->bits[at / 64] >> at % 64 & 1) != 0;
}

static void
bit_set(struct nic_window *w, uint64_t number, bool value)
{
	uint64_t at = number % w->n_bits, mask = UINT64_C(1) << at % 64;

	w->bits[at / 64] = value ? w->bits[at / 64] | mask : w->bits[at / 64] & ~mask;
}

/* Appendix A2.2: below the window's bottom is the next half. */
uint64_t
nic_window_number(const struct nic_window *w, uint32_t low, bool esn)
{
	uint64_t high = w->top >> 32;
	uint32_t top = (uint32_t)w->top, bottom = top - w->size + 1;

	if (!esn)
		return low;
	if (w->size == 0)
		return nic_number_near(w->top, low);
	if (top >= w->size - 1)
		high += low < bottom;
	else if (low >= bottom && high > 0)
		high--;
	return high << 32 | low;
}

bool
nic_window_check(const struct nic_window *w, uint64_t number)
{
	if (w->size == 0)
		return true;
	if (number == 0 || (number <= w->top && w->top - number >= w->size))
		return false;
	return number > w->top || !bit(w, number);
}

void
nic_window_add(struct nic_window *w, uint64_t number)
{
	if (number > w->top) {
		uint64_t from = number - w->top > w->n_bits ? number - w->n_bits : w->top;

		for (uint64_t i = from + 1; i <= number && i != 0; i++)
			bit_set(w, i, false);
		w->top = number;
	}
	if (w->size != 0)
		bit_set(w, number, true);
}
