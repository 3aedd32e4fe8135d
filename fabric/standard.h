/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The standard descriptors of a program, at the begin of its main(). */
#ifndef WEFT_FABRIC_STANDARD_H
#define WEFT_FABRIC_STANDARD_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * standard_open - open /dev/null as each of 0, 1 and 2 that is closed
 *
 * Else the next file would have that number, and what is printed would be written there. Ends the
 * process where it can't be opened.
 */
static inline void standard_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		exit(EXIT_FAILURE);
	close(fd);
}

#endif
