/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host of the address target; see address_host.h. The linker leads calls of the providers
 * here (--wrap): for their fabrics, for names, interfaces and routes. On one thread.
 */
#include <netdb.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include "address_host.h"
#include "iface.h"
#include "input.h"
#include "routed.h"

#define FAMILIES_MAX 8

/* Fabrics: the providers' own, over other wires */

int __real_engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
			      struct fid_fabric **fabric, void *context);
int __wrap_engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
			      struct fid_fabric **fabric, void *context);

static struct {
	const struct engine_family *own;
	struct engine_family faked;
} families[FAMILIES_MAX];

static const struct engine_family *faked(const struct engine_family *family)
{
	int i = 0;

	while (families[i].own && families[i].own != family)
		MUST(++i < FAMILIES_MAX);
	if (families[i].own)
		return &families[i].faked;
	families[i].own = family;
	families[i].faked = *family;
	/* Those of shm are for its own wire. */
	families[i].faked.msg = &engine_routed_msg_ops;
	families[i].faked.tagged = &engine_routed_tagged_ops;
	for (const char **wire = families[i].faked.wires; *wire; wire++)
		*wire = strcmp(*wire, "shm") ? "fake-b" : "fake-a";
	return &families[i].faked;
}

int __wrap_engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
			      struct fid_fabric **fabric, void *context)
{
	return __real_engine_fabric_open(faked(family), attr, fabric, context);
}

/* Names, interfaces and routes */

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_ip_ifaces(const struct ip_iface_setting *setting, struct ip_iface **list, char *why,
		     size_t why_len);
int __wrap_ip_iface_route(const union ip_sockaddr *dest, union ip_sockaddr *out);

/* No name server is asked and no file read: there are localhost, host0 to host255, and http. */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	struct addrinfo numeric = *hints;
	char number[32], rest;
	unsigned int n;

	numeric.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
	if (node && !strcmp(node, "localhost")) {
		node = "127.0.0.1";
	} else if (node && sscanf(node, "host%3u%c", &n, &rest) == 1 && n < 256) {
		snprintf(number, sizeof(number), "10.0.0.%u", n);
		node = number;
	}
	if (service && !strcmp(service, "http"))
		service = "80";
	return __real_getaddrinfo(node, service, &numeric, list);
}

static const struct {
	const char *name, *ip;
	unsigned int prefix;
	enum ip_iface_rank rank;
} ifaces[] = {
	{ "eth0", "10.0.0.1", 24, IP_RANK_ROUTE4 }, { "eth0", "fd00::1", 64, IP_RANK_ROUTE6 },
	{ "eth0", "fe80::1", 64, IP_RANK_LINK },    { "lo", "127.0.0.1", 8, IP_RANK_LOOP4 },
	{ "lo", "::1", 128, IP_RANK_LOOP6 },
};

#define IFACE_CNT ((int)(sizeof(ifaces) / sizeof(ifaces[0])))

static void iface_addr(int i, union ip_sockaddr *out)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;

	MUST(!__real_getaddrinfo(ifaces[i].ip, NULL, &hints, &list));
	MUST(!ip_sockaddr_copy(out, list->ai_addr, list->ai_addrlen));
	freeaddrinfo(list);
	if (ifaces[i].rank == IP_RANK_LINK)
		out->in6.sin6_scope_id = 2;
}

int __wrap_ip_ifaces(const struct ip_iface_setting *setting, struct ip_iface **list, char *why,
		     size_t why_len)
{
	static struct ip_iface all[IFACE_CNT];

	for (int i = 0; i < IFACE_CNT && !all[IFACE_CNT - 1].prefix; i++) {
		all[i].prefix = ifaces[i].prefix;
		all[i].rank = ifaces[i].rank;
		snprintf(all[i].name, sizeof(all[i].name), "%s", ifaces[i].name);
		iface_addr(i, &all[i].addr);
	}
	*list = malloc(sizeof(all));
	MUST(*list);
	memcpy(*list, all, sizeof(all));
	return IFACE_CNT;
}

