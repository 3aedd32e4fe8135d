/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inserting into an address vector: addresses, names, and ranges of names. Called by programs;
 * names are resolved before the domain is held.
 *
 * With FI_EVENT an insertion is as synchronous as without it, and reports to the event queue: one
 * error for each address that failed, with its index, and then one FI_AV_COMPLETE.
 *
 * Source: fi_av(3), fi_av_insert, fi_av_insertsvc, fi_av_insertsym, FI_EVENT.
 */
#include <rdma/fi_errno.h>
#include "av_fid.h"
#include "ep_names.h"
#include "eq_fid.h"
#include "events.h"
#include "guard.h"
#include "refuse.h"

#define WHY_LEN	   128u
#define NODE_MAX   256u /* bytes of a name, with its NUL */
#define PORT_MAX   65535u
#define SUFFIX_MAX 18u		 /* digits of the number at the end of a name */
#define STR_SCHEME "fi_sockaddr" /* FI_ADDR_STR: begins all forms with host and port */

/* A call of a program that inserts. */
struct engine_insertion {
	struct engine_av *av;
	/* Next output, or NULL; holds the user id of its address with FI_AV_USER_ID */
	fi_addr_t *out;
	/* Next error to write, or NULL */
	int *errors;
	bool ids;
	void *context;
	/* Index of the next address */
	size_t idx;
	/* Addresses inserted */
	int done;
	/* With an event queue: the FI_AV_COMPLETE to post */
	struct eq_event *end;
};

#define AV_INSERT "fi_av_insert, fi_av_insertsvc or fi_av_insertsym"

static int engine_insertion_refuse(const struct engine_av *av, int err, const char *why)
{
	return engine_refuse(av->domain->family, FI_LOG_AV, err, AV_INSERT, why);
}

/* Checks the flags and parameters of an insertion. Nothing has happened when it fails. */
static int engine_insertion_check(const struct engine_av *av, size_t cnt, const fi_addr_t *out,
				  uint64_t flags, const void *context)
{
	if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID))
		return engine_refuse_value(
			av->domain->family, FI_LOG_AV, -FI_EBADFLAGS, AV_INSERT,
			"flags are FI_MORE, FI_SYNC_ERR, FI_AV_USER_ID", flags);
	if (flags & FI_SYNC_ERR && av->flags & FI_EVENT) /* errors are reported in one place */
		return engine_insertion_refuse(
			av, -FI_EBADFLAGS,
			"FI_SYNC_ERR where FI_EVENT has errors reported in the event queue");
	if (flags & FI_SYNC_ERR && !context)
		return engine_insertion_refuse(
			av, -FI_EINVAL, "FI_SYNC_ERR, and no array for errors as context");
	if (flags & FI_AV_USER_ID && (av->flags & FI_AV_USER_ID || (cnt && !out)))
		return engine_insertion_refuse(
			av, -FI_EINVAL,
			"FI_AV_USER_ID without ids, or where the vector was opened with it");
	if (cnt > INT32_MAX)
		return engine_insertion_refuse(av, -FI_EINVAL, "more than a call can count");
	if (av->flags & FI_READ)
		return engine_insertion_refuse(
			av, -FI_EACCES, "the vector was opened with FI_READ, to be read alone");
	if (av->flags & FI_EVENT && !av->eq)
		return engine_insertion_refuse(
			av, -FI_ENOEQ,
			"FI_EVENT, and no event queue is bound; call fi_av_bind first");
	return 0;
}

/* Begins a checked insertion; holds the domain if it returns 0. */
static int engine_insertion_begin(struct engine_insertion *in, struct engine_av *av,
				  fi_addr_t *out, uint64_t flags, void *context)
{
	int ret;

	*in = (struct engine_insertion){
		.av = av,
		.out = out,
		.ids = flags & FI_AV_USER_ID,
		.errors = flags & FI_SYNC_ERR ? context : NULL,
		.context = context,
	};
	if (av->eq) {
		in->end = eq_event_new(FI_AV_COMPLETE, NULL, sizeof(struct fi_eq_entry));
		if (!in->end)
			return -FI_ENOMEM;
	}
	engine_enter(av->domain);
	ret = engine_av_change(av);
	if (ret) {
		engine_leave(av->domain);
		eq_event_free(in->end);
	}
	return ret;
}

