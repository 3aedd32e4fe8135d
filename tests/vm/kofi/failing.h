/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Allocations that fail, on a kernel that can have them do so, for tests of modules. Process context. */
#ifndef TESTS_VM_KOFI_FAILING_H
#define TESTS_VM_KOFI_FAILING_H

#include <linux/printk.h>
#include <linux/sched.h>

#include <rdma/fi_errno.h>

/*
 * Each allocation of a test fails in its turn, those of this thread's: the test ends with an error or does without it, and
 * nothing of it is left. Every one of the first FAILS_DENSE, then every seventh, which are of messages like those before.
 * No test gives wrong bytes (-FI_EIO) or does what it should not (-FI_EOTHER).
 */
#ifdef CONFIG_FAULT_INJECTION

#define FAILS_DENSE 300u
/* Errors that are told apart */
#define FAILS_ERRORS 8u

struct fails {
	int err;
	unsigned int cnt;
};

static int fails_count(struct fails *fails, int err, unsigned int nth)
{
	unsigned int i = 0;

	while (i < FAILS_ERRORS - 1 && fails[i].cnt && fails[i].err != err)
		i++;
	fails[i].err = err;
	fails[i].cnt++;
	if (err != -FI_EIO && err != -FI_EOTHER)
		return 0;
	pr_info("%s: without allocation %u: %d\n", KBUILD_MODNAME, nth, err);
	return err;
}

static int failing(int (*test)(void))
{
	struct fails fails[FAILS_ERRORS] = { { .err = 0 } };
	unsigned int nth, i, failed = 0, left;
	int ret;

	for (nth = 1;; nth += nth < FAILS_DENSE ? 1 : 7) {
		WRITE_ONCE(current->fail_nth, nth);
		ret = test();
		left = READ_ONCE(current->fail_nth);
		WRITE_ONCE(current->fail_nth, 0);
		if (left)
			break;
		failed += ret != 0;
		if (ret && fails_count(fails, ret, nth))
			return ret;
	}
	pr_info("%s: %u allocations, of which the test fails without %u\n", KBUILD_MODNAME,
		nth - left, failed);
	for (i = 0; i < FAILS_ERRORS && fails[i].cnt; i++)
		pr_info("%s: it ends with %d without %u\n", KBUILD_MODNAME, fails[i].err,
			fails[i].cnt);
	/* With all of them it passes, and something was tried. */
	return ret ? ret : failed ? 0 : -FI_EOTHER;
}

#endif

#endif
