/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The C library's <stdarg.h>, for sources that the library and the module share. */
#ifndef KOFI_STDARG_H
#define KOFI_STDARG_H

typedef __builtin_va_list va_list;

#define va_start(list, last) __builtin_va_start(list, last)
#define va_end(list)	     __builtin_va_end(list)

#endif
