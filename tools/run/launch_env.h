/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The environment and the command line that put a libfabric in place for a program
 * and, when that is Open MPI's launcher, for all its ranks on all hosts. Touches the
 * process's own environment, right before the program is started. One thread.
 */
#ifndef WEFT_TOOLS_LAUNCH_ENV_H
#define WEFT_TOOLS_LAUNCH_ENV_H

#include <stdbool.h>
#include <stddef.h>

/*
 * launch_library_find - the directory of this weft's libfabric.so.1
 * @dir:  receives an absolute path, PATH_MAX bytes
 *
 * Looks where the build and where the installation put it, seen from the weft binary;
 * else takes the one this process runs on.
 * Returns 0 or -ENOENT.
 */
int launch_library_find(char *dir);

/*
 * launch_library_prepend - put a directory first in LD_LIBRARY_PATH
 *
 * Returns 0 or -ENOMEM.
 */
int launch_library_prepend(const char *dir);

/*
 * launch_mem_find - this weft's libweft-mem.so, in the build or where it is installed
 * @file: receives an absolute path, PATH_MAX bytes
 *
 * Returns 0 or -ENOENT.
 */
int launch_mem_find(char *file);

/*
 * launch_mem_prepend - put a library first in LD_PRELOAD
 *
 * Returns 0 or -ENOMEM.
 */
int launch_mem_prepend(const char *file);

/*
 * launch_btl_find - the directory of this weft's component of Open MPI, in the build or where it is installed
 * @dir:  receives an absolute path, PATH_MAX bytes
 *
 * Returns 0 or -ENOENT.
 */
int launch_btl_find(char *dir);

/*
 * launch_btl_set - have Open MPI find that component, and use it
 * @dir: as launch_btl_find() gives it
 *
 * The directory goes before those where Open MPI looks anyway, or before what the environment names. Messages and
 * windows are the component's, as far as the environment does not say otherwise.
 * Returns 0 or -ENOMEM.
 */
int launch_btl_set(const char *dir);

/* A command as it is to be started. */
struct launch_command {
	/* NULL-terminated; the strings belong to the caller or are those below */
	char **argv;
	/* of the variables to carry, NULL-terminated */
	char **names;
	/* a value on the command line that was added to, or NULL */
	char *list;
};

/*
 * launch_forward - make Open MPI pass FI_* variables to its ranks
 * @cmd: receives the command to start
 * @argv: the command as it was given, NULL-terminated; borrowed until launch_command_fini
 * @preload: LD_PRELOAD as well
 * Adds LD_LIBRARY_PATH and every FI_* variable to mca_base_env_list, after a value that the command
 * line or the environment gives it. Open MPI refuses to mix that list with its option -x: if the
 * command uses -x, the variables are passed with -x too. Returns 0 or -ENOMEM, with nothing held.
 */
int launch_forward(struct launch_command *cmd, char **argv, bool preload);

void launch_command_fini(struct launch_command *cmd);

/*
 * launch_env_list - a mca_base_env_list with more names in it
 * @old:    its value so far, or NULL
 * @delim:  what separates its entries
 * @names:  NULL-terminated; those that are there already are not added again
 *
 * Returns it owned, or NULL without memory.
 */
char *launch_env_list(const char *old, char delim, const char *const *names);

#endif
