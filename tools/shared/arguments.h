/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading the option arguments that several subcommands take. A bad one ends the process
 * with a message and WEFT_EXIT_USAGE. Main's thread, before anything starts.
 */
#ifndef WEFT_TOOLS_ARGUMENTS_H
#define WEFT_TOOLS_ARGUMENTS_H

#include <stdbool.h>

#include "plan.h"

/*
 * argument_number - a decimal number in a range
 * @what:  named in the message
 */
unsigned argument_number(const char *text, const char *what, unsigned min, unsigned max);

/*
 * argument_tagged - "tagged" is true, "msg" is false
 */
bool argument_tagged(const char *text);

/*
 * argument_sizes - a list of message sizes (sizes.h)
 */
void argument_sizes(const char *text, struct sizes *sizes);

/*
 * argument_provider - a provider's name, into a plan
 */
void argument_provider(const char *text, struct plan *plan);

/*
 * argument_cpus - "A,B", into a place
 */
void argument_cpus(const char *text, struct place *place);

/*
 * argument_host - the operand HOST, if there is one; nothing may follow
 * @idx:  optind
 *
 * Returns it or NULL.
 */
const char *argument_host(int argc, char **argv, int idx);

#endif
