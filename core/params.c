/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings from the environment and from libfabric.conf, see params.h. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "export.h"
#include "log.h"
#include "params.h"
#include "start.h"

#define LINE_MAX_LEN 4096

struct param {
	struct param *next;
	const struct fi_provider *prov;
	enum fi_param_type type;
	char *name;
	char *env_name;
	char *help;
};

struct setting {
	struct setting *next;
	char *name;
	char *value;
};

/* Protects all variables below. No other lock is taken while it is held. */
static pthread_mutex_t params_lock = PTHREAD_MUTEX_INITIALIZER;
static struct param *params;	 /* in the order of definition */
static struct setting *settings; /* the newest first */
static bool prefer_file;

void params_hold(void)
{
	pthread_mutex_lock(&params_lock);
}

void params_release(void)
{
	pthread_mutex_unlock(&params_lock);
}

static void param_free(struct param *param)
{
	if (!param)
		return;
	free(param->name);
	free(param->env_name);
	free(param->help);
	free(param);
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static bool setting_add(const char *name, const char *value)
{
	struct setting *setting = calloc(1, sizeof(*setting));

	if (!setting)
		return false;
	setting->name = strdup(name);
	setting->value = strdup(value);
	if (!setting->name || !setting->value) {
		free(setting->name);
		free(setting->value);
		free(setting);
		return false;
	}
	pthread_mutex_lock(&params_lock);
	setting->next = settings;
	settings = setting;
	pthread_mutex_unlock(&params_lock);
	return true;
}

int params_load(const char *path)
{
	char line[LINE_MAX_LEN], *name, *value;
	FILE *file = fopen(path, "re");
	int cnt = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		name = trim(line);
		value = strchr(name, '=');
		if (*name == '#' || !value)
			continue;
		*value++ = '\0';
		name = trim(name);
		if (!*name)
			continue;
		if (!setting_add(name, trim(value))) {
			cnt = -FI_ENOMEM;
			break;
		}
		cnt++;
	}
	fclose(file);
	return cnt;
}

void params_prefer_file(bool prefer)
{
	pthread_mutex_lock(&params_lock);
	prefer_file = prefer;
	pthread_mutex_unlock(&params_lock);
}

/* Caller holds params_lock. Returns the address of the pointer to the param, or of the terminating NULL. */
static struct param **param_find_locked(const struct fi_provider *prov, const char *name)
{
	struct param **at = &params;

	while (*at && ((*at)->prov != prov || strcmp((*at)->name, name)))
		at = &(*at)->next;
	return at;
}

/* Caller holds params_lock. A program with more privileges than its user reads only the file. */
static char *value_locked(const char *env_name)
{
	char *from_env = secure_getenv(env_name);
	struct setting *setting = settings;

	if (from_env && !prefer_file)
		return from_env;
	while (setting && strcmp(setting->name, env_name))
		setting = setting->next;
	return setting ? setting->value : from_env;
}

void params_forget_provider(const struct fi_provider *prov)
{
	struct param **at = &params, *gone;

	pthread_mutex_lock(&params_lock);
	while (*at) {
		if ((*at)->prov != prov) {
			at = &(*at)->next;
			continue;
		}
		gone = *at;
		*at = gone->next;
		param_free(gone);
	}
	pthread_mutex_unlock(&params_lock);
}

void params_clear(void)
{
	struct setting *setting;
	struct param *param;

	pthread_mutex_lock(&params_lock);
	while ((param = params)) {
		params = param->next;
		param_free(param);
	}
	while ((setting = settings)) {
		settings = setting->next;
		free(setting->name);
		free(setting->value);
		free(setting);
	}
	prefer_file = false;
	pthread_mutex_unlock(&params_lock);
}

/* Sets help and env_name from the name and what the provider says. Returns false without memory. */
static bool param_describe(struct param *param, const char *help)
{
	bool of_core = param->prov == &core_provider;
	int ok;

	ok = of_core ? asprintf(&param->help, "%s", help)
		     : asprintf(&param->help, "%s: %s", param->prov->name, help);
	if (ok < 0) {
		param->help = NULL;
		return false;
	}
	ok = of_core ? asprintf(&param->env_name, "FI_%s", param->name)
		     : asprintf(&param->env_name, "FI_%s_%s", param->prov->name, param->name);
	if (ok < 0) {
		param->env_name = NULL;
		return false;
	}
	for (char *c = param->env_name; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return true;
}

static struct param *param_create(const struct fi_provider *prov, const char *name,
				  enum fi_param_type type, const char *help_fmt, va_list args)
{
	struct param *param = calloc(1, sizeof(*param));
	char *help = NULL;
	bool made;

	if (!param)
		return NULL;
	param->prov = prov;
	param->type = type;
	param->name = strdup(name);
	if (vasprintf(&help, help_fmt, args) < 0)
		help = NULL;
	made = param->name && help && param_describe(param, help);
	free(help);
	if (made)
		return param;
	param_free(param);
	return NULL;
}

CORE_EXPORT int fi_param_define(const struct fi_provider *provider, const char *param_name,
				enum fi_param_type type, const char *help_string_fmt, ...)
{
	struct param **at, *param, *old;
	va_list args;

	if (!provider)
		provider = &core_provider;
	if (!param_name || !*param_name || !help_string_fmt || !*help_string_fmt ||
	    !provider->name)
		return -FI_EINVAL;

	va_start(args, help_string_fmt);
	param = param_create(provider, param_name, type, help_string_fmt, args);
	va_end(args);
	if (!param)
		return -FI_ENOMEM;

	/* The setting is defined again, by a provider that is loaded again: use the new text. */
	pthread_mutex_lock(&params_lock);
	at = param_find_locked(provider, param_name);
	old = *at;
	param->next = old ? old->next : NULL;
	*at = param;
	pthread_mutex_unlock(&params_lock);
	param_free(old);
	return 0;
}

static int parse_bool(const char *text, int *value)
{
	static const char *const yes[] = { "1", "true", "yes", "on" };
	static const char *const no[] = { "0", "false", "no", "off" };
	size_t i;

	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
			*value = !strcasecmp(text, yes[i]);
			return 0;
		}
	}
	return -FI_EINVAL;
}

