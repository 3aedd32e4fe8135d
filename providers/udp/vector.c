/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector object. FI_AV_MAP and FI_AV_TABLE give the same dense indices. An insertion
 * has ended when its call returns; a bound event queue is told all the same. Called by programs, on
 * any thread. Source: fi_av(3).
 */
#include <arpa/inet.h>
#include <ctype.h>
#include "absent.h"
#include "endpoint.h"
#include "event.h"

#define INSERT_FLAGS (FI_MORE | FI_SYNC_ERR)
#define NODE_MAX     256 /* bytes of a name, with its NUL */
#define SUFFIX_MAX   18	 /* digits of the number at the end of a name */

static struct udp_av *av_of(struct fid_av *fid)
{
	return container_of(fid, struct udp_av, fid);
}

/* One call that inserts addresses. */
struct insertion {
	struct udp_av *av;
	/* NULL: not wanted */
	fi_addr_t *out;
	/* with FI_SYNC_ERR: an error for each address */
	int *errors;
	void *context;
	size_t at;
	int done;
	bool logged;
};

static int insert_check(const struct udp_av *av, size_t cnt, uint64_t flags, const void *context)
{
	if (flags & ~INSERT_FLAGS)
		return udp_refuse(FI_LOG_AV, -FI_EBADFLAGS, "fi_av_insert",
				  "flags are FI_MORE and FI_SYNC_ERR");
	if (cnt > INT32_MAX || (flags & FI_SYNC_ERR && !context))
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insert",
				  "too many, or NULL for the errors that FI_SYNC_ERR asks for");
	if (av->flags & FI_EVENT && !av->eq)
		return udp_refuse(FI_LOG_AV, -FI_ENOEQ, "fi_av_insert",
				  "FI_EVENT, and no event queue is bound");
	return udp_here(av->domain) ? 0 : -FI_EOPBADSTATE;
}

static struct insertion begin(struct udp_av *av, fi_addr_t *out, uint64_t flags, void *context)
{
	return (struct insertion){ .av = av,
				   .out = out,
				   .errors = flags & FI_SYNC_ERR ? context : NULL,
				   .context = context };
}

static void tell_error(const struct insertion *in, int err)
{
	if (in->errors)
		in->errors[in->at] = -err;
	if (in->av->eq && err)
		udp_eq_error(in->av->eq, &(struct fi_eq_err_entry){
						 .fid = &in->av->fid.fid,
						 .context = in->context,
						 .data = in->at,
						 .err = -err,
						 .prov_errno = -err,
					 });
}

/* Inserts the next address. @sock: NULL: it is none, or can't be resolved. */
static void insert_next(struct insertion *in, const union ip_sockaddr *sock)
{
	struct weft_addr addr = { .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	fi_addr_t index = FI_ADDR_NOTAVAIL;
	int ret = -FI_EINVAL;

	if (sock && sock->sa.sa_family == in->av->domain->family && ip_sockaddr_port(sock) &&
	    !ip_sockaddr_any(sock)) {
		ip_sockaddr_get(sock, &addr);
		platform_lock(&in->av->domain->lock);
		ret = av_insert(&in->av->table, &addr, &index);
		platform_unlock(&in->av->domain->lock);
	}
	if (ret == -FI_EINVAL && !in->logged) {
		FI_WARN(&udp_provider, FI_LOG_AV,
			"address %zu is no IPv%d socket address with a host and a port\n",
			in->at, in->av->domain->family == AF_INET ? 4 : 6);
		in->logged = true;
	}
	if (in->out)
		in->out[in->at] = ret < 0 ? FI_ADDR_NOTAVAIL : index;
	tell_error(in, ret < 0 ? ret : 0);
	in->done += ret >= 0;
	in->at++;
}

/* Returns what the call returns. */
static int end(const struct insertion *in)
{
	const struct fi_eq_entry entry = { .fid = &in->av->fid.fid,
					   .context = in->context,
					   .data = (uint64_t)in->done };
	struct eq_event *event;

	if (!in->av->eq)
		return in->done;
	event = eq_event_new(FI_AV_COMPLETE, &entry, sizeof(entry));
	if (!event)
		return -FI_ENOMEM;
	udp_eq_post(in->av->eq, event);
	return in->av->flags & FI_EVENT ? 0 : in->done;
}

static int av_insert_call(struct fid_av *fid, const void *addr, size_t cnt, fi_addr_t *out,
			  uint64_t flags, void *context)
{
	struct udp_av *av = av_of(fid);
	size_t len = av->domain->family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);
	struct insertion in = begin(av, out, flags, context);
	union ip_sockaddr sock;
	int ret = insert_check(av, cnt, flags, context);

	if (!ret && cnt && !addr)
		ret = udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insert",
				 "NULL for the addresses");
	if (ret)
		return ret;
	for (size_t i = 0; i < cnt; i++) {
		ret = ip_sockaddr_copy(&sock, (const char *)addr + i * len, len);
		insert_next(&in, ret ? NULL : &sock);
	}
	return end(&in);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *out, uint64_t flags, void *context)
{
	struct udp_av *av = av_of(fid);
	struct insertion in = begin(av, out, flags, context);
	const struct ip_lookup lookup = { node, service, 0, av->domain->family, SOCK_DGRAM };
	union ip_sockaddr sock;
	char why[128];
	int ret = insert_check(av, 1, flags, context);

	if (!ret && (!node || !service))
		ret = udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insertsvc",
				 "NULL for the node or the service");
	if (ret)
		return ret;
	ret = ip_resolve(&lookup, &sock, 1, why, sizeof(why));
	if (ret < 0)
		FI_WARN(&udp_provider, FI_LOG_AV, "%s\n", why);
	insert_next(&in, ret < 0 ? NULL : &sock);
	return end(&in);
}

