/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log: fi_log and its like, an imported logger instead of our lines, and the capture that
 * fi_getinfo keeps on a provider to learn why it refuses. Any thread; no lock on the way.
 */
#ifndef WEFT_CORE_LOG_H
#define WEFT_CORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* In whose name the core itself logs and defines settings. */
extern const struct fi_provider core_provider;

/*
 * log_init - read FI_LOG_LEVEL and its companions; before it only warnings are printed
 * log_fini - close a log file; what comes after goes to stderr
 */
void log_init(void);
void log_fini(void);

/*
 * log_is_wanted - did anyone ask for a log, by FI_LOG_LEVEL or by importing a logger?
 *
 * Without that we print warnings, but not what belongs to a program's probing.
 */
bool log_is_wanted(void);

/*
 * log_open - what fi_open(version, "logging", ...) does
 *
 * Returns 0, -FI_EINVAL, -FI_EBADFLAGS, or -FI_EALREADY while a logger is imported.
 */
int log_open(uint32_t version, size_t attr_len, uint64_t flags, struct fid **fid, void *context);

/* Messages heard, joined by '; ', each once. */
struct log_capture {
	struct log_capture *outer;
	/* nobody else hears it */
	bool silent;
	size_t used;
	char text[512];
};

/*
 * log_capture_begin      - collect what this thread logs from now on, up to level FI_LOG_INFO and
 *                   apart from the core's own messages
 * log_capture_end  - stop; ends in reverse order of the beginnings
 * @capture: the caller's, stays put in between
 *
 * While an capture is open fi_log_enabled says yes on this thread; what is not enabled
 * otherwise is heard and not printed.
 */
void log_capture_begin(struct log_capture *capture);
void log_capture_end(struct log_capture *capture);

/*
 * log_capture_silent - the same, of the core's messages too, and what is heard goes nowhere else, whatever is enabled
 *
 * Who listens in between hears it. Ends with log_capture_end().
 */
void log_capture_silent(struct log_capture *capture);

/*
 * log_level_name, log_subsys_name - for fi_tostr; 'Unknown' for what there is not
 */
const char *log_level_name(enum fi_log_level level);
const char *log_subsys_name(enum fi_log_subsys subsys);

#endif /* WEFT_CORE_LOG_H */
