/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The log, see log.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>

#include "export.h"
#include "log.h"
#include "name_filter.h"
#include "params.h"

#define MESSAGE_MAX 1024

const struct fi_provider core_provider = {
	.version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "core",
};

static const char *const level_names[] = {
	[FI_LOG_WARN] = "warn",
	[FI_LOG_TRACE] = "trace",
	[FI_LOG_INFO] = "info",
	[FI_LOG_DEBUG] = "debug",
};
#define LEVEL_CNT (sizeof(level_names) / sizeof(level_names[0]))

static const char *const subsys_names[] = {
	[FI_LOG_CORE] = "core",	      [FI_LOG_FABRIC] = "fabric",   [FI_LOG_DOMAIN] = "domain",
	[FI_LOG_EP_CTRL] = "ep_ctrl", [FI_LOG_EP_DATA] = "ep_data", [FI_LOG_AV] = "av",
	[FI_LOG_CQ] = "cq",	      [FI_LOG_EQ] = "eq",	    [FI_LOG_MR] = "mr",
	[FI_LOG_CNTR] = "cntr",
};
#define SUBSYS_CNT (sizeof(subsys_names) / sizeof(subsys_names[0]))

/* Written only by log_init and log_fini, which run while no provider runs. */
static struct {
	/* -1: nothing */
	int level;
	bool level_given;
	uint32_t subsys_mask;
	struct name_filter provs;
	/* NULL: stderr */
	FILE *file;
	uint64_t interval_ms;
} settings = {
	.level = FI_LOG_WARN,
	.subsys_mask = UINT32_MAX,
	.interval_ms = 2000,
};

static _Thread_local struct log_capture *capture_open;

static int own_enabled(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags);
static int own_ready(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime);
static void own_log(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, const char *func, int line, const char *msg);

/*
 * The functions that receive messages: this file's own, or those of an imported logger. They are replaced one
 * by one, so a message that is being logged during the change may use both.
 */
static struct {
	_Atomic(__typeof__(&own_enabled)) enabled;
	_Atomic(__typeof__(&own_ready)) ready;
	_Atomic(__typeof__(&own_log)) log;
} sink = { own_enabled, own_ready, own_log };

static pthread_mutex_t import_lock = PTHREAD_MUTEX_INITIALIZER; /* protects imported */
static bool imported;

void log_hold(void)
{
	pthread_mutex_lock(&import_lock);
}

void log_release(void)
{
	pthread_mutex_unlock(&import_lock);
}

const char *log_level_name(enum fi_log_level level)
{
	return (size_t)level < LEVEL_CNT ? level_names[level] : "Unknown";
}

const char *log_subsys_name(enum fi_log_subsys subsys)
{
	return (size_t)subsys < SUBSYS_CNT ? subsys_names[subsys] : "Unknown";
}

static const char *prov_name(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : core_provider.name;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int own_enabled(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags)
{
	return !(flags & FI_LOG_PROV_FILTERED) && (int)level <= settings.level &&
	       (size_t)subsys < SUBSYS_CNT && (settings.subsys_mask & (1u << subsys));
}

static int own_ready(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime)
{
	uint64_t now;

	if (!atomic_load_explicit(&sink.enabled, memory_order_acquire)(prov, level, subsys,
								       flags))
		return 0;
	now = now_ms();
	if (now < *showtime)
		return 0;
	*showtime = now + settings.interval_ms;
	return 1;
}

static void own_log(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	FILE *file = settings.file ? settings.file : stderr;
	size_t len = strlen(msg);

	fprintf(file, "weft:%d:%ld:%s:%s:%s():%d<%s> %s%s", (int)getpid(), (long)time(NULL),
		prov_name(prov), log_subsys_name(subsys), func ? func : "", line,
		log_level_name(level), msg, len && msg[len - 1] == '\n' ? "" : "\n");
	fflush(file);
}

/* FI_LOG_PROV selects providers; messages of the core always pass. */
static uint64_t filter_flags(const struct fi_provider *prov)
{
	if (!prov || prov == &core_provider)
		return 0;
	return name_filter_passes(&settings.provs, prov_name(prov)) ? 0 : FI_LOG_PROV_FILTERED;
}

static int is_enabled(const struct fi_provider *prov, enum fi_log_level level,
		      enum fi_log_subsys subsys)
{
	/* A:sink  a function of an imported logger; pairs R:sink (logging_bind) */
	return atomic_load_explicit(&sink.enabled, memory_order_acquire)(prov, level, subsys,
									 filter_flags(prov));
}

static bool is_captured(const struct fi_provider *prov, enum fi_log_level level)
{
	return capture_open && (prov != &core_provider || capture_open->silent) &&
	       level <= FI_LOG_INFO;
}

static void capture_append(struct log_capture *capture, const char *msg)
{
	size_t len = strlen(msg), room = sizeof(capture->text) - capture->used;
	char line[sizeof(capture->text)];
	int n;

	while (len && (msg[len - 1] == '\n' || msg[len - 1] == '.'))
		len--;
	if (!len || len >= sizeof(line))
		return;
	memcpy(line, msg, len);
	line[len] = '\0';
	if (strstr(capture->text, line))
		return;
	n = snprintf(capture->text + capture->used, room, "%s%s", capture->used ? "; " : "",
		     line);
	if (n < 0 || (size_t)n >= room)
		capture->text[capture->used] = '\0'; /* whole messages only */
	else
		capture->used += (size_t)n;
}

void log_capture_begin(struct log_capture *capture)
{
	capture->outer = capture_open;
	capture->silent = capture_open && capture_open->silent;
	capture->used = 0;
	capture->text[0] = '\0';
	capture_open = capture;
}

void log_capture_silent(struct log_capture *capture)
{
	log_capture_begin(capture);
	capture->silent = true;
}

void log_capture_end(struct log_capture *capture)
{
	capture_open = capture->outer;
}

CORE_EXPORT int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
			       enum fi_log_subsys subsys)
{
	return is_captured(prov, level) || is_enabled(prov, level, subsys);
}