/* Makes @sock the next address. Returns false if it is the last one. */
static bool count_up(union ip_sockaddr *sock)
{
	bool six = sock->sa.sa_family == AF_INET6;
	uint8_t *byte = six ? sock->in6.sin6_addr.s6_addr : (uint8_t *)&sock->in.sin_addr;
	size_t at = six ? sizeof(sock->in6.sin6_addr) : sizeof(sock->in.sin_addr);

	while (at && !++byte[at - 1])
		at--;
	return at;
}

static bool is_number(const char *node)
{
	return !node[strspn(node, "0123456789.")] || strchr(node, ':');
}

/* Writes the name @n after @first: "host10" is one after "host09". Returns false if there is none. */
static bool name_count(const char *first, size_t n, char *name, size_t room)
{
	size_t len = strlen(first), start = len;
	int written;

	while (start && isdigit((unsigned char)first[start - 1]) && len - start < SUFFIX_MAX)
		start--;
	if (start == len || len >= room)
		return false;
	written = snprintf(name, room, "%.*s%0*llu", (int)start, first, (int)(len - start),
			   strtoull(first + start, NULL, 10) + n);
	return written > 0 && (size_t)written < room;
}

/* Inserts the services of a node, whose first is at @sock. @sock: NULL: nowhere. */
static void insert_services(struct insertion *in, const union ip_sockaddr *sock, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		union ip_sockaddr at = { 0 };
		uint32_t port = 0;

		if (sock) {
			at = *sock;
			port = ip_sockaddr_port(sock) + (uint32_t)i;
			ip_sockaddr_set_port(&at, (uint16_t)port);
		}
		insert_next(in, sock && port <= UINT16_MAX ? &at : NULL);
	}
}

/* Inserts a range. A number counts up as an address, a name by the number that it ends with. */
static int insert_range(struct insertion *in, struct ip_lookup *lookup, size_t node_cnt,
			size_t svc_cnt)
{
	const char *node = lookup->node;
	bool number = is_number(node);
	char name[NODE_MAX], why[128] = "";
	union ip_sockaddr sock;
	int ret = 0;

	for (size_t i = 0; i < node_cnt && svc_cnt; i++) {
		if (i && !number) {
			name_count(node, i, name, sizeof(name));
			lookup->node = name;
		}
		if (!i || !number)
			ret = ip_resolve(lookup, &sock, 1, why, sizeof(why));
		if (ret < 0 && !in->logged)
			FI_WARN(&udp_provider, FI_LOG_AV, "%s\n", why);
		if (i && number && ret >= 0 && !count_up(&sock))
			ret = -FI_EINVAL;
		insert_services(in, ret < 0 ? NULL : &sock, svc_cnt);
	}
	return end(in);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t node_cnt,
			const char *service, size_t svc_cnt, fi_addr_t *out, uint64_t flags,
			void *context)
{
	struct udp_av *av = av_of(fid);
	struct insertion in = begin(av, out, flags, context);
	struct ip_lookup lookup = { node, service, 0, av->domain->family, SOCK_DGRAM };
	char last[NODE_MAX];
	size_t cnt = 0;
	int ret = 0;

	if (!node || !service || __builtin_mul_overflow(node_cnt, svc_cnt, &cnt) ||
	    node_cnt > UINT32_MAX || svc_cnt > UINT16_MAX)
		ret = udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insertsym",
				 "NULL for the node or the service, or too many");
	else if (node_cnt > 1 && !is_number(node) &&
		 !name_count(node, node_cnt - 1, last, sizeof(last)))
		ret = udp_refuse(
			FI_LOG_AV, -FI_EINVAL, "fi_av_insertsym",
			"a node that is no address and ends with no number to count by");
	if (!ret)
		ret = insert_check(av, cnt, flags, context);
	return ret ? ret : insert_range(&in, &lookup, node_cnt, svc_cnt);
}

