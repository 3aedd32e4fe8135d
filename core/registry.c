/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The providers of this process, see registry.h. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "log.h"
#include "params.h"
#include "registry.h"

/* Providers with these names come first in answers, in this order. */
static const char *const first_names[] = { "link", "shm", "tcp", "udp", "rds" };
#define FIRST_CNT (sizeof(first_names) / sizeof(first_names[0]))

/* Protects the list, its order and all reference counts. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
/* Sorted by rank of the name; entries with one name are adjacent, the visible one first. */
static struct registry_entry *entries;
static size_t alive_cnt; /* in the list, or only referred to */
static bool keep_order;

void registry_hold(void)
{
	pthread_mutex_lock(&registry_lock);
}

void registry_release(void)
{
	pthread_mutex_unlock(&registry_lock);
}

static size_t name_rank(const char *name)
{
	size_t i;

	for (i = 0; i < FIRST_CNT && strcasecmp(name, first_names[i]); i++)
		;
	return i;
}

static bool same_name(const struct registry_entry *entry, const char *name, size_t len)
{
	return strlen(entry->prov->name) == len && !strncasecmp(entry->prov->name, name, len);
}

enum registry_kind registry_kind_of(const struct fi_provider *prov)
{
	if (!prov->getinfo)
		return REGISTRY_HOOK;
	if (!strncasecmp(prov->name, "ofi_", 4))
		return REGISTRY_LAYER;
	if (!strncasecmp(prov->name, "off_", 4))
		return REGISTRY_OFFLOAD;
	return REGISTRY_CORE;
}

/* Cleans up a provider; neither it nor its library is used afterwards. */
static void provider_end(struct fi_provider *prov, void *library)
{
	if (prov) {
		params_forget_provider(prov);
		if (prov->cleanup)
			prov->cleanup();
	}
	if (library)
		dlclose(library);
}

void registry_keep_order(bool keep)
{
	pthread_mutex_lock(&registry_lock);
	keep_order = keep;
	pthread_mutex_unlock(&registry_lock);
}

/* Caller holds registry_lock. Returns true if @entry is preferred to @old, which has the same name. */
static bool outranks_locked(const struct registry_entry *entry, const struct registry_entry *old)
{
	if (old->preferred)
		return false;
	return entry->preferred || (!keep_order && entry->prov->version > old->prov->version);
}

/* Caller holds registry_lock. */
static void insert_locked(struct registry_entry *entry)
{
	const char *name = entry->prov->name;
	size_t rank = name_rank(name), len = strlen(name);
	struct registry_entry **at = &entries;

	while (*at && !same_name(*at, name, len))
		at = &(*at)->next;
	if (!*at) {
		for (at = &entries; *at && name_rank((*at)->prov->name) <= rank;)
			at = &(*at)->next;
	} else {
		while (*at && same_name(*at, name, len) && !outranks_locked(entry, *at))
			at = &(*at)->next;
	}
	entry->next = *at;
	*at = entry;
}

static int provider_check(const struct fi_provider *prov)
{
	if (!prov || !prov->name || !*prov->name) {
		FI_WARN(&core_provider, FI_LOG_CORE, "a provider without a name is ignored\n");
		return -FI_EINVAL;
	}
	if (!prov->fabric) {
		FI_WARN(&core_provider, FI_LOG_CORE,
			"the provider %s can open no fabric and is ignored\n", prov->name);
		return -FI_EINVAL;
	}
	if (prov->fi_version < FI_VERSION(1, 3)) {
		FI_WARN(&core_provider, FI_LOG_CORE,
			"the provider %s was built for libfabric "
			"%u.%u and is ignored: 1.3 is the oldest that works\n",
			prov->name, FI_MAJOR(prov->fi_version), FI_MINOR(prov->fi_version));
		return -FI_ENOSYS;
	}
	return 0;
}

static int entry_add(struct fi_provider *prov, const struct info_identity *identities,
		     void *library, bool preferred)
{
	struct registry_entry *entry;
	int err;

	err = provider_check(prov);
	if (err)
		goto err_end;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		err = -FI_ENOMEM;
		goto err_end;
	}
	entry->prov = prov;
	entry->identities = identities;
	entry->library = library;
	entry->preferred = preferred;
	entry->refs = 1;
	pthread_mutex_lock(&registry_lock);
	insert_locked(entry);
	alive_cnt++;
	pthread_mutex_unlock(&registry_lock);
	FI_INFO(&core_provider, FI_LOG_CORE, "registered %s, version %u.%u%s\n", prov->name,
		FI_MAJOR(prov->version), FI_MINOR(prov->version), library ? ", loaded" : "");
	return 0;

