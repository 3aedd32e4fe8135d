/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared option arguments; arguments.h has the contract.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "weft.h"

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned argument_number(const char *text, const char *what, unsigned min, unsigned max)
{
	unsigned long value;
	char *end;

	value = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || value < min || value > max)
		errx(WEFT_EXIT_USAGE, "%s: '%s' is not a number from %u to %u", what, text, min,
		     max);
	return (unsigned)value;
}

/* "tagged" is true, "msg" is false. */
static bool argument_tagged(const char *text)
{
	if (!strcmp(text, "tagged"))
		return true;
	if (strcmp(text, "msg"))
		errx(WEFT_EXIT_USAGE, "messages are 'tagged' or 'msg', not '%s'", text);
	return false;
}

void argument_sizes(const char *text, struct sizes *sizes)
{
	if (sizes_parse(text, sizes))
		errx(WEFT_EXIT_USAGE, "'%s' is not a list of up to %u sizes like 8,64k,1M",
		     text, SIZES_MAX);
}

void argument_provider(const char *text, struct plan *plan)
{
	size_t len = strlen(text);

	if (!len || len >= sizeof(plan->provider) || strpbrk(text, " \t\n"))
		errx(WEFT_EXIT_USAGE, "'%s' cannot be a provider's name", text);
	memcpy(plan->provider, text, len + 1);
}

/* "A,B", into a place. */
static void argument_cpus(const char *text, struct place *place)
{
	if (pair_cpus_parse(text, place->cpus))
		errx(WEFT_EXIT_USAGE, "'%s' is not two cpu numbers like 0,1", text);
	place->has_cpus = true;
}

static enum plan_endpoint argument_endpoint(const char *text)
{
	static const char *const names[PLAN_ENDPOINTS] = { "rdm", "msg", "dgram" };

	for (int i = 0; i < PLAN_ENDPOINTS; i++)
		if (!strcmp(text, names[i]))
			return (enum plan_endpoint)i;
	errx(WEFT_EXIT_USAGE, "endpoints are 'rdm', 'msg' or 'dgram', not '%s'", text);
}

enum plan_wait argument_wait(const char *text)
{
	static const char *const names[PLAN_WAITS] = { "poll", "fd", "sread" };
	int i;

	for (i = 0; i < PLAN_WAITS; i++)
		if (!strcmp(text, names[i]))
			return (enum plan_wait)i;
	errx(WEFT_EXIT_USAGE, "a wait is 'poll', 'fd' or 'sread', not '%s'", text);
}

bool argument_take(int c, const char *arg, struct plan *plan, struct place *place,
		   struct channel_options *channel)
{
	switch (c) {
	case 'p':
		argument_provider(arg, plan);
		return true;
	case 'd':
		channel->domain = arg;
		return true;
	case 's':
		channel->source = arg;
		return true;
	case 'e':
		plan->endpoint = argument_endpoint(arg);
		return true;
	case 'm':
		plan->tagged = argument_tagged(arg);
		return true;
	case 'c':
		plan->verify = true;
		return true;
	case 'P':
		place->port = argument_number(arg, "port", 1, 65535);
		return true;
	case ARGUMENT_CPUS:
		argument_cpus(arg, place);
		return true;
	case ARGUMENT_REALTIME:
		place->realtime = true;
		return true;
	case ARGUMENT_TIMEOUT:
		channel->timeout_s = argument_number(arg, "timeout", 1, 86400);
		return true;
	default:
		return false;
	}
}

int argument_library_find(const char *given, char *dir)
{
	char file[PATH_MAX];

	if (!realpath(given, dir))
		return -errno;
	if ((size_t)snprintf(file, sizeof(file), "%s/libfabric.so.1", dir) >= sizeof(file))
		return -ENAMETOOLONG;
	return access(file, R_OK) ? -errno : 0;
}

void argument_library(const char *given, char *dir)
{
	int rc = argument_library_find(given, dir);

	if (rc)
		errx(EXIT_FAILURE, "no libfabric.so.1 in '%s': %s", given, strerror(-rc));
}

void argument_unknown(const char *command)
{
	fprintf(stderr, "'weft %s --help' lists the options\n", command);
	exit(WEFT_EXIT_USAGE);
}

const char *argument_host(int argc, char **argv, int idx)
{
	if (idx + 1 < argc)
		errx(WEFT_EXIT_USAGE, "one HOST at most, not also '%s'", argv[idx + 1]);
	return idx < argc ? argv[idx] : NULL;
}
