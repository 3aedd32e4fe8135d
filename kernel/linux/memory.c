/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of the module, and which memory of others the engine may access. Process context, where sleeping is
 * allowed; freeing too.
 */
#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pgtable.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "platform.h"

/* The cache line of platform/processor/cache_line.h */
#define LINE 64u

static atomic_long_t memory_held, memory_failed;

/*
 * kmalloc() aligns to the size where that is a power of two. Between two of them it has caches of 96 and 192
 * bytes alone: a kernel that looks for errors puts its own bytes between the objects of those.
 */
static size_t memory_size(size_t len)
{
	if (len <= LINE)
		return LINE;
	return len <= 4 * LINE ? roundup_pow_of_two(len) : len;
}

void *platform_alloc(size_t len)
{
	void *ptr;

	might_sleep();
	/* Who asked says what there was no memory for. */
	ptr = kvzalloc(memory_size(len), GFP_KERNEL | __GFP_NOWARN);
	atomic_long_inc(ptr ? &memory_held : &memory_failed);
	WARN_ONCE(!IS_ALIGNED((unsigned long)ptr, LINE), "kofi: %zu bytes are not aligned\n",
		  len);
	return ptr;
}

void platform_free(void *ptr)
{
	might_sleep();
	if (!ptr)
		return;
	atomic_long_dec(&memory_held);
	kvfree(ptr);
}

long kofi_memory_held(void)
{
	return atomic_long_read(&memory_held);
}

long kofi_memory_failed(void)
{
	return atomic_long_read(&memory_failed);
}

/*
 * Returns how many bytes from an address on are mapped alike for loads, and with @write for stores too; 0: none.
 * Addresses of user space count as not mapped: rounds are made on threads that have no such space.
 */
#ifdef CONFIG_X86

static unsigned long mapped_from(unsigned long addr, bool write)
{
	unsigned int level;
	unsigned long size;
	pte_t *entry;

	/* Below are the addresses of user space, and those that no processor has. */
	if (addr < PAGE_OFFSET)
		return 0;
	entry = lookup_address(addr, &level);
	if (!entry || !pte_present(*entry) || (write && !pte_write(*entry)))
		return 0;
	size = page_level_size(level);
	return size - (addr & (size - 1));
}

#else

/* Pages of allocators and of vmalloc(). The kernel's own image, which is not all writable, is reserved. */
static unsigned long mapped_from(unsigned long addr, bool write)
{
	void *at = (void *)addr;
	bool there;

	if (is_vmalloc_addr(at))
		there = vmalloc_to_page(at);
	else
		there = virt_addr_valid(at) && !(write && PageReserved(virt_to_page(at)));
	return there ? PAGE_SIZE - offset_in_page(addr) : 0;
}

#endif

bool platform_mapped(const void *addr, size_t len, bool write)
{
	unsigned long at = (unsigned long)addr, end;

	if (check_add_overflow(at, (unsigned long)len, &end))
		return false;
	while (at < end) {
		unsigned long part = mapped_from(at, write);

		if (!part)
			return false;
		if (part >= end - at)
			break;
		at += part;
	}
	return true;
}

bool platform_accessible(const void *addr, size_t len, bool write, struct platform_range *found)
{
	if (!platform_mapped(addr, len, write))
		return false;
	found->from = (uintptr_t)addr;
	found->end = (uintptr_t)addr + len;
	return true;
}
