/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector object. FI_AV_MAP and FI_AV_TABLE give the same dense indices. An insertion
 * has ended when its call returns; a bound event queue is told all the same. Called by programs, on
 * any thread. Source: fi_av(3).
 */
#include <arpa/inet.h>
#include "absent.h"
#include "endpoint.h"
#include "event.h"

#define INSERT_FLAGS (FI_MORE | FI_SYNC_ERR)

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
static void insert_next(struct insertion *in, const union tcp_sockaddr *sock)
{
	struct weft_addr addr = { .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	fi_addr_t index = FI_ADDR_NOTAVAIL;
	int ret = -FI_EINVAL;

	if (sock && sock->sa.sa_family == in->av->domain->family && tcp_sockaddr_port(sock) &&
	    !tcp_sockaddr_any(sock)) {
		tcp_sockaddr_get(sock, &addr);
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
	union tcp_sockaddr sock;
	int ret = insert_check(av, cnt, flags, context);

	if (!ret && cnt && !addr)
		ret = udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insert",
				 "NULL for the addresses");
	if (ret)
		return ret;
	for (size_t i = 0; i < cnt; i++) {
		ret = tcp_sockaddr_copy(&sock, (const char *)addr + i * len, len);
		insert_next(&in, ret ? NULL : &sock);
	}
	return end(&in);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *out, uint64_t flags, void *context)
{
	struct udp_av *av = av_of(fid);
	struct insertion in = begin(av, out, flags, context);
	const struct tcp_lookup lookup = { node, service, 0, av->domain->family, SOCK_DGRAM };
	union tcp_sockaddr sock;
	char why[128];
	int ret = insert_check(av, 1, flags, context);

	if (!ret && (!node || !service))
		ret = udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insertsvc",
				 "NULL for the node or the service");
	if (ret)
		return ret;
	ret = tcp_resolve(&lookup, &sock, 1, why, sizeof(why));
	if (ret < 0)
		FI_WARN(&udp_provider, FI_LOG_AV, "%s\n", why);
	insert_next(&in, ret < 0 ? NULL : &sock);
	return end(&in);
}

/* The address that is @n behind @sock. Returns false if there is none. */
static bool count_up(union tcp_sockaddr *sock, uint32_t n)
{
	/* the last 32 bits of either kind of address */
	void *where = sock->sa.sa_family == AF_INET ? (void *)&sock->in.sin_addr
						    : &sock->in6.sin6_addr.s6_addr[12];
	uint32_t low, next;

	memcpy(&low, where, sizeof(low));
	if (__builtin_add_overflow(ntohl(low), n, &next))
		return false;
	next = htonl(next);
	memcpy(where, &next, sizeof(next));
	return true;
}

/* A range begins at a number: names of hosts are not counted up. */
static int av_insertsym(struct fid_av *fid, const char *node, size_t node_cnt,
			const char *service, size_t svc_cnt, fi_addr_t *out, uint64_t flags,
			void *context)
{
	struct udp_av *av = av_of(fid);
	struct insertion in = begin(av, out, flags, context);
	const struct tcp_lookup lookup = { node, service, node_cnt > 1 ? FI_NUMERICHOST : 0,
					   av->domain->family, SOCK_DGRAM };
	union tcp_sockaddr first, sock;
	size_t cnt = 0;
	char why[128];
	int ret = 0;

	if (!node || !service || __builtin_mul_overflow(node_cnt, svc_cnt, &cnt) ||
	    node_cnt > UINT32_MAX || svc_cnt > UINT16_MAX)
		ret = udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_insertsym",
				 "NULL for the node or the service, or too many");
	if (!ret)
		ret = insert_check(av, cnt, flags, context);
	if (ret)
		return ret;
	ret = tcp_resolve(&lookup, &first, 1, why, sizeof(why));
	if (ret < 0)
		FI_WARN(&udp_provider, FI_LOG_AV, "%s\n", why);
	for (size_t i = 0; i < cnt; i++) {
		uint32_t port = ret < 0 ? 0 : tcp_sockaddr_port(&first);
		bool there = ret >= 0;

		sock = first;
		if (there)
			there = count_up(&sock, (uint32_t)(i / svc_cnt));
		port += (uint32_t)(i % svc_cnt);
		if (there)
			tcp_sockaddr_set_port(&sock, (uint16_t)port);
		insert_next(&in, there && port <= UINT16_MAX ? &sock : NULL);
	}
	return end(&in);
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
	union tcp_sockaddr sock;

	if (!len || (*len && !addr))
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_lookup",
				  "NULL for the address or its length");
	if (!udp_enter(av->domain))
		return -FI_EOPBADSTATE;
	found = av_get(&av->table, index);
	if (found)
		tcp_sockaddr_set(&sock, found);
	udp_leave(av->domain);
	if (!found)
		return udp_refuse(FI_LOG_AV, -FI_EINVAL, "fi_av_lookup",
				  "no such address in the vector");
	/* Whether that was all of it is what *len says. */
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
	union tcp_sockaddr sock = { 0 };
	char text[80];
	int n;

	if (!addr || !len || (*len && !buf))
		return NULL;
	memcpy(&sock, addr, six ? sizeof(sock.in6) : sizeof(sock.in));
	tcp_sockaddr_str(&sock, text, sizeof(text));
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
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return udp_refuse(FI_LOG_AV, -FI_EBADFLAGS, "fi_av_open",
				  "flags are FI_EVENT and FI_SYMMETRIC");
	if (attr->name)
		return udp_refuse(FI_LOG_AV, -FI_ENOSYS, "fi_av_open",
				  "vectors are not shared by name");
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
