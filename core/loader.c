/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loadable providers, see loader.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "loader.h"
#include "log.h"
#include "registry.h"

#define SUFFIX "-fi.so"

/* Returns true if the file contains the whole program header table and all bytes that its segments map. */
static bool segments_whole(int fd, const Elf64_Ehdr *header, uint64_t size)
{
	Elf64_Phdr segment;
	uint64_t at;
	int i;

	if (header->e_phoff > size || header->e_phnum * sizeof(segment) > size - header->e_phoff)
		return false;
	for (i = 0; i < header->e_phnum; i++) {
		at = header->e_phoff + (uint64_t)i * sizeof(segment);
		if (pread(fd, &segment, sizeof(segment), (off_t)at) != sizeof(segment))
			return false;
		if (segment.p_type == PT_LOAD &&
		    (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))
			return false;
	}
	return true;
}

/*
 * Finds files on which dlopen hangs or crashes: it waits for ever on a FIFO, and gets SIGBUS if a file is
 * truncated. Returns NULL, or the problem.
 */
static const char *library_problem(const char *file)
{
	const char *problem = NULL;
	Elf64_Ehdr header;
	struct stat st;
	int fd;

	if (stat(file, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is not a regular file";
	fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return strerror(errno);
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    !header.e_phnum)
		problem = "it is not a 64-bit shared library";
	else if (!segments_whole(fd, &header, (uint64_t)st.st_size))
		problem = "the file is truncated: copy it again";
	close(fd);
	return problem;
}

/* Returns NULL, or the problem: a string that is valid until the next call. */
static const char *library_load(const char *file, bool preferred)
{
	struct fi_provider *(*init)(void);
	void *library, *symbol;
	const char *problem = library_problem(file);

	if (problem)
		return problem;
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
	symbol = dlsym(library, "fi_prov_ini");
	if (!symbol) {
		dlclose(library);
		return "it has no function fi_prov_ini";
	}
	memcpy(&init, &symbol, sizeof(init));
	registry_add(init(), library, preferred);
	return NULL;
}

static int is_provider_file(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), suffix = sizeof(SUFFIX) - 1;

	return len > suffix && !strcmp(entry->d_name + len - suffix, SUFFIX);
}

static void file_load(const char *file, bool preferred)
{
	const char *problem = library_load(file, preferred);

	if (problem)
		FI_WARN(&core_provider, FI_LOG_CORE, "the provider %s was not loaded: %s\n",
			file, problem);
}

/* Returns true if the provider that a file is named after is registered. */
static bool is_there(const char *name)
{
	size_t prefix = strncmp(name, "lib", 3) ? 0 : 3;

	return registry_has(name + prefix, strlen(name) - prefix - (sizeof(SUFFIX) - 1));
}

/*
 * Logs the first problem and the number of others. @missing: load only providers that are not registered
 * yet.
 */
static void folder_load(const char *folder, bool missing)
{
	char file[PATH_MAX], first[512] = "";
	struct dirent **found = NULL;
	int i, cnt, problem_cnt = 0;
	const char *problem;

	cnt = scandir(folder, &found, is_provider_file, alphasort);
	for (i = 0; i < cnt; i++) {
		snprintf(file, sizeof(file), "%s/%s", folder, found[i]->d_name);
		free(found[i]);
		problem = missing && is_there(strrchr(file, '/') + 1)
				  ? NULL
				  : library_load(file, false);
		if (problem && !problem_cnt++)
			snprintf(first, sizeof(first), "%s", problem);
	}
	free(found);
	if (problem_cnt > 1)
		FI_WARN(&core_provider, FI_LOG_CORE,
			"%d providers in %s were not loaded, the first: %s\n", problem_cnt,
			folder, first);
	else if (problem_cnt)
		FI_WARN(&core_provider, FI_LOG_CORE, "a provider in %s was not loaded: %s\n",
			folder, first);
}

static void entry_load(const char *path)
{
	struct stat st;
	DIR *folder;

	if (stat(path, &st) || (S_ISDIR(st.st_mode) && !(folder = opendir(path)))) {
		FI_WARN(&core_provider, FI_LOG_CORE,
			"FI_PROVIDER_PATH names %s, which can't be "
			"read (%s): make it readable, or remove it\n",
			path, strerror(errno));
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		file_load(path, false);
		return;
	}
	closedir(folder);
	folder_load(path, false);
}

void loader_run(const char *path, const char *fallback)
{
	char *copy, *rest, *entry;
	bool searched = false;

	if (path && *path == '@') {
		registry_keep_order(true);
		path++;
	}
	copy = strdup(path ? path : "");
	for (rest = copy; (entry = strsep(&rest, ":"));) {
		if (!*entry)
			continue;
		if (*entry != '+') {
			entry_load(entry);
			searched = true;
		} else if (entry[1] == '/') {
			file_load(entry + 1, true);
		} else {
			FI_WARN(&core_provider, FI_LOG_CORE,
				"FI_PROVIDER_PATH has %s: + requires "
				"the absolute path of a file\n",
				entry);
		}
	}
	free(copy);
	if (!searched)
		folder_load(fallback, true);
}
