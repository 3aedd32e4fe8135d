/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Having libweft-directory.so, for who names a directory, and what both sides say of the host that they are on. Any thread.
 */
#ifndef WEFT_DEVICES_DIRECTORY_LOAD_H
#define WEFT_DEVICES_DIRECTORY_LOAD_H

#include "directory.h"

/* DIRECTORY_LIBRARY - its file, which is looked for as the library or program that loads it says (rpath) */
#define DIRECTORY_LIBRARY "libweft-directory.so.0"

/*
 * directory_load - load it, once; it stays
 * Returns 0; -EOPNOTSUPP: it is not there, as Weft was built without libcurl; -ENOPROTOOPT: it is of another version.
 */
int directory_load(const struct directory_ops **ops);

/* directory_host - out: this host, as struct directory_lender has it; "" where it can't be told */
void directory_host(char host[40]);

#endif
