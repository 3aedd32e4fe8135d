/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the checks of registered memory: which accesses of peers are refused because of the
 * memory, and which ask the kernel. A domain without endpoints, on one thread.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "fault.h"
#include "mr_fid.h"
#include "resolve.h"
#include <cmocka.h>

#define READS  FI_REMOTE_READ
#define WRITES FI_REMOTE_WRITE
#define RMA    (READS | WRITES)
#define PAGES  64u
#define KEY    7
/* Accesses among which one asks about the whole region */
#define MANY 64

static struct fi_provider provider = { .name = "test" };
static const struct engine_family family = { .provider = &provider };
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_mr *mr;
static size_t page;
static char *memory; /* PAGES of them */

static int setup(void **state)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(1, 18) };
	struct fi_domain_attr attr = { .threading = FI_THREAD_SAFE };
	struct fi_info info = { .domain_attr = &attr };

	page = (size_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, &info, &domain, NULL), 0);
	core_warnings = 0;
	return 0;
}

static int teardown(void **state)
{
	sys_fault_clear();
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	munmap(memory, PAGES * page);
	return 0;
}

static void add(void *addr, size_t len)
{
	assert_int_equal(fi_mr_reg(domain, addr, len, RMA, 0, KEY, 0, &mr, NULL), 0);
}

static int resolve(uint64_t addr, uint64_t len, uint64_t access)
{
	struct engine_domain *engine = container_of(domain, struct engine_domain, fid);
	struct iovec iov[MR_IOV_MAX];
	struct engine_mr *found;
	size_t cnt;

	return engine_mr_resolve(engine, NULL, KEY, addr, len, access, iov, &cnt, &found);
}

/* Returns true if the next access to that place asks the kernel. */
static bool asks(uint64_t addr, uint64_t access)
{
	int ret;

	sys_fault_set(SYS_CALL_TOUCH, EFAULT, 0, 0);
	ret = resolve(addr, 8, access);
	sys_fault_clear();
	return ret;
}

static void resolve_many(uint64_t access)
{
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(resolve(i * page, 8, access), 0);
}

