/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receiver of a copy: it gives each file its room, registers the file's own pages in windows, and checks each
 * window while the sender writes the next. copy.h has the contract, message.h the order of messages.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "copy.h"
#include "report.h"
#include "sum.h"
#include "target.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* the one that is written, and the next */
#define WINDOWS 2u
/* bytes of one, a multiple of every page's size */
#define WINDOW_LEN ((size_t)64 << 20)

/* struct window - some of the file that the sender may write; len 0: none */
struct window {
	void *addr;
	size_t len;
	struct weft_btl_mem *mem;
};

/* struct arrival - a file under way */
struct arrival {
	struct session *session;
	struct target target;
	struct window windows[WINDOWS];
	/* bytes of the file that have had a window */
	uint64_t at;
	/* why it has failed; 0 and "" unless it has */
	int error;
	char why[COPY_TEXT_MAX];
};

/* The first failure counts. */
static void fail(struct arrival *arrival, int error, const char *what)
{
	if (arrival->error)
		return;
	arrival->error = error;
	snprintf(arrival->why, sizeof(arrival->why), "%s: %s", what, fi_strerror(-error));
}

/* What the sender gets, with the failure if there is one. */
static struct copy_message message_of(const struct arrival *arrival, enum copy_kind kind)
{
	struct copy_message m = { .kind = kind, .error = arrival->error };

	memcpy(m.text, arrival->why, sizeof(m.text));
	return m;
}

static void window_close(struct window *window)
{
	int rc;

	if (!window->len)
		return;
	rc = weft_btl_mem_close(window->mem);
	if (rc)
		warnx("cannot end a registration: %s", fi_strerror(-rc));
	else
		munmap(window->addr, window->len);
	*window = (struct window){ 0 };
}

/* The file's next window, and its message: one without bytes if there is none. */
static struct copy_message window_open(struct arrival *arrival, struct window *window)
{
	uint64_t left = arrival->target.file.size - arrival->at;
	size_t len = left < WINDOW_LEN ? (size_t)left : WINDOW_LEN;
	struct copy_message m;
	int rc;

	if (arrival->error || !len)
		return message_of(arrival, COPY_WINDOW);
	rc = target_map(&arrival->target, arrival->at, len, &window->addr);
	if (rc) {
		fail(arrival, rc, "cannot map it");
		return message_of(arrival, COPY_WINDOW);
	}
	rc = weft_btl_mem_open(arrival->session->btl, window->addr, len, FI_REMOTE_WRITE,
			       &window->mem);
	if (rc) {
		munmap(window->addr, len);
		fail(arrival, rc, "cannot register its memory");
		return message_of(arrival, COPY_WINDOW);
	}
	window->len = len;
	arrival->at += len;
	m = message_of(arrival, COPY_WINDOW);
	m.size = len;
	m.addr = (uintptr_t)window->addr;
	weft_btl_mem_handle(window->mem, m.handle);
	return m;
}

/* Checks a window that has been written. */
static void window_check(struct arrival *arrival, const struct window *window, uint64_t wanted)
{
	struct copy_sum sum;

	copy_sum_begin(&sum);
	copy_sum_add(&sum, window->addr, window->len);
	if (copy_sum_end(&sum) != wanted)
		fail(arrival, -EIO, "the bytes that arrived are not those that were sent");
}

/* All windows of the file. Returns 0, or a negative errno if the sender is lost. */
static int take_windows(struct arrival *arrival)
{
	const struct copy_message go = { .kind = COPY_READY };
	struct copy_message next = window_open(arrival, &arrival->windows[0]), in = go;
	char text[COPY_TEXT_MAX];
	unsigned idx = 0;
	int rc;

	rc = session_exchange(arrival->session, &next, 1u << COPY_READY, &in);
	while (!rc && !arrival->error && arrival->windows[idx].len) {
		struct window *window = &arrival->windows[idx];

		idx = (idx + 1) % WINDOWS;
		next = window_open(arrival, &arrival->windows[idx]);
		rc = session_exchange(arrival->session, &next, 1u << COPY_WRITTEN, &in);
		if (rc || next.error)
			break;
		if (in.error) {
			copy_text_printable(in.text, text);
			arrival->error = in.error;
			snprintf(arrival->why, sizeof(arrival->why), "the sender: %.200s", text);
			return 0;
		}
		window_check(arrival, window, in.sum);
		window_close(window);
		if (arrival->error && arrival->windows[idx].len) {
			/* the sender, which writes that window, is told with the next one */
			next = message_of(arrival, COPY_WINDOW);
			return session_exchange(arrival->session, &next, 1u << COPY_WRITTEN,
						&in);
		}
	}
	return rc;
}

