/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What Identify tells of the controller and its namespace. The loop's thread alone.
 * Source: NVMe 1.4, section 5.15.
 */
#ifndef WEFT_NVMED_IDENTIFY_H
#define WEFT_NVMED_IDENTIFY_H

#include <stdint.h>

struct nvmed;
struct command;

/* identify_page - build the 4096 bytes that a command asks for. Returns an NVMe status */
int identify_page(struct nvmed *c, const struct command *cmd, uint8_t *page);

/* identify_oncs - of Compare, Write Zeroes and Dataset Management those that there are, as ONCS has them */
uint16_t identify_oncs(const struct nvmed *c);

/* identify_firmware - out: the revision of the firmware: eight characters, with blanks, and no end */
void identify_firmware(const struct nvmed *c, char *to);

#endif
