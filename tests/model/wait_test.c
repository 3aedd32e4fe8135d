/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to wait, over the real library and each provider: blocking reads, poll sets, wait sets,
 * descriptors. One process.
 *
 * usage: wait_test PROVIDER
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
#include "ends.h"

#define CNT  6
#define MANY 40

static const char *provider;

static char bytes[2][CNT][64];
static struct fi_context2 contexts[2][CNT];

/* @cnt messages of an endpoint to itself, received whole; completions are left in the queue. */
static void messages(struct end *e, fi_addr_t self, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		assert_int_equal(fi_trecv(e->ep, bytes[1][i], 64, NULL, FI_ADDR_UNSPEC, 7, 0,
					  &contexts[1][i]),
				 0);
		END_UNTIL(!fi_tsend(e->ep, bytes[0][i], 64, NULL, self, 7, &contexts[0][i]),
			  fi_cq_read(e->cq, NULL, 0));
	}
}

/* Blocking reads */

static void a_read_waits_for_a_completion(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .cq_wait = FI_WAIT_UNSPEC,
				 .no_cntr = true };
	struct fi_cq_tagged_entry entry[2 * CNT];
	fi_addr_t self, src[2 * CNT];
	int got = 0, sources = 0;
	struct end e;
	double start;

	end_open(&e, &attr);
	self = end_knows(&e, &e);
	start = end_now();
	assert_int_equal(fi_cq_sread(e.cq, entry, 1, NULL, 50), -FI_EAGAIN);
	assert_true(end_now() - start > 0.049);
	assert_int_equal(fi_cq_sread(e.cq, entry, 1, NULL, 0), -FI_EAGAIN);
	messages(&e, self, CNT);
	while (got < 2 * CNT) {
		ssize_t n = fi_cq_sreadfrom(e.cq, entry, 2 * CNT, src, NULL, got ? 20000 : -1);

		assert_true(n > 0);
		got += (int)n;
		for (ssize_t i = 0; i < n; i++)
			sources += entry[i].flags & FI_RECV && src[i] == self;
	}
	assert_int_equal(sources, CNT);
	end_close(&e);
}

static void a_read_waits_for_as_many_as_it_says(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .cq_wait = FI_WAIT_YIELD,
				 .cond = FI_CQ_COND_THRESHOLD,
				 .no_cntr = true };
	struct fi_cq_tagged_entry entry[4 * CNT];
	struct fi_cq_err_entry error = { 0 };
	size_t threshold = 2 * CNT;
	fi_addr_t self;
	struct end e;
	ssize_t few;

	end_open(&e, &attr);
	self = end_knows(&e, &e);
	messages(&e, self, CNT);
	assert_int_equal(fi_cq_sread(e.cq, entry, 4 * CNT, &threshold, 20000), 2 * CNT);
	/* Fewer when the time is over, and fewer than there are when there is no room. */
	messages(&e, self, 1);
	threshold = 3;
	END_UNTIL((few = fi_cq_sread(e.cq, entry, 4 * CNT, &threshold, 100)) != -FI_EAGAIN, );
	if (few == 1)
		END_UNTIL(fi_cq_read(e.cq, entry, 1) == 1, );
	else
		assert_int_equal(few, 2);
	messages(&e, self, 2);
	assert_int_equal(fi_cq_sread(e.cq, entry, 1, &threshold, 20000), 1);
	threshold = 2;
	assert_int_equal(fi_cq_sread(e.cq, entry, 4, &threshold, 20000), 3);
	/* An error is not waited past. */
	assert_int_equal(
		fi_trecv(e.ep, bytes[1][0], 8, NULL, FI_ADDR_UNSPEC, 8, 0, &contexts[1][0]), 0);
	assert_int_equal(fi_cancel(&e.ep->fid, &contexts[1][0]), 0);
	assert_int_equal(fi_cq_sread(e.cq, entry, 4, &threshold, 20000), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(e.cq, &error, 0), 1);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_string_equal(fi_cq_strerror(e.cq, error.prov_errno, NULL, NULL, 0),
			    fi_strerror(FI_ECANCELED));
	end_close(&e);
}

static _Atomic int begun; /* calls of blocked_read() that wait, or are about to */

static void *blocked_read(void *arg)
{
	struct fi_cq_tagged_entry entry;
	struct end *e = arg;

	begun++;
	return (void *)(intptr_t)fi_cq_sread(e->cq, &entry, 1, NULL, 20000);
}

