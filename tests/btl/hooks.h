/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transport's way to libfabric (fabric/fabric.h) with failures: the provider has as many
 * devices as the test says, each of the same kind, a call can be made to fail, and a device to
 * break.
 */
#ifndef TESTS_BTL_HOOKS_H
#define TESTS_BTL_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOOKS_DEVICES_MAX 4

/*
 * struct hooks - what happens
 * @devices:  how many there are
 * @fail_at:  the call that fails, counted from 1 on; 0: none
 * @error:    what it returns, -FI_E*
 * @calls:    out: how many the main thread has made
 * @failed:   out: the name of the one that has failed, or NULL
 * @no_rma:   the provider has no one-sided operations
 * @refuses:  bit i: puts and gets of device i fail within the call, as where its connection has broken
 * @breaks:   bit i: they begin, and fail
 * @holds:    bit i: they begin, and do not end; once it is 0 again they fail
 * @withholds: fi_sendmsg begins, and does not end before it is cancelled
 * @answers:  what fi_senddata returns on other threads than the main one, -FI_E*; 0: it sends
 * @refused:  out: how often it did
 * @stuck:    there, where the highest bit of an answer's number is set, it returns -FI_EAGAIN
 * @kept:     out: how often it did
 * @used:     out: how many puts and gets of each device have begun, without those that fail
 */
extern struct hooks {
	uint32_t devices;
	size_t fail_at;
	int error;
	size_t calls;
	const char *failed;
	bool no_rma;
	bool withholds;
	int answers;
	size_t refused;
	bool stuck;
	size_t kept;
	uint32_t refuses, breaks, holds;
	size_t used[HOOKS_DEVICES_MAX];
} hooks;

#endif
