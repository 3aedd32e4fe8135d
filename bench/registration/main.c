/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-registration - what fi_mr_reg and fi_close cost over a wire that pins, in memory of the arena,
 * against registering with its device and taking that back: memory in pages of 4 KiB that was
 * touched, and huge pages. All three take turns in each round. bench/run runs it.
 *
 * First the process has one thread, and the domain is FI_THREAD_SAFE; then there is a second thread,
 * which sleeps, and the domain is FI_THREAD_DOMAIN.
 *
 * Once in each round, outside of what is timed, the device writes what was registered to a file, which
 * has to have the bytes of the memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <liburing.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "wire.h"

#define KIB	   ((size_t)1 << 10)
#define MIB	   ((size_t)1 << 20)
#define SPAN	   (16 * MIB)
#define BUFS	   8u
#define BUFS_LEN   (4 * MIB) /* that are registered in turn: fewer of a large size */
#define OURS_CNT   2000u     /* of ours in a sample; of the others it depends on the size */
#define ROUNDS_MAX 1000u
#define LOCAL	   (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define REMOTE	   (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SKIP	   77

static const struct {
	size_t len;
	unsigned cnt;
} sizes[] = {
	{ 4 * KIB, 100 }, { 64 * KIB, 60 }, { 256 * KIB, 30 },
	{ MIB, 10 },	  { 4 * MIB, 4 },   { 16 * MIB, 2 },
};

/* What takes turns. */
enum way { ARENA_LOCAL, ARENA_REMOTE, SMALL_PAGES, HUGE_PAGES, WAYS };

static const char *const way_names[WAYS] = { "arena", "arena_remote", "pages_4k", "pages_huge" };
static const char *const way_heads[WAYS] = { "fi_mr_reg+close", "with a key", "4 KiB pages",
					     "huge pages" };

