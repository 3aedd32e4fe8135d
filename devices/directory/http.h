/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests to the members of a directory, over HTTP or TLS, by libcurl: one at a time, and beside it one whose answer does
 * not end. One thread at a time, but http_wake() and http_stop().
 *
 * Of TLS, files are named as etcd's own tool has them: ETCDCTL_CACERT (else the system's), ETCDCTL_CERT and ETCDCTL_KEY.
 */
#ifndef WEFT_DEVICES_DIRECTORY_HTTP_H
#define WEFT_DEVICES_DIRECTORY_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_ANSWER_MAX (16u << 20)
#define HTTP_WHY_MAX	160u

struct http;

/* struct http_answer - @text: @len bytes and a zero byte, owned (free()) */
struct http_answer {
	long status;
	char *text;
	size_t len;
};

/* http_create - returns 0, -ENOMEM, or -ECANCELED: the process ends */
int http_create(struct http **http);
void http_destroy(struct http *http);

/*
 * http_post - ask and wait for the answer
 * @url:  of a member; @path: behind it
 * @ms:   how long at most
 * @why:  out: HTTP_WHY_MAX bytes, where an error is returned
 * Returns 0: @answer has something, of whatever status; -ECONNREFUSED: nobody is there; -ETIMEDOUT; -EACCES: TLS;
 * -EMSGSIZE: the answer is too long; -EPROTO; -ECANCELED: http_stop(), or the process ends; -ENOMEM.
 */
int http_post(struct http *http, const char *url, const char *path, const char *body,
	      unsigned ms, struct http_answer *answer, char *why);

/* http_stream_open - ask for an answer that does not end, in lines. Returns 0, -ENOMEM, -ECANCELED */
int http_stream_open(struct http *http, const char *url, const char *path, const char *body);
void http_stream_close(struct http *http);

/* http_stream_line - the next line that has come, valid until the next call, or NULL: none has yet */
const char *http_stream_line(struct http *http, size_t *len);

/* http_stream_ended - there will be no more lines than have come */
bool http_stream_ended(const struct http *http);

/* http_wait - wait until something has come on the stream, for @ms, or until http_wake(); also for nothing of these */
void http_wait(struct http *http, unsigned ms);

void http_wake(struct http *http);

/* http_stop - have what is under way end, and all that follows until http_go_on(): -ECANCELED */
void http_stop(struct http *http);
void http_go_on(struct http *http);

#endif
