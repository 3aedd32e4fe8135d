/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Automatic progress over the real library and each provider: what a peer begins ends while the
 * program at the target calls nothing. One process, its main thread and those of the domains.
 *
 * usage: auto_test PROVIDER
 */
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define LARGE (1u << 20)
#define CAPS  (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KEY   0x1234

static const char *provider;

static char large[2][LARGE];
static struct fi_context2 contexts[2];

static void done(struct end *e, struct fi_context2 *context)
{
	struct fi_cq_tagged_entry entry;

	END_UNTIL(fi_cq_read(e->cq, &entry, 1) == 1, );
	assert_ptr_equal(entry.op_context, context);
}

/* As libfabric's provider of that name: tcp moves data by itself, shm, and so link, connections alone. */
static void unstated_progress_is_that_of_the_name(void **state)
{
	struct end_attr attr = { .provider = provider, .any_progress = true };
	bool data = !strcmp(provider, "tcp");
	struct fi_info *info = end_info(&attr);

	assert_non_null(info);
	assert_int_equal(info->domain_attr->data_progress,
			 data ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL);
	assert_int_equal(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	fi_freeinfo(info);
	attr.progress = FI_PROGRESS_MANUAL;
	info = end_info(&attr);
	assert_non_null(info);
	assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	fi_freeinfo(info);
	attr.progress = FI_PROGRESS_AUTO;
	info = end_info(&attr);
	assert_non_null(info);
	assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	assert_int_equal(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	fi_freeinfo(info);
}

/* The thread sends it once the peer is connected: the program need not call again. */
static void what_is_injected_is_taken_before_its_peer_is_connected(void **state)
{
	struct end_attr attr = { .provider = provider, .progress = FI_PROGRESS_AUTO };
	struct end a, b;
	char buf[8];

	end_open(&a, &attr);
	end_open(&b, &attr);
	assert_int_equal(fi_trecv(b.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]), 0);
	assert_int_equal(fi_tinject(a.ep, "taken", 6, end_knows(&a, &b), 1), 0);
	done(&b, &contexts[0]);
	assert_string_equal(buf, "taken");
	end_close(&a);
	end_close(&b);
}

/* Messages of all kinds, the connection itself included, to one that sleeps. */
static void messages_complete_at_a_passive_target(void **state)
{
	static const enum fi_threading levels[] = { FI_THREAD_SAFE, FI_THREAD_DOMAIN };
	static const size_t lens[] = { 8, 4000, LARGE };
	struct end_attr plain = { .provider = provider, .no_cntr = true };

	for (int l = 0; l < 2; l++) {
		struct end_attr attr = { .provider = provider,
					 .threading = levels[l],
					 .progress = FI_PROGRESS_AUTO };
		struct end a, b;
		fi_addr_t to;

		end_open(&a, &plain);
		end_open(&b, &attr);
		to = end_knows(&a, &b);
		for (size_t i = 0; i < 3; i++) {
			memset(large[0], 'a' + (int)i, lens[i]);
			assert_int_equal(fi_trecv(b.ep, large[1], lens[i], NULL, FI_ADDR_UNSPEC,
						  7, 0, &contexts[1]),
					 0);
			END_UNTIL(!fi_tsend(a.ep, large[0], lens[i], NULL, to, 7, &contexts[0]),
				  fi_cq_read(a.cq, NULL, 0));
			done(&a, &contexts[0]);
			if (i)
				usleep(200000); /* long enough for the thread to nap long */
			done(&b, &contexts[1]);
			assert_memory_equal(large[0], large[1], lens[i]);
		}
		assert_int_equal(fi_cntr_read(b.rx), 3);
		end_close(&a);
		end_close(&b);
	}
}

static void wait_acked(struct end *e)
{
	struct fi_cq_tagged_entry entry;

	END_UNTIL(fi_cq_read(e->cq, &entry, 1) == 1, );
}

/*
 * A send that matches a receive, and writes that complete in the memory of a process that makes no
 * call.
 */
static void passive_target_moves(const char *name)
{
	struct end_attr plain = { .provider = name, .no_cntr = true, .caps = CAPS };
	struct end_attr attr = { .provider = name, .any_progress = true, .caps = CAPS };
	uint64_t words[2] = { 0 }, one = 1;
	struct end a, b;
	struct fid_mr *mr;
	fi_addr_t to;

	end_open(&a, &plain);
	end_open(&b, &attr);
	to = end_knows(&a, &b);
	assert_int_equal(fi_mr_reg(b.domain, words, sizeof(words), FI_REMOTE_WRITE, 0, KEY, 0,
				   &mr, NULL),
			 0);
	assert_int_equal(
		fi_trecv(b.ep, large[1], LARGE, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[1]), 0);
	memset(large[0], 's', LARGE);
	/* It is there once the target has taken it up: a message of this length waits for its receive. */
	END_UNTIL(!fi_tsend(a.ep, large[0], LARGE, NULL, to, 7, &contexts[0]),
		  fi_cq_read(a.cq, NULL, 0));
	done(&a, &contexts[0]);
	for (int i = 0; i < 2; i++) {
		END_UNTIL(
			!fi_write(a.rma, &one, 8, NULL, to, (uint64_t)i * 8, KEY, &contexts[0]),
			fi_cq_read(a.cq, NULL, 0));
		done(&a, &contexts[0]);
		assert_int_equal(__atomic_load_n(&words[i], __ATOMIC_ACQUIRE), 1);
	}
	done(&b, &contexts[1]);
	assert_memory_equal(large[0], large[1], LARGE);
	assert_int_equal(fi_close(&mr->fid), 0);
	end_close(&a);
	end_close(&b);
}

static void a_target_that_stated_nothing_makes_progress_over_tcp_and_sockets(void **state)
{
	if (strcmp(provider, "tcp"))
		return; /* the others have manual progress, as those of libfabric */
	passive_target_moves("tcp");
	passive_target_moves("sockets");
}

/* One-sided operations for a second, while the target calls nothing. */
static void one_sided_operations_complete_at_a_passive_target(void **state)
{
	struct end_attr plain = { .provider = provider, .no_cntr = true, .caps = CAPS };
	struct end_attr attr = { .provider = provider,
				 .progress = FI_PROGRESS_AUTO,
				 .caps = CAPS };
	uint64_t words[2] = { 0 }, one = 1, before = 0, rounds = 0, key, base;
	struct end a, b;
	struct fid_mr *mr;
	fi_addr_t to;
	double end;

	end_open(&a, &plain);
	end_open(&b, &attr);
	to = end_knows(&a, &b);
	assert_int_equal(fi_mr_reg(b.domain, words, sizeof(words),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
			 0);
	key = fi_mr_key(mr);
	base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)words : 0;
	for (end = end_now() + 1; !rounds || end_now() < end; rounds++) {
		uint64_t back = 0;

		END_UNTIL(!fi_fetch_atomic(a.ep, &one, 1, NULL, &before, NULL, to, base, key,
					   FI_UINT64, FI_SUM, &contexts[0]),
			  fi_cq_read(a.cq, NULL, 0));
		wait_acked(&a);
		assert_int_equal(before, rounds);
		END_UNTIL(!fi_write(a.ep, &rounds, 8, NULL, to, base + 8, key, &contexts[0]),
			  fi_cq_read(a.cq, NULL, 0));
		wait_acked(&a);
		END_UNTIL(!fi_read(a.ep, &back, 8, NULL, to, base + 8, key, &contexts[0]),
			  fi_cq_read(a.cq, NULL, 0));
		wait_acked(&a);
		assert_int_equal(back, rounds);
	}
	fi_cq_read(b.cq, NULL, 0); /* the target's own turn */
	assert_int_equal(words[0], rounds);
	assert_int_equal(words[1], rounds - 1);
	print_message("%llu rounds of three operations in a second\n",
		      (unsigned long long)rounds);
	assert_int_equal(fi_close(&mr->fid), 0);
	end_close(&a);
	end_close(&b);
}

/* An atomic of @a at @b, which calls nothing: seconds until it is done. */
static double fetch(struct end *a, fi_addr_t to, uint64_t base, uint64_t key)
{
	uint64_t one = 1, before;
	double begin = end_now();

	END_UNTIL(!fi_fetch_atomic(a->ep, &one, 1, NULL, &before, NULL, to, base, key,
				   FI_UINT64, FI_SUM, &contexts[0]),
		  fi_cq_read(a->cq, NULL, 0));
	wait_acked(a);
	return end_now() - begin;
}

#define SOON_PHASES 3
#define PHASES_S    20
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SOON_MS 200
#else
#define SOON_MS 10
#endif

/*
 * One that polls, then computes, then polls again, until it has answered soon in some of these phases:
 * others may have the cores in all the others.
 */
static void a_target_that_has_stopped_polling_answers_soon(void **state)
{
	static const enum fi_threading levels[] = { FI_THREAD_SAFE, FI_THREAD_DOMAIN };
	struct end_attr plain = { .provider = provider, .no_cntr = true, .caps = CAPS };

	for (int l = 0; l < 2; l++) {
		struct end_attr attr = { .provider = provider,
					 .threading = levels[l],
					 .progress = FI_PROGRESS_AUTO,
					 .caps = CAPS };
		double end, last, worst = 0, took;
		uint64_t word = 0, key, base;
		int soon = 0, phases = 0;
		struct fid_mr *mr;
		struct end a, b;
		fi_addr_t to;

		end_open(&a, &plain);
		end_open(&b, &attr);
		to = end_knows(&a, &b);
		assert_int_equal(fi_mr_reg(b.domain, &word, sizeof(word),
					   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
					   NULL),
				 0);
		key = fi_mr_key(mr);
		base = b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)&word : 0;
		fetch(&a, to, base, key); /* the connection is there */
		for (last = end_now() + PHASES_S; soon < SOON_PHASES && end_now() < last;
		     phases++) {
			for (end = end_now() + 0.04; end_now() < end;)
				fi_cq_read(b.cq, NULL, 0);
			took = fetch(&a, to, base, key);
			soon += took < SOON_MS / 1e3;
			worst = took > worst ? took : worst;
		}
		print_message("%d of %d within %d ms, the slowest after %.1f ms\n", soon,
			      phases, SOON_MS, worst * 1e3);
		assert_int_equal(soon, SOON_PHASES);
		fi_cq_read(b.cq, NULL, 0); /* the target's own turn */
		assert_int_equal(word, phases + 1);
		assert_int_equal(fi_close(&mr->fid), 0);
		end_close(&a);
		end_close(&b);
	}
}

