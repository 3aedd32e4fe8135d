/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire with secrets: their files, sides that have the same one, and sides that have not.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_core.h"
#include "mock_secret.h"
#include "mock_send.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_hub.h"
#include "tcp_secret.h"
#include "tcp_session.h"

#define SECRET "a secret of more than sixteen bytes"
#define OTHER  "a secret of sixteen bytes and more."

/* ---- files ---- */

static char path[] = "/tmp/weft-secret-file.XXXXXX";

static void file_make(size_t len, mode_t mode)
{
	int fd;

	memcpy(strrchr(path, '.'), ".XXXXXX", 7);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	while (len--)
		assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* What a secret from the file at @path ends with; the reason is in @why. */
static int made(char why[256])
{
	struct tcp_secret *secret = NULL;
	int err;

	why[0] = '\0';
	tcp_settings.secret_file = path;
	err = tcp_secret_create(&secret, why, 256);
	tcp_settings.secret_file = NULL;
	assert_true(!err == (secret != NULL));
	tcp_secret_free(secret);
	return err;
}

static void files_that_others_can_read_are_refused(void **state)
{
	static const struct {
		size_t len;
		mode_t mode;
		int err;
		const char *why;
	} cases[] = {
		{ 16, 0600, 0, "" },
		{ 4096, 0400, 0, "" },
		{ 16, 0640, -FI_EACCES, "chmod 600" },
		{ 16, 0604, -FI_EACCES, "chmod 600" },
		{ 16, 0620, -FI_EACCES, "(0620)" },
		{ 16, 0601, -FI_EACCES, "chmod 600" },
		{ 15, 0600, -FI_EACCES, "has 15 bytes" },
		{ 0, 0600, -FI_EACCES, "has 0 bytes" },
		{ 4097, 0600, -FI_EACCES, "not 16 to 4096" },
	};
	char why[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		file_make(cases[i].len, cases[i].mode);
		assert_int_equal(made(why), cases[i].err);
		assert_non_null(strstr(why, cases[i].why));
		assert_null(strstr(why, "xxxx"));
		unlink(path);
	}
}

static void what_is_no_file_is_refused(void **state)
{
	char why[256];

	file_make(0, 0600);
	unlink(path);
	assert_int_equal(made(why), -FI_EACCES);
	assert_non_null(strstr(why, "No such file"));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(made(why), -FI_EACCES);
	assert_non_null(strstr(why, "not a regular file"));
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600),
			 0); /* nobody writes to it: opening it does not wait */
	assert_int_equal(made(why), -FI_EACCES);
	unlink(path);
	if (geteuid())
		return;
	file_make(16, 0600);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(made(why), -FI_EACCES);
	assert_non_null(strstr(why, "another user"));
	unlink(path);
}

/* A wire is not opened without the protection that was asked for. */
static void wires_without_their_secret_are_not_opened(void **state)
{
	struct weft_addr addr = { .version = ADDR_VERSION, .kind = ADDR_NONCE };
	struct wire_attr attr = { .tx_size = 64, .dials = true };
	struct wire *wire = NULL;
	char why[256] = "";
	struct tcp_wire *open;

	tcp_settings.tls = true;
	assert_int_equal(tcp_open(NULL, &attr, &addr, &wire, why, sizeof(why)), -FI_EACCES);
	assert_non_null(strstr(why, "FI_TCP_SECRET_FILE"));
	tcp_settings.tls = false;
	tcp_settings.secret_file = "";
	assert_int_equal(tcp_open(NULL, &attr, &addr, &wire, why, sizeof(why)), -FI_EACCES);
	assert_non_null(strstr(why, "FI_TCP_SECRET_FILE is set to nothing"));
	tcp_settings.secret_file = NULL;
	setenv("FI_TCP_SECRET", "/some/where", 1);
	assert_int_equal(tcp_open(NULL, &attr, &addr, &wire, why, sizeof(why)), -FI_EACCES);
	assert_non_null(strstr(why, "FI_TCP_SECRET is no setting: set FI_TCP_SECRET_FILE"));
	unsetenv("FI_TCP_SECRET");
	assert_null(wire);
	assert_int_equal(tcp_open(NULL, &attr, &addr, &wire, why, sizeof(why)), 0);
	open = tcp_wire_from(wire);
	assert_null(open->hub->secret);
	tcp_close(wire);
}

/* ---- sides with the same secret ---- */

