/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log lines of a lender, to standard error. Any thread.
 */
#ifndef WEFT_DEVICES_LENDER_LOG_H
#define WEFT_DEVICES_LENDER_LOG_H

/* lender_log - write a line, at most 20 in a second; how many were left out stands in the next one */
__attribute__((format(printf, 1, 2))) void lender_log(const char *format, ...);

#endif
