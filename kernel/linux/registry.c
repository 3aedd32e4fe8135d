/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The providers that are registered, in that order. Called by modules as they are loaded and unloaded, and by queries.
 * A hold of a provider is a reference to its module, so that the module can't be unloaded meanwhile.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <rdma/fi_errno.h>

#include "core.h"

/* Protects the list and all holds. No provider is called under it. */
static DEFINE_MUTEX(registry_lock);
static LIST_HEAD(entries);

static int entry_refused(const struct kofi_provider *provider)
{
	const struct kofi_entry *entry;

	list_for_each_entry(entry, &entries, link) {
		if (entry->provider == provider)
			return -FI_EALREADY;
		if (!strcasecmp(entry->provider->name, provider->name))
			return -FI_EADDRINUSE;
	}
	return 0;
}

/* What can be said of a provider without the others. */
static int provider_refused(unsigned int version, const struct kofi_provider *provider)
{
	if (FI_MAJOR(version) != FI_MAJOR(KOFI_VERSION))
		return -FI_ENOSYS;
	if (!provider || !provider->name || !provider->name[0] || !provider->getinfo ||
	    !provider->freeinfo || !provider->fabric)
		return -FI_EINVAL;
	return 0;
}

int kofi_provider_register_of(unsigned int version, struct kofi_provider *provider,
			      struct module *owner)
{
	struct kofi_entry *entry;
	int ret = provider_refused(version, provider);

	might_sleep();
	if (ret) {
		kofi_complain("a provider of version %u.%u of the interface is refused: %d",
			      FI_MAJOR(version), FI_MINOR(version), ret);
		return ret;
	}
	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -FI_ENOMEM;
	entry->provider = provider;
	entry->owner = owner;
	mutex_lock(&registry_lock);
	ret = entry_refused(provider);
	if (!ret)
		list_add_tail(&entry->link, &entries);
	mutex_unlock(&registry_lock);
	if (ret) {
		kofi_complain("the provider %s is refused: %d", provider->name, ret);
		kfree(entry);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_provider_register_of);

static struct kofi_entry *entry_of(const struct kofi_provider *provider)
{
	struct kofi_entry *entry;

	list_for_each_entry(entry, &entries, link)
		if (entry->provider == provider)
			return entry;
	return NULL;
}

int kofi_provider_deregister(struct kofi_provider *provider)
{
	struct kofi_entry *entry;
	int ret = 0;

	might_sleep();
	mutex_lock(&registry_lock);
	entry = entry_of(provider);
	if (!entry)
		ret = -FI_ENOENT;
	else if (entry->holds)
		ret = -FI_EBUSY;
	else
		list_del(&entry->link);
	mutex_unlock(&registry_lock);
	if (ret)
		kofi_complain("a provider is not deregistered: %d", ret);
	else
		kfree(entry);
	return ret;
}
EXPORT_SYMBOL_GPL(kofi_provider_deregister);

/* With the registry's lock. */
static bool entry_hold(struct kofi_entry *entry)
{
	if (!try_module_get(entry->owner))
		return false;
	entry->holds++;
	return true;
}

static void entry_put_locked(struct kofi_entry *entry)
{
	entry->holds--;
	module_put(entry->owner);
}

struct kofi_entry *kofi_entry_next(struct kofi_entry *after)
{
	struct kofi_entry *next;
	struct list_head *at;

	mutex_lock(&registry_lock);
	at = after ? &after->link : &entries;
	while ((at = at->next) != &entries) {
		next = list_entry(at, struct kofi_entry, link);
		if (entry_hold(next))
			break;
	}
	next = at == &entries ? NULL : next;
	if (after)
		entry_put_locked(after);
	mutex_unlock(&registry_lock);
	return next;
}

struct kofi_entry *kofi_entry_find(const char *name)
{
	struct kofi_entry *entry, *found = NULL;

	mutex_lock(&registry_lock);
	list_for_each_entry(entry, &entries, link)
		if (!strcasecmp(entry->provider->name, name) && entry_hold(entry)) {
			found = entry;
			break;
		}
	mutex_unlock(&registry_lock);
	return found;
}

void kofi_entry_put(struct kofi_entry *entry)
{
	mutex_lock(&registry_lock);
	entry_put_locked(entry);
	mutex_unlock(&registry_lock);
}

void kofi_entry_asked(struct kofi_entry *entry, bool answered)
{
	mutex_lock(&registry_lock);
	entry->queries++;
	entry->answered += answered;
	mutex_unlock(&registry_lock);
}

void kofi_entry_opened(struct kofi_entry *entry)
{
	mutex_lock(&registry_lock);
	entry->fabrics++;
	mutex_unlock(&registry_lock);
}

void kofi_entries_show(struct seq_file *file)
{
	const struct kofi_entry *entry;

	mutex_lock(&registry_lock);
	list_for_each_entry(entry, &entries, link)
		seq_printf(file, "%s %u.%u queries %llu answered %llu fabrics %llu holds %u\n",
			   entry->provider->name, FI_MAJOR(entry->provider->version),
			   FI_MINOR(entry->provider->version), entry->queries, entry->answered,
			   entry->fabrics, entry->holds);
	mutex_unlock(&registry_lock);
}