/* Returns what a thread returns; signals again each second, for one that had not begun to wait. */
static void *join_signalled(pthread_t thread, struct fid_cq *cq)
{
	struct timespec until;
	void *ret;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		if (!pthread_timedjoin_np(thread, &ret, &until))
			return ret;
		assert_int_equal(fi_cq_signal(cq), 0);
	}
}

/* Returns true if three threads that read were woken by a signal. */
static bool signal_wakes_three(struct end *e)
{
	pthread_t threads[3];
	double start;

	begun = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, blocked_read, e), 0);
	while (begun < 3)
		usleep(1000);
	usleep(20000); /* so that most sleep */
	start = end_now();
	assert_int_equal(fi_cq_signal(e->cq), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal((intptr_t)join_signalled(threads[i], e->cq), -FI_EAGAIN);
	return end_now() - start < 0.5;
}

static void a_signal_ends_the_waiting(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .cq_wait = FI_WAIT_UNSPEC,
				 .threading = FI_THREAD_SAFE,
				 .no_cntr = true };
	struct fi_cq_tagged_entry entry;
	struct end e;
	int quick = 0;

	end_open(&e, &attr);
	/* If no thread waits, the signal is for the next one. */
	assert_int_equal(fi_cq_signal(e.cq), 0);
	assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, 20000), -FI_EAGAIN);
	for (int n = 0; n < 50 && quick <= 5; n++)
		quick += signal_wakes_three(&e);
	assert_true(quick > 5);
	end_close(&e);
}

