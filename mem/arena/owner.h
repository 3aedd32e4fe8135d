/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that has an arena, for tests of reading it: the child of a fork. It has a chunk that is read, of bytes
 * 17, and one that is written.
 */
#ifndef WEFT_MEM_OWNER_H
#define WEFT_MEM_OWNER_H

#include <sys/types.h>
#include "arena.h"
#include "peer_maps.h"

/* Bytes of what is allocated in each chunk. */
#define OWNER_LEN ((size_t)1 << 20)

/* What the owner tells of itself. */
struct owner_told {
	struct arena_peer_id id;
	struct arena_place read, write;
	uint64_t read_addr, write_addr;
	/* of the chunks */
	int read_fd, write_fd;
};

struct owner {
	pid_t pid;
	/* pipes: commands, and what it answers */
	int to, from;
	struct owner_told told;
};

/*
 * owner_start, owner_end - cmocka's setup and teardown of a group: the state is a struct owner
 * Its end may have been asked for before.
 */
int owner_start(void **state);
int owner_end(void **state);

/*
 * owner_ask - have the owner do something
 * @command: 'r' retires the chunk that is written, 'f' ends it and makes another one in its place, of bytes 77,
 *	'?' does nothing
 * Returns the first byte of the chunk that is written. The command 'q' ends the process, which answers nothing.
 */
unsigned char owner_ask(struct owner *o, char command);

#endif
