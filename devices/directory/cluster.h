/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory's members as one: a question goes to them in turn until one answers it. One thread at a time, but
 * http_wake() and http_stop().
 */
#ifndef WEFT_DEVICES_DIRECTORY_CLUSTER_H
#define WEFT_DEVICES_DIRECTORY_CLUSTER_H

#include "http.h"
#include "members.h"

/*
 * struct cluster
 * @why: what was wrong with the last answer that was no good, for people
 */
struct cluster {
	struct members members;
	struct http *http;
	char why[MEMBER_URL_MAX + HTTP_WHY_MAX];
};

/* cluster_now_ms - what members.h wants for the time */
uint64_t cluster_now_ms(void);

/* cluster_open - returns 0; -EINVAL: as members_parse(); -ENOMEM */
int cluster_open(struct cluster *cluster, const char *urls);
void cluster_close(struct cluster *cluster);

/*
 * cluster_ask_member - ask one of them
 * Returns 0: @answer is of success; or as http_post() and etcd_refused().
 */
int cluster_ask_member(struct cluster *cluster, uint32_t member, const char *path,
		       const char *body, struct http_answer *answer);

/* cluster_elects - members_elect(), at the present time */
bool cluster_elects(struct cluster *cluster, int err, uint64_t began_ms);

/* cluster_worse - which of two errors of members says more about all of them */
int cluster_worse(int err, int other);

/*
 * cluster_ask - ask them in turn; what one of them says about a lease is the answer
 * @body: taken (free()); NULL: there was no memory for it
 * Returns as cluster_ask_member(), of the errors the one that says most.
 */
int cluster_ask(struct cluster *cluster, const char *path, char *body,
		struct http_answer *answer);

#endif