static void what_is_not_mapped_is_refused(void **state)
{
	assert_int_equal(munmap(memory + page, page), 0);
	add(memory, PAGES * page);
	assert_int_equal(resolve(page, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve(page, 8, READS), -FI_EACCES);
	assert_int_equal(resolve(page - 4, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve(2 * page - 4, 8, RMA), -FI_EACCES);
	assert_int_equal(resolve(0, PAGES * page, READS), -FI_EACCES);
	assert_int_equal(resolve(page - 8, 8, WRITES), 0);
	assert_int_equal(resolve(2 * page, 8, WRITES), 0);
	assert_int_equal(resolve(2 * page, (PAGES - 2) * page, RMA), 0);
}

static void what_is_not_writable_is_read_only(void **state)
{
	assert_int_equal(mprotect(memory + page, page, PROT_READ), 0);
	assert_int_equal(mprotect(memory + 2 * page, page, PROT_NONE), 0);
	add(memory, PAGES * page);
	assert_int_equal(resolve(page, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve(page, 8, RMA), -FI_EACCES);
	assert_int_equal(resolve(page, 8, READS), 0);
	assert_int_equal(resolve(page, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve(2 * page, 8, READS), -FI_EACCES);
	assert_int_equal(resolve(0, 2 * page, READS), 0);
	assert_int_equal(resolve(0, 2 * page, WRITES), -FI_EACCES);
	assert_int_equal(resolve(0, page, WRITES), 0);
}

static void the_end_of_a_file_is_seen(void **state)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)page), 0);
	assert_ptr_equal(mmap(memory, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fileno(file), 0),
			 memory);
	fclose(file);
	add(memory, 2 * page);
	assert_int_equal(resolve(page, 8, READS), -FI_EACCES);
	assert_int_equal(resolve(page, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve(0, 8, WRITES), 0);
}

static void memory_may_be_mended(void **state)
{
	assert_int_equal(mprotect(memory, PAGES * page, PROT_READ), 0);
	add(memory, PAGES * page);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(resolve(0, 8, WRITES), -FI_EACCES);
	assert_int_equal(mprotect(memory, PAGES * page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(resolve(0, 8, WRITES), 0);
}

static void one_line_tells_of_a_region(void **state)
{
	assert_int_equal(munmap(memory, PAGES * page), 0);
	add(memory, PAGES * page);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(resolve(i * page, 8, i % 2 ? WRITES : READS), -FI_EACCES);
	assert_int_equal(core_warnings, 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	add(memory, PAGES * page);
	assert_int_equal(resolve(0, 8, READS), -FI_EACCES);
	assert_int_equal(core_warnings, 2);
}

static void the_same_pages_are_asked_about_once(void **state)
{
	add(memory, PAGES * page);
	assert_true(asks(0, WRITES));
	assert_int_equal(resolve(0, 8, WRITES), 0);
	assert_false(asks(page - 8, WRITES));
	assert_true(asks(page, WRITES));
	assert_true(asks(0, READS)); /* what may be written may not be read everywhere */
	assert_int_equal(resolve(page, page, WRITES), 0);
	assert_false(asks(page - 4, WRITES)); /* on both pages */
	assert_int_equal(fi_close(&mr->fid), 0);
	add(memory, PAGES * page);
	assert_true(asks(0, WRITES)); /* in another region nothing is known of it */
}

/* At any place, without the kernel, and without a page that was not accessed. */
static void a_region_that_is_used_is_known_whole(void **state)
{
	unsigned char there[PAGES];

	add(memory, PAGES * page);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(resolve(i % 2 * page, 8, WRITES), 0);
	assert_false(asks((PAGES - 1) * page, WRITES));
	assert_false(asks((PAGES - 1) * page, READS));
	assert_false(asks((PAGES - 1) * page, RMA));
	assert_int_equal(mincore(memory, PAGES * page, there), 0);
	assert_int_equal(there[PAGES - 1] & 1, 0);
	assert_int_equal(core_warnings, 0);
}

static void reads_do_not_tell_of_writes(void **state)
{
	assert_int_equal(mprotect(memory, PAGES * page, PROT_READ), 0);
	add(memory, PAGES * page);
	resolve_many(READS);
	assert_false(asks((PAGES - 1) * page, READS));
	assert_int_equal(resolve(0, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve(0, 8, RMA), -FI_EACCES);
}

static void a_region_with_a_hole_is_never_known_whole(void **state)
{
	assert_int_equal(munmap(memory + page, page), 0);
	add(memory, PAGES * page);
	for (size_t i = 0; i < 4 * MANY; i++)
		assert_int_equal(resolve(2 * page + i, 8, WRITES), 0);
	assert_int_equal(resolve(page, 8, WRITES), -FI_EACCES);
}

static void all_memory_is_asked_about_each_time(void **state)
{
	add(NULL, UINTPTR_MAX);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(resolve((uintptr_t)memory, 8, WRITES), 0);
	assert_int_equal(munmap(memory, page), 0);
	assert_int_equal(resolve((uintptr_t)memory, 8, WRITES), -FI_EACCES);
	assert_int_equal(resolve((uintptr_t)memory + page, 8, WRITES), 0);
	assert_int_equal(resolve(64, 8, READS), -FI_EACCES);
	assert_int_equal(resolve(UINTPTR_MAX - 8, 8, READS), -FI_EACCES);
	assert_int_equal(resolve(0, UINTPTR_MAX, READS), -FI_EACCES);
}

static void pieces_are_checked_one_by_one(void **state)
{
	struct iovec iov[2] = { { memory, page }, { memory + 2 * page, page } };

	assert_int_equal(mprotect(memory + 2 * page, page, PROT_READ), 0);
	assert_int_equal(fi_mr_regv(domain, iov, 2, RMA, 0, KEY, 0, &mr, NULL), 0);
	assert_int_equal(resolve(0, page, WRITES), 0);
	assert_int_equal(resolve(page - 4, 8, WRITES), -FI_EACCES);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(resolve(page - 4, 8, READS), 0);
	assert_false(asks(page - 4, READS));
	assert_int_equal(resolve(page, 8, WRITES), -FI_EACCES);
}

/* Of whole pages that an access is not to, nothing is allocated. */
static void long_ranges_are_not_touched(void **state)
{
	size_t len = PLATFORM_TOUCH_MAX + page;
	unsigned char there = 0xff;
	char *large = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);

	assert_ptr_not_equal(large, MAP_FAILED);
	add(large, len);
	assert_int_equal(resolve(0, len, WRITES), 0);
	assert_int_equal(mincore(large, page, &there), 0);
	assert_int_equal(there & 1, 0);
	assert_int_equal(mprotect(large + len - page, page, PROT_READ), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	add(large, len);
	assert_int_equal(resolve(0, len, WRITES), -FI_EACCES);
	assert_int_equal(resolve(0, len, READS), 0);
	munmap(large, len);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_mapped_is_refused),
		TEST(what_is_not_writable_is_read_only),
		TEST(the_end_of_a_file_is_seen),
		TEST(memory_may_be_mended),
		TEST(one_line_tells_of_a_region),
		TEST(the_same_pages_are_asked_about_once),
		TEST(a_region_that_is_used_is_known_whole),
		TEST(reads_do_not_tell_of_writes),
		TEST(a_region_with_a_hole_is_never_known_whole),
		TEST(all_memory_is_asked_about_each_time),
		TEST(pieces_are_checked_one_by_one),
		TEST(long_ranges_are_not_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