static void what_is_not_for_waiting_says_so(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_cq_tagged_entry entry;
	enum fi_wait_obj obj;
	struct fid_cq *cq;
	struct end e;
	int fd;

	end_open(&e, &attr);
	assert_int_equal(fi_cq_sread(e.cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_signal(e.cq), 0); /* wakes no thread */
	assert_int_equal(fi_control(&e.cq->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	assert_int_equal(fi_control(&e.cq->fid, FI_GETWAITOBJ, &obj), 0);
	assert_int_equal(obj, FI_WAIT_NONE);
	assert_int_equal(fi_control(&e.cq->fid, FI_GETWAITOBJ, NULL), -FI_EINVAL);

	cq_attr.wait_obj = FI_WAIT_SET;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	cq_attr.wait_obj = FI_WAIT_MUTEX_COND;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_ENOSYS);
	cq_attr.wait_obj = (enum fi_wait_obj)99;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	cq_attr.wait_obj = FI_WAIT_UNSPEC;
	cq_attr.wait_cond = (enum fi_cq_wait_cond)99;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	cq_attr.wait_cond = FI_CQ_COND_NONE;
	cq_attr.format = (enum fi_cq_format)99;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	cq_attr.format = FI_CQ_FORMAT_TAGGED;
	cq_attr.flags = 1ull << 40;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_EBADFLAGS);
	cq_attr.flags = FI_AFFINITY;
	cq_attr.signaling_vector = -1; /* a hint */
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	/* Without a way to wait the condition says nothing. */
	cq_attr = (struct fi_cq_attr){ .wait_cond = (enum fi_cq_wait_cond)99,
				       .signaling_vector = -1 };
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	end_close(&e);
}

/* Poll sets */

static void a_poll_set_tells_who_has_something(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_cq_tagged_entry entry[2];
	struct fi_poll_attr poll_attr = { .flags = 1 };
	struct fid_poll *set;
	struct end e, foreign;
	void *who[4];
	fi_addr_t self;
	int seen = 0;

	end_open(&e, &attr);
	end_open(&foreign, &attr);
	self = end_knows(&e, &e);
	assert_int_equal(fi_poll_open(e.domain, &poll_attr, &set), -FI_EBADFLAGS);
	poll_attr.flags = 0;
	assert_int_equal(fi_poll_open(e.domain, &poll_attr, &set), 0);
	assert_int_equal(fi_poll_add(set, &e.av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &foreign.cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &e.cq->fid, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_poll_del(set, &e.cq->fid, 0), 0); /* not in it, as asked for */
	assert_int_equal(fi_poll_del(set, &e.av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &e.cq->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &e.cq->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &e.tx->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &e.rx->fid, 0), 0);
	assert_int_equal(fi_poll(set, who, 4), 0);
	assert_int_equal(fi_poll(set, NULL, 1), -FI_EINVAL);

	messages(&e, self, 1);
	END_UNTIL(fi_cntr_read(e.rx) == 1, );
	assert_int_equal(fi_poll(set, who, 4), 3);
	for (int i = 0; i < 3; i++)
		seen |= who[i] == &e ? 1 : who[i] == &e.tx ? 2 : who[i] == &e.rx ? 4 : 8;
	assert_int_equal(seen, 7);
	/* The counters have been reported, the queue still has an entry. */
	assert_int_equal(fi_poll(set, who, 4), 1);
	assert_ptr_equal(who[0], &e);
	assert_int_equal(fi_cq_read(e.cq, entry, 2), 2);
	assert_int_equal(fi_poll(set, who, 4), 0);
	assert_int_equal(fi_cntr_adderr(e.tx, 1), 0);
	assert_int_equal(fi_poll(set, who, 4), 1);
	assert_ptr_equal(who[0], &e.tx);
	assert_int_equal(fi_cntr_add(e.tx, 1), 0);
	assert_int_equal(fi_poll(set, who, 4), 0); /* reported to the program already */

	assert_int_equal(fi_poll_del(set, &e.cq->fid, 0), 0);
	messages(&e, self, 1);
	END_UNTIL(fi_cntr_read(e.rx) == 2, );
	assert_int_equal(fi_poll(set, who, 1), 1);
	assert_int_equal(fi_poll(set, who, 4), 1);
	assert_int_equal(fi_poll_del(set, &e.tx->fid, 0), 0);
	assert_int_equal(fi_poll_del(set, &e.rx->fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &e.cq->fid, 0), 0);
	/* What is closed leaves the set. */
	assert_int_equal(fi_close(&e.ep->fid), 0);
	assert_int_equal(fi_close(&e.cq->fid), 0);
	assert_int_equal(fi_poll(set, who, 4), 0);
	/* ... and so does what is in a set that is closed. */
	assert_int_equal(fi_poll_add(set, &e.tx->fid, 0), 0);
	assert_int_equal(fi_close(&set->fid), 0);
	assert_int_equal(fi_cntr_add(e.tx, 1), 0);
	assert_int_equal(fi_close(&e.tx->fid), 0);
	assert_int_equal(fi_close(&e.rx->fid), 0);
	assert_int_equal(fi_close(&e.av->fid), 0);
	assert_int_equal(fi_close(&e.domain->fid), 0);
	assert_int_equal(fi_close(&e.fabric->fid), 0);
	fi_freeinfo(e.info);
	end_close(&foreign);
}

/* Wait sets */

struct shared {
	struct end end[2];
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_wait *set;
};

/* Two endpoints of a fabric whose queues and counters are in one set. */
static void shared_open(struct shared *s, enum fi_wait_obj obj, enum fi_threading threading)
{
	struct end_attr attr = { .provider = provider,
				 .threading = threading,
				 .cq_wait = FI_WAIT_SET,
				 .cntr_wait = FI_WAIT_SET };
	struct fi_wait_attr wait_attr = { .wait_obj = obj };

	s->info = end_info(&attr);
	assert_non_null(s->info);
	assert_int_equal(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_wait_open(s->fabric, &wait_attr, &s->set), 0);
	attr.wait_set = s->set;
	for (int i = 0; i < 2; i++)
		end_open_in(&s->end[i], &attr, s->fabric);
}

static void shared_close(struct shared *s)
{
	/* The set is closed before its members, or after. */
	static bool early;

	early = !early;
	if (early)
		assert_int_equal(fi_close(&s->set->fid), 0);
	for (int i = 0; i < 2; i++)
		end_close(&s->end[i]);
	if (!early)
		assert_int_equal(fi_close(&s->set->fid), 0);
	assert_int_equal(fi_close(&s->fabric->fid), 0);
	fi_freeinfo(s->info);
}

static void a_wait_set_waits_for_any(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_YIELD, FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct shared s;
	double start;

	for (int i = 0; i < 3; i++) {
		struct end *a = &s.end[0], *b = &s.end[1];
		fi_addr_t to;

		shared_open(&s, objs[i], i == 1 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE);
		start = end_now();
		assert_int_equal(fi_wait(s.set, 30), -FI_ETIMEDOUT);
		assert_true(end_now() - start > 0.029);
		assert_int_equal(fi_cq_sread(a->cq, &entry, 1, NULL, 0), -FI_EAGAIN);
		to = end_knows(a, b);
		assert_int_equal(fi_trecv(b->ep, bytes[1][0], 64, NULL, FI_ADDR_UNSPEC, 7, 0,
					  &contexts[1][0]),
				 0);
		END_UNTIL(!fi_tsend(a->ep, bytes[0][0], 64, NULL, to, 7, &contexts[0][0]),
			  fi_cq_read(b->cq, NULL, 0));
		END_UNTIL(fi_cq_read(b->cq, &entry, 1) == 1,
			  assert_int_equal(fi_wait(s.set, 20000), 0));
		END_UNTIL(fi_cq_read(a->cq, &entry, 1) == 1,
			  assert_int_equal(fi_wait(s.set, 20000), 0));
		/* Each change of a counter is reported once. */
		while (!fi_wait(s.set, 0))
			;
		assert_int_equal(fi_cntr_add(b->rx, 1), 0);
		assert_int_equal(fi_wait(s.set, 20000), 0);
		assert_int_equal(fi_wait(s.set, 10), -FI_ETIMEDOUT);
		shared_close(&s);
	}
}

static void *waits_for_the_set(void *arg)
{
	return (void *)(intptr_t)fi_wait(arg, 20000);
}

/* Returns true if two threads that wait for the set were woken by a signal of a queue in it. */
static bool signal_wakes_two(struct shared *s)
{
	pthread_t threads[2];
	double start;

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, waits_for_the_set, s->set),
				 0);
	usleep(20000); /* so that most sleep */
	start = end_now();
	assert_int_equal(fi_cq_signal(s->end[1].cq), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal((intptr_t)join_signalled(threads[i], s->end[1].cq), 0);
	return end_now() - start < 0.2;
}

/* A thread that nothing wakes looks for itself, but rarely: the others are back at once. */
static void a_signal_ends_the_waits_for_its_set(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_YIELD, FI_WAIT_FD };

	for (int i = 0; i < 3; i++) {
		struct pollfd p = { .fd = -1, .events = POLLIN };
		struct shared s;
		struct fid *fid;
		int quick = 0;

		shared_open(&s, objs[i], FI_THREAD_SAFE);
		/* If no thread waits, the signal is for the next one. */
		assert_int_equal(fi_cq_signal(s.end[0].cq), 0);
		assert_int_equal(fi_wait(s.set, 20000), 0);
		assert_int_equal(fi_wait(s.set, 10), -FI_ETIMEDOUT);
		for (int n = 0; n < 50 && quick <= 5; n++)
			quick += signal_wakes_two(&s);
		assert_true(quick > 5);
		fid = &s.set->fid;
		assert_int_equal(fi_control(fid, FI_GETWAIT, &p.fd),
				 objs[i] == FI_WAIT_YIELD ? -FI_ENODATA : 0);
		if (objs[i] != FI_WAIT_YIELD) {
			END_UNTIL(!fi_trywait(s.fabric, &fid, 1), );
			assert_int_equal(poll(&p, 1, 0), 0);
			assert_int_equal(fi_cq_signal(s.end[1].cq), 0);
			assert_int_equal(poll(&p, 1, 0), 1);
			assert_int_equal(fi_trywait(s.fabric, &fid, 1), -FI_EAGAIN);
			END_UNTIL(!fi_trywait(s.fabric, &fid, 1), );
			assert_int_equal(poll(&p, 1, 0), 0);
		}
		shared_close(&s);
	}
}

