/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo from a line of fields, and its answer as lines of fields. A table names the fields of
 * struct fi_info for both. The answer stays under its name: objects are opened from it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"

enum part { INFO, TX, RX, EP, DOMAIN, FABRIC };

#define FIELD(name, part, type, member)                                                       \
	{                                                                                     \
		name, part, offsetof(struct type, member), sizeof(((struct type *)0)->member) \
	}

/* Fields since FABRIC_1.3 at the latest: older libraries have them all. */
static const struct field {
	const char *name;
	enum part part;
	size_t offset;
	size_t size;
} fields[] = {
	FIELD("caps", INFO, fi_info, caps),
	FIELD("mode", INFO, fi_info, mode),
	FIELD("format", INFO, fi_info, addr_format),
	FIELD("tx.caps", TX, fi_tx_attr, caps),
	FIELD("tx.mode", TX, fi_tx_attr, mode),
	FIELD("tx.op_flags", TX, fi_tx_attr, op_flags),
	FIELD("tx.msg_order", TX, fi_tx_attr, msg_order),
	FIELD("tx.comp_order", TX, fi_tx_attr, comp_order),
	FIELD("tx.inject", TX, fi_tx_attr, inject_size),
	FIELD("tx.size", TX, fi_tx_attr, size),
	FIELD("tx.iov", TX, fi_tx_attr, iov_limit),
	FIELD("tx.rma_iov", TX, fi_tx_attr, rma_iov_limit),
	FIELD("tx.tclass", TX, fi_tx_attr, tclass),
	FIELD("rx.caps", RX, fi_rx_attr, caps),
	FIELD("rx.mode", RX, fi_rx_attr, mode),
	FIELD("rx.op_flags", RX, fi_rx_attr, op_flags),
	FIELD("rx.msg_order", RX, fi_rx_attr, msg_order),
	FIELD("rx.comp_order", RX, fi_rx_attr, comp_order),
	FIELD("rx.buffered", RX, fi_rx_attr, total_buffered_recv),
	FIELD("rx.size", RX, fi_rx_attr, size),
	FIELD("rx.iov", RX, fi_rx_attr, iov_limit),
	FIELD("ep.type", EP, fi_ep_attr, type),
	FIELD("ep.protocol", EP, fi_ep_attr, protocol),
	FIELD("ep.protocol_version", EP, fi_ep_attr, protocol_version),
	FIELD("ep.max_msg", EP, fi_ep_attr, max_msg_size),
	FIELD("ep.prefix", EP, fi_ep_attr, msg_prefix_size),
	FIELD("ep.raw", EP, fi_ep_attr, max_order_raw_size),
	FIELD("ep.war", EP, fi_ep_attr, max_order_war_size),
	FIELD("ep.waw", EP, fi_ep_attr, max_order_waw_size),
	FIELD("ep.tag_format", EP, fi_ep_attr, mem_tag_format),
	FIELD("ep.tx_ctx", EP, fi_ep_attr, tx_ctx_cnt),
	FIELD("ep.rx_ctx", EP, fi_ep_attr, rx_ctx_cnt),
	FIELD("ep.auth_key_size", EP, fi_ep_attr, auth_key_size),
	FIELD("dom.threading", DOMAIN, fi_domain_attr, threading),
	FIELD("dom.control", DOMAIN, fi_domain_attr, control_progress),
	FIELD("dom.data", DOMAIN, fi_domain_attr, data_progress),
	FIELD("dom.rm", DOMAIN, fi_domain_attr, resource_mgmt),
	FIELD("dom.av_type", DOMAIN, fi_domain_attr, av_type),
	FIELD("dom.mr_mode", DOMAIN, fi_domain_attr, mr_mode),
	FIELD("dom.key_size", DOMAIN, fi_domain_attr, mr_key_size),
	FIELD("dom.cq_data", DOMAIN, fi_domain_attr, cq_data_size),
	FIELD("dom.cq_cnt", DOMAIN, fi_domain_attr, cq_cnt),
	FIELD("dom.ep_cnt", DOMAIN, fi_domain_attr, ep_cnt),
	FIELD("dom.tx_ctx_cnt", DOMAIN, fi_domain_attr, tx_ctx_cnt),
	FIELD("dom.rx_ctx_cnt", DOMAIN, fi_domain_attr, rx_ctx_cnt),
	FIELD("dom.max_tx", DOMAIN, fi_domain_attr, max_ep_tx_ctx),
	FIELD("dom.max_rx", DOMAIN, fi_domain_attr, max_ep_rx_ctx),
	FIELD("dom.max_stx", DOMAIN, fi_domain_attr, max_ep_stx_ctx),
	FIELD("dom.max_srx", DOMAIN, fi_domain_attr, max_ep_srx_ctx),
	FIELD("dom.cntr_cnt", DOMAIN, fi_domain_attr, cntr_cnt),
	FIELD("dom.mr_iov", DOMAIN, fi_domain_attr, mr_iov_limit),
	FIELD("dom.caps", DOMAIN, fi_domain_attr, caps),
	FIELD("dom.mode", DOMAIN, fi_domain_attr, mode),
	FIELD("dom.err_data", DOMAIN, fi_domain_attr, max_err_data),
	FIELD("dom.mr_cnt", DOMAIN, fi_domain_attr, mr_cnt),
	FIELD("dom.tclass", DOMAIN, fi_domain_attr, tclass),
	FIELD("fab.prov_version", FABRIC, fi_fabric_attr, prov_version),
	FIELD("fab.api", FABRIC, fi_fabric_attr, api_version),
};

