/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program while the keeper's thread runs in it: it forks, ends in each way, changes its user, forbids threads,
 * and is told that memory is short. What ends is another process, which runs this file again.
 *
 * usage: keeper_test [exit|_exit|pthread_exit|setuid|unshare|seccomp|fallocate|apart|pressure]: what is run in that process
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "arena.h"

#define MIB	    ((size_t)1 << 20)
#define DEADLINE_NS 20000000000u
#define KEEPER	    "weft-mem-keeper"
#define NOBODY	    65534
/* What a process returns that can't do what it is for. */
#define REFUSED 77

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Part of each thread's stack: what the keeper has is behind it. */
static __thread char large[240 << 10];

static struct arena *arena;
static char *self;
/* Something is being revoked, and this process is about to fork. */
static _Atomic bool revoking, forking;

static size_t quarantined(void)
{
	struct arena_usage usage;

	arena_usage(arena, &usage);
	return usage.quarantined;
}

static char *allocate(size_t len)
{
	void *addr = NULL;

	if (arena_alloc(arena, len, 1, ARENA_READ, &addr, NULL))
		return NULL;
	return memset(addr, 1, len);
}

/* Has a keeper in this process. Returns 0, or 1. */
static int keep(size_t len)
{
	char *addr;

	arena = arena_get();
	large[0] = 1;
	addr = arena ? allocate(len) : NULL;
	return addr ? arena_free(arena, addr) : 1;
}

/* Reads a line of a file of a thread of this process. Returns whether it has one that begins with @name. */
static bool thread_line(const char *thread, const char *file, const char *name, char line[256])
{
	char path[300];
	bool found = false;
	FILE *from;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, file);
	from = fopen(path, "r");
	while (from && !found && fgets(line, 256, from))
		found = !strncmp(line, name, strlen(name));
	if (from)
		fclose(from);
	return found;
}

/* Returns how many threads this process has. @keeper: out: the keeper among them, or "" */
static int threads(char keeper[32])
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	char line[256];
	int cnt = 0;

	keeper[0] = '\0';
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		cnt++;
		if (thread_line(entry->d_name, "comm", KEEPER, line))
			snprintf(keeper, 32, "%.31s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return cnt;
}

/* Waits for a condition, which may pass. Evaluates to false when it has not come true in time. */
#define within_deadline(cond)                                           \
	({                                                              \
		uint64_t end_ns_ = platform_now_ns() + DEADLINE_NS;     \
		bool met_;                                              \
		while (!(met_ = (cond)) && platform_now_ns() < end_ns_) \
			usleep(1000);                                   \
		met_;                                                   \
	})

/* Runs this file again. Returns how that ends. */
static int run(const char *what, const char *decay)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setenv("FI_MEM_DECAY", decay, 1);
		execl(self, self, what, (char *)NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_done(const char *what, const char *decay)
{
	int status;

	if (SANITIZED) {
		printf("a sanitizer has threads, and looks into the process when it ends\n");
		skip();
	}
	status = run(what, decay);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		skip();
	assert_int_equal(status, 0);
}

static int start(void **state)
{
	setenv("FI_MEM_DECAY", "0", 1);
	arena = arena_get();
	return arena ? 0 : -1;
}

/* On the keeper's thread, which has the arena's lock and is in the middle of a trim. */
static int wait_for_fork(struct arena_watcher *watcher, const struct arena_place *place,
			 size_t len)
{
	atomic_store(&revoking, true);
	(void)within_deadline(atomic_load(&forking));
	return 0;
}

static void before_fork(void)
{
	atomic_store(&forking, true);
}

/* In the child. Returns 0, or what is wrong. */
static int child_is_sound(void)
{
	char keeper[32], *addr;

	threads(keeper);
	if (keeper[0] || arena->keeper_runs)
		return 1;
	addr = allocate(32 * MIB);
	if (!addr || arena_free(arena, addr))
		return 2;
	/* it has a keeper of its own now */
	return within_deadline(!quarantined()) ? 0 : 3;
}

static void a_fork_in_the_middle_of_a_trim_leaves_a_sound_child(void **state)
{
	struct arena_watcher watcher = { .revoke = wait_for_fork };
	char *live = allocate(MIB);
	int status;
	pid_t pid;

	/* it runs before that of the arena, which waits for the lock */
	assert_int_equal(pthread_atfork(before_fork, NULL, NULL), 0);
	arena_watch(arena, &watcher);
	assert_int_equal(keep(64 * MIB), 0);
	assert_true(within_deadline(atomic_load(&revoking)));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(live[MIB - 1] == 1 ? child_is_sound() : 9);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(within_deadline(!quarantined()));
	arena_unwatch(arena, &watcher);
	assert_int_equal(arena_free(arena, live), 0);
}

/* Has a keeper, which ends soon since nothing is kept, and reads a line of it. Returns false if it came too late. */
static bool keeper_line(const char *name, char line[256])
{
	char keeper[32] = "";

	assert_int_equal(keep(MIB), 0);
	threads(keeper);
	return keeper[0] && thread_line(keeper, "status", name, line);
}

static void the_keeper_takes_no_signal(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF };
	unsigned long long blocked;
	char line[256];

	assert_true(within_deadline(keeper_line("SigBlk:", line)));
	assert_int_equal(sscanf(line, "SigBlk: %llx", &blocked), 1);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		assert_true(blocked >> (signals[i] - 1) & 1);
}

