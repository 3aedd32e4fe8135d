/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues of another provider (FI_PEER), over the real library and each provider: the test is the
 * owner, into whose queue the provider's completions go.
 *
 * usage: cq_import_test PROVIDER
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_peer.h>
#include "ends.h"

#define MANY	3000
#define KEY	7
#define THREADS 2

static const char *provider;

/* A queue of the owner's: what was written into it, in order. */
struct owner {
	struct fid_peer_cq cq; /* first: calls name it */
	pthread_mutex_t lock;
	struct fi_cq_tagged_entry entry[2 * MANY];
	fi_addr_t src[2 * MANY];
	struct fi_cq_err_entry error[8];
	size_t cnt, error_cnt;
	size_t room;	/* entries that it takes; beyond them it has none now */
	size_t refused; /* times that it had none */
};

static struct owner owners[2];
static struct end a, b;
static fi_addr_t to_a, to_b;
static uint8_t buf[65536], got[65536];

static ssize_t owner_write(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len,
			   void *to, uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct owner *o = (struct owner *)cq;
	ssize_t ret = -FI_EAGAIN;

	pthread_mutex_lock(&o->lock);
	if (o->cnt + o->error_cnt >= o->room) {
		o->refused++;
	} else {
		o->entry[o->cnt] = (struct fi_cq_tagged_entry){ context, flags, len,
								to,	 data,	tag };
		o->src[o->cnt] = src;
		/* the entry before its number, which readers poll */
		__atomic_store_n(&o->cnt, o->cnt + 1, __ATOMIC_RELEASE);
		ret = 0;
	}
	pthread_mutex_unlock(&o->lock);
	return ret;
}

static ssize_t owner_writeerr(struct fid_peer_cq *cq, const struct fi_cq_err_entry *error)
{
	struct owner *o = (struct owner *)cq;
	ssize_t ret = -FI_EAGAIN;

	pthread_mutex_lock(&o->lock);
	if (o->cnt + o->error_cnt < o->room) {
		o->error[o->error_cnt] = *error;
		__atomic_store_n(&o->error_cnt, o->error_cnt + 1, __ATOMIC_RELEASE);
		ret = 0;
	}
	pthread_mutex_unlock(&o->lock);
	return ret;
}

static struct fi_ops_cq_owner owner_ops = { .size = sizeof(struct fi_ops_cq_owner),
					    .write = owner_write,
					    .writeerr = owner_writeerr };

static void owner_init(struct owner *o)
{
	memset(o, 0, sizeof(*o));
	o->cq.fid.fclass = FI_CLASS_PEER_CQ;
	o->cq.owner_ops = &owner_ops;
	o->room = SIZE_MAX;
	pthread_mutex_init(&o->lock, NULL);
}

static size_t count(struct owner *o)
{
	return __atomic_load_n(&o->cnt, __ATOMIC_ACQUIRE);
}

/* The context is the call's: nothing of it is there afterwards. */
static void import(struct end *e, const struct end_attr *attr, struct owner *o)
{
	struct fi_peer_cq_context *context = malloc(sizeof(*context));
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED,
				      .flags = FI_PEER,
				      .wait_obj = attr->cq_wait };

	assert_non_null(context);
	*context = (struct fi_peer_cq_context){ sizeof(*context), &o->cq };
	assert_int_equal(fi_cq_open(e->domain, &cq_attr, &e->cq, context), 0);
	memset(context, 0xa5, sizeof(*context));
	free(context);
}

static void open_one(struct end *e, const struct end_attr *attr, struct owner *o)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	owner_init(o);
	*e = (struct end){ .info = end_info(attr) };
	assert_non_null(e->info);
	assert_int_equal(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), 0);
	assert_int_equal(fi_domain(e->fabric, e->info, &e->domain, NULL), 0);
	assert_int_equal(fi_av_open(e->domain, &av_attr, &e->av, NULL), 0);
	import(e, attr, o);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
}

