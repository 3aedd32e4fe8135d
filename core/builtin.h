/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The providers that are linked into libfabric.so.1. */
#ifndef WEFT_CORE_BUILTIN_H
#define WEFT_CORE_BUILTIN_H

/*
 * builtin_register - add them to the registry
 *
 * Called once, while the core starts, under its start lock.
 */
void builtin_register(void);

#endif /* WEFT_CORE_BUILTIN_H */