static char *part_of(struct fi_info *info, enum part part)
{
	void *const parts[] = {
		[INFO] = info,
		[TX] = info->tx_attr,
		[RX] = info->rx_attr,
		[EP] = info->ep_attr,
		[DOMAIN] = info->domain_attr,
		[FABRIC] = info->fabric_attr,
	};

	return parts[part];
}

/* A number of 4 or 8 bytes. */
static void field_set(struct fi_info *info, const struct field *f, uint64_t value)
{
	uint32_t half = (uint32_t)value;

	memcpy(part_of(info, f->part) + f->offset,
	       f->size == sizeof(half) ? (void *)&half : (void *)&value, f->size);
}

static uint64_t field_get(struct fi_info *info, const struct field *f)
{
	uint32_t half;
	uint64_t value;

	if (f->size == sizeof(half)) {
		memcpy(&half, part_of(info, f->part) + f->offset, sizeof(half));
		return half;
	}
	memcpy(&value, part_of(info, f->part) + f->offset, sizeof(value));
	return value;
}

/* "1.17" */
static uint32_t api_version(const char *text)
{
	unsigned major = 0, minor = 0;

	if (!text || strcmp(text, "newest") == 0)
		return fi_version();
	sscanf(text, "%u.%u", &major, &minor);
	return FI_VERSION(major, minor);
}

/* "127.0.0.1:5000", or anything as a string. */
static void *address_make(const char *text, size_t *len)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));
	char host[64] = "";
	unsigned port = 0;

	if (sscanf(text, "%63[0-9.]:%u", host, &port) >= 1 &&
	    inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		*len = sizeof(*in);
		return in;
	}
	free(in);
	*len = strlen(text) + 1;
	return strdup(text);
}

static void fields_set(struct fi_info *info, const struct call *c)
{
	const char *text;

	for (size_t i = 0; i < COUNT_OF(fields); i++)
		if ((text = word_text(c, fields[i].name)))
			field_set(info, &fields[i], word_number(text));
	if ((text = word_text(c, "prov")))
		info->fabric_attr->prov_name = strdup(text);
	if ((text = word_text(c, "fabric")))
		info->fabric_attr->name = strdup(text);
	if ((text = word_text(c, "domain")))
		info->domain_attr->name = strdup(text);
	if ((text = word_text(c, "src")))
		info->src_addr = address_make(text, &info->src_addrlen);
	if ((text = word_text(c, "dest")))
		info->dest_addr = address_make(text, &info->dest_addrlen);
}

static void say_address(struct call *c, const char *key, const void *addr, size_t len)
{
	const struct sockaddr *sa = addr;
	char text[INET6_ADDRSTRLEN] = "";

	if (!addr)
		return;
	if (len >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6)
		say(c, " %s=in6:%s:%u", key,
		    inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)addr)->sin6_addr, text,
			      sizeof(text)),
		    ntohs(((const struct sockaddr_in6 *)addr)->sin6_port));
	else if (len >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET)
		say(c, " %s=in:%s:%u", key,
		    inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, text,
			      sizeof(text)),
		    ntohs(((const struct sockaddr_in *)addr)->sin_port));
	else if (len > 5 && memcmp(addr, "fi_", 3) == 0)
		say(c, " %s=%.*s", key, (int)strcspn(addr, ":"), (const char *)addr);
	else
		say(c, " %s=bytes:%zu", key, len);
}

static void say_info(struct call *c, struct fi_info *info)
{
	say(c, "\n prov=%s fabric=%s domain=%s", info->fabric_attr->prov_name,
	    info->fabric_attr->name, info->domain_attr->name);
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		say(c, " %s=%#llx", fields[i].name,
		    (unsigned long long)field_get(info, &fields[i]));
	say_address(c, "src", info->src_addr, info->src_addrlen);
	say_address(c, "dest", info->dest_addr, info->dest_addrlen);
	say(c, " nic=%s", info->nic ? "there" : "none");
}

/* getinfo NAME [hints=null] [node= service= flags= api=] FIELD=... [say=first|all] */
static long run_getinfo(struct call *c)
{
	const char *how = word_text(c, "say"), *hinted = word_text(c, "hints");
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	struct object *old = object_of(c, 1);
	unsigned cnt = 0;
	int ret;

	if (!hints)
		return RESULT_WRONG;
	if (old)
		object_drop(old);
	fields_set(hints, c);
	ret = fi_getinfo(api_version(word_text(c, "api")), word_text(c, "node"),
			 word_text(c, "service"), word_value(c, "flags", 0),
			 hinted ? NULL : hints, &list);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	for (struct fi_info *info = list; info; info = info->next)
		if (!how || strcmp(how, "first") != 0 || info == list) {
			say_info(c, info);
			cnt++;
		}
	old = object_new(c->words[1], NULL);
	if (!old)
		return RESULT_WRONG;
	old->info = list;
	return ret;
}

/* edit NAME FIELD=...: as a program changes an answer before it opens something from it */
static long run_edit(struct call *c)
{
	struct object *o = object_of(c, 1);

	if (!o || !o->info)
		return RESULT_ABSENT;
	fields_set(o->info, c);
	return 0;
}

/* version: the level of the interface */
static long run_version(struct call *c)
{
	say(c, " %u.%u", FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	return 0;
}

/* value WORD: print the number of a name */
static long run_value(struct call *c)
{
	if (c->cnt < 2)
		return RESULT_WRONG;
	say(c, " %#llx", (unsigned long long)word_number(c->words[1]));
	return 0;
}

const struct verb info_verbs[] = {
	{ "getinfo", run_getinfo }, { "edit", run_edit }, { "version", run_version },
	{ "value", run_value },	    { NULL, NULL },
};
