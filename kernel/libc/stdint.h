/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The C library's <stdint.h>, for sources that the library and the module share. */
#ifndef KOFI_STDINT_H
#define KOFI_STDINT_H

#include <rdma/fi_types.h>

#endif
