/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inboxes of one process that stand in memory together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_descriptors.h"
#include "fault.h"
#include "memfd.h"
#include "region.h"

#define MANY	 600u
#define FILES(n) (((n) + PSHM_INBOXES - 1) / PSHM_INBOXES)

static struct pshm_own_inbox inboxes[MANY];
static uint8_t nonces[MANY][PSHM_NONCE];

static void inbox_make(uint32_t i)
{
	assert_int_equal(platform_random(nonces[i], PSHM_NONCE), 0);
	assert_int_equal(pshm_inbox_create(nonces[i], &inboxes[i]), 0);
}

/* As a peer finds it. */
static int inbox_look(uint32_t i, struct pshm_region *region)
{
	return pshm_inbox_open((uint32_t)getpid(), (uint32_t)inboxes[i].fd, nonces[i], region);
}

static void a_thousand_inboxes_need_few_descriptors(void **state)
{
	struct pshm_region region;
	int before = mock_descriptors();

	for (uint32_t i = 0; i < MANY; i++)
		inbox_make(i);
	assert_int_equal(mock_descriptors(), before + (int)FILES(MANY));
	for (uint32_t i = 0; i < MANY; i++) {
		struct pshm_inbox *seen;

		assert_int_equal(inbox_look(i, &region), 0);
		assert_int_equal(region.len, sizeof(struct pshm_inbox));
		seen = region.addr;
		/* the same memory, and no other one's */
		atomic_store(&inboxes[i].inbox->rung, i + 1);
		assert_int_equal(atomic_load(&seen->rung), i + 1);
		pshm_region_close(&region);
	}
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(atomic_load(&inboxes[i].inbox->rung), i + 1);
	for (uint32_t i = 0; i < MANY; i++)
		pshm_inbox_destroy(&inboxes[i]);
	assert_int_equal(mock_descriptors(), before);
	pshm_inbox_destroy(&inboxes[0]); /* again: nothing */
}

static void a_place_is_not_used_again(void **state)
{
	struct pshm_inbox *places[PSHM_INBOXES];
	int before = mock_descriptors();

	inbox_make(0); /* keeps the memory */
	for (uint32_t i = 1; i < PSHM_INBOXES; i++) {
		inbox_make(1);
		places[i] = inboxes[1].inbox;
		for (uint32_t k = 1; k < i; k++)
			assert_ptr_not_equal(places[i], places[k]);
		assert_int_equal(inboxes[1].fd, inboxes[0].fd);
		pshm_inbox_destroy(&inboxes[1]);
	}
	/* all places are taken, though one inbox is open */
	inbox_make(1);
	assert_int_not_equal(inboxes[1].fd, inboxes[0].fd);
	assert_int_equal(mock_descriptors(), before + 2);
	pshm_inbox_destroy(&inboxes[0]);
	assert_int_equal(mock_descriptors(), before + 1);
	/* the last one of memory that has places left: it is released, and new memory is made */
	pshm_inbox_destroy(&inboxes[1]);
	assert_int_equal(mock_descriptors(), before);
	inbox_make(0);
	pshm_inbox_destroy(&inboxes[0]);
	assert_int_equal(mock_descriptors(), before);
}

static int in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void child_makes_its_own(void)
{
	const struct pshm_inboxes *head = (const void *)((const char *)inboxes[0].inbox -
							 PSHM_INBOXES_HEAD);

	if (pshm_inbox_create(nonces[2], &inboxes[2]) || inboxes[2].fd == inboxes[0].fd)
		_exit(1);
	if (!pshm_nonce_same(head->nonces[0], nonces[0]) ||
	    pshm_nonce_same(head->nonces[1], nonces[2]))
		_exit(2);
	pshm_inbox_destroy(&inboxes[2]);
	pshm_inbox_destroy(&inboxes[0]); /* a copy of the descriptor is closed */
}

static void a_child_of_fork_begins_new_memory(void **state)
{
	struct pshm_region region;

	inbox_make(0);
	assert_int_equal(platform_random(nonces[2], PSHM_NONCE), 0);
	assert_int_equal(in_child(child_makes_its_own), 0);
	inbox_make(1);
	assert_int_equal(inboxes[1].fd, inboxes[0].fd);
	assert_int_equal(inbox_look(0, &region), 0);
	pshm_region_close(&region);
	assert_int_equal(inbox_look(1, &region), 0);
	pshm_region_close(&region);
	pshm_inbox_destroy(&inboxes[0]);
	pshm_inbox_destroy(&inboxes[1]);
}

