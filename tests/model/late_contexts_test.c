/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contexts of scalable endpoints that one thread opens, binds late, uses and closes early, again and
 * again, while another thread's messages for them and for their neighbours are under way: each message
 * arrives once. Over the real library: late_contexts_test PROVIDER. All in one domain.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "ends.h"

#define BITS	 1
#define MESSAGES 600
#define TURNS	 20 /* at least */
#define POSTED	 4
#define LEN_MAX	 100000
#define NAME_MAX 128

static struct end_attr attr = { .no_cntr = true };
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_ep *from, *to; /* scalable endpoints */
static struct fid_ep *tx, *rx;	 /* first contexts: the sender's, and one never closed */
static struct fid_cq *cq, *late_cq;
static fi_addr_t addr;
static _Atomic bool busy;

/* A receive in the context that is opened and closed. */
static struct late {
	struct fi_context2 context;
	char buf[LEN_MAX];
	bool posted;
} late[POSTED];

static bool seen[MESSAGES];
static int seen_cnt;

static struct fid_cq *cq_open(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *opened;

	assert_int_equal(fi_cq_open(domain, &cq_attr, &opened, NULL), 0);
	return opened;
}

static struct fid_ep *sep_open(void)
{
	struct fid_ep *sep;

	assert_int_equal(fi_scalable_ep(domain, info, &sep, NULL), 0);
	assert_int_equal(fi_scalable_ep_bind(sep, &av->fid, 0), 0);
	return sep;
}

static void all_open(enum fi_threading threading)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };
	size_t len = NAME_MAX;
	char name[NAME_MAX];

	attr.threading = threading;
	info = end_info(&attr);
	assert_non_null(info);
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 2;
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	cq = cq_open();
	late_cq = cq_open();
	from = sep_open();
	to = sep_open();
	assert_int_equal(fi_tx_context(from, 0, NULL, &tx, NULL), 0);
	assert_int_equal(fi_rx_context(to, 0, NULL, &rx, NULL), 0);
	assert_int_equal(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(rx, &cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(tx), 0);
	assert_int_equal(fi_enable(rx), 0);
	assert_int_equal(fi_getname(&to->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, &addr, 0, NULL), 1);
	memset(seen, 0, sizeof(seen));
	seen_cnt = 0;
}

static void all_close(void)
{
	struct fid *fids[] = { &tx->fid,      &rx->fid, &from->fid,   &to->fid,	   &cq->fid,
			       &late_cq->fid, &av->fid, &domain->fid, &fabric->fid };

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		assert_int_equal(fi_close(fids[i]), 0);
	fi_freeinfo(info);
}

/* The sender's turn decides the length of a message, which begins with its number. */
static size_t len_of(uint32_t number)
{
	static const size_t lens[] = { 8, 64, 300, 4000, 20000, LEN_MAX };

	return lens[number % 6];
}

static void take_late(const struct fi_cq_tagged_entry *e)
{
	struct late *l = e->op_context;
	uint32_t number;

	assert_true(l >= late && l < late + POSTED && l->posted);
	memcpy(&number, l->buf, sizeof(number));
	assert_true(number < MESSAGES && !seen[number]);
	assert_int_equal(e->len, len_of(number));
	seen[number] = true;
	seen_cnt++;
	l->posted = false;
}

static void read_late(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(late_cq, &entry, 1)) == 1)
		take_late(&entry);
	assert_int_equal(ret, -FI_EAGAIN);
}

static void post_late(struct fid_ep *ep)
{
	for (int i = 0; i < POSTED; i++) {
		if (late[i].posted)
			continue;
		late[i].posted = true;
		assert_int_equal(fi_recv(ep, late[i].buf, LEN_MAX, NULL, FI_ADDR_UNSPEC,
					 &late[i].context),
				 0);
	}
}

/*
 * The queue is bound when it is enabled, and receives are posted then if threads share the domain.
 */
