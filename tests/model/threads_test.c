/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs with several threads, over the real library and each provider: four threads on one
 * endpoint, and four threads with an endpoint in a domain each, which take no lock.
 *
 * usage: threads_test PROVIDER
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define THREADS	     4
#define EXCHANGES    300
#define CONTROLS     200
#define FLAG_CHANGES 50000
#define WARM	     20 /* exchanges in which connections are made and pools grow */
#define LEN_MAX	     100000
#define TAG(n)	     ((uint64_t)(n) << 32)

static const char *provider;

/* Locks */

static __thread bool counting;
static __thread uint64_t locks;

#ifdef COUNT_LOCKS
typedef int (*lock_call)(pthread_mutex_t *);

/* These two stand before those of the C library, for all of the process. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static lock_call real;

	locks += counting;
	if (!real)
		real = (lock_call)dlsym(RTLD_NEXT, "pthread_mutex_lock");
	return real(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	static lock_call real;
	int ret;

	if (!real)
		real = (lock_call)dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	ret = real(mutex);
	locks += counting && !ret;
	return ret;
}
#endif

static void locks_are_counted(void **state)
{
#ifdef COUNT_LOCKS
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct end_attr attr = { .provider = provider,
				 .threading = FI_THREAD_SAFE,
				 .no_cntr = true };
	struct end e;

	locks = 0;
	counting = true;
	pthread_mutex_lock(&mutex);
	counting = false;
	pthread_mutex_unlock(&mutex);
	assert_int_equal(locks, 1);
	/* Those of the library too. */
	end_open(&e, &attr);
	locks = 0;
	counting = true;
	fi_cq_read(e.cq, NULL, 0);
	counting = false;
	assert_true(locks > 0);
	end_close(&e);
#else
	skip();
#endif
}

