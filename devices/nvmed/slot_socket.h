/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The socket at which the controller listens for its owner: one at a time, of the same user or root, whose messages are
 * answered in order. The loop's thread alone.
 */
#ifndef WEFT_NVMED_SLOT_SOCKET_H
#define WEFT_NVMED_SLOT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "slot_answer.h"

#define SLOT_PEERS 4u

/*
 * struct slot
 * @listener: the socket; @path, @device, @inode: its file, while it is ours
 * @peers:    connections, -1: none; those that have not attached make room for later ones
 * @owner:    which of them has attached, -1: none
 */
struct slot {
	struct nvmed *c;
	const char *path;
	dev_t device;
	ino_t inode;
	int listener;
	int peers[SLOT_PEERS];
	uint32_t next_peer;
	int owner;
	struct slot_answer answer;
};

/*
 * slot_open - listen at a path
 * @path: borrowed. The socket of a process that is gone is replaced.
 *
 * The controller's epoll set has been made. Returns 0 or a negative errno: -EADDRINUSE when somebody listens there, or
 * it is no socket.
 */
int slot_open(struct slot *s, struct nvmed *c, const char *path);

/* slot_close - end all connections, and remove the file if it is still ours */
void slot_close(struct slot *s);

/* slot_progress - accept and answer. Returns whether anything happened */
bool slot_progress(struct slot *s);

#endif
