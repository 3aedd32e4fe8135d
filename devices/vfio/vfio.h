/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A PCI function that this process drives by VFIO (type 1): its container, group and device, the registers, which memory
 * it accesses at which address, interrupts, reset. Each system call of VFIO is here, once. One thread at a time.
 *
 * When this process ends, however it does, the kernel ends the function's accesses before the memory is used for anything
 * else: the last descriptor of the device disables and resets it, then the container's mappings end.
 *
 * Source: Linux's Documentation/driver-api/vfio.rst and linux/vfio.h.
 */
#ifndef WEFT_DEVICES_VFIO_H
#define WEFT_DEVICES_VFIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFIO_NAME_MAX 16u  /* 0000:00:00.0, with the zero byte */
#define VFIO_WHY_MAX  512u /* of vfio_open(), likewise */
#define VFIO_RANGES   16u

#define VFIO_READS  1u
#define VFIO_WRITES 2u

/* struct vfio_range - addresses that the function may use: @last is one of them */
struct vfio_range {
	uint64_t first;
	uint64_t last;
};

/*
 * struct vfio - a function
 * @bars:    of BAR 0: its bytes, mapped; @bar_offset: where that is in @device
 * @config:  where the configuration space is in @device
 * @vectors: of MSI-X
 * @ranges:  of addresses for DMA
 * @alarm:   an eventfd that is written when the kernel wants the device back, or after an error of PCI Express that ends
 *	     its use
 */
struct vfio {
	char name[VFIO_NAME_MAX];
	int container;
	int group;
	int device;
	int alarm;
	uint8_t *bar;
	uint64_t bar_len;
	uint64_t bar_offset;
	uint64_t config;
	uint32_t vectors;
	uint32_t range_cnt;
	struct vfio_range ranges[VFIO_RANGES];
};

/*
 * vfio_open - have a function, which may access memory from here on
 * @address: as in /sys/bus/pci/devices; without its domain: that is 0000
 * @why:     out, on error: VFIO_WHY_MAX bytes: what is wrong and what is to be done, for people
 *
 * Returns 0 or a negative errno.
 */
int vfio_open(struct vfio *v, const char *address, char *why);

/*
 * vfio_bar_map - map a part of a BAR
 * @at, @len: of whole pages; to be unmapped by munmap()
 *
 * Returns NULL when it has no such part, or none that can be mapped.
 */
void *vfio_bar_map(struct vfio *v, uint32_t bar, uint64_t at, uint64_t len);

/* vfio_close - let it go: the kernel resets it */
void vfio_close(struct vfio *v);

/*
 * vfio_map - let the function access memory
 * @addr:   of DMA, for @len bytes; all are of whole pages
 * @access: VFIO_READS, VFIO_WRITES
 *
 * The pages stay where they are until vfio_unmap(). Returns 0; -ENOMEM: RLIMIT_MEMLOCK, or the kernel's; -EEXIST; -EFAULT.
 */
int vfio_map(struct vfio *v, uint64_t addr, void *mem, uint64_t len, uint32_t access);

/* vfio_unmap - end what one vfio_map() has mapped: no access passes any more. Returns 0 or a negative errno */
int vfio_unmap(struct vfio *v, uint64_t addr, uint64_t len);

/* vfio_interrupts - let vectors from 0 on, @cnt of them, be written to eventfds (-1: nowhere). Returns 0 or a negative errno */
int vfio_interrupts(struct vfio *v, const int *fds, uint32_t cnt);

/* vfio_interrupt - change one of those. Returns 0 or a negative errno */
int vfio_interrupt(struct vfio *v, uint32_t vector, int fd);

/* vfio_reset - reset the function. Returns 0; -ENOTTY: it has no reset; or another negative errno */
int vfio_reset(struct vfio *v);

/* vfio_may_access - let it access memory and interrupt, or not (Bus Master Enable). Returns 0 or a negative errno */
int vfio_may_access(struct vfio *v, bool may);

#endif
