/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is next: deficit round robin over the submission queues that have something, by bytes and commands. A command is
 * carried out in slices, so that none holds up the others for longer than a few small ones would. The loop's thread.
 * Source: Shreedhar and Varghese, Efficient Fair Queuing using Deficit Round Robin, SIGCOMM 1995.
 */
#ifndef WEFT_NVMED_SCHEDULE_H
#define WEFT_NVMED_SCHEDULE_H

#include <stdbool.h>

struct nvmed;
struct sq;

/* schedule_add, schedule_remove - a queue comes and goes */
void schedule_add(struct nvmed *c, struct sq *sq);
void schedule_remove(struct nvmed *c, struct sq *sq);

/* schedule_round - a turn of each queue that had something lately, and a look at some others. Returns whether anything moved */
bool schedule_round(struct nvmed *c);

/* schedule_look - look at the doorbells of every queue. Returns whether anything is to be done */
bool schedule_look(struct nvmed *c);

#endif
