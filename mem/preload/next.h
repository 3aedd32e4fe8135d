/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator that would serve the program without this library: the C library's, or another one that
 * is preloaded or linked. Any thread.
 */
#ifndef WEFT_MEM_NEXT_H
#define WEFT_MEM_NEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * struct next
 * @tells_size: malloc_usable_size() is of the same allocator as realloc(), and knows its blocks
 * @first_realloc, @first_free: what the program calls: this library's, or those of an allocator before it. NULL while they
 *		are looked up
 */
struct next {
	void *(*malloc)(size_t len);
	void *(*calloc)(size_t cnt, size_t len);
	void *(*realloc)(void *ptr, size_t len);
	void (*free)(void *ptr);
	void *(*memalign)(size_t align, size_t len);
	int (*posix_memalign)(void **ptr, size_t align, size_t len);
	void *(*aligned_alloc)(size_t align, size_t len);
	void *(*valloc)(size_t len);
	void *(*pvalloc)(size_t len);
	size_t (*malloc_usable_size)(void *ptr);
	bool tells_size;
	void *(*first_realloc)(void *ptr, size_t len);
	void (*first_free)(void *ptr);
};

/* next - returns the functions. They are looked up at the first call, which may be one of the loader */
const struct next *next(void);

#endif
