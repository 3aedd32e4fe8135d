/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The C library's <stddef.h>, for sources that the library and the module share. */
#ifndef KOFI_STDDEF_H
#define KOFI_STDDEF_H

#include <rdma/fi_types.h>

#endif
