/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parameter FI_<PROVIDER>_REPORT, which every provider has, and what it prints.
 */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include <stddef.h>

struct fi_provider;
struct weft_route;

/* report_define - make the parameter known; once, when the provider starts */
void report_define(const struct fi_provider *provider);

/* report_routes - a line for each route on standard error, when the parameter asks for them */
void report_routes(struct fi_provider *provider, const struct weft_route *routes, size_t cnt);

#endif
