/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers of the environment. Called while a provider registers.
 */
#include <ctype.h>
#include <stdio.h>

#include <rdma/providers/fi_log.h>
#include "bounded.h"

/* The environment variable, cut off where @buf ends */
static void name_variable(const struct fi_provider *provider, const char *name, char *buf,
			  size_t len)
{
	snprintf(buf, len, "FI_%s_%s", provider->name, name);
	for (char *c = buf; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

void ip_bounded_setting(struct fi_provider *provider, const char *name, int low, int high,
			int *value)
{
	char variable[64];
	int got;

	if (fi_param_get_int(provider, name, &got))
		return;
	if (got >= low && got <= high) {
		*value = got;
		return;
	}
	name_variable(provider, name, variable, sizeof(variable));
	FI_WARN(provider, FI_LOG_CORE, "%s=%d is not between %d and %d and is ignored\n",
		variable, got, low, high);
}
