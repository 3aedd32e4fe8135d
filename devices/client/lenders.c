/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lenders of a directory: what is known of them, the events of that, and those that are opened. lenders.h has the
 * contract.
 *
 * Devices are known from the directory, and, of a lender that is opened, also from itself: whoever says first that one
 * has come or gone is repeated, and the other one is not.
 */
#define _GNU_SOURCE
#include "lenders.h"
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * struct listed - a lender
 * @entry:  as the directory has it; its devices are ours
 * @gone:   the directory has it no more; @users: leases, exports and calls that still need it
 * @lender: opened, or NULL
 */
struct listed {
	struct listed *next;
	struct directory *directory;
	struct directory_lender entry;
	bool gone;
	uint32_t users;
	pthread_mutex_t open_lock;
	struct weft_lender *lender;
};

/*
 * struct directory
 * @quiet: what is there when it is opened is no event
 */
struct directory {
	pthread_mutex_t lock;
	struct listed *lenders;
	struct fid_eq *eq;
	bool quiet;
	char host[40];
	const struct directory_ops *ops;
	struct directory_follow *follow;
};

static void tell(struct directory *d, uint32_t kind, uint64_t node, uint64_t device)
{
	struct weft_event event = { .kind = kind, .device = device, .node = node };

	if (d->eq && !d->quiet)
		fi_eq_write(d->eq, WEFT_DEVICE_EVENT, &event, sizeof(event), 0);
}

static struct listed *find_node(struct directory *d, uint64_t node)
{
	struct listed *l;

	for (l = d->lenders; l; l = l->next)
		if (l->entry.node == node)
			return l;
	return NULL;
}

static struct weft_device_info *find_device(const struct directory_lender *entry, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < entry->device_cnt; i++)
		if (entry->devices[i].id == id)
			return &entry->devices[i];
	return NULL;
}

/* A device whose controller is not there is not there, to those who hear of events. */
static bool is_there(const struct weft_device_info *info)
{
	return info && info->state != WEFT_DEVICE_FAILED;
}

static void tell_device(struct directory *d, const struct weft_device_info *was,
			const struct weft_device_info *is)
{
	const struct weft_device_info *one = is ? is : was;

	if (is_there(is) != is_there(was))
		tell(d, is_there(is) ? WEFT_EVENT_DEVICE_ADDED : WEFT_EVENT_DEVICE_REMOVED,
		     one->node, one->id);
	else if (is && was && (is->state != was->state || is->leases != was->leases))
		tell(d, WEFT_EVENT_DEVICE_CHANGED, is->node, is->id);
}

static void tell_devices(struct directory *d, const struct directory_lender *was,
			 const struct directory_lender *is)
{
	uint32_t i;

	for (i = 0; i < was->device_cnt; i++)
		if (!find_device(is, was->devices[i].id))
			tell_device(d, &was->devices[i], NULL);
	for (i = 0; i < is->device_cnt; i++)
		tell_device(d, find_device(was, is->devices[i].id), &is->devices[i]);
}

/* Where a lender is connected to: its socket within its host, else its address. @other: the second choice, or NULL */
static const char *place_of(const struct directory *d, const struct directory_lender *entry,
			    const char **other)
{
	bool here = *d->host && !strcmp(d->host, entry->host) && *entry->socket;
	const char *address = *entry->address ? entry->address : NULL;

	*other = here ? address : NULL;
	return here ? entry->socket : address;
}

static struct listed *create(struct directory *d, uint64_t node)
{
	struct listed *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->directory = d;
	l->entry.node = node;
	l->gone = true;
	pthread_mutex_init(&l->open_lock, NULL);
	l->next = d->lenders;
	d->lenders = l;
	return l;
}

/* Take a lender that nobody uses out of the list; it is destroyed without the lock then. */
static struct listed *take_out(struct directory *d, struct listed *l)
{
	struct listed **at = &d->lenders;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	return l;
}

static void destroy(struct listed *l)
{
	if (!l)
		return;
	if (l->lender)
		weft_lender_close(l->lender);
	pthread_mutex_destroy(&l->open_lock);
	free(l->entry.devices);
	free(l);
}

