/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The members of a directory, and which of them is asked when. Pure: one thread at a time, which says what time it is.
 */
#ifndef WEFT_DEVICES_DIRECTORY_MEMBERS_H
#define WEFT_DEVICES_DIRECTORY_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define MEMBERS_MAX    16u
#define MEMBER_URL_MAX 256u   /* with the zero byte */
#define MEMBER_OUT_MS  5000u  /* how long one that did not answer is asked last */
#define MEMBER_PORT    "2379" /* if a URL has none */

/* How long errors of members may be those of an election, which takes 1 to 4 s. */
#define MEMBERS_ELECT_MS 5000u

/*
 * struct members
 * @at:    which is asked first: the one that has answered last
 * @until: when each is asked in its turn again
 * @since: when the first attempt began of those that have failed in a row, or 0
 */
struct members {
	uint32_t cnt;
	uint32_t at;
	char url[MEMBERS_MAX][MEMBER_URL_MAX];
	uint64_t until[MEMBERS_MAX];
	uint64_t since;
};

/*
 * members_parse - out: the members that URLs name, with commas between
 * @first: which is asked first, so that not all programs ask the same one; any number
 * Returns 0, or -EINVAL: they are no http://host[:port] or https://host[:port], or too many.
 */
int members_parse(struct members *members, const char *urls, uint32_t first);

/* members_order - out: all of them, in the order in which they are to be asked; those that are left out at the end */
void members_order(const struct members *members, uint64_t now_ms, uint32_t order[MEMBERS_MAX]);

void members_answered(struct members *members, uint32_t member);
void members_failed(struct members *members, uint32_t member, uint64_t now_ms);

/*
 * members_elect - whether members that have failed may be electing a leader, so that they are to be asked again
 * @err:      what came of asking all of them: 0, or as etcd_refused() and http_post()
 * @began_ms: when that began
 *
 * Told of every attempt. Members that elect a leader say that they have none (-EAGAIN), or nothing for a while
 * (-ETIMEDOUT), as those without a majority do; the difference is that it ends within MEMBERS_ELECT_MS.
 */
bool members_elect(struct members *members, int err, uint64_t began_ms, uint64_t now_ms);

#endif
