/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* processor_relax - a turn of a loop that waits for another core: weak_relax() of ../weak.h */
#ifndef WEFT_RELAX_H
#define WEFT_RELAX_H

void weak_relax(void);

static inline void processor_relax(void)
{
	weak_relax();
}

#endif
