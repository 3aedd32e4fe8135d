/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages: what arrives, what is reported, what is refused, and bytes of strangers. */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "party.h"

#define MSG_MAX 1472

static struct party a, b;
static fi_addr_t b_of_a, a_of_b;

static void open_pair(const struct party_choice *choice)
{
	party_open(&a, choice);
	party_open(&b, choice);
	b_of_a = party_meet(&a, &b);
	a_of_b = party_meet(&b, &a);
}

static void close_pair(void)
{
	party_close(&a);
	party_close(&b);
}

static void messages_bring_bytes_length_and_source(void **state)
{
	static const size_t lens[] = { 0, 1, 8, 1000, MSG_MAX };
	struct fi_cq_tagged_entry entry;
	char out[MSG_MAX], in[MSG_MAX + 1];
	fi_addr_t src;
	int tx, rx;

	open_pair(&(struct party_choice){ .six = *state != NULL });
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		memset(out, 'a' + (int)i, sizeof(out));
		memset(in, 0, sizeof(in));
		assert_int_equal(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx), 0);
		assert_int_equal(fi_send(a.ep, out, lens[i], NULL, b_of_a, &tx), 0);
		entry = party_completion(&a, &src);
		assert_ptr_equal(entry.op_context, &tx);
		assert_true(entry.flags == (FI_SEND | FI_MSG));
		entry = party_completion(&b, &src);
		assert_ptr_equal(entry.op_context, &rx);
		assert_true(entry.flags == (FI_RECV | FI_MSG));
		assert_int_equal(entry.len, lens[i]);
		assert_true(src == a_of_b);
		assert_memory_equal(in, out, lens[i]);
		assert_int_equal(in[lens[i]], 0);
	}
	close_pair();
}

static void vectors_are_gathered_and_scattered(void **state)
{
	char out[] = "gathered", in[3][3] = { { 0 } };
	const struct iovec from[] = { { out, 2 }, { out + 2, 0 }, { out + 2, 6 } };
	const struct iovec to[] = { { in[0], 3 }, { in[1], 3 }, { in[2], 3 } };

	open_pair(&(struct party_choice){ 0 });
	assert_int_equal(fi_recvv(b.ep, to, NULL, 3, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_sendv(a.ep, from, NULL, 3, b_of_a, NULL), 0);
	assert_int_equal(party_completion(&b, NULL).len, 8);
	assert_memory_equal(in, out, 8);
	assert_int_equal(fi_sendv(a.ep, from, NULL, 5, b_of_a, NULL), -FI_EINVAL);
	close_pair();
}

static void a_message_longer_than_its_receive_is_an_error(void **state)
{
	struct fi_cq_err_entry err;
	char out[100], in[40];
	int rx;

	open_pair(&(struct party_choice){ 0 });
	memset(out, 'x', sizeof(out));
	assert_int_equal(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &rx), 0);
	assert_int_equal(fi_send(a.ep, out, sizeof(out), NULL, b_of_a, NULL), 0);
	err = party_error(&b);
	assert_int_equal(err.err, FI_ETRUNC);
	assert_ptr_equal(err.op_context, &rx);
	assert_int_equal(err.len, sizeof(in));
	assert_int_equal(err.olen, sizeof(out) - sizeof(in));
	assert_memory_equal(in, out, sizeof(in));
	close_pair();
}