static void *waits_for_a_completion(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(arg, &entry, 1, NULL, 20000);
}

static void *waits_for_a_count(void *arg)
{
	return (void *)(intptr_t)fi_cntr_wait(arg, 1, 20000);
}

static void *waits_for_an_event(void *arg)
{
	struct fi_eq_entry got;
	uint32_t event;

	return (void *)(intptr_t)fi_eq_sread(arg, &event, &got, sizeof(got), 20000, 0);
}

/*
 * Other threads sleep on the set meanwhile, and give up: that takes nothing from those that sleep
 * on.
 */
static void what_is_in_a_set_may_be_waited_for_alone(void **state)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_eq_entry in = { .data = 4711 };
	struct fi_cq_tagged_entry entry;
	void *(*waits[])(void *) = { waits_for_a_completion, waits_for_a_count,
				     waits_for_an_event };

	for (int i = 0; i < 10; i++) {
		struct shared s;
		struct end *a = &s.end[0], *b = &s.end[1];
		pthread_t threads[3];
		struct fid_eq *eq;
		fi_addr_t to;
		void *ret[3];

		shared_open(&s, i % 2 ? FI_WAIT_UNSPEC : FI_WAIT_FD, FI_THREAD_SAFE);
		eq_attr.wait_set = s.set;
		assert_int_equal(fi_eq_open(s.fabric, &eq_attr, &eq, NULL), 0);
		to = end_knows(a, b);
		assert_int_equal(fi_trecv(b->ep, bytes[1][0], 64, NULL, FI_ADDR_UNSPEC, 7, 0,
					  &contexts[1][0]),
				 0);
		for (int n = 0; n < 3; n++)
			assert_int_equal(pthread_create(&threads[n], NULL, waits[n],
							n == 0	 ? (void *)b->cq
							: n == 1 ? (void *)b->rx
								 : (void *)eq),
					 0);
		assert_int_equal(fi_wait(s.set, i), -FI_ETIMEDOUT);
		END_UNTIL(!fi_tsend(a->ep, bytes[0][0], 64, NULL, to, 7, &contexts[0][0]),
			  usleep(100));
		END_UNTIL(fi_cq_read(a->cq, &entry, 1) == 1, );
		for (int n = 0; n < 2; n++)
			assert_int_equal(pthread_join(threads[n], &ret[n]), 0);
		assert_int_equal((intptr_t)ret[0], 1);
		assert_int_equal((intptr_t)ret[1], 0);
		assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
		assert_int_equal(pthread_join(threads[2], &ret[2]), 0);
		assert_int_equal((intptr_t)ret[2], sizeof(in));
		assert_int_equal(fi_close(&eq->fid), 0);
		shared_close(&s);
	}
}

