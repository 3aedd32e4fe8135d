/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the platform interface in a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "platform.h"
#include <cmocka.h>

static const size_t lens[] = { 0, 1, 63, 64, 65, 4096, 100000, 1 << 20, 40 << 20 };

static void alloc_gives_zeroed_cache_lines(void **state)
{
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i], step = len > 4096 ? 509 : 1;

		/* Twice: the second time from memory that was written. */
		for (int round = 0; round < 2; round++) {
			unsigned char *p = platform_alloc(len);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % CACHE_LINE, 0);
			for (size_t at = 0; at < len; at += step)
				assert_int_equal(p[at], 0);
			memset(p, 0xff, len);
			platform_free(p);
		}
	}
}

static void alloc_of_too_much_is_refused(void **state)
{
	assert_null(platform_alloc(SIZE_MAX));
	assert_null(platform_alloc(SIZE_MAX - CACHE_LINE + 1));
	assert_null(platform_alloc((size_t)PTRDIFF_MAX));
}

static void free_takes_null(void **state)
{
	platform_free(NULL);
}

static void time_does_not_go_back(void **state)
{
	uint64_t last = platform_now_ns();

	for (int i = 0; i < 1000; i++) {
		uint64_t now = platform_now_ns();

		assert_true(now >= last);
		last = now;
		platform_relax();
	}
	platform_yield();
	assert_true(platform_now_ns() >= last);
}

static void random_bytes_differ(void **state)
{
	unsigned char a[1024] = { 0 }, b[1024] = { 0 };

	assert_int_equal(platform_random(a, sizeof(a)), 0);
	assert_int_equal(platform_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	/* The last 16 bytes were written too. */
	assert_memory_not_equal(a + sizeof(a) - 16, b + sizeof(b) - 16, 16);
	assert_int_equal(platform_random(a, 0), 0);
}

struct shared {
	struct platform_lock lock;
	long count;
};

static void *count_up(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < 10000; i++) {
		platform_lock(&s->lock);
		s->count++;
		platform_unlock(&s->lock);
	}
	return NULL;
}

static void the_bound_on_descriptors_is_that_of_the_process(void **state)
{
	struct rlimit limit, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = 77;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(platform_descriptor_max(), 77);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void lock_excludes(void **state)
{
	struct shared s = { .count = 0 };
	pthread_t other;

	platform_lock_init(&s.lock);
	assert_int_equal(pthread_create(&other, NULL, count_up, &s), 0);
	count_up(&s);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(s.count, 20000);
	platform_lock_fini(&s.lock);
}

static void trylock_does_not_wait(void **state)
{
	struct platform_lock lock;

	platform_lock_init(&lock);
	assert_true(platform_trylock(&lock));
	assert_false(platform_trylock(&lock));
	platform_unlock(&lock);
	platform_lock(&lock);
	assert_false(platform_trylock(&lock));
	platform_unlock(&lock);
	platform_lock_fini(&lock);
}

struct work {
	struct platform_thread thread;
	struct platform_lock lock;
	_Atomic uint64_t rounds, nap_ns;
	_Atomic bool signals_blocked;
};

static uint64_t work_round(void *arg)
{
	struct work *w = arg;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	atomic_store(&w->signals_blocked,
		     sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1));
	if (platform_trylock(&w->lock)) {
		atomic_fetch_add(&w->rounds, 1);
		platform_unlock(&w->lock);
	}
	return atomic_load(&w->nap_ns);
}

static int start(struct work *w, const char *name)
{
	const struct platform_work work = { .name = name, .round = work_round, .arg = w };

	return platform_thread_start(&w->thread, &work);
}

static void wait_rounds(struct work *w, uint64_t cnt)
{
	uint64_t end = platform_now_ns() + 10000000000u;

	while (atomic_load(&w->rounds) < cnt) {
		assert_true(platform_now_ns() < end);
		platform_yield();
	}
}

static void a_thread_works_until_it_is_stopped(void **state)
{
	struct work w = { .nap_ns = 1000 };
	uint64_t rounds;

	platform_lock_init(&w.lock);
	platform_thread_stop(&w.thread); /* of none: nothing */
	platform_thread_wake(&w.thread);
	assert_int_equal(start(&w, "a name that is too long"), 0);
	wait_rounds(&w, 100);
	assert_true(atomic_load(&w.signals_blocked));
	platform_thread_stop(&w.thread);
	rounds = atomic_load(&w.rounds);
	platform_thread_stop(&w.thread);
	platform_yield();
	assert_int_equal(atomic_load(&w.rounds), rounds);
	platform_lock_fini(&w.lock);
}