static void what_is_not_possible_is_refused(void **state)
{
	const struct iovec iov = { NULL, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = 0 };
	char out[MSG_MAX + 1] = { 0 };

	open_pair(&(struct party_choice){ .rx_size = 2 });
	assert_int_equal(fi_send(a.ep, out, sizeof(out), NULL, b_of_a, NULL), -FI_EMSGSIZE);
	assert_int_equal(fi_inject(a.ep, out, sizeof(out), b_of_a), -FI_EMSGSIZE);
	assert_int_equal(fi_send(a.ep, out, 1, NULL, b_of_a + 1, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(a.ep, out, 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(a.ep, out, 1, NULL, 1ull << 62, NULL), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(a.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	assert_int_equal(fi_senddata(a.ep, out, 1, NULL, 7, b_of_a, NULL), -FI_ENOSYS);
	assert_int_equal(fi_recv(b.ep, NULL, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_recv(b.ep, out, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recv(b.ep, out, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EAGAIN);
	assert_int_equal(b.ep->ops->rx_size_left(b.ep), 0);
	party_quiet(&a);
	close_pair();
}

static void completions_come_where_they_are_asked_for(void **state)
{
	char buf[8] = "12345678", in[8];
	const struct iovec out_iov = { buf, 8 }, in_iov = { in, 8 };
	struct fi_msg out = { .msg_iov = &out_iov, .iov_count = 1, .addr = 0, .context = &out };
	struct fi_msg to = { .msg_iov = &in_iov, .iov_count = 1, .context = &to };

	open_pair(&(struct party_choice){ .bind = FI_SELECTIVE_COMPLETION });
	out.addr = b_of_a;
	assert_int_equal(fi_recv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_recvmsg(b.ep, &to, FI_COMPLETION), 0);
	assert_int_equal(fi_send(a.ep, buf, 8, NULL, b_of_a, NULL), 0);
	assert_int_equal(fi_sendmsg(a.ep, &out, FI_COMPLETION | FI_INJECT), 0);
	assert_ptr_equal(party_completion(&a, NULL).op_context, &out);
	assert_ptr_equal(party_completion(&b, NULL).op_context, &to);
	party_quiet(&a);
	party_quiet(&b);
	close_pair();
}

/* Messages that are held back keep their order, injected ones their bytes. */
static void messages_held_back_are_sent_together(void **state)
{
	enum { CNT = 100 };
	uint32_t out[CNT], in[CNT], injected;
	struct iovec iov = { NULL, sizeof(out[0]) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	uint64_t flags;

	open_pair(&(struct party_choice){ 0 });
	msg.addr = b_of_a;
	for (uint32_t i = 0; i < CNT; i++)
		assert_int_equal(fi_recv(b.ep, &in[i], sizeof(in[i]), NULL, 0, &in[i]), 0);
	for (uint32_t i = 0; i < CNT; i++) {
		injected = out[i] = i;
		flags = (i < CNT - 1 ? FI_MORE : 0) | (i % 3 ? 0 : FI_INJECT);
		iov.iov_base = i % 3 ? &out[i] : &injected;
		msg.context = &out[i];
		assert_int_equal(fi_sendmsg(a.ep, &msg, flags), 0);
		injected = UINT32_MAX;
	}
	for (uint32_t i = 0; i < CNT; i++) {
		assert_ptr_equal(party_completion(&a, NULL).op_context, &out[i]);
		assert_ptr_equal(party_completion(&b, NULL).op_context, &in[i]);
		assert_int_equal(in[i], i);
	}
	close_pair();
}

/*
 * Of messages that are held back those of one length leave together: each stays a message of its
 * own.
 */
static void messages_held_back_keep_their_lengths(void **state)
{
	static const size_t lens[] = { 8, 8, 8, 5, 8,	 0,    0,    9, 3,
				       3, 3, 4, 1, 1400, 1400, 1400, 7, 8 };
	enum { CNT = sizeof(lens) / sizeof(lens[0]) };
	static char out[CNT][1400], in[CNT][1400];
	struct iovec iov[2];
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2 };
	struct fi_cq_tagged_entry entry;

	open_pair(&(struct party_choice){ 0 });
	msg.addr = b_of_a;
	for (size_t i = 0; i < CNT; i++) {
		memset(out[i], 'a' + (int)i, sizeof(out[i]));
		memset(in[i], 0, sizeof(in[i]));
		assert_int_equal(fi_recv(b.ep, in[i], sizeof(in[i]), NULL, 0, in[i]), 0);
	}
	for (size_t i = 0; i < CNT; i++) {
		iov[0] = (struct iovec){ out[i], lens[i] / 2 };
		iov[1] = (struct iovec){ out[i] + lens[i] / 2, lens[i] - lens[i] / 2 };
		msg.context = out[i];
		assert_int_equal(fi_sendmsg(a.ep, &msg, i + 1 < CNT ? FI_MORE : 0), 0);
	}
	for (size_t i = 0; i < CNT; i++) {
		assert_ptr_equal(party_completion(&a, NULL).op_context, out[i]);
		entry = party_completion(&b, NULL);
		assert_ptr_equal(entry.op_context, in[i]);
		assert_int_equal(entry.len, lens[i]);
		assert_memory_equal(in[i], out[i], lens[i]);
	}
	close_pair();
}

static void progress_sends_what_is_held_back(void **state)
{
	char out = 'x', in = 0;
	const struct iovec iov = { &out, 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &out };

	open_pair(&(struct party_choice){ 0 });
	msg.addr = b_of_a;
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, 0, NULL), 0);
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_MORE), 0);
	assert_ptr_equal(party_completion(&a, NULL).op_context, &out);
	party_completion(&b, NULL);
	assert_int_equal(in, 'x');
	close_pair();
}

/* A message of many held back that the kernel refuses is an error of its own. */
static void a_message_that_cannot_leave_fails_alone(void **state)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_port = htons(9) };
	char out[8] = { 0 }, in[2][8];
	const struct iovec iov = { out, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_cq_err_entry err;
	fi_addr_t bad;

	open_pair(&(struct party_choice){ 0 });
	nowhere.sin_addr.s_addr = htonl(INADDR_BROADCAST); /* not allowed without SO_BROADCAST */
	assert_int_equal(fi_av_insert(a.av, &nowhere, 1, &bad, 0, NULL), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_recv(b.ep, in[i], 8, NULL, 0, NULL), 0);
	for (int i = 0; i < 3; i++) {
		msg.addr = i == 1 ? bad : b_of_a;
		msg.context = &out[i];
		assert_int_equal(fi_sendmsg(a.ep, &msg, i < 2 ? FI_MORE : 0), 0);
	}
	assert_ptr_equal(party_completion(&a, NULL).op_context, &out[0]);
	err = party_error(&a);
	assert_ptr_equal(err.op_context, &out[1]);
	assert_int_not_equal(err.err, 0);
	assert_ptr_equal(party_completion(&a, NULL).op_context, &out[2]);
	for (int i = 0; i < 2; i++)
		party_completion(&b, NULL);
	assert_true(fi_send(a.ep, out, 8, NULL, bad, NULL) < 0);
	party_quiet(&a);
	close_pair();
}

static void a_receive_is_cancelled(void **state)
{
	struct fi_cq_err_entry err;
	char in[3][8], out[8] = "abcdefgh";

	open_pair(&(struct party_choice){ 0 });
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(b.ep, in[i], 8, NULL, 0, in[i]), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, in[1]), 0);
	err = party_error(&b);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, in[1]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_send(a.ep, out, 8, NULL, b_of_a, NULL), 0);
	assert_ptr_equal(party_completion(&b, NULL).op_context, in[0]);
	assert_ptr_equal(party_completion(&b, NULL).op_context, in[2]);
	close_pair();
}

