/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows, and PRPs in them, against models that do the same page by page */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "domain.h"
#include "host_side.h"
#include "nvme/spec.h"
#include "prp.h"
#include "seeded.h"

#define PAGES 64u
#define BASE  0x7f0000000000ull

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	return (uint32_t)seeded_below(&seed, n);
}

/* Of each page: where its window begins and how long that is, in pages, and what it allows; 0 pages: none */
struct model {
	struct {
		uint32_t first, cnt, offset, access;
	} pages[PAGES];
};

static void model_map(struct model *m, struct domain *d, int fd)
{
	uint32_t first = below(PAGES), cnt = 1 + below(8), offset = below(PAGES - 8),
		 access = 1 + below(3);
	int own = dup(fd), expected = 0, ret;
	struct domain_request req = { .addr = BASE + first * 4096ull,
				      .len = cnt * 4096ull,
				      .offset = offset * 4096ull,
				      .access = access,
				      .fds = &own,
				      .fd_cnt = 1 };

	if (first + cnt > PAGES)
		cnt = PAGES - first;
	req.len = cnt * 4096ull;
	for (uint32_t i = 0; i < cnt; i++)
		if (m->pages[first + i].cnt)
			expected = -EEXIST;
	ret = domain_map(d, &req);
	assert_int_equal(ret, expected);
	if (ret) {
		close(own);
		return;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		m->pages[first + i].first = first;
		m->pages[first + i].cnt = cnt;
		m->pages[first + i].offset = offset + i;
		m->pages[first + i].access = access;
	}
}

static void model_unmap(struct model *m, struct domain *d)
{
	uint32_t first = below(PAGES), cnt = below(4) ? m->pages[first].cnt : 1 + below(8);
	bool is = cnt && m->pages[first].cnt == cnt && m->pages[first].first == first;

	assert_int_equal(domain_unmap(d, BASE + first * 4096ull, cnt * 4096ull),
			 is ? 0 : -ENOENT);
	for (uint32_t i = 0; is && i < cnt; i++)
		m->pages[first + i].cnt = 0;
}

static void model_compare(const struct model *m, struct domain *d, const uint8_t *file)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		uint64_t addr = BASE + i * 4096ull + below(4096);
		uint32_t access = 1 + below(3);
		struct window *w = domain_find(d, addr, access);

		if (!m->pages[i].cnt || (m->pages[i].access & access) != access) {
			assert_null(w);
			continue;
		}
		assert_non_null(w);
		if (access & 1)
			assert_int_equal(w->files[0].base[(addr - w->addr) & ~4095ull],
					 file[m->pages[i].offset * 4096]);
	}
	assert_null(domain_find(d, BASE - 1, 1));
	assert_null(domain_find(d, BASE + PAGES * 4096, 1));
	assert_null(domain_find(d, 0, 1));
	assert_null(domain_find(d, UINT64_MAX, 1));
}

static void windows_are_found_as_they_were_mapped(void **state)
{
	struct domain d = { 0 };
	struct model m = { 0 };
	int fd;
	uint8_t *file = host_memory(PAGES * 4096, &fd);

	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < PAGES; i++)
		file[i * 4096] = (uint8_t)(i + 1);
	for (int i = 0; i < 20000; i++) {
		if (below(2))
			model_map(&m, &d, fd);
		else
			model_unmap(&m, &d);
		if (i % 8 == 0)
			model_compare(&m, &d, file);
	}
	domain_clear(&d);
	assert_null(d.leaving);
	munmap(file, PAGES * 4096);
	close(fd);
}

static void a_window_that_is_used_goes_with_its_last_user(void **state)
{
	struct domain d = { 0 };
	int fd;
	uint8_t *file = host_memory(8192, &fd);
	struct domain_request req = {
		.addr = BASE, .len = 8192, .access = 3, .fds = &fd, .fd_cnt = 1
	};
	struct window *w;

	assert_int_equal(domain_map(&d, &req), 0);
	w = domain_find(&d, BASE, 3);
	w->users = 2;
	assert_int_equal(domain_unmap(&d, BASE, 8192), 0);
	assert_null(domain_find(&d, BASE, 3));
	assert_non_null(d.leaving);
	w->files[0].base[0] = 7; /* it is still there */
	window_put(w);
	assert_non_null(d.leaving);
	window_put(w);
	assert_null(d.leaving);
	assert_int_equal(file[0], 7);
	domain_clear(&d);
	munmap(file, 8192);
}

static void map_until_refused(struct domain *d, int fd, uint64_t len, uint32_t files,
			      uint32_t *cnt)
{
	int fds[8], ret = 0;
	struct domain_request req = {
		.addr = BASE, .len = len, .access = 3, .fds = fds, .fd_cnt = files
	};

	for (*cnt = 0;; ++*cnt, req.addr += len) {
		for (uint32_t i = 0; i < files; i++)
			fds[i] = dup(fd);
		ret = domain_map(d, &req);
		if (ret)
			break;
	}
	assert_int_equal(ret, -ENOMEM);
	for (uint32_t i = 0; i < files; i++)
		close(fds[i]);
}

