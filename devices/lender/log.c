/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log lines of a lender; log.h has the contract.
 */
#define _GNU_SOURCE
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define LINES_PER_S 20u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static time_t second;
static unsigned lines, left_out;

static int may_write(unsigned *missing)
{
	struct timespec t;
	int may;

	clock_gettime(CLOCK_MONOTONIC, &t);
	pthread_mutex_lock(&lock);
	if (t.tv_sec != second) {
		second = t.tv_sec;
		lines = 0;
	}
	may = lines++ < LINES_PER_S;
	*missing = may ? left_out : 0;
	left_out = may ? 0 : left_out + 1;
	pthread_mutex_unlock(&lock);
	return may;
}

void lender_log(const char *format, ...)
{
	char text[512];
	unsigned missing;
	va_list args;

	if (!may_write(&missing))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (missing)
		fprintf(stderr, "weft lend: %s (%u lines left out before this one)\n", text,
			missing);
	else
		fprintf(stderr, "weft lend: %s\n", text);
}
