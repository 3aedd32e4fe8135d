/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a process held by a descriptor, which neither its number nor a pidfd does: a process
 * that calls execve(2) stays the same process, and its memory is a new program's. Used by providers to
 * find out that a peer has died, or that another program runs in its place. Any thread; no state.
 *
 * The descriptor is one of /proc/PID/pagemap, which the kernel binds to the memory that the process has
 * when it is opened. Nothing is read through it: a read that begins between two entries is an error
 * while there is the memory, and the end of the file afterwards. That takes none of the process's locks.
 * It keeps none of the memory, and no number.
 *
 * Source: Linux Documentation/admin-guide/mm/pagemap.rst (EINVAL); pagemap_read() in fs/proc/task_mmu.c;
 * begin_new_exec() in fs/exec.c, create_elf_tables() in fs/binfmt_elf.c (descriptors, then /proc/PID/auxv).
 */
#ifndef WEFT_SYS_IMAGE_H
#define WEFT_SYS_IMAGE_H

#include <sys/types.h>

/*
 * sys_image_open - hold the memory of the process that has this number now
 *
 * Close-on-exec. A program that is being executed has its memory before the descriptors of the previous program
 * are closed. So memory is held only of a program that is past that, and a descriptor that is found in the
 * process afterwards is not the previous program's. Needs the right that opening the process's descriptors
 * through /proc needs; later calls need none.
 *
 * Returns the descriptor, owned (close() it), or -FI_E*: -ESRCH for a process that has no memory any
 * more, -FI_EAGAIN while a program begins there, -FI_EACCES or -FI_EPERM without the right (root alone has it
 * to what is left of one that has ended and was not collected), -FI_ENOENT where /proc has no such file or
 * process, -FI_ENOSYS for a kernel that answers otherwise, -FI_EMFILE, -FI_ENOMEM.
 */
int sys_image_open(pid_t pid);

/*
 * sys_image_gone - look whether the process has ended or begun another program
 * Does not wait. A process that shares the memory, as the child of a vfork(2) does, keeps it until it has ended
 * or begun a program itself.
 * Returns 1 if it has, 0 if not, or -FI_E*.
 */
int sys_image_gone(int fd);

#endif