static int parse_int(const char *text, int *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 0);
	if (end == text || *end || errno || number != (int)number)
		return -FI_EINVAL;
	*value = (int)number;
	return 0;
}

/* -1 is a usual value for 'no limit'. */
static int parse_size(const char *text, size_t *value)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (end == text || *end || errno)
		return -FI_EINVAL;
	*value = (size_t)number;
	return 0;
}

static const char *type_words(enum fi_param_type type)
{
	switch (type) {
	case FI_PARAM_INT:
		return "an integer";
	case FI_PARAM_BOOL:
		return "1 or 0, yes or no, true or false, on or off";
	case FI_PARAM_SIZE_T:
		return "a number";
	default:
		return "text";
	}
}

static int parse_value(const char *text, enum fi_param_type type, void *value)
{
	switch (type) {
	case FI_PARAM_STRING:
		memcpy(value, &text, sizeof(text));
		return 0;
	case FI_PARAM_INT:
		return parse_int(text, value);
	case FI_PARAM_BOOL:
		return parse_bool(text, value);
	case FI_PARAM_SIZE_T:
		return parse_size(text, value);
	default:
		return -FI_EINVAL;
	}
}

CORE_EXPORT int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	const struct fi_provider *prov = provider ? provider : &core_provider;
	enum fi_param_type type = FI_PARAM_STRING;
	char *text = NULL, env_name[128] = "";
	struct param *param;
	int err;

	if (!param_name || !value)
		return -FI_EINVAL;

	pthread_mutex_lock(&params_lock);
	param = *param_find_locked(prov, param_name);
	if (param) {
		type = param->type;
		text = value_locked(param->env_name);
		snprintf(env_name, sizeof(env_name), "%s", param->env_name);
	}
	pthread_mutex_unlock(&params_lock);
	if (!param)
		return -FI_ENOENT;
	if (!text)
		return -FI_ENODATA;

	err = parse_value(text, type, value);
	if (err)
		FI_WARN(prov, FI_LOG_CORE, "%s=%s is ignored: it takes %s\n", env_name, text,
			type_words(type));
	return err;
}

/* Caller holds params_lock. */
static int param_report_locked(struct fi_param *out, const struct param *param)
{
	const char *value = value_locked(param->env_name);

	out->type = param->type;
	out->name = strdup(param->env_name);
	out->help_string = strdup(param->help);
	out->value = value ? strdup(value) : NULL;
	return out->name && out->help_string && (out->value || !value) ? 0 : -FI_ENOMEM;
}

CORE_EXPORT int fi_getparams(struct fi_param **params_out, int *count)
{
	struct fi_param *list;
	struct param *param;
	int cnt = 0, err = 0;

	if (!params_out || !count)
		return -FI_EINVAL;
	core_start();

	pthread_mutex_lock(&params_lock);
	for (param = params; param; param = param->next)
		cnt++;
	/* The zero entry after the last one terminates the list for fi_freeparams. */
	list = calloc((size_t)cnt + 1, sizeof(*list));
	if (!list)
		err = -FI_ENOMEM;
	for (param = params, cnt = 0; param && !err; param = param->next, cnt++)
		err = param_report_locked(&list[cnt], param);
	pthread_mutex_unlock(&params_lock);

	if (err) {
		fi_freeparams(list);
		return err;
	}
	*params_out = list;
	*count = cnt;
	return 0;
}

CORE_EXPORT void fi_freeparams(struct fi_param *list)
{
	struct fi_param *param;

	if (!list)
		return;
	for (param = list; param->name || param->help_string; param++) {
		free((void *)param->name);
		free((void *)param->help_string);
		free((void *)param->value);
	}
	free(list);
}

void params_define_core(const char *name, enum fi_param_type type, const char *help)
{
	fi_param_define(NULL, name, type, "%s", help);
}

char *params_string(const char *name)
{
	char *value;

	return fi_param_get_str(NULL, name, &value) ? NULL : value;
}
