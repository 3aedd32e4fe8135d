/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: a controller and an I/O pair of its owner's, over each backend in turn.
 */
#ifndef WEFT_NVMED_RIG_IO_H
#define WEFT_NVMED_RIG_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "rig.h"

/* struct rig_io - @q: number 1, of 64 */
struct rig_io {
	struct rig rig;
	struct host_pair q;
};

/* rig_io_backend - the one that is tested; rig_io_next - go on to the next one, which is said. False: there is none */
extern enum rig_backend rig_io_backend;
bool rig_io_next(void);

/* rig_io_setup, rig_io_teardown - of a test; its state is a struct rig_io */
int rig_io_setup(void **state);
int rig_io_teardown(void **state);

/* rig_fill - bytes that are others for each seed */
void rig_fill(uint8_t *at, size_t len, unsigned seed);

/* rig_rw - carry out a command on blocks of 512 bytes. Returns its status */
uint16_t rig_rw(struct rig_io *io, uint8_t opcode, uint64_t lba, uint32_t blocks, uint64_t addr);

#endif