static void traffic(struct side *a, struct side *b)
{
	static uint8_t bulk[3u << 20];
	struct iovec iov[2] = { { bulk, 100001 }, { bulk + 100001, sizeof(bulk) - 100001 } };
	struct wire_conn *ab, *ba;
	struct sent sent = { .done = 0 };
	uint32_t i, cnt = 3000;

	pattern(bulk, sizeof(bulk), cnt);
	pair_up(a, b, &ab, &ba);
	for (i = 0; i < cnt; i++)
		DRIVE(a, b, publish(ab, i, i % 4000, i % 7 == 0));
	DRIVE(a, b, b->got_cnt == (int)cnt); /* the data lane may overtake the control lane */
	assert_int_equal(send_bulk(ab, cnt, iov, 2, &sent), 0);
	assert_true(publish(ba, 7, 100, false));
	DRIVE(a, b, b->got_cnt == (int)cnt + 1 && b->got[cnt].payload && sent.done);
	for (i = 0; i <= cnt; i++)
		assert_true(payload_right(&b->got[i]));
	DRIVE(a, b, a->got_cnt == 1);
	/* the side that was connected to needs a data lane too */
	sent.done = 0;
	assert_int_equal(send_bulk(ba, cnt, iov, 2, &sent), 0);
	DRIVE(a, b, sent.done && a->got_cnt == 2 && a->got[1].payload);
	assert_true(payload_right(&a->got[1]));
	tcp_disconnect(ab);
	DRIVE(a, b, b->downs);
	assert_int_equal(b->last_err, 0); /* in order */
}

static void sides_with_a_secret_talk(void **state)
{
	struct side *a, *b;

	for (int tls = 0; tls < 2; tls++) {
		a = secret_side(SECRET, tls);
		b = secret_side(SECRET, tls);
		mock_log_cnt = 0;
		traffic(a, b);
		assert_int_equal(mock_log_cnt, 0);
		side_close(a);
		side_close(b);
	}
}

/* What they say to prove it finds no room in the kernel, or too little. */
static void what_proves_a_secret_is_said_later(void **state)
{
	static const struct mock_send lacks[] = {
		{ .cnt = 3, .err = EAGAIN }, { .cnt = 3, .err = ENOBUFS },
		{ .cnt = 1, .err = ENOMEM }, { .cnt = 1, .most = 1 },
		{ .cnt = 100, .most = 7 },
	};
	struct wire_conn *ab, *ba;
	struct side *a, *b;

	for (size_t i = 0; i < 2 * sizeof(lacks) / sizeof(lacks[0]); i++) {
		a = secret_side(SECRET, i % 2);
		b = secret_side(SECRET, i % 2);
		/* without a session, which would have another socket */
		a->hello.kind = b->hello.kind = HELLO_MSG;
		mock_send = lacks[i / 2];
		pair_up(a, b, &ab, &ba);
		assert_true(mock_send.cnt < lacks[i / 2].cnt);
		mock_send.cnt = 0;
		assert_true(publish(ab, 0, 100, false));
		DRIVE(a, b, b->got_cnt == 1);
		assert_int_equal(a->downs + b->downs, 0);
		side_close(a);
		side_close(b);
	}
}

/*
 * The peer is behind a router that translates addresses: at the address that it names is nothing, or
 * another host that knows the secret. Neither says anything about the peer.
 */
static void a_peer_elsewhere_is_waited_for(void **state)
{
	struct weft_addr there = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 2 } };
	struct side *a = secret_side(SECRET, false), *b = secret_side(SECRET, false);
	struct side *stranger = NULL;
	struct wire_conn *ab, *ba;
	uint64_t end;

	there.port = a->addr.port;
	memcpy(a->hello.addr.ip, there.ip, 4);
	pair_up(a, b, &ab, &ba);
	for (uint32_t round = 0; round < 2; round++) {
		tcp_lane_reset(&tcp_conn_from(ba)->control);
		end = platform_now_ns() + 3 * TCP_REFUSED_NS;
		while (platform_now_ns() < end) {
			side_poll(b);
			if (stranger)
				side_poll(stranger);
		}
		assert_int_equal(b->downs, 0);
		assert_true(publish(ba, round, 8, false));
		DRIVE(a, b, a->got_cnt == (int)round + 1);
		secret_set(SECRET, false);
		stranger = stranger ? stranger : side_open(&there);
		unlink(tcp_settings.secret_file);
		secret_set(NULL, false);
	}
	assert_int_equal(a->downs + b->downs, 0);
	side_close(stranger);
	side_close(a);
	side_close(b);
}

/* Refusals, with and without a secret, are those of the other side. */
static void refusals_come_through(void **state)
{
	struct side *a, *b;

	for (int tls = 0; tls < 2; tls++) {
		a = secret_side(SECRET, tls);
		b = secret_side(SECRET, tls);
		b->refuse = -FI_EACCES;
		side_connect(a, b);
		DRIVE(a, b, a->downs);
		assert_int_equal(a->last_err, -FI_EACCES);
		side_close(a);
		side_close(b);
	}
}

