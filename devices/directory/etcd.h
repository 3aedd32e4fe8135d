/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is asked of etcd and what it answers, as the texts of its JSON gateway. Pure: any thread.
 * Source: etcd 3.4, api_reference_v3 and api_grpc_gateway: numbers of 64 bits are texts, keys and values base64, zeros
 * and false are left out.
 */
#ifndef WEFT_DEVICES_DIRECTORY_ETCD_H
#define WEFT_DEVICES_DIRECTORY_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCD_GRANT  "/v3/lease/grant"
#define ETCD_KEEP   "/v3/lease/keepalive"
#define ETCD_REVOKE "/v3/lease/revoke"
#define ETCD_PUT    "/v3/kv/put"
#define ETCD_RANGE  "/v3/kv/range"
#define ETCD_WATCH  "/v3/watch"

/* A header that has a member refuse, and end a watch, when its cluster has no majority. */
#define ETCD_HAS_LEADER "Grpc-Metadata-Hasleader: true"

/* Bytes of a key at most, without its zero byte; longer ones are left out of lists. */
#define ETCD_KEY_MAX 512u

/*
 * struct etcd_kv - a key
 * @value: @value_len bytes, and a zero byte; NULL where no value was asked for, or it is @deleted
 * @lease: with which the key ends, or 0
 */
struct etcd_kv {
	char *key;
	char *value;
	size_t value_len;
	uint64_t lease;
	bool deleted;
};

/*
 * struct etcd_list - keys that a range has, or that a watch says have changed
 * @revision: of the whole store
 * @more:     the range goes on behind the last of these
 */
struct etcd_list {
	struct etcd_kv *kvs;
	size_t cnt;
	uint64_t revision;
	bool more;
};

/*
 * struct etcd_range - keys to ask for, or to watch
 * @key:       the first; @end: the first behind them, NULL: @key alone
 * @revision:  RANGE: of this one, 0: as it is; WATCH: changes from this one on
 * @limit:     RANGE: at most so many; 0: all
 * @keys_only: RANGE: without their values
 */
struct etcd_range {
	const char *key;
	const char *end;
	uint64_t revision;
	uint32_t limit;
	bool keys_only;
};

/* What is asked, by each of the paths above; returned owned (free()), or NULL without memory */
char *etcd_ask_grant(uint32_t seconds);
char *etcd_ask_lease(uint64_t lease); /* KEEP, REVOKE */
char *etcd_ask_put(const char *key, const char *value, uint64_t lease);
char *etcd_ask_range(const struct etcd_range *range);
char *etcd_ask_watch(const struct etcd_range *range);

/*
 * etcd_refused - what an answer means that is not as it should be
 * @status: of HTTP
 * @why:    out: for people
 * Returns 0: it is as it should be; -ENOENT: there is no such lease; -EAGAIN: no majority; -EACCES; -ENOPROTOOPT: it is no
 * etcd of 3.4 or later; -EPROTO.
 */
int etcd_refused(long status, const char *text, size_t len, char *why, size_t room);

/* etcd_granted - out: a lease. Returns 0 or -EPROTO */
int etcd_granted(const char *text, size_t len, uint64_t *lease);

/* etcd_kept - out: seconds until a lease ends, 0: there is none. Returns 0, or as etcd_refused() */
int etcd_kept(const char *text, size_t len, uint64_t *seconds, char *why, size_t room);

/* etcd_listed - out: what a range has, to be freed by etcd_list_fini(). Returns 0, -EPROTO or -ENOMEM */
int etcd_listed(const char *text, size_t len, struct etcd_list *list);

/*
 * etcd_watched - a line of a watch's answer
 * @list: out: what has changed, to be freed by etcd_list_fini(); nothing when the watch has begun
 * Returns 0; -ESTALE: the watch is over, as what it was to begin with is forgotten; as etcd_refused(); -ENOMEM.
 */
int etcd_watched(const char *text, size_t len, struct etcd_list *list, char *why, size_t room);

void etcd_list_fini(struct etcd_list *list);

#endif
