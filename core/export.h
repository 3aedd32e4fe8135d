/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a function becomes a symbol of libfabric.so.1. libfabric.map lists the symbols and
 * the version that is current for each; functions of older versions name theirs here.
 */
#ifndef WEFT_CORE_EXPORT_H
#define WEFT_CORE_EXPORT_H

#define CORE_EXPORT __attribute__((visibility("default")))

/* Exports @function as @name for programs that were linked when @version was current. */
#define CORE_EXPORT_OLD(function, name, version) \
	__asm__(".symver " #function "," #name "@" version)

#endif /* WEFT_CORE_EXPORT_H */
