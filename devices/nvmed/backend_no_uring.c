/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* In place of backend_uring.c, in a build without liburing */
#include <errno.h>

#include "file_target.h"

int backend_uring_open(const struct file_target *f, struct backend **b)
{
	return -ENOSYS;
}
