/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The core of the tests: it has one setting, and remembers the last log line.
 */
#ifndef WEFT_SHM_MOCK_CORE_H
#define WEFT_SHM_MOCK_CORE_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern char mock_log[512]; /* the last line, of whatever level */
extern int mock_warnings;
extern const char *mock_socket_dir;    /* FI_SHM_SOCKET_DIR, or NULL */
extern const size_t *mock_area_budget; /* FI_SHM_AREA_BUDGET, or NULL */

#endif
