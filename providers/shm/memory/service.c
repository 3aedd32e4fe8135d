/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Services of shared-memory endpoints. Called by getinfo, and by open and connect on the thread
 * that holds the domain.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "hash.h"
#include "service.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:"
#define SHORT_MAX  15u /* characters of a name as it is in an address */

/*
 * Makes a name by a hash of one that is too long or has other characters: the same for the same
 * name.
 */
static void name_hash(const char *name, size_t len, char out[SHORT_MAX + 1])
{
	uint64_t h = sys_hash(name, len);

	*out++ = ':';
	for (size_t i = 0; i < 13; i++, h >>= 5)
		*out++ = "abcdefghijklmnopqrstuvwxyz234567"[h & 31];
	*out = '\0';
}

bool pshm_service_spelled(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!name[i] || !strchr(NAME_CHARS, name[i]))
			return false;
	return true;
}

void pshm_service_named_addr(const char *name, size_t len, struct weft_addr *out)
{
	*out = (struct weft_addr){ .version = ADDR_VERSION,
				   .kind = ADDR_SERVICE,
				   .family = ADDR_FAMILY_LOCAL };
	if (len > SHORT_MAX || !pshm_service_spelled(name, len))
		name_hash(name, len, (char *)out->ip);
	else if (len)
		memcpy(out->ip, name, len);
}

int pshm_service_addr(const char *service, struct weft_addr *out)
{
	size_t len = service ? strlen(service) : 0;

	if (service && !len)
		return -FI_EINVAL;
	/* A number is a port, as it is elsewhere. */
	if (len && strspn(service, "0123456789") == len &&
	    (len > 5 || atoi(service) > UINT16_MAX || !atoi(service)))
		return -FI_EINVAL;
	pshm_service_named_addr(service, len, out);
	return 0;
}

bool pshm_service_bindable(const struct weft_addr *addr)
{
	struct weft_addr named = *addr;

	named.ip[0] = named.ip[0] ? named.ip[0] : 'x';
	return addr->kind == ADDR_SERVICE && addr->family == ADDR_FAMILY_LOCAL &&
	       addr_valid(&named);
}

/* A local address: a socket can be bound to it. */
static bool is_local(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ours;

	if (fd < 0)
		return false;
	ours = !bind(fd, ai->ai_addr, ai->ai_addrlen);
	close(fd);
	return ours;
}

int pshm_service_node(const char *node)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_family = AF_UNSPEC };
	struct addrinfo *list;
	bool ours = false;

	if (!node)
		return 0;
	if (getaddrinfo(node, NULL, &hints, &list))
		return -FI_ENODATA;
	for (struct addrinfo *ai = list; ai && !ours; ai = ai->ai_next)
		ours = is_local(ai);
	freeaddrinfo(list);
	return ours ? 0 : -FI_ENODATA;
}

static void service_name(const struct weft_addr *addr, char name[SYS_SHARED_NAME_MAX])
{
	snprintf(name, SYS_SHARED_NAME_MAX, "shm:%.15s", (const char *)addr->ip);
}

int pshm_service_publish(const struct weft_addr *addr, struct sys_shared **out)
{
	char name[SYS_SHARED_NAME_MAX];
	struct sys_shared *shared;
	size_t len;
	int err;

	service_name(addr, name);
	err = sys_shared_create(name, sizeof(*addr), &shared);
	if (err)
		return err;
	memcpy(sys_shared_map(shared, &len), addr, sizeof(*addr));
	err = sys_shared_publish(shared);
	if (err) {
		sys_shared_close(shared);
		return err;
	}
	*out = shared;
	return 0;
}

int pshm_service_find(const struct weft_addr *service, struct weft_addr *out)
{
	char name[SYS_SHARED_NAME_MAX];
	struct sys_shared *shared;
	struct weft_addr found;
	size_t len;
	int err;

	service_name(service, name);
	err = sys_shared_attach(name, false, &shared);
	if (err)
		return err == -FI_ENOENT ? -FI_EAGAIN : err;
	err = -FI_EPROTO;
	if (sys_shared_map(shared, &len) && len >= sizeof(found)) {
		memcpy(&found, sys_shared_map(shared, &len), sizeof(found));
		if (addr_valid(&found) && found.kind == ADDR_NONCE && found.pid &&
		    pshm_service_named(&found) &&
		    !memcmp(found.ip, service->ip, sizeof(found.ip)))
			err = 0;
	}
	sys_shared_close(shared);
	if (!err)
		*out = found;
	return err;
}
