/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lent device: taking its controller, and the thread that keeps it: it hears of leases that the controller has ended,
 * and of the end of the controller, and looks for another one then. lent.h has the contract.
 */
#define _GNU_SOURCE
#include "fnv.h"
#include "lent_types.h"
#include "log.h"
#include "message.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LOOK_FOR_SLOT_MS 200

/* How often a controller that nothing is asked of is looked at. */
#define HEARTBEAT_MS 1000

/* How long a lender that begins waits for its controllers. */
#define FIRST_MS      10000
#define FIRST_LOOK_MS 20

uint64_t lent_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What others see, who do not wait for the lock. */
static void show(struct lent *lent)
{
	struct weft_device_info info = lent->info;
	bool shared = true;
	uint32_t lease;

	for (lease = 1; lease < LENT_LEASES; lease++)
		if (lent->leases[lease].kept.used) {
			info.leases++;
			shared = shared && lent->leases[lease].kept.flags & LEASE_SHARED;
		}
	if (lent->failed)
		info.state = WEFT_DEVICE_FAILED;
	else if (info.leases)
		info.state = shared ? WEFT_DEVICE_SHARED : WEFT_DEVICE_EXCLUSIVE;
	else
		info.state = WEFT_DEVICE_FREE;
	pthread_mutex_lock(&lent->shown_lock);
	lent->shown = info;
	pthread_mutex_unlock(&lent->shown_lock);
}

void lent_lock(struct lent *lent)
{
	pthread_mutex_lock(&lent->lock);
}

void lent_unlock(struct lent *lent)
{
	show(lent);
	pthread_mutex_unlock(&lent->lock);
}

static const char *what_happened(int err)
{
	switch (err) {
	case -ENODEV:
		return "is gone";
	case -ETIMEDOUT:
		return "does not answer";
	case -ENOTRECOVERABLE:
		return "has failed";
	default:
		return "says what it must not";
	}
}

int lent_check(struct lent *lent, int err)
{
	uint64_t one = 1;

	if (lent->failed ||
	    (err != -ENODEV && err != -ETIMEDOUT && err != -ENOTRECOVERABLE && err != -EPROTO))
		return err;
	lent->failed = err;
	lender_log("%s: the controller at %s %s", lent->info.name, lent->slot,
		   what_happened(err));
	if (write(lent->wake, &one, sizeof(one)) < 0)
		return err; /* the keeper has been woken already */
	return err;
}

/* The same name for the same device on every host and after restarts: FNV-1a over node and serial. */
static uint64_t device_id(uint64_t node, const char *serial)
{
	uint64_t hash = FNV_START;
	unsigned i;

	for (i = 0; i < 8; i++)
		hash = fnv_step(hash, node >> 8 * i & 0xff);
	return fnv_add(hash, serial, strlen(serial));
}

/* A text of Identify: padded with spaces, and whatever a device puts there. @gap: for a space */
static void copy_text(char *to, size_t room, const char *from, size_t len, char gap)
{
	size_t i;

	while (len && (from[len - 1] == ' ' || !from[len - 1]))
		len--;
	if (len >= room)
		len = room - 1;
	for (i = 0; i < len; i++)
		to[i] = from[i] == ' ' ? gap : isprint((unsigned char)from[i]) ? from[i] : '_';
	to[len] = 0;
}

static int identify(uint64_t node, struct lent_controller *c)
{
	struct weft_device_info *info = &c->info;
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .cdw10 = NVME_CNS_CONTROLLER };
	union {
		struct nvme_id_ctrl ctrl;
		struct nvme_id_ns ns;
	} page = { 0 };
	uint8_t shift;
	int err = admin_do(c->admin, "Identify Controller", &sqe, &page, NULL);

	if (err)
		return err;
	*info = (struct weft_device_info){
		.node = node,
		.device_class = WEFT_CLASS_NVME,
		.vendor = page.ctrl.vid,
	};
	copy_text(info->serial, sizeof(info->serial), page.ctrl.sn, sizeof(page.ctrl.sn), '_');
	copy_text(info->model, sizeof(info->model), page.ctrl.mn, sizeof(page.ctrl.mn), ' ');
	info->id = device_id(node, info->serial);
	snprintf(info->name, sizeof(info->name), "nvme-%08" PRIx32 "-%s",
		 (uint32_t)(node >> 32), info->serial);
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_IDENTIFY,
				 .nsid = 1,
				 .cdw10 = NVME_CNS_NAMESPACE };
	err = admin_do(c->admin, "Identify Namespace", &sqe, &page, NULL);
	if (err)
		return err;
	shift = page.ns.lbaf[page.ns.flbas & 0xf].lbads;
	if (shift < 9 || shift > 16)
		return -EIO;
	info->block_size = 1u << shift;
	info->blocks = page.ns.nsze;
	return 0;
}

