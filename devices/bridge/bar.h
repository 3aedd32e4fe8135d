/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that another machine has too, as a process maps it: BAR 2 of an ivshmem device, or any file that is mapped alike. */
#ifndef WEFT_DEVICES_BRIDGE_BAR_H
#define WEFT_DEVICES_BRIDGE_BAR_H

#include <stdint.h>

/* struct bar - @mem: @len bytes, of whole pages; NULL: none */
struct bar {
	uint8_t *mem;
	uint64_t len;
};

/*
 * bar_open - map it
 * @name: a PCI function, as in /sys/bus/pci/devices (without its domain: that is 0000), whose BAR 2 it is; or, with a slash
 *	  in it, the path of a file
 *
 * Returns 0 or a negative errno; -ENODEV: there is no such function, or it has no BAR 2.
 */
int bar_open(struct bar *bar, const char *name);

/*
 * bar_find - map the one in whose head a controller has put a key
 * @name: as bar_open() has it; NULL: each ivshmem device is looked at
 *
 * Returns 0 or a negative errno; -ENODEV: there is none.
 */
int bar_find(struct bar *bar, const char *name, uint64_t key);

/* bar_close - unmap it, if it is mapped */
void bar_close(struct bar *bar);

#endif
