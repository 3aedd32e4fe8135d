/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The question of an fi_getinfo to a provider with IP addresses: which addresses it names, and from
 * which of this host's the provider would answer. What the answers say is the provider's. Used by
 * tcp and by udp.
 */
#ifndef WEFT_IP_QUESTION_H
#define WEFT_IP_QUESTION_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "iface.h"

#define IP_RESOLVED_MAX 16

/* The state of one fi_getinfo. The caller fills the members up to @answer, the rest is zero. */
struct ip_question {
	/* for log lines */
	const struct fi_provider *provider;
	/* SOCK_STREAM or SOCK_DGRAM: what services are resolved for */
	int socktype;
	struct ip_iface_setting setting;
	uint32_t version;
	/* may be NULL */
	const struct fi_info *hints;
	/*
	 * answer - add an answer to @answers, or set @err
	 * @src:  an address of @iface
	 * @dest: NULL, or where to
	 */
	void (*answer)(struct ip_question *q, const struct ip_iface *iface,
		       union ip_sockaddr *src, union ip_sockaddr *dest);
	/* Owned */
	struct ip_iface *ifaces;
	int iface_cnt;
	/* Source addresses asked for; 0 of them: any address of the host */
	union ip_sockaddr src[IP_RESOLVED_MAX];
	int src_cnt;
	union ip_sockaddr dest[IP_RESOLVED_MAX];
	int dest_cnt;
	struct fi_info *answers;
	int err;
};

/*
 * ip_question_run - read the question and have it answered, the best address first
 * @info: out: the answers, owned
 *
 * May ask a name server. Returns 0, -FI_ENODATA (logged), or another -FI_E*. Source: fi_getinfo(3).
 *
 * A provider that has several answers for an address calls the parts of it instead:
 * ip_question_read(), then, if that returned 0, ip_question_answer(), which may be called again, then
 * ip_question_end().
 */
int ip_question_run(struct ip_question *q, const char *node, const char *service,
		    uint64_t flags, struct fi_info **info);
int ip_question_read(struct ip_question *q, const char *node, const char *service,
		     uint64_t flags);
void ip_question_answer(struct ip_question *q);
int ip_question_end(struct ip_question *q, struct fi_info **info);

#endif
