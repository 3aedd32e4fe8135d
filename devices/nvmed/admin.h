/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Admin commands: each is carried out when it is fetched, or held until what it waits for has happened. The loop's
 * thread alone.
 * Source: NVMe 1.4, section 5; nvme/lease.h.
 */
#ifndef WEFT_NVMED_ADMIN_H
#define WEFT_NVMED_ADMIN_H

struct nvmed;
struct command;

/* admin_begin - carry out a command that was fetched from the admin queue */
void admin_begin(struct nvmed *c, struct command *cmd);

#endif
