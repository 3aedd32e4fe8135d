/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sender of a copy: it reads each file into registered blocks, and puts several of them at a time into the window
 * that the receiver has told. copy.h has the contract, message.h the order of messages.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "copy.h"
#include "report.h"
#include "source.h"
#include "sum.h"

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_LEN	((size_t)1 << 20)
#define BLOCKS		8u
#define CONNECT_WAIT_MS 10000
/* rounds in which nothing ends, before the core is given up, and before the other side is looked for */
#define IDLE_YIELD 64u
#define IDLE_LOOK  1024u

static_assert(!(BLOCK_LEN % COPY_SUM_STEP), "blocks are pieces of a sum");

/* struct block - bytes of a file on their way */
struct block {
	struct weft_btl_op op;
	unsigned char *bytes;
	struct block *next;
};

struct sender {
	struct session session;
	struct report report;
	struct weft_btl_mem *mem;
	unsigned char *bytes;
	struct block blocks[BLOCKS];
	struct block *free;
	unsigned under_way;
	/* rounds in which nothing has ended, and when something has */
	unsigned idle;
	uint64_t last_ns;
};

static void block_give(struct sender *s, struct block *block)
{
	block->next = s->free;
	s->free = block;
}

/* Memory for the blocks. Returns 0 or a negative errno. */
static int open_blocks(struct sender *s)
{
	void *bytes = mmap(NULL, BLOCKS * BLOCK_LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc = bytes == MAP_FAILED ? -errno : 0;

	if (!rc) {
		rc = weft_btl_mem_open(s->session.btl, bytes, BLOCKS * BLOCK_LEN, 0, &s->mem);
		if (rc)
			munmap(bytes, BLOCKS * BLOCK_LEN);
	}
	if (rc) {
		warnx("no memory for blocks: %s", fi_strerror(-rc));
		return rc;
	}
	s->bytes = bytes;
	for (unsigned i = 0; i < BLOCKS; i++) {
		s->blocks[i].bytes = s->bytes + i * BLOCK_LEN;
		s->blocks[i].op.arg = &s->blocks[i];
		block_give(s, &s->blocks[i]);
	}
	return 0;
}

static void close_blocks(struct sender *s)
{
	if (!s->mem || s->session.is_torn)
		return;
	weft_btl_mem_close(s->mem);
	munmap(s->bytes, BLOCKS * BLOCK_LEN);
}

/* Nothing has ended: gives others the core, and finds out whether to wait on. Returns 0 or a negative errno. */
static int idle(struct sender *s)
{
	unsigned timeout_s = s->session.opt->timeout_s;

	s->idle++;
	if (!(s->idle % IDLE_YIELD))
		sched_yield();
	if (s->idle % IDLE_LOOK)
		return 0;
	if (oob_gone(&s->session.oob)) {
		warnx("the other side has ended");
		return -EPIPE;
	}
	if (clock_ns() - s->last_ns < timeout_s * 1000000000ull)
		return 0;
	warnx("nothing has been written for %u s", timeout_s);
	return -ETIMEDOUT;
}

/* One round of progress. Returns 0, or a negative errno if the receiver is lost. */
static int turn(struct sender *s)
{
	struct weft_btl_op *ops[BLOCKS];
	size_t cnt = weft_btl_poll(s->session.ctx, ops, BLOCKS);
	int status = 0;

	if (!cnt)
		return idle(s);
	s->idle = 0;
	s->last_ns = clock_ns();
	for (size_t i = 0; i < cnt; i++) {
		s->under_way--;
		status = status ? status : ops[i]->status;
		block_give(s, ops[i]->arg);
	}
	if (!status)
		return 0;
	if (oob_gone(&s->session.oob))
		warnx("the other side has ended");
	else
		warnx("cannot write: %s", fi_strerror(-status));
	return status;
}

/* Puts a block, with as many rounds of progress as that takes. */
static int put(struct sender *s, const struct weft_btl_target *to, struct block *block,
	       size_t len)
{
	int rc;

	for (;;) {
		rc = weft_btl_put(s->session.ctx, to, block->bytes, len, s->mem, &block->op);
		if (rc != -FI_EAGAIN)
			break;
		rc = turn(s);
		if (rc)
			return rc;
	}
	if (rc)
		warnx("cannot write: %s", fi_strerror(-rc));
	else
		s->under_way++;
	return rc;
}

/*
 * Fills a window from a file's bytes at @at.
 * @written: gets the sum, or why the file can't be read
 * Returns 0, or a negative errno if the receiver is lost.
 */
static int fill(struct sender *s, int fd, uint64_t at, const struct copy_message *window,
		struct copy_message *written)
{
	struct weft_btl_target to = { s->session.peer, window->handle, window->addr };
	uint64_t left = window->size;
	struct copy_sum sum;
	int rc = 0;

	copy_sum_begin(&sum);
	s->last_ns = clock_ns();
	while (left || s->under_way) {
		struct block *block = left ? s->free : NULL;
		size_t len = left < BLOCK_LEN ? (size_t)left : BLOCK_LEN;

		if (!block) {
			rc = turn(s);
			if (rc)
				return rc;
			continue;
		}
		written->error = source_read(fd, block->bytes, len, at, written->text);
		if (written->error) {
			/* what is under way ends before the window does */
			left = 0;
			continue;
		}
		s->free = block->next;
		copy_sum_add(&sum, block->bytes, len);
		rc = put(s, &to, block, len);
		if (rc)
			return rc;
		to.addr += len;
		at += len;
		left -= len;
	}
	written->sum = copy_sum_end(&sum);
	return 0;
}

/* An error that the receiver has told, as a sentence. */
static void theirs(const struct copy_message *in, char *why)
{
	char text[COPY_TEXT_MAX];

	copy_text_printable(in->text, text);
	snprintf(why, COPY_TEXT_MAX, "the receiver: %.200s",
		 *text ? text : fi_strerror(-in->error));
}

/*
 * Sends all of an open file.
 * @why: out: why it has not arrived; "" if it has
 * Returns 0, or a negative errno if the receiver is lost.
 */
static int send_windows(struct sender *s, int fd, const struct copy_message *file, char *why)
{
	const struct copy_message ready = { .kind = COPY_READY };
	struct copy_message window, next;
	uint64_t at = 0;
	int rc;

	*why = '\0';
	rc = session_exchange(&s->session, file, 1u << COPY_READY, &next);
	if (!rc)
		rc = session_exchange(&s->session, &ready, 1u << COPY_WINDOW, &window);
	while (!rc && !window.error && window.size) {
		struct copy_message written = { .kind = COPY_WRITTEN };

		if (window.size > file->size - at) {
			warnx("the receiver's window is larger than what is left of the file");
			return -EBADMSG;
		}
		rc = fill(s, fd, at, &window, &written);
		if (!rc)
			rc = session_exchange(&s->session, &written, 1u << COPY_WINDOW, &next);
		if (!rc && written.error) {
			memcpy(why, written.text, COPY_TEXT_MAX);
			return 0;
		}
		at += window.size;
		window = next;
	}
	if (!rc && !window.error && at != file->size) {
		warnx("the receiver has windows for a part of the file alone");
		return -EBADMSG;
	}
	if (!rc && !window.error)
		rc = session_exchange(&s->session, &ready, 1u << COPY_VERDICT, &window);
	if (!rc && window.error)
		theirs(&window, why);
	return rc;
}

/* Returns 0, whether the file has arrived or not; or a negative errno if the receiver is lost. */
static int send_file(struct sender *s, const char *path)
{
	char name[COPY_TEXT_MAX], why[COPY_TEXT_MAX];
	uint64_t began = clock_ns();
	struct copy_message file;
	int fd, rc;

	copy_text_printable(path, name);
	fd = source_open(path, &file, why);
	if (fd < 0) {
		report_failed(&s->report, name, why);
		return 0;
	}
	rc = send_windows(s, fd, &file, why);
	close(fd);
	if (rc)
		report_failed(&s->report, name, "has not arrived");
	else if (*why)
		report_failed(&s->report, name, why);
	else
		report_copied(&s->report, name, file.size, clock_ns() - began);
	return rc;
}

static int send_files(struct sender *s)
{
	const struct copy_message end = { .kind = COPY_END };
	const struct copy_options *opt = s->session.opt;
	struct copy_message in;

	for (int i = 0; i < opt->file_cnt; i++) {
		int rc = send_file(s, opt->files[i]);

		if (rc)
			return rc;
	}
	return session_exchange(&s->session, &end, 1u << COPY_READY, &in);
}

/* Those of one name in the order of the command line, in which arguments lie in memory. */
static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int order = strcmp(source_name(x), source_name(y));

	return order ? order : (x > y) - (x < y);
}

