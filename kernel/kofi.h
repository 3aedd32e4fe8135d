/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What providers and consumers in the kernel say to kofi, beside the interface's own headers. A provider is a module: it registers
 * when it is loaded, and deregisters when it is unloaded, which is possible once nothing of it is in use.
 * docs/kofi-provider.md walks through one. Source: 'Kernel OpenFabrics Interface: kOFI Framework', 2015.
 */
#ifndef KOFI_H
#define KOFI_H

#include <linux/module.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

/* The version of this header that a provider was compiled with. kofi takes those of its own major number. */
#define KOFI_VERSION FI_VERSION(1, 0)

/*
 * struct kofi_provider - a provider, as kofi knows it; constant while it is registered
 * @name:      unique, ignoring case; what fi_fabric_attr.prov_name says
 * @version:   the provider's own
 * @getinfo:   answers fi_getinfo, as fi_provider.getinfo does. May sleep
 * @freeinfo:  frees a list that getinfo has returned; kofi gives consumers a copy of it. May sleep
 * @fabric:    answers fi_fabric. Closing the fabric returns -FI_EBUSY while anything is open in it. May sleep
 */
struct kofi_provider {
	const char *name;
	uint32_t version;
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
};

/*
 * kofi_provider_register_of - kofi_provider_register() on behalf of a module
 * @owner: the module that has the provider's functions; it is not unloaded while they are in use
 */
int kofi_provider_register_of(unsigned int version, struct kofi_provider *provider,
			      struct module *owner);

/*
 * kofi_provider_register - make a provider known
 * @version:  KOFI_VERSION
 * @provider: borrowed until it is deregistered; kofi writes nothing to it
 *
 * May sleep. Returns 0, -FI_EINVAL for a missing name or function, -FI_ENOSYS for another version, -FI_EALREADY for a
 * provider that is registered, -FI_EADDRINUSE for the name of another one, or -FI_ENOMEM. What is refused
 * is a line of the kernel's log, which is limited in rate.
 */
static inline int kofi_provider_register(unsigned int version, struct kofi_provider *provider)
{
	return kofi_provider_register_of(version, provider, THIS_MODULE);
}

/*
 * kofi_provider_deregister - undo kofi_provider_register()
 *
 * May sleep. Returns 0, -FI_ENOENT for one that is not registered, or -FI_EBUSY while a fabric of it is open or a query
 * under way: it stays registered. The exit function of its module runs once both are over, so that it succeeds there.
 */
int kofi_provider_deregister(struct kofi_provider *provider);

/* kofi_counters - the folder in debugfs, for files of a provider's, which removes them before its module is unloaded */
struct dentry;
struct dentry *kofi_counters(void);

/*
 * struct kofi_wait - what a consumer has called where a program sleeps on a descriptor; zeroed but for what kofi_wait_init() sets
 * @fid:  what wait_set of struct fi_cq_attr or fi_cntr_attr points to, with FI_WAIT_SET as wait_obj
 * @wake: is called, after fi_trywait() of that queue or counter has returned 0, as soon as it has something, and by
 *        fi_cq_signal(); also without need. Not again before the next fi_trywait()
 *
 * It is called in process context, with mutexes of the domain held: it wakes a thread or queues work, does not wait, and makes
 * no call of the interface. It belongs to the consumer, from before the queue or counter is opened until that
 * is closed; several may have the same. Their domain gets a thread, which makes progress while nobody else does.
 */
struct kofi_wait {
	struct fid_wait fid;
	void (*wake)(struct kofi_wait *wait);
};

static inline void kofi_wait_init(struct kofi_wait *wait, void (*wake)(struct kofi_wait *wait))
{
	*wait = (struct kofi_wait){ .fid.fid.fclass = FI_CLASS_WAIT, .wake = wake };
}

/*
 * kofi_wire_register, kofi_wire_unregister - wire_register() and wire_unregister() of engine/wire/wire.h, for a provider over
 * the engine: before it registers and after it has deregistered. May sleep.
 */
struct wire_provider;
int kofi_wire_register(const struct wire_provider *wire);
void kofi_wire_unregister(const struct wire_provider *wire);

/*
 * kofi_engine_register - kofi_wire_register() and kofi_provider_register(). May sleep; returns as they do
 * kofi_engine_deregister - undo that, in the exit function of the module
 */
static inline int kofi_engine_register(struct kofi_provider *provider,
				       const struct wire_provider *wire)
{
	int ret = kofi_wire_register(wire);

	if (ret)
		return ret;
	ret = kofi_provider_register(KOFI_VERSION, provider);
	if (ret)
		kofi_wire_unregister(wire);
	return ret;
}

static inline void kofi_engine_deregister(struct kofi_provider *provider,
					  const struct wire_provider *wire)
{
	kofi_provider_deregister(provider);
	kofi_wire_unregister(wire);
}

#endif
