/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a lender listens and keeps its state, if nobody says otherwise: of the system for root, else of the user.
 */
#ifndef WEFT_DEVICES_LEASE_PLACE_H
#define WEFT_DEVICES_LEASE_PLACE_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEASE_SYSTEM_SOCKET "/run/weft/lender"
#define LEASE_SYSTEM_STATE  "/var/lib/weft"

/* lease_own_socket - out: the path of this user's lender. Returns 0 or a negative errno: there is no folder for it. */
static inline int lease_own_socket(char *path, size_t room)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (!geteuid())
		n = snprintf(path, room, "%s", LEASE_SYSTEM_SOCKET);
	else if (runtime && *runtime)
		n = snprintf(path, room, "%s/weft/lender", runtime);
	else
		return -ENOENT;
	return n >= 0 && (size_t)n < room ? 0 : -ENAMETOOLONG;
}

/* lease_own_state - the same for the folder of its state */
static inline int lease_own_state(char *path, size_t room)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (!geteuid())
		n = snprintf(path, room, "%s", LEASE_SYSTEM_STATE);
	else if (state && *state)
		n = snprintf(path, room, "%s/weft", state);
	else if (home && *home)
		n = snprintf(path, room, "%s/.local/state/weft", home);
	else
		return -ENOENT;
	return n >= 0 && (size_t)n < room ? 0 : -ENAMETOOLONG;
}

#endif