static double processor_time(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Two domains that are connected, whose program sleeps; what they end late is in the first second. */
static void an_idle_program_uses_no_processor(void **state)
{
	struct end_attr attr = { .provider = provider, .progress = FI_PROGRESS_AUTO };
	double used = 1;
	struct end a, b;
	fi_addr_t to;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	skip(); /* a thread of the library does */
#endif
	end_open(&a, &attr);
	end_open(&b, &attr);
	to = end_knows(&a, &b);
	assert_int_equal(fi_trecv(b.ep, large[1], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[1]),
			 0);
	END_UNTIL(!fi_tsend(a.ep, large[0], 8, NULL, to, 7, &contexts[0]), );
	done(&b, &contexts[1]);
	done(&a, &contexts[0]);
	usleep(100000);
	for (int i = 0; i < 10 && used >= 0.01; i++) {
		double before = processor_time();

		sleep(1);
		used = processor_time() - before;
	}
	assert_true(used < 0.01);
	end_close(&a);
	end_close(&b);
}

/* The child of a fork has no thread, and can close what it sees all the same. */
static void a_forked_child_is_not_stuck(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .progress = FI_PROGRESS_AUTO,
				 .no_cntr = true };
	struct end a, b;
	fi_addr_t to;

	end_open(&a, &attr);
	end_open(&b, &attr);
	to = end_knows(&a, &b);
	for (int i = 0; i < 10; i++) {
		int status;
		pid_t pid;

		assert_int_equal(
			fi_trecv(b.ep, large[1], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[1]),
			0);
		END_UNTIL(!fi_tsend(a.ep, large[0], 8, NULL, to, 7, &contexts[0]), );
		pid = fork();
		if (!pid) {
			alarm(600);
			fi_close(&a.ep->fid);
			fi_close(&a.cq->fid);
			fi_close(&a.av->fid);
			_exit(fi_close(&a.domain->fid) != 0);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		done(&a, &contexts[0]);
		done(&b, &contexts[1]);
	}
	end_close(&a);
	end_close(&b);
}

/* In the child: what fails is its exit status. */
#define MUST(cond)                                 \
	do {                                       \
		if (!(cond))                       \
			_exit(1 + __LINE__ % 255); \
	} while (0)

static struct fid_cq *queue_to_sleep_on(struct end *e)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fid_cq *cq = NULL;

	assert_int_equal(fi_cq_open(e->domain, &attr, &cq, NULL), 0);
	return cq;
}