static void a_buffer_takes_several_messages(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	size_t least = 64;
	char in[256], out[100];
	const struct iovec iov = { in, sizeof(in) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = in };

	open_pair(&(struct party_choice){ .caps = FI_MULTI_RECV });
	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	for (int i = 0; i < 2; i++) {
		memset(out, '0' + i, sizeof(out));
		assert_int_equal(fi_send(a.ep, out, sizeof(out), NULL, b_of_a, NULL), 0);
		entry = party_completion(&b, NULL);
		assert_ptr_equal(entry.op_context, in);
		assert_ptr_equal(entry.buf, in + i * 100);
		assert_int_equal(entry.len, 100);
		assert_int_equal(!!(entry.flags & FI_MULTI_RECV), i == 1);
		assert_memory_equal(entry.buf, out, sizeof(out));
	}
	assert_int_equal(b.ep->ops->rx_size_left(b.ep), b.info->rx_attr->size);
	/* One that is cancelled is the program's again too. */
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	assert_int_equal(fi_cancel(&b.ep->fid, in), 0);
	err = party_error(&b);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_true(err.flags == (FI_RECV | FI_MSG | FI_MULTI_RECV));
	close_pair();
}

/* Returns false if a read has not taken twice as many as the one before. */
static bool reads_double(void)
{
	enum { CNT = 31, READS = 5 };
	struct fi_cq_tagged_entry entries[CNT];
	char in[256], out[CNT];
	const struct iovec iov = { in, sizeof(in) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = in };
	size_t least = 1, sum = 0;
	bool twice = true;

	open_pair(&(struct party_choice){ .caps = FI_MULTI_RECV });
	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	for (int i = 0; i < CNT; i++) {
		out[i] = (char)i;
		assert_int_equal(fi_inject(a.ep, out + i, 1, b_of_a), 0);
	}
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	for (int i = 0; i < READS && twice; i++) {
		twice = fi_cq_read(b.cq, entries, CNT) == 1 << i;
		for (int k = 0; k < 1 << i && twice; k++)
			assert_ptr_equal(entries[k].buf, in + sum++);
	}
	if (twice) {
		assert_int_equal(sum, CNT);
		assert_memory_equal(in, out, CNT);
		party_quiet(&b);
	}
	close_pair();
	return twice;
}

