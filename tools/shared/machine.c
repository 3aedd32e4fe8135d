/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The facts of a machine, from /proc and uname; machine.h has the contract. Called by
 * 'weft bench' before it measures.
 */
#define _GNU_SOURCE
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The text behind ": " of the line "model name	: ...", without its end. */
static const char *value_of(char *line, const char *key)
{
	char *value = strstr(line, ": ");

	if (strncmp(line, key, strlen(key)) || !value)
		return NULL;
	value[strcspn(value, "\n")] = '\0';
	return value + 2;
}

static void read_cpu(struct machine *machine)
{
	char line[8192];
	const char *value;
	FILE *from = fopen("/proc/cpuinfo", "re");

	snprintf(machine->cpu, sizeof(machine->cpu), "unknown cpu");
	if (!from)
		return;
	/* The first core's paragraph will do. */
	while (fgets(line, sizeof(line), from) && line[0] != '\n') {
		value = value_of(line, "model name");
		if (value)
			snprintf(machine->cpu, sizeof(machine->cpu), "%.100s", value);
		value = value_of(line, "flags");
		if (value)
			machine->virtual = strstr(value, " hypervisor");
	}
	fclose(from);
}

void machine_read(struct machine *machine)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	struct utsname name;
	int got, i;

	memset(machine, 0, sizeof(*machine));
	read_cpu(machine);
	if (!uname(&name))
		snprintf(machine->kernel, sizeof(machine->kernel), "%.32s %.90s", name.sysname,
			 name.release);
	machine->cores = cores > 0 ? (unsigned)cores : 1;
	if (pages > 0)
		machine->memory_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	got = getloadavg(machine->load, 3);
	for (i = got < 0 ? 0 : got; i < 3; i++)
		machine->load[i] = NAN;
}

char *machine_format(const struct machine *machine, char *text, size_t len)
{
	snprintf(text, len, "%s, %u core%s%s, %.1f GiB, %s, load %.2f", machine->cpu,
		 machine->cores, machine->cores == 1 ? "" : "s",
		 machine->virtual ? " of a virtual machine" : "",
		 (double)machine->memory_bytes / (1u << 30), machine->kernel, machine->load[0]);
	return text;
}
