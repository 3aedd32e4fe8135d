/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Refused system calls; refuse.h has the contract. Called by 'weft bench' before anything of
 * libfabric runs.
 */
#define _GNU_SOURCE
#include "refuse.h"

#include <err.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define OUR_ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define OUR_ARCH AUDIT_ARCH_S390X
#endif

bool refuse_is_known(const char *what)
{
	return !strcmp(what, REFUSE_PROCESS_VM);
}

#ifdef OUR_ARCH

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Jump so many statements on where it is equal, else go on. */
#define WHERE(value, jump) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, jump, 0)
#define ANSWER(value)	   BPF_STMT(BPF_RET | BPF_K, value)

static int install(void)
{
	/*
	 * The filter has the numbers of one architecture; calls of another one pass. It serves a
	 * measurement and protects nothing.
	 */
	struct sock_filter code[] = {
		LOAD(arch),
		WHERE(OUR_ARCH, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		LOAD(nr),
		WHERE(SYS_process_vm_readv, 2),
		WHERE(SYS_process_vm_writev, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* Without the flag some kernels slow every branch down. */
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		     &program))
		return 0;
	if (errno != EINVAL)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

#else

static int install(void)
{
	return -ENOSYS;
}

#endif

/* Reading our own memory never fails otherwise. */
static bool is_refused(void)
{
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == EPERM;
}

int refuse_calls(const char *what)
{
	int rc = install();

	if (!rc && !is_refused())
		rc = -ENOTSUP;
	if (rc)
		warnx("cannot have %s refused: %s", what, strerror(-rc));
	return rc;
}