static void open_both(const struct end_attr *attr)
{
	open_one(&a, attr, &owners[0]);
	open_one(&b, attr, &owners[1]);
	to_b = end_knows(&a, &b);
	to_a = end_knows(&b, &a);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 7 + 1);
	memset(got, 0, sizeof(got));
}

static int setup(void **state)
{
	open_both(&(struct end_attr){ .provider = provider,
				      .caps = FI_RMA | FI_SOURCE,
				      .threading = FI_THREAD_DOMAIN });
	return 0;
}

static int teardown(void **state)
{
	if (b.ep)
		end_close(&b);
	if (a.ep)
		end_close(&a);
	return 0;
}

/* What an owner does that reads its own queue: it has the peer make progress. */
static void turn(void)
{
	assert_int_equal(fi_cq_read(a.cq, NULL, 0), 0);
	assert_int_equal(fi_cq_read(b.cq, NULL, 0), 0);
}

static void turns(int cnt)
{
	while (cnt--)
		turn();
}

static void is(struct owner *o, size_t i, void *context, uint64_t flags)
{
	END_UNTIL(count(o) > i, turn());
	assert_ptr_equal(o->entry[i].op_context, context);
	assert_int_equal(o->entry[i].flags, flags);
}

static void completions_go_to_the_owner(void **state)
{
	struct owner *oa = &owners[0], *ob = &owners[1];

	assert_int_equal(fi_trecv(b.ep, got, 100, NULL, FI_ADDR_UNSPEC, 5, 0xf0, &got), 0);
	END_UNTIL(!fi_tsenddata(a.ep, buf, 64, NULL, 99, to_b, 0x55, &buf), turn());
	is(oa, 0, &buf, FI_SEND | FI_TAGGED);
	is(ob, 0, &got, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	assert_int_equal(ob->entry[0].len, 64);
	assert_int_equal(ob->entry[0].data, 99);
	assert_int_equal(ob->entry[0].tag, 0x55);
	assert_int_equal(ob->src[0], to_a);
	assert_memory_equal(got, buf, 64);
	/* A rendezvous, the other way. */
	assert_int_equal(fi_recv(a.ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, &a), 0);
	END_UNTIL(!fi_send(b.ep, buf, sizeof(buf), NULL, to_a, &b), turn());
	is(oa, 1, &a, FI_RECV | FI_MSG);
	assert_int_equal(oa->entry[1].len, sizeof(buf));
	assert_int_equal(oa->src[1], to_b);
	is(ob, 1, &b, FI_SEND | FI_MSG);
	assert_memory_equal(got, buf, sizeof(buf));
	turns(20);
	assert_int_equal(count(oa) + count(ob), 4);
	assert_int_equal(oa->error_cnt + ob->error_cnt, 0);
}

static void one_sided_operations_too(void **state)
{
	struct fid_mr *mr;
	uint64_t key;

	assert_int_equal(
		fi_mr_reg(b.domain, got, sizeof(got), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	key = fi_mr_key(mr);
	END_UNTIL(!fi_writedata(a.ep, buf, 64, NULL, 17, to_b, 0, key, &buf), turn());
	is(&owners[0], 0, &buf, FI_RMA | FI_WRITE);
	END_UNTIL(count(&owners[1]), turn());
	assert_int_equal(owners[1].entry[0].flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	assert_int_equal(owners[1].entry[0].data, 17);
	assert_memory_equal(got, buf, 64);
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void errors_go_to_the_owner(void **state)
{
	struct owner *o = &owners[1];

	assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 5, 0, &got), 0);
	END_UNTIL(!fi_tinject(a.ep, buf, 24, to_b, 5), turn());
	END_UNTIL(__atomic_load_n(&o->error_cnt, __ATOMIC_ACQUIRE), turn());
	assert_ptr_equal(o->error[0].op_context, &got);
	assert_int_equal(o->error[0].err, FI_ETRUNC);
	assert_int_equal(o->error[0].olen, 16);
	assert_int_equal(o->error[0].tag, 5);
	assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 6, 0, &b), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, &b), 0);
	END_UNTIL(__atomic_load_n(&o->error_cnt, __ATOMIC_ACQUIRE) == 2, turn());
	assert_ptr_equal(o->error[1].op_context, &b);
	assert_int_equal(o->error[1].err, FI_ECANCELED);
	assert_int_equal(count(o), 0);
}

