/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocking over the real library and each provider: a thread that sleeps is woken by input of the
 * wires, by other threads, and by the death of a peer. Threads of one process, each with an
 * endpoint of its own unless a test says otherwise, and processes that are killed.
 *
 *	usage: block_test PROVIDER
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ends.h"

#define ROUNDS	60
#define TIMEOUT 20000 /* ms */
#define TAG	7

static const char *provider;

static char in[64], out[64];
static struct fi_context2 context;

/* How a side waits. */
enum how { BY_READ, BY_COUNTER, BY_SET, BY_DESCRIPTOR, HOWS };

struct side {
	struct end end;
	struct fid_wait *set;
	fi_addr_t to;
	enum how how;
	int rounds;
	int failed; /* line */
	char in[64], out[64];
	struct fi_context2 context;
};

static void side_open(struct side *s, enum how how, enum fi_threading threading)
{
	static const enum fi_wait_obj objs[] = {
		[BY_READ] = FI_WAIT_UNSPEC,
		[BY_COUNTER] = FI_WAIT_UNSPEC,
		[BY_SET] = FI_WAIT_SET,
		[BY_DESCRIPTOR] = FI_WAIT_FD,
	};
	struct end_attr attr = { .provider = provider,
				 .threading = threading,
				 .cq_wait = objs[how],
				 .cntr_wait = objs[how],
				 .caps = FI_DIRECTED_RECV };
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *info;
	struct fid_fabric *fabric;

	*s = (struct side){ .how = how, .rounds = ROUNDS };
	info = end_info(&attr);
	assert_non_null(info);
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	fi_freeinfo(info);
	if (how == BY_SET)
		assert_int_equal(fi_wait_open(fabric, &wait_attr, &s->set), 0);
	attr.wait_set = s->set;
	end_open_in(&s->end, &attr, fabric);
	s->end.fabric = fabric;
}