/* As many queue pairs as the controller gives, of those whose doorbells can be handed on. */
static int count_queues(struct lent_controller *c)
{
	uint32_t want = c->function->info.queue_pairs, n;
	struct nvme_sqe sqe = {
		.opcode = c->adopted ? NVME_ADMIN_GET_FEATURES : NVME_ADMIN_SET_FEATURES,
		.cdw10 = NVME_FEATURE_QUEUES,
		.cdw11 = c->adopted || !want ? 0 : (want - 1) | (want - 1) << 16,
	};
	struct nvme_cqe cqe;
	int err = admin_do(c->admin, "Number of Queues", &sqe, NULL, &cqe);

	if (err)
		return err;
	n = (cqe.result & 0xffff) < cqe.result >> 16 ? cqe.result & 0xffff : cqe.result >> 16;
	c->info.queue_pairs = n + 1 < want ? n + 1 : want;
	c->info.queue_pairs_free = c->info.queue_pairs;
	return 0;
}

static void drop(struct lent_controller *c)
{
	if (c->admin)
		admin_close(c->admin);
	if (c->function)
		c->function->ops->close(c->function);
	*c = (struct lent_controller){ 0 };
}

/* Own the controller at a slot. It may take as long as a controller may take to get ready: no lock is held. */
static int take(const char *slot, uint64_t node, struct lent_controller *c)
{
	int err = function_open_slot(slot, &c->function);

	if (err)
		return err;
	err = admin_open(c->function, &c->admin, &c->adopted);
	if (!err)
		err = identify(node, c);
	if (!err)
		err = count_queues(c);
	if (err)
		drop(c);
	return err;
}

/* A lender that was killed just now may still be the owner; a controller that was started just now may not listen yet. */
static bool may_come(int err)
{
	return err == -EBUSY || err == -ENOENT || err == -ECONNREFUSED;
}

static int take_first(const char *slot, uint64_t node, struct lent_controller *c)
{
	uint64_t end = lent_now_ms() + FIRST_MS;
	int err = take(slot, node, c);

	if (may_come(err))
		lender_log("the controller at %s is waited for: %s", slot, strerror(-err));
	while (may_come(err) && lent_now_ms() < end) {
		nanosleep(&(struct timespec){ .tv_nsec = FIRST_LOOK_MS * 1000000 }, NULL);
		err = take(slot, node, c);
	}
	return err;
}

static void let_go(struct lent *lent)
{
	drop(&(struct lent_controller){ .function = lent->function, .admin = lent->admin });
	lent->function = NULL;
	lent->admin = NULL;
}

/* Who has granules is known of this run of the controller alone, and by no later lender. */
static int make_tables(struct lent *lent, const struct lent_controller *c)
{
	const struct function_info *info = &c->function->info;
	uint32_t granule_cnt = info->granule ? (uint32_t)(info->memory / info->granule) : 0;
	uint16_t *owner = calloc(c->info.queue_pairs + 1, sizeof(*owner));
	bool same = lent->granules && lent->serial == info->serial &&
		    lent->granule_cnt == granule_cnt;
	uint16_t *granules = same ? lent->granules
				  : calloc(granule_cnt + 1, sizeof(*lent->granules));

	if (!owner || !granules) {
		free(owner);
		if (!same)
			free(granules);
		return -ENOMEM;
	}
	free(lent->owner);
	if (!same)
		free(lent->granules);
	lent->owner = owner;
	lent->granules = granules;
	lent->granule_cnt = granule_cnt;
	return 0;
}