/* On a thread that is scheduled as no other one is. */
static void *keep_apart(void *arg)
{
	const struct sched_param param = { .sched_priority = 0 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setscheduler(0, SCHED_BATCH, &param) ||
	    sched_setaffinity(0, sizeof(one), &one))
		return (void *)1;
	return (void *)(intptr_t)keep(MIB);
}

static bool scheduled_as_this_thread(pid_t thread)
{
	cpu_set_t ours, its;

	return sched_getscheduler(thread) == SCHED_OTHER &&
	       !sched_getaffinity(0, sizeof(ours), &ours) &&
	       !sched_getaffinity(thread, sizeof(its), &its) && CPU_EQUAL(&ours, &its);
}

static int be_apart(void)
{
	char keeper[32] = "";
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, keep_apart, NULL) || pthread_join(thread, &result) ||
	    result || !within_deadline((threads(keeper), keeper[0])))
		return 1;
	return within_deadline(scheduled_as_this_thread(atoi(keeper))) ? 0 : 2;
}

static void the_keeper_is_scheduled_as_the_program_is(void **state)
{
	assert_done("apart", "3600");
}

static void a_program_ends_while_the_keeper_runs(void **state)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(run("exit", "0"), 7 << 8);
		assert_int_equal(run("_exit", "0"), 8 << 8);
	}
}

static void a_program_whose_main_thread_ends_ends_when_nothing_is_kept(void **state)
{
	assert_done("pthread_exit", "1");
}

static void a_program_changes_its_user(void **state)
{
	assert_done("setuid", "3600");
}

/* The keeper has the user of the program too. */
static int be_nobody(void)
{
	char keeper[32] = "", line[256];
	int uid = -1;

	if (geteuid())
		return REFUSED;
	if (keep(MIB) || !within_deadline((threads(keeper), keeper[0])))
		return 1;
	/* what is done by the keeper is not, by another way, root's */
	if (setuid(NOBODY) || !thread_line(keeper, "status", "Uid:", line) ||
	    sscanf(line, "Uid: %*d %d", &uid) != 1)
		return 2;
	return uid == NOBODY ? 0 : 3;
}

static void a_program_has_its_own_user_namespace_when_nothing_is_kept(void **state)
{
	assert_done("unshare", "1");
}

static int be_unshared(void)
{
	if (keep(MIB))
		return 1;
	if (!unshare(CLONE_NEWUSER))
		return 0; /* this thread has not run for so long that nothing is kept any more */
	if (errno != EINVAL && errno != EUSERS)
		return errno == EPERM || errno == ENOSPC ? REFUSED : 2;
	return within_deadline(!unshare(CLONE_NEWUSER) || errno != EINVAL) ? 0 : 3;
}

static void a_program_that_forbids_threads_keeps_nothing(void **state)
{
	assert_done("seccomp", "3600");
}

