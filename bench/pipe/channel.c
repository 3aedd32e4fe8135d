/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tools/shared/channel.h over two pipes, with calls that block: what the kernel takes to switch between two
 * processes that share a core. Messages alone, whatever the plan calls them. One channel per process.
 */
#define _GNU_SOURCE
#include "channel.h"
#include "posted.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ROOM 65536

static struct {
	int in;
	int out;
	/* that were read ahead */
	char bytes[ROOM];
	size_t at;
	size_t end;
	struct posted posted;
} pipes = { .in = -1, .out = -1 };

/* Each side makes the pipe that it reads; the other one opens it by its name in /proc. */
static int meet(struct channel *ch)
{
	char mine[PATH_MAX], theirs[PATH_MAX];
	size_t len = sizeof(theirs) - 1;
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC))
		return fabric_complain("pipe2", -errno);
	pipes.in = ends[0];
	snprintf(mine, sizeof(mine), "/proc/%d/fd/%d", (int)getpid(), ends[1]);
	rc = oob_exchange(&ch->side->oob, mine, strlen(mine), theirs, &len);
	if (!rc) {
		theirs[len] = '\0';
		pipes.out = open(theirs, O_WRONLY | O_CLOEXEC);
		rc = pipes.out < 0 ? fabric_complain(theirs, -errno) : 0;
	}
	if (oob_barrier(&ch->side->oob, rc) && !rc)
		rc = -FI_ECONNABORTED;
	/* The peer has the only writing end: when it goes, reads end. */
	close(ends[1]);
	return rc;
}

int channel_open(struct channel *ch, const struct plan *plan, const struct channel_options *opt,
		 struct side *side)
{
	int rc;

	memset(ch, 0, sizeof(*ch));
	if (pipes.in >= 0) {
		warnx("over pipes there is one channel per process");
		return -FI_EBUSY;
	}
	ch->opt = *opt;
	ch->side = side;
	ch->limits = (struct channel_limits){
		.provider = "pipe",
		.max_message = SIZE_MAX,
	};
	rc = meet(ch);
	if (rc)
		channel_close(ch);
	return rc;
}

void channel_close(struct channel *ch)
{
	if (pipes.in >= 0)
		close(pipes.in);
	if (pipes.out >= 0)
		close(pipes.out);
	memset(&pipes, 0, sizeof(pipes));
	pipes.in = pipes.out = -1;
	memset(ch, 0, sizeof(*ch));
}

void channel_describe(const struct channel *ch, struct results_config *config)
{
	struct utsname kernel = { 0 };

	uname(&kernel);
	*config = (struct results_config){ 0 };
	snprintf(config->provider, sizeof(config->provider), "pipe(2)");
	snprintf(config->prov_version, sizeof(config->prov_version), "-");
	snprintf(config->build, sizeof(config->build), "pipe(2) of Linux %s", kernel.release);
	snprintf(config->library, sizeof(config->library), "-");
}

static int write_all(const void *bytes, size_t len)
{
	const char *at = bytes;
	ssize_t done;

	for (; len; at += done, len -= (size_t)done) {
		done = write(pipes.out, at, len);
		if (done < 0)
			return fabric_complain("write into the pipe", -errno);
	}
	return 0;
}

/* Its length, then its bytes, in one call where the pipe takes them. */
int channel_send(struct channel *ch, struct channel_buf *buf, size_t len)
{
	const struct iovec iov[2] = { { &len, sizeof(len) }, { buf->addr, len } };
	ssize_t done = writev(pipes.out, iov, 2);
	size_t sent;

	if (done < (ssize_t)sizeof(len))
		return fabric_complain("writev into the pipe", -errno);
	sent = (size_t)done - sizeof(len);
	buf->op.is_recv = false;
	ch->tx_done++;
	return write_all((const char *)buf->addr + sent, len - sent);
}

int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len)
{
	return posted_add(&pipes.posted, ch, buf, len);
}

/* So many bytes, from what was read ahead or from the pipe. */
static int take(void *to, size_t len)
{
	size_t part;
	char *at = to;
	ssize_t got;

	for (; len; at += part, len -= part, pipes.at += part) {
		if (pipes.at == pipes.end) {
			got = read(pipes.in, pipes.bytes, sizeof(pipes.bytes));
			if (got <= 0)
				return got ? fabric_complain("read from the pipe", -errno)
					   : -FI_ESHUTDOWN;
			pipes.at = 0;
			pipes.end = (size_t)got;
		}
		part = pipes.end - pipes.at < len ? pipes.end - pipes.at : len;
		memcpy(at, pipes.bytes + pipes.at, part);
	}
	return 0;
}

static inline int channel_progress(struct channel *ch)
{
	size_t len, room;
	struct channel_buf *buf = posted_first(&pipes.posted, ch, &room);
	int rc;

	if (!buf)
		return 0;
	rc = take(&len, sizeof(len));
	if (!rc && len > room) {
		warnx("a message of %zu bytes for %zu", len, room);
		rc = -FI_ETRUNC;
	}
	if (!rc)
		rc = take(buf->addr, len);
	if (rc)
		return rc;
	posted_done(ch, buf, len);
	return 1;
}

#include "channel_wait.h"
