/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The C library's <sys/types.h>, for sources that the library and the module share. */
#ifndef KOFI_SYS_TYPES_H
#define KOFI_SYS_TYPES_H

#include <rdma/fi_types.h>

#endif
