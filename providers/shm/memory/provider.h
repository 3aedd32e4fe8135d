/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who the provider is, for what every file logs and asks for. Its calls are filled in by
 * weft_shm_ini().
 */
#ifndef WEFT_SHM_PROVIDER_H
#define WEFT_SHM_PROVIDER_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider pshm_provider;

#endif
