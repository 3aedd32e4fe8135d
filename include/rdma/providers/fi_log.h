/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Logging for providers and the core. Any thread may call; nothing on a path
 * that moves small messages does. The macros keep errno.
 * Source: fi_provider(3), fabric(7) (FI_LOG_LEVEL, FI_LOG_PROV, FI_LOG_SUBSYS).
 */
#ifndef FI_LOG_H
#define FI_LOG_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

/* enum fi_log_subsys - what a line of the log is about; FI_LOG_SUBSYS chooses among them */
enum fi_log_subsys {
	FI_LOG_CORE,
	FI_LOG_FABRIC,
	FI_LOG_DOMAIN,
	FI_LOG_EP_CTRL,
	FI_LOG_EP_DATA,
	FI_LOG_AV,
	FI_LOG_CQ,
	FI_LOG_EQ,
	FI_LOG_MR,
	FI_LOG_CNTR,
};

/*
 * enum fi_log_level - how much a line matters; FI_LOG_LEVEL prints those up to one
 *
 * Values are the interface's: a warning first, then traces, decisions, details.
 */
enum fi_log_level {
	FI_LOG_WARN,
	FI_LOG_TRACE,
	FI_LOG_INFO,
	FI_LOG_DEBUG,
};

/* fi_log_enabled - would a line of this kind be printed? Source: fi_provider(3) */
int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys);

/*
 * fi_log_ready - the same, but at most once in a while for each call site
 * @showtime: the site's own, 0 at first; holds when it may print next
 */
int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, uint64_t *showtime);

/* fi_log - print one line; whether it is wanted the macros below ask first. fmt is printf's */
void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...) FI_FORMAT_PRINTF(6, 7);

/* Prints when `when` holds; errno survives, where there is one. */
#if __STDC_HOSTED__ && !defined(__KERNEL__)
#define FI_LOG_IF_(when, prov, level, subsys, ...)                                    \
	do {                                                                          \
		if (when) {                                                           \
			int fi_log_errno_ = errno;                                    \
                                                                                      \
			fi_log(prov, level, subsys, __func__, __LINE__, __VA_ARGS__); \
			errno = fi_log_errno_;                                        \
		}                                                                     \
	} while (0)
#else
#define FI_LOG_IF_(when, prov, level, subsys, ...)                                    \
	do {                                                                          \
		if (when)                                                             \
			fi_log(prov, level, subsys, __func__, __LINE__, __VA_ARGS__); \
	} while (0)
#endif

#define FI_LOG(prov, level, subsys, ...) \
	FI_LOG_IF_(fi_log_enabled(prov, level, subsys), prov, level, subsys, __VA_ARGS__)

/* For what can repeat quickly: one line in a while. */
#define FI_LOG_SPARSE(prov, level, subsys, ...)                                               \
	do {                                                                                  \
		static uint64_t fi_log_showtime_;                                             \
                                                                                              \
		FI_LOG_IF_(fi_log_ready(prov, level, subsys, &fi_log_showtime_), prov, level, \
			   subsys, __VA_ARGS__);                                              \
	} while (0)

#define FI_WARN(prov, subsys, ...)	  FI_LOG(prov, FI_LOG_WARN, subsys, __VA_ARGS__)
#define FI_TRACE(prov, subsys, ...)	  FI_LOG(prov, FI_LOG_TRACE, subsys, __VA_ARGS__)
#define FI_INFO(prov, subsys, ...)	  FI_LOG(prov, FI_LOG_INFO, subsys, __VA_ARGS__)
#define FI_WARN_SPARSE(prov, subsys, ...) FI_LOG_SPARSE(prov, FI_LOG_WARN, subsys, __VA_ARGS__)

/* Once for each call site; two threads may race to it and both print. */
#define FI_WARN_ONCE(prov, subsys, ...)                                                  \
	do {                                                                             \
		static int fi_log_done_;                                                 \
                                                                                         \
		FI_LOG_IF_(!fi_log_done_ && fi_log_enabled(prov, FI_LOG_WARN, subsys) && \
				   (fi_log_done_ = 1),                                   \
			   prov, FI_LOG_WARN, subsys, __VA_ARGS__);                      \
	} while (0)

/* Compiled in only when the including file's build defines ENABLE_DEBUG to 1. */
#if defined(ENABLE_DEBUG) && ENABLE_DEBUG
#define FI_DBG(prov, subsys, ...)	FI_LOG(prov, FI_LOG_DEBUG, subsys, __VA_ARGS__)
#define FI_DBG_TRACE(prov, subsys, ...) FI_LOG(prov, FI_LOG_TRACE, subsys, __VA_ARGS__)
#else
#define FI_DBG(prov, subsys, ...) \
	do {                      \
	} while (0)
#define FI_DBG_TRACE(prov, subsys, ...) \
	do {                            \
	} while (0)
#endif

#ifdef __cplusplus
}
#endif

#endif /* FI_LOG_H */
