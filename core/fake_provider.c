/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See fake_provider.h. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_log.h>

#include "fake_provider.h"
#include "info.h"
#include "registry.h"
#include "start.h"

struct fake fakes[FAKE_CNT];

static pthread_mutex_t remember_lock = PTHREAD_MUTEX_INITIALIZER; /* what fakes remember */

static struct {
	struct fid_fabric fabric;
	struct fake *owner;
} fabrics[FAKE_CNT];

static char log_text[16384];
static bool log_imported;

static int fake_getinfo(struct fake *fake, uint32_t version, uint64_t flags,
			const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *offer;
	const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
	int err;

	atomic_fetch_add(&fake->asked, 1);
	pthread_mutex_lock(&remember_lock);
	fake->version = version;
	fake->flags = flags;
	snprintf(fake->hinted_name, sizeof(fake->hinted_name), "%s", name ? name : "");
	pthread_mutex_unlock(&remember_lock);
	if (fake->reason)
		FI_INFO(&fake->prov, FI_LOG_CORE, "%s\n", fake->reason);
	if (fake->refuses || fake->empty)
		return fake->refuses;
	if (fake->incomplete) {
		*info = calloc(1, sizeof(**info));
		return 0;
	}
	offer = info_alloc();
	offer->caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV;
	offer->tx_attr->caps = FI_MSG | FI_TAGGED | FI_SEND;
	offer->rx_attr->caps = FI_MSG | FI_TAGGED | FI_RECV;
	offer->addr_format = fake->addr_format;
	offer->ep_attr->type = FI_EP_RDM;
	offer->domain_attr->max_ep_tx_ctx = 1;
	offer->domain_attr->max_ep_rx_ctx = 1;
	offer->domain_attr->threading = FI_THREAD_SAFE;
	offer->domain_attr->name = strdup("dom");
	offer->fabric_attr->name = strdup("fab");
	err = info_answer(&fake->prov, offer, NULL, hints, version, info);
	info_free(offer);
	if (!err && fake->over)
		(*info)->fabric_attr->prov_name = strdup(fake->over);
	return err;
}

static int fake_fabric_close(struct fid *fid)
{
	struct fake *fake = fid->context;

	if (!fake->close_result)
		fake->closed++;
	return fake->close_result;
}

static struct fi_ops fake_fabric_ops = {
	.size = sizeof(struct fi_ops),
	.close = fake_fabric_close,
};

static int fake_fabric(struct fake *fake, int slot, struct fi_fabric_attr *attr,
		       struct fid_fabric **fabric)
{
	snprintf(fake->fabric_prov_name, sizeof(fake->fabric_prov_name), "%s", attr->prov_name);
	if (fake->refuses)
		return fake->refuses;
	fabrics[slot].fabric.fid.fclass = FI_CLASS_FABRIC;
	fabrics[slot].fabric.fid.context = fake;
	fabrics[slot].fabric.fid.ops = &fake_fabric_ops;
	fake->opened++;
	*fabric = &fabrics[slot].fabric;
	return 0;
}

/* struct fi_provider's functions get no context: a set of them for each slot. */
#define SLOT(n)                                                                         \
	static int getinfo_##n(uint32_t version, const char *node, const char *service, \
			       uint64_t flags, const struct fi_info *hints,             \
			       struct fi_info **info)                                   \
	{                                                                               \
		return fake_getinfo(&fakes[n], version, flags, hints, info);            \
	}                                                                               \
	static int fabric_##n(struct fi_fabric_attr *attr, struct fid_fabric **fabric,  \
			      void *context)                                            \
	{                                                                               \
		return fake_fabric(&fakes[n], n, attr, fabric);                         \
	}                                                                               \
	static void cleanup_##n(void)                                                   \
	{                                                                               \
		pthread_mutex_lock(&remember_lock);                                     \
		fakes[n].cleaned++;                                                     \
		pthread_mutex_unlock(&remember_lock);                                   \
	}