static struct fid_ep *late_open(bool posts)
{
	struct fid_ep *ep;

	assert_int_equal(fi_rx_context(to, 1, NULL, &ep, NULL), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_ep_bind(ep, &late_cq->fid, FI_RECV), 0);
	if (posts)
		post_late(ep);
	return ep;
}

/* Receives that matched are reported; those that did not are returned to the program. */
static void late_close(struct fid_ep *ep, bool posts)
{
	assert_int_equal(fi_close(&ep->fid), 0);
	if (!posts)
		return;
	read_late();
	for (int i = 0; i < POSTED; i++)
		late[i].posted = false;
}

static bool posts_late;

static void *comes_and_goes(void *arg)
{
	uint32_t turn = 0;

	while (atomic_load(&busy) || turn < TURNS) {
		struct fid_ep *ep = late_open(posts_late), *sender;

		assert_int_equal(fi_tx_context(from, 1, NULL, &sender, NULL), 0);
		assert_int_equal(fi_enable(sender), 0);
		assert_int_equal(fi_ep_bind(sender, &late_cq->fid, FI_TRANSMIT), 0);
		for (uint32_t i = 0; i < turn % 5; i++) {
			sched_yield();
			if (posts_late)
				read_late();
		}
		assert_int_equal(fi_close(&sender->fid), 0);
		late_close(ep, posts_late);
		turn++;
	}
	return NULL;
}

/* Reads the completions of the sender and of the context that stays. */
static void step(int *sent, int *received)
{
	struct fi_cq_tagged_entry entry;

	while (fi_cq_read(cq, &entry, 1) == 1)
		*(entry.flags & FI_SEND ? sent : received) += 1;
}

/* For each message to the context that is opened and closed there is one to the other. */
static void send_all(char **out, int *sent)
{
	static struct fi_context2 contexts[3];
	static char in[64];
	int received = 0;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		out[i] = calloc(1, len_of(i));
		assert_non_null(out[i]);
		memcpy(out[i], &i, sizeof(i));
		assert_int_equal(
			fi_recv(rx, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &contexts[0]), 0);
		END_UNTIL(!fi_send(tx, out[i], len_of(i), NULL, fi_rx_addr(addr, 1, BITS),
				   &contexts[1]),
			  step(sent, &received));
		END_UNTIL(!fi_send(tx, out[i], sizeof(i), NULL, fi_rx_addr(addr, 0, BITS),
				   &contexts[2]),
			  step(sent, &received));
		END_UNTIL(received == (int)i + 1, step(sent, &received));
	}
}

static void under_traffic(enum fi_threading threading)
{
	static char *out[MESSAGES];
	int sent = 0, received = 0;
	struct fid_ep *ep;
	pthread_t thread;

	/* With FI_THREAD_DOMAIN the other thread may control, but not transfer. */
	posts_late = threading == FI_THREAD_SAFE;
	all_open(threading);
	atomic_store(&busy, true);
	assert_int_equal(pthread_create(&thread, NULL, comes_and_goes, NULL), 0);
	send_all(out, &sent);
	atomic_store(&busy, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ep = late_open(false);
	END_UNTIL(seen_cnt == MESSAGES && sent == 2 * MESSAGES, {
		post_late(ep);
		read_late();
		step(&sent, &received);
	});
	late_close(ep, true);
	for (int i = 0; i < MESSAGES; i++)
		free(out[i]);
	all_close();
}

static void contexts_come_late_and_go_early_beside_traffic(void **state)
{
	under_traffic(FI_THREAD_SAFE);
}

static void control_calls_of_another_thread_lose_nothing(void **state)
{
	under_traffic(FI_THREAD_DOMAIN);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts_come_late_and_go_early_beside_traffic),
		cmocka_unit_test(control_calls_of_another_thread_lose_nothing),
	};

	if (argc != 2)
		return 2;
	attr.provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
