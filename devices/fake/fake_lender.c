/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A lender that is a model; fake_lender.h has the contract. */
#define _GNU_SOURCE
#include "fake_lender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spec.h"

#define BASE (1ULL << 32)

/* What must hold in a test, however it is built. */
static void sure(bool condition)
{
	if (!condition)
		abort();
}

int fake_file(size_t len)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	sure(fd >= 0 && !ftruncate(fd, (off_t)len) &&
	     !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	return fd;
}

static void answer_info(struct fake_lender *f, struct fake_answer *a)
{
	memcpy(a->data, &f->info, sizeof(f->info));
	a->msg.data_len = sizeof(f->info);
	a->msg.device = f->info.id;
}

static int do_list(struct fake_lender *f, struct fake_answer *a)
{
	if (a->msg.index)
		return -ENOENT;
	answer_info(f, a);
	return 0;
}

static int do_borrow(struct fake_lender *f, struct fake_answer *a)
{
	if (f->runs)
		return -EBUSY;
	f->runs = true;
	f->lease.lease++;
	f->lease.generation += 3;
	f->lease.token = (struct lease_token){ 0x5ec2e7, 0x7e2ce5 };
	f->lease.flags = a->msg.flags;
	f->lease.ms = a->msg.ms;
	a->msg.lease = f->lease.lease;
	a->msg.generation = f->lease.generation;
	a->msg.token = f->lease.token;
	answer_info(f, a);
	return 0;
}

static int do_attach(struct fake_lender *f, struct fake_answer *a)
{
	a->msg.ms = f->lease.ms;
	a->msg.flags = f->lease.flags;
	answer_info(f, a);
	return 0;
}

static void forget_windows(struct fake_lender *f)
{
	uint32_t i;

	for (i = 0; i < FAKE_WINDOWS; i++)
		if (f->windows[i].len)
			munmap(f->windows[i].mem, f->windows[i].len);
	memset(f->windows, 0, sizeof(f->windows));
}

static void forget_pair(struct fake_lender *f)
{
	struct fake_pair *p = &f->pair;

	if (!p->entries)
		return;
	__atomic_store_n(&p->doorbells->ended, 1, __ATOMIC_RELEASE);
	munmap(p->doorbells, sizeof(*p->doorbells));
	if (p->alive >= 0)
		close(p->alive);
	close(p->kick);
	if (p->vector >= 0)
		close(p->vector);
	*p = (struct fake_pair){ 0 };
}

static int do_return(struct fake_lender *f, struct fake_answer *a)
{
	forget_pair(f);
	forget_windows(f);
	f->runs = false;
	return 0;
}

static int do_window(struct fake_lender *f, struct fake_answer *a)
{
	uint32_t i = 0;
	void *mem;

	while (i < FAKE_WINDOWS && f->windows[i].len)
		i++;
	if (i == FAKE_WINDOWS)
		return -ENOSPC;
	mem = mmap(NULL, a->msg.len, PROT_READ | PROT_WRITE, MAP_SHARED, a->fds[0],
		   (off_t)a->msg.offset);
	if (mem == MAP_FAILED)
		return -EINVAL;
	f->windows[i].mem = mem;
	f->windows[i].len = a->msg.len;
	/* Between windows there is nothing. */
	f->windows[i].addr = f->next_addr;
	a->msg.addr = f->next_addr;
	f->next_addr += a->msg.len + NVME_PAGE;
	return 0;
}

static int do_unwindow(struct fake_lender *f, struct fake_answer *a)
{
	uint32_t i;

	for (i = 0; i < FAKE_WINDOWS; i++)
		if (f->windows[i].len && f->windows[i].addr == a->msg.addr) {
			munmap(f->windows[i].mem, f->windows[i].len);
			f->windows[i].len = 0;
			return 0;
		}
	return -ENOENT;
}