/* Have a controller and its leases; takes it. @ended: as lent_adopt() has it. Returns how many, or -errno */
static int install(struct lent *lent, struct lent_controller *c, uint32_t *ended)
{
	int n = make_tables(lent, c);

	if (n) {
		drop(c);
		return n;
	}
	lent->info = c->info;
	if (lent->serial != c->function->info.serial)
		lent->errors = 0;
	lent->serial = c->function->info.serial;
	lent->function = c->function;
	lent->admin = c->admin;
	lent->failed = 0;
	lent->errors_due = false;
	n = lent_adopt(lent, ended);
	if (n < 0) {
		lent_check(lent, n);
		lent->failed = n;
		let_go(lent);
	}
	return n;
}

static void tell_ended(struct lent *lent, const uint32_t *ended, int cnt)
{
	int i;

	for (i = 0; i < cnt; i++)
		lent->tell(lent->arg, lent, WEFT_EVENT_LEASE_ENDED, ended[i]);
}

static void events(struct lent *lent)
{
	uint32_t ended[LENT_LEASES], types = 0;
	int n = 0;

	lent_lock(lent);
	/* Every command ends with an interrupt, also those that ask what has ended. */
	if (!lent->failed && !lent_check(lent, admin_events(lent->admin, &types))) {
		lent->errors_due |= types >> NVME_EVENT_TYPE_ERROR & 1;
		if (types >> NVME_EVENT_TYPE_VENDOR & 1)
			n = lent_collect(lent, ended);
	}
	lent_unlock(lent);
	tell_ended(lent, ended, n);
}

static void look(struct lent *lent)
{
	lent_lock(lent);
	if (!lent->failed)
		lent_check(lent, admin_alive(lent->admin));
	lent_unlock(lent);
}

/*
 * The controller is not used any more. If it has ended, so has everything that was lent of it; else leases may run there,
 * which are known when it is there again.
 */
static void lose(struct lent *lent, bool has_ended)
{
	uint32_t ended[LENT_LEASES], lease;
	int n = 0;

	lent_lock(lent);
	if (has_ended) {
		lent_check(lent, -ENODEV);
		lent->failed = -ENODEV;
	}
	for (lease = 1; lent->failed == -ENODEV && lease < LENT_LEASES; lease++)
		if (lent->leases[lease].kept.used) {
			lent_forget(lent, lease);
			ended[n++] = lease;
		}
	if (n)
		lent_write_journal(lent);
	let_go(lent);
	lent_unlock(lent);
	tell_ended(lent, ended, n);
	lent->tell(lent->arg, lent, WEFT_EVENT_DEVICE_REMOVED, 0);
}

/* Leases whose time runs out while the controller is not there. If it comes back it has ended them, or is told to. */
static void expire(struct lent *lent)
{
	uint32_t ended[LENT_LEASES], lease;
	uint64_t now = lent_now_ms();
	int n = 0;

	lent_lock(lent);
	for (lease = 1; lease < LENT_LEASES; lease++)
		if (lent->leases[lease].kept.used && lent->leases[lease].deadline_ms < now) {
			lent_forget(lent, lease);
			ended[n++] = lease;
		}
	if (n)
		lent_write_journal(lent);
	lent_unlock(lent);
	tell_ended(lent, ended, n);
}

static void look_for_slot(struct lent *lent)
{
	uint32_t ended[LENT_LEASES];
	struct lent_controller c = { 0 };
	int n;

	if (take(lent->slot, lent->node, &c)) {
		expire(lent);
		return;
	}
	lent_lock(lent);
	n = install(lent, &c, ended);
	if (n >= 0)
		lender_log("%s: there is a controller at %s again", lent->info.name, lent->slot);
	lent_unlock(lent);
	tell_ended(lent, ended, n);
	if (n >= 0)
		lent->tell(lent->arg, lent, WEFT_EVENT_DEVICE_ADDED, 0);
}