static void *stop_cancelled(void *arg)
{
	struct work *w = arg;

	pthread_cancel(pthread_self());
	platform_thread_stop(&w->thread);
	atomic_store(&w->rounds, UINT64_MAX);
	pthread_testcancel();
	return NULL;
}

static void who_stops_a_thread_is_not_cancelled_meanwhile(void **state)
{
	struct work w = { .nap_ns = 1000 };
	void *result = NULL;
	pthread_t id;

	platform_lock_init(&w.lock);
	assert_int_equal(start(&w, "stopped"), 0);
	wait_rounds(&w, 1);
	assert_int_equal(pthread_create(&id, NULL, stop_cancelled, &w), 0);
	assert_int_equal(pthread_join(id, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(atomic_load(&w.rounds) == UINT64_MAX);
	assert_false(platform_thread_runs(&w.thread));
	platform_lock_fini(&w.lock);
}

static void a_thread_that_naps_can_be_woken(void **state)
{
	struct work w = { .nap_ns = 3600000000000u };
	uint64_t begin = platform_now_ns();

	platform_lock_init(&w.lock);
	assert_int_equal(start(&w, "nap"), 0);
	wait_rounds(&w, 1);
	for (int i = 0; i < 3; i++) {
		platform_thread_wake(&w.thread);
		wait_rounds(&w, (uint64_t)i + 2);
	}
	platform_thread_stop(&w.thread);
	assert_true(platform_now_ns() - begin < 60000000000u);
	platform_lock_fini(&w.lock);
}

/* A thread whose naps end by a bell too. */
struct sleeper {
	struct work work;
	struct platform_bell bell;
	_Atomic int woken;
};

static uint64_t sleeper_round(void *arg)
{
	struct sleeper *s = arg;

	platform_bell_clear(&s->bell);
	return work_round(&s->work);
}

static bool sleeper_on(void *arg, struct platform_wakers *on)
{
	struct sleeper *s = arg;

	*on = (struct platform_wakers){ .bell = &s->bell, .descriptor = -1 };
	return true;
}

static void sleeper_wake(void *arg)
{
	struct sleeper *s = arg;

	atomic_fetch_add(&s->woken, 1);
	platform_bell_ring(&s->bell);
}

static void a_thread_that_sleeps_on_a_bell_is_woken_by_it(void **state)
{
	struct sleeper s = { .work.nap_ns = UINT64_MAX };
	const struct platform_work work = {
		.name = "sleep_on",
		.round = sleeper_round,
		.sleep_on = sleeper_on,
		.wake = sleeper_wake,
		.arg = &s,
	};

	platform_lock_init(&s.work.lock);
	assert_int_equal(platform_bell_open(&s.bell), 0);
	assert_int_equal(platform_thread_start(&s.work.thread, &work), 0);
	wait_rounds(&s.work, 1);
	platform_thread_wake(&s.work.thread);
	wait_rounds(&s.work, 2);
	platform_bell_ring(&s.bell);
	wait_rounds(&s.work, 3);
	platform_thread_stop(&s.work.thread);
	assert_int_equal(atomic_load(&s.woken), 2);
	platform_bell_close(&s.bell);
	platform_lock_fini(&s.work.lock);
}

/* At whatever time the process forks, the thread holds nothing in the child. */
static void a_forked_child_has_no_thread_and_no_lock_held(void **state)
{
	struct work w = { .nap_ns = 1 };

	platform_lock_init(&w.lock);
	assert_int_equal(start(&w, "fork"), 0);
	for (int i = 0; i < 50; i++) {
		int status;
		pid_t pid;

		wait_rounds(&w, (uint64_t)i + 1);
		pid = fork();
		if (!pid) {
			alarm(600);
			platform_lock(&w.lock);
			platform_unlock(&w.lock);
			platform_thread_wake(&w.thread);
			if (platform_thread_runs(&w.thread))
				_exit(1);
			platform_thread_stop(&w.thread);
			_exit(0);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_true(platform_thread_runs(&w.thread));
	wait_rounds(&w, atomic_load(&w.rounds) + 1);
	platform_thread_stop(&w.thread);
	assert_false(platform_thread_runs(&w.thread));
	platform_lock_fini(&w.lock);
}

static bool forks_in_create;

/* The linker leads pthread_create() here. */
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg)
{
	struct platform_thread *t = arg;
	sigset_t deadline;
	int status = -1;
	pid_t pid;

	if (!forks_in_create)
		return __real_pthread_create(id, attr, main, arg);
	/* The alarm ends this process, and a fork that waits for ever is in it. Signals are blocked here. */
	sigemptyset(&deadline);
	sigaddset(&deadline, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &deadline, NULL);
	alarm(600);
	pid = fork();
	if (!pid)
		_exit(platform_thread_runs(t) || pthread_mutex_trylock(&t->round_lock));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	alarm(0);
	pthread_sigmask(SIG_BLOCK, &deadline, NULL);
	return __real_pthread_create(id, attr, main, arg);
}

/* It allocates, and an allocator may have taken its locks for a fork that waits for ours. */
static void a_fork_waits_for_no_thread_that_is_created(void **state)
{
	struct work w = { .nap_ns = 1 };

	platform_lock_init(&w.lock);
	forks_in_create = true;
	assert_int_equal(start(&w, "create"), 0);
	forks_in_create = false;
	wait_rounds(&w, 10);
	platform_thread_stop(&w.thread);
	platform_lock_fini(&w.lock);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void a_bell_rings(void **state)
{
	struct platform_bell bell;

	assert_int_equal(platform_bell_open(&bell), 0);
	assert_false(readable(platform_bell_descriptor(&bell)));
	platform_bell_ring(&bell);
	assert_true(readable(platform_bell_descriptor(&bell)));
	platform_bell_clear(&bell);
	assert_false(readable(platform_bell_descriptor(&bell)));
	platform_bell_close(&bell);
}

static struct platform_bell handled;

static void ring_handled(int signal)
{
	platform_bell_ring(&handled);
}

/* Whatever is held there: a lock of the C library's, for one. */
static void a_bell_is_rung_from_a_signal_handler(void **state)
{
	struct platform_wakers on = { .bell = &handled, .descriptor = -1 };
	struct sigaction action = { .sa_handler = ring_handled }, before;
	uint64_t begin = platform_now_ns();

	assert_int_equal(platform_bell_open(&handled), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	platform_sleep(&on, 60000000000u);
	assert_true(platform_now_ns() - begin < 30000000000u);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	platform_bell_close(&handled);
}

static void a_poll_set_is_readable_for_what_is_in_it_and_when_it_is_rung(void **state)
{
	struct platform_bell bell;
	int inner, poll_sets[2], fresh;

	assert_int_equal(platform_bell_open(&bell), 0);
	assert_int_equal(platform_poll_set_open(NULL, &inner), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(platform_poll_set_open(&bell, &poll_sets[i]), 0);
		assert_int_equal(platform_poll_set_add(poll_sets[i], inner), 0);
		assert_false(readable(poll_sets[i]));
	}
	platform_poll_set_ring(poll_sets[0], &bell);
	assert_true(readable(poll_sets[0]));
	assert_false(readable(poll_sets[1]));
	platform_poll_set_clear(poll_sets[0], &bell);
	platform_bell_ring(&bell);
	assert_false(readable(poll_sets[0]));
	assert_int_equal(platform_poll_set_add(inner, platform_bell_descriptor(&bell)), 0);
	assert_true(readable(poll_sets[0]) && readable(poll_sets[1]));
	platform_poll_set_remove(poll_sets[0], inner);
	assert_false(readable(poll_sets[0]));
	/* The number stays, the file behind it does not. */
	assert_int_equal(platform_poll_set_open(NULL, &fresh), 0);
	assert_int_equal(platform_descriptor_renew(poll_sets[1], fresh), 0);
	assert_false(readable(poll_sets[1]));
	assert_int_equal(platform_poll_set_add(poll_sets[1], inner), 0);
	assert_true(readable(poll_sets[1]));
	for (int i = 0; i < 2; i++)
		platform_poll_set_close(poll_sets[i]);
	platform_poll_set_close(inner);
	platform_bell_close(&bell);
}

static void sleep_ends_by_a_timer(void **state)
{
	struct platform_wakers on = { .bell = NULL };
	uint64_t begin = platform_now_ns();
	int timer;

	assert_int_equal(platform_timer_open(&timer), 0);
	platform_timer_set(timer, 2000000);
	on.descriptor = timer;
	platform_sleep(&on, UINT64_MAX);
	assert_true(platform_now_ns() - begin >= 2000000);
	platform_timer_set(timer, 0);
	assert_false(readable(timer));
	platform_timer_close(timer);
	platform_sleep(NULL, 1000000);
	assert_true(platform_now_ns() - begin >= 3000000);
}

static void forks_are_counted(void **state)
{
	uint32_t before = platform_forks();
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(platform_forks() != before + 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(platform_forks(), before);
}

/* What happens to a hold, and to one that is watched no more, around a fork. */
static char held_by[2];

static void note_hold(struct platform_hold *hold)
{
	held_by[0] = 'h';
}

static void note_release(struct platform_hold *hold, bool child)
{
	held_by[1] = child ? 'c' : 'p';
}

static void a_hold_is_released_in_both_processes(void **state)
{
	struct platform_hold first = { .hold = note_hold, .release = note_release };
	struct platform_hold other = { .hold = note_hold, .release = note_release };
	int status;
	pid_t pid;

	platform_hold_watch(&other);
	platform_hold_watch(&first);
	platform_hold_watch(&first);
	platform_hold_unwatch(&other);
	platform_hold_unwatch(&other);
	pid = fork();
	if (!pid)
		_exit(held_by[0] != 'h' || held_by[1] != 'c');
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(held_by[0], 'h');
	assert_int_equal(held_by[1], 'p');
	platform_hold_unwatch(&first);
	held_by[0] = 0;
	pid = fork();
	if (!pid)
		_exit(held_by[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(held_by[0], 0);
}

/* A thread's round that is under way when the process forks, and waits for what is held innermost. */
static struct {
	struct platform_hold outer, middle, inner;
	struct platform_lock lock;
	_Atomic bool in_round, forks, inner_held;
	/* a letter for each hold */
	char order[8];
} held;

static void outer_hold(struct platform_hold *hold)
{
	uint64_t end = platform_now_ns() + 10000000000u;

	strcat(held.order, "o");
	while (!held.in_round && platform_now_ns() < end)
		platform_yield();
	held.forks = true;
}

static void middle_hold(struct platform_hold *hold)
{
	strcat(held.order, "m");
}

static void inner_hold(struct platform_hold *hold)
{
	strcat(held.order, "i");
	platform_lock(&held.lock);
	held.inner_held = true;
}

static void inner_release(struct platform_hold *hold, bool child)
{
	platform_unlock(&held.lock);
}

static void no_release(struct platform_hold *hold, bool child)
{
}

/* If the lock were held by now, this round would not end, and the fork would wait for it. */
static uint64_t waiting_round(void *arg)
{
	uint64_t end = platform_now_ns() + 10000000000u;

	held.in_round = true;
	while (!held.forks && platform_now_ns() < end)
		platform_yield();
	/* time for a fork that does not wait for the end of this round */
	for (end = platform_now_ns() + 100000000u; !held.inner_held && platform_now_ns() < end;)
		platform_yield();
	platform_lock(&held.lock);
	platform_unlock(&held.lock);
	return 100000;
}

static void holds_are_taken_by_rank_and_the_innermost_after_all_rounds(void **state)
{
	const struct platform_work work = { .name = "round", .round = waiting_round };
	struct platform_thread thread = { .stop = false };
	int status;
	pid_t pid;

	held.outer = (struct platform_hold){ .hold = outer_hold, .release = no_release };
	held.middle = (struct platform_hold){ .rank = PLATFORM_HOLD_INNER - 1,
					      .hold = middle_hold,
					      .release = no_release };
	held.inner = (struct platform_hold){ .rank = PLATFORM_HOLD_INNER,
					     .hold = inner_hold,
					     .release = inner_release };
	platform_lock_init(&held.lock);
	platform_hold_watch(&held.middle);
	platform_hold_watch(&held.inner);
	platform_hold_watch(&held.outer);
	assert_int_equal(platform_thread_start(&thread, &work), 0);
	alarm(600);
	pid = fork();
	if (!pid)
		_exit(strcmp(held.order, "omi") != 0);
	alarm(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	platform_thread_stop(&thread);
	platform_hold_unwatch(&held.middle);
	platform_hold_unwatch(&held.inner);
	platform_hold_unwatch(&held.outer);
	platform_lock_fini(&held.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alloc_gives_zeroed_cache_lines),
		cmocka_unit_test(alloc_of_too_much_is_refused),
		cmocka_unit_test(free_takes_null),
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(random_bytes_differ),
		cmocka_unit_test(the_bound_on_descriptors_is_that_of_the_process),
		cmocka_unit_test(lock_excludes),
		cmocka_unit_test(trylock_does_not_wait),
		cmocka_unit_test(a_thread_works_until_it_is_stopped),
		cmocka_unit_test(who_stops_a_thread_is_not_cancelled_meanwhile),
		cmocka_unit_test(a_thread_that_naps_can_be_woken),
		cmocka_unit_test(a_forked_child_has_no_thread_and_no_lock_held),
		cmocka_unit_test(a_fork_waits_for_no_thread_that_is_created),
		cmocka_unit_test(a_thread_that_sleeps_on_a_bell_is_woken_by_it),
		cmocka_unit_test(a_bell_rings),
		cmocka_unit_test(a_bell_is_rung_from_a_signal_handler),
		cmocka_unit_test(a_poll_set_is_readable_for_what_is_in_it_and_when_it_is_rung),
		cmocka_unit_test(sleep_ends_by_a_timer),
		cmocka_unit_test(forks_are_counted),
		cmocka_unit_test(a_hold_is_released_in_both_processes),
		cmocka_unit_test(holds_are_taken_by_rank_and_the_innermost_after_all_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