/* directory.h's: a lender is there, or is not as it was. Without memory it stays as it was. */
static void on_lender(void *arg, const struct directory_lender *entry)
{
	struct directory *d = arg;
	struct weft_device_info *devices = calloc(entry->device_cnt + 1, sizeof(*devices));
	struct directory_lender was;
	struct listed *l;

	if (!devices)
		return;
	if (entry->device_cnt)
		memcpy(devices, entry->devices, entry->device_cnt * sizeof(*devices));
	pthread_mutex_lock(&d->lock);
	l = find_node(d, entry->node);
	if (!l)
		l = create(d, entry->node);
	if (!l) {
		pthread_mutex_unlock(&d->lock);
		free(devices);
		return;
	}
	was = l->entry;
	l->entry = *entry;
	l->entry.devices = devices;
	if (l->gone)
		tell(d, WEFT_EVENT_LENDER_ADDED, entry->node, 0);
	l->gone = false;
	tell_devices(d, &was, &l->entry);
	free(was.devices);
	/* One that was started again elsewhere is found there by who has a lease of it. */
	if (l->lender)
		lender_move(l->lender, l->lender->remote ? entry->address : entry->socket,
			    entry->provider);
	pthread_mutex_unlock(&d->lock);
}

/* directory.h's: a lender is there no more. */
static void on_gone(void *arg, uint64_t node)
{
	static const struct directory_lender none;
	struct directory *d = arg;
	struct listed *l, *unused = NULL;

	pthread_mutex_lock(&d->lock);
	l = find_node(d, node);
	if (l && !l->gone) {
		tell_devices(d, &l->entry, &none);
		tell(d, WEFT_EVENT_LENDER_REMOVED, node, 0);
		l->gone = true;
		l->entry.device_cnt = 0;
		if (!l->users)
			unused = take_out(d, l);
	}
	pthread_mutex_unlock(&d->lock);
	destroy(unused);
}

static void on_state(void *arg, int err)
{
	struct directory *d = arg;

	pthread_mutex_lock(&d->lock);
	tell(d, err ? WEFT_EVENT_DIRECTORY_LOST : WEFT_EVENT_DIRECTORY_BACK, 0, 0);
	pthread_mutex_unlock(&d->lock);
}

void listed_hear(struct listed *l, const struct weft_event *event)
{
	struct directory *d = l->directory;
	struct weft_device_info *info, was;

	pthread_mutex_lock(&d->lock);
	info = find_device(&l->entry, event->device);
	if (event->kind != WEFT_EVENT_DEVICE_ADDED && event->kind != WEFT_EVENT_DEVICE_REMOVED) {
		if (d->eq)
			fi_eq_write(d->eq, WEFT_DEVICE_EVENT, event, sizeof(*event), 0);
	} else if (info) {
		was = *info;
		if (event->kind == WEFT_EVENT_DEVICE_REMOVED)
			info->state = WEFT_DEVICE_FAILED;
		else if (info->state == WEFT_DEVICE_FAILED)
			info->state = WEFT_DEVICE_FREE;
		tell_device(d, &was, info);
	}
	pthread_mutex_unlock(&d->lock);
}

static bool is_url(const char *name)
{
	return name && (!strncmp(name, "http://", 7) || !strncmp(name, "https://", 8));
}

const char *directory_urls(const char *name)
{
	const char *urls;

	if (!name)
		name = getenv("WEFT_LENDER");
	if (name && *name)
		return is_url(name) ? name : NULL;
	urls = getenv("WEFT_DIRECTORY");
	return urls && *urls ? urls : NULL;
}

static void destroy_all(struct directory *d)
{
	while (d->lenders)
		destroy(take_out(d, d->lenders));
	pthread_mutex_destroy(&d->lock);
	free(d);
}

int directory_open(const char *urls, struct fid_eq *eq, struct directory **out)
{
	struct directory *d = calloc(1, sizeof(*d));
	struct directory_listener listener = { on_lender, on_gone, on_state, d };
	int err;

	if (!d)
		return -ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	d->eq = eq;
	d->quiet = true;
	directory_host(d->host);
	err = directory_load(&d->ops);
	if (!err)
		err = d->ops->follow_open(urls, &listener, &d->follow);
	if (err) {
		destroy_all(d);
		return err;
	}
	pthread_mutex_lock(&d->lock);
	d->quiet = false;
	pthread_mutex_unlock(&d->lock);
	*out = d;
	return 0;
}

