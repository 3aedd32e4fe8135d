/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segments that processes of this host have exported; exports.h has the contract.
 */
#define _GNU_SOURCE
#include "exports.h"
#include "message.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <weft/device.h>

/* struct entry - a segment; @generation counts those that had the number. @fds NULL: there is none now */
struct entry {
	struct exported segment;
	int *fds;
	uint32_t generation;
};

/*
 * struct exports - by number
 * @lock: of all
 * @last: number that was given last: the next one is behind it, so that none is used again soon
 */
struct exports {
	pthread_mutex_t lock;
	uint32_t last;
	uint32_t first_generation;
	uint32_t fds_of_a_user;
	struct entry entries[EXPORTS_MAX];
};

struct exports *exports_create(uint32_t fds_of_a_user)
{
	struct exports *exports = calloc(1, sizeof(*exports));

	if (!exports)
		return NULL;
	pthread_mutex_init(&exports->lock, NULL);
	exports->fds_of_a_user = fds_of_a_user;
	/* Those of a lender that was before this one are stale to it. */
	if (getrandom(&exports->first_generation, sizeof(uint32_t), 0) < 0)
		exports->first_generation = (uint32_t)getpid();
	exports->first_generation |= 1;
	return exports;
}

static struct entry *find(struct exports *exports, uint32_t idx, uint32_t generation)
{
	struct entry *entry = idx < EXPORTS_MAX ? &exports->entries[idx] : NULL;

	return entry && entry->fds && entry->generation == generation ? entry : NULL;
}

static void drop(struct entry *entry)
{
	packet_close_fds(entry->fds, entry->segment.fd_cnt);
	free(entry->fds);
	entry->fds = NULL;
}

/* Nobody takes all numbers away, nor all descriptors of the lender. */
static bool has_room(const struct exports *exports, const struct exported *segment)
{
	uint64_t fds = segment->fd_cnt;
	uint32_t cnt = 0, i;

	for (i = 0; i < EXPORTS_MAX; i++)
		if (exports->entries[i].fds && exports->entries[i].segment.uid == segment->uid) {
			fds += exports->entries[i].segment.fd_cnt;
			cnt++;
		}
	return cnt < EXPORTS_OF_A_USER && fds <= exports->fds_of_a_user;
}

static int add(struct exports *exports, const struct exported *segment, uint32_t *idx,
	       uint32_t *generation)
{
	struct entry *entry;
	uint32_t i;

	for (i = 1; i <= EXPORTS_MAX; i++) {
		*idx = (exports->last + i) % EXPORTS_MAX;
		if (!exports->entries[*idx].fds)
			break;
	}
	if (i > EXPORTS_MAX || !has_room(exports, segment))
		return -ENOSPC;
	entry = &exports->entries[*idx];
	entry->fds = malloc(segment->fd_cnt * sizeof(int));
	if (!entry->fds)
		return -ENOMEM;
	memcpy(entry->fds, segment->fds, segment->fd_cnt * sizeof(int));
	entry->segment = *segment;
	entry->segment.fds = NULL;
	entry->generation = entry->generation ? entry->generation + 1
					      : exports->first_generation;
	*generation = entry->generation;
	exports->last = *idx;
	return 0;
}

int exports_add(struct exports *exports, const struct exported *segment, uint32_t *idx,
		uint32_t *generation)
{
	int err;

	pthread_mutex_lock(&exports->lock);
	err = add(exports, segment, idx, generation);
	pthread_mutex_unlock(&exports->lock);
	if (err)
		packet_close_fds(segment->fds, segment->fd_cnt);
	return err;
}

int exports_remove(struct exports *exports, uint32_t idx, uint32_t generation, const void *by)
{
	struct entry *entry;
	int err = 0;

	pthread_mutex_lock(&exports->lock);
	entry = find(exports, idx, generation);
	if (!entry)
		err = -ESTALE;
	else if (entry->segment.by != by)
		err = -EACCES;
	else
		drop(entry);
	pthread_mutex_unlock(&exports->lock);
	return err;
}

void exports_remove_all(struct exports *exports, const void *by)
{
	uint32_t i;

	pthread_mutex_lock(&exports->lock);
	for (i = 0; i < EXPORTS_MAX; i++)
		if (exports->entries[i].fds && exports->entries[i].segment.by == by)
			drop(&exports->entries[i]);
	pthread_mutex_unlock(&exports->lock);
}

static int copy_fds(const struct entry *entry, int *fds)
{
	uint32_t i;

	for (i = 0; i < entry->segment.fd_cnt; i++) {
		fds[i] = fcntl(entry->fds[i], F_DUPFD_CLOEXEC, 0);
		if (fds[i] < 0) {
			packet_close_fds(fds, i);
			return -EMFILE;
		}
	}
	return 0;
}

int exports_get(struct exports *exports, uint32_t idx, uint32_t generation, uid_t uid,
		uint64_t *len, int *fds, uint32_t *fd_cnt)
{
	struct entry *entry;
	int err;

	pthread_mutex_lock(&exports->lock);
	entry = find(exports, idx, generation);
	if (!entry)
		err = -ESTALE;
	else if (uid && uid != entry->segment.uid && !(entry->segment.flags & WEFT_EXPORT_ALL))
		err = -EACCES;
	else
		err = copy_fds(entry, fds);
	if (!err) {
		*fd_cnt = entry->segment.fd_cnt;
		*len = entry->segment.len;
	}
	pthread_mutex_unlock(&exports->lock);
	return err;
}
