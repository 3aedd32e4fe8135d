/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fault hook's slow side: what is to fail, under a lock. Reached from any thread that
 * makes a system call of this folder while a fault is set, and once before that to read
 * the environment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"

#define ENTRY_MAX 64 /* bytes of one entry of the environment */

struct fault {
	int err;       /* 0: none */
	uint32_t skip; /* calls that still work */
	uint32_t left; /* calls that fail then; 0: all */
};

static const char *const names[SYS_CALL_CNT] = {
	[SYS_CALL_EPOLL] = "epoll",
	[SYS_CALL_EVENTFD] = "eventfd",
	[SYS_CALL_MEMBARRIER] = "membarrier",
	[SYS_CALL_PIPE] = "pipe",
	[SYS_CALL_MEMFD_CREATE] = "memfd_create",
	[SYS_CALL_FTRUNCATE] = "ftruncate",
	[SYS_CALL_FALLOCATE] = "fallocate",
	[SYS_CALL_FCHMOD] = "fchmod",
	[SYS_CALL_FCNTL_SEAL] = "fcntl_seal",
	[SYS_CALL_FCNTL_DUP] = "fcntl_dup",
	[SYS_CALL_FSTAT] = "fstat",
	[SYS_CALL_PREAD] = "pread",
	[SYS_CALL_MMAP] = "mmap",
	[SYS_CALL_MPROTECT] = "mprotect",
	[SYS_CALL_POPULATE] = "populate",
	[SYS_CALL_OPEN_FD] = "open_fd",
	[SYS_CALL_OPEN_IMAGE] = "open_image",
	[SYS_CALL_READ_IMAGE] = "read_image",
	[SYS_CALL_PIDFD_OPEN] = "pidfd_open",
	[SYS_CALL_PIDFD_GETFD] = "pidfd_getfd",
	[SYS_CALL_POLL] = "poll",
	[SYS_CALL_PROCESS_VM_READV] = "process_vm_readv",
	[SYS_CALL_PROCESS_VM_WRITEV] = "process_vm_writev",
	[SYS_CALL_SOCKET] = "socket",
	[SYS_CALL_BIND] = "bind",
	[SYS_CALL_CONNECT] = "connect",
	[SYS_CALL_ACCEPT] = "accept",
	[SYS_CALL_SENDMSG] = "sendmsg",
	[SYS_CALL_RECVMSG] = "recvmsg",
	[SYS_CALL_FCNTL_LOCK] = "fcntl_lock",
	[SYS_CALL_TIMERFD] = "timerfd",
	[SYS_CALL_USERFAULTFD] = "userfaultfd",
	[SYS_CALL_UFFD_REGISTER] = "uffd_register",
	[SYS_CALL_UFFD_CHECK] = "uffd_check",
	[SYS_CALL_OPEN_MAPS] = "open_maps",
	[SYS_CALL_ASK_MAPS] = "ask_maps",
	[SYS_CALL_TOUCH] = "touch",
	[SYS_CALL_GETRLIMIT] = "getrlimit",
	[SYS_CALL_PSI] = "psi",
	[SYS_CALL_NS] = "ns",
};

_Atomic uint32_t sys_fault_armed = 1;

/* Protects faults; a leaf: nothing is called under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[SYS_CALL_CNT];
static pthread_once_t environment_read = PTHREAD_ONCE_INIT;

static void arm_locked(void)
{
	uint32_t armed = 0;

	for (int i = 0; i < SYS_CALL_CNT; i++)
		armed |= faults[i].err != 0;
	atomic_store_explicit(&sys_fault_armed, armed, memory_order_relaxed);
}

static void set(enum sys_call call, struct fault fault)
{
	pthread_mutex_lock(&lock);
	faults[call] = fault;
	arm_locked();
	pthread_mutex_unlock(&lock);
}

static int errno_of(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end != text)
		return *end || value <= 0 || value > 4095 ? 0 : (int)value;
	for (int err = 1; err < 256; err++) {
		const char *name = strerrorname_np(err);

		if (name && !strcmp(name, text))
			return err;
	}
	return 0;
}

/* Parses a count; empty text is 0. Returns false for anything else. */
static bool count_of(const char *text, uint32_t *count)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || *text == '-' || value > UINT32_MAX)
		return false;
	*count = (uint32_t)value;
	return true;
}

/* One "CALL:ERRNO[:SKIP[:COUNT]]". */
static bool parse_entry(char *entry)
{
	char *call = strsep(&entry, ":"), *err = strsep(&entry, ":");
	char *skip = strsep(&entry, ":"), *count = strsep(&entry, ":");
	struct fault fault = { 0 };

	if (!err || entry)
		return false;
	fault.err = errno_of(err);
	if (!fault.err || (skip && !count_of(skip, &fault.skip)) ||
	    (count && !count_of(count, &fault.left)))
		return false;
	for (int i = 0; i < SYS_CALL_CNT; i++) {
		if (!strcmp(names[i], call)) {
			set((enum sys_call)i, fault);
			return true;
		}
	}
	return false;
}

/* Callers may hold locks: stdio has cancellation points. */
static void say_unknown(const char *entry, size_t len)
{
	char line[2 * ENTRY_MAX];
	int n = snprintf(line, sizeof(line), "weft: no such fault: %.*s\n",
			 (int)(len < ENTRY_MAX ? len : ENTRY_MAX), entry);

	sys_descriptor_write(STDERR_FILENO, line, (size_t)n);
}

static int parse(const char *text)
{
	bool all = true;
	int cnt = 0;

	while (*text) {
		size_t len = strcspn(text, ",");
		char entry[ENTRY_MAX] = "";

		if (len < sizeof(entry))
			memcpy(entry, text, len);
		if (len && parse_entry(entry)) {
			cnt++;
		} else if (len) {
			say_unknown(text, len);
			all = false;
		}
		text += len;
		text += *text == ',';
	}
	return all ? cnt : -FI_EINVAL;
}

static void read_environment(void)
{
	const char *text = secure_getenv("WEFT_FAULT");

	if (text)
		parse(text);
	pthread_mutex_lock(&lock);
	arm_locked();
	pthread_mutex_unlock(&lock);
}

void sys_fault_set(enum sys_call call, int err, uint32_t skip, uint32_t count)
{
	pthread_once(&environment_read, read_environment);
	set(call, (struct fault){ .err = err, .skip = skip, .left = count });
}

int sys_fault_parse(const char *text)
{
	pthread_once(&environment_read, read_environment);
	return parse(text);
}

void sys_fault_clear(void)
{
	pthread_once(&environment_read, read_environment);
	for (int i = 0; i < SYS_CALL_CNT; i++)
		set((enum sys_call)i, (struct fault){ 0 });
}

int sys_fault_slow(enum sys_call call)
{
	struct fault *f = &faults[call];
	int err = 0;

	pthread_once(&environment_read, read_environment);
	pthread_mutex_lock(&lock);
	if (f->err && f->skip) {
		f->skip--;
	} else if (f->err) {
		err = f->err;
		if (f->left && !--f->left) {
			f->err = 0;
			arm_locked();
		}
	}
	pthread_mutex_unlock(&lock);
	return err;
}