static void engine_insertion_failed(struct engine_insertion *in, int err)
{
	struct engine_av *av = in->av;
	struct fi_eq_err_entry entry = {
		.fid = &av->fid.fid,
		.context = in->context,
		.data = in->idx,
		.err = -err,
		.prov_errno = -err,
	};

	if (in->out)
		*in->out = FI_ADDR_NOTAVAIL;
	if (av->eq && engine_eq_push_error(av->eq, &entry))
		FI_WARN(av->domain->family->provider, FI_LOG_AV,
			"no memory to report that address %zu failed\n", in->idx);
}

/* Inserts the next address, @address, or reports the error @err for it. */
static void engine_insertion_next(struct engine_insertion *in, int err,
				  const struct weft_addr *address)
{
	fi_addr_t addr;

	if (!err)
		err = engine_av_add(in->av, address, in->ids ? in->out : NULL, &addr);
	if (err) {
		engine_insertion_failed(in, err);
	} else {
		in->done++;
		if (in->out)
			*in->out = addr;
	}
	if (in->errors)
		*in->errors++ = -err;
	if (in->out)
		in->out++;
	in->idx++;
}

/* Ends the insertion. Returns what the call returns. */
static int engine_insertion_end(struct engine_insertion *in)
{
	struct engine_av *av = in->av;
	struct fi_eq_entry entry = { .fid = &av->fid.fid,
				     .context = in->context,
				     .data = (uint64_t)in->done };

	engine_av_changed(av);
	engine_leave(av->domain);
	if (!in->end)
		return in->done;
	eq_event_fill(in->end, &entry, sizeof(entry));
	engine_eq_post(av->eq, in->end);
	return av->flags & FI_EVENT ? 0 : in->done;
}

int engine_av_insert(struct fid_av *fid, const void *addr, size_t cnt, fi_addr_t *out,
		     uint64_t flags, void *context)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid);
	const struct engine_family *family = av->domain->family;
	struct engine_insertion in;
	struct engine_names names;
	struct weft_addr address;
	char why[WHY_LEN] = "";
	bool logged = false;
	int ret;

	ret = engine_insertion_check(av, cnt, out, flags, context);
	if (!ret && cnt && !addr)
		ret = engine_insertion_refuse(av, -FI_EINVAL, "NULL for the addresses");
	if (!ret)
		ret = engine_insertion_begin(&in, av, out, flags, context);
	if (ret)
		return ret;
	for (size_t i = 0; i < cnt; i++) {
		if (i)
			engine_names_next(&names);
		else
			engine_names_begin(&names, family, addr);
		ret = engine_names_read(&names, &address, why, sizeof(why));
		if (ret && !logged) {
			FI_WARN(family->provider, FI_LOG_AV, "address %zu of %zu: %s\n", i + 1,
				cnt, why);
			logged = true;
		}
		engine_insertion_next(&in, ret, &address);
	}
	return engine_insertion_end(&in);
}

static bool engine_begins(const char *str, const char *with)
{
	while (*with && *str == *with) {
		str++;
		with++;
	}
	return !*with;
}

/*
 * Splits "scheme://host:port" or "scheme://[host]:port".
 * Returns the port, which is where @node ends, or NULL for anything else.
 */
static const char *engine_str_split(const char *str, char *node)
{
	const char *host, *end, *port;
	size_t len;

	for (host = str; *host && *host != ':'; host++)
		;
	if (!engine_begins(str, STR_SCHEME) || !engine_begins(host, "://"))
		return NULL;
	host += 3;
	if (*host == '[') {
		for (end = ++host; *end && *end != ']'; end++)
			;
		if (*end != ']')
			return NULL;
		port = end + 1;
	} else {
		for (end = host; *end && *end != ':'; end++)
			;
		port = end;
	}
	len = (size_t)(end - host);
	if (*port != ':' || !len || len >= NODE_MAX)
		return NULL;
	memcpy(node, host, len);
	node[len] = '\0';
	return port + 1;
}

