/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Why providers do not answer fi_getinfo, from the log of the library. Weft's core logs one line per provider,
 * "getinfo: NAME: reason"; in a stock libfabric each provider logs while it checks the hints. A logger that is
 * imported into the library receives both. One per process; one thread.
 */
#ifndef WEFT_TOOLS_REASONS_H
#define WEFT_TOOLS_REASONS_H

#include <stdbool.h>
#include <stdio.h>

/*
 * reasons_listen - import the logger
 *
 * Called before any other call of libfabric, so that messages of providers that are being loaded are
 * received too.
 * Returns 0, or a negative fi_errno if the library does not support imported loggers.
 */
int reasons_listen(void);

/*
 * reasons_heard - receive one log message
 * @provider:  the provider that logged it; "core" for the library itself
 * @func:      function that logged it
 *
 * The imported logger calls it. Messages that are not about a refusal are dropped.
 */
void reasons_heard(const char *provider, const char *func, const char *msg);

/*
 * reasons_print - print why a provider did not answer
 * @provider:  its name
 *
 * Returns the number of lines printed: 0 if nothing was logged.
 */
int reasons_print(FILE *to, const char *provider);

/* reasons_are_there - returns true if a reason of this provider was logged */
bool reasons_are_there(const char *provider);

/*
 * reasons_nearest - which hints to leave out to get an answer: 'would be answered without ...'
 *
 * Returns NULL if the library did not log that.
 */
const char *reasons_nearest(void);

/*
 * reasons_name - the names of all providers with a reason
 * @idx:  0 and up
 *
 * Returns NULL after the last.
 */
const char *reasons_name(unsigned idx);

/*
 * reasons_forget - free all messages
 */
void reasons_forget(void);

#endif
