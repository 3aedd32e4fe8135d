/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * space LENDER - what one address space of devices and processes promises (docs/devices.md)
 *
 * The lender has two controllers with memory of their own. Processes that share segments are forked, and have a
 * connection each.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/nvme.h>

#define PAGE   4096u
#define BLOCKS 8u /* of 512 bytes: a page */

static const char *lender_path;

/* struct use - a device that is used */
struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_nvme *qp;
};

static struct use use_begin(void)
{
	struct use u;

	assert_int_equal(weft_lender_open(lender_path, NULL, &u.lender), 0);
	assert_int_equal(weft_device_borrow(u.lender, NULL, &u.dev), 0);
	assert_int_equal(weft_nvme_open(u.dev, NULL, &u.qp), 0);
	return u;
}

static void use_end(struct use *u)
{
	assert_int_equal(weft_nvme_close(u->qp), 0);
	assert_int_equal(weft_device_return(u->dev), 0);
	assert_int_equal(weft_lender_close(u->lender), 0);
}

static struct weft_segment *segment(struct weft_device *dev, size_t len,
				    struct weft_window **window, struct weft_device *to)
{
	struct weft_segment *seg;

	assert_int_equal(weft_segment_alloc(dev, len, 0, &seg), 0);
	if (window)
		assert_int_equal(weft_window_open(to, seg, WEFT_WINDOW_RW, window), 0);
	return seg;
}

static void fill(void *mem, size_t len, unsigned seed)
{
	uint32_t *word = mem;
	size_t i;

	for (i = 0; i < len / 4; i++)
		word[i] = (uint32_t)i * 2654435761u + seed;
}

static void assert_filled(const void *mem, size_t len, unsigned seed)
{
	const uint32_t *word = mem;
	size_t i;

	for (i = 0; i < len / 4; i++)
		if (word[i] != (uint32_t)i * 2654435761u + seed)
			fail_msg("word %zu is %08x", i, word[i]);
}

/* Write a pattern to a device, from host memory. */
static void write_pattern(struct use *u, uint64_t lba, size_t len, unsigned seed)
{
	struct weft_window *window;
	struct weft_segment *seg = segment(NULL, len, &window, u->dev);

	fill(weft_segment_mem(seg), len, seed);
	assert_int_equal(
		weft_nvme_write(u->qp, 1, lba, (uint32_t)(len / 512), weft_segment_mem(seg)), 0);
	assert_int_equal(weft_window_close(window), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void a_copy_between_devices_is_in_no_host_memory(void **state)
{
	struct use from = use_begin(), to = use_begin();
	const size_t len = 32 * PAGE;
	struct weft_window *out, *in, *check;
	struct weft_segment *device = segment(from.dev, len, &in, from.dev);
	struct weft_segment *host;

	assert_int_not_equal(weft_device_info(from.dev)->id, weft_device_info(to.dev)->id);
	write_pattern(&from, 64, len, 7);
	assert_int_equal(weft_window_open(to.dev, device, WEFT_WINDOW_READ, &out), 0);

	assert_int_equal(
		weft_nvme_read(from.qp, 1, 64, (uint32_t)(len / 512), weft_segment_mem(device)),
		0);
	assert_int_equal(
		weft_nvme_write(to.qp, 1, 128, (uint32_t)(len / 512), weft_segment_mem(device)),
		0);

	host = segment(NULL, len, &check, to.dev);
	assert_int_equal(
		weft_nvme_read(to.qp, 1, 128, (uint32_t)(len / 512), weft_segment_mem(host)), 0);
	assert_filled(weft_segment_mem(host), len, 7);
	assert_int_equal(weft_window_close(check), 0);
	assert_int_equal(weft_window_close(out), 0);
	assert_int_equal(weft_segment_free(device), -EBUSY);
	assert_int_equal(weft_window_close(in), 0);
	assert_int_equal(weft_segment_free(device), 0);
	assert_int_equal(weft_segment_free(host), 0);
	use_end(&from);
	use_end(&to);
}

static void a_queue_may_be_in_the_devices_memory(void **state)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr),
				       .depth = 4,
				       .flags = WEFT_NVME_NEAR_DEVICE };
	struct use u = use_begin();
	struct weft_window *window;
	struct weft_segment *seg = segment(NULL, PAGE, &window, u.dev);
	struct weft_nvme *near;
	unsigned i;

	assert_int_equal(weft_nvme_open(u.dev, &attr, &near), 0);
	for (i = 0; i < 20; i++) {
		fill(weft_segment_mem(seg), PAGE, i);
		assert_int_equal(
			weft_nvme_write(near, 1, i * BLOCKS, BLOCKS, weft_segment_mem(seg)), 0);
	}
	for (i = 0; i < 20; i++) {
		assert_int_equal(
			weft_nvme_read(u.qp, 1, i * BLOCKS, BLOCKS, weft_segment_mem(seg)), 0);
		assert_filled(weft_segment_mem(seg), PAGE, i);
	}
	assert_int_equal(weft_nvme_close(near), 0);
	assert_int_equal(weft_window_close(window), 0);
	assert_int_equal(weft_segment_free(seg), 0);
	use_end(&u);
}