/* Resolves a name to an address that an endpoint can have: never the wildcard address. */
static int engine_resolve(const struct engine_family *family, const char *node,
			  const char *service, struct weft_addr *address)
{
	int ret = family->resolve(node, service, 0, address);

	return !ret && !addr_valid(address) ? -FI_ENODATA : ret;
}

/* Reads FI_ADDR_STR, or "fi_sockaddr://host:port", where a node is given. */
static int engine_str_read(const struct engine_family *family, const char *text,
			   struct weft_addr *address)
{
	size_t len = engine_name_len(family, text, SIZE_MAX);
	char host[NODE_MAX], why[WHY_LEN];
	const char *port;

	if (len && !family->addr_read(text, len, address, why, sizeof(why)))
		return 0;
	port = engine_str_split(text, host);
	return port ? engine_resolve(family, host, port, address) : -FI_EINVAL;
}

/* Logs a name that does not resolve, with the reason that the resolver gives. */
static void engine_nowhere(const struct engine_family *family, const char *node,
			   const char *service, int err)
{
	FI_WARN(family->provider, FI_LOG_AV,
		"fi_av_insertsvc or fi_av_insertsym: node %s, service %s lead to no address (%s)\n",
		node, service ? service : "none", fi_strerror(-err));
}

int engine_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *out, uint64_t flags, void *context)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid);
	const struct engine_family *family = av->domain->family;
	struct engine_insertion in;
	struct weft_addr address;
	char host[NODE_MAX];
	int ret, err;

	if (!family->resolve)
		return -FI_ENOSYS; /* endpoints of this family are not found by names */
	ret = engine_insertion_check(av, 1, out, flags, context);
	if (ret)
		return ret;
	if (node && !service && engine_names_are_strings(family)) {
		err = engine_str_read(family, node, &address);
	} else {
		if (node && !service) {
			service = engine_str_split(node, host);
			node = host;
		}
		if (!node || !service)
			return engine_insertion_refuse(av, -FI_EINVAL, "no node or no service");
		err = engine_resolve(family, node, service, &address);
	}
	if (err)
		engine_nowhere(family, node, service, err);
	ret = engine_insertion_begin(&in, av, out, flags, context);
	if (ret)
		return ret;
	engine_insertion_next(&in, err, &address);
	ret = engine_insertion_end(&in);
	return err && !(av->flags & FI_EVENT) ? err : ret;
}

/* An address of a range. */
struct engine_range_addr {
	struct weft_addr address;
	int err;
};

static bool engine_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool engine_node_numeric(const char *node)
{
	const char *at = node;

	while (*at && *at != ':' && (engine_is_digit(*at) || *at == '.'))
		at++;
	if (!*at)
		return true;
	while (*at && *at != ':')
		at++;
	return *at == ':';
}

static bool engine_has_port(const struct weft_addr *address)
{
	return address->family == ADDR_FAMILY_INET || address->family == ADDR_FAMILY_INET6;
}

/*
 * Adds @n to an IP address, as to a number in network byte order. 0, or -FI_EINVAL past the last
 * address.
 */
static int engine_ip_add(struct weft_addr *address, uint64_t n)
{
	if (!engine_has_port(address))
		return n ? -FI_EINVAL : 0;
	for (size_t i = address->family == ADDR_FAMILY_INET6 ? 16 : 4; i-- > 0 && n;) {
		n += address->ip[i];
		address->ip[i] = (uint8_t)n;
		n >>= 8;
	}
	return n ? -FI_EINVAL : 0;
}

/* Writes the name @n after @first: "host10" is one after "host09". Returns false if there is none. */
static bool engine_name_count(const char *first, uint64_t n, char *name)
{
	size_t len = strlen(first), start = len;
	uint64_t number = 0, carry;

	while (start && engine_is_digit(first[start - 1]) && len - start < SUFFIX_MAX)
		start--;
	if (start == len || len >= NODE_MAX)
		return false;
	memcpy(name, first, len + 1);
	for (size_t i = start; i < len; i++)
		number = number * 10 + (uint64_t)(first[i] - '0');
	number += n;
	carry = number;
	for (size_t i = len; i-- > start; carry /= 10)
		name[i] = (char)('0' + carry % 10);
	for (; carry; carry /= 10) { /* the number has one digit more than that of @first */
		if (++len >= NODE_MAX)
			return false;
		memmove(name + start + 1, name + start, len - start);
		name[start] = (char)('0' + carry % 10);
	}
	return true;
}

