/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Places of a process's own; place.h has the contract. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "place.h"

static const char *const folders[] = { "/dev/shm", "/tmp" };
static const char *const tables[] = { "/proc/sysvipc/shm", "/proc/sysvipc/sem",
				      "/proc/sysvipc/msg" };

static int refused(const char *what, char *why, size_t len)
{
	snprintf(why, len, "%s: %s", what, strerror(errno));
	return -1;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text);
}

int place_leave_user(char *why, size_t len)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER))
		return refused("no user namespace", why, len);
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!write_file("/proc/self/setgroups", "deny") ||
	    !write_file("/proc/self/uid_map", map))
		return refused("no map of users", why, len);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	if (!write_file("/proc/self/gid_map", map))
		return refused("no map of groups", why, len);
	return 0;
}

static int own_spaces(int spaces, char *why, size_t len)
{
	if (unshare(spaces)) {
		if (errno != EPERM)
			return refused("no namespaces", why, len);
		if (place_leave_user(why, len))
			return -1;
		if (unshare(spaces))
			return refused("no namespaces", why, len);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return refused("no private mounts", why, len);
	return 0;
}

int place_own_mounts(char *why, size_t len)
{
	return own_spaces(CLONE_NEWNS, why, len);
}

int place_enter(char *why, size_t len)
{
	if (own_spaces(CLONE_NEWNS | CLONE_NEWIPC, why, len))
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (mount("tmpfs", folders[i], "tmpfs", 0, "mode=1777"))
			return refused(folders[i], why, len);
	return 0;
}

static bool folder_empty(const char *path, char *what, size_t len)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool empty = true;

	if (!dir)
		return true;
	while ((e = readdir(dir)) && empty) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(what, len, "%s/%s", path, e->d_name);
		empty = false;
	}
	closedir(dir);
	return empty;
}

/* A table of System V objects begins with a line of headings. */
static bool table_empty(const char *path, char *what, size_t len)
{
	FILE *file = fopen(path, "r");
	char line[256];
	bool empty;

	if (!file)
		return true;
	empty = !fgets(line, sizeof(line), file) || !fgets(line, sizeof(line), file);
	fclose(file);
	if (!empty)
		snprintf(what, len, "%s: %s", path, line);
	return empty;
}

bool place_empty(char *what, size_t len)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!folder_empty(folders[i], what, len))
			return false;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!table_empty(tables[i], what, len))
			return false;
	return true;
}

int place_lose_proc(char *why, size_t len)
{
	int tries = 0;

	/* One may lie over another. */
	while (!umount2("/proc", MNT_DETACH))
		tries++;
	if (tries && access("/proc/self/stat", F_OK))
		return 0;
	/* Mounts from another user namespace can't be unmounted alone: cover it. */
	if (mount("tmpfs", "/proc", "tmpfs", 0, NULL))
		return refused("/proc stays", why, len);
	return 0;
}

int place_drop(char *why, size_t len)
{
	if (geteuid())
		return 0;
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return refused("no ordinary user", why, len);
	/*
	 * Files in /proc of a process that was privileged can't be opened by others; an ordinary
	 * user's can.
	 */
	prctl(PR_SET_DUMPABLE, 1);
	return 0;
}

int place_forbid(int err, bool pidfd, char *why, size_t len)
{
	unsigned int fails = SECCOMP_RET_ERRNO | ((unsigned int)err & SECCOMP_RET_DATA);
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, pidfd ? SYS_pidfd_open : SYS_ptrace, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, fails),
	};
	struct sock_fprog prog = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return refused("no seccomp", why, len);
	return 0;
}
