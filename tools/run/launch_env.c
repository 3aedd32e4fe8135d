/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Environment of a launched program; launch_env.h has the contract. Called by
 * 'weft run' only.
 */
#define _GNU_SOURCE
#include "launch_env.h"
#include "arguments.h"
#include "libfabric.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MCA_LIST      "mca_base_env_list"
#define MCA_LIST_ENV  "OMPI_MCA_mca_base_env_list"
#define MCA_DELIM_ENV "OMPI_MCA_mca_base_env_list_delimiter"

/* Where Open MPI looks for components; its own words for where it does so without being told. */
#define MCA_PATH_ENV	  "OMPI_MCA_mca_base_component_path"
#define MCA_PATH_DEFAULTS "SYSTEM_DEFAULT:USER_DEFAULT"

static int directory_of(const char *file, char *dir)
{
	const char *slash = strrchr(file, '/');
	char parent[PATH_MAX];

	if (!slash || slash == file || (size_t)(slash - file) >= sizeof(parent))
		return -ENOENT;
	memcpy(parent, file, (size_t)(slash - file));
	parent[slash - file] = '\0';
	return argument_library_find(parent, dir);
}

/* A place as seen from a directory. */
static int resolve(const char *from, const char *place, char *path)
{
	int len = snprintf(path, PATH_MAX, "%s%s%s", *place == '/' ? "" : from,
			   *place == '/' ? "" : "/", place);

	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The directory of this weft's binary. Returns 0 or -ENOENT. */
static int own_directory(char *self)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len <= 0)
		return -ENOENT;
	path[len] = '\0';
	*strrchr(path, '/') = '\0';
	strcpy(self, path);
	return 0;
}

int launch_library_find(char *dir)
{
	/* From build/tools, and from PREFIX/bin. */
	static const char *const places[] = { "../core", WEFT_LIBDIR };
	char self[PATH_MAX], place[PATH_MAX];
	size_t i;

	if (!own_directory(self)) {
		for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
			if (!resolve(self, places[i], place) &&
			    !argument_library_find(place, dir))
				return 0;
	}
	return directory_of(fabric_library_path(), dir) ? -ENOENT : 0;
}

/* The first of two places, seen from this weft's binary, where a file is. Returns 0 or -ENOENT. */
static int find_file(const char *const places[2], char *file)
{
	char self[PATH_MAX], place[PATH_MAX];

	if (own_directory(self))
		return -ENOENT;
	for (size_t i = 0; i < 2; i++)
		if (!resolve(self, places[i], place) && realpath(place, file))
			return 0;
	return -ENOENT;
}

int launch_mem_find(char *file)
{
	static const char *const places[] = { "../mem/preload/libweft-mem.so",
					      WEFT_LIBDIR "/libweft-mem.so" };

	return find_file(places, file);
}

int launch_btl_find(char *dir)
{
	static const char *const places[] = { "../btl/openmpi/mca_btl_weft.so",
					      WEFT_LIBDIR "/weft/openmpi/mca_btl_weft.so" };
	int rc = find_file(places, dir);

	if (!rc)
		*strrchr(dir, '/') = '\0';
	return rc;
}

/* Puts a value before what a list in the environment has. */
static int prepend(const char *name, const char *value)
{
	const char *old = getenv(name);
	char *list;
	int rc;

	if (!old || !*old)
		return setenv(name, value, 1) ? -ENOMEM : 0;
	if (asprintf(&list, "%s:%s", value, old) < 0)
		return -ENOMEM;
	rc = setenv(name, list, 1) ? -ENOMEM : 0;
	free(list);
	return rc;
}

int launch_mem_prepend(const char *file)
{
	return prepend("LD_PRELOAD", file);
}

int launch_library_prepend(const char *dir)
{
	return prepend("LD_LIBRARY_PATH", dir);
}

int launch_btl_set(const char *dir)
{
	static const char *const params[][2] = { { "OMPI_MCA_btl", "self,weft" },
						 { "OMPI_MCA_osc", "rdma,sm" } };
	const char *old = getenv(MCA_PATH_ENV);

	if ((!old || !*old) && setenv(MCA_PATH_ENV, MCA_PATH_DEFAULTS, 1))
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++)
		if (setenv(params[i][0], params[i][1], 0))
			return -ENOMEM;
	return prepend(MCA_PATH_ENV, dir);
}

/* Whether an env list names a variable, with or without a value. */
static bool names(const char *list, char delim, const char *name)
{
	size_t len = strlen(name);
	const char *at = list;

	while (at && *at) {
		if (!strncmp(at, name, len) && (!at[len] || at[len] == '=' || at[len] == delim))
			return true;
		at = strchr(at, delim);
		at += !!at;
	}
	return false;
}

