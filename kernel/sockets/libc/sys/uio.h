/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The C library's <sys/uio.h>, for sources that the library and the module share. */
#ifndef KOFI_SYS_UIO_H
#define KOFI_SYS_UIO_H

#include <rdma/fi_types.h>

#endif
