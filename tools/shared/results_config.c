/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A configuration in words, for the tables of results.c and results_svg.c. */
#include "results.h"

#include <rdma/fabric.h>

char *results_config_format(const struct results_config *config, char *text, size_t len)
{
	char api[32] = "";

	if (config->api)
		snprintf(api, sizeof(api), "libfabric %u.%u, ", FI_MAJOR(config->api),
			 FI_MINOR(config->api));
	snprintf(text, len, "%s %s; %s%s, %s", config->provider, config->prov_version, api,
		 config->build, config->library);
	return text;
}
