/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All memory of another process that this one may write: shared memory that it has mapped itself,
 * and memory behind the other's descriptors. And the values that a hostile process writes there:
 * random words, boundary values, flipped bits, lines from elsewhere, and lines that claim to be the
 * next message. It knows no more of the layout than that lines have 64 bytes, and that the last
 * word of each line of a ring counts up, so that it stays hostile when the rest changes. For
 * scribble_test.c.
 */
#ifndef WEFT_SCRIBBLE_H
#define WEFT_SCRIBBLE_H

#include "node.h"

#define SCRIBBLE_REGIONS 8 /* the last ones, those of the victim's descriptors apart */
#define SCRIBBLE_HOT	 256
#define SCRIBBLE_FRONTS	 8

struct scribble_region {
	uint8_t *addr;
	size_t len;
	bool found; /* behind a descriptor of the victim's */
	uint64_t inode;
	uint8_t *before;	    /* its bytes at scribble_look() */
	uint32_t hot[SCRIBBLE_HOT]; /* lines that have changed since */
	uint32_t hot_cnt;
	uint32_t fronts[SCRIBBLE_FRONTS]; /* lines published last, probably */
	uint32_t front_cnt, wait;	  /* wait: before they are looked for again */
};

struct scribble {
	struct scribble_region regions[SCRIBBLE_REGIONS];
	int cnt;
	uint64_t seed;
	uint64_t forged; /* lines published behind the last one */
};

/* scribble_find - what there is to write now, of @victim and of this process. Returns how much was new */
int scribble_find(struct scribble *s, pid_t victim);

/* scribble_look - what changes from here to scribble_learn() is where it hurts */
void scribble_look(struct scribble *s);
void scribble_learn(struct scribble *s);

/* scribble_once - spoil something; now and then what belongs to no connection is as it was */
void scribble_once(struct scribble *s);

/* scribble_forget - unmap and free; what was written stays */
void scribble_forget(struct scribble *s);

#endif
