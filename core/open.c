/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_open: library objects that belong to no fabric. There is one, the log. 'mr_cache',
 * by which a program controls libfabric's registration cache, is not supported, since Weft has no such cache.
 * Open MPI asks for it and works without.
 */
#include <strings.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "export.h"
#include "log.h"

CORE_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
			uint64_t flags, struct fid **fid, void *context)
{
	if (!name)
		return -FI_EINVAL;
	if (!strcasecmp(name, "logging"))
		return log_open(version, attr_len, flags, fid, context);
	return -FI_ENOSYS;
}