int directory_close(struct directory *d)
{
	bool used = false;
	struct listed *l;

	pthread_mutex_lock(&d->lock);
	for (l = d->lenders; l; l = l->next)
		used = used || l->users;
	pthread_mutex_unlock(&d->lock);
	if (used)
		return -EBUSY;
	d->ops->follow_close(d->follow);
	destroy_all(d);
	return 0;
}

ssize_t directory_devices(struct directory *d, struct weft_device_info **out)
{
	struct weft_device_info *infos;
	size_t cnt = 0;
	struct listed *l;

	pthread_mutex_lock(&d->lock);
	for (l = d->lenders; l; l = l->next)
		cnt += l->entry.device_cnt;
	infos = calloc(cnt + 1, sizeof(*infos));
	cnt = 0;
	for (l = d->lenders; infos && l; l = l->next) {
		if (l->entry.device_cnt)
			memcpy(infos + cnt, l->entry.devices,
			       l->entry.device_cnt * sizeof(*infos));
		cnt += l->entry.device_cnt;
	}
	pthread_mutex_unlock(&d->lock);
	if (!infos)
		return -ENOMEM;
	*out = infos;
	return (ssize_t)cnt;
}

/* Open a lender, and see that it is the one that was meant: its socket may be another one's by now. */
static int open_place(struct listed *l, const struct directory_lender *entry, const char *place,
		      struct weft_lender **out)
{
	struct weft_lender *lender;
	int err = place ? lender_open(place, entry->provider, l->directory->eq, l, &lender)
			: -EHOSTUNREACH;

	if (err)
		return err == -ECONNREFUSED ? -ETIMEDOUT : err;
	if (lender->node != entry->node) {
		weft_lender_close(lender);
		return -ETIMEDOUT;
	}
	*out = lender;
	return 0;
}

/* Open a lender that is used, if it isn't open. */
static int open_listed(struct listed *l)
{
	struct directory *d = l->directory;
	struct directory_lender entry;
	const char *place, *other;
	struct weft_lender *lender;
	int err = 0;

	pthread_mutex_lock(&l->open_lock);
	pthread_mutex_lock(&d->lock);
	lender = l->lender;
	entry = l->entry;
	pthread_mutex_unlock(&d->lock);
	if (!lender) {
		place = place_of(d, &entry, &other);
		err = open_place(l, &entry, place, &lender);
		if (err && other)
			err = open_place(l, &entry, other, &lender);
		pthread_mutex_lock(&d->lock);
		if (!err)
			l->lender = lender;
		pthread_mutex_unlock(&d->lock);
	}
	pthread_mutex_unlock(&l->open_lock);
	return err;
}

/* With the lock held, which is not when it returns. @l: NULL: there is none */
static int hold_locked(struct directory *d, struct listed *l, struct weft_lender **lender)
{
	int err;

	if (l)
		l->users++;
	pthread_mutex_unlock(&d->lock);
	if (!l)
		return -ENODEV;
	err = open_listed(l);
	if (err)
		listed_release(l);
	else
		*lender = l->lender;
	return err;
}

int directory_hold_device(struct directory *d, uint64_t device, struct weft_lender **lender)
{
	struct listed *l;

	pthread_mutex_lock(&d->lock);
	for (l = d->lenders; l && !find_device(&l->entry, device);)
		l = l->next;
	return hold_locked(d, l, lender);
}

int directory_hold_node(struct directory *d, uint64_t node, struct weft_lender **lender)
{
	pthread_mutex_lock(&d->lock);
	return hold_locked(d, find_node(d, node), lender);
}

int directory_hold_here(struct directory *d, struct weft_lender **lender)
{
	struct listed *l;

	pthread_mutex_lock(&d->lock);
	for (l = d->lenders; l && (l->gone || strcmp(l->entry.host, d->host));)
		l = l->next;
	return hold_locked(d, l, lender);
}

void listed_hold(struct listed *l)
{
	pthread_mutex_lock(&l->directory->lock);
	l->users++;
	pthread_mutex_unlock(&l->directory->lock);
}

void listed_release(struct listed *l)
{
	struct directory *d = l->directory;
	struct listed *unused = NULL;

	pthread_mutex_lock(&d->lock);
	if (!--l->users && l->gone)
		unused = take_out(d, l);
	pthread_mutex_unlock(&d->lock);
	destroy(unused);
}
