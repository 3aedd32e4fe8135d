/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log, which is lines of the kernel's, limited in rate; settings, of which providers have none here; texts of
 * errors. Process context.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "core.h"

static int log_level = FI_LOG_WARN;
module_param(log_level, int, 0644);
MODULE_PARM_DESC(log_level,
		 "Which lines go to the kernel's log: 0 warnings, 2 also the reasons of refusals, "
		 "3 all; -1 none");

static DEFINE_RATELIMIT_STATE(log_rate, 5 * HZ, 10);

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return (int)level <= READ_ONCE(log_level);
}

/* Each site may always print: the log itself is limited. */
int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, uint64_t *showtime)
{
	return fi_log_enabled(prov, level, subsys);
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;

	if (!__ratelimit(&log_rate))
		return;
	va_start(args, fmt);
	text.va = &args;
	if (level == FI_LOG_WARN)
		pr_warn("kofi: %s: %pV", prov->name, &text);
	else
		pr_info("kofi: %s: %s:%d: %pV", prov->name, func, line, &text);
	va_end(args);
}

void kofi_complain(const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;

	if (READ_ONCE(log_level) < FI_LOG_WARN || !__ratelimit(&log_rate))
		return;
	va_start(args, fmt);
	text.va = &args;
	pr_warn("kofi: %pV\n", &text);
	va_end(args);
}

/* Providers have their defaults here: what a module may be told are parameters of its own. */

int fi_param_define(const struct fi_provider *provider, const char *param_name,
		    enum fi_param_type type, const char *help_string_fmt, ...)
{
	return 0;
}

int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	return -FI_ENODATA;
}

/* What core/error.c says of the system's own numbers, those that the engine and its providers return. */
static const struct {
	int number;
	const char *text;
} errors[] = {
	{ 0, "success" },
	{ EPERM, "not permitted" },
	{ ENOENT, "there is no such object" },
	{ EIO, "input or output has failed" },
	{ EAGAIN, "not now, try again" },
	{ ENOMEM, "no memory" },
	{ EACCES, "the access is not allowed" },
	{ EFAULT, "a bad address" },
	{ EBUSY, "in use" },
	{ ENODEV, "there is no such device" },
	{ EINVAL, "an invalid argument" },
	{ ENFILE, "too many are open here" },
	{ EMFILE, "too many are open" },
	{ ENOSPC, "no room" },
	{ ENOSYS, "not supported" },
	{ EMSGSIZE, "the message is too long" },
	{ EOPNOTSUPP, "not supported of this object" },
	{ EADDRINUSE, "the address is in use" },
	{ EADDRNOTAVAIL, "the address is not there" },
	{ ECONNABORTED, "the connection was given up" },
	{ ECONNRESET, "the connection was reset" },
	{ ENOTCONN, "not connected" },
	{ ETIMEDOUT, "the time is up" },
	{ ECONNREFUSED, "the connection was refused" },
	{ EHOSTUNREACH, "there is no way to the host" },
	{ EALREADY, "it is under way, or done" },
	{ ECANCELED, "cancelled" },
};

const char *strerror(int errnum);

const char *strerror(int errnum)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].number == errnum)
			return errors[i].text;
	return "an error of the system";
}
