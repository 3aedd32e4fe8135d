/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that are asked for late: an object that was opened with FI_WAIT_UNSPEC has one from the
 * first FI_GETWAIT on, and what came before is not lost. Over the real library and each provider.
 *
 * usage: descriptor_test PROVIDER
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include "ends.h"
#include "mock_descriptors.h"

#define QUEUES 12 /* more than channels that hold their domain's */
#define ROUNDS 20

static const char *provider;

static char bytes[2][64];
static struct fi_context2 contexts[2];

static bool rings(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* The object's descriptor; it is the same each time. */
static int asked(struct fid *fid)
{
	enum fi_wait_obj obj;
	int fd = -1, again = -1;

	assert_int_equal(fi_control(fid, FI_GETWAITOBJ, &obj), 0);
	assert_int_equal(obj, FI_WAIT_FD);
	assert_int_equal(fi_control(fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(fi_control(fid, FI_GETWAIT, &again), 0);
	assert_int_equal(fd, again);
	assert_true(fd >= 0);
	return fd;
}

static void post(struct end *e)
{
	assert_int_equal(
		fi_trecv(e->ep, bytes[1], 64, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[1]), 0);
}

static void message(struct end *from, fi_addr_t to)
{
	END_UNTIL(!fi_tsend(from->ep, bytes[0], 64, NULL, to, 7, &contexts[0]),
		  fi_cq_read(from->cq, NULL, 0));
}

static void what_came_before_it_was_asked_for_rings(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .cq_wait = FI_WAIT_UNSPEC,
				 .cntr_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry[2];
	struct fid *fids[2];
	fi_addr_t self;
	struct end e;
	int fd[2];

	end_open(&e, &attr);
	fids[0] = &e.cq->fid;
	fids[1] = &e.rx->fid;
	self = end_knows(&e, &e);
	post(&e);
	message(&e, self);
	END_UNTIL(fi_trywait(e.fabric, fids, 1) == -FI_EAGAIN &&
			  fi_trywait(e.fabric, fids + 1, 1) == -FI_EAGAIN, );
	for (int i = 0; i < 2; i++) {
		fd[i] = asked(fids[i]);
		assert_true(rings(fd[i], 0));
		assert_int_equal(fi_trywait(e.fabric, fids + i, 1), -FI_EAGAIN);
	}
	for (int got = 0; got < 2;) {
		ssize_t n = fi_cq_read(e.cq, entry, 2);

		got += n > 0 ? (int)n : 0;
	}
	assert_int_equal(fi_cntr_read(e.rx), 1);
	END_UNTIL(!fi_trywait(e.fabric, fids, 2), );
	assert_int_equal(fi_cq_signal(e.cq), 0);
	assert_true(rings(fd[0], 0));
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EAGAIN);
	assert_true(rings(fd[0], 0)); /* another thread may sleep on it */
	END_UNTIL(!fi_trywait(e.fabric, fids, 1), );
	assert_false(rings(fd[0], 0));
	end_close(&e);
}

static void a_signal_before_it_was_asked_for_is_told(void **state)
{
	struct end_attr attr = { .provider = provider, .cq_wait = FI_WAIT_UNSPEC };
	struct fid *fids[1];
	struct end e;

	end_open(&e, &attr);
	fids[0] = &e.cq->fid;
	assert_int_equal(fi_cq_signal(e.cq), 0);
	asked(fids[0]);
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EAGAIN);
	END_UNTIL(!fi_trywait(e.fabric, fids, 1), );
	end_close(&e);
}

static void one_that_is_asked_for_late_wakes_the_reader(void **state)
{
	static const enum fi_threading levels[] = { FI_THREAD_DOMAIN, FI_THREAD_SAFE };
	struct end_attr plain = { .provider = provider };
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 2; i++) {
		struct end_attr attr = { .provider = provider,
					 .threading = levels[i],
					 .cq_wait = FI_WAIT_UNSPEC,
					 .cntr_wait = FI_WAIT_UNSPEC };
		struct fid *fids[2];
		struct end a, b;
		fi_addr_t to;
		int fd, cntr_fd;

		end_open(&a, &plain);
		end_open(&b, &attr);
		to = end_knows(&a, &b);
		fids[0] = &b.cq->fid;
		fids[1] = &b.rx->fid;
		/* It has slept in a call before. */
		assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 5), -FI_EAGAIN);
		fd = asked(fids[0]);
		cntr_fd = asked(fids[1]);
		for (int n = 0; n < ROUNDS; n++) {
			post(&b);
			END_UNTIL(!fi_trywait(b.fabric, fids, 2), );
			/* From here on the receiver calls nothing while its descriptors do not ring. */
			message(&a, to);
			while (!fi_trywait(b.fabric, fids, 2))
				END_UNTIL(rings(fd, 0) && rings(cntr_fd, 0),
					  fi_cq_read(a.cq, NULL, 0));
			assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 20000), 1);
			assert_int_equal(fi_cntr_wait(b.rx, (uint64_t)n + 1, 20000), 0);
			END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, );
		}
		end_close(&a);
		end_close(&b);
	}
}