/* Whatever others take, each has its part of half of what there is; what is unmapped is free again. */
static void no_domain_takes_what_others_are_to_have(void **state)
{
	struct budget b = { .most = { 160, 1ull << 40 }, .holders = 4 };
	struct domain d[4] = {
		{ .budget = &b }, { .budget = &b }, { .budget = &b }, { .budget = &b }
	};
	int fd;
	uint8_t *file = host_memory(1 << 20, &fd);
	uint32_t cnt;

	for (int round = 0; round < 3; round++) {
		map_until_refused(&d[0], fd, 4096, 8, &cnt);
		assert_int_equal(cnt, 10); /* half of all */
		for (int i = 1; i < 4; i++) {
			map_until_refused(&d[i], fd, 4096, 1, &cnt);
			assert_int_equal(cnt, 20); /* a fourth of the other half */
		}
		for (int i = 0; i < 4; i++)
			domain_clear(&d[i]);
		assert_int_equal(b.used.files + b.used.bytes, 0);
	}
	/* Addresses likewise */
	b.most = (struct budget_use){ 1000, 16 << 20 };
	map_until_refused(&d[0], fd, 1 << 20, 2, &cnt);
	assert_int_equal(cnt, 4);
	map_until_refused(&d[1], fd, 1 << 20, 1, &cnt);
	assert_int_equal(cnt, 2);
	assert_int_equal(domain_unmap(&d[0], BASE, 1 << 20), 0);
	map_until_refused(&d[2], fd, 1 << 20, 1, &cnt);
	assert_int_equal(cnt, 2);
	for (int i = 0; i < 4; i++)
		domain_clear(&d[i]);
	assert_int_equal(b.used.files + b.used.bytes, 0);
	munmap(file, 1 << 20);
	close(fd);
}

/* The list that a host would make of pages in any order, begun anywhere in its page */
static void prps_lead_to_the_bytes_in_order(void **state)
{
	struct domain d = { 0 };
	int fd;
	uint8_t *file = host_memory(1024 * 4096, &fd);
	struct domain_request req = {
		.addr = BASE, .len = 1024 * 4096, .access = 3, .fds = &fd, .fd_cnt = 1
	};

	assert_int_equal(domain_map(&d, &req), 0);
	for (int n = 0; n < 3000; n++) {
		uint64_t len = 4 * (1 + below(n % 2 ? 8192 : 1 << 18)), at = 4 * below(1024),
			 left = len, done = 0;
		uint64_t list = 4096 * 600 + 8 * below(512), entry = list, prp2 = BASE + list;
		uint32_t pages[258], cnt = 0;
		struct prp p;

		for (uint64_t room = 4096 - at; left; room = 4096) {
			pages[cnt++] = below(599);
			left -= left < room ? left : room;
		}
		if (cnt == 2)
			prp2 = BASE + pages[1] * 4096ull;
		for (uint32_t i = 1; cnt > 2 && i < cnt; i++) {
			if (entry % 4096 == 4088 && i + 1 < cnt) {
				uint64_t next = (entry & ~4095ull) + 4096;

				*(uint64_t *)(file + entry) = BASE + next;
				entry = next;
			}
			*(uint64_t *)(file + entry) = BASE + pages[i] * 4096ull;
			entry += 8;
		}
		assert_int_equal(prp_begin(&p, BASE + pages[0] * 4096ull + at, prp2, len), 0);
		while (done < len) {
			struct segment segs[PRP_SEGMENTS(128 << 10)];
			uint64_t part = 4 * (1 + below(32 << 10));
			uint32_t seg_cnt;

			part = part < len - done ? part : len - done;
			assert_int_equal(prp_gather(&p, &d, 3, part, segs, &seg_cnt), 0);
			assert_in_range(seg_cnt, 1, PRP_SEGMENTS(part));
			for (uint32_t i = 0; i < seg_cnt; i++)
				for (uint64_t byte = 0; byte < segs[i].len;
				     byte += 4, done += 4) {
					uint64_t from_page = at + done;

					assert_int_equal(segs[i].at + byte,
							 pages[from_page / 4096] * 4096ull +
								 from_page % 4096);
				}
		}
	}
	domain_clear(&d);
	munmap(file, 1024 * 4096);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_found_as_they_were_mapped),
		cmocka_unit_test(a_window_that_is_used_goes_with_its_last_user),
		cmocka_unit_test(no_domain_takes_what_others_are_to_have),
		cmocka_unit_test(prps_lead_to_the_bytes_in_order),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0x5eed;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