static void a_wait_set_waits_for_events_too(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_YIELD, FI_WAIT_FD };
	struct end_attr attr = { .provider = provider };
	struct fi_eq_entry in = { .data = 4711 }, got;
	struct end e;

	end_open(&e, &attr);
	for (int i = 0; i < 2; i++) {
		struct fi_wait_attr wait_attr = { .wait_obj = objs[i] };
		struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_SET };
		struct pollfd p = { .fd = -1, .events = POLLIN };
		struct fid_wait *set;
		struct fid *fid;
		struct fid_eq *eq;
		uint32_t event;

		assert_int_equal(fi_eq_open(e.fabric, &eq_attr, &eq, NULL), -FI_EINVAL);
		assert_int_equal(fi_wait_open(e.fabric, &wait_attr, &set), 0);
		eq_attr.wait_set = set;
		assert_int_equal(fi_eq_open(e.fabric, &eq_attr, &eq, NULL), 0);
		fid = &set->fid;
		assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), 5, 0), -FI_EAGAIN);
		assert_int_equal(fi_wait(set, 10), -FI_ETIMEDOUT);
		assert_int_equal(fi_trywait(e.fabric, &fid, 1), 0);
		assert_int_equal(fi_control(fid, FI_GETWAIT, &p.fd), i ? 0 : -FI_ENODATA);
		assert_int_equal(i ? poll(&p, 1, 0) : 0, 0);

		assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
		assert_int_equal(i ? poll(&p, 1, 20000) : 1, 1);
		assert_int_equal(fi_trywait(e.fabric, &fid, 1), -FI_EAGAIN);
		assert_int_equal(fi_wait(set, 20000), 0);
		assert_int_equal(fi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
		assert_int_equal(got.data, 4711);
		assert_int_equal(fi_trywait(e.fabric, &fid, 1), 0);
		assert_int_equal(i ? poll(&p, 1, 0) : 0, 0);
		assert_int_equal(fi_close(i ? &set->fid : &eq->fid), 0);
		assert_int_equal(fi_close(i ? &eq->fid : &set->fid), 0);
	}
	end_close(&e);
}

