/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: in the place of vfio/vfio.c, a function that is an NVMe controller, on a thread of its own, behind an IOMMU.
 * It does what it is told by its registers, as slow or as wrong as the test wants, and counts what no controller may be
 * led to.
 *
 * Deadlines of the thread that has the controller are in the model's time (linked with --wrap=clock_gettime): where one of
 * both does not come to run for a while, that is no time, or hardly any.
 */
#ifndef WEFT_DEVICES_FAKE_CARD_MODEL_H
#define WEFT_DEVICES_FAKE_CARD_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MODEL_LEN   (1u << 20) /* bytes of its namespace */
#define MODEL_BLOCK 512u
#define MODEL_CMB   (256u << 10) /* bytes of its own memory */

/*
 * struct card_model - there is one
 * @stalls:    I/O commands are taken, and not carried out
 * @stuck:     it does not stop when it is told, until the function is reset
 * @never_ready: it does not begin
 * @forges:    completions of commands that are not under way come before each right one
 * @oncs:      what it says that it has
 * @errors:    the number of the last error in its log; 0: there is none
 * @has_cmb:   it has memory of its own, @cmb
 * @wild:      accesses to addresses that were not mapped, or not for that
 * @under_way: memory was unmapped while commands were under way which had it
 * @stops, @resets: how often it was told to stop, and the function was reset
 * @mapped:    ranges that are mapped
 */
struct card_model {
	atomic_bool stalls;
	atomic_bool stuck;
	atomic_bool never_ready;
	atomic_bool forges;
	uint16_t oncs;
	uint64_t errors;
	atomic_uint wild;
	atomic_uint under_way;
	atomic_uint stops;
	atomic_uint resets;
	atomic_uint mapped;
	atomic_bool may_access;
	bool has_cmb;
	uint8_t medium[MODEL_LEN];
	uint8_t *cmb;
};

extern struct card_model model;

/* model_ask_back - as the kernel does when another driver is to have the device */
void model_ask_back(void);

/* model_vanish - its registers read as all ones from here on */
void model_vanish(void);

#endif
