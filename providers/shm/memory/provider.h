/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider object, for the logs and parameters of every file. Its functions are filled in by
 * weft_shm_ini().
 */
#ifndef WEFT_SHM_PROVIDER_H
#define WEFT_SHM_PROVIDER_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider pshm_provider;

#endif
