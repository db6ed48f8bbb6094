/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

#ifndef APP_PORT_ESP_H
#define APP_PORT_ESP_H

/* Ports whose NICs do ESP (rte_security). Control thread, but for the event. */

#include <stdbool.h>
#include <stdint.h>

struct app;
struct port;

/* Its driver says that it can, both ways, and the options allow it: its offloads are asked for. */
bool port_esp_wanted(const struct app *app, const struct port *port);
/* It is up: SAs may have sessions on it. */
void port_esp_up(struct app *app, const struct port *port);
/* It goes down, or away: SAs let go of it, and go on in software. */
void port_esp_gone(struct app *app, const struct port *port);
/* A grace period later it has been stopped: no session is left. */
void port_esp_stopped(struct app *app, const struct port *port);
/* RTE_ETH_EVENT_IPSEC: struct rte_eth_event_ipsec_desc. Any thread. */
void port_esp_event(struct app *app, const void *desc);

/*
 * ipsec_cache_conf's tx_rounds: rounds of that port. A round ends when all that was in its bands
 * when it began has been given to the driver, and the driver's rings have let go of all they had
 * by then. Rounds go on for as long as somebody asks for them.
 */
uint64_t port_esp_rounds(void *app, uint32_t ifindex);
/* Looks how far they are. */
void ports_esp_rounds(struct app *app);

#endif /* APP_PORT_ESP_H */
