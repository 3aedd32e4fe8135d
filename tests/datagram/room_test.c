/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends behind others that are held back, when the kernel has no room for them. Run with "once",
 * "refused" and "ever": how often WEFT_FAULT has it refuse.
 */
#include <poll.h>
#include "party.h"

static struct party a;
static fi_addr_t self;

/* Sends two messages with one call of the kernel, which refuses them. */
static void send_two(char *out)
{
	const struct iovec iov = { out, 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = self };

	for (int i = 0; i < 2; i++) {
		msg.context = out + i;
		assert_int_equal(fi_sendmsg(a.ep, &msg, i ? 0 : FI_MORE), 0);
	}
}

/* Who sleeps at the descriptor already is woken when there is room. */
static void room_ends_a_sleep(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct fid *fids[1];
	char out[2] = "xx";

	party_open(&a, &(struct party_choice){ .wait = FI_WAIT_FD });
	self = party_meet(&a, &a);
	fids[0] = &a.cq->fid;
	assert_int_equal(fi_control(&a.cq->fid, FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_trywait(a.fabric, fids, 1), 0);
	send_two(out);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(party_completion(&a, NULL).op_context, out + i);
	party_rests(&a, p.fd);
	party_close(&a);
}

/* A send that is refused is no busy loop: the descriptor, or a blocking read, waits for room. */
static void room_for_a_refused_send_ends_a_sleep(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct fi_cq_tagged_entry entry;
	struct fid *fids[1];
	uint64_t before;
	char out = 'x';

	party_open(&a, &(struct party_choice){ .wait = FI_WAIT_FD });
	self = party_meet(&a, &a);
	fids[0] = &a.cq->fid;
	assert_int_equal(fi_control(&a.cq->fid, FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_trywait(a.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fi_send(a.ep, &out, 1, NULL, self, &out), -FI_EAGAIN);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	before = party_now_ms();
	assert_int_equal(fi_cq_sread(a.cq, &entry, 1, NULL, PARTY_WAIT_MS), -FI_EAGAIN);
	assert_true(party_now_ms() - before < PARTY_WAIT_MS / 2);
	/* It is told once. */
	assert_int_equal(fi_trywait(a.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fi_send(a.ep, &out, 1, NULL, self, &out), 0);
	assert_ptr_equal(party_completion(&a, NULL).op_context, &out);
	party_rests(&a, p.fd);
	party_close(&a);
}

static void what_never_left_is_told_at_the_end(void **state)
{
	struct fi_cq_err_entry err;
	char out[2] = "xx";

	party_open(&a, &(struct party_choice){ 0 });
	self = party_meet(&a, &a);
	send_two(out);
	party_quiet(&a);
	assert_int_equal(fi_close(&a.ep->fid), 0);
	for (int i = 0; i < 2; i++) {
		err = party_error(&a);
		assert_ptr_equal(err.op_context, out + i);
		assert_int_equal(err.err, FI_ECANCELED);
	}
	assert_int_equal(fi_endpoint(a.domain, a.info, &a.ep, NULL), 0);
	party_close(&a);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest once[] = { cmocka_unit_test(room_ends_a_sleep) };
	const struct CMUnitTest refused[] = { cmocka_unit_test(
		room_for_a_refused_send_ends_a_sleep) };
	const struct CMUnitTest ever[] = { cmocka_unit_test(what_never_left_is_told_at_the_end) };

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "refused"))
		return cmocka_run_group_tests(refused, NULL, NULL);
	return strcmp(argv[1], "once") ? cmocka_run_group_tests(ever, NULL, NULL)
				       : cmocka_run_group_tests(once, NULL, NULL);
}
