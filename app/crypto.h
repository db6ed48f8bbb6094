/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_CRYPTO_H
#define APP_CRYPTO_H

/*
 * --crypto=lookaside: the crypto devices that EAL was given work for SAs (cryptodev), with a queue
 * pair for each worker. Control thread.
 */

struct app;

/* Behind ip_create(). 0, or -1 after one sentence on stderr. */
int crypto_open(struct app *app);
/* Before ip_destroy(), which takes back what devices have; and after it. */
void crypto_stop(struct app *app);
void crypto_close(struct app *app);

#endif /* APP_CRYPTO_H */
