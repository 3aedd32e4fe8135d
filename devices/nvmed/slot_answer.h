/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the controller answers to the messages of its owner (slot/slot.h), apart from the socket that carries them. The
 * loop's thread alone.
 */
#ifndef WEFT_NVMED_SLOT_ANSWER_H
#define WEFT_NVMED_SLOT_ANSWER_H

#include <stdint.h>

#include "slot/slot.h"

struct nvmed;

/*
 * struct slot_answer
 * @fds: borrowed: what travels beside it
 * @run: the serial of this run, for ATTACH
 * @data: @message.len bytes that follow an answer to REMOTE
 */
struct slot_answer {
	struct slot_message message;
	int fds[SLOT_FDS_MAX];
	uint64_t run;
	uint8_t data[SLOT_DATA_MAX];
};

/*
 * slot_answer - carry out a message
 * @m:   as it came: all of it is checked
 * @fds: takes
 * @cnt: how many there are
 * @a:   @run is set; out: the answer
 */
void slot_answer(struct nvmed *c, const struct slot_message *m, int *fds, uint32_t cnt,
		 struct slot_answer *a);

#endif