static void side_close(struct side *s)
{
	struct fid_fabric *fabric = s->end.fabric;

	s->end.fabric = NULL;
	end_close(&s->end);
	if (s->set)
		assert_int_equal(fi_close(&s->set->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
}

/* In a thread: what fails is noted. */
#define NOTE(s, cond)                           \
	do {                                    \
		if (!(cond)) {                  \
			(s)->failed = __LINE__; \
			return false;           \
		}                               \
	} while (0)

/* Sleep in a set of descriptors of the program's until the queue has something; 1, or what it has. */
static ssize_t read_by_descriptor(struct side *s, struct fi_cq_tagged_entry *entry)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct fid *fids[] = { &s->end.cq->fid };
	int set = epoll_create1(EPOLL_CLOEXEC), fd = -1;
	ssize_t ret = -FI_EIO;

	if (fi_control(&s->end.cq->fid, FI_GETWAIT, &fd) ||
	    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		goto out;
	while ((ret = fi_cq_read(s->end.cq, entry, 1)) == -FI_EAGAIN)
		if (!fi_trywait(s->end.fabric, fids, 1) &&
		    epoll_wait(set, &event, 1, TIMEOUT) != 1 && errno != EINTR)
			break; /* not for a process that was stopped */
out:
	close(set);
	return ret;
}

/* One more message, the @cnt-th. */
static bool wait_message(struct side *s, uint64_t cnt)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n = -FI_EAGAIN;

	switch (s->how) {
	case BY_READ:
		n = fi_cq_sread(s->end.cq, &entry, 1, NULL, TIMEOUT);
		break;
	case BY_COUNTER:
		NOTE(s, !fi_cntr_wait(s->end.rx, cnt, TIMEOUT));
		n = fi_cq_read(s->end.cq, &entry, 1);
		break;
	case BY_SET:
		while ((n = fi_cq_read(s->end.cq, &entry, 1)) == -FI_EAGAIN) {
			NOTE(s, !fi_wait(s->set, TIMEOUT));
			fi_cntr_read(s->end.rx);
			fi_cntr_read(s->end.tx);
		}
		break;
	default:
		n = read_by_descriptor(s, &entry);
		break;
	}
	NOTE(s, n == 1 && entry.flags & FI_RECV);
	return true;
}

static bool post(struct side *s)
{
	struct iovec iov = { s->in, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .tag = TAG,
				     .context = &s->context };

	NOTE(s, !fi_trecvmsg(s->end.ep, &msg, FI_COMPLETION));
	return true;
}

static bool say(struct side *s)
{
	ssize_t ret;

	while ((ret = fi_tinject(s->end.ep, s->out, 8, s->to, TAG)) == -FI_EAGAIN)
		fi_cq_read(s->end.cq, NULL, 0);
	NOTE(s, !ret);
	return true;
}

static void *answer(void *arg)
{
	struct side *s = arg;

	for (int i = 0; i < s->rounds; i++)
		if (!post(s) || !wait_message(s, (uint64_t)i + 1) || !say(s))
			break;
	return NULL;
}

/* Returns how many of the wake-ups came at once. */
static int woken_at_once(enum how how)
{
	static struct side a, b;
	pthread_t thread;
	int quick = 0;

	side_open(&a, BY_READ, FI_THREAD_DOMAIN);
	side_open(&b, how, how % 2 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE);
	a.to = end_knows(&a.end, &b.end);
	b.to = end_knows(&b.end, &a.end);
	assert_int_equal(pthread_create(&thread, NULL, answer, &b), 0);
	for (int i = 0; i < ROUNDS; i++) {
		double start;

		assert_true(post(&a));
		usleep(2000); /* so that the other side sleeps */
		start = end_now();
		assert_true(say(&a) && wait_message(&a, (uint64_t)i + 1));
		quick += end_now() - start < 0.02;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(b.failed, 0);
	print_message("%d: %d of %d wake-ups at once\n", how, quick, ROUNDS);
	side_close(&a);
	side_close(&b);
	return quick;
}

/*
 * The engine bounds its sleeps at 50 ms for other reasons: most wake-ups come long before, where the
 * machine has time for both sides.
 */
static void each_way_to_wait_is_woken(void **state)
{
	for (int how = 0; how < HOWS; how++) {
		int quick = 0;

		for (int i = 0; i < 10 && quick <= ROUNDS / 2; i++)
			quick = woken_at_once((enum how)how);
		assert_true(quick > ROUNDS / 2);
	}
}

/* A thread that waits for many entries is woken when they are there. */
static void *wait_for_many(void *arg)
{
	struct side *s = arg;

	if (fi_cntr_wait(s->end.rx, ROUNDS, TIMEOUT))
		s->failed = __LINE__;
	return NULL;
}

static void a_counter_is_waited_for_until_it_has_a_value(void **state)
{
	static struct side a, b;
	pthread_t thread;

	side_open(&a, BY_READ, FI_THREAD_SAFE);
	side_open(&b, BY_COUNTER, FI_THREAD_SAFE);
	a.to = end_knows(&a.end, &b.end);
	for (int i = 0; i < ROUNDS; i++)
		assert_true(post(&b));
	assert_int_equal(pthread_create(&thread, NULL, wait_for_many, &b), 0);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(fi_cntr_read(b.end.rx) > (uint64_t)i, 0);
		assert_true(say(&a));
		END_UNTIL(fi_cntr_read(b.end.rx) > (uint64_t)i, fi_cq_read(a.end.cq, NULL, 0));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(b.failed, 0);
	/* By the program's own hand, from another thread. */
	assert_int_equal(fi_cntr_set(b.end.rx, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_many, &b), 0);
	usleep(2000);
	assert_int_equal(fi_cntr_add(b.end.rx, ROUNDS), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(b.failed, 0);
	side_close(&a);
	side_close(&b);
}

/* Event queues */

static void *read_event(void *arg)
{
	struct fi_eq_entry entry;
	uint32_t event;

	return (void *)(intptr_t)fi_eq_sread(arg, &event, &entry, sizeof(entry), TIMEOUT, 0);
}

static void events_wake(enum fi_wait_obj obj)
{
	struct fi_eq_attr eq_attr = { .wait_obj = obj, .flags = FI_WRITE };
	struct fi_eq_entry entry = { .data = 1 };
	static struct side a;
	struct fid_fabric *fabric;
	pthread_t threads[2];
	struct fid_eq *eq;
	double start;
	void *ret;

	side_open(&a, BY_READ, FI_THREAD_SAFE);
	fabric = a.end.fabric;
	assert_int_equal(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_domain_bind(a.end.domain, &eq->fid, 0), 0);
	start = end_now();
	for (int n = 0; n < 30; n++) {
		for (int t = 0; t < 2; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, read_event, eq), 0);
		for (int t = 0; t < 2; t++) {
			usleep(1000);
			assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0),
					 sizeof(entry));
		}
		for (int t = 0; t < 2; t++) {
			assert_int_equal(pthread_join(threads[t], &ret), 0);
			assert_int_equal((intptr_t)ret, sizeof(entry));
		}
	}
	assert_true(end_now() - start < 15);
	a.end.fabric = NULL;
	end_close(&a.end);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
}

