/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The beginning and the end of the core, see start.h. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>

#include "builtin.h"
#include "loader.h"
#include "log.h"
#include "names.h"
#include "naming.h"
#include "params.h"
#include "registry.h"
#include "start.h"

/* The build defines the real values. */
#ifndef CORE_CONF_FILE
#define CORE_CONF_FILE "/etc/libfabric.conf"
#endif
#ifndef CORE_PROVIDER_DIR
#define CORE_PROVIDER_DIR "/usr/local/lib/libfabric"
#endif

/* Held during the whole start. Rank: taken before every other lock of the core. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool started;
/* This thread has start_lock. */
static _Thread_local bool starting;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static struct name_filter provider_filter;
static uint32_t addr_format;

/*
 * Forks: the child has one thread, and no lock of the core is another one's there. Whoever has start_lock may wait for
 * any lock of the library, and its other parts log and read settings with locks that they take for a fork: so
 * start_lock is taken before theirs, and the locks inside after them. Handlers that are installed later are
 * called earlier before a fork.
 */
static void fork_prepare(void)
{
	/* a provider that is being registered may fork */
	if (!starting)
		pthread_mutex_lock(&start_lock);
}

static void fork_over(void)
{
	if (!starting)
		pthread_mutex_unlock(&start_lock);
}

static void fork_prepare_inside(void)
{
	registry_hold();
	log_hold();
	params_hold();
}

static void fork_over_inside(void)
{
	params_release();
	log_release();
	registry_release();
}

static void fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_over, fork_over);
}

/*
 * Before the constructors of the library's other parts, which have no number, and after those of an allocator, which
 * may install handlers when something is first allocated: its locks are waited for with ours held.
 */
__attribute__((constructor(101))) static void load(void)
{
	void *volatile any = malloc(1);

	free(any);
	pthread_atfork(fork_prepare_inside, fork_over_inside, fork_over_inside);
}

const struct name_filter *core_provider_filter(void)
{
	return &provider_filter;
}

uint32_t core_addr_format(void)
{
	return addr_format;
}

static void read_addr_format(void)
{
	const struct info_name *name = info_names_addr_format;
	const char *text;

	params_define_core("addr_format", FI_PARAM_STRING,
			   "Let fi_getinfo answer only with this address format, such as "
			   "FI_SOCKADDR_IN (default: all)");
	addr_format = FI_FORMAT_UNSPEC;
	text = params_string("addr_format");
	if (!text)
		return;
	while (name->name && strcasecmp(name->name, text))
		name++;
	if (name->name)
		addr_format = (uint32_t)name->value;
	else
		FI_WARN(&core_provider, FI_LOG_CORE,
			"FI_ADDR_FORMAT=%s is ignored: it requires a name such as FI_SOCKADDR_IN\n",
			text);
}

/* These are described here and read elsewhere: mem/preload/start.c, mem/arena/keeper.c. */
static void define_memory(void)
{
	params_define_core("mem_min", FI_PARAM_STRING,
			   "Least length of an allocation that libweft-mem.so (weft run --mem) "
			   "serves from memory that peers reach; K, M and G are understood "
			   "(default: 64K, and at least 4K)");
	params_define_core(
		"mem_limit", FI_PARAM_STRING,
		"Most bytes that libweft-mem.so takes for that; K, M and G are "
		"understood, 0: none (default: half of the machine's memory, or of what "
		"the control group may use)");
	params_define_core(
		"mem_decay", FI_PARAM_SIZE_T,
		"Seconds after which freed memory that peers reach and that is not used "
		"again is given back, 0: at once (default: 10)");
}

static void read_settings(void)
{
	int prefer = 0;

	params_load(CORE_CONF_FILE);
	params_define_core("prefer_sysconfig", FI_PARAM_BOOL,
			   "Let " CORE_CONF_FILE " take precedence over the environment "
			   "(default: no)");
	fi_param_get_bool(NULL, "prefer_sysconfig", &prefer);
	params_prefer_file(prefer);
	log_init();

	params_define_core("provider", FI_PARAM_STRING,
			   "Use only these providers, NAME,NAME, or all but these, ^NAME,NAME "
			   "(default: all)");
	name_filter_init(&provider_filter, params_string("provider"));

	params_define_core("provider_path", FI_PARAM_STRING,
			   "Where to look for loadable providers: folders and *-fi.so files, "
			   "with ':' between them; @ in front of all lets the order of loading "
			   "decide between providers of a name, + in front of a file prefers it "
			   "(default: " CORE_PROVIDER_DIR ")");
	read_addr_format();
	define_memory();
}