/* More than a queue begins with, and again after all of it was handed over. */
static void none_is_lost_of_many_and_each_keeps_its_place(void **state)
{
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(fi_trecv(b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, i, 0,
					  (void *)(uintptr_t)i),
				 0);
	for (uint64_t i = 0; i < MANY; i++)
		END_UNTIL(!fi_tsend(a.ep, NULL, 0, NULL, to_b, i, (void *)(uintptr_t)i), turn());
	for (int o = 0; o < 2; o++)
		END_UNTIL(count(&owners[o]) == MANY, turn());
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal((uintptr_t)owners[0].entry[i].op_context, i);
		assert_int_equal(owners[1].entry[i].tag, i);
	}
}

static void what_the_owner_has_no_room_for_comes_again(void **state)
{
	struct owner *o = &owners[1];
	size_t refused;

	o->room = 3;
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(fi_trecv(b.ep, got, i == 5 ? 0 : 8, NULL, FI_ADDR_UNSPEC, i, 0,
					  (void *)(uintptr_t)i),
				 0);
	for (uint64_t i = 0; i < 10; i++)
		END_UNTIL(!fi_tinject(a.ep, buf, 8, to_b, i), turn());
	END_UNTIL(o->refused > 5, turn());
	assert_int_equal(o->cnt, 3);
	o->room = 5; /* the next is an error */
	END_UNTIL(o->cnt == 5, turn());
	turns(10);
	assert_int_equal(o->cnt, 5);
	assert_int_equal(o->error_cnt, 0);
	o->room = 9;
	END_UNTIL(o->error_cnt == 1 && o->cnt == 8, turn());
	assert_int_equal(o->error[0].tag, 5);
	/* The last one, which is there, when the queue is closed. */
	refused = o->refused;
	END_UNTIL(o->refused > refused, turn());
	end_close(&a);
	a.ep = NULL;
	o->room = SIZE_MAX;
	end_close(&b);
	b.ep = NULL;
	assert_int_equal(o->cnt, 9);
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(o->entry[i].tag, i < 5 ? i : i + 1);
}

static void a_queue_that_is_closed_hands_over_what_it_has(void **state)
{
	assert_int_equal(fi_recv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, &got), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, &got), 0);
	end_close(&b);
	b.ep = NULL;
	assert_int_equal(owners[1].error_cnt, 1);
	assert_int_equal(owners[1].error[0].err, FI_ECANCELED);
}

static void only_the_owners_queue_is_read(void **state)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	fi_addr_t src;

	assert_int_equal(fi_cq_readfrom(a.cq, &entry, 1, &src), -FI_ENOSYS);
	assert_int_equal(fi_cq_readerr(a.cq, &error, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_sread(a.cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_sreadfrom(a.cq, &entry, 1, &src, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_signal(a.cq), -FI_ENOSYS);
}

static void an_owner_that_can_not_be_written_to_is_refused(void **state)
{
	struct fi_cq_attr attr = { .flags = FI_PEER };
	struct fi_ops_cq_owner ops = owner_ops;
	struct fid_peer_cq owner = { .owner_ops = &ops };
	struct fi_peer_cq_context context = { sizeof(context), &owner };
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, NULL), -FI_EINVAL);
	context.size = 4;
	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, &context), -FI_EINVAL);
	context = (struct fi_peer_cq_context){ sizeof(context), NULL };
	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, &context), -FI_EINVAL);
	context.cq = &owner;
	owner.owner_ops = NULL;
	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, &context), -FI_EINVAL);
	owner.owner_ops = &ops;
	ops.writeerr = NULL;
	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, &context), -FI_EINVAL);
	ops.writeerr = owner_writeerr;
	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, &context), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
}