/* Every pair of bytes of these lengths crosses the buffers of TLS somewhere else. */
static void records_of_any_length_are_read_to_their_end(void **state)
{
	struct side *a = secret_side(SECRET, true), *b = secret_side(SECRET, true);
	struct wire_conn *ab, *ba;
	uint32_t i = 0;
	int round;

	pair_up(a, b, &ab, &ba);
	for (round = 0; round < 4; round++) {
		/* more than one read takes, gathered before any is read */
		while (publish(ab, i, (i * 97) % 6000, true))
			i++;
		DRIVE(a, b, b->got_cnt == (int)i);
		/* and nothing is left to read, once that is acknowledged */
		DRIVE(b, NULL, tcp_arm(b->wire) == UINT64_MAX);
		tcp_disarm(b->wire);
	}
	side_close(a);
	side_close(b);
}

/* What was decrypted together with the answer has no event of the socket, and is read. */
static void packets_right_behind_the_answer_are_read(void **state)
{
	struct side *a = secret_side(SECRET, true), *b = secret_side(SECRET, true);
	int i;

	side_connect(a, b);
	start_clock();
	while (!b->conn_cnt && !expired()) {
		side_poll(a);
		side_poll(b);
	}
	assert_int_equal(b->conn_cnt, 1);
	for (i = 0; i < 3; i++)
		assert_true(publish(b->conns[0], (uint32_t)i, 100, false));
	side_poll(b);
	assert_int_equal(a->conn_cnt, 0);
	DRIVE(a, NULL, a->got_cnt == 3);
	for (i = 0; i < 3; i++)
		assert_true(payload_right(&a->got[i]));
	side_close(a);
	side_close(b);
}

/* The same of lanes that are made while the other side has something to send: alone afterwards. */
static void packets_right_behind_a_new_lane_are_read(void **state)
{
	static uint8_t bytes[20000];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct side *a, *b;
	struct wire_conn *ab, *ba;
	struct sent sent[2];
	struct tcp_lane *lane;

	for (int data = 0; data < 2; data++) {
		a = secret_side(SECRET, true);
		b = secret_side(SECRET, true);
		pair_up(a, b, &ab, &ba);
		lane = data ? &tcp_conn_from(ba)->data : &tcp_conn_from(ba)->control;
		memset(sent, 0, sizeof(sent));
		if (!data) {
			tcp_lane_reset(&tcp_conn_from(ab)->control);
			DRIVE(b, NULL, lane->state != TCP_LANE_UP);
			assert_true(publish(ba, 0, 100, false) && publish(ba, 1, 100, false));
		}
		/* the first one goes the control lane */
		for (int i = 0; data && i < 2; i++)
			assert_int_equal(send_bulk(ba, (uint32_t)i, &iov, 1, &sent[i]), 0);
		start_clock();
		while (lane->state != TCP_LANE_UP && !expired()) {
			side_poll(a);
			side_poll(b);
		}
		DRIVE(a, NULL, a->got_cnt == 2 && a->got[0].payload && a->got[1].payload);
		assert_int_equal(a->downs + b->downs, 0);
		side_close(a);
		side_close(b);
	}
}

/* An end that TLS was not told of is a break; bytes that were changed are none. */
static void bytes_that_were_changed_end_the_conn(void **state)
{
	static const char changed[64] = "not a record";
	struct side *a = secret_side(SECRET, true), *b = secret_side(SECRET, true);
	struct wire_conn *ab, *ba;

	pair_up(a, b, &ab, &ba);
	shutdown(tcp_conn_from(ab)->control.fd, SHUT_WR);
	DRIVE(a, b, tcp_wire_from(b->wire)->resumes == 1);
	assert_true(publish(ab, 0, 100, false));
	DRIVE(a, b, b->got_cnt == 1);
	assert_int_equal(a->downs + b->downs, 0);
	assert_int_equal(send(tcp_conn_from(ab)->control.fd, changed, sizeof(changed), 0),
			 sizeof(changed));
	DRIVE(a, b, b->downs == 1 && a->downs == 1);
	assert_int_equal(b->last_err, -FI_EIO);
	assert_int_equal(tcp_wire_from(b->wire)->breaks, 1);
	assert_int_equal(tcp_wire_from(b->wire)->hub->counts[WEFT_MEM_TCP_REFUSED_TLS], 1);
	side_close(a);
	side_close(b);
}

/* ---- sides that differ ---- */

struct differing {
	const char *one, *other;
	bool one_tls, other_tls;
	const char *line;
	enum weft_mem_tcp_count shown;
};