CORE_EXPORT int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level,
			     enum fi_log_subsys subsys, uint64_t *showtime)
{
	if (!showtime)
		return 0;
	return atomic_load_explicit(&sink.ready, memory_order_acquire)(
		prov, level, subsys, filter_flags(prov), showtime);
}

/* Captures a message, if it is to be. Returns whether it is printed too: it may be enabled for the capture alone. */
static bool is_to_be_printed(const struct fi_provider *prov, enum fi_log_level level,
			     enum fi_log_subsys subsys, const char *msg)
{
	if (!is_captured(prov, level))
		return true;
	capture_append(capture_open, msg);
	return !capture_open->silent && is_enabled(prov, level, subsys);
}

/*
 * Callers hold locks, and stdio and a program's own logger are cancellation points: a thread that ended
 * in one would leave them locked for good.
 */
CORE_EXPORT void fi_log(const struct fi_provider *prov, enum fi_log_level level,
			enum fi_log_subsys subsys, const char *func, int line, const char *fmt,
			...)
{
	char msg[MESSAGE_MAX];
	va_list args;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	va_start(args, fmt);
	vsnprintf(msg, sizeof(msg), fmt, args);
	va_end(args);

	if (is_to_be_printed(prov, level, subsys, msg))
		atomic_load_explicit(&sink.log, memory_order_acquire)(
			prov ? prov : &core_provider, level, subsys, func, line, msg);
	pthread_setcancelstate(cancel, NULL);
}

bool log_is_wanted(void)
{
	return settings.level_given ||
	       atomic_load_explicit(&sink.enabled, memory_order_acquire) != own_enabled ||
	       atomic_load_explicit(&sink.log, memory_order_acquire) != own_log;
}

/* Slots of objects that have no such operation. */
static int no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

static int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context)
{
	return -FI_ENOSYS;
}

static int no_tostr(const struct fid *fid, char *buf, size_t len)
{
	return -FI_ENOSYS;
}

static int no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		      void *context)
{
	return -FI_ENOSYS;
}

/* fi_close of the fid that a program imported: its logger receives no further messages. */
static int imported_close(struct fid *fid)
{
	pthread_mutex_lock(&import_lock);
	atomic_store_explicit(&sink.enabled, own_enabled, memory_order_release);
	atomic_store_explicit(&sink.ready, own_ready, memory_order_release);
	atomic_store_explicit(&sink.log, own_log, memory_order_release);
	imported = false;
	pthread_mutex_unlock(&import_lock);
	return 0;
}

static struct fi_ops imported_ops = {
	.size = sizeof(struct fi_ops),
	.close = imported_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

/* fi_import_fid: uses the functions that are given, and sets the fid's fi_close. */
static int logging_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fid_logging *logging;
	int err = 0;

	if (!bfid || flags || bfid->fclass != FI_CLASS_LOG)
		return -FI_EINVAL;
	logging = (struct fid_logging *)bfid; /* fid is its first member */
	if (!logging->ops || logging->ops->size < sizeof(*logging->ops))
		return -FI_EINVAL;

	pthread_mutex_lock(&import_lock);
	if (imported) {
		err = -FI_EALREADY;
	} else {
		if (logging->ops->enabled)
			atomic_store_explicit(&sink.enabled, logging->ops->enabled,
					      memory_order_release);
		if (logging->ops->ready)
			atomic_store_explicit(&sink.ready, logging->ops->ready,
					      memory_order_release);
		if (logging->ops->log)
			atomic_store_explicit(&sink.log, logging->ops->log,
					      memory_order_release);
		imported = true;
		bfid->ops = &imported_ops;
	}
	pthread_mutex_unlock(&import_lock);
	return err;
}

static int logging_close(struct fid *fid)
{
	return 0;
}

static struct fi_ops logging_ops = {
	.size = sizeof(struct fi_ops),
	.close = logging_close,
	.bind = logging_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = no_tostr,
	.ops_set = no_ops_set,
};

/* There is one log, so every fi_open("logging") returns this fid. */
static struct fid_logging logging_fid = {
	.fid = { .fclass = FI_CLASS_LOG, .ops = &logging_ops },
};