/* A read takes what has arrived, though one buffer is for all. Not all need have arrived when the first one looks. */
static void a_read_takes_several_messages_into_a_buffer(void **state)
{
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;

	while (!reads_double())
		assert_true(party_now_ms() < end);
}

/* Messages that use nothing of a buffer end it too: a queue that is not read is not filled by them. */
static void empty_messages_end_a_buffer(void **state)
{
	enum { SIZE = 8, CNT = 3 * SIZE };
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;
	struct fi_cq_tagged_entry entry;
	struct fid_poll *set;
	char in[64];
	const struct iovec iov = { in, sizeof(in) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = in };
	void *there[1];
	size_t least = 1;

	open_pair(&(struct party_choice){ .caps = FI_MULTI_RECV, .rx_size = SIZE });
	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	assert_int_equal(b.domain->ops->poll_open(b.domain, NULL, &set), 0);
	assert_int_equal(set->ops->poll_add(set, &b.cq->fid, 0), 0);
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	for (int i = 0; i < CNT; i++)
		assert_int_equal(fi_inject(a.ep, "", 0, b_of_a), 0);
	while (!set->ops->poll(set, there, 1))
		assert_true(party_now_ms() < end);
	for (int i = 0; i < CNT; i++)
		assert_int_equal(set->ops->poll(set, there, 1), 1);
	for (int i = 1; i <= SIZE; i++) {
		entry = party_completion(&b, NULL);
		assert_int_equal(entry.len, 0);
		assert_int_equal(!!(entry.flags & FI_MULTI_RECV), i == SIZE);
	}
	party_quiet(&b);
	/* The others are there for the next one. */
	assert_int_equal(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV), 0);
	party_completion(&b, NULL);
	assert_int_equal(fi_close(&set->fid), 0);
	close_pair();
}

/* A full buffer goes back to the program, whatever is asked for of messages. */
static void a_full_buffer_is_given_back(void **state)
{
	struct fi_cq_tagged_entry entry;
	size_t least = 0;
	char in[8], out[8] = "abcdefg";
	const struct iovec iov = { in, sizeof(in) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = in };

	open_pair(&(struct party_choice){ .caps = FI_MULTI_RECV,
					  .bind = FI_SELECTIVE_COMPLETION });
	assert_int_equal(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
				   sizeof(least)),
			 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			fi_recvmsg(b.ep, &msg, FI_MULTI_RECV | (i ? FI_COMPLETION : 0)), 0);
		for (int half = 0; half < 2; half++)
			assert_int_equal(fi_inject(a.ep, out, 4, b_of_a), 0);
		entry = party_completion(&b, NULL);
		assert_ptr_equal(entry.op_context, in);
		assert_true(entry.flags == (i ? FI_RECV | FI_MSG : FI_MULTI_RECV));
		if (i)
			assert_true(party_completion(&b, NULL).flags ==
				    (FI_RECV | FI_MSG | FI_MULTI_RECV));
		assert_int_equal(b.ep->ops->rx_size_left(b.ep), b.info->rx_attr->size);
	}
	party_quiet(&b);
	close_pair();
}