/* The end of a file whose windows have all arrived. Returns as take_windows(). */
static int tell_verdict(struct arrival *arrival)
{
	struct copy_message verdict, in;
	const char *what = NULL;
	int rc = arrival->error ? 0 : target_keep(&arrival->target, &what);

	if (rc)
		fail(arrival, rc, what);
	verdict = message_of(arrival, COPY_VERDICT);
	return session_exchange(arrival->session, &verdict, 1u << COPY_READY, &in);
}

/* Returns whether the sender waits for a verdict: it has sent all windows, and knows of no failure. */
static bool is_whole(const struct arrival *arrival)
{
	return arrival->at == arrival->target.file.size && !arrival->windows[0].len &&
	       !arrival->windows[1].len;
}

/* One file. Returns 0, whether it has arrived or not; or a negative errno if the sender is lost. */
static int take_file(struct session *session, int dir, const struct copy_message *file,
		     struct report *report)
{
	struct arrival arrival = { .session = session };
	uint64_t began = clock_ns();
	char name[COPY_TEXT_MAX];
	const char *what = NULL;
	bool created;
	int rc;

	copy_text_printable(file->text, name);
	rc = target_create(&arrival.target, dir, file, &what);
	created = !rc;
	if (rc)
		fail(&arrival, rc, what);
	rc = take_windows(&arrival);
	if (!rc && created && is_whole(&arrival))
		rc = tell_verdict(&arrival);
	for (unsigned i = 0; i < WINDOWS; i++)
		window_close(&arrival.windows[i]);
	if (created && (rc || arrival.error))
		target_drop(&arrival.target);
	if (rc)
		report_failed(report, name, "has not arrived");
	else if (arrival.error)
		report_failed(report, name, arrival.why);
	else
		report_copied(report, name, file->size, clock_ns() - began);
	return rc;
}

/* All files of a sender. Returns 0, or a negative errno if it is lost before their end. */
static int take_files(struct session *session, int dir, struct report *report)
{
	const struct copy_message ready = { .kind = COPY_READY };
	struct copy_message in;
	int rc;

	for (;;) {
		rc = session_exchange(session, &ready, 1u << COPY_FILE | 1u << COPY_END, &in);
		if (rc || in.kind == COPY_END)
			return rc;
		rc = take_file(session, dir, &in, report);
		if (rc)
			return rc;
	}
}

/* One sender. Returns whether all of its files have arrived. */
static bool serve(const struct copy_options *opt, int dir, struct oob oob)
{
	struct session session = { .opt = opt, .oob = oob };
	struct report_route route = { .cnt = WEFT_ROUTES_MAX };
	struct report report;
	bool all;
	int rc;

	report_init(&report, opt->json);
	rc = session_open(&session);
	if (!rc) {
		rc = take_files(&session, dir, &report);
		route.provider = session_provider(&session);
	}
	if (!route.provider || weft_btl_routes(session.ctx, route.routes, &route.cnt))
		route.cnt = 0;
	report_print(&report, "received", &route, !rc);
	session_close(&session);
	all = !rc && !report.failed;
	report_fini(&report);
	return all;
}

int copy_receive(const struct copy_options *opt)
{
	int dir = open(opt->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct oob oob;
	bool all;

	if (dir < 0 || faccessat(dir, ".", W_OK | X_OK, AT_EACCESS)) {
		warn("%s", opt->dir);
		return EXIT_FAILURE;
	}
	target_guard();
	do {
		if (oob_listen(&oob, NULL, opt->port))
			return EXIT_FAILURE;
		all = serve(opt, dir, oob);
	} while (opt->keep);
	close(dir);
	return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