struct bench {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct io_uring ring;
	char *mem[WAYS];
	/* why there are no figures, or NULL */
	const char *why[WAYS];
	double samples[WAYS][ROUNDS_MAX];
	unsigned rounds;
	int file;
	enum fi_threading threading;
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Buffer @i of a size: some lie one after the other, and take turns. */
static char *buf_at(char *mem, size_t len, unsigned i)
{
	size_t cnt = BUFS_LEN / len < BUFS ? BUFS_LEN / len : BUFS;

	return cnt ? mem + i % cnt * len : mem;
}

static int reg_ours(struct bench *b, enum way way, size_t len, unsigned i)
{
	struct fid_mr *mr;
	int err = fi_mr_reg(b->domain, buf_at(b->mem[way], len, i), len,
			    way == ARENA_LOCAL ? LOCAL : LOCAL | REMOTE, 0, 0, 0, &mr, NULL);

	return err ? err : fi_close(&mr->fid);
}

static int reg_device(struct bench *b, enum way way, size_t len, unsigned i)
{
	struct iovec iov = { buf_at(b->mem[way], len, i), len }, none = { 0 };
	__u64 tag = 0;
	int ret = io_uring_register_buffers_update_tag(&b->ring, 0, &iov, &tag, 1);

	if (ret == 1)
		ret = io_uring_register_buffers_update_tag(&b->ring, 0, &none, &tag, 1);
	return ret == 1 ? 0 : ret ? ret : -EIO;
}

/* ns of one registration and its end, or less than 0: an error. */
static double sample(struct bench *b, enum way way, size_t len, unsigned cnt)
{
	double start;
	int err = 0;

	if (way <= ARENA_REMOTE)
		cnt = OURS_CNT;
	start = now_ns();
	for (unsigned i = 0; i < cnt && !err; i++)
		err = way <= ARENA_REMOTE ? reg_ours(b, way, len, i)
					  : reg_device(b, way, len, i);
	return err ? err : (now_ns() - start) / cnt;
}

static bool is_reached(struct bench *b, size_t len, unsigned round)
{
	char *addr = buf_at(b->mem[ARENA_LOCAL], len, round);
	struct fid_mr *mr;
	bool reached;

	memset(addr, (int)round + 1, len);
	if (fi_mr_reg(b->domain, addr, len, LOCAL, 0, 0, 0, &mr, NULL))
		return false;
	addr[len / 2] = (char)(round + 2);
	reached = wire_reaches(mr, addr, len, b->file);
	return !fi_close(&mr->fid) && reached;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *samples, unsigned cnt)
{
	static double sorted[ROUNDS_MAX];

	memcpy(sorted, samples, cnt * sizeof(*sorted));
	qsort(sorted, cnt, sizeof(*sorted), by_value);
	return cnt % 2 ? sorted[cnt / 2] : (sorted[cnt / 2 - 1] + sorted[cnt / 2]) / 2;
}

/* Runs all rounds of a size. Returns 0, or 1: the device did not see the memory. */
static int run_size(struct bench *b, size_t len, unsigned cnt, const char *why[WAYS])
{
	memcpy(why, b->why, sizeof(b->why));
	for (int way = 0; way < WAYS; way++)
		if (!why[way] && sample(b, way, len, 1) < 0)
			why[way] = "the limit of locked memory";
	for (unsigned round = 0; round < b->rounds; round++) {
		for (int i = 0; i < WAYS; i++) {
			enum way way = (enum way)(((unsigned)i + round) % WAYS);

			if (why[way])
				continue;
			b->samples[way][round] = sample(b, way, len, cnt);
			if (b->samples[way][round] < 0)
				why[way] = "the limit of locked memory";
		}
		if (!why[ARENA_LOCAL] && !is_reached(b, len, round)) {
			fprintf(stderr,
				"registration: the device does not find what is in memory\n");
			return 1;
		}
	}
	return 0;
}

static json_t *figure(const struct bench *b, size_t len, const char *why[WAYS])
{
	json_t *fig = json_pack("{s:I}", "size", (json_int_t)len);

	for (int way = 0; way < WAYS; way++) {
		json_t *samples = json_array();

		for (unsigned i = 0; !why[way] && i < b->rounds; i++)
			json_array_append_new(samples, json_real(b->samples[way][i]));
		json_object_set_new(fig, way_names[way], samples);
		if (why[way])
			json_object_set_new(fig, "why", json_string(why[way]));
	}
	return fig;
}

static void print_size(const struct bench *b, size_t len, const char *why[WAYS])
{
	printf("%6zu KiB", len / KIB);
	for (int way = 0; way < WAYS; way++) {
		if (why[way])
			printf("  %15s", "-");
		else
			printf("  %12.1f ns", median(b->samples[way], b->rounds));
	}
	for (int way = SMALL_PAGES; way < WAYS; way++) {
		if (why[way] || why[ARENA_LOCAL])
			printf("  %9s", "-");
		else
			printf("  %5.0f/%.0f",
			       median(b->samples[way], b->rounds) /
				       median(b->samples[ARENA_LOCAL], b->rounds),
			       median(b->samples[way], b->rounds) /
				       median(b->samples[ARENA_REMOTE], b->rounds));
	}
	printf("\n");
}

/* Pages of one kind, touched. Returns NULL with errno set. */
static char *pages(bool huge)
{
	char *mem = mmap(NULL, SPAN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0), -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	if (!huge)
		madvise(mem, SPAN, MADV_NOHUGEPAGE);
	memset(mem, 1, SPAN);
	return mem;
}

/* Returns 0, or an exit status with the reason printed. */
static int prepare(struct bench *b)
{
	struct arena *arena = arena_get();
	int err = arena ? wire_domain(b->threading, &b->fabric, &b->domain) : -FI_ENOMEM;
	void *mem = NULL;

	if (!err)
		err = io_uring_queue_init(8, &b->ring, 0);
	if (!err)
		err = io_uring_register_buffers_sparse(&b->ring, 1);
	if (err) {
		printf("registration: skipped, no arena or no io_uring: %s\n", strerror(-err));
		return SKIP;
	}
	b->file = memfd_create("device", MFD_CLOEXEC);
	err = arena_alloc(arena, SPAN, 2 * MIB, ARENA_READ, &mem, NULL);
	b->mem[ARENA_LOCAL] = b->mem[ARENA_REMOTE] = mem;
	b->mem[SMALL_PAGES] = pages(false);
	b->mem[HUGE_PAGES] = pages(true);
	if (err || b->file < 0 || !b->mem[SMALL_PAGES]) {
		fprintf(stderr, "registration: no memory\n");
		return 2;
	}
	memset(mem, 1, SPAN);
	if (!b->mem[HUGE_PAGES])
		b->why[HUGE_PAGES] = "vm.nr_hugepages has no room";
	return 0;
}

static int run(struct bench *b, json_t *figures)
{
	int failed = 0;

	printf("%10s", "");
	for (int way = 0; way < WAYS; way++)
		printf("  %15s", way_heads[way]);
	printf("  times, 4 KiB and huge (without/with a key)\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !failed; i++) {
		const char *why[WAYS];

		failed = run_size(b, sizes[i].len, sizes[i].cnt, why);
		print_size(b, sizes[i].len, why);
		json_array_append_new(figures, figure(b, sizes[i].len, why));
		/* What is registered goes, so that a small limit serves the next size. */
		fi_close(&b->domain->fid);
		fi_close(&b->fabric->fid);
		if (!failed && wire_domain(b->threading, &b->fabric, &b->domain))
			failed = 2;
	}
	for (int way = 0; way < WAYS; way++)
		if (b->why[way])
			printf("%s: %s\n", way_heads[way], b->why[way]);
	return failed;
}

static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;

static void *sleep_until_end(void *arg)
{
	pthread_mutex_lock(&sleeping);
	pthread_mutex_unlock(&sleeping);
	return NULL;
}

/* run() with a second thread in the process. */
static int run_threads(struct bench *b, json_t *figures)
{
	pthread_t second;
	int status;

	printf("\na second thread, FI_THREAD_DOMAIN\n");
	fi_close(&b->domain->fid);
	fi_close(&b->fabric->fid);
	b->threading = FI_THREAD_DOMAIN;
	pthread_mutex_lock(&sleeping);
	if (pthread_create(&second, NULL, sleep_until_end, NULL) ||
	    wire_domain(b->threading, &b->fabric, &b->domain)) {
		fprintf(stderr, "registration: no second thread, or no domain\n");
		return 2;
	}
	status = run(b, figures);
	pthread_mutex_unlock(&sleeping);
	pthread_join(second, NULL);
	return status;
}

/* A setting of the kernel; "?" where it can't be read. */
static const char *setting(const char *path, char *text, int len)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(text, len, file);