/* Two system calls are refused from here on. */
static bool forbid(unsigned int first, unsigned int second)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int be_alone(void)
{
	char keeper[32];

	/* no thread and no process can be made */
	if (!forbid(SYS_clone, SYS_clone3))
		return REFUSED;
	for (int i = 0; i < 3; i++)
		if (keep(8 * MIB) || quarantined())
			return 1;
	return threads(keeper) == 1 ? 0 : 2;
}

static void a_program_that_forbids_punching_gives_memory_back(void **state)
{
	assert_done("fallocate", "3600");
}

static int be_without_fallocate(void)
{
	unsigned char vec = 1;
	char *addr;

	arena = arena_get();
	addr = arena ? allocate(MIB) : NULL;
	if (!addr || !forbid(SYS_fallocate, SYS_fallocate))
		return addr ? REFUSED : 1;
	if (arena_free(arena, addr))
		return 2;
	arena_trim(arena, 0);
	return quarantined() || mincore(addr, 1, &vec) || (vec & 1) ? 3 : 0;
}

static void what_is_kept_goes_when_memory_is_short(void **state)
{
	assert_done("pressure", "3600");
}

/* Returns the keeper's descriptor of what the kernel tells of pressure, or -1. */
static int trigger_fd(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[64];
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[len > 0 ? len : 0] = '\0';
		if (!strcmp(target, "/proc/pressure/memory"))
			fd = atoi(entry->d_name);
	}
	if (dir)
		closedir(dir);
	return fd;
}

/* Makes a connected pair of sockets: an urgent byte is what a trigger is to poll(2). */
static int make_pair(int pair[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);

	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &len) ||
	    connect(pair[0], (struct sockaddr *)&at, len))
		return -1;
	pair[1] = accept(listener, NULL, NULL);
	return pair[1] < 0 ? -1 : 0;
}

/* The keeper waits for a socket of ours in place of the kernel's file. */
static int be_short_of_memory(void)
{
	int pair[2], fd;

	if (keep(32 * MIB) || make_pair(pair))
		return 1;
	if (!within_deadline((fd = trigger_fd()) >= 0 || !arena->keeper_runs))
		return REFUSED;
	if (!quarantined())
		return 0; /* it is short of memory in earnest */
	if (quarantined() != 32 * MIB || dup2(pair[0], fd) != fd)
		return 2;
	if (send(pair[1], "!", 1, MSG_OOB) != 1)
		return 3;
	return within_deadline(!quarantined()) ? 0 : 4;
}

static int be(const char *what)
{
	if (!strcmp(what, "setuid"))
		return be_nobody();
	if (!strcmp(what, "unshare"))
		return be_unshared();
	if (!strcmp(what, "seccomp"))
		return be_alone();
	if (!strcmp(what, "fallocate"))
		return be_without_fallocate();
	if (!strcmp(what, "apart"))
		return be_apart();
	if (!strcmp(what, "pressure"))
		return be_short_of_memory();
	if (keep(64 * MIB))
		return 1;
	if (!strcmp(what, "exit"))
		exit(7);
	if (!strcmp(what, "_exit"))
		_exit(8);
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_in_the_middle_of_a_trim_leaves_a_sound_child),
		cmocka_unit_test(the_keeper_takes_no_signal),
		cmocka_unit_test(the_keeper_is_scheduled_as_the_program_is),
		cmocka_unit_test(a_program_ends_while_the_keeper_runs),
		cmocka_unit_test(a_program_whose_main_thread_ends_ends_when_nothing_is_kept),
		cmocka_unit_test(a_program_changes_its_user),
		cmocka_unit_test(a_program_has_its_own_user_namespace_when_nothing_is_kept),
		cmocka_unit_test(a_program_that_forbids_threads_keeps_nothing),
		cmocka_unit_test(a_program_that_forbids_punching_gives_memory_back),
		cmocka_unit_test(what_is_kept_goes_when_memory_is_short),
	};

	self = argv[0];
	if (argc > 1)
		return be(argv[1]);
	return cmocka_run_group_tests(tests, start, NULL);
}
