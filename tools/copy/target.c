/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file that arrives; target.h has the contract.
 */
#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * What a signal's handler removes. The name is set before there is a file of it, and its number is random: that of
 * another's file it can't be.
 */
static struct {
	char name[40];
	int dir;
	atomic_bool is_there;
} temporary;

static void remove_temporary(void)
{
	if (atomic_exchange(&temporary.is_there, false))
		unlinkat(temporary.dir, temporary.name, 0);
}

static void end_by_signal(int sig)
{
	static const char text[] =
		"weft copy: someone else has shortened the file that arrives\n";
	int saved = errno;

	remove_temporary();
	if (sig == SIGBUS) {
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			_exit(EXIT_FAILURE);
		_exit(EXIT_FAILURE);
	}
	/* SA_RESETHAND: it ends the process as soon as this handler returns */
	raise(sig);
	errno = saved;
}

void target_guard(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGBUS };
	struct sigaction act = { .sa_handler = end_by_signal, .sa_flags = SA_RESETHAND };
	struct sigaction before;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &act, NULL);
	/* a limit on the size of files is -EFBIG, of the file that is too large */
	signal(SIGXFSZ, SIG_IGN);
}

static int create_temporary(int dir)
{
	uint64_t number;
	int fd, err;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(temporary.name, sizeof(temporary.name), ".weft-copy-%016llx",
		 (unsigned long long)number);
	temporary.dir = dir;
	atomic_store(&temporary.is_there, true);
	fd = openat(dir, temporary.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd >= 0)
		return fd;
	err = -errno;
	atomic_store(&temporary.is_there, false);
	return err;
}

/*
 * Gives the file its blocks. Where the filesystem can't, the C library writes to every block: what can't fit is not
 * tried, so that a size of a peer's costs no hours.
 */
static int reserve(int fd, uint64_t size)
{
	struct statvfs fs;
	int err;

	if (!fstatvfs(fd, &fs) && fs.f_blocks && size / fs.f_frsize > fs.f_bavail)
		return -ENOSPC;
	do {
		err = size ? posix_fallocate(fd, 0, (off_t)size) : 0;
	} while (err == EINTR);
	return -err;
}

int target_create(struct target *target, int dir, const struct copy_message *file,
		  const char **what)
{
	int err;

	if (!copy_name_is_plain(file->text)) {
		*what = "not a name of a file";
		return -EINVAL;
	}
	*target = (struct target){ .dir = dir, .fd = create_temporary(dir), .file = *file };
	if (target->fd < 0) {
		*what = "cannot create it";
		return target->fd;
	}
	err = reserve(target->fd, file->size);
	if (err) {
		*what = "no room for it";
		target_drop(target);
		return err;
	}
	return 0;
}

int target_map(const struct target *target, uint64_t at, size_t len, void **addr)
{
	void *mapped = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, target->fd,
			    (off_t)at);
	int err;

	if (mapped == MAP_FAILED)
		return -errno;
	/*
	 * Its pages now, and not one by one while a peer writes them; and an error where a filesystem has no room for
	 * what it has reserved, and not SIGBUS. Linux before 5.14 can't.
	 */
	if (madvise(mapped, len, MADV_POPULATE_WRITE) && errno != EINVAL) {
		err = -errno;
		munmap(mapped, len);
		return err;
	}
	*addr = mapped;
	return 0;
}

int target_keep(struct target *target, const char **what)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_NOW },
		{ .tv_sec = target->file.mtime_s, .tv_nsec = target->file.mtime_ns },
	};

	*what = "cannot give it its mode and time";
	if (fchmod(target->fd, target->file.mode) || futimens(target->fd, times))
		return -errno;
	*what = "cannot replace what has its name";
	if (renameat(target->dir, temporary.name, target->dir, target->file.text))
		return -errno;
	atomic_store(&temporary.is_there, false);
	/* Writes that failed later, as over NFS, are told here. */
	*what = "cannot write it";
	if (close(target->fd)) {
		target->fd = -1;
		return -errno;
	}
	target->fd = -1;
	return 0;
}

void target_drop(struct target *target)
{
	remove_temporary();
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
}