char *launch_env_list(const char *old, char delim, const char *const *more)
{
	size_t room = old ? strlen(old) + 1 : 1, used, i;
	char *list;

	for (i = 0; more[i]; i++)
		room += strlen(more[i]) + 1;
	list = malloc(room);
	if (!list)
		return NULL;
	strcpy(list, old ? old : "");
	for (i = 0; more[i]; i++) {
		if (names(list, delim, more[i]))
			continue;
		used = strlen(list);
		if (used && list[used - 1] != delim)
			list[used++] = delim;
		strcpy(list + used, more[i]);
	}
	return list;
}

static void free_list(char **list)
{
	size_t i;

	for (i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

/* LD_LIBRARY_PATH, all FI_* names that are set, and LD_PRELOAD if asked for. Owned, with its strings. */
static char **our_names(bool preload)
{
	char **entry, **list;
	size_t cnt = 3;

	for (entry = environ; *entry; entry++)
		cnt += !strncmp(*entry, "FI_", 3);
	list = calloc(cnt, sizeof(*list));
	if (!list)
		return NULL;
	cnt = 0;
	list[cnt] = strdup("LD_LIBRARY_PATH");
	if (list[cnt] && preload)
		list[++cnt] = strdup("LD_PRELOAD");
	for (entry = environ; list[cnt] && *entry; entry++)
		if (!strncmp(*entry, "FI_", 3) && strchr(*entry, '='))
			list[++cnt] = strndup(*entry, strcspn(*entry, "="));
	if (list[cnt])
		return list;
	free_list(list);
	return NULL;
}

static bool is_launcher(const char *command)
{
	const char *base = strrchr(command, '/');

	base = base ? base + 1 : command;
	return !strcmp(base, "mpirun") || !strcmp(base, "mpiexec") || !strcmp(base, "orterun");
}

static size_t count(char *const *list)
{
	size_t cnt = 0;

	while (list[cnt])
		cnt++;
	return cnt;
}

/* Returns the index of VALUE in "--mca mca_base_env_list VALUE", or 0 if it is not given. */
static size_t find_list(char *const *argv)
{
	size_t i;

	for (i = 1; argv[0] && argv[i]; i++)
		if ((!strcmp(argv[i], "--mca") || !strcmp(argv[i], "-mca")) && argv[i + 1] &&
		    !strcmp(argv[i + 1], MCA_LIST) && argv[i + 2])
			return i + 2;
	return 0;
}

static bool has_dash_x(char *const *argv)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, "-x") || !strcmp(*argv, "--x"))
			return true;
	return false;
}

/* "mpirun ..." becomes "mpirun -x NAME ... ...". */
static int forward_by_dash_x(struct launch_command *cmd, char **argv)
{
	size_t argc = count(argv), cnt = count(cmd->names), i, at = 0;

	cmd->argv = calloc(argc + 2 * cnt + 1, sizeof(*cmd->argv));
	if (!cmd->argv)
		return -ENOMEM;
	cmd->argv[at++] = argv[0];
	for (i = 0; i < cnt; i++) {
		cmd->argv[at++] = (char *)"-x";
		cmd->argv[at++] = cmd->names[i];
	}
	memcpy(cmd->argv + at, argv + 1, argc * sizeof(*argv));
	return 0;
}

/* @at: index of the command line's own list, else 0 */
static int forward_by_list(struct launch_command *cmd, char **argv, size_t at)
{
	const char *delim = getenv(MCA_DELIM_ENV);

	cmd->argv = calloc(count(argv) + 1, sizeof(*cmd->argv));
	cmd->list = launch_env_list(at ? argv[at] : getenv(MCA_LIST_ENV),
				    delim && *delim ? *delim : ';',
				    (const char *const *)cmd->names);
	if (!cmd->argv || !cmd->list)
		return -ENOMEM;
	memcpy(cmd->argv, argv, count(argv) * sizeof(*argv));
	if (at)
		cmd->argv[at] = cmd->list;
	else if (setenv(MCA_LIST_ENV, cmd->list, 1))
		return -ENOMEM;
	return 0;
}

int launch_forward(struct launch_command *cmd, char **argv, bool preload)
{
	bool launcher = is_launcher(argv[0]);
	size_t at = launcher ? find_list(argv) : 0;
	int rc = -ENOMEM;

	memset(cmd, 0, sizeof(*cmd));
	cmd->names = our_names(preload);
	if (cmd->names && launcher && !at && has_dash_x(argv) && !getenv(MCA_LIST_ENV))
		rc = forward_by_dash_x(cmd, argv);
	else if (cmd->names)
		rc = forward_by_list(cmd, argv, at);
	if (rc)
		launch_command_fini(cmd);
	return rc;
}

void launch_command_fini(struct launch_command *cmd)
{
	free(cmd->argv);
	free_list(cmd->names);
	free(cmd->list);
	memset(cmd, 0, sizeof(*cmd));
}
