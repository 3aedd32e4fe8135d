/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests to the members of a directory; http.h has the contract.
 *
 * A process may end while threads of ours are in libcurl, whose TLS library frees what it has when the process ends. So
 * each call is counted while it is there, and the process's end stops them all and waits for that.
 */
#define _GNU_SOURCE
#include "http.h"
#include "etcd.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECT_MS  2000L
#define KEEPALIVE_S 5L

/* struct transfer - a request, and what has come of its answer: @text has room for one byte more than @len */
struct transfer {
	CURL *easy;
	struct curl_slist *headers;
	char *text;
	size_t len, room;
	bool done;
	CURLcode result;
	char error[CURL_ERROR_SIZE];
};

/*
 * struct http
 * @stream: an answer that does not end, or NULL; @taken: bytes of it that have been returned as lines
 */
struct http {
	struct http *next;
	CURLM *multi;
	struct transfer *stream;
	size_t taken;
	atomic_bool stopped;
};

/* @process.lock: of all here. @busy: calls that are in libcurl; @left is told when there are none. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t left;
	struct http *all;
	unsigned busy;
	bool ends;
} process = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool enter(void)
{
	bool may;

	pthread_mutex_lock(&process.lock);
	may = !process.ends;
	process.busy += may;
	pthread_mutex_unlock(&process.lock);
	return may;
}

static void leave(void)
{
	pthread_mutex_lock(&process.lock);
	if (!--process.busy)
		pthread_cond_broadcast(&process.left);
	pthread_mutex_unlock(&process.lock);
}

/* The process ends. What takes longer than a second is left. */
static void end_all(void)
{
	struct timespec until;
	struct http *h;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&process.lock);
	process.ends = true;
	for (h = process.all; h; h = h->next) {
		atomic_store(&h->stopped, true);
		curl_multi_wakeup(h->multi);
	}
	while (process.busy)
		if (pthread_cond_timedwait(&process.left, &process.lock, &until))
			break;
	pthread_mutex_unlock(&process.lock);
}

/* What libcurl and what it uses have for the process's end is registered first, and so runs after ours. */
static void begin(void)
{
	curl_global_init(CURL_GLOBAL_ALL);
	atexit(end_all);
}

int http_create(struct http **out)
{
	struct http *h;

	pthread_once(&once, begin);
	if (!enter())
		return -ECANCELED;
	h = calloc(1, sizeof(*h));
	if (h)
		h->multi = curl_multi_init();
	leave();
	if (!h || !h->multi) {
		free(h);
		return -ENOMEM;
	}
	pthread_mutex_lock(&process.lock);
	h->next = process.all;
	process.all = h;
	pthread_mutex_unlock(&process.lock);
	*out = h;
	return 0;
}

static void transfer_destroy(struct http *h, struct transfer *t)
{
	if (t->easy) {
		curl_multi_remove_handle(h->multi, t->easy);
		curl_easy_cleanup(t->easy);
	}
	curl_slist_free_all(t->headers);
	free(t->text);
	free(t);
}

void http_destroy(struct http *h)
{
	struct http **at;

	/* At the process's end it stays as it is. */
	if (!enter())
		return;
	pthread_mutex_lock(&process.lock);
	for (at = &process.all; *at != h; at = &(*at)->next)
		;
	*at = h->next;
	pthread_mutex_unlock(&process.lock);
	if (h->stream)
		transfer_destroy(h, h->stream);
	curl_multi_cleanup(h->multi);
	free(h);
	leave();
}

/* libcurl's: bytes of an answer have come. Less than all of them: the transfer fails. */
static size_t take_bytes(char *bytes, size_t size, size_t cnt, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * cnt;

	if (len > HTTP_ANSWER_MAX - t->len)
		return 0;
	if (t->len + len >= t->room) {
		size_t room = (t->len + len + 1) * 2;
		char *text = realloc(t->text, room);

		if (!text)
			return 0;
		t->text = text;
		t->room = room;
	}
	memcpy(t->text + t->len, bytes, len);
	t->len += len;
	t->text[t->len] = 0;
	return len;
}

static void set_file(CURL *easy, CURLoption option, const char *variable)
{
	const char *path = getenv(variable);

	if (path && *path)
		curl_easy_setopt(easy, option, path);
}

static void set_options(struct transfer *t, const char *url, const char *body)
{
	CURL *easy = t->easy;

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* A directory is of the site: the way out of it is none to it. */
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	set_file(easy, CURLOPT_CAINFO, "ETCDCTL_CACERT");
	set_file(easy, CURLOPT_SSLCERT, "ETCDCTL_CERT");
	set_file(easy, CURLOPT_SSLKEY, "ETCDCTL_KEY");
}

