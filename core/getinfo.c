/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo, fi_dupinfo and fi_freeinfo. Called by programs, by compat.c for older ones, and
 * by layered providers while they answer; on any thread, any number at a time. Providers
 * are asked without a lock held.
 *
 * What a provider logs while its getinfo runs is the reason of its refusal. It becomes a line
 * 'getinfo: NAME: REASON' of level FI_LOG_INFO, which FI_LOG_LEVEL=info prints and an imported
 * logger receives. If no provider answers and a log is wanted (log_is_wanted()), one warning has
 * all reasons; otherwise nothing is printed, since programs probe. With the reasons, the hints to
 * leave out to get an answer are logged (nearest.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "export.h"
#include "info.h"
#include "log.h"
#include "name_filter.h"
#include "names.h"
#include "naming.h"
#include "nearest.h"
#include "params.h"
#include "registry.h"
#include "start.h"

/* Flags with which layered providers of a stock libfabric call getinfo of the core. */
#define ASK_CORE_PROVIDERS    (1ULL << 59)
#define ASK_OFFLOAD_PROVIDERS (1ULL << 61)
#define ASK_INTERNALLY	      (ASK_CORE_PROVIDERS | 1ULL << 58 | 1ULL << 60)

struct request {
	uint32_t version;
	const char *node;
	const char *service;
	uint64_t flags;
	const struct fi_info *hints;
	const struct name_filter *filter;
	struct naming naming;
	/* 'link: ...; shm: ...' */
	char reasons[1024];
	size_t reasons_len;
};

/* A provider and the identity under which it is queried. */
struct role {
	const struct fi_provider *prov;
	/* NULL: its own name */
	const struct info_identity *identity;
	bool by_name_alone;
};

/* Under its own name */
static struct role role_of(const struct registry_entry *entry)
{
	return (struct role){ .prov = entry->prov,
			      .by_name_alone = registry_by_name_alone(entry) };
}

static const char *role_name(const struct role *role)
{
	return role->identity ? role->identity->name : role->prov->name;
}

static void refused(struct request *req, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void refused(struct request *req, const char *name, const char *fmt, ...)
{
	size_t room = sizeof(req->reasons) - req->reasons_len;
	char reason[sizeof(((struct log_capture *)0)->text)];
	va_list args;
	int n;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	FI_INFO(&core_provider, FI_LOG_CORE, "getinfo: %s: %s\n", name, reason);

	n = snprintf(req->reasons + req->reasons_len, room, "%s%s: %s",
		     req->reasons_len ? "; " : "", name, reason);
	if (n > 0)
		req->reasons_len += (size_t)n < room ? (size_t)n : room - 1;
}

static const char *hinted_prov_name(const struct fi_info *hints)
{
	return hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
}

/* Returns true if the name in the hints and the flags mean this provider. */
static bool is_meant(const struct request *req, const struct role *role)
{
	enum registry_kind kind = registry_kind_of(role->prov);

	if (kind == REGISTRY_HOOK)
		return false;
	if (role->identity)
		return naming_means_identity(&req->naming, role->identity) &&
		       (req->naming.identity || !(req->flags & ASK_INTERNALLY));
	return naming_means(&req->naming, role->prov) &&
	       !(kind == REGISTRY_OFFLOAD && !(req->flags & ASK_OFFLOAD_PROVIDERS)) &&
	       !(kind != REGISTRY_CORE && (req->flags & ASK_CORE_PROVIDERS));
}

/*
 * The reasons under an identity that the hints did not name are those under the own name: not
 * repeated.
 */
static bool is_silent(const struct request *req, const struct role *role)
{
	return role->identity != req->naming.identity;
}

/* Returns true if the hints or FI_PROVIDER name a provider; who is meant and allowed is another question. */
static bool is_named(const struct request *req)
{
	return req->naming.cnt || (req->filter->cnt && !req->filter->excludes);
}

/* Returns true if the provider is to be queried. */
static bool is_asked(struct request *req, const struct role *role)
{
	const struct fi_provider *prov = role->prov;
	bool allowed = role->identity ? naming_allows_identity(req->filter, role->identity)
				      : naming_allows(req->filter, prov);

	if (!is_meant(req, role))
		return false;
	if (!allowed) {
		if (!is_silent(req, role))
			refused(req, role_name(role), "left out by FI_PROVIDER=%s",
				params_string("provider"));
		return false;
	}
	if (role->by_name_alone && !is_named(req)) {
		refused(req, prov->name, "answers who names it, in the hints or by FI_PROVIDER");
		return false;
	}
	if (prov->fi_version < req->version) {
		refused(req, prov->name, "built for libfabric %u.%u, and API %u.%u is requested",
			FI_MAJOR(prov->fi_version), FI_MINOR(prov->fi_version),
			FI_MAJOR(req->version), FI_MINOR(req->version));
		return false;
	}
	return true;
}

/* Queries one provider. The name of an identity is passed in the hints. */
static int provider_ask(const struct request *req, const struct role *role,
			struct fi_info **answer)
{
	const struct fi_info *hints = req->hints;
	struct fi_fabric_attr fabric_attr = { 0 };
	struct fi_info named = { 0 };

	if (role->identity) {
		if (hints)
			named = *hints;
		if (hints && hints->fabric_attr)
			fabric_attr = *hints->fabric_attr;
		named.fabric_attr = &fabric_attr;
		fabric_attr.prov_name = (char *)role->identity->name; /* is only read */
		hints = &named;
	}
	return role->prov->getinfo(req->version, req->node, req->service, req->flags, hints,
				   answer);
}

/* Layered providers put the name of the provider that they work over in front. */
static int answer_name(struct fi_info *info, const struct role *role)
{
	const struct fi_provider *prov = role->prov;
	char *given = info->fabric_attr->prov_name, *name = NULL;

	if (given && registry_kind_of(prov) == REGISTRY_LAYER) {
		if (asprintf(&name, "%s;%s", given, prov->name) < 0)
			return -FI_ENOMEM;
	} else if (!given || !strcasecmp(given, prov->name)) {
		name = strdup(role_name(role));
		if (!name)
			return -FI_ENOMEM;
	} else {
		return 0;
	}
	free(given);
	info->fabric_attr->prov_name = name;
	return 0;
}

static bool name_differs(const char *asked, const char *name)
{
	return asked && (!name || strcasecmp(asked, name));
}

/* Returns why an answer is dropped, or NULL. */
static const char *answer_objection(const struct request *req, const struct role *role,
				    const struct fi_info *info)
{
	const struct fi_info *hints = req->hints;

	if (req->flags & ASK_INTERNALLY)
		return NULL;
	if (!role->identity && !naming_allows_answer(req->filter, info->fabric_attr->prov_name))
		return "left out by FI_PROVIDER";
	if (core_addr_format() != FI_FORMAT_UNSPEC && info->addr_format != core_addr_format())
		return "left out by FI_ADDR_FORMAT";
	if (hints && hints->domain_attr &&
	    name_differs(hints->domain_attr->name, info->domain_attr->name))
		return "has no domain of the requested name";
	if (hints && hints->fabric_attr &&
	    name_differs(hints->fabric_attr->name, info->fabric_attr->name))
		return "has no fabric of the requested name";
	return NULL;
}

/* Completes a provider's answers and appends those that are valid at *tail. */
static int answers_take(struct request *req, const struct role *role, struct fi_info *answers,
			struct fi_info ***tail)
{
	const char *objection = NULL;
	struct fi_info *info;
	int taken = 0;

	while ((info = answers)) {
		answers = info->next;
		info->next = NULL;
		if (!info->tx_attr || !info->rx_attr || !info->ep_attr || !info->domain_attr ||
		    !info->fabric_attr) {
			objection = "gave an incomplete fi_info";
			info_free(info);
			continue;
		}
		if (answer_name(info, role)) {
			info_free(info);
			info_free(answers);
			return -FI_ENOMEM;
		}
		info->fabric_attr->prov_version = role->prov->version;
		info->fabric_attr->api_version = req->version;
		objection = answer_objection(req, role, info);
		if (objection) {
			info_free(info);
			continue;
		}
		**tail = info;
		*tail = &info->next;
		taken++;
	}
	if (!taken && !is_silent(req, role))
		refused(req, role_name(role), "%s",
			objection ? objection : "gave an empty list");
	return 0;
}

static int role_query(struct request *req, const struct role *role, struct fi_info ***tail)
{
	struct fi_info *answers = NULL;
	struct log_capture capture;
	int err;

	if (!is_asked(req, role))
		return 0;
	log_capture_begin(&capture);
	err = provider_ask(req, role, &answers);
	log_capture_end(&capture);
	if (!err)
		return answers_take(req, role, answers, tail);
	if (is_silent(req, role))
		return 0;
	if (capture.used)
		refused(req, role_name(role), "%s", capture.text);
	else
		refused(req, role_name(role), "%s, without a reason", fi_strerror(-err));
	return 0;
}

/* Each provider under its own name, then each under its other identities, which end the list. */
static int roles_query(struct request *req, struct registry_entry **list, size_t cnt,
		       struct fi_info ***tail)
{
	struct role role;
	size_t i;
	int err = 0;

	for (i = 0; i < cnt && !err; i++) {
		role = role_of(list[i]);
		err = role_query(req, &role, tail);
	}
	for (i = 0; i < cnt; i++) {
		role = role_of(list[i]);
		while (!err && (role.identity = registry_identity_next(list[i], role.identity)))
			err = role_query(req, &role, tail);
	}
	return err;
}

/* No provider has the name: log the names that exist. */
static void refused_name(struct request *req, struct registry_entry **list, size_t cnt)
{
	char names[256] = "";
	size_t i, used = 0;
	int n;

	for (i = 0; i < cnt && used < sizeof(names); i++) {
		n = snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			     list[i]->prov->name);
		used += n > 0 ? (size_t)n : 0;
	}
	refused(req, req->naming.text, "no provider has this name%s%s",
		cnt ? ", there are " : "", names);
}

static int query(struct request *req, struct fi_info **info)
{
	struct fi_info *head = NULL, **tail = &head;
	struct registry_entry **list;
	bool named = req->naming.identity;
	size_t i, cnt;
	int err;

	list = registry_list(&cnt);
	if (!list)
		return -FI_ENOMEM;
	for (i = 0; i < cnt; i++)
		named = named || naming_means(&req->naming, list[i]->prov);
	err = roles_query(req, list, cnt, &tail);
	if (!named && req->naming.text)
		refused_name(req, list, cnt);
	registry_list_free(list, cnt);
	if (err) {
		info_free(head);
		return err;
	}
	if (!head) {
		if (log_is_wanted() && !(req->flags & ASK_INTERNALLY))
			FI_WARN(&core_provider, FI_LOG_CORE, "fi_getinfo found nothing: %s\n",
				req->reasons_len ? req->reasons : "no such provider");
		return -FI_ENODATA;
	}
	*info = head;
	return 0;
}

/* Returns true if a provider answers a query. */
static bool is_answered(const struct question *q, void *arg)
{
	const struct request *asked = arg;
	struct request req = {
		.version = asked->version,
		.node = q->node,
		.service = q->service,
		.flags = asked->flags,
		.hints = q->hints,
		.filter = asked->filter,
	};
	struct fi_info *info = NULL;
	int err = naming_init(&req.naming, hinted_prov_name(q->hints));

	if (err)
		return false;
	err = query(&req, &info);
	naming_fini(&req.naming);
	info_free(info);
	return !err;
}

/* Logs, after the reasons, which hints to leave out. */
static void log_nearest(struct request *req)
{
	const struct question q = { req->node, req->service, req->hints };
	struct log_capture capture;
	char text[256];
	bool found;

	if (req->flags & ASK_INTERNALLY || !log_is_wanted() ||
	    !fi_log_enabled(&core_provider, FI_LOG_INFO, FI_LOG_CORE))
		return;
	log_capture_silent(&capture);
	found = nearest_find(&q, is_answered, req, text, sizeof(text));
	log_capture_end(&capture);
	if (found)
		FI_INFO(&core_provider, FI_LOG_CORE, "getinfo would be answered %s\n", text);
}

/* Appends one fi_info that has only the provider's name and version. */
static int list_role(const struct role *role, struct fi_info ***tail)
{
	struct fi_info *info = info_alloc();
	char *name = strdup(role_name(role));

	if (!info || !name) {
		info_free(info);
		free(name);
		return -FI_ENOMEM;
	}
	info->fabric_attr->prov_version = role->prov->version;
	info->fabric_attr->prov_name = name;
	**tail = info;
	*tail = &info->next;
	return 0;
}

/* FI_PROV_ATTR_ONLY: one fi_info for each name, whether the provider can be used or not. */
static int list_providers(struct fi_info **info)
{
	struct fi_info *head = NULL, **tail = &head;
	struct registry_entry **list;
	size_t i, cnt;
	int err = 0;

	list = registry_list(&cnt);
	if (!list)
		return -FI_ENOMEM;
	for (i = 0; i < cnt && !err; i++)
		err = list_role(&(struct role){ .prov = list[i]->prov }, &tail);
	for (i = 0; i < cnt; i++) {
		struct role role = { .prov = list[i]->prov };

		while (!err && (role.identity = registry_identity_next(list[i], role.identity)))
			err = list_role(&role, &tail);
	}
	registry_list_free(list, cnt);
	if (!err && !head)
		err = -FI_ENODATA;
	if (err)
		info_free(head);
	else
		*info = head;
	return err;
}

CORE_EXPORT int fi_getinfo(uint32_t version, const char *node, const char *service,
			   uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	struct request req = {
		.version = version,
		.node = node,
		.service = service,
		.flags = flags,
		.hints = hints,
	};
	int err;

	if (!info)
		return -FI_EINVAL;
	*info = NULL; /* fi_getinfo(3) promises this when nothing is found */
	core_start();
	if (version > fi_version()) {
		FI_WARN(&core_provider, FI_LOG_CORE,
			"API %u.%u is requested, and this library "
			"has %u.%u\n",
			FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(fi_version()),
			FI_MINOR(fi_version()));
		return -FI_ENOSYS;
	}
	if (flags & FI_PROV_ATTR_ONLY)
		return list_providers(info);

	req.filter = core_provider_filter();
	err = naming_init(&req.naming, hinted_prov_name(hints));
	if (err)
		return err;
	err = query(&req, info);
	naming_fini(&req.naming);
	if (err == -FI_ENODATA)
		log_nearest(&req);
	return err;
}

CORE_EXPORT struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return info_dup(info, NULL);
}

CORE_EXPORT void fi_freeinfo(struct fi_info *info)
{
	info_free(info);
}
