/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses the option arguments that several subcommands have. A bad one ends the process with a
 * message and WEFT_EXIT_USAGE. Called on the main thread, before any other is started.
 */
#ifndef WEFT_TOOLS_ARGUMENTS_H
#define WEFT_TOOLS_ARGUMENTS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdnoreturn.h>

#include "channel.h"
#include "plan.h"

/* Values of long options without a letter; those of single commands are below. */
enum {
	ARGUMENT_CPUS = 512,
	ARGUMENT_REALTIME,
	ARGUMENT_TIMEOUT,
};

/* The options of argument_take() that commands for two sides have, in a struct option[]. */
#define ARGUMENT_OPTIONS                                                                       \
	{ "provider", required_argument, NULL, 'p' },                                          \
		{ "domain", required_argument, NULL, 'd' },                                    \
		{ "source", required_argument, NULL, 's' },                                    \
		{ "endpoint", required_argument, NULL, 'e' },                                  \
		{ "messages", required_argument, NULL, 'm' },                                  \
		{ "check", no_argument, NULL, 'c' }, { "port", required_argument, NULL, 'P' }, \
		{ "cpus", required_argument, NULL, ARGUMENT_CPUS },                            \
	{                                                                                      \
		"timeout", required_argument, NULL, ARGUMENT_TIMEOUT                           \
	}

/*
 * argument_take - take an option that several commands have
 * @c:    what getopt_long() returned; a command takes its own options first
 * @arg:  its argument, referred to by @channel from then on
 *
 * Returns false for any other option.
 */
bool argument_take(int c, const char *arg, struct plan *plan, struct place *place,
		   struct channel_options *channel);

/*
 * argument_unknown - end the process, for an option that getopt_long() reported
 * @command:  named in the message
 */
noreturn void argument_unknown(const char *command);

/*
 * argument_number - a decimal number in a range
 * @what:  named in the message
 */
unsigned argument_number(const char *text, const char *what, unsigned min, unsigned max);

/*
 * argument_sizes - a list of message sizes (sizes.h)
 */
void argument_sizes(const char *text, struct sizes *sizes);

/*
 * argument_provider - a provider's name, into a plan
 */
void argument_provider(const char *text, struct plan *plan);

/* argument_wait - how waits are: "poll", "fd" or "sread" */
enum plan_wait argument_wait(const char *text);

/*
 * argument_library_find - make the directory of a libfabric.so.1 absolute
 * @dir: out: the absolute path, PATH_MAX bytes
 * Returns 0, or a negative errno if the directory has no libfabric.so.1.
 *
 * argument_library - the same for the argument of an option; an error ends the process
 */
int argument_library_find(const char *given, char *dir);
void argument_library(const char *given, char *dir);

/*
 * argument_host - the operand HOST, if there is one; nothing may follow
 * @idx:  optind
 *
 * Returns it or NULL.
 */
const char *argument_host(int argc, char **argv, int idx);

#endif
