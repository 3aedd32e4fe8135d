/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log line of a call that is refused for what the program did wrong. The function that decides on
 * the error returns what these return, so that no such refusal goes without its line. What answers a
 * question (-FI_EAGAIN, -FI_ETOOSMALL, an option or operation that is not there) is no refusal.
 */
#ifndef WEFT_REFUSE_H
#define WEFT_REFUSE_H

#include "endpoint.h"

/*
 * engine_refuse - say that a call is refused, and return the error
 * @family: whose line it is
 * @err:    -FI_E*
 * @call:   as the program knows it, and the object: "fi_ep_bind of a counter"
 * @why:    what is wrong; what would be accepted
 *
 * Any thread, with or without the domain. Nothing is printed unless warnings are.
 */
int engine_refuse(const struct engine_family *family, enum fi_log_subsys subsys, int err,
		  const char *call, const char *why);

/* engine_refuse_value - the same, with what was given: flags, an enumerator, a count */
int engine_refuse_value(const struct engine_family *family, enum fi_log_subsys subsys, int err,
			const char *call, const char *why, uint64_t value);

/*
 * engine_refuse_call - the same for a data call, whose errors say by themselves what is wrong
 * @err: what the call is about to return; not an error of the caller's, -FI_EAGAIN say: no line
 */
ssize_t engine_refuse_call(const struct engine_ctx *ctx, const char *call, ssize_t err);

#endif
