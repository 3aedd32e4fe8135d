/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Why providers do not answer fi_getinfo. The library says it in its log: ours in one
 * line per provider, "getinfo: NAME: reason", written by the core; a stock one in
 * what each provider logs while it checks the hints. A logger of our own, imported into the
 * library, hears both. One listener per process; one thread.
 */
#ifndef WEFT_TOOLS_REASONS_H
#define WEFT_TOOLS_REASONS_H

#include <stdbool.h>
#include <stdio.h>

/*
 * reasons_listen - hear what the library logs from now on
 *
 * Before the first other call of libfabric, so that what providers say when they are
 * loaded is heard too.
 * Returns 0, or a negative fi_errno from a library that takes no logger.
 */
int reasons_listen(void);

/*
 * reasons_heard - take in one log message
 * @provider:  whose it is, "core" for the library's own
 * @func:      function that logged it
 *
 * The imported logger calls it. Messages that say nothing about a refusal are dropped.
 */
void reasons_heard(const char *provider, const char *func, const char *msg);

/*
 * reasons_print - why a provider did not answer
 * @provider:  its name
 *
 * Returns how many lines it printed: 0 when nothing was heard of it.
 */
int reasons_print(FILE *to, const char *provider);

/* reasons_are_there - returns true if a reason of this provider was logged */
bool reasons_are_there(const char *provider);

/*
 * reasons_nearest - what to leave out to get an answer, in words: 'would be answered without ...'
 *
 * Returns NULL when the library has not said it.
 */
const char *reasons_nearest(void);

/*
 * reasons_name - the names of all who gave a reason
 * @idx:  from 0
 *
 * Returns NULL behind the last.
 */
const char *reasons_name(unsigned idx);

/*
 * reasons_forget - drop all that was heard, and free it
 */
void reasons_forget(void);

#endif
