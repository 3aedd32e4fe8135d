/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hearing and keeping reasons; reasons.h has the contract. Called by
 * 'weft info --why', and by the library on the thread that calls fi_getinfo.
 */
#define _GNU_SOURCE
#include "reasons.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>

#define CORE_NAME    "core"
#define LINE_START   "getinfo: "
#define NEAREST	     "getinfo would be "
#define REASON_END   "; "
#define LINES_MAX    6 /* of the reasons of one provider */
#define PROVIDER_MAX 64

struct reasons {
	char provider[PROVIDER_MAX];
	/* the core's own summary: nothing else counts */
	bool final;
	unsigned cnt;
	char *lines[LINES_MAX];
};

static struct reasons *all;
static unsigned all_cnt;
static char nearest[256];

static struct reasons *reasons_of(const char *provider, bool create)
{
	struct reasons *grown;
	unsigned i;

	for (i = 0; i < all_cnt; i++)
		if (!strcmp(all[i].provider, provider))
			return &all[i];
	if (!create || strlen(provider) >= PROVIDER_MAX)
		return NULL;
	grown = reallocarray(all, all_cnt + 1, sizeof(*all));
	if (!grown)
		return NULL;
	all = grown;
	grown = &all[all_cnt++];
	memset(grown, 0, sizeof(*grown));
	strcpy(grown->provider, provider);
	return grown;
}

static void forget_lines(struct reasons *r)
{
	while (r->cnt)
		free(r->lines[--r->cnt]);
}

/* Without the newline; each line once. */
static void add_line(struct reasons *r, const char *text, size_t len)
{
	unsigned i;

	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	if (!len || r->cnt == LINES_MAX)
		return;
	for (i = 0; i < r->cnt; i++)
		if (strlen(r->lines[i]) == len && !memcmp(r->lines[i], text, len))
			return;
	r->lines[r->cnt] = strndup(text, len);
	r->cnt += r->lines[r->cnt] != NULL;
}

/*
 * A provider that tried several variants, such as addresses, has a reason for each, separated by ";
 * ".
 */
static void add_reasons(struct reasons *r, const char *text)
{
	const char *end;

	for (; (end = strstr(text, REASON_END)); text = end + strlen(REASON_END))
		add_line(r, text, (size_t)(end - text));
	add_line(r, text, strlen(text));
}

/* "getinfo would be answered without HINT", once for a question without an answer. */
static void hear_nearest(const char *msg)
{
	snprintf(nearest, sizeof(nearest), "%s", msg + strlen("getinfo "));
	nearest[strcspn(nearest, "\n")] = '\0';
}

/* "getinfo: NAME: reason": the last word on a provider, or another one. */
static void hear_core(const char *msg)
{
	char provider[PROVIDER_MAX];
	const char *name, *colon;
	struct reasons *r;

	if (!strncmp(msg, NEAREST, strlen(NEAREST)))
		hear_nearest(msg);
	if (strncmp(msg, LINE_START, strlen(LINE_START)))
		return;
	name = msg + strlen(LINE_START);
	colon = strstr(name, ": ");
	if (!colon || colon == name || (size_t)(colon - name) >= sizeof(provider))
		return;
	memcpy(provider, name, (size_t)(colon - name));
	provider[colon - name] = '\0';
	r = reasons_of(provider, true);
	if (!r)
		return;
	if (!r->final)
		forget_lines(r);
	r->final = true;
	add_reasons(r, colon + 2);
}

void reasons_heard(const char *provider, const char *func, const char *msg)
{
	struct reasons *r;

	if (!strcmp(provider, CORE_NAME)) {
		hear_core(msg);
		return;
	}
	/* A stock library logs each setting that it reads. */
	if (strstr(func, "param_get") || strstr(func, "param_define"))
		return;
	r = reasons_of(provider, true);
	if (r && !r->final)
		add_line(r, msg, strlen(msg));
}

static int wants(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, uint64_t flags)
{
	return level <= FI_LOG_INFO;
}

static int wants_now(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime)
{
	return level <= FI_LOG_INFO;
}

static void hear(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	if (prov && prov->name && msg)
		reasons_heard(prov->name, func ? func : "", msg);
}

int reasons_listen(void)
{
	static struct fi_ops_log ops = {
		.enabled = wants,
		.ready = wants_now,
		.log = hear,
	};
	static struct fid_logging logging = { .ops = &ops };

	return fi_import_log(FI_VERSION(1, 14), 0, &logging);
}

bool reasons_are_there(const char *provider)
{
	const struct reasons *r = reasons_of(provider, false);

	return r && r->cnt;
}

int reasons_print(FILE *to, const char *provider)
{
	const struct reasons *r = reasons_of(provider, false);
	unsigned i;

	if (!r)
		return 0;
	for (i = 0; i < r->cnt; i++)
		fprintf(to, "    %s\n", r->lines[i]);
	return (int)r->cnt;
}

const char *reasons_nearest(void)
{
	return nearest[0] ? nearest : NULL;
}

const char *reasons_name(unsigned idx)
{
	return idx < all_cnt ? all[idx].provider : NULL;
}

void reasons_forget(void)
{
	while (all_cnt)
		forget_lines(&all[--all_cnt]);
	free(all);
	all = NULL;
	nearest[0] = '\0';
}
