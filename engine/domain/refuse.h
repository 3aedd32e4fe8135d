/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log lines of calls that are refused because the program made a mistake. The function that detects
 * the error returns the value of one of these functions, so that each such refusal has a line.
 * Errors that answer a query (-FI_EAGAIN, -FI_ETOOSMALL, an option or operation that does not
 * exist) are not refusals.
 */
#ifndef WEFT_REFUSE_H
#define WEFT_REFUSE_H

#include "endpoint.h"

/*
 * engine_refuse - log that a call is refused
 * @family: its provider writes the line
 * @subsys: subsystem of the line
 * @err:    -FI_E*
 * @call:   name of the call, and its object: "fi_ep_bind of a counter"
 * @why:    the mistake, and what would be accepted
 *
 * Any thread, with or without the domain held. Written at the level of warnings.
 * Returns @err.
 */
int engine_refuse(const struct engine_family *family, enum fi_log_subsys subsys, int err,
		  const char *call, const char *why);

/* engine_refuse_value - the same, with the value that was refused: flags, an enumerator, a count */
int engine_refuse_value(const struct engine_family *family, enum fi_log_subsys subsys, int err,
			const char *call, const char *why, uint64_t value);

/*
 * engine_refuse_call - log that a data call is refused; the cause is derived from the error
 * @err: the error that the call returns; nothing is logged for errors such as -FI_EAGAIN
 * Returns @err.
 */
ssize_t engine_refuse_call(const struct engine_ctx *ctx, const char *call, ssize_t err);

#endif