/* Sleeps until a message arrives, on a queue of @e's domain, which the parent has opened. */
static void sleep_on(struct end *e, struct fid_cq *cq)
{
	struct end_attr attr = { .provider = provider,
				 .progress = FI_PROGRESS_AUTO,
				 .no_cntr = true };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_tagged_entry entry;
	struct fid *fids[] = { &cq->fid };
	struct pollfd p = { .events = POLLIN };
	struct end here = *e, there;
	fi_addr_t to;
	ssize_t ret;

	MUST(!fi_av_open(e->domain, &av_attr, &here.av, NULL));
	MUST(!fi_endpoint(e->domain, e->info, &here.ep, NULL));
	MUST(!fi_ep_bind(here.ep, &here.av->fid, 0));
	MUST(!fi_ep_bind(here.ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(!fi_enable(here.ep));
	end_open(&there, &attr);
	to = end_knows(&there, &here);
	MUST(!fi_trecv(here.ep, large[1], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[1]));
	MUST(!fi_control(&cq->fid, FI_GETWAIT, &p.fd));
	END_UNTIL(!fi_trywait(e->fabric, fids, 1), );
	END_UNTIL(!fi_tsend(there.ep, large[0], 8, NULL, to, 7, &contexts[0]), );
	MUST(poll(&p, 1, 15000) == 1);
	/* it may have been woken for nothing: by a step of the connection */
	while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		MUST(fi_trywait(e->fabric, fids, 1) || poll(&p, 1, 15000) == 1);
	MUST(ret == 1 && entry.op_context == &contexts[1]);
	MUST(!fi_close(&here.ep->fid));
	MUST(!fi_close(&cq->fid));
	MUST(!fi_close(&here.av->fid));
	end_close(&there);
}

static void a_forked_child_that_sleeps_is_woken(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .progress = FI_PROGRESS_AUTO,
				 .no_cntr = true };
	struct fid_cq *before;
	struct end e;
	int status;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	skip(); /* it allows no thread in the child of a process that has several */
#endif
	end_open(&e, &attr);
	before = queue_to_sleep_on(&e);
	for (int i = 0; i < 2; i++) {
		pid = fork();
		if (!pid) {
			alarm(600);
			MUST(!fi_close(&e.ep->fid)); /* it is the parent's */
			sleep_on(&e, i ? before : queue_to_sleep_on(&e));
			_exit(0);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_int_equal(fi_close(&before->fid), 0);
	end_close(&e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unstated_progress_is_that_of_the_name),
		cmocka_unit_test(
			a_target_that_stated_nothing_makes_progress_over_tcp_and_sockets),
		cmocka_unit_test(what_is_injected_is_taken_before_its_peer_is_connected),
		cmocka_unit_test(messages_complete_at_a_passive_target),
		cmocka_unit_test(one_sided_operations_complete_at_a_passive_target),
		cmocka_unit_test(a_target_that_has_stopped_polling_answers_soon),
		cmocka_unit_test(an_idle_program_uses_no_processor),
		cmocka_unit_test(a_forked_child_is_not_stuck),
		cmocka_unit_test(a_forked_child_that_sleeps_is_woken),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