static void closing_takes_the_lock_once(void **state)
{
#ifdef COUNT_LOCKS
	struct end_attr attr = { .provider = provider, .threading = FI_THREAD_SAFE };
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct end e;

	end_open(&e, &attr);
	assert_int_equal(fi_cntr_open(e.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cq_open(e.domain, NULL, &cq, NULL), 0);
	counting = true;
	locks = 0;
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(locks, 1);
	locks = 0;
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(locks, 1);
	counting = false;
	end_close(&e);
#else
	skip();
#endif
}

/* One thread exchanges messages with another one. */

struct op {
	struct fi_context2 context; /* first: completions point here */
	_Atomic bool done;
	size_t len;
};

struct worker {
	pthread_t thread;
	struct end *end;
	fi_addr_t peer;
	int id, partner; /* what it sends has the partner's id in the tag */
	struct op send, recv;
	char out[LEN_MAX], in[LEN_MAX];
	uint64_t locks;
	const char *wrong; /* what went wrong first */
};

#define WORKER_CHECK(w, cond)               \
	do {                                \
		if (!(cond)) {              \
			(w)->wrong = #cond; \
			return;             \
		}                           \
	} while (0)

static size_t len_of(int n)
{
	static const size_t lens[] = { 8, 64, 1, 0, 300, 8, 5000, 8, 200, LEN_MAX };

	return lens[n % 10];
}

static char byte_of(int from, int n, size_t at)
{
	return (char)(from * 31 + n * 7 + (int)(at % 251));
}

/* Whoever finds a completion, it may be another thread's. */
static void drive(struct worker *w)
{
	struct fi_cq_tagged_entry entry[4];
	ssize_t n = fi_cq_read(w->end->cq, entry, 4);

	WORKER_CHECK(w, n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		struct op *op = entry[i].op_context;

		if (entry[i].flags & FI_RECV)
			op->len = entry[i].len;
		atomic_store_explicit(&op->done, true, memory_order_release);
	}
	if (n < 0)
		sched_yield();
}

static void exchange(struct worker *w, int n)
{
	double end = end_now() + 60;
	ssize_t ret;

	atomic_store(&w->send.done, false);
	atomic_store(&w->recv.done, false);
	for (size_t i = 0; i < len_of(n); i++)
		w->out[i] = byte_of(w->id, n, i);
	ret = fi_trecv(w->end->ep, w->in, LEN_MAX, NULL, FI_ADDR_UNSPEC,
		       TAG(w->id) | (uint64_t)n, 0, &w->recv.context);
	WORKER_CHECK(w, !ret);
	while ((ret = fi_tsend(w->end->ep, w->out, len_of(n), NULL, w->peer,
			       TAG(w->partner) | (uint64_t)n, &w->send.context)) == -FI_EAGAIN &&
	       !w->wrong)
		drive(w);
	WORKER_CHECK(w, !ret);
	while (!w->wrong && (!atomic_load_explicit(&w->send.done, memory_order_acquire) ||
			     !atomic_load_explicit(&w->recv.done, memory_order_acquire))) {
		drive(w);
		WORKER_CHECK(w, end_now() < end);
	}
	WORKER_CHECK(w, !w->wrong && w->recv.len == len_of(n));
	for (size_t i = 0; i < len_of(n); i++)
		WORKER_CHECK(w, w->in[i] == byte_of(w->partner, n, i));
}

static _Atomic int busy; /* workers that have something to exchange */

/*
 * A worker has nothing more to exchange. Where sockets are broken it makes progress until the others are done:
 * a peer whose connection has just broken needs it.
 */
static void rest(struct worker *w)
{
	atomic_fetch_sub(&busy, 1);
	while (getenv("BREAK_US") && atomic_load(&busy) && !w->wrong)
		drive(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int n = 0; n < EXCHANGES && !w->wrong; n++) {
		counting = n >= WARM;
		exchange(w, n);
	}
	counting = false;
	w->locks = locks;
	rest(w);
	return NULL;
}

static struct worker *workers_new(int cnt)
{
	struct worker *w = calloc((size_t)cnt, sizeof(*w));

	assert_non_null(w);
	return w;
}

static void workers_run(struct worker *w, int cnt)
{
	atomic_store(&busy, cnt);
	for (int i = 0; i < cnt; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (int i = 0; i < cnt; i++)
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
	for (int i = 0; i < cnt; i++) {
		if (w[i].wrong)
			print_error("thread %d: %s\n", i, w[i].wrong);
		assert_null(w[i].wrong);
	}
}

/* Four threads on one endpoint, with four on another one: each level at which they share it. */
static void threads_share_an_endpoint(enum fi_threading threading, enum fi_progress progress)
{
	struct end_attr attr = { .provider = provider,
				 .threading = threading,
				 .progress = progress };
	struct worker *w = workers_new(2 * THREADS);
	struct end ends[2];
	fi_addr_t to[2];

	for (int i = 0; i < 2; i++)
		end_open(&ends[i], &attr);
	for (int i = 0; i < 2; i++)
		to[i] = end_knows(&ends[i], &ends[!i]);
	for (int i = 0; i < 2 * THREADS; i++) {
		w[i].end = &ends[i / THREADS];
		w[i].peer = to[i / THREADS];
		w[i].id = i;
		w[i].partner = (i + THREADS) % (2 * THREADS);
	}
	workers_run(w, 2 * THREADS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_cntr_read(ends[i].tx), THREADS * EXCHANGES);
		assert_int_equal(fi_cntr_read(ends[i].rx), THREADS * EXCHANGES);
		end_close(&ends[i]);
	}
	free(w);
}

static void four_threads_share_an_endpoint(void **state)
{
	threads_share_an_endpoint(FI_THREAD_SAFE, FI_PROGRESS_UNSPEC);
}

static void four_threads_and_that_of_the_domain_share_an_endpoint(void **state)
{
	threads_share_an_endpoint(FI_THREAD_SAFE, FI_PROGRESS_AUTO);
}

/*
 * A thread for each endpoint, all in one domain: what FI_THREAD_FID, FI_THREAD_ENDPOINT and
 * FI_THREAD_COMPLETION allow, each with a queue of its own.
 */
static void a_domain_is_shared(enum fi_threading threading)
{
	struct end_attr attr = { .provider = provider, .threading = threading };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct worker *w = workers_new(2);
	struct end one, other;

	end_open(&one, &attr);
	other = one;
	assert_int_equal(fi_cq_open(one.domain, &cq_attr, &other.cq, NULL), 0);
	assert_int_equal(fi_endpoint(one.domain, one.info, &other.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(other.ep, &one.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(other.ep, &other.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(other.ep), 0);
	w[0] = (struct worker){
		.end = &one, .id = 0, .partner = 1, .peer = end_knows(&one, &other)
	};
	w[1] = (struct worker){
		.end = &other, .id = 1, .partner = 0, .peer = end_knows(&other, &one)
	};
	workers_run(w, 2);
	assert_int_equal(fi_close(&other.ep->fid), 0);
	assert_int_equal(fi_close(&other.cq->fid), 0);
	end_close(&one);
	free(w);
}

static void every_level_between_keeps_a_shared_domain_whole(void **state)
{
	static const enum fi_threading levels[] = { FI_THREAD_FID, FI_THREAD_ENDPOINT,
						    FI_THREAD_COMPLETION, FI_THREAD_UNSPEC };

	for (int i = 0; i < 4; i++)
		a_domain_is_shared(levels[i]);
}

/* Four threads, each with a domain: nothing is shared, and there is no lock on the way. */
static void four_domains_take_no_lock(void **state)
{
	struct end_attr attr = { .provider = provider, .threading = FI_THREAD_DOMAIN };
	struct worker *w = workers_new(THREADS);
	struct end ends[THREADS];

	for (int i = 0; i < THREADS; i++)
		end_open(&ends[i], &attr);
	for (int i = 0; i < THREADS; i++) {
		w[i].end = &ends[i];
		w[i].id = i;
		w[i].partner = i ^ 1;
		w[i].peer = end_knows(&ends[i], &ends[i ^ 1]);
	}
	workers_run(w, THREADS);
	/* Processes' sockets are shared by their domains, and have a lock: only where /proc leads nowhere. */
	for (int i = 0; i < THREADS && !getenv("WEFT_FAULT"); i++)
		assert_int_equal(w[i].locks, 0);
	for (int i = 0; i < THREADS; i++)
		end_close(&ends[i]);
	free(w);
}

/* What programs do to a domain beside transferring data. Called by a thread that does nothing else. */
static void control(struct end *e, struct end *other)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	static char bytes[4096];
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_av *av;
	fi_addr_t addr;

	assert_int_equal(fi_mr_reg(e->domain, bytes, sizeof(bytes), FI_REMOTE_WRITE, 0, 99, 0,
				   &mr, NULL),
			 0);
	assert_int_equal(
		fi_av_open(e->domain, &(struct fi_av_attr){ .type = FI_AV_TABLE }, &av, NULL),
		0);
	assert_int_equal(fi_cq_open(e->domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_cntr_open(e->domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	assert_int_equal(fi_enable(ep), 0);
	addr = end_knows(e, other); /* in the vector that the other thread uses */
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_av_remove(e->av, &addr, 1, 0), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
}

static _Atomic bool enough;
static _Atomic int last; /* exchange of both, once the first has seen that it is enough */

static void *work_long(void *arg)
{
	struct worker *w = arg;

	for (int n = 0; atomic_load(&last) != n - 1 && !w->wrong; n++) {
		if (!w->id && atomic_load(&enough))
			atomic_store(&last, n);
		exchange(w, n);
	}
	rest(w);
	return NULL;
}

/* Two threads transfer data, each with a domain, while @calls are made by a third. */
static void control_meanwhile(void (*calls)(struct end ends[2]))
{
	struct end_attr attr = { .provider = provider, .threading = FI_THREAD_DOMAIN };
	struct worker *w = workers_new(2);
	struct end ends[2];

	for (int i = 0; i < 2; i++)
		end_open(&ends[i], &attr);
	for (int i = 0; i < 2; i++)
		w[i] = (struct worker){ .end = &ends[i],
					.id = i,
					.partner = !i,
					.peer = end_knows(&ends[i], &ends[!i]) };
	atomic_store(&enough, false);
	atomic_store(&last, -2);
	atomic_store(&busy, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work_long, &w[i]), 0);
	calls(ends);
	atomic_store(&enough, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		if (w[i].wrong)
			print_error("thread %d: %s\n", i, w[i].wrong);
		assert_null(w[i].wrong);
	}
	for (int i = 0; i < 2; i++)
		end_close(&ends[i]);
	free(w);
}

static void control_often(struct end ends[2])
{
	for (int n = 0; n < CONTROLS; n++)
		control(&ends[n % 2], &ends[!(n % 2)]);
}

static void control_calls_come_from_any_thread(void **state)
{
	control_meanwhile(control_often);
}

/* A queue that can be slept on gives its domain a thread, and with it a lock. */
static void share_domains(struct end ends[2])
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fid_cq *sleepers[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_cq_open(ends[i].domain, &attr, &sleepers[i], NULL), 0);
	control_often(ends);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&sleepers[i]->fid), 0);
}

static void a_domain_gets_its_thread_while_data_is_transferred(void **state)
{
	control_meanwhile(share_domains);
}

/* Default flags change while other threads call */

enum { WATCH_SEND, WATCH_TSEND, WATCH_READ, WATCH_WRITE, WATCHED };

struct watch {
	pthread_t thread;
	struct fid_ep *ep;
	uintptr_t slots[2][WATCHED]; /* without FI_TRIGGER and with */
	int wrong;		     /* slot that held something else; WATCHED: none */
	_Atomic bool begun, over;
};

/* As the inline calls load them. */
static uintptr_t slot_at(void *ops, size_t offset)
{
	char *table = (char *)__atomic_load_n((uintptr_t *)ops, __ATOMIC_ACQUIRE);

	return __atomic_load_n((uintptr_t *)(void *)(table + offset), __ATOMIC_RELAXED);
}

#define SLOT(ep, kind, call) slot_at(&(ep)->kind, offsetof(struct fi_ops_##kind, call))

static void slots_of(struct fid_ep *ep, uintptr_t slots[WATCHED])
{
	slots[WATCH_SEND] = SLOT(ep, msg, send);
	slots[WATCH_TSEND] = SLOT(ep, tagged, send);
	slots[WATCH_READ] = SLOT(ep, rma, read);
	slots[WATCH_WRITE] = SLOT(ep, rma, write);
}

static void *watch_slots(void *arg)
{
	struct watch *w = arg;
	uintptr_t seen[WATCHED];

	while (w->wrong == WATCHED && !atomic_load(&w->over)) {
		slots_of(w->ep, seen);
		for (int i = 0; i < WATCHED; i++)
			if (seen[i] != w->slots[0][i] && seen[i] != w->slots[1][i])
				w->wrong = i;
		atomic_store(&w->begun, true);
	}
	return NULL;
}

static void set_flags(struct fid_ep *ep, uint64_t flags)
{
	flags |= FI_TRANSMIT;
	assert_int_equal(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
}

static void calls_stay_while_default_flags_change(void **state)
{
	/* It sends and reads, and does not write or receive. */
	struct end_attr attr = { .provider = provider,
				 .threading = FI_THREAD_SAFE,
				 .caps = FI_RMA | FI_READ | FI_SEND | FI_TRIGGER };
	struct watch w = { .wrong = WATCHED };
	struct end e;

	end_open(&e, &attr);
	w.ep = e.ep;
	for (int i = 1; i >= 0; i--) {
		set_flags(e.ep, i ? FI_TRIGGER : 0);
		slots_of(e.ep, w.slots[i]);
	}
	assert_true(w.slots[0][WATCH_SEND] != w.slots[1][WATCH_SEND]);
	assert_true(w.slots[0][WATCH_READ] != w.slots[0][WATCH_WRITE]);
	assert_int_equal(pthread_create(&w.thread, NULL, watch_slots, &w), 0);
	END_UNTIL(atomic_load(&w.begun), sched_yield());
	for (int n = 0; n < FLAG_CHANGES; n++)
		set_flags(e.ep, n % 4 == 3 ? FI_TRIGGER : n % 2 ? FI_COMPLETION : 0);
	atomic_store(&w.over, true);
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	assert_int_equal(w.wrong, WATCHED);
	end_close(&e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_are_counted),
		cmocka_unit_test(closing_takes_the_lock_once),
		cmocka_unit_test(four_threads_share_an_endpoint),
		cmocka_unit_test(four_threads_and_that_of_the_domain_share_an_endpoint),
		cmocka_unit_test(every_level_between_keeps_a_shared_domain_whole),
		cmocka_unit_test(four_domains_take_no_lock),
		cmocka_unit_test(control_calls_come_from_any_thread),
		cmocka_unit_test(a_domain_gets_its_thread_while_data_is_transferred),
		cmocka_unit_test(calls_stay_while_default_flags_change),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
