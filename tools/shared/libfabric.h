/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The libfabric that the tools run on: what they ask of it, and which it is. */
#ifndef WEFT_TOOLS_LIBFABRIC_H
#define WEFT_TOOLS_LIBFABRIC_H

#include <rdma/fabric.h>

/* The interface version the tools ask for: it has all they use, and every
 * libfabric since 2020 grants it. */
#define TOOLS_API_VERSION FI_VERSION(1, 11)

/*
 * fabric_library_path - the file of the libfabric this process runs on
 *
 * Returns a string that lives as long as the process, "?" when unknown.
 */
const char *fabric_library_path(void);

#endif
