/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: a control group with a limit of memory, in which a program is run. It is made beside or below the
 * caller's own, of whichever version has memory.
 */
#ifndef WEFT_MEM_GROUP_H
#define WEFT_MEM_GROUP_H

/*
 * group_run - run a program in a control group of its own, which is removed afterwards
 * @limit: bytes, as text
 * @argv:  [0] is its path
 * Returns what waitpid(2) says of it, or -1: no such group can be made, and a line says why.
 */
int group_run(const char *limit, char *const *argv);

#endif
