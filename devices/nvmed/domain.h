/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A domain: which memory the queues of one lease, or of the owner, may access, and where it is here. Every address that
 * a queue's owner writes passes through domain_find() before anything is accessed. The loop's thread alone.
 */
#ifndef WEFT_NVMED_DOMAIN_H
#define WEFT_NVMED_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "budget.h"

/* Of one domain; a budget bounds all of them. */
#define DOMAIN_WINDOWS_MAX 4096u

/*
 * struct window_file
 * @fd:    -1: memory of the controller, which is not unmapped
 * @named: that too, and the file is a name of it
 */
struct window_file {
	uint8_t *base;
	int fd;
	bool named;
};

struct window;

/*
 * struct window_hooks - of a device behind the controller that accesses windows by itself
 * @come: let the device access the first file of a new window, and set @device_addr. Returns 0, or the negative errno
 *	  with which MAP is refused
 * @go:   the window has no users any more: returns whether the device can't access it from here on. If it could, the
 *	  memory is not given back
 */
struct window_hooks {
	int (*come)(void *arg, struct window *w);
	bool (*go)(void *arg, struct window *w);
	void *arg;
};

/*
 * struct window - a range of addresses of DMA
 * @users:  accesses under way that do not end within a call: pieces of a backend
 * @domain: NULL once it is unmapped: the last user frees it
 * @home:   the domain that it is or was in; @use: what it takes of that one's budget; @next: in the leaving
 *	     ones of @home
 * @hooks:  NULL: nobody is to know when it goes. A device that knows of it accesses the first file at @device_addr
 */
struct window {
	uint64_t addr;
	uint64_t len;
	uint64_t offset;
	uint32_t access;
	uint32_t users;
	struct domain *domain;
	struct domain *home;
	struct window *next;
	struct budget_use use;
	const struct window_hooks *hooks;
	uint64_t device_addr;
	uint32_t file_cnt;
	struct window_file files[];
};

/*
 * struct domain
 * @windows: by address, disjoint
 * @last:    the one that was found last
 * @leaving: unmapped ones that have users
 * @hooks:   NULL: there is no device
 * @budget:  NULL: nothing bounds it; @use: what it has of that
 */
struct domain {
	struct window **windows;
	uint32_t cnt;
	uint32_t room;
	struct window *last;
	struct window *leaving;
	const struct window_hooks *hooks;
	struct budget *budget;
	struct budget_use use;
};

struct domain_request {
	uint64_t addr;
	uint64_t len;
	uint64_t offset;
	uint32_t access; /* SLOT_DMA_* */
	const int *fds;
	uint32_t fd_cnt;
};

/*
 * domain_map - map files at an address
 * @req: from outside: all of it is checked. Takes the descriptors on success.
 *
 * Returns 0 or a negative errno as slot.h has them for MAP.
 */
int domain_map(struct domain *d, const struct domain_request *req);

/*
 * domain_map_own - let memory of the controller be at an address
 * @base: borrowed until it is unmapped
 * @device_addr: where a device behind the controller reaches it, now and until then; 0: there is none, or it does not
 *
 * Returns 0, -EEXIST or -ENOMEM.
 */
int domain_map_own(struct domain *d, uint64_t addr, uint64_t len, uint8_t *base,
		   uint64_t device_addr);

/*
 * domain_map_named - likewise, by a file that is a name of it
 * @req:         from outside: all of it is checked. Takes its descriptor on success.
 * @base, @len:  the memory; the request is for all of it
 * @hooks:       @go alone is called
 */
int domain_map_named(struct domain *d, const struct domain_request *req, uint8_t *base,
		     uint64_t len, uint64_t device_addr, const struct window_hooks *hooks);

/*
 * domain_unmap - end a mapping
 *
 * No access begins from here on; those under way are over once domain_leaves() is false.
 * Returns 0, or -ENOENT if there is no mapping of this address and length.
 */
int domain_unmap(struct domain *d, uint64_t addr, uint64_t len);

/* domain_leaves - whether accesses to what was mapped there are under way */
bool domain_leaves(const struct domain *d, uint64_t addr, uint64_t len);

/* domain_unmap_named - end all mappings of a name of the memory at @base, likewise. Returns whether there were some */
bool domain_unmap_named(struct domain *d, const uint8_t *base);

/* domain_clear - end all mappings, likewise */
void domain_clear(struct domain *d);

/* window_put - an access that does not end within a call is over */
void window_put(struct window *w);

/* domain_search - the slow half of domain_find() */
struct window *domain_search(struct domain *d, uint64_t addr);

/*
 * domain_find - the window of an address
 * @access: what is to be done there
 *
 * Windows consist of whole pages: one that has @addr has the page around it. Returns NULL when there is none, or one
 * that does not allow @access.
 */
static inline struct window *domain_find(struct domain *d, uint64_t addr, uint32_t access)
{
	struct window *w = d->last;

	if (!w || addr - w->addr >= w->len) {
		w = domain_search(d, addr);
		if (!w)
			return NULL;
	}
	return (w->access & access) == access ? w : NULL;
}

#endif