	if (file)
		fclose(file);
	if (!read)
		return "?";
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void print_host(const struct bench *b)
{
	char pages[32], shmem[96], uffd[32];
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	printf("uid %u, memlock ", geteuid());
	if (limit.rlim_cur == RLIM_INFINITY)
		printf("unlimited");
	else
		printf("%llu KiB", (unsigned long long)(limit.rlim_cur / KIB));
	printf(", nr_hugepages %s, shmem_enabled %s, unprivileged_userfaultfd %s, %u rounds\n",
	       setting("/proc/sys/vm/nr_hugepages", pages, sizeof(pages)),
	       setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shmem,
		       sizeof(shmem)),
	       setting("/proc/sys/vm/unprivileged_userfaultfd", uffd, sizeof(uffd)), b->rounds);
}

static void usage(void)
{
	fprintf(stderr, "Usage: weft-registration [--rounds=N] [--json-fd=N]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static struct bench b = { .rounds = 60, .threading = FI_THREAD_SAFE };
	int fd = -1;
	json_t *whole, *figures = json_array(), *threads = json_array();
	struct rlimit limit = { 0 };
	cpu_set_t cpus;
	int status;

	CPU_ZERO(&cpus);
	CPU_SET(1, &cpus);
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--rounds=", 9))
			b.rounds = (unsigned)strtoul(argv[i] + 9, NULL, 10);
		else if (!strncmp(argv[i], "--json-fd=", 10))
			fd = atoi(argv[i] + 10);
		else
			usage();
	}
	if (!b.rounds || b.rounds > ROUNDS_MAX)
		usage();
	sched_setaffinity(0, sizeof(cpus), &cpus);
	status = prepare(&b);
	if (status)
		return status;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	print_host(&b);
	status = run(&b, figures);
	if (!status)
		status = run_threads(&b, threads);
	whole = json_pack("{s:I, s:I, s:o, s:o}", "uid", (json_int_t)geteuid(), "memlock",
			  (json_int_t)limit.rlim_cur, "figures", figures, "threads", threads);
	if (fd >= 0 && json_dumpfd(whole, fd, JSON_COMPACT))
		status = 2;
	json_decref(whole);
	return status;
}
