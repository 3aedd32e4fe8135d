/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings that are numbers with bounds.
 */
#ifndef WEFT_IP_BOUNDED_H
#define WEFT_IP_BOUNDED_H

#include <rdma/providers/fi_prov.h>

/*
 * ip_bounded_setting - read a number from the environment
 * @name:  defined by fi_param_define(); of provider tcp FI_TCP_ and the name in capitals
 * @value: in: the default; out: what is set, unless it is not from @low to @high: that is logged
 */
void ip_bounded_setting(struct fi_provider *provider, const char *name, int low, int high,
			int *value);

#endif
