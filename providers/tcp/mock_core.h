/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A test double of the core: it keeps the last log line, and has the settings that a test gives it.
 */
#ifndef WEFT_TCP_MOCK_CORE_H
#define WEFT_TCP_MOCK_CORE_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern char mock_log[512];	      /* the last line, of whatever level */
extern int mock_log_cnt;	      /* warnings */
extern const char *mock_params[8][2]; /* name and value; a NULL name ends */

#endif
