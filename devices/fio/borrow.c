/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices of this process, in a list. Where fio forks, the child has none: leases are its parent's, and what of them
 * is in its memory is left alone.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "borrow.h"
#include "spec.h"

struct borrow {
	struct borrow *next;
	struct weft_lender *lender;
	struct weft_device *dev;
	char *lender_name;
	char *device_name;
	char *ticket;
	unsigned user_cnt;
};

/* Protects the list and its members; held over calls to the lender, so that two jobs do not borrow at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct borrow *borrows;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	borrows = NULL;
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static const char *or_empty(const char *name)
{
	return name ? name : "";
}

static const char *or_null(const char *name)
{
	return name && *name ? name : NULL;
}

static struct borrow *borrow_find_locked(const struct borrow_wish *wish)
{
	struct borrow *it;

	for (it = borrows; it; it = it->next) {
		if (!strcmp(it->lender_name, or_empty(wish->lender)) &&
		    !strcmp(it->device_name, or_empty(wish->device)) &&
		    !strcmp(it->ticket, or_empty(wish->ticket)))
			return it;
	}
	return NULL;
}

static void borrow_free(struct borrow *it)
{
	free(it->lender_name);
	free(it->device_name);
	free(it->ticket);
	free(it);
}

static int borrow_open(const struct borrow_wish *wish, struct borrow **borrow)
{
	struct weft_borrow_attr attr = {
		.size = sizeof(attr),
		.name = or_null(wish->device),
		.device_class = WEFT_CLASS_NVME,
		.flags = wish->shared ? WEFT_BORROW_SHARED : 0,
		.ms = wish->ms,
	};
	struct borrow *it = calloc(1, sizeof(*it));
	int ret = -ENOMEM;

	if (!it)
		return ret;
	it->lender_name = strdup(or_empty(wish->lender));
	it->device_name = strdup(or_empty(wish->device));
	it->ticket = strdup(or_empty(wish->ticket));
	if (!it->lender_name || !it->device_name || !it->ticket)
		goto err_free;
	if (*it->ticket)
		ret = weft_lender_open_ticket(or_null(wish->lender), it->ticket, NULL,
					      &it->lender);
	else
		ret = weft_lender_open(or_null(wish->lender), NULL, &it->lender);
	if (ret)
		goto err_free;
	if (*it->ticket)
		ret = weft_device_attach(it->lender, it->ticket, &it->dev);
	else
		ret = weft_device_borrow(it->lender, &attr, &it->dev);
	if (ret)
		goto err_close;
	*borrow = it;
	return 0;

err_close:
	weft_lender_close(it->lender);
err_free:
	borrow_free(it);
	return ret;
}

int borrow_get(const struct borrow_wish *wish, struct borrow **borrow)
{
	struct borrow *it;
	int ret = 0;

	pthread_mutex_lock(&lock);
	it = borrow_find_locked(wish);
	if (!it) {
		ret = borrow_open(wish, &it);
		if (ret)
			goto out;
		it->next = borrows;
		borrows = it;
	}
	it->user_cnt++;
	*borrow = it;
out:
	pthread_mutex_unlock(&lock);
	return ret;
}

void borrow_put(struct borrow *borrow)
{
	struct borrow **link;

	pthread_mutex_lock(&lock);
	if (--borrow->user_cnt)
		goto out;
	for (link = &borrows; *link != borrow; link = &(*link)->next)
		;
	*link = borrow->next;
	if (*borrow->ticket)
		weft_device_leave(borrow->dev);
	else
		weft_device_return(borrow->dev);
	weft_lender_close(borrow->lender);
	borrow_free(borrow);
out:
	pthread_mutex_unlock(&lock);
}

struct weft_device *borrow_device(const struct borrow *borrow)
{
	return borrow->dev;
}

/* As weft_device_borrow() takes a name: NULL if there is none, and for the beginning of several. */
static const struct weft_device_info *find_device(const struct weft_device_info *infos,
						  size_t cnt, const char *name)
{
	const struct weft_device_info *found = NULL;
	unsigned found_cnt = 0;
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (infos[i].device_class != WEFT_CLASS_NVME ||
		    strncmp(infos[i].name, name, strlen(name)) != 0)
			continue;
		if (!strcmp(infos[i].name, name) ||
		    (!*name && infos[i].state != WEFT_DEVICE_FAILED))
			return &infos[i];
		found = &infos[i];
		found_cnt++;
	}
	return found_cnt == 1 ? found : NULL;
}

/* Lists what a lender offers; the caller frees *@infos, also after an error. */
static int list_devices(struct weft_lender *lender, struct weft_device_info **infos, size_t *cnt)
{
	struct weft_device_info *more;
	size_t room;
	int ret;

	*infos = NULL;
	*cnt = 16;
	do {
		room = *cnt;
		more = realloc(*infos, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		*infos = more;
		ret = weft_device_list(lender, more, cnt);
	} while (*cnt > room);
	return ret;
}

static int identify(struct weft_lender *lender, uint64_t device, uint32_t nsid,
		    struct weft_nvme_namespace *ns)
{
	struct nvme_id_ns id;
	unsigned shift;
	int ret = weft_nvme_identify(lender, device, nsid, NVME_CNS_NAMESPACE, &id);

	if (ret)
		return ret == -EIO ? -ENODEV : ret;
	shift = id.lbaf[id.flbas & 0xf].lbads;
	if (!id.nsze || shift < 9 || shift > 16)
		return -ENODEV;
	*ns = (struct weft_nvme_namespace){ .blocks = id.nsze, .block_size = 1u << shift };
	return 0;
}

int borrow_look(const struct borrow_wish *wish, uint32_t nsid, struct weft_nvme_namespace *ns)
{
	const struct weft_device_info *found;
	struct weft_device_info *infos;
	struct weft_lender *lender;
	size_t cnt;
	int ret;

	ret = weft_lender_open(or_null(wish->lender), NULL, &lender);
	if (ret)
		return ret;
	ret = list_devices(lender, &infos, &cnt);
	if (!ret) {
		found = find_device(infos, cnt, or_empty(wish->device));
		ret = found ? identify(lender, found->id, nsid, ns) : -ENODEV;
	}
	free(infos);
	weft_lender_close(lender);
	return ret;
}
