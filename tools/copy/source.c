/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file that is sent; source.h has the contract.
 */
#define _GNU_SOURCE
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *source_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int refuse(int err, const char *what, char *why)
{
	snprintf(why, COPY_TEXT_MAX, "%s", what ? what : strerror(err));
	return -err;
}

int source_open(const char *path, struct copy_message *file, char *why)
{
	const char *name = source_name(path);
	struct stat st;
	int fd, err;

	if (!copy_name_is_plain(name) || strlen(name) >= COPY_TEXT_MAX)
		return refuse(EINVAL, "does not end in the name of a file", why);
	/* O_NONBLOCK: a pipe is refused, and not waited for */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return refuse(errno, NULL, why);
	if (fstat(fd, &st)) {
		err = errno;
		close(fd);
		return refuse(err, NULL, why);
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return refuse(EINVAL, S_ISDIR(st.st_mode) ? "is a directory" : "is no file",
			      why);
	}
	*file = (struct copy_message){
		.kind = COPY_FILE,
		.mode = st.st_mode & 0777,
		.size = (uint64_t)st.st_size,
		.mtime_s = st.st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st.st_mtim.tv_nsec,
	};
	snprintf(file->text, sizeof(file->text), "%s", name);
	return fd;
}

int source_read(int fd, void *buf, size_t len, uint64_t at, char *why)
{
	char *to = buf;
	ssize_t n;

	while (len) {
		n = pread(fd, to, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse(errno, NULL, why);
		if (!n)
			return refuse(ENODATA, "became shorter while it was sent", why);
		to += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}
