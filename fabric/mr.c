/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Modes of registration, and memory behind what is registered. Called by btl/ and devices/port/, on any thread.
 */
#define _GNU_SOURCE
#include "mr.h"
#include <rdma/fi_domain.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 5.14 and later; others say EINVAL. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

int fabric_mr_mode(const struct fi_info *info)
{
	switch (info->domain_attr->mr_mode) {
	case FI_MR_BASIC:
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	case FI_MR_SCALABLE:
		return 0;
	default:
		return info->domain_attr->mr_mode;
	}
}

void fabric_mr_populate(const struct iovec *range)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)range->iov_base & ~(page - 1);
	size_t len = (uintptr_t)range->iov_base + range->iov_len - at;

	if (madvise((void *)at, len, MADV_POPULATE_WRITE))
		madvise((void *)at, len, MADV_POPULATE_READ);
}