static void wrong_wait_sets_are_refused(void **state)
{
	static const struct {
		struct fi_wait_attr attr;
		int err;
	} wrong[] = {
		{ { .wait_obj = FI_WAIT_NONE }, FI_EINVAL },
		{ { .wait_obj = FI_WAIT_SET }, FI_EINVAL },
		{ { .wait_obj = (enum fi_wait_obj)99 }, FI_EINVAL },
		{ { .wait_obj = FI_WAIT_MUTEX_COND }, FI_ENOSYS },
		{ { .wait_obj = FI_WAIT_POLLFD }, FI_ENOSYS },
		{ { .wait_obj = FI_WAIT_UNSPEC, .flags = 1 }, FI_EBADFLAGS },
	};
	struct end_attr attr = { .provider = provider };
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct fid_wait *set;
	struct fid_cq *cq;
	struct end e, other;

	end_open(&e, &attr);
	end_open(&other, &attr);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		wait_attr = wrong[i].attr;
		assert_int_equal(fi_wait_open(e.fabric, &wait_attr, &set), -wrong[i].err);
	}
	wait_attr = (struct fi_wait_attr){ .wait_obj = FI_WAIT_UNSPEC };
	assert_int_equal(fi_wait_open(e.fabric, &wait_attr, &set), 0);
	cq_attr.wait_set = set;
	assert_int_equal(fi_cq_open(other.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	cq_attr.wait_set = (struct fid_wait *)e.av;
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), -FI_EINVAL);
	assert_int_equal(fi_close(&set->fid), 0);
	end_close(&other);
	end_close(&e);
}

/* Descriptors */

static bool rings(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void a_descriptor_wakes_the_reader(void **state)
{
	static const enum fi_threading levels[] = { FI_THREAD_DOMAIN, FI_THREAD_SAFE };
	struct end_attr plain = { .provider = provider };
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 2; i++) {
		struct end_attr attr = { .provider = provider,
					 .threading = levels[i],
					 .cq_wait = FI_WAIT_FD,
					 .cntr_wait = FI_WAIT_FD };
		enum fi_wait_obj obj;
		struct end a, b;
		struct fid *fids[2];
		fi_addr_t to;
		int fd, cntr_fd;

		end_open(&a, &plain);
		end_open(&b, &attr);
		to = end_knows(&a, &b);
		assert_int_equal(fi_control(&b.cq->fid, FI_GETWAITOBJ, &obj), 0);
		assert_int_equal(obj, FI_WAIT_FD);
		assert_int_equal(fi_control(&b.cq->fid, FI_GETWAIT, &fd), 0);
		assert_int_equal(fi_control(&b.rx->fid, FI_GETWAIT, &cntr_fd), 0);
		fids[0] = &b.cq->fid;
		fids[1] = &b.rx->fid;
		for (int n = 0; n < 20; n++) {
			assert_int_equal(fi_trecv(b.ep, bytes[1][0], 64, NULL, FI_ADDR_UNSPEC,
						  7, 0, &contexts[1][0]),
					 0);
			END_UNTIL(!fi_trywait(b.fabric, fids, 2), );
			/*
			 * From here on the receiver calls nothing while its descriptors do not ring,
			 * which they may for a step of the connection.
			 */
			END_UNTIL(!fi_tsend(a.ep, bytes[0][0], 64, NULL, to, 7, &contexts[0][0]),
				  fi_cq_read(a.cq, NULL, 0));
			do
				while (!fi_trywait(b.fabric, fids, 2))
					END_UNTIL(rings(fd, 0) && rings(cntr_fd, 0),
						  fi_cq_read(a.cq, NULL, 0));
			while (fi_cq_read(b.cq, NULL, 0) == -FI_EAGAIN);
			assert_int_equal(fi_trywait(b.fabric, fids, 1), -FI_EAGAIN);
			assert_int_equal(fi_cq_read(b.cq, &entry, 1), 1);
			assert_int_equal(fi_trywait(b.fabric, fids + 1, 1), -FI_EAGAIN);
			assert_int_equal(fi_cntr_read(b.rx), n + 1);
			END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, );
		}
		END_UNTIL(!fi_trywait(b.fabric, fids, 1), );
		assert_int_equal(fi_cq_signal(b.cq), 0);
		assert_true(rings(fd, 0));
		end_close(&a);
		end_close(&b);
	}
}

