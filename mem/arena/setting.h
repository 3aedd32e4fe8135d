/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings of the memory that peers reach, which are read before the log and settings of libfabric.so.1 may be used,
 * or without it.
 */
#ifndef WEFT_MEM_SETTING_H
#define WEFT_MEM_SETTING_H

/*
 * setting_ignored - say on stderr that a setting has a value that is not understood
 * @text:  the value, as it is
 * @takes: what it would take
 *
 * One line, by write(2): any thread, also before the C library is ready, and with locks held.
 */
void setting_ignored(const char *name, const char *text, const char *takes);

#endif
