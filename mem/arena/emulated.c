/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests where another processor is emulated, linked with --wrap=sys_reserve: an address space that has little room,
 * so that arenas are smaller. An emulator enters each page that is reserved, and looks at every one of them when a
 * process reads its mappings or forks: minutes for those of 1 TiB.
 */
#include <rdma/fi_errno.h>
#include "reserve.h"

#define MOST (16ull << 30)

int __real_sys_reserve(size_t len, size_t align, size_t around, void **addr);
int __wrap_sys_reserve(size_t len, size_t align, size_t around, void **addr);

int __wrap_sys_reserve(size_t len, size_t align, size_t around, void **addr)
{
	return len > MOST ? -FI_ENOMEM : __real_sys_reserve(len, align, around, addr);
}