static void an_event_wakes_whoever_sleeps(void **state)
{
	events_wake(FI_WAIT_UNSPEC);
	events_wake(FI_WAIT_FD);
}

/* Death */

#define MUST(cond)                                 \
	do {                                       \
		if (!(cond))                       \
			_exit(1 + __LINE__ % 255); \
	} while (0)

/* In the child: says hello to the parent, and ends without a word when it is answered. */
static void die(int from, int to)
{
	struct end_attr attr = { .provider = provider, .no_cntr = true };
	char name[128] = "", parent[128];
	struct fi_cq_tagged_entry entry;
	size_t len = sizeof(name);
	struct end e;
	fi_addr_t addr;

	alarm(600);
	end_open(&e, &attr);
	MUST(!fi_getname(&e.ep->fid, name, &len));
	MUST(write(to, name, sizeof(name)) == sizeof(name));
	MUST(read(from, parent, sizeof(parent)) == sizeof(parent));
	MUST(fi_av_insert(e.av, parent, 1, &addr, 0, NULL) == 1);
	MUST(!fi_trecv(e.ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context));
	END_UNTIL(!fi_tinject(e.ep, out, 8, addr, TAG), fi_cq_read(e.cq, NULL, 0));
	END_UNTIL(fi_cq_read(e.cq, &entry, 1) == 1, );
	usleep(20000); /* the parent sleeps by now, or will after this process has ended */
	kill(getpid(), SIGKILL);
}

static void the_death_of_a_peer_wakes(enum how how)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	int up[2], down[2], status;
	char name[128] = "";
	size_t len = sizeof(name);
	static struct side a;
	double start;
	pid_t pid;

	assert_int_equal(pipe(up) | pipe(down), 0);
	pid = fork();
	if (!pid)
		die(down[0], up[1]);
	assert_true(pid > 0);
	side_open(&a, how, FI_THREAD_DOMAIN);
	assert_int_equal(fi_getname(&a.end.ep->fid, name, &len), 0);
	assert_int_equal(write(down[1], name, sizeof(name)), sizeof(name));
	assert_int_equal(read(up[0], name, sizeof(name)), sizeof(name));
	assert_int_equal(fi_av_insert(a.end.av, name, 1, &a.to, 0, NULL), 1);
	assert_true(post(&a));
	assert_true(wait_message(&a, 1));
	assert_int_equal(fi_trecv(a.end.ep, in, 8, NULL, a.to, TAG + 1, 0, &context), 0);
	assert_true(say(&a));
	start = end_now();
	if (how == BY_DESCRIPTOR)
		assert_int_equal(read_by_descriptor(&a, &entry), -FI_EAVAIL);
	else
		assert_int_equal(fi_cq_sread(a.end.cq, &entry, 1, NULL, TIMEOUT), -FI_EAVAIL);
	assert_true(end_now() - start < 10);
	print_message("an error %.0f ms after its last message\n", (end_now() - start) * 1e3);
	assert_int_equal(fi_cq_readerr(a.end.cq, &error, 0), 1);
	assert_ptr_equal(error.op_context, &context);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	side_close(&a);
	for (int i = 0; i < 2; i++) {
		close(up[i]);
		close(down[i]);
	}
}

