/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What libweft-directory.so exports; directory.h has the contract.
 */
#define _GNU_SOURCE
#include "directory.h"
#include "follow.h"
#include "registration.h"

extern const struct directory_ops weft_directory;

const struct directory_ops weft_directory = {
	.version = DIRECTORY_VERSION,
	.follow_open = follow_open,
	.follow_close = follow_close,
	.register_open = registration_open,
	.register_set = registration_set,
	.register_close = registration_close,
};