SLOT(0)
SLOT(1)
SLOT(2)
SLOT(3)

static const struct fi_provider slots[FAKE_CNT] = {
	{ .getinfo = getinfo_0, .fabric = fabric_0, .cleanup = cleanup_0 },
	{ .getinfo = getinfo_1, .fabric = fabric_1, .cleanup = cleanup_1 },
	{ .getinfo = getinfo_2, .fabric = fabric_2, .cleanup = cleanup_2 },
	{ .getinfo = getinfo_3, .fabric = fabric_3, .cleanup = cleanup_3 },
};

static const char *const rxm_spellings[] = { "ofi_rxm", "ofi_rxm;tcp", NULL };

const struct info_identity fake_tcp[] = {
	{ .name = "tcp" },
	{ .name = "tcp;ofi_rxm", .spellings = rxm_spellings },
	{ .name = "sockets" },
	{ 0 },
};
const struct info_identity fake_shm[] = { { .name = "shm" }, { .name = "sm2" }, { 0 } };
const struct info_identity fake_link[] = { { .name = "link" }, { .name = "lnx" }, { 0 } };

static struct fake *fake_fill(int slot, const char *name, unsigned int version)
{
	struct fake *fake = &fakes[slot];

	core_start();
	memset(fake, 0, sizeof(*fake));
	fake->prov = slots[slot];
	fake->prov.name = name;
	fake->prov.version = FI_VERSION(version, 0);
	fake->prov.fi_version = fi_version();
	return fake;
}

struct fake *fake_register(int slot, const char *name, unsigned int version)
{
	struct fake *fake = fake_fill(slot, name, version);

	registry_add(&fake->prov, NULL, false);
	return fake;
}

struct fake *fake_register_named(int slot, const struct info_identity *identities,
				 unsigned int version)
{
	struct fake *fake = fake_fill(slot, identities->name, version);

	registry_add_named(&fake->prov, identities);
	return fake;
}

static int lines_enabled(const struct fi_provider *prov, enum fi_log_level level,
			 enum fi_log_subsys subsys, uint64_t flags)
{
	return level <= FI_LOG_INFO;
}

static void lines_log(const struct fi_provider *prov, enum fi_log_level level,
		      enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	size_t used = strlen(log_text);

	snprintf(log_text + used, sizeof(log_text) - used, "%s<%d> %s", prov->name, (int)level,
		 msg);
}

static struct fi_ops_log lines_ops = {
	.size = sizeof(struct fi_ops_log),
	.enabled = lines_enabled,
	.log = lines_log,
};
static struct fid_logging lines_fid = { .ops = &lines_ops };

void fake_log_lines(void)
{
	log_text[0] = '\0';
	if (!log_imported)
		log_imported = !fi_import_log(fi_version(), 0, &lines_fid);
}

int fake_log_cnt(const char *text)
{
	const char *at = log_text;
	int cnt = 0;

	while ((at = strstr(at, text))) {
		cnt++;
		at += strlen(text);
	}
	return cnt;
}

bool fake_log_has(const char *text)
{
	return fake_log_cnt(text) > 0;
}

static void no_settings(void)
{
	static const char *const names[] = {
		"FI_PROVIDER",		"FI_PROVIDER_PATH", "FI_LOG_LEVEL",
		"FI_LOG_PROV",		"FI_LOG_SUBSYS",    "FI_LOG_LOCATION",
		"FI_LOG_LOCATION_MODE", "FI_LOG_INTERVAL",  "FI_ADDR_FORMAT",
		"FI_PREFER_SYSCONFIG",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

int fake_setup(void **state)
{
	core_stop();
	no_settings();
	/* A folder without loadable providers, so that none of the machine's come in. */
	setenv("FI_PROVIDER_PATH", "/proc/self/fd", 1);
	return 0;
}

int fake_teardown(void **state)
{
	if (log_imported)
		fi_close(&lines_fid.fid);
	log_imported = false;
	core_stop();
	no_settings();
	return 0;
}