/* What the network says of one peer is not told of another. */
static void a_peer_that_is_gone_disturbs_no_other(void **state)
{
	char out[8] = { 0 }, in[8];
	struct party gone;
	fi_addr_t addr;

	open_pair(&(struct party_choice){ 0 });
	party_open(&gone, &(struct party_choice){ 0 });
	addr = party_meet(&a, &gone);
	party_close(&gone);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(fi_recv(b.ep, in, 8, NULL, 0, NULL), 0);
		assert_int_equal(fi_recv(a.ep, in, 8, NULL, 0, NULL), 0);
		assert_int_equal(fi_inject(a.ep, out, 8, addr), 0);
		assert_int_equal(fi_inject(a.ep, out, 8, b_of_a), 0);
		assert_int_equal(party_completion(&b, NULL).len, 8);
		assert_int_equal(fi_inject(b.ep, out, 8, a_of_b), 0);
		assert_int_equal(party_completion(&a, NULL).len, 8);
	}
	close_pair();
}

/* Any datagram is a message, of whatever length; its source is not in the vector. */
static void strangers_bytes_are_messages_without_a_source(void **state)
{
	enum { CNT = 10000, MOST = 65507 };
	char *out = malloc(MOST), *in = malloc(MOST);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	unsigned int seed = (unsigned int)getpid();
	fi_addr_t src;
	size_t len, room;
	int fd;

	printf("seed %u\n", seed);
	party_open(&b, &(struct party_choice){ 0 });
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_non_null(out);
	assert_non_null(in);
	assert_true(fd >= 0);
	for (int i = 0; i < CNT; i++) {
		len = (size_t)rand_r(&seed) % (i % 16 ? 100 : MOST);
		room = (size_t)rand_r(&seed) % (i % 16 ? 100 : MOST);
		memset(out, i, len);
		assert_int_equal(fi_recv(b.ep, in, room, NULL, 0, in), 0);
		assert_int_equal(sendto(fd, out, len, 0, (struct sockaddr *)&b.name,
					(socklen_t)b.name_len),
				 len);
		if (len > room) {
			err = party_error(&b);
			assert_int_equal(err.err, FI_ETRUNC);
			assert_int_equal(err.len, room);
			assert_int_equal(err.olen, len - room);
		} else {
			entry = party_completion(&b, &src);
			assert_int_equal(entry.len, len);
			assert_true(src == FI_ADDR_NOTAVAIL);
		}
		assert_memory_equal(in, out, len < room ? len : room);
	}
	close(fd);
	free(out);
	free(in);
	party_close(&b);
}

int main(void)
{
	static int six = 6;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_bring_bytes_length_and_source),
		cmocka_unit_test(vectors_are_gathered_and_scattered),
		cmocka_unit_test(a_message_longer_than_its_receive_is_an_error),
		cmocka_unit_test(what_is_not_possible_is_refused),
		cmocka_unit_test(completions_come_where_they_are_asked_for),
		cmocka_unit_test(messages_held_back_are_sent_together),
		cmocka_unit_test(messages_held_back_keep_their_lengths),
		cmocka_unit_test(progress_sends_what_is_held_back),
		cmocka_unit_test(a_message_that_cannot_leave_fails_alone),
		cmocka_unit_test(a_receive_is_cancelled),
		cmocka_unit_test(a_buffer_takes_several_messages),
		cmocka_unit_test(a_read_takes_several_messages_into_a_buffer),
		cmocka_unit_test(empty_messages_end_a_buffer),
		cmocka_unit_test(a_full_buffer_is_given_back),
		cmocka_unit_test(a_peer_that_is_gone_disturbs_no_other),
		cmocka_unit_test(strangers_bytes_are_messages_without_a_source),
	};
	const struct CMUnitTest of_six[] = {
		cmocka_unit_test_prestate(messages_bring_bytes_length_and_source, &six),
	};
	struct fi_info *info = party_fi_info(&(struct party_choice){ .six = true });
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (info)
		failed += cmocka_run_group_tests(of_six, NULL, NULL);
	fi_freeinfo(info);
	return failed;
}
