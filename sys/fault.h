/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault hook: makes system calls of this folder fail as if the kernel had refused them, for tests and for
 * users. Every function of sys/ asks it just before its system call, on the caller's thread. Without a fault
 * that costs one relaxed load and one predictable branch.
 *
 * From outside the process: WEFT_FAULT="CALL:ERRNO[:SKIP[:COUNT]],...", for example
 *	WEFT_FAULT=process_vm_readv:EPERM		never permitted
 *	WEFT_FAULT=pidfd_open:EMFILE:3:1,poll:EINTR::2	fourth call; first two calls
 * CALL is one of the names below in small letters, ERRNO a name or a number. A program that
 * runs with more rights than its user ignores the variable. An entry that can't be read is
 * named on stderr and dropped.
 */
#ifndef WEFT_SYS_FAULT_H
#define WEFT_SYS_FAULT_H

#include <stdatomic.h>
#include <stdint.h>

/* One per system call that this folder makes. */
enum sys_call {
	SYS_CALL_EPOLL, /* making one, putting something into it */
	SYS_CALL_EVENTFD,
	SYS_CALL_MEMBARRIER,
	SYS_CALL_PIPE,
	SYS_CALL_MEMFD_CREATE,
	SYS_CALL_FTRUNCATE,
	SYS_CALL_FALLOCATE, /* and madvise(MADV_REMOVE) */
	SYS_CALL_FCHMOD,
	SYS_CALL_FCNTL_SEAL,
	SYS_CALL_FCNTL_DUP,
	SYS_CALL_FSTAT, /* and fstatfs */
	SYS_CALL_PREAD,
	SYS_CALL_MMAP,
	SYS_CALL_MPROTECT,
	SYS_CALL_POPULATE, /* madvise(MADV_POPULATE_WRITE) of private memory */
	SYS_CALL_OPEN_FD,  /* of another process, through /proc */
	SYS_CALL_OPEN_IMAGE,
	SYS_CALL_READ_IMAGE,
	SYS_CALL_PIDFD_OPEN,
	SYS_CALL_PIDFD_GETFD,
	SYS_CALL_POLL,
	SYS_CALL_PROCESS_VM_READV,
	SYS_CALL_PROCESS_VM_WRITEV,
	SYS_CALL_SOCKET,
	SYS_CALL_BIND, /* and listen */
	SYS_CALL_CONNECT,
	SYS_CALL_ACCEPT,
	SYS_CALL_SENDMSG,
	SYS_CALL_RECVMSG,
	SYS_CALL_FCNTL_LOCK,
	SYS_CALL_TIMERFD,
	SYS_CALL_USERFAULTFD,
	SYS_CALL_UFFD_REGISTER,
	SYS_CALL_UFFD_CHECK,
	SYS_CALL_OPEN_MAPS,
	SYS_CALL_ASK_MAPS, /* for one mapping; the text is read then */
	SYS_CALL_TOUCH,	   /* madvise(MADV_POPULATE_READ), and of writes */
	SYS_CALL_GETRLIMIT,
	SYS_CALL_PSI, /* opening and writing a trigger */
	SYS_CALL_NS,  /* stat of /proc/self/ns/pid, reading boot_id */
	SYS_CALL_CNT
};

/*
 * sys_fault_set - let a call fail from now on
 * @err:   errno value, positive; 0 clears the fault
 * @skip:  calls that still work first
 * @count: calls that fail then; 0: all
 *
 * Any thread; a call that runs at the same time may see it or not.
 */
void sys_fault_set(enum sys_call call, int err, uint32_t skip, uint32_t count);

/*
 * sys_fault_parse - set faults from text of the form above
 * Returns the number of entries that were set, or -FI_EINVAL when any could not be read
 * (the others are set all the same).
 */
int sys_fault_parse(const char *text);

/* sys_fault_clear - remove all faults */
void sys_fault_clear(void);

/* sys_fault_armed - not 0 while any fault is set, and until the first call has read the environment */
extern _Atomic uint32_t sys_fault_armed;

/* sys_fault_slow - sys_fault() while sys_fault_armed is set */
int sys_fault_slow(enum sys_call call);

/* sys_fault - returns the errno value that this call is to fail with, or 0: make it */
static inline int sys_fault(enum sys_call call)
{
	if (__builtin_expect(!atomic_load_explicit(&sys_fault_armed, memory_order_relaxed), 1))
		return 0;
	return sys_fault_slow(call);
}

#endif
