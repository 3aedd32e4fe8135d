/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What shared sources take of the C library's <stdio.h>: functions that Linux has by the same name, with the
 * conversions of its own printf.
 */
#ifndef KOFI_STDIO_H
#define KOFI_STDIO_H

#include <rdma/fi_types.h>
#include <stdarg.h>

int snprintf(char *text, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int vsnprintf(char *text, size_t len, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

#endif