static void the_death_of_a_peer_wakes_a_reader(void **state)
{
	the_death_of_a_peer_wakes(BY_READ);
}

static void the_death_of_a_peer_wakes_by_a_descriptor(void **state)
{
	the_death_of_a_peer_wakes(BY_DESCRIPTOR);
}

/* What it costs */

/* Descriptors of this process that are of a kind. */
static int count_of(const char *kind)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int cnt = 0;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		char path[300], to[300] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		if (readlink(path, to, sizeof(to) - 1) > 0)
			cnt += strstr(to, kind) != NULL;
	}
	closedir(dir);
	return cnt;
}

static int thread_cnt(void)
{
	DIR *dir = opendir("/proc/self/task");
	int cnt = -2;

	assert_non_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

static void who_polls_opens_nothing_and_nobody_gets_a_thread(void **state)
{
	struct fi_cq_tagged_entry entry;
	static struct side a, b;
	int threads = thread_cnt();

	for (int how = BY_READ; how < HOWS; how++) {
		int bells = count_of("[eventfd]"), timers = count_of("[timerfd]");

		side_open(&a, BY_READ, FI_THREAD_DOMAIN);
		side_open(&b, (enum how)how, FI_THREAD_DOMAIN);
		a.to = end_knows(&a.end, &b.end);
		assert_true(post(&b));
		END_TAKEN(fi_tinject(a.end.ep, a.out, 8, a.to, TAG),
			  fi_cq_read(b.end.cq, NULL, 0));
		END_UNTIL(fi_cq_read(b.end.cq, &entry, 1) == 1, fi_cq_read(a.end.cq, NULL, 0));
		assert_int_equal(count_of("[timerfd]"), timers + (how == BY_DESCRIPTOR));
		assert_int_equal(count_of("[eventfd]"), bells + (how == BY_DESCRIPTOR));
		END_UNTIL(count_of("[timerfd]") == timers + 1 + (how == BY_DESCRIPTOR),
			  assert_int_equal(fi_cq_sread(a.end.cq, &entry, 1, NULL, 5),
					   -FI_EAGAIN));
		assert_true(thread_cnt() <= threads); /* which may count one that is ending */
		side_close(&a);
		side_close(&b);
		assert_int_equal(count_of("[timerfd]"), timers);
		assert_int_equal(count_of("[eventfd]"), bells);
	}
}

/* Sleeps cost no processor: what is spent on looking before it sleeps is bounded. */
static void who_sleeps_uses_no_processor(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct timespec cpu[2];
	static struct side a, b;
	double spent;

	side_open(&a, BY_READ, FI_THREAD_DOMAIN);
	side_open(&b, BY_READ, FI_THREAD_DOMAIN);
	a.to = end_knows(&a.end, &b.end);
	assert_true(post(&b));
	END_TAKEN(fi_tinject(a.end.ep, a.out, 8, a.to, TAG), fi_cq_read(b.end.cq, NULL, 0));
	END_UNTIL(fi_cq_read(b.end.cq, &entry, 1) == 1, fi_cq_read(a.end.cq, NULL, 0));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[0]);
	assert_int_equal(fi_cq_sread(a.end.cq, &entry, 1, NULL, 1000), -FI_EAGAIN);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[1]);
	spent = (double)(cpu[1].tv_sec - cpu[0].tv_sec) +
		(double)(cpu[1].tv_nsec - cpu[0].tv_nsec) / 1e9;
	print_message("%.2f ms of processor in a second\n", spent * 1e3);
	assert_true(spent < 0.1);
	side_close(&a);
	side_close(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_to_wait_is_woken),
		cmocka_unit_test(a_counter_is_waited_for_until_it_has_a_value),
		cmocka_unit_test(an_event_wakes_whoever_sleeps),
		cmocka_unit_test(the_death_of_a_peer_wakes_a_reader),
		cmocka_unit_test(the_death_of_a_peer_wakes_by_a_descriptor),
		cmocka_unit_test(who_polls_opens_nothing_and_nobody_gets_a_thread),
		cmocka_unit_test(who_sleeps_uses_no_processor),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
