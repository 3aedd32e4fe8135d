/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Controller memory (CMB, BAR 2): contiguous here, in granules that are a sealed file each, so that one can be lent
 * without the others. Where it is that of a device behind the controller, the file of a granule is its name alone: it is
 * sealed against writing, and has nothing in it. The loop's thread alone.
 */
#ifndef WEFT_NVMED_CMB_H
#define WEFT_NVMED_CMB_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "domain.h"

#define CMB_GRANULES_MAX 4096u

/*
 * struct cmb
 * @device:  it is that of a device, which has it at @device_addr
 * @windows: by granule of a device: how many there are, with those that are unmapped and still used; @hooks: of them
 */
struct cmb {
	bool device;
	uint64_t device_addr;
	uint32_t *windows;
	struct window_hooks hooks;
	uint8_t *base;
	uint64_t len;
	uint64_t granule;
	uint32_t cnt;
	int *fds;
};

/* cmb_init - make it. @len is a multiple of @granule, that one of a page. Returns 0 or a negative errno */
int cmb_init(struct cmb *cmb, uint64_t len, uint64_t granule);
void cmb_fini(struct cmb *cmb);

/*
 * cmb_init_device - likewise, of a device
 * @memory: of it, borrowed; what is behind the last whole granule is left alone
 */
int cmb_init_device(struct cmb *cmb, const struct backend_memory *memory, uint64_t granule);

/* cmb_find - where in it the granule is whose name a file is. Returns whether it is one */
bool cmb_find(const struct cmb *cmb, int fd, uint64_t *at);

/* cmb_map - map what cmb_find() has found. Returns as domain_map_named() */
int cmb_map(struct cmb *cmb, struct domain *d, const struct domain_request *req, uint64_t at);

/* cmb_in_use - whether a window, be it unmapped, still leads to a granule of a device's */
bool cmb_in_use(const struct cmb *cmb, uint32_t index);

/* cmb_renew - another file of zeros for a granule that is not in use: who has the old one keeps that alone. 0 or -errno */
int cmb_renew(struct cmb *cmb, uint32_t index);

/* cmb_location, cmb_size - the registers CMBLOC and CMBSZ */
uint32_t cmb_location(const struct cmb *cmb);
uint32_t cmb_size(const struct cmb *cmb);

#endif
