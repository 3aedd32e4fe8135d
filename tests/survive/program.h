/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Executing another program at any moment: it maps memory wherever the process had memory of its
 * own, and finds out whether any of it was written to (other.c).
 */
#ifndef WEFT_PROGRAM_H
#define WEFT_PROGRAM_H

#include <sys/types.h>

/* program_set - the program, by its path; before any process is made. 0 or -1 */
int program_set(const char *path);

/*
 * program_ready - this process executes the program from now on when it is signalled; called by its
 * first thread
 */
void program_ready(void);

/* program_begin - tell that process; one that is not ready dies instead, of SIGUSR1 */
void program_begin(pid_t pid);

/*
 * program_end - tell the program to look, and end
 * It exits with 0 when nothing has been written, else says where and exits with 1.
 */
void program_end(pid_t pid);

#endif
