/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The errno of how a command ended, for programs that report errno: the fio engine and the nbdkit plugin.
 */
#ifndef WEFT_DEVICES_NVME_STATUS_ERRNO_H
#define WEFT_DEVICES_NVME_STATUS_ERRNO_H

#include <errno.h>
#include <weft/nvme.h>
#include "spec.h"

/*
 * nvme_to_errno - the errno of a completion, 0: it succeeded
 */
static inline int nvme_to_errno(const struct weft_nvme_completion *done)
{
	if (done->status != -EIO)
		return -done->status;

	switch (done->nvme & ~(uint32_t)NVME_SC_DNR) {
	case NVME_SC_INVALID_OPCODE:
		return EOPNOTSUPP;
	case NVME_SC_INVALID_FIELD:
	case NVME_SC_INVALID_PRP_OFFSET:
		return EINVAL;
	case NVME_SC_ABORT_REQUESTED:
	case NVME_SC_ABORT_SQ_DELETED:
		return ECANCELED;
	case NVME_SC_INVALID_NAMESPACE:
		return ENODEV;
	case NVME_SC_LBA_RANGE:
		return ENXIO;
	case NVME_SC_CAPACITY:
		return ENOSPC;
	case NVME_SC_COMPARE_FAILURE:
		return EILSEQ;
	default:
		return EIO;
	}
}

#endif
