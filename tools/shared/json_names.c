/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making names fit for JSON. */
#include "json_names.h"

json_t *json_name(const char *name)
{
	json_t *value = json_string(name);
	char ascii[JSON_NAME_MAX];
	size_t i;

	if (value)
		return value;
	for (i = 0; name[i] && i < sizeof(ascii) - 1; i++)
		ascii[i] = (unsigned char)name[i] < 0x80 ? name[i] : '?';
	ascii[i] = '\0';
	return json_string(ascii);
}
