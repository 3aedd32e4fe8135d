/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registers of the controller, a page that its owner may read as a file, and what writing them does: enable, reset,
 * shutdown, interrupt masks, controller memory. The loop's thread alone writes.
 * Source: NVMe 1.4, section 3.1.
 */
#ifndef WEFT_NVMED_REGISTERS_H
#define WEFT_NVMED_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

struct nvmed;
struct piece;

enum registers_state {
	REGISTERS_DISABLED,
	REGISTERS_ENABLED,
	REGISTERS_RESETTING, /* its queues are stopped; what is under way is waited for */
};

/*
 * struct registers
 * @page, @fd: what the owner sees
 * @flushing:  a shutdown waits for the backend
 */
struct registers {
	uint8_t *page;
	int fd;
	enum registers_state state;
	bool flushing;
	uint32_t cc;
	uint32_t csts;
	uint32_t aqa;
	uint64_t asq;
	uint64_t acq;
	uint64_t cmbmsc;
};

/* registers_init - as after a power cycle. Returns 0 or a negative errno */
int registers_init(struct nvmed *c);
void registers_fini(struct nvmed *c);

/*
 * registers_read, registers_write - an access of the owner
 * @len: 4 or 8
 *
 * Return 0, or -EINVAL for an access that no register has. What is reserved reads as 0, and writing it does nothing.
 */
int registers_read(struct nvmed *c, uint64_t at, uint64_t len, uint64_t *value);
int registers_write(struct nvmed *c, uint64_t at, uint64_t len, uint64_t value);

/* registers_fatal - the controller can't go on (CSTS.CFS): its owner has to reset it */
void registers_fatal(struct nvmed *c);

/* registers_advance - go on with a reset or a shutdown. Returns whether one is under way */
bool registers_advance(struct nvmed *c);

/* registers_flushed - the flush of a shutdown has ended */
void registers_flushed(struct nvmed *c);

#endif
