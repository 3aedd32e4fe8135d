/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_strerror and fi_version: called by anyone, on any thread, also before the first
 * fi_getinfo.
 */
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "export.h"

static const char *const fabric_errors[FI_ERRNO_MAX - FI_ERRNO_OFFSET] = {
	[FI_EOTHER - FI_ERRNO_OFFSET] = "Unspecified error",
	[FI_ETOOSMALL - FI_ERRNO_OFFSET] = "Provided buffer is too small",
	[FI_EOPBADSTATE - FI_ERRNO_OFFSET] = "Operation not permitted in current state",
	[FI_EAVAIL - FI_ERRNO_OFFSET] = "Error available",
	[FI_EBADFLAGS - FI_ERRNO_OFFSET] = "Flags not supported",
	[FI_ENOEQ - FI_ERRNO_OFFSET] = "Missing or unavailable event queue",
	[FI_EDOMAIN - FI_ERRNO_OFFSET] = "Invalid resource domain",
	[FI_ENOCQ - FI_ERRNO_OFFSET] = "Missing or unavailable completion queue",
	[FI_ECRC - FI_ERRNO_OFFSET] = "CRC error",
	[FI_ETRUNC - FI_ERRNO_OFFSET] = "Truncation error",
	[FI_ENOKEY - FI_ERRNO_OFFSET] = "Required key not available",
	[FI_ENOAV - FI_ERRNO_OFFSET] = "Missing or unavailable address vector",
	[FI_EOVERRUN - FI_ERRNO_OFFSET] = "Queue has been overrun",
	[FI_ENORX - FI_ERRNO_OFFSET] = "Receiver not ready, no receive buffers available",
	[FI_ENOMR - FI_ERRNO_OFFSET] = "Memory registration limit exceeded",
	[FI_EFIREWALLADDR - FI_ERRNO_OFFSET] = "Host unreachable due to firewall",
};

CORE_EXPORT const char *fi_strerror(int errnum)
{
	const char *text = NULL;
	unsigned int err = errnum < 0 ? 0u - (unsigned int)errnum : (unsigned int)errnum;

	if (err < FI_ERRNO_OFFSET)
		return strerror((int)err);
	if (err < FI_ERRNO_MAX)
		text = fabric_errors[err - FI_ERRNO_OFFSET];
	return text ? text : fabric_errors[FI_EOTHER - FI_ERRNO_OFFSET];
}

CORE_EXPORT uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}
