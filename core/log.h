/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log: fi_log, fi_log_enabled and fi_log_ready; an imported logger, which replaces the lines on stderr;
 * and captures, with which fi_getinfo collects the reason of a provider's refusal. Any thread; logging takes
 * no lock, and is no cancellation point.
 */
#ifndef WEFT_CORE_LOG_H
#define WEFT_CORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* The provider structure in whose name the core itself logs and defines settings. */
extern const struct fi_provider core_provider;

/*
 * log_init - read FI_LOG_LEVEL and the other FI_LOG_* settings; before it only warnings are printed
 * log_fini - close the log file; later messages go to stderr
 */
void log_init(void);
void log_fini(void);

/*
 * log_is_wanted - returns true if FI_LOG_LEVEL is set or a logger is imported
 *
 * Otherwise the core prints warnings, except those about queries by which programs merely probe.
 */
bool log_is_wanted(void);

/*
 * log_open - implements fi_open(version, "logging", ...)
 *
 * Returns 0, -FI_EINVAL, -FI_EBADFLAGS, or -FI_EALREADY while a logger is imported.
 */
int log_open(uint32_t version, size_t attr_len, uint64_t flags, struct fid **fid, void *context);

/*
 * log_hold, log_release - take and give back the lock of importing, around a fork
 */
void log_hold(void);
void log_release(void);

/* Captured messages, joined by '; ', each once. */
struct log_capture {
	struct log_capture *outer;
	/* messages go to the capture only */
	bool silent;
	size_t used;
	char text[512];
};

/*
 * log_capture_begin - start to collect what this thread logs, up to level FI_LOG_INFO, except the core's
 *		       own messages
 * log_capture_end   - stop; captures end in reverse order of their begins
 * @capture: the caller's; stays in place in between
 *
 * While a capture is open, fi_log_enabled returns true on this thread. A message that is not enabled
 * otherwise is captured and not printed.
 */
void log_capture_begin(struct log_capture *capture);
void log_capture_end(struct log_capture *capture);

/*
 * log_capture_silent - as log_capture_begin, but of the core's messages too, and nothing is printed,
 *			whatever is enabled
 *
 * A capture that is begun inside of this one still receives messages. Ends with log_capture_end().
 */
void log_capture_silent(struct log_capture *capture);

/*
 * log_level_name, log_subsys_name - names for fi_tostr; 'Unknown' for an unknown value
 */
const char *log_level_name(enum fi_log_level level);
const char *log_subsys_name(enum fi_log_subsys subsys);

#endif /* WEFT_CORE_LOG_H */
