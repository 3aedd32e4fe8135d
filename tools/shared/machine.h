/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Description of the machine that a measurement ran on, which is printed with the figures. One thread.
 */
#ifndef WEFT_TOOLS_MACHINE_H
#define WEFT_TOOLS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_TEXT_MAX 128

struct machine {
	/* model name; "unknown cpu" if the kernel does not report it */
	char cpu[MACHINE_TEXT_MAX];
	/* "Linux 6.1.0" */
	char kernel[MACHINE_TEXT_MAX];
	/* online cores */
	unsigned cores;
	uint64_t memory_bytes;
	/* under a hypervisor, which may move the cores */
	bool virtual;
	/* load averages of the last 1, 5 and 15 minutes; NAN if unknown */
	double load[3];
};

/*
 * machine_read - describe the machine that this process runs on
 * Facts that can't be read are left out; that is not an error.
 */
void machine_read(struct machine *machine);

/*
 * machine_format - the facts in one line
 * @len:  bytes of @text, at least 1; the line is cut to fit
 *
 * Returns @text.
 */
char *machine_format(const struct machine *machine, char *text, size_t len);

#endif
