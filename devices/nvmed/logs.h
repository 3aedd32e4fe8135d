/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log pages, and the errors that one of them tells of. The loop's thread alone.
 * Source: NVMe 1.4, section 5.14; nvme/lease.h.
 */
#ifndef WEFT_NVMED_LOGS_H
#define WEFT_NVMED_LOGS_H

#include <stdint.h>

#include "nvme/spec.h"

struct nvmed;
struct command;

#define ERROR_LOG_ENTRIES 64u

/*
 * The last errors; entry number n (from 1 on) is in n modulo ERROR_LOG_ENTRIES
 * @device_cnt: the number, at the device, of the last one that came from there
 */
struct error_log {
	uint64_t cnt;
	uint64_t device_cnt;
	struct nvme_error_log entries[ERROR_LOG_ENTRIES];
};

/* errors_add - log an error; its number is set here */
void errors_add(struct nvmed *c, const struct nvme_error_log *entry);

/*
 * log_page - build what Get Log Page asks for
 * @page: out: room of @room bytes, for the part that begins at the command's offset
 * @len:  out: bytes of it
 *
 * Returns an NVMe status.
 */
int log_page(struct nvmed *c, const struct command *cmd, uint8_t *page, uint64_t room,
	     uint64_t *len);

#endif