static void child_has_a_low_limit(void)
{
	struct rlimit limit = { .rlim_cur = 64u << 10, .rlim_max = 64u << 10 };
	struct pshm_region region;
	int before = mock_descriptors();

	if (setrlimit(RLIMIT_FSIZE, &limit))
		_exit(1);
	for (uint32_t i = 0; i < 20; i++) {
		inbox_make(i);
		if (inbox_look(i, &region))
			_exit(2);
		pshm_region_close(&region);
	}
	/* 64 KiB hold 7 inboxes and their head */
	_exit(mock_descriptors() != before + 3);
}

static void a_limit_on_files_makes_for_fewer_inboxes_in_each(void **state)
{
	assert_int_equal(in_child(child_has_a_low_limit), 0);
}

static void what_lacks_is_told_and_leaves_nothing(void **state)
{
	static const enum sys_call calls[] = { SYS_CALL_MEMFD_CREATE, SYS_CALL_FTRUNCATE,
					       SYS_CALL_MMAP };
	static const int errors[] = { EMFILE, ENOSPC, ENOMEM };
	struct pshm_region region;
	int before = mock_descriptors();

	for (int i = 0; i < 3; i++) {
		sys_fault_set(calls[i], errors[i], 0, 1);
		assert_int_equal(pshm_inbox_create(nonces[0], &inboxes[0]), -errors[i]);
		assert_null(inboxes[0].inbox);
		assert_int_equal(mock_descriptors(), before);
	}
	inbox_make(0);
	/* with that made, another inbox needs none of them */
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 0);
	inbox_make(1);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	assert_int_equal(inbox_look(0, &region), -FI_EMFILE);
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 0, 1);
	assert_int_equal(inbox_look(0, &region), -FI_ENOMEM);
	sys_fault_set(SYS_CALL_PREAD, EIO, 0, 1);
	assert_int_equal(inbox_look(0, &region), -FI_ENOENT);
	assert_int_equal(inbox_look(0, &region), 0);
	pshm_region_close(&region);
	pshm_inbox_destroy(&inboxes[0]);
	pshm_inbox_destroy(&inboxes[1]);
	assert_int_equal(mock_descriptors(), before);
}

/* A file of inboxes as a hostile process makes it: some bytes are wrong. */
static void what_is_no_inbox_is_not_taken(void **state)
{
	static const size_t lens[] = { 1, PSHM_INBOXES_HEAD,
				       PSHM_INBOXES_HEAD + PSHM_INBOX_STRIDE - 1,
				       PSHM_INBOXES_HEAD + PSHM_INBOX_STRIDE + 4096,
				       PSHM_INBOXES_HEAD +
					       (PSHM_INBOXES + 1) * PSHM_INBOX_STRIDE };
	struct pshm_region region;
	struct pshm_inboxes *head;
	int before = mock_descriptors(), fd;

	for (int i = 0; i < 5; i++) {
		fd = sys_memfd_create("test", lens[i], 0600);
		assert_true(fd >= 0);
		assert_int_equal(pshm_inbox_take(fd, nonces[0], &region), -FI_EHOSTUNREACH);
	}
	inbox_make(0);
	head = (void *)((char *)inboxes[0].inbox - PSHM_INBOXES_HEAD);
	/* the address names another place as the inbox's: the contents there decide */
	memcpy(head->nonces[7], nonces[0], PSHM_NONCE);
	memset(head->nonces[0], 0, PSHM_NONCE);
	assert_int_equal(inbox_look(0, &region), -FI_ENOENT);
	memcpy(head->nonces[0], nonces[0], PSHM_NONCE);
	head->version++;
	assert_int_equal(inbox_look(0, &region), -FI_ENOENT);
	head->version--;
	head->magic++;
	assert_int_equal(inbox_look(0, &region), -FI_ENOENT);
	head->magic--;
	inboxes[0].inbox->magic++;
	assert_int_equal(inbox_look(0, &region), -FI_ENOENT);
	inboxes[0].inbox->magic--;
	assert_int_equal(inbox_look(0, &region), 0);
	pshm_region_close(&region);
	pshm_inbox_destroy(&inboxes[0]);
	assert_int_equal(mock_descriptors(), before);
}

static int setup(void **state)
{
	pshm_inboxes_watch();
	return 0;
}

static int clear(void **state)
{
	sys_fault_clear();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_inboxes_need_few_descriptors),
		cmocka_unit_test(a_place_is_not_used_again),
		cmocka_unit_test(a_child_of_fork_begins_new_memory),
		cmocka_unit_test(a_limit_on_files_makes_for_fewer_inboxes_in_each),
		cmocka_unit_test_teardown(what_lacks_is_told_and_leaves_nothing, clear),
		cmocka_unit_test(what_is_no_inbox_is_not_taken),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