/* So many queues with descriptors that a thread serves them: what was open for one is now for two. */
static void a_domain_learns_to_share(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .threading = FI_THREAD_DOMAIN,
				 .cntr_wait = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry[2];
	struct fi_ops_tagged *before;
	struct fi_ops_cq *cq_before;
	struct fid_cq *cqs[MANY];
	fi_addr_t self;
	struct end e;

	end_open(&e, &attr);
	self = end_knows(&e, &e);
	messages(&e, self, CNT);
	for (int got = 0; got < 2 * CNT;) {
		ssize_t n = fi_cq_read(e.cq, entry, 2);

		got += n > 0 ? (int)n : 0;
	}
	before = e.ep->tagged;
	cq_before = e.cq->ops;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cqs[i], NULL), 0);
	/* Another thread may be reading them: they stay, and take the lock from now on. */
	assert_ptr_equal(e.ep->tagged, before);
	assert_ptr_equal(e.cq->ops, cq_before);
	for (int i = 0; i < 200; i++) {
		messages(&e, self, 1);
		for (int got = 0; got < 2;) {
			ssize_t n = fi_cq_read(e.cq, entry, 2);

			got += n > 0 ? (int)n : 0;
		}
	}
	assert_int_equal(fi_cntr_read(e.rx), CNT + 200);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_close(&cqs[i]->fid), 0);
	end_close(&e);
}

static void a_set_has_one_descriptor_for_all(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct shared s;
	struct end *a = &s.end[0], *b = &s.end[1];
	fi_addr_t to;
	int fd;

	shared_open(&s, FI_WAIT_FD, FI_THREAD_DOMAIN);
	assert_int_equal(fi_control(&s.set->fid, FI_GETWAIT, &fd), 0);
	to = end_knows(a, b);
	for (int n = 0; n < 20; n++) {
		bool sent = false, received = false;

		assert_int_equal(fi_trecv(b->ep, bytes[1][0], 64, NULL, FI_ADDR_UNSPEC, 7, 0,
					  &contexts[1][0]),
				 0);
		END_UNTIL(!fi_tsend(a->ep, bytes[0][0], 64, NULL, to, 7, &contexts[0][0]),
			  usleep(100));
		while (!sent || !received) {
			struct fid *fids[] = { &s.set->fid };

			if (!fi_trywait(s.fabric, fids, 1))
				assert_true(rings(fd, 20000));
			received |= fi_cq_read(b->cq, &entry, 1) == 1;
			sent |= fi_cq_read(a->cq, &entry, 1) == 1;
			fi_cntr_read(a->tx);
			fi_cntr_read(b->rx);
		}
	}
	shared_close(&s);
}

static void trywait_knows_what_it_is_given(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_eq_entry event = { 0 };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fid *fids[2] = { NULL };
	struct fid_eq *eq;
	fi_addr_t self;
	struct end e;

	end_open(&e, &attr);
	self = end_knows(&e, &e);
	assert_int_equal(fi_trywait(e.fabric, NULL, 1), -FI_EINVAL);
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EINVAL);
	fids[0] = &e.av->fid;
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EINVAL);
	fids[0] = &e.cq->fid;
	fids[1] = &e.rx->fid;
	assert_int_equal(fi_trywait(e.fabric, fids, 2), 0);
	messages(&e, self, 1);
	END_UNTIL(fi_cntr_read(e.rx) == 1, );
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EAGAIN);
	END_UNTIL(!fi_trywait(e.fabric, fids + 1, 1), ); /* it was read */

	assert_int_equal(fi_eq_open(e.fabric, &eq_attr, &eq, NULL), 0);
	fids[0] = &eq->fid;
	assert_int_equal(fi_trywait(e.fabric, fids, 1), 0);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &event, sizeof(event), 0), sizeof(event));
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_waits_for_a_completion),
		cmocka_unit_test(a_read_waits_for_as_many_as_it_says),
		cmocka_unit_test(a_signal_ends_the_waiting),
		cmocka_unit_test(what_is_not_for_waiting_says_so),
		cmocka_unit_test(a_poll_set_tells_who_has_something),
		cmocka_unit_test(a_wait_set_waits_for_any),
		cmocka_unit_test(a_signal_ends_the_waits_for_its_set),
		cmocka_unit_test(what_is_in_a_set_may_be_waited_for_alone),
		cmocka_unit_test(a_wait_set_waits_for_events_too),
		cmocka_unit_test(wrong_wait_sets_are_refused),
		cmocka_unit_test(a_descriptor_wakes_the_reader),
		cmocka_unit_test(a_domain_learns_to_share),
		cmocka_unit_test(a_set_has_one_descriptor_for_all),
		cmocka_unit_test(trywait_knows_what_it_is_given),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
