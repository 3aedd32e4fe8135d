/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that two machines have; bar.h has the contract. Source: QEMU's docs/specs/ivshmem-spec. */
#define _GNU_SOURCE
#include "bar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bridge.h"

#define DEVICES	  "/sys/bus/pci/devices"
#define PATH_LEN  512
#define IVSHMEM	  0x1af41110u /* vendor and device */
#define DOMAIN	  "0000:"
#define COLON_CNT 2 /* of an address with its domain */

static int map(struct bar *bar, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), err = 0;
	struct stat st;
	void *mem;

	if (fd < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct bridge_head)) {
		close(fd);
		return -ENODEV;
	}
	bar->len = (uint64_t)st.st_size & ~(uint64_t)(NVME_PAGE - 1);
	mem = mmap(NULL, bar->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		err = -errno;
	else
		bar->mem = mem;
	close(fd);
	return err;
}

static int write_one(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ok;

	if (fd < 0)
		return -errno;
	ok = write(fd, "1", 1) == 1;
	close(fd);
	return ok ? 0 : -EIO;
}

static uint32_t number_in(const char *folder, const char *name)
{
	char path[PATH_LEN];
	unsigned value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%x", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static int open_function(struct bar *bar, const char *address)
{
	char folder[PATH_LEN / 2], path[PATH_LEN];
	int colons = 0;

	for (const char *at = address; *at; at++)
		colons += *at == ':';
	snprintf(folder, sizeof(folder), DEVICES "/%s%s", colons < COLON_CNT ? DOMAIN : "",
		 address);
	/* Without a driver nobody has had it answer. */
	snprintf(path, sizeof(path), "%s/enable", folder);
	if (!number_in(folder, "enable"))
		write_one(path);
	snprintf(path, sizeof(path), "%s/resource2", folder);
	return map(bar, path);
}

int bar_open(struct bar *bar, const char *name)
{
	*bar = (struct bar){ 0 };
	return strchr(name, '/') ? map(bar, name) : open_function(bar, name);
}

void bar_close(struct bar *bar)
{
	if (bar->mem)
		munmap(bar->mem, bar->len);
	bar->mem = NULL;
}

static bool has_key(const struct bar *bar, uint64_t key)
{
	const struct bridge_head *head = (const struct bridge_head *)bar->mem;

	/* A:key  what the controller has made before it is told of; pairs R:key */
	return __atomic_load_n(&head->key, __ATOMIC_ACQUIRE) == key &&
	       head->magic == BRIDGE_MAGIC && head->version == BRIDGE_VERSION;
}

static int try(struct bar *bar, const char *name, uint64_t key)
{
	int err = bar_open(bar, name);

	if (!err && !has_key(bar, key)) {
		bar_close(bar);
		err = -ENODEV;
	}
	return err;
}

int bar_find(struct bar *bar, const char *name, uint64_t key)
{
	struct dirent *entry;
	char folder[PATH_LEN];
	int err = -ENODEV;
	DIR *dir;

	if (name)
		return try(bar, name, key);
	dir = opendir(DEVICES);
	if (!dir)
		return -ENODEV;
	while (err && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(folder, sizeof(folder), DEVICES "/%s", entry->d_name);
		if ((number_in(folder, "vendor") << 16 | number_in(folder, "device")) == IVSHMEM)
			err = try(bar, entry->d_name, key);
	}
	closedir(dir);
	return err;
}