static void hints_place_memory_near_who_reads(void **state)
{
	static const struct {
		uint32_t hints;
		const char *place;
	} cases[] = {
		{ WEFT_HINT_DEVICE_READS | WEFT_HINT_CPU_WRITES, "the device's memory: " },
		{ WEFT_HINT_DEVICE_WRITES | WEFT_HINT_CPU_READS, "this process's memory: " },
		{ WEFT_HINT_DEVICE_READS | WEFT_HINT_CPU_READS, "this process's memory: " },
		{ WEFT_HINT_DEVICE_WRITES | WEFT_HINT_CPU_WRITES, "this process's memory: " },
	};
	struct use u = use_begin();
	struct weft_segment *seg;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(weft_segment_alloc(u.dev, PAGE, cases[i].hints, &seg), 0);
		assert_ptr_equal(strstr(weft_segment_why(seg), cases[i].place),
				 weft_segment_why(seg));
		assert_int_equal(weft_segment_free(seg), 0);
	}
	assert_int_equal(weft_segment_alloc(NULL, PAGE, WEFT_HINT_DEVICE_READS, &seg), 0);
	assert_int_equal(weft_segment_free(seg), 0);
	/* more than the device has */
	assert_int_equal(weft_segment_alloc(u.dev, 1u << 30, 0, &seg), -EINVAL);
	use_end(&u);
}