static const struct differing differing[] = {
	{ SECRET, OTHER, false, false, "the secrets differ", WEFT_MEM_TCP_REFUSED_SECRET },
	{ SECRET, OTHER, true, true, "the secrets differ", WEFT_MEM_TCP_REFUSED_TLS },
	{ SECRET, NULL, false, false, "set FI_TCP_SECRET_FILE", WEFT_MEM_TCP_REFUSED_NONE },
	{ NULL, SECRET, false, false, "set FI_TCP_SECRET_FILE", WEFT_MEM_TCP_REFUSED_NONE },
	{ SECRET, NULL, true, false, "set FI_TCP_SECRET_FILE", WEFT_MEM_TCP_REFUSED_NONE },
	{ NULL, SECRET, false, true, "set FI_TCP_SECRET_FILE", WEFT_MEM_TCP_REFUSED_NONE },
	{ SECRET, SECRET, true, false, "FI_TCP_TLS alike", WEFT_MEM_TCP_REFUSED_NONE },
	{ SECRET, SECRET, false, true, "FI_TCP_TLS alike", WEFT_MEM_TCP_REFUSED_NONE },
};

/* One line at the side, with the cause. */
static void line_check(const char *line)
{
	assert_int_equal(mock_log_cnt, 1);
	assert_non_null(strstr(mock_log, line));
	assert_non_null(strstr(mock_log, "127.0.0.1"));
	assert_null(strstr(mock_log, SECRET));
	mock_log_cnt = 0;
}

/* All that the side has refused is of that kind. */
static void refusals_check(const struct side *side, enum weft_mem_tcp_count shown)
{
	const uint64_t *counts = tcp_wire_from(side->wire)->hub->counts;

	assert_true(counts[shown] >= 1);
	assert_int_equal(counts[WEFT_MEM_TCP_REFUSED_SECRET] +
				 counts[WEFT_MEM_TCP_REFUSED_NONE] +
				 counts[WEFT_MEM_TCP_REFUSED_TLS],
			 counts[shown]);
}

static void reject(const struct differing *d)
{
	struct side *a = secret_side(d->one, d->one_tls);
	struct side *b = secret_side(d->other, d->other_tls);
	struct side *c = secret_side(d->other, d->other_tls);
	struct wire_conn *cb, *bc;

	pair_up(c, b, &cb, &bc);
	mock_log_cnt = 0;
	side_connect(a, b);
	/* each side alone, so that their lines are told apart */
	start_clock();
	while (!a->downs && !expired()) {
		side_poll(a);
		if (mock_log_cnt)
			line_check(d->line);
		side_poll(b);
		if (mock_log_cnt)
			line_check(d->line);
	}
	assert_int_equal(a->downs, 1);
	assert_int_equal(a->last_err, -FI_EKEYREJECTED);
	DRIVE(b, NULL, tcp_wire_from(b->wire)->hub->prove_logged && !mock_log_cnt);
	assert_true(tcp_wire_from(a->wire)->hub->prove_logged);
	refusals_check(a, d->shown);
	refusals_check(b, d->shown);
	DRIVE(b, NULL, !tcp_wire_from(b->wire)->port->guest_cnt);
	assert_int_equal(b->conn_cnt, 1);
	/* nothing is lost for anyone else */
	assert_true(publish(cb, 1, 1000, false));
	DRIVE(b, c, b->got_cnt == 1);
	assert_true(payload_right(&b->got[0]));
	assert_int_equal(b->downs + c->downs, 0);
	side_close(a);
	side_close(c);
	side_close(b);
}

static void sides_that_differ_reject_each_other(void **state)
{
	for (size_t i = 0; i < sizeof(differing) / sizeof(differing[0]); i++)
		reject(&differing[i]);
}

/* Not a line for each. */
static void causes_are_logged_once(void **state)
{
	struct side *b = secret_side(SECRET, false), *a = secret_side(OTHER, false);
	int i;

	mock_log_cnt = 0;
	for (i = 1; i < 5; i++) {
		side_connect(a, b);
		DRIVE(a, b, a->downs == i);
	}
	DRIVE(a, b, !tcp_wire_from(b->wire)->port->guest_cnt);
	assert_int_equal(mock_log_cnt, 2);
	side_close(a);
	side_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_others_can_read_are_refused),
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(wires_without_their_secret_are_not_opened),
		cmocka_unit_test(sides_with_a_secret_talk),
		cmocka_unit_test(what_proves_a_secret_is_said_later),
		cmocka_unit_test(a_peer_elsewhere_is_waited_for),
		cmocka_unit_test(refusals_come_through),
		cmocka_unit_test(records_of_any_length_are_read_to_their_end),
		cmocka_unit_test(packets_right_behind_the_answer_are_read),
		cmocka_unit_test(packets_right_behind_a_new_lane_are_read),
		cmocka_unit_test(bytes_that_were_changed_end_the_conn),
		cmocka_unit_test(sides_that_differ_reject_each_other),
		cmocka_unit_test(causes_are_logged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