/* Resolves the service @n numbers above @service, on the same node. */
static struct engine_range_addr engine_service_at(const struct engine_family *family,
						  const char *node, const char *service,
						  size_t n,
						  const struct engine_range_addr *first)
{
	struct engine_range_addr at = *first;
	char name[NODE_MAX];

	if (at.err || !n)
		return at;
	if (!engine_has_port(&at.address)) {
		at.err = engine_name_count(service, n, name)
				 ? engine_resolve(family, node, name, &at.address)
				 : -FI_EINVAL;
	} else if (n > PORT_MAX - at.address.port) {
		at.err = -FI_EINVAL;
	} else {
		at.address.port = (uint16_t)(at.address.port + n);
	}
	return at;
}

/* Numeric nodes are resolved once, names one by one; all services of a node follow it. */
static void engine_range_resolve(const struct engine_family *family, const char *node,
				 size_t node_cnt, const char *service, size_t svc_cnt,
				 struct engine_range_addr *places)
{
	bool numeric = engine_node_numeric(node);
	char name[NODE_MAX];

	for (size_t i = 0; i < node_cnt; i++) {
		struct engine_range_addr *first = &places[i * svc_cnt];
		const char *which = node;

		if (i && !numeric) {
			engine_name_count(node, i, name);
			which = name;
		}
		if (i && numeric) {
			*first = places[0];
			if (!first->err)
				first->err = engine_ip_add(&first->address, i);
		} else {
			first->err = engine_resolve(family, which, service, &first->address);
		}
		for (size_t j = 1; j < svc_cnt; j++)
			first[j] = engine_service_at(family, which, service, j, first);
	}
}

/* Returns false if several names are asked for and @node has no number to count from. */
static bool engine_range_counts(const char *node, size_t node_cnt)
{
	char name[NODE_MAX];

	return node_cnt <= 1 || engine_node_numeric(node) ||
	       engine_name_count(node, node_cnt - 1, name);
}

/* Inserts the addresses of a range. Returns what fi_av_insertsym() returns. */
static int engine_range_insert(struct engine_av *av, const struct engine_range_addr *places,
			       size_t cnt, fi_addr_t *out, uint64_t flags, void *context)
{
	struct engine_insertion in;
	int ret = engine_insertion_begin(&in, av, out, flags, context);

	if (ret)
		return ret;
	for (size_t i = 0; i < cnt; i++)
		engine_insertion_next(&in, places[i].err, &places[i].address);
	return engine_insertion_end(&in);
}

int engine_av_insertsym(struct fid_av *fid, const char *node, size_t node_cnt,
			const char *service, size_t svc_cnt, fi_addr_t *out, uint64_t flags,
			void *context)
{
	struct engine_av *av = container_of(fid, struct engine_av, fid);
	const struct engine_family *family = av->domain->family;
	struct engine_range_addr *places = NULL;
	size_t cnt;
	int ret;

	if (!family->resolve)
		return -FI_ENOSYS;
	if (__builtin_mul_overflow(node_cnt, svc_cnt, &cnt))
		return engine_insertion_refuse(av, -FI_EINVAL, "more than the maximum");
	ret = engine_insertion_check(av, cnt, out, flags, context);
	if (ret)
		return ret;
	if (!node || !service)
		return engine_insertion_refuse(av, -FI_EINVAL, "no node or no service");
	if (!engine_range_counts(node, node_cnt))
		return engine_insertion_refuse(
			av, -FI_EINVAL,
			"a node that is no address and ends with no number to count by");
	if (cnt) {
		places = platform_alloc(cnt * sizeof(*places));
		if (!places)
			return -FI_ENOMEM;
		engine_range_resolve(family, node, node_cnt, service, svc_cnt, places);
	}
	ret = engine_range_insert(av, places, cnt, out, flags, context);
	platform_free(places);
	return ret;
}