static void who_never_asks_has_none(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct end e;
	int before;

	end_open(&e, &attr);
	before = mock_descriptors();
	assert_int_equal(fi_cq_open(e.domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_cntr_open(e.domain, &cntr_attr, &cntr, NULL), 0);
	assert_int_equal(mock_descriptors(), before);
	asked(&cq->fid);
	asked(&cntr->fid);
	assert_true(mock_descriptors() >= before + 2);
	before = mock_descriptors();
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(mock_descriptors(), before - 2);
	end_close(&e);
}

/* The last of so many that the domain's thread rings it: its endpoint has a queue of its own. */
static void the_last_of_many_wakes_the_reader(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED,
				      .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct fid_cq *cqs[QUEUES];
	struct fid *fids[1];
	struct end a, b, other;
	fi_addr_t to;
	int fd = -1;

	end_open(&a, &attr);
	end_open(&b, &attr);
	for (int i = 0; i < QUEUES; i++)
		assert_int_equal(fi_cq_open(b.domain, &cq_attr, &cqs[i], NULL), 0);
	other = b;
	other.cq = cqs[QUEUES - 1];
	assert_int_equal(fi_endpoint(b.domain, b.info, &other.ep, NULL), 0);
	assert_int_equal(fi_ep_bind(other.ep, &b.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(other.ep, &other.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(other.ep), 0);
	to = end_knows(&a, &other);
	for (int i = 0; i < QUEUES; i++)
		fd = asked(&cqs[i]->fid);
	fids[0] = &other.cq->fid;
	for (int n = 0; n < ROUNDS; n++) {
		post(&other);
		END_UNTIL(!fi_trywait(b.fabric, fids, 1), );
		message(&a, to);
		/* It may ring for a step of the connection. */
		do
			while (!fi_trywait(b.fabric, fids, 1))
				END_UNTIL(rings(fd, 0), fi_cq_read(a.cq, NULL, 0));
		while (fi_cq_read(other.cq, &entry, 1) != 1);
		END_UNTIL(fi_cq_read(a.cq, &entry, 1) == 1, );
	}
	assert_int_equal(fi_close(&other.ep->fid), 0);
	for (int i = 0; i < QUEUES; i++)
		assert_int_equal(fi_close(&cqs[i]->fid), 0);
	end_close(&a);
	end_close(&b);
}

/* Events and sets */

static void an_event_queue_has_one_too(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fi_eq_entry in = { .data = 4711 }, got;
	struct fid *fids[1];
	struct fid_eq *eq;
	uint32_t event;
	struct end e;
	int fd;

	end_open(&e, &attr);
	assert_int_equal(fi_eq_open(e.fabric, &eq_attr, &eq, NULL), 0);
	fids[0] = &eq->fid;
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	fd = asked(fids[0]);
	assert_true(rings(fd, 0));
	assert_int_equal(fi_eq_sread(eq, &event, &got, sizeof(got), 20000, 0), sizeof(got));
	assert_int_equal(fi_trywait(e.fabric, fids, 1), 0);
	assert_false(rings(fd, 0));
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	assert_true(rings(fd, 0));
	assert_int_equal(fi_close(&eq->fid), 0);
	end_close(&e);
}

static void a_wait_set_has_one_too(void **state)
{
	struct end_attr attr = { .provider = provider };
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET };
	struct fid_cntr *cntr;
	struct fid_wait *set;
	struct fid *fids[1];
	struct end e;
	int fd;

	end_open(&e, &attr);
	assert_int_equal(fi_wait_open(e.fabric, &wait_attr, &set), 0);
	cntr_attr.wait_set = cq_attr.wait_set = set;
	assert_int_equal(fi_cntr_open(e.domain, &cntr_attr, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	fids[0] = &set->fid;
	fd = asked(fids[0]);
	assert_int_equal(asked(&cntr->fid), fd);
	assert_true(rings(fd, 0));
	assert_int_equal(fi_trywait(e.fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_cntr_read(cntr), 1);
	END_UNTIL(!fi_trywait(e.fabric, fids, 1), );
	assert_false(rings(fd, 0));
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_true(rings(fd, 20000));
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&set->fid), 0);
	end_close(&e);
}

/* Threads */

struct asker {
	struct end *end;
	_Atomic bool *go, *stop;
	int fd;
};

static void *asks(void *arg)
{
	struct asker *a = arg;

	while (!atomic_load(a->go))
		;
	if (fi_control(&a->end->cq->fid, FI_GETWAIT, &a->fd))
		a->fd = -1;
	return NULL;
}

static void *signals(void *arg)
{
	struct asker *a = arg;

	while (!atomic_load(a->stop))
		fi_cq_signal(a->end->cq);
	return NULL;
}

/* Messages come all the time, one thread signals, and two ask at once. */
static void two_threads_ask_under_traffic_and_get_the_same(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .threading = FI_THREAD_SAFE,
				 .cq_wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry entry;
	struct end e;

	for (int n = 0; n < ROUNDS; n++) {
		_Atomic bool go = false, stop = false;
		struct asker askers[3];
		pthread_t threads[3];
		fi_addr_t self;
		int got = 0;

		end_open(&e, &attr);
		self = end_knows(&e, &e);
		for (int i = 0; i < 3; i++) {
			askers[i] = (struct asker){ &e, &go, &stop, -1 };
			assert_int_equal(pthread_create(&threads[i], NULL, i ? asks : signals,
							&askers[i]),
					 0);
		}
		for (int i = 0; i < 50; i++) {
			post(&e);
			message(&e, self);
			atomic_store(&go, i >= n);
		}
		END_UNTIL(got == 100, got += fi_cq_sread(e.cq, &entry, 1, NULL, 100) == 1);
		for (int i = 1; i < 3; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		atomic_store(&stop, true);
		assert_int_equal(pthread_join(threads[0], NULL), 0);
		assert_true(askers[1].fd >= 0);
		assert_int_equal(askers[1].fd, askers[2].fd);
		end_close(&e);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_came_before_it_was_asked_for_rings),
		cmocka_unit_test(a_signal_before_it_was_asked_for_is_told),
		cmocka_unit_test(one_that_is_asked_for_late_wakes_the_reader),
		cmocka_unit_test(who_never_asks_has_none),
		cmocka_unit_test(the_last_of_many_wakes_the_reader),
		cmocka_unit_test(an_event_queue_has_one_too),
		cmocka_unit_test(a_wait_set_has_one_too),
		cmocka_unit_test(two_threads_ask_under_traffic_and_get_the_same),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