/* With '@' the first provider of a name is visible, and loaded ones come before built-in ones. */
static void register_providers(const char *path)
{
	bool loaded_first = path && *path == '@';

	if (!loaded_first)
		builtin_register();
	loader_run(path, CORE_PROVIDER_DIR);
	if (loaded_first)
		builtin_register();
}

/* Returns true if a list of names allows a provider under any of its identities. */
static bool filter_meets(const struct registry_entry *entry)
{
	const struct info_identity *identity = NULL;

	if (registry_kind_of(entry->prov) != REGISTRY_CORE)
		return name_filter_has(&provider_filter, entry->prov->name);
	while ((identity = registry_identity_next(entry, identity)))
		if (naming_allows_identity(&provider_filter, identity))
			return true;
	return naming_allows(&provider_filter, entry->prov);
}

/* Returns true if a list of names allows any provider. */
static bool filter_meets_one(void)
{
	struct registry_entry **list;
	bool met = false;
	size_t i, cnt;

	list = registry_list(&cnt);
	for (i = 0; list && i < cnt && !met; i++)
		met = filter_meets(list[i]);
	if (list)
		registry_list_free(list, cnt);
	return met;
}

/* Names that no provider can have are ignored with one warning. */
static void log_unknown_names(const char *setting, const char *text,
			      const struct name_filter *filter)
{
	char unknown[256] = "";
	size_t i, used = 0;

	for (i = 0; i < filter->cnt && used < sizeof(unknown); i++) {
		if (naming_is_known(filter->names[i]) ||
		    !strcasecmp(filter->names[i], core_provider.name))
			continue;
		used += (size_t)snprintf(unknown + used, sizeof(unknown) - used, "%s%s",
					 used ? ", " : "", filter->names[i]);
	}
	if (used)
		FI_WARN(&core_provider, FI_LOG_CORE,
			"%s=%s: no provider is called %s: 'fi_info -l' lists them\n", setting,
			text, unknown);
}

/* A list that allows no registered provider is probably a mistake. */
static void check_names(void)
{
	struct name_filter log_filter;

	if (provider_filter.cnt && !provider_filter.excludes && !filter_meets_one())
		FI_WARN(&core_provider, FI_LOG_CORE,
			"FI_PROVIDER=%s names no provider of this library: 'fi_info -l' lists "
			"them\n",
			params_string("provider"));
	else
		log_unknown_names("FI_PROVIDER", params_string("provider"), &provider_filter);
	name_filter_init(&log_filter, params_string("log_prov"));
	log_unknown_names("FI_LOG_PROV", params_string("log_prov"), &log_filter);
	name_filter_fini(&log_filter);
}

void core_start(void)
{
	/* A:started  everything that the start wrote; pairs R:started */
	if (atomic_load_explicit(&started, memory_order_acquire) || starting)
		return;
	pthread_once(&fork_once, fork_watch);
	pthread_mutex_lock(&start_lock);
	if (!atomic_load_explicit(&started, memory_order_relaxed)) {
		starting = true;
		read_settings();
		register_providers(params_string("provider_path"));
		check_names();
		starting = false;
		/* R:started  settings and registry before the flag; pairs A:started */
		atomic_store_explicit(&started, true, memory_order_release);
	}
	pthread_mutex_unlock(&start_lock);
}

__attribute__((destructor)) void core_stop(void)
{
	pthread_mutex_lock(&start_lock);
	starting = true;
	/* While a fabric is open, its threads may log and need the settings. */
	if (atomic_load_explicit(&started, memory_order_relaxed) && !registry_clear()) {
		name_filter_fini(&provider_filter);
		log_fini();
		params_clear();
		atomic_store_explicit(&started, false, memory_order_release);
	}
	starting = false;
	pthread_mutex_unlock(&start_lock);
}