err_end:
	provider_end(prov, library);
	return err;
}

int registry_add(struct fi_provider *prov, void *library, bool preferred)
{
	return entry_add(prov, NULL, library, preferred);
}

int registry_add_named(struct fi_provider *prov, const struct info_identity *identities)
{
	return entry_add(prov, identities, NULL, false);
}

int registry_remove(struct fi_provider *prov)
{
	struct registry_entry **at, *gone = NULL;

	pthread_mutex_lock(&registry_lock);
	for (at = &entries; *at && (*at)->prov != prov; at = &(*at)->next)
		;
	gone = *at;
	if (gone)
		*at = gone->next;
	pthread_mutex_unlock(&registry_lock);
	if (!gone)
		return -FI_ENOENT;
	registry_put(gone);
	return 0;
}

struct registry_entry *registry_find(const char *name, size_t len)
{
	struct registry_entry *entry;

	pthread_mutex_lock(&registry_lock);
	for (entry = entries; entry && !same_name(entry, name, len); entry = entry->next)
		;
	if (entry)
		entry->refs++;
	pthread_mutex_unlock(&registry_lock);
	return entry;
}

const struct info_identity *registry_identity_next(const struct registry_entry *entry,
						   const struct info_identity *identity)
{
	if (!entry->identities)
		return NULL;
	identity = identity ? identity + 1 : entry->identities + 1;
	return identity->name ? identity : NULL;
}

bool registry_by_name_alone(const struct registry_entry *entry)
{
	return entry->identities && entry->identities->by_name_alone;
}

static const struct info_identity *identity_named(const struct registry_entry *entry,
						  const char *name)
{
	const struct info_identity *identity = NULL;

	while ((identity = registry_identity_next(entry, identity)))
		if (info_identity_named(identity, name))
			return identity;
	return NULL;
}

struct registry_entry *registry_find_identity(const char *name,
					      const struct info_identity **identity)
{
	const struct registry_entry *last = NULL;
	struct registry_entry *entry;

	pthread_mutex_lock(&registry_lock);
	for (entry = entries; entry; last = entry, entry = entry->next) {
		if (last && same_name(last, entry->prov->name, strlen(entry->prov->name)))
			continue; /* hidden by the one before */
		*identity = identity_named(entry, name);
		if (*identity)
			break;
	}
	if (entry)
		entry->refs++;
	pthread_mutex_unlock(&registry_lock);
	return entry;
}

bool registry_has(const char *name, size_t len)
{
	struct registry_entry *entry = registry_find(name, len);

	if (entry)
		registry_put(entry);
	return entry;
}

void registry_put(struct registry_entry *entry)
{
	unsigned int refs;

	pthread_mutex_lock(&registry_lock);
	refs = --entry->refs;
	if (!refs)
		alive_cnt--;
	pthread_mutex_unlock(&registry_lock);
	if (refs)
		return;
	provider_end(entry->prov, entry->library);
	free(entry);
}

struct registry_entry **registry_list(size_t *cnt)
{
	struct registry_entry **list, *entry, *last = NULL;
	size_t n = 0;

	pthread_mutex_lock(&registry_lock);
	for (entry = entries; entry; entry = entry->next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	for (entry = entries, n = 0; entry && list; entry = entry->next) {
		if (last && same_name(last, entry->prov->name, strlen(entry->prov->name)))
			continue;
		entry->refs++;
		list[n++] = last = entry;
	}
	pthread_mutex_unlock(&registry_lock);
	*cnt = n;
	return list;
}

void registry_list_free(struct registry_entry **list, size_t cnt)
{
	size_t i;

	for (i = 0; i < cnt; i++)
		registry_put(list[i]);
	free(list);
}

size_t registry_clear(void)
{
	struct registry_entry *entry;
	size_t left;

	do {
		pthread_mutex_lock(&registry_lock);
		entry = entries;
		if (entry)
			entries = entry->next;
		else
			keep_order = false;
		left = alive_cnt;
		pthread_mutex_unlock(&registry_lock);
		if (entry)
			registry_put(entry);
	} while (entry);
	return left;
}