/* Run @child as another process, and have its exit status be 0. */
static void in_another_process(void (*child)(const void *arg), const void *arg)
{
	pid_t pid = fork();
	int status;

	assert_int_not_equal(pid, -1);
	if (!pid) {
		child(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* In a child, where cmocka's assertions would run the parent's tests on. */
#define CHECK(x)                                                               \
	do {                                                                   \
		if (!(x)) {                                                    \
			fprintf(stderr, "child: %s, line %d\n", #x, __LINE__); \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static void import_and_increment(const void *arg)
{
	struct weft_lender *lender;
	struct weft_segment *seg;
	uint32_t *words;

	CHECK(!weft_lender_open(lender_path, NULL, &lender));
	CHECK(!weft_segment_import(lender, arg, &seg));
	words = weft_segment_mem(seg);
	words[0]++;
	words[weft_segment_len(seg) / 4 - 1]++;
	CHECK(!weft_segment_free(seg));
	CHECK(!weft_lender_close(lender));
}

static void find_it_stale(const void *arg)
{
	const struct weft_address *addr = arg;
	struct weft_address other = *addr;
	struct weft_lender *lender;
	struct weft_segment *seg;

	CHECK(!weft_lender_open(lender_path, NULL, &lender));
	CHECK(weft_segment_import(lender, addr, &seg) == -ESTALE);
	other.segment = 1u << 30;
	CHECK(weft_segment_import(lender, &other, &seg) == -ESTALE);
	other = *addr;
	other.node++;
	CHECK(weft_segment_import(lender, &other, &seg) == -EHOSTUNREACH);
	CHECK(!weft_lender_close(lender));
}

static void an_address_leads_to_the_segment_until_it_is_gone(void **state)
{
	struct use u = use_begin();
	struct weft_segment *segs[2] = { segment(NULL, 3 * PAGE, NULL, NULL),
					 segment(u.dev, 48 * PAGE, NULL, NULL) };
	struct weft_address addr, again;
	unsigned i;

	for (i = 0; i < 2; i++) {
		uint32_t *words = weft_segment_mem(segs[i]);
		size_t last = weft_segment_len(segs[i]) / 4 - 1;

		words[0] = words[last] = 41;
		assert_int_equal(weft_segment_export(u.lender, segs[i], 0, &addr), 0);
		assert_int_equal(weft_segment_export(u.lender, segs[i], 0, &again), -EBUSY);
		in_another_process(import_and_increment, &addr);
		assert_int_equal(words[0], 42);
		assert_int_equal(words[last], 42);
		assert_int_equal(weft_segment_free(segs[i]), 0);
		in_another_process(find_it_stale, &addr);
	}
	use_end(&u);
}

static void addresses_of_a_process_that_has_ended_are_stale(void **state)
{
	struct weft_address addr;
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		struct weft_lender *lender;
		struct weft_segment *seg;

		CHECK(!weft_lender_open(lender_path, NULL, &lender));
		CHECK(!weft_segment_alloc(NULL, PAGE, 0, &seg));
		CHECK(!weft_segment_export(lender, seg, 0, &addr));
		CHECK(write(pipes[1], &addr, sizeof(addr)) == sizeof(addr));
		/* until it is killed */
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &addr, sizeof(addr)), sizeof(addr));
	in_another_process(import_and_increment, &addr);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* The lender hears of it at once, but not before the wait returns. */
	for (unsigned i = 0; i < 1000; i++) {
		struct weft_lender *lender;
		struct weft_segment *seg;
		int err;

		assert_int_equal(weft_lender_open(lender_path, NULL, &lender), 0);
		err = weft_segment_import(lender, &addr, &seg);
		if (!err)
			assert_int_equal(weft_segment_free(seg), 0);
		assert_int_equal(weft_lender_close(lender), 0);
		if (err == -ESTALE)
			break;
		assert_int_equal(err, 0);
		usleep(10000);
	}
	in_another_process(find_it_stale, &addr);
	close(pipes[0]);
	close(pipes[1]);
}

static void one_read_arrives_in_all_segments_of_a_multicast(void **state)
{
	enum { CNT = 5 };
	struct use u = use_begin();
	struct weft_segment *segs[CNT], *device;
	struct weft_window *window;
	const size_t len = 16 * PAGE;
	unsigned i;

	write_pattern(&u, 0, len, 99);
	for (i = 0; i < CNT; i++)
		segs[i] = segment(NULL, len, NULL, NULL);
	assert_int_equal(weft_multicast_open(u.dev, segs, CNT, &window), 0);
	assert_int_equal(
		weft_nvme_read(u.qp, 1, 0, (uint32_t)(len / 512), weft_segment_mem(segs[0])), 0);
	for (i = 0; i < CNT; i++)
		assert_filled(weft_segment_mem(segs[i]), len, 99);
	/* The device only writes there. */
	assert_int_equal(weft_nvme_write(u.qp, 1, 0, BLOCKS, weft_segment_mem(segs[0])),
			 -EFAULT);
	for (i = 0; i < CNT; i++)
		assert_int_equal(weft_segment_free(segs[i]), -EBUSY);
	assert_int_equal(weft_window_close(window), 0);

	device = segment(u.dev, len * 4, NULL, NULL);
	assert_int_equal(weft_multicast_open(u.dev, &device, 1, &window),
			 weft_segment_len(device) > 16 * PAGE ? -EOPNOTSUPP : 0);
	assert_int_equal(weft_segment_free(device), 0);
	device = segment(NULL, len * 2, NULL, NULL);
	assert_int_equal(weft_multicast_open(u.dev, (struct weft_segment *[]){ segs[0], device },
					     2, &window),
			 -EINVAL);
	assert_int_equal(weft_multicast_open(u.dev, segs, 0, &window), -EINVAL);
	assert_int_equal(weft_segment_free(device), 0);
	for (i = 0; i < CNT; i++)
		assert_int_equal(weft_segment_free(segs[i]), 0);
	use_end(&u);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_between_devices_is_in_no_host_memory),
		cmocka_unit_test(a_queue_may_be_in_the_devices_memory),
		cmocka_unit_test(hints_place_memory_near_who_reads),
		cmocka_unit_test(an_address_leads_to_the_segment_until_it_is_gone),
		cmocka_unit_test(addresses_of_a_process_that_has_ended_are_stale),
		cmocka_unit_test(one_read_arrives_in_all_segments_of_a_multicast),
	};

	if (argc != 2)
		return 2;
	lender_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