static struct transfer *transfer_create(struct http *h, const char *url, const char *path,
					const char *body, const char *const *headers)
{
	struct transfer *t = calloc(1, sizeof(*t));
	struct curl_slist *list;
	char whole[512];

	if (!t)
		return NULL;
	snprintf(whole, sizeof(whole), "%s%s", url, path);
	t->easy = curl_easy_init();
	while (t->easy && *headers) {
		list = curl_slist_append(t->headers, *headers++);
		if (!list)
			break;
		t->headers = list;
	}
	if (t->easy && !*headers) {
		set_options(t, whole, body);
		if (!curl_multi_add_handle(h->multi, t->easy))
			return t;
	}
	transfer_destroy(h, t);
	return NULL;
}

/* A member without a majority says so at once. */
static const char *const headers[] = {
	"Content-Type: application/json",
	"Expect:",
	ETCD_HAS_LEADER,
	NULL,
};

/* Do what can be done, and wait for more if nothing has ended. */
static void pump(struct http *h, unsigned ms)
{
	bool ended = false;
	struct CURLMsg *msg;
	struct transfer *t;
	int running, left;

	curl_multi_perform(h->multi, &running);
	while ((msg = curl_multi_info_read(h->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		t->done = true;
		t->result = msg->data.result;
		ended = true;
	}
	if (!ended && !atomic_load(&h->stopped))
		curl_multi_poll(h->multi, NULL, 0, (int)ms, NULL);
}

/*
 * With TLS 1.3 a member looks at this side's certificate when the connection stands for this side, and refuses it by ending
 * the connection: in the place of an answer there is an alert, or a reset that has overtaken it. A member that is killed at
 * that moment looks the same; the others are asked in any case.
 */
static bool is_refused(const struct transfer *t)
{
	curl_off_t handshake_us = 0;

	return (t->result == CURLE_RECV_ERROR || t->result == CURLE_SEND_ERROR) && !t->len &&
	       !curl_easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &handshake_us) &&
	       handshake_us;
}

static int result_error(const struct transfer *t)
{
	if (is_refused(t))
		return -EACCES;
	switch (t->result) {
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_PARTIAL_FILE:
		return -ECONNREFUSED;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return -EACCES;
	case CURLE_WRITE_ERROR:
		return -EMSGSIZE;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

/* Wait for the end of a transfer, and take what it has. */
static int finish(struct http *h, struct transfer *t, struct http_answer *answer, char *why)
{
	int err;

	while (!t->done && !atomic_load(&h->stopped))
		pump(h, 1000);
	err = t->done ? result_error(t) : -ECANCELED;
	if (!err && !t->text) {
		t->text = calloc(1, 1);
		err = t->text ? 0 : -ENOMEM;
	}
	if (err) {
		snprintf(why, HTTP_WHY_MAX, "%.100s%s",
			 *t->error ? t->error : curl_easy_strerror(t->result),
			 err == -EACCES ? "; see ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY"
					: "");
		return err;
	}
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	answer->text = t->text;
	answer->len = t->len;
	t->text = NULL;
	return 0;
}

int http_post(struct http *h, const char *url, const char *path, const char *body, unsigned ms,
	      struct http_answer *answer, char *why)
{
	struct transfer *t;
	int err = -ENOMEM;

	*why = 0;
	if (!enter())
		return -ECANCELED;
	t = transfer_create(h, url, path, body, headers);
	if (t) {
		curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)ms);
		err = finish(h, t, answer, why);
		transfer_destroy(h, t);
	}
	leave();
	return err;
}

int http_stream_open(struct http *h, const char *url, const char *path, const char *body)
{
	if (!enter())
		return -ECANCELED;
	h->taken = 0;
	h->stream = transfer_create(h, url, path, body, headers);
	leave();
	return h->stream ? 0 : -ENOMEM;
}

void http_stream_close(struct http *h)
{
	if (!h->stream || !enter())
		return;
	transfer_destroy(h, h->stream);
	h->stream = NULL;
	leave();
}

const char *http_stream_line(struct http *h, size_t *len)
{
	struct transfer *t = h->stream;
	char *line, *end;

	if (!t || !t->text)
		return NULL;
	line = t->text + h->taken;
	end = memchr(line, '\n', t->len - h->taken);
	if (end) {
		*len = (size_t)(end - line);
		h->taken += *len + 1;
		return line;
	}
	/* What is left is the beginning of a line. */
	memmove(t->text, line, t->len - h->taken + 1);
	t->len -= h->taken;
	h->taken = 0;
	return NULL;
}

bool http_stream_ended(const struct http *h)
{
	return !h->stream || h->stream->done;
}

void http_wait(struct http *h, unsigned ms)
{
	if (!enter())
		return;
	pump(h, ms);
	/* What has just come is there without another wait. */
	pump(h, 0);
	leave();
}

void http_wake(struct http *h)
{
	curl_multi_wakeup(h->multi);
}

void http_stop(struct http *h)
{
	atomic_store(&h->stopped, true);
	curl_multi_wakeup(h->multi);
}

void http_go_on(struct http *h)
{
	atomic_store(&h->stopped, false);
}
