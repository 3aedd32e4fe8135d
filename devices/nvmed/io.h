/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * I/O commands: what they ask for is checked, then carried out in pieces by the backend. The loop's thread alone.
 * Source: NVMe 1.4, section 6.
 */
#ifndef WEFT_NVMED_IO_H
#define WEFT_NVMED_IO_H

#include <stdint.h>

#include "backend.h"

struct nvmed;
struct command;

/* io_begin - take a command that was fetched: it is its queue's current one, or has ended with an error */
void io_begin(struct nvmed *c, struct command *cmd);

/*
 * io_advance - begin its next piece
 * @most: bytes of it, if it has data
 *
 * Returns what that costs in bytes, or -1 if the backend has no room.
 */
int64_t io_advance(struct nvmed *c, struct command *cmd, uint64_t most);

/* io_piece_done - a piece of a command has ended in the backend */
void io_piece_done(struct nvmed *c, struct piece *p);

/* piece_get - a piece for the backend, or NULL; piece_put - it is free again */
struct piece *piece_get(struct nvmed *c);
void piece_put(struct nvmed *c, struct piece *p);

#endif
