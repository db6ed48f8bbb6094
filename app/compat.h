/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_COMPAT_H
#define APP_COMPAT_H

/* What differs between DPDK 22.11 and later: probed by meson, named here, checked nowhere else. */

#ifdef HAVE_TEL_DICT_UINT
#define compat_tel_add_dict_uint rte_tel_data_add_dict_uint
#else
#define compat_tel_add_dict_uint rte_tel_data_add_dict_u64
#endif

#endif /* APP_COMPAT_H */
