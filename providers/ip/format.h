/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address formats of endpoints, as struct engine_family has them: sockaddr_in and sockaddr_in6. For the providers
 * with the engine over IP addresses, which include its engine.h and routed.h.
 */
#ifndef WEFT_IP_FORMAT_H
#define WEFT_IP_FORMAT_H

#include <rdma/fabric.h>
#include "address.h"
#include "info.h"

int ip_in_read(const void *bytes, size_t len, struct weft_addr *out, char *why, size_t why_len);
int ip_in6_read(const void *bytes, size_t len, struct weft_addr *out, char *why, size_t why_len);
int ip_in_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		    size_t why_len);
int ip_in6_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		     size_t why_len);
size_t ip_addr_write(const struct weft_addr *addr, void *out);
size_t ip_in_str(const void *bytes, size_t bytes_len, char *buf, size_t len);
size_t ip_in6_str(const void *bytes, size_t bytes_len, char *buf, size_t len);
int ip_in_resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out);
int ip_in6_resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out);

/* ip_info_copy - struct engine_family.info_copy, for both */
struct fi_info *ip_info_copy(const struct fi_info *info, const struct weft_addr *src,
			     const struct weft_addr *dest);

/*
 * ip_fabric_six - returns true for a fabric of IPv6 addresses, false for one of IPv4 or for none
 * A fabric is named after its IP network, which distinguishes both.
 */
bool ip_fabric_six(const struct fi_fabric_attr *attr);

#define IP_FAMILY                                                   \
	.addr_write = ip_addr_write, .msg = &engine_routed_msg_ops, \
	.tagged = &engine_routed_tagged_ops, .info_copy = ip_info_copy, .info_free = info_free

#define IP_FAMILY_IN                                                                      \
	IP_FAMILY, .addr_format = FI_SOCKADDR_IN, .addr_len = sizeof(struct sockaddr_in), \
		   .addr_read = ip_in_read, .bind_read = ip_in_bind_read,                 \
		   .addr_str = ip_in_str, .resolve = ip_in_resolve

#define IP_FAMILY_IN6                                                                       \
	IP_FAMILY, .addr_format = FI_SOCKADDR_IN6, .addr_len = sizeof(struct sockaddr_in6), \
		   .addr_read = ip_in6_read, .bind_read = ip_in6_bind_read,                 \
		   .addr_str = ip_in6_str, .resolve = ip_in6_resolve

#endif
