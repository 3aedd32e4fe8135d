/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The journal of leases, as JSON; journal.h has the contract.
 *
 *	{"version": 2, "leases": [{"lease": 1, "used": 1, "generation": 7, "token": "00112233445566778899aabbccddeeff", ...}]}
 */
#define _GNU_SOURCE
#include "journal.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define VERSION 2

/* Between two looks whether a lock is free. */
#define LOCK_LOOK_MS 20

/*
 * A file as a whole: written beside the old one, and put into its place; brought to the disk before if it outlives the host
 * (@lasts). Leases do not: their controllers are processes, and renewals would wait for the disk.
 */
static int replace(const char *folder, const char *name, const char *text, bool lasts)
{
	char path[4096], fresh[4096];
	size_t len = strlen(text);
	int fd, err = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path) ||
	    (size_t)snprintf(fresh, sizeof(fresh), "%s/%s.new", folder, name) >= sizeof(fresh))
		return -ENAMETOOLONG;
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? -errno : -EIO;
			break;
		}
		text += n;
		len -= (size_t)n;
	}
	if (!err && lasts && fdatasync(fd))
		err = -errno;
	close(fd);
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		unlink(fresh);
	return err;
}

static void device_name(uint64_t device, char name[64])
{
	snprintf(name, 64, "leases-%016" PRIx64 ".json", device);
}

static int number(const json_t *object, const char *name, uint64_t max, uint64_t *value)
{
	const json_t *n = json_object_get(object, name);

	if (!json_is_integer(n) || json_integer_value(n) < 0 ||
	    (uint64_t)json_integer_value(n) > max)
		return -EINVAL;
	*value = (uint64_t)json_integer_value(n);
	return 0;
}

/* -1: nobody's that is known here, as a borrower of another host is */
static int read_pid(const json_t *object, pid_t *pid)
{
	const json_t *n = json_object_get(object, "pid");

	if (!json_is_integer(n) || json_integer_value(n) < -1 ||
	    json_integer_value(n) > INT32_MAX)
		return -EINVAL;
	*pid = (pid_t)json_integer_value(n);
	return 0;
}

static int read_lease(const json_t *object, struct journal_lease *leases, uint32_t cnt)
{
	uint64_t lease, used, generation, flags, uid;
	const char *token = json_string_value(json_object_get(object, "token"));
	struct lease_token secret;
	pid_t pid;

	if (number(object, "lease", cnt - 1, &lease) || number(object, "used", 1, &used) ||
	    number(object, "generation", UINT32_MAX, &generation) ||
	    number(object, "flags", UINT32_MAX, &flags) ||
	    number(object, "uid", UINT32_MAX, &uid) || read_pid(object, &pid) || !token ||
	    lease_token_parse(token, &secret))
		return -EINVAL;
	leases[lease] = (struct journal_lease){
		.used = (uint32_t)used,
		.generation = (uint32_t)generation,
		.token = secret,
		.flags = (uint32_t)flags,
		.uid = (uid_t)uid,
		.pid = pid,
	};
	return 0;
}

static int read_all(const json_t *root, struct journal_lease *leases, uint32_t cnt)
{
	const json_t *array = json_object_get(root, "leases"), *lease;
	uint64_t version;
	size_t i;
	int err;

	if (number(root, "version", INT32_MAX, &version))
		return -EINVAL;
	if (version != VERSION)
		return -ENOPROTOOPT;
	if (!json_is_array(array))
		return -EINVAL;
	json_array_foreach(array, i, lease)
	{
		err = read_lease(lease, leases, cnt);
		if (err)
			return err;
	}
	return 0;
}

void journal_read(const char *folder, uint64_t device, struct journal_lease *leases,
		  uint32_t cnt)
{
	char path[4096], name[64];
	json_error_t why;
	json_t *root;
	int err;

	memset(leases, 0, cnt * sizeof(*leases));
	device_name(device, name);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path) ||
	    access(path, F_OK))
		return;
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	err = root ? read_all(root, leases, cnt) : -EINVAL;
	if (err) {
		lender_log("%s is %s: leases that run will be ended", path,
			   err == -ENOPROTOOPT ? "the journal of a lender of another version"
					       : "not a journal of leases");
		memset(leases, 0, cnt * sizeof(*leases));
	}
	json_decref(root);
}

static json_t *lease_json(uint32_t number_of, const struct journal_lease *lease)
{
	char token[LEASE_TOKEN_TEXT];

	lease_token_text(&lease->token, token);
	return json_pack("{sI sI sI ss sI sI sI}", "lease", (json_int_t)number_of, "used",
			 (json_int_t)lease->used, "generation", (json_int_t)lease->generation,
			 "token", token, "flags", (json_int_t)lease->flags, "uid",
			 (json_int_t)lease->uid, "pid", (json_int_t)lease->pid);
}

int journal_write(const char *folder, uint64_t device, const struct journal_lease *leases,
		  uint32_t cnt)
{
	json_t *array = json_array();
	json_t *root = json_pack("{si so}", "version", VERSION, "leases", array);
	char name[64], *text = NULL;
	uint32_t i;
	int err = root ? 0 : -ENOMEM;

	for (i = 0; !err && i < cnt; i++)
		if (leases[i].generation &&
		    json_array_append_new(array, lease_json(i, &leases[i])))
			err = -ENOMEM;
	if (!err) {
		text = json_dumps(root, JSON_COMPACT);
		device_name(device, name);
		err = text ? replace(folder, name, text, false) : -ENOMEM;
	}
	free(text);
	json_decref(root);
	return err;
}

/* A lock of the process: it has no descriptor of the file but this one, which stays open. */
static int lock_file(int fd, pid_t *owner)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int tries;

	for (tries = 0; fcntl(fd, F_SETLK, &lock); tries++) {
		if (errno != EACCES && errno != EAGAIN)
			return -errno;
		if (tries * LOCK_LOOK_MS >= JOURNAL_LOCK_MS) {
			*owner = fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK
					 ? 0
					 : lock.l_pid;
			return -EBUSY;
		}
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_LOOK_MS * 1000000 }, NULL);
	}
	return 0;
}

int journal_lock(const char *folder, pid_t *owner)
{
	char path[4096];
	int fd, err;

	if ((size_t)snprintf(path, sizeof(path), "%s/lock", folder) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = lock_file(fd, owner);
	if (err)
		close(fd);
	return err;
}

int journal_node(const char *folder, uint64_t *node)
{
	char path[4096], text[32] = "", *end;
	FILE *file;

	if ((size_t)snprintf(path, sizeof(path), "%s/node", folder) >= sizeof(path))
		return -ENAMETOOLONG;
	file = fopen(path, "re");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			*text = 0;
		fclose(file);
		*node = strtoull(text, &end, 16);
		if (*node && (*end == '\n' || !*end))
			return 0;
		return -EILSEQ;
	}
	if (errno != ENOENT)
		return -errno;
	do
		if (getrandom(node, sizeof(*node), 0) != sizeof(*node))
			return -errno;
	while (!*node);
	snprintf(text, sizeof(text), "%016" PRIx64 "\n", *node);
	return replace(folder, "node", text, true);
}
