/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device that is lent, of a controller that is a model; lent_rig.h has the contract. */
#define _GNU_SOURCE
#include "lent_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "descriptors.h"
#include "log.h"

#define TOLD_MAX 2048

/* struct told - an event */
struct told {
	uint32_t kind;
	uint32_t lease;
};

struct fake_device device;
struct lent *lent;
char state_folder[64];
static unsigned open_before;
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static struct told told[TOLD_MAX];
static unsigned told_cnt;
_Atomic unsigned lines;

/* In the places of others'. */
void lender_log(const char *format, ...)
{
	lines++;
}

int function_open_slot(const char *path, struct function **function)
{
	return fake_device_open(&device, function);
}

int function_slot_fd(const struct function *function)
{
	return fake_function_fd(function);
}

static void tell(void *arg, struct lent *of, uint32_t kind, uint32_t lease)
{
	pthread_mutex_lock(&told_lock);
	if (told_cnt < TOLD_MAX)
		told[told_cnt++] = (struct told){ kind, lease };
	pthread_mutex_unlock(&told_lock);
}

static void run(void *arg)
{
	fake_device_run(&device);
}

int open_again(void)
{
	return lent_open("slot", 0x1122334455667788, state_folder, tell, NULL, &lent);
}

int rig_setup(void **state)
{
	open_before = descriptors_open();
	told_cnt = 0;
	lines = 0;
	fake_device_init(&device);
	fake_time_idle(run, NULL);
	strcpy(state_folder, "/dev/shm/weft-lent.XXXXXX");
	if (!mkdtemp(state_folder)) {
		strcpy(state_folder, "/tmp/weft-lent.XXXXXX");
		if (!mkdtemp(state_folder))
			return -1;
	}
	return open_again();
}

void remove_state(void)
{
	DIR *dir = opendir(state_folder);
	struct dirent *entry;
	char path[512];

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", state_folder, entry->d_name);
		if (*entry->d_name != '.')
			unlink(path);
	}
	closedir(dir);
}

int rig_teardown(void **state)
{
	lent_close(lent);
	fake_device_fini(&device);
	remove_state();
	rmdir(state_folder);
	return descriptors_open() == open_before ? 0 : -1;
}

/* The lender ends, and another one begins. */
void restart(void)
{
	lent_close(lent);
	assert_int_equal(open_again(), 0);
}

void nudge(void)
{
	uint64_t one = 1;

	assert_int_equal(write(lent->wake, &one, sizeof(one)), sizeof(one));
}

unsigned events_so_far(void)
{
	unsigned cnt;

	pthread_mutex_lock(&told_lock);
	cnt = told_cnt;
	pthread_mutex_unlock(&told_lock);
	return cnt;
}

/* Wait for as many events, while time passes at the device's keeper. */
void wait_for_events(unsigned cnt)
{
	int tries;

	for (tries = 0; tries < 20000 && events_so_far() < cnt; tries++) {
		fake_device_run(&device);
		fake_time_pass(10);
		nudge();
		poll(NULL, 0, 1);
	}
	assert_int_equal(events_so_far(), cnt);
}

void expect_event(unsigned n, uint32_t kind, uint32_t lease)
{
	assert_int_equal(told[n].kind, kind);
	assert_int_equal(told[n].lease, lease);
}

struct lent_lease borrow_well(uint32_t flags)
{
	const struct lent_borrower by = { 4711, 1000 };
	struct lent_lease lease;

	assert_int_equal(lent_borrow(lent, &by, flags, 10000, &lease), 0);
	return lease;
}

int borrow(uint32_t flags)
{
	const struct lent_borrower by = { 4712, 1001 };
	struct lent_lease lease;

	return lent_borrow(lent, &by, flags, 10000, &lease);
}

int memory(size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

int window(const struct lent_lease *lease, size_t len, uint64_t *addr)
{
	int fd = memory(len);
	int err = lent_window(lent, lease, WEFT_WINDOW_RW, 0, len, &fd, 1, addr);

	close(fd);
	return err;
}

void bells_close(const struct lent_bells *bells)
{
	close(bells->fd);
	close(bells->kick);
}

int pair(const struct lent_lease *lease, uint64_t addr, uint16_t *qid)
{
	struct lent_queues queues = {
		.sq = addr, .cq = addr + NVME_PAGE, .entries = 64, .vector = -1
	};
	struct lent_bells bells;
	int err = lent_queue_pair(lent, lease, &queues, qid, &bells);

	if (!err)
		bells_close(&bells);
	return err;
}

struct weft_device_info info_now(void)
{
	struct weft_device_info info;

	lent_info(lent, &info);
	return info;
}