static void report(struct lent *lent)
{
	lent_lock(lent);
	if (!lent->failed)
		lent_report(lent);
	lent_unlock(lent);
}

/* How long nothing is to be done by itself; 0: something is now. @look_ms: the next look at the controller */
static int time_left(const struct lent *lent, uint64_t look_ms)
{
	uint64_t now = lent_now_ms(), next = look_ms;

	if (lent->errors_due && lent->errors_ms < next)
		next = lent->errors_ms;
	return next > now ? (int)(next - now) : 0;
}

static bool has_failed(struct lent *lent)
{
	bool failed;

	lent_lock(lent);
	failed = lent->failed;
	lent_unlock(lent);
	return failed;
}

/* What is to be done after a wait. @hang_up: of the controller's socket */
static void attend(struct lent *lent, short hang_up, short interrupt, uint64_t *look_ms)
{
	if (!lent->function) {
		look_for_slot(lent);
	} else if (hang_up || has_failed(lent)) {
		lose(lent, hang_up);
	} else {
		if (interrupt)
			events(lent);
		if (lent->errors_due && lent_now_ms() >= lent->errors_ms)
			report(lent);
		if (lent_now_ms() < *look_ms)
			return;
		look(lent);
	}
	*look_ms = lent_now_ms() + (lent->function ? HEARTBEAT_MS : LOOK_FOR_SLOT_MS);
}

static void *keep(void *arg)
{
	struct lent *lent = arg;
	uint64_t look_ms = lent_now_ms() + HEARTBEAT_MS, cnt;

	while (!atomic_load(&lent->stop)) {
		struct pollfd p[3] = {
			{ .fd = lent->wake, .events = POLLIN },
			{ .fd = lent->function ? function_slot_fd(lent->function) : -1,
			  .events = POLLRDHUP },
			{ .fd = lent->admin ? admin_fd(lent->admin) : -1, .events = POLLIN },
		};

		if (poll(p, 3, time_left(lent, look_ms)) < 0 && errno != EINTR)
			break;
		if (p[0].revents && read(lent->wake, &cnt, sizeof(cnt)) < 0)
			break;
		if (lent->function || lent_now_ms() >= look_ms)
			attend(lent, p[1].revents, p[2].revents, &look_ms);
	}
	return NULL;
}

int lent_open(const char *slot, uint64_t node, const char *state,
	      void (*tell)(void *arg, struct lent *lent, uint32_t kind, uint32_t lease),
	      void *arg, struct lent **out)
{
	struct lent *lent = calloc(1, sizeof(*lent));
	struct lent_controller c = { 0 };
	uint32_t ended[LENT_LEASES];
	int err;

	if (!lent)
		return -ENOMEM;
	*lent = (struct lent){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.shown_lock = PTHREAD_MUTEX_INITIALIZER,
		.slot = slot,
		.state = state,
		.node = node,
		.tell = tell,
		.arg = arg,
		.wake = eventfd(0, EFD_CLOEXEC),
	};
	err = lent->wake < 0 ? -errno : take_first(slot, node, &c);
	if (!err) {
		lent_lock(lent);
		err = install(lent, &c, ended);
		lent_unlock(lent);
	}
	if (err >= 0) {
		err = -pthread_create(&lent->keeper, NULL, keep, lent);
		lent->has_keeper = !err;
	}
	if (err)
		lent_close(lent);
	else
		*out = lent;
	return err;
}

void lent_close(struct lent *lent)
{
	uint64_t one = 1;

	atomic_store(&lent->stop, true);
	if (lent->has_keeper && write(lent->wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(lent->keeper, NULL);
	if (lent->wake >= 0)
		close(lent->wake);
	let_go(lent);
	free(lent->owner);
	free(lent->granules);
	free(lent);
}

void lent_info(struct lent *lent, struct weft_device_info *info)
{
	pthread_mutex_lock(&lent->shown_lock);
	*info = lent->shown;
	pthread_mutex_unlock(&lent->shown_lock);
}

uint64_t lent_id(struct lent *lent)
{
	struct weft_device_info info;

	lent_info(lent, &info);
	return info.id;
}