int log_open(uint32_t version, size_t attr_len, uint64_t flags, struct fid **fid, void *context)
{
	int err = 0;

	if (version < FI_VERSION(1, 13) || attr_len || !fid)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&import_lock);
	if (imported)
		err = -FI_EALREADY;
	else
		logging_fid.fid.context = context;
	pthread_mutex_unlock(&import_lock);
	if (!err)
		*fid = &logging_fid.fid;
	return err;
}

static void init_level(void)
{
	const char *text = params_string("log_level");
	size_t i;

	settings.level = FI_LOG_WARN;
	settings.level_given = text != NULL;
	for (i = 0; text && i < LEVEL_CNT; i++) {
		if (strcasecmp(text, level_names[i]))
			continue;
		settings.level = (int)i;
		return;
	}
	if (text && *text)
		FI_WARN(&core_provider, FI_LOG_CORE,
			"FI_LOG_LEVEL=%s is ignored: valid are warn, trace, info and debug\n",
			text);
}

static bool is_subsys(const char *name)
{
	size_t i;

	for (i = 0; i < SUBSYS_CNT; i++)
		if (!strcasecmp(name, subsys_names[i]))
			return true;
	return false;
}

static void init_subsys(void)
{
	struct name_filter filter = { 0 };
	const char *unknown = NULL;
	size_t i;

	settings.subsys_mask = UINT32_MAX;
	name_filter_init(&filter, params_string("log_subsys"));
	for (i = 0; i < filter.cnt; i++)
		if (!is_subsys(filter.names[i]))
			unknown = filter.names[i];
	if (unknown)
		FI_WARN(&core_provider, FI_LOG_CORE,
			"FI_LOG_SUBSYS=%s: no subsystem %s; valid are core, fabric, domain, "
			"ep_ctrl, ep_data, av, cq, eq, mr and cntr\n",
			params_string("log_subsys"), unknown);
	settings.subsys_mask = 0;
	for (i = 0; i < SUBSYS_CNT; i++)
		if (name_filter_passes(&filter, subsys_names[i]))
			settings.subsys_mask |= 1u << i;
	name_filter_fini(&filter);
}

/* Returns a descriptor, which is that of no standard stream: what a program prints is no part of the log. */
static int above_streams(int fd)
{
	int above;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return above;
}

/* Creates the log file; an existing file is never written to. Returns NULL for stderr. */
static FILE *location_open(const char *where, mode_t mode)
{
	char path[4096];
	struct stat st;
	FILE *file;
	int fd;

	if (!where || !*where || !strcmp(where, "stderr"))
		return NULL;
	if (!strcmp(where, "stdout"))
		return stdout;
	if (!stat(where, &st) && S_ISDIR(st.st_mode))
		snprintf(path, sizeof(path), "%s/ofi_%d.log", where, (int)getpid());
	else
		snprintf(path, sizeof(path), "%s", where);
	fd = above_streams(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		FI_WARN(&core_provider, FI_LOG_CORE,
			"cannot create %s (%s): logging to stderr; "
			"FI_LOG_LOCATION requires a folder or a file that does not exist yet\n",
			path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	return file;
}

void log_init(void)
{
	int mode = 0600, interval = 2000;

	params_define_core("log_level", FI_PARAM_STRING,
			   "How much to log: warn, trace, info or debug (default: warn)");
	params_define_core("log_prov", FI_PARAM_STRING,
			   "Log only these providers, NAME,NAME, or all but these, ^NAME,NAME "
			   "(default: all)");
	params_define_core(
		"log_subsys", FI_PARAM_STRING,
		"Log only these subsystems, or all but these, as in FI_LOG_PROV: core, "
		"fabric, domain, ep_ctrl, ep_data, av, cq, eq, mr, cntr (default: all)");
	params_define_core("log_interval", FI_PARAM_INT,
			   "Milliseconds between two log messages of a frequent kind "
			   "(default: 2000)");
	params_define_core("log_location", FI_PARAM_STRING,
			   "Where to log: stderr, stdout, a new file, or a folder for files "
			   "ofi_PID.log (default: stderr)");
	params_define_core("log_location_mode", FI_PARAM_INT,
			   "Permissions of a log file (default: 0600)");

	/* The location comes first, since problems of the other settings are logged there. */
	fi_param_get_int(NULL, "log_location_mode", &mode);
	settings.file = location_open(params_string("log_location"), (mode_t)mode);
	init_level();
	init_subsys();
	name_filter_init(&settings.provs, params_string("log_prov"));
	if (!fi_param_get_int(NULL, "log_interval", &interval) && interval >= 0)
		settings.interval_ms = (uint64_t)interval;
}

void log_fini(void)
{
	FILE *file = settings.file;

	settings.file = NULL;
	settings.level = FI_LOG_WARN;
	settings.level_given = false;
	settings.subsys_mask = UINT32_MAX;
	settings.interval_ms = 2000;
	name_filter_fini(&settings.provs);
	if (file && file != stdout)
		fclose(file);
}