static int do_queues(struct fake_lender *f, struct fake_answer *a)
{
	struct flock alive = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct fake_pair *p = &f->pair;
	int file = fake_file(sizeof(*p->doorbells)), vector = a->fd_cnt ? dup(a->fds[0]) : -1;
	char path[32];

	forget_pair(f);
	*p = (struct fake_pair){ .entries = a->msg.count,
				 .sq = a->msg.addr,
				 .cq = a->msg.offset,
				 .kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				 .vector = vector };
	p->doorbells = mmap(NULL, sizeof(*p->doorbells), PROT_READ | PROT_WRITE, MAP_SHARED,
			    file, 0);
	/* A lock of an open file, and not of this process, which is the borrower's. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	p->alive = open(path, O_RDWR | O_CLOEXEC);
	sure(p->doorbells != MAP_FAILED && !fcntl(p->alive, F_OFD_SETLK, &alive));
	packet_close_fds(a->fds, a->fd_cnt);
	a->fds[0] = file;
	a->fds[1] = dup(p->kick);
	a->fd_cnt = 2;
	a->msg.index = 1;
	a->msg.addr = 0;
	a->msg.len = sizeof(*p->doorbells);
	a->msg.offset = (uint64_t)offsetof(struct slot_doorbells, cq_head) << 32;
	return 0;
}

static int do_unqueues(struct fake_lender *f, struct fake_answer *a)
{
	forget_pair(f);
	return 0;
}

static int do_memory(struct fake_lender *f, struct fake_answer *a)
{
	uint64_t cnt = (a->msg.len + FAKE_LENDER_GRANULE - 1) / FAKE_LENDER_GRANULE;

	if (cnt > 4)
		return -ENOSPC;
	while (a->fd_cnt < cnt)
		a->fds[a->fd_cnt++] = fake_file(FAKE_LENDER_GRANULE);
	a->msg.len = FAKE_LENDER_GRANULE;
	a->msg.count = (uint32_t)cnt;
	return 0;
}

static int do_admin(struct fake_lender *f, struct fake_answer *a)
{
	struct nvme_id_ns ns = { .nsze = 1 << 20, .ncap = 1 << 20 };
	struct nvme_id_ctrl ctrl = { .mdts = 5 };

	ns.lbaf[0].lbads = 9;
	memset(a->data, 0, NVME_PAGE);
	if ((uint32_t)a->msg.addr == NVME_CNS_CONTROLLER)
		memcpy(a->data, &ctrl, sizeof(ctrl));
	else if (a->msg.offset >> 32 == 1)
		memcpy(a->data, &ns, sizeof(ns));
	a->msg.data_len = NVME_PAGE;
	a->msg.offset = 0;
	return 0;
}

static int do_leases(struct fake_lender *f, struct fake_answer *a)
{
	if (!f->runs || a->msg.lease >= f->lease.lease)
		return -ENOENT;
	a->msg.lease = f->lease.lease;
	a->msg.ms = f->lease.ms;
	return 0;
}

static int do_export(struct fake_lender *f, struct fake_answer *a)
{
	if (f->exported >= 0)
		close(f->exported);
	f->exported = dup(a->fds[0]);
	f->exported_len = a->msg.len;
	a->msg.index = 7;
	a->msg.generation = ++f->exported_generation;
	a->msg.device = FAKE_LENDER_NODE;
	return 0;
}

static int do_unexport(struct fake_lender *f, struct fake_answer *a)
{
	if (f->exported < 0)
		return -ESTALE;
	close(f->exported);
	f->exported = -1;
	return 0;
}

static int do_import(struct fake_lender *f, struct fake_answer *a)
{
	if (f->exported < 0 || a->msg.generation != f->exported_generation)
		return -ESTALE;
	a->fds[a->fd_cnt++] = dup(f->exported);
	a->msg.len = f->exported_len;
	return 0;
}

static int do_nothing(struct fake_lender *f, struct fake_answer *a)
{
	a->msg.device = FAKE_LENDER_NODE;
	return 0;
}

static const struct {
	int (*run)(struct fake_lender *f, struct fake_answer *a);
	bool named;
} kinds[LEASE_KINDS] = {
	[LEASE_HELLO] = { do_nothing, false },	  [LEASE_LIST] = { do_list, false },
	[LEASE_BORROW] = { do_borrow, false },	  [LEASE_ATTACH] = { do_attach, true },
	[LEASE_RENEW] = { do_nothing, true },	  [LEASE_SHARE] = { do_nothing, true },
	[LEASE_RETURN] = { do_return, true },	  [LEASE_WINDOW] = { do_window, true },
	[LEASE_UNWINDOW] = { do_unwindow, true }, [LEASE_QUEUES] = { do_queues, true },
	[LEASE_UNQUEUES] = { do_unqueues, true }, [LEASE_MEMORY] = { do_memory, true },
	[LEASE_UNMEMORY] = { do_nothing, true },  [LEASE_ADMIN] = { do_admin, false },
	[LEASE_LEASES] = { do_leases, false },	  [LEASE_REVOKE] = { do_nothing, false },
	[LEASE_EXPORT] = { do_export, false },	  [LEASE_UNEXPORT] = { do_unexport, false },
	[LEASE_IMPORT] = { do_import, false },	  [LEASE_WATCH] = { do_nothing, false },
};

/* Whether a request names the lease that runs. */
static int check_name(const struct fake_lender *f, const struct lease_message *msg)
{
	if (!f->runs || msg->lease != f->lease.lease || msg->generation != f->lease.generation)
		return -ESTALE;
	return lease_token_same(&msg->token, &f->lease.token) ? 0 : -EACCES;
}

static void be_honest(struct fake_lender *f, struct fake_answer *a)
{
	uint16_t kind = a->msg.kind;
	int err = kinds[kind].named ? check_name(f, &a->msg) : 0;
	bool takes = kind == LEASE_WINDOW || kind == LEASE_EXPORT;

	a->msg.data_len = 0;
	if (!err)
		err = kinds[kind].run(f, a);
	if (err || takes) {
		packet_close_fds(a->fds, a->fd_cnt);
		a->fd_cnt = 0;
	}
	a->msg.status = err;
}

bool fake_lender_answer(struct fake_lender *f, const struct lease_message *msg,
			const void *data, const int *fds, struct fake_answer *a, bool *end)
{
	struct fake_rule *rule = &f->rules[msg->kind], now = *rule;

	sure(msg->kind < LEASE_KINDS && kinds[msg->kind].run);
	*end = false;
	a->msg = *msg;
	a->fd_cnt = msg->fd_cnt;
	memcpy(a->fds, fds, msg->fd_cnt * sizeof(int));
	f->asked[msg->kind]++;
	if (rule->skip) {
		rule->skip--;
		now.how = FAKE_HONEST;
	}
	if (now.how == FAKE_REFUSES) {
		packet_close_fds(a->fds, a->fd_cnt);
		a->fd_cnt = 0;
		a->msg.data_len = 0;
		a->msg.status = now.status;
	} else if (now.how != FAKE_ENDS) {
		be_honest(f, a);
	}
	a->msg.fd_cnt = a->fd_cnt;
	a->len = sizeof(a->msg) + a->msg.data_len;
	if (now.how == FAKE_LIES)
		now.lie(a);
	*end = now.how == FAKE_ENDS;
	return now.how != FAKE_SILENT && now.how != FAKE_ENDS;
}

static void send_answer(int fd, struct fake_answer *a)
{
	size_t head = a->len < sizeof(a->msg) ? a->len : sizeof(a->msg);
	struct iovec iov[2] = { { &a->msg, head }, { a->data, a->len - head } };

	packet_send(fd, iov, 2, a->fds, a->fd_cnt);
	packet_close_fds(a->fds, a->fd_cnt);
}

static void end_connection(struct fake_lender *f, uint32_t i)
{
	if (f->connections[i].fd >= 0)
		close(f->connections[i].fd);
	if (f->connections[i].late)
		packet_close_fds(f->connections[i].late->fds, f->connections[i].late->fd_cnt);
	free(f->connections[i].late);
	f->connections[i].late = NULL;
	f->connections[i].fd = -1;
	f->connections[i].watches = false;
}

static void serve(struct fake_lender *f, uint32_t i)
{
	struct fake_answer *a = calloc(1, sizeof(*a));
	struct lease_message msg;
	uint8_t data[LEASE_DATA_MAX];
	struct iovec iov[2] = { { &msg, sizeof(msg) }, { data, sizeof(data) } };
	int fds[PACKET_FDS_MAX], fd = f->connections[i].fd;
	struct fake_answer *late = f->connections[i].late;
	uint32_t cnt;
	bool end;

	if (packet_recv(fd, iov, 2, fds, &cnt, 0) < (ssize_t)sizeof(msg)) {
		end_connection(f, i);
		free(a);
		return;
	}
	if (late)
		send_answer(fd, late);
	free(late);
	f->connections[i].late = NULL;
	if (!fake_lender_answer(f, &msg, data, fds, a, &end)) {
		packet_close_fds(a->fds, a->fd_cnt);
		if (end)
			end_connection(f, i);
		free(a);
		return;
	}
	f->connections[i].watches |= msg.kind == LEASE_WATCH && !a->msg.status;
	if (f->rules[msg.kind].how == FAKE_LATE && !f->rules[msg.kind].skip) {
		f->connections[i].late = a;
		return;
	}
	send_answer(fd, a);
	free(a);
}

static void accept_one(struct fake_lender *f)
{
	uint32_t i = 0;

	while (i < FAKE_CONNECTIONS && f->connections[i].fd >= 0)
		i++;
	sure(i < FAKE_CONNECTIONS);
	f->connections[i].fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
}

static void *run(void *arg)
{
	struct fake_lender *f = arg;
	uint64_t cnt;
	uint32_t i;

	for (;;) {
		struct pollfd p[FAKE_CONNECTIONS + 2];

		pthread_mutex_lock(&f->lock);
		for (i = 0; i < FAKE_CONNECTIONS; i++)
			p[i] = (struct pollfd){ .fd = f->connections[i].fd, .events = POLLIN };
		p[i] = (struct pollfd){ .fd = f->listener, .events = POLLIN };
		p[i + 1] = (struct pollfd){ .fd = f->wake, .events = POLLIN };
		pthread_mutex_unlock(&f->lock);
		poll(p, FAKE_CONNECTIONS + 2, -1);
		pthread_mutex_lock(&f->lock);
		if (p[FAKE_CONNECTIONS + 1].revents)
			sure(read(f->wake, &cnt, sizeof(cnt)) == sizeof(cnt));
		for (i = 0; i < FAKE_CONNECTIONS; i++)
			if (p[i].revents && f->connections[i].fd == p[i].fd)
				serve(f, i);
		if (p[i].revents && f->listener == p[i].fd)
			accept_one(f);
		if (f->stop)
			break;
		pthread_mutex_unlock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void wake(struct fake_lender *f)
{
	uint64_t one = 1;

	sure(write(f->wake, &one, sizeof(one)) == sizeof(one));
}

void fake_lender_begin(struct fake_lender *f)
{
	*f = (struct fake_lender){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.folder = "/tmp/weft-fake-XXXXXX",
		.listener = -1,
		.wake = -1,
		.next_addr = BASE,
		.exported = -1,
		.info = { .id = FAKE_LENDER_DEVICE,
			  .node = FAKE_LENDER_NODE,
			  .name = "nvme-01020304-FAKE",
			  .device_class = WEFT_CLASS_NVME,
			  .blocks = 1 << 20,
			  .block_size = 512 },
	};
}

void fake_lender_forget(struct fake_lender *f)
{
	forget_pair(f);
	forget_windows(f);
	if (f->exported >= 0)
		close(f->exported);
	f->exported = -1;
	f->runs = false;
}

void fake_lender_start(struct fake_lender *f)
{
	uint32_t i;

	fake_lender_begin(f);
	f->wake = eventfd(0, EFD_CLOEXEC);
	for (i = 0; i < FAKE_CONNECTIONS; i++)
		f->connections[i].fd = -1;
	sure(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/lender", f->folder);
	f->listener = packet_listen(f->path, 0600);
	sure(f->listener >= 0 && !pthread_create(&f->thread, NULL, run, f));
}

void fake_lender_vanish(struct fake_lender *f)
{
	uint32_t i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < FAKE_CONNECTIONS; i++)
		end_connection(f, i);
	if (f->listener >= 0)
		close(f->listener);
	f->listener = -1;
	unlink(f->path);
	wake(f);
	pthread_mutex_unlock(&f->lock);
}

void fake_lender_return(struct fake_lender *f)
{
	pthread_mutex_lock(&f->lock);
	f->listener = packet_listen(f->path, 0600);
	sure(f->listener >= 0);
	wake(f);
	pthread_mutex_unlock(&f->lock);
}

void fake_lender_stop(struct fake_lender *f)
{
	fake_lender_vanish(f);
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	wake(f);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	fake_lender_forget(f);
	close(f->wake);
	rmdir(f->folder);
}

void fake_lender_rule(struct fake_lender *f, uint16_t kind, struct fake_rule rule)
{
	pthread_mutex_lock(&f->lock);
	f->rules[kind] = rule;
	pthread_mutex_unlock(&f->lock);
}

uint32_t fake_lender_asked(struct fake_lender *f, uint16_t kind)
{
	uint32_t cnt;

	pthread_mutex_lock(&f->lock);
	cnt = f->asked[kind];
	pthread_mutex_unlock(&f->lock);
	return cnt;
}

void fake_lender_end(struct fake_lender *f)
{
	uint64_t one = 1;

	pthread_mutex_lock(&f->lock);
	if (f->pair.entries) {
		__atomic_store_n(&f->pair.doorbells->ended, 1, __ATOMIC_RELEASE);
		if (f->pair.vector >= 0)
			sure(write(f->pair.vector, &one, sizeof(one)) == sizeof(one));
	}
	forget_windows(f);
	f->runs = false;
	pthread_mutex_unlock(&f->lock);
}

void fake_lender_die(struct fake_lender *f)
{
	pthread_mutex_lock(&f->lock);
	close(f->pair.alive);
	f->pair.alive = -1;
	pthread_mutex_unlock(&f->lock);
}

void fake_lender_tell(struct fake_lender *f, uint32_t kind, uint64_t device, uint32_t lease)
{
	struct lease_message msg = { .version = LEASE_VERSION,
				     .kind = LEASE_EVENT,
				     .index = kind,
				     .device = device,
				     .lease = lease };
	struct iovec iov = { &msg, sizeof(msg) };
	uint32_t i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < FAKE_CONNECTIONS; i++)
		if (f->connections[i].watches)
			packet_send(f->connections[i].fd, &iov, 1, NULL, 0);
	pthread_mutex_unlock(&f->lock);
}

void *fake_lender_mem(struct fake_lender *f, uint64_t addr)
{
	void *mem = NULL;
	uint32_t i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < FAKE_WINDOWS; i++)
		if (f->windows[i].len && addr - f->windows[i].addr < f->windows[i].len)
			mem = f->windows[i].mem + (addr - f->windows[i].addr);
	pthread_mutex_unlock(&f->lock);
	return mem;
}
