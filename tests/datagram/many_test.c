/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many endpoints on one completion queue, which looks at those alone that have something. Run with
 * "idle" and WEFT_FAULT, by which the kernel receives as often as there are endpoints and not again.
 */
#include <poll.h>
#include "party.h"

enum { CNT = 64 };

static struct party owner;
static struct fid_ep *eps[CNT];
static fi_addr_t addrs[CNT];
static char in[CNT];

static void open_many(enum fi_wait_obj wait)
{
	struct sockaddr_in6 name;
	size_t len;

	party_open(&owner, &(struct party_choice){ .wait = wait });
	for (int i = 0; i < CNT; i++) {
		assert_int_equal(fi_endpoint(owner.domain, owner.info, &eps[i], NULL), 0);
		assert_int_equal(fi_ep_bind(eps[i], &owner.av->fid, 0), 0);
		assert_int_equal(fi_ep_bind(eps[i], &owner.cq->fid,
					    FI_RECV | FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
				 0);
		assert_int_equal(fi_enable(eps[i]), 0);
		len = sizeof(name);
		assert_int_equal(fi_getname(&eps[i]->fid, &name, &len), 0);
		assert_int_equal(fi_av_insert(owner.av, &name, 1, &addrs[i], 0, NULL), 1);
	}
}

static void close_many(void)
{
	for (int i = 0; i < CNT; i++)
		assert_int_equal(fi_close(&eps[i]->fid), 0);
	party_close(&owner);
}

static void post(int i)
{
	const struct iovec iov = { &in[i], 1 };
	const struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &in[i] };

	assert_int_equal(fi_recvmsg(eps[i], &msg, FI_COMPLETION), 0);
}

static void send_to(int i)
{
	char out = (char)i;

	assert_int_equal(fi_inject(eps[(i + 1) % CNT], &out, 1, addrs[i]), 0);
}

static void assert_got(int i)
{
	assert_ptr_equal(party_completion(&owner, NULL).op_context, &in[i]);
	assert_int_equal(in[i], i);
}

static void each_of_many_gets_its_message(void **state)
{
	static const enum fi_wait_obj waits[] = { FI_WAIT_NONE, FI_WAIT_FD };

	for (int w = 0; w < 2; w++) {
		open_many(waits[w]);
		for (int i = 0; i < CNT; i++)
			post(i);
		for (int i = 0; i < CNT; i++) {
			send_to(i);
			assert_got(i);
		}
		party_quiet(&owner);
		close_many();
	}
}

/* More have something than one look finds, and some of them wait for nothing. */
static void those_without_a_receive_are_not_in_the_way(void **state)
{
	bool got[CNT] = { false };

	open_many(FI_WAIT_NONE);
	for (int i = 0; i < CNT; i++)
		send_to(i);
	party_quiet(&owner);
	for (int i = 1; i < CNT; i += 2)
		post(i);
	for (int n = 0; n < CNT / 2; n++) {
		char *context = party_completion(&owner, NULL).op_context;

		assert_int_equal(*context, context - in);
		assert_false(got[context - in]);
		got[context - in] = true;
	}
	party_quiet(&owner);
	for (int i = 0; i < CNT; i += 2) {
		post(i);
		assert_got(i);
	}
	party_quiet(&owner);
	close_many();
}

static void a_sleep_ends_for_those_that_wait(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct fid *fids[1];

	open_many(FI_WAIT_FD);
	fids[0] = &owner.cq->fid;
	assert_int_equal(fi_control(&owner.cq->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < CNT; i++)
		send_to(i);
	/* A look finds some of them, and finds them no more: nobody waits for what they have. */
	party_rests(&owner, p.fd);
	post(3);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	assert_int_equal(fi_trywait(owner.fabric, fids, 1), -FI_EAGAIN);
	assert_got(3);
	party_rests(&owner, p.fd);
	post(3);
	send_to(3);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	assert_got(3);
	close_many();
}

/* The kernel is not asked for datagrams in vain: else it would receive none of these. */
static void an_idle_read_asks_no_socket(void **state)
{
	open_many(FI_WAIT_NONE);
	for (int i = 0; i < CNT; i++)
		post(i);
	for (int i = 0; i < 1000; i++)
		party_quiet(&owner);
	for (int i = 0; i < CNT; i += 2) {
		send_to(i);
		assert_got(i);
	}
	close_many();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest idle[] = { cmocka_unit_test(an_idle_read_asks_no_socket) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_many_gets_its_message),
		cmocka_unit_test(those_without_a_receive_are_not_in_the_way),
		cmocka_unit_test(a_sleep_ends_for_those_that_wait),
	};

	return argc > 1 ? cmocka_run_group_tests(idle, NULL, NULL)
			: cmocka_run_group_tests(tests, NULL, NULL);
}