static int av_remove_call(struct fid_av *fid, fi_addr_t *addr, size_t cnt, uint64_t flags)
{
	struct udp_av *av = av_of(fid);
	int ret;

	if (flags || (cnt && !addr))
		return udp_refuse(FI_LOG_AV, flags ? -FI_EBADFLAGS : -FI_EINVAL, "fi_av_remove",
				  "flags, or NULL for the addresses");
	if (!udp_enter(av->domain))
		return -FI_EOPBADSTATE;
	ret = av_removable(&av->table, addr, cnt);
	for (size_t i = 0; i < cnt && !ret; i++)
		av_remove(&av->table, addr[i]);
	udp_leave(av->domain);
	return ret ? udp_refuse(FI_LOG_AV, ret, "fi_av_remove",
				"an address that is not in the vector, or is listed twice")
		   : 0;
}

static int av_lookup(struct fid_av *fid, fi_addr_t index, void *addr, size_t *len)
{
	struct udp_av *av = av_of(fid);
	const struct weft_addr *found;
	union ip_sockaddr sock;

	if (!len || (*len && !addr))
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_lookup",
				  "NULL for the address or its length");
	if (!udp_enter(av->domain))
		return -FI_EOPBADSTATE;
	found = av_get(&av->table, index);
	if (found)
		ip_sockaddr_set(&sock, found);
	udp_leave(av->domain);
	if (!found)
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_lookup",
				  "no such address in the vector");
	/* *len tells the program whether there was room for all of it. */
	udp_name_copy(&sock, addr, len);
	return 0;
}

static int av_lookup2(struct fid_av *fid, fi_addr_t addr, void *buf, size_t *len,
		      uint64_t flags, struct fid_xpu_ctx *ctx)
{
	size_t room = len ? *len : 0;
	int ret;

	if (flags || ctx)
		return -FI_ENOSYS;
	ret = av_lookup(fid, addr, buf, len);
	return !ret && room < *len ? -FI_ETOOSMALL : ret;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	bool six = av_of(fid)->domain->family == AF_INET6;
	union ip_sockaddr sock = { 0 };
	char text[80];
	int n;

	if (!addr || !len || (*len && !buf))
		return NULL;
	memcpy(&sock, addr, six ? sizeof(sock.in6) : sizeof(sock.in));
	ip_sockaddr_str(&sock, text, sizeof(text));
	n = snprintf(buf, *len, "fi_sockaddr_in%s://%s", six ? "6" : "", text);
	*len = n < 0 ? 0 : (size_t)n + 1;
	return buf;
}

static int av_no_set(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set,
		     void *context)
{
	return -FI_ENOSYS;
}

static int av_no_insert_key(struct fid_av *fid, const void *key, size_t len, fi_addr_t *addr,
			    uint64_t flags)
{
	return -FI_ENOSYS;
}

static int av_no_lookup_key(struct fid_av *fid, fi_addr_t addr, void *key, size_t *len)
{
	return -FI_ENOSYS;
}

static int av_no_user_id(struct fid_av *fid, fi_addr_t addr, fi_addr_t user_id, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int av_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct udp_av *av = container_of(fid, struct udp_av, fid.fid);
	struct udp_eq *eq;

	if (!target || target->fclass != FI_CLASS_EQ || flags || av->eq)
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_bind",
				  "one event queue is bound to a vector, without flags");
	eq = container_of(target, struct udp_eq, fid.fid);
	if (eq->fabric != av->domain->fabric)
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_bind",
				  "a queue of another fabric");
	udp_ref(&eq->refs);
	av->eq = eq;
	return 0;
}

static int av_close(struct fid *fid)
{
	struct udp_av *av = container_of(fid, struct udp_av, fid.fid);

	if (udp_in_use(&av->refs))
		return udp_refuse(FI_LOG_AV, -FI_EBUSY, "fi_close of an address vector",
				  "an endpoint is bound to it; close that first");
	if (av->eq)
		udp_unref(&av->eq->refs);
	av_fini(&av->table);
	udp_unref(&av->domain->refs);
	platform_free(av);
	return 0;
}

static struct fi_ops av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = udp_no_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert_call,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove_call,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_no_set,
	.insert_auth_key = av_no_insert_key,
	.lookup_auth_key = av_no_lookup_key,
	.set_user_id = av_no_user_id,
	.lookup2 = av_lookup2,
};

int udp_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out,
		void *context)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid);
	struct udp_av *av;

	if (!attr || !out || attr->rx_ctx_bits)
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_open",
				  "NULL for the attributes, or where the vector is to go, or "
				  "rx_ctx_bits: an endpoint has one context");
	/* With FI_READ too, by which a program opens a shared vector that another has filled. */
	if (attr->name)
		return udp_refuse(FI_LOG_AV, -FI_ENOSYS, "fi_av_open",
				  "vectors are not shared by name");
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return udp_refuse(FI_LOG_AV, -FI_EBADFLAGS, "fi_av_open",
				  "flags are FI_EVENT and FI_SYMMETRIC");
	av = platform_alloc(sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	if (av_init(&av->table, attr->count ? attr->count : 64)) {
		platform_free(av);
		return -FI_ENOMEM;
	}
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fi_ops;
	av->fid.ops = &av_ops;
	av->domain = domain;
	av->flags = attr->flags;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	udp_ref(&domain->refs);
	*out = &av->fid;
	return 0;
}