/* Two files of one name would be one at the receiver. */
static int names_differ(const struct copy_options *opt)
{
	size_t cnt = (size_t)opt->file_cnt, i = 1;
	char **files = calloc(cnt, sizeof(*files));

	if (!files)
		err(EXIT_FAILURE, "copy");
	memcpy(files, opt->files, cnt * sizeof(*files));
	qsort(files, cnt, sizeof(*files), by_name);
	while (i < cnt && strcmp(source_name(files[i - 1]), source_name(files[i])))
		i++;
	if (i < cnt)
		warnx("'%s' and '%s' would arrive as one file", files[i - 1], files[i]);
	free(files);
	return i >= cnt;
}

int copy_send(const struct copy_options *opt)
{
	struct sender s = { .session.opt = opt };
	struct report_route route = { .cnt = WEFT_ROUTES_MAX };
	bool all;
	int rc;

	if (!names_differ(opt))
		return EXIT_FAILURE;
	if (oob_connect(&s.session.oob, opt->host, opt->port, CONNECT_WAIT_MS))
		return EXIT_FAILURE;
	report_init(&s.report, opt->json);
	rc = session_open(&s.session);
	if (!rc) {
		route.provider = session_provider(&s.session);
		rc = open_blocks(&s);
	}
	if (!rc)
		rc = send_files(&s);
	s.session.is_torn = s.under_way;
	if (!route.provider || weft_btl_routes(s.session.ctx, route.routes, &route.cnt))
		route.cnt = 0;
	report_print(&s.report, "sent", &route, !rc);
	close_blocks(&s);
	session_close(&s.session);
	all = !rc && !s.report.failed;
	report_fini(&s.report);
	return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
