/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_strerror and fi_version. Safe on any thread, also before the first fi_getinfo.
 */
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "export.h"

static const char *const fabric_errors[FI_ERRNO_MAX - FI_ERRNO_OFFSET] = {
	[FI_EOTHER - FI_ERRNO_OFFSET] = "Error without a code of its own",
	[FI_ETOOSMALL - FI_ERRNO_OFFSET] = "The buffer is too small for the result",
	[FI_EOPBADSTATE - FI_ERRNO_OFFSET] = "The state of the object does not allow this call",
	[FI_EAVAIL - FI_ERRNO_OFFSET] = "An error entry waits to be read",
	[FI_EBADFLAGS - FI_ERRNO_OFFSET] = "A flag is unknown or not valid for this call",
	[FI_ENOEQ - FI_ERRNO_OFFSET] = "No event queue is bound",
	[FI_EDOMAIN - FI_ERRNO_OFFSET] = "The objects belong to different domains",
	[FI_ENOCQ - FI_ERRNO_OFFSET] = "No completion queue is bound",
	[FI_ECRC - FI_ERRNO_OFFSET] = "The checksum of received data is wrong",
	[FI_ETRUNC - FI_ERRNO_OFFSET] = "The message is longer than the receive buffer",
	[FI_ENOKEY - FI_ERRNO_OFFSET] = "The memory key is missing or unknown",
	[FI_ENOAV - FI_ERRNO_OFFSET] = "No address vector is bound",
	[FI_EOVERRUN - FI_ERRNO_OFFSET] = "The queue has overflowed and entries are lost",
	[FI_ENORX - FI_ERRNO_OFFSET] = "The receiver has no buffer posted",
	[FI_ENOMR - FI_ERRNO_OFFSET] = "No more memory can be registered",
	[FI_EFIREWALLADDR - FI_ERRNO_OFFSET] = "A firewall blocks the address",
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
