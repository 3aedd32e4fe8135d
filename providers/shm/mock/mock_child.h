/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A child with an endpoint of its own, for tests between two processes, and the board over which it
 * and its parent communicate beside the wire. One at a time. Tests only.
 */
#ifndef WEFT_SHM_MOCK_CHILD_H
#define WEFT_SHM_MOCK_CHILD_H

#include <sys/types.h>
#include "mock_engine.h"

struct mock_board {
	struct weft_addr parent, child;
	_Atomic int begun; /* the child has an endpoint, or can't begin; mock_child_start() sees to it */
	_Atomic int unable; /* errno for which it can't */
	/* The tests': */
	_Atomic int step;	  /* step that each of the two has reached, */
	_Atomic int go;		  /* or how far the child may go on */
	_Atomic int result;	  /* the child's */
	uint64_t from;		  /* where the memory of a send is */
	_Atomic uint64_t written; /* chunks, by the child */
};

extern struct mock_board *board; /* NULL: none */
extern pid_t child;		 /* 0: none */

/* mock_board_open - an empty one, for a test's setup. 0 or -1 */
int mock_board_open(void);

/*
 * mock_board_close - for a test's teardown: kill and collect the child, if there is one, and
 * forget the board
 */
void mock_board_close(void);

/*
 * mock_child_start - fork a child which opens its endpoint, and exits with what @body returns
 * @begin: called in it first; returns 0, or an errno for which the test is skipped. NULL: nothing
 * The child dies with its parent, and after a minute. Returns true once its address is on the
 * board; false, and prints why, if it could not begin: the test is to be skipped.
 */
bool mock_child_start(int (*begin)(void), int (*body)(struct mock *m));

/* mock_child_says - in a child: wait for a connection, and send 100 packets: tag i has i bytes */
void mock_child_says(struct mock *m);

/* mock_child_ended - collect the child, that is to end by itself with this status */
void mock_child_ended(int status);

/* mock_child_kill - kill it and collect it */
void mock_child_kill(void);

/*
 * mock_child_stop_in - let the child run until it is in a system call, and keep it there
 * @number: of the call, SYS_*
 * @skip: calls of that number that pass first
 * @made: stop when the call was made and has not returned; otherwise before it is made
 * @go: called once no such call is missed any more
 * It continues with mock_child_go(), or is killed.
 */
void mock_child_stop_in(long number, uint32_t skip, bool made, void (*go)(void));

/* mock_child_go - let a child that is kept in a system call continue */
void mock_child_go(void);

/* mock_step_wait - either: until board->step is so much; ends the process after 10 seconds */
void mock_step_wait(int step);

/*
 * mock_begin_nobody - a @begin: become another user, whose /proc files this user may read. EPERM
 * unless the user is root
 */
int mock_begin_nobody(void);

#endif