/* No call makes progress: completions of operations that end within their call are written too. */
static void a_domain_with_a_thread_hands_over_by_itself(void **state)
{
	open_both(&(struct end_attr){ .provider = provider,
				      .threading = FI_THREAD_SAFE,
				      .progress = FI_PROGRESS_AUTO });
	for (size_t i = 0; i < 50; i++) {
		ssize_t ret;

		assert_int_equal(fi_recv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, &got), 0);
		END_UNTIL((ret = fi_send(a.ep, buf, 8, NULL, to_b, &buf)) != -FI_EAGAIN,
			  sched_yield());
		assert_int_equal(ret, 0);
		END_UNTIL(count(&owners[0]) == i + 1, sched_yield());
		END_UNTIL(count(&owners[1]) == i + 1, sched_yield());
	}
}

static bool readable(int fd, int ms)
{
	struct pollfd on = { .fd = fd, .events = POLLIN };

	return poll(&on, 1, ms) == 1;
}

/* An owner may sleep on the peer's descriptor besides its own. */
static void its_descriptor_wakes_the_owner(void **state)
{
	struct fid *fid;
	int fd;

	open_both(&(struct end_attr){
		.provider = provider, .threading = FI_THREAD_DOMAIN, .cq_wait = FI_WAIT_FD });
	assert_int_equal(fi_control(&b.cq->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(fi_recv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, &got), 0);
	END_UNTIL(!fi_inject(a.ep, buf, 8, to_b), turn());
	END_UNTIL(count(&owners[1]) == 1, turn());
	assert_int_equal(fi_recv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, &got), 0);
	fid = &b.cq->fid;
	END_UNTIL(!fi_trywait(b.fabric, &fid, 1), turns(0));
	assert_false(readable(fd, 0));
	END_UNTIL(!fi_inject(a.ep, buf, 8, to_b), fi_cq_read(a.cq, NULL, 0));
	END_UNTIL(readable(fd, 10), fi_cq_read(a.cq, NULL, 0));
	END_UNTIL(count(&owners[1]) == 2, fi_cq_read(b.cq, NULL, 0));
}

static void *send_many(void *arg)
{
	double end = end_now() + 60;

	for (int i = 0; i < MANY / THREADS; i++)
		while (fi_tsend(a.ep, buf, 8, NULL, to_b, 0, arg) == -FI_EAGAIN &&
		       end_now() < end)
			fi_cq_read(a.cq, NULL, 0);
	return NULL;
}

static void threads_share_an_owner(void **state)
{
	pthread_t thread[THREADS];
	size_t of[THREADS] = { 0 };

	open_both(&(struct end_attr){ .provider = provider, .threading = FI_THREAD_SAFE });
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_many, &of[i]), 0);
	for (int o = 0; o < 2; o++)
		END_UNTIL(count(&owners[o]) == MANY, turn());
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < MANY; i++)
		++*(size_t *)owners[0].entry[i].op_context;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(of[i], MANY / THREADS);
}

int main(int argc, char **argv)
{
#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)
#define OPENS(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(completions_go_to_the_owner),
		TEST(one_sided_operations_too),
		TEST(errors_go_to_the_owner),
		TEST(none_is_lost_of_many_and_each_keeps_its_place),
		TEST(what_the_owner_has_no_room_for_comes_again),
		TEST(a_queue_that_is_closed_hands_over_what_it_has),
		TEST(only_the_owners_queue_is_read),
		TEST(an_owner_that_can_not_be_written_to_is_refused),
		OPENS(a_domain_with_a_thread_hands_over_by_itself),
		OPENS(its_descriptor_wakes_the_owner),
		OPENS(threads_share_an_owner),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