int __wrap_ip_iface_route(const union ip_sockaddr *dest, union ip_sockaddr *out)
{
	bool six = dest->sa.sa_family == AF_INET6, loop = ip_sockaddr_loopback(dest);

	if (ip_sockaddr_any(dest))
		return -FI_EHOSTUNREACH;
	iface_addr(loop ? 3 + six : six, out);
	return 0;
}

/* The library */

static int log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags)
{
	return level <= FI_LOG_INFO; /* so that each message is made */
}

static int log_ready(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime)
{
	return 1;
}

static void log_nothing(const struct fi_provider *prov, enum fi_log_level level,
			enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
}

static void library_begin(void)
{
	static struct fi_ops_log ops = { .enabled = log_enabled,
					 .ready = log_ready,
					 .log = log_nothing };
	static struct fid_logging logging = { .ops = &ops };
	static bool begun;

	if (begun)
		return;
	begun = true;
	unsetenv("FI_PROVIDER");
	unsetenv("FI_ADDR_FORMAT");
	setenv("FI_PROVIDER_PATH", "/proc/self/fdinfo", 1); /* a folder without providers */
	MUST(!fi_import_log(FI_VERSION(2, 0), 0, &logging));
}

void host_begin(void)
{
	library_begin();
	fake_ends_begin(1);
}

static const struct {
	const char *provider;
	uint32_t format;
} kinds[HOST_KINDS] = {
	[HOST_LINK] = { "link", FI_ADDR_STR },
	[HOST_SHM] = { "shm", FI_ADDR_STR },
	[HOST_TCP] = { "tcp", FI_SOCKADDR_IN },
	[HOST_TCP6] = { "tcp", FI_SOCKADDR_IN6 },
};

struct fi_info *host_hints(enum host_kind kind)
{
	struct fi_info *hints = fi_allocinfo();

	MUST(hints);
	hints->caps = FI_MSG | FI_TAGGED;
	hints->addr_format = kinds[kind].format;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(kinds[kind].provider);
	return hints;
}

bool host_is(enum host_kind kind, const struct fi_info *info)
{
	return !strcmp(info->fabric_attr->prov_name, kinds[kind].provider) &&
	       info->addr_format == kinds[kind].format;
}

struct fi_info *host_info(enum host_kind kind)
{
	static struct fi_info *infos[HOST_KINDS];
	struct fi_info *hints;

	if (!infos[kind]) {
		hints = host_hints(kind);
		MUST(!fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &infos[kind]));
		MUST(host_is(kind, infos[kind]));
		fi_freeinfo(hints);
	}
	return infos[kind];
}

int host_end_open(struct fake_end *end, struct fi_info *info, uint64_t av_flags,
		  const void *name, size_t len)
{
	struct fi_av_attr av = { .flags = av_flags };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	int ret;

	*end = (struct fake_end){ 0 };
	MUST(!fi_fabric(info->fabric_attr, &end->fabric, NULL));
	MUST(!fi_domain(end->fabric, info, &end->domain, NULL));
	MUST(!fi_av_open(end->domain, &av, &end->av, NULL));
	MUST(!fi_cq_open(end->domain, &cq, &end->tx_cq, NULL));
	MUST(!fi_cq_open(end->domain, &cq, &end->rx_cq, NULL));
	MUST(!fi_endpoint(end->domain, info, &end->ep, NULL));
	MUST(!fi_ep_bind(end->ep, &end->av->fid, 0));
	MUST(!fi_ep_bind(end->ep, &end->tx_cq->fid, FI_TRANSMIT));
	MUST(!fi_ep_bind(end->ep, &end->rx_cq->fid, FI_RECV));
	if (name)
		fi_setname(&end->ep->fid, (void *)(uintptr_t)name, len);
	ret = fi_enable(end->ep);
	if (ret)
		fake_end_close(end);
	else
		end->name = fake_end_engine(end)->address;
	return ret;
}
