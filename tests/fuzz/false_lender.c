/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A lender whose answers are a fuzz target's; false_lender.h has the contract. */
#define _GNU_SOURCE
#include "false_lender.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_time.h"
#include "input.h"

#define CONNECTIONS 8u

/* How long who waits for something else than a lender takes between two looks: it gives up after not too many. */
#define IDLE_MS 50u

/* How long it takes until one more message of a flood is there. */
#define FLOOD_MS 20u

/* How long a call waits that waits for ever. */
#define EVER_MS 100u

int __real_packet_connect(const char *path);
int __wrap_packet_connect(const char *path);
int __wrap_door_connect(struct doors *doors, const char *name, const char *provider);
int __real_packet_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds,
		       uint32_t fd_cnt);
int __wrap_packet_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds,
		       uint32_t fd_cnt);
ssize_t __real_packet_recv(int fd, const struct iovec *iov, size_t iov_cnt, int *fds,
			   uint32_t *fd_cnt, int ms);
ssize_t __wrap_packet_recv(int fd, const struct iovec *iov, size_t iov_cnt, int *fds,
			   uint32_t *fd_cnt, int ms);
int __real_poll(struct pollfd *fds, nfds_t cnt, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t cnt, int ms);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

/*
 * @ends: of connections, ours; -1: none. @last: the one that was opened last
 * @late: an answer that is still to come, over @late_end
 * @flood: what comes again and again, over @flood_end
 * @keeper: the library's thread, which is no thread; @rounds: it waits so often, 0: it does not run
 */
static struct {
	bool active;
	struct fake_lender model;
	enum false_how (*change)(struct fake_answer *answer);
	void (*idle)(void);
	int ends[CONNECTIONS];
	uint32_t last;
	struct fake_answer late;
	uint32_t late_end;
	bool is_late;
	struct fake_answer flood;
	uint32_t flood_end;
	bool is_flood;
	void *(*keeper)(void *arg);
	struct weft_lender *kept;
	uint32_t rounds;
	void (*event)(void);
} f;

static void end_connection(uint32_t i)
{
	if (f.ends[i] >= 0)
		close(f.ends[i]);
	f.ends[i] = -1;
}

static void drop_late(void)
{
	if (f.is_late)
		packet_close_fds(f.late.fds, f.late.fd_cnt);
	f.is_late = false;
}

static void say(uint32_t end, const struct fake_answer *a)
{
	size_t head = a->len < sizeof(a->msg) ? a->len : sizeof(a->msg);
	struct iovec iov[2] = { { (void *)&a->msg, head }, { (void *)a->data, a->len - head } };

	if (f.ends[end] >= 0)
		__real_packet_send(f.ends[end], iov, 2, a->fds, a->fd_cnt);
}

static void begin_flood(uint32_t end, const struct fake_answer *a)
{
	f.flood = *a;
	f.flood.fd_cnt = 0;
	f.flood.msg.seq--;
	f.flood_end = end;
	f.is_flood = true;
}

/* There is always something to read. */
ssize_t __wrap_packet_recv(int fd, const struct iovec *iov, size_t iov_cnt, int *fds,
			   uint32_t *fd_cnt, int ms)
{
	if (f.active && f.is_flood) {
		fake_time_pass(FLOOD_MS);
		say(f.flood_end, &f.flood);
	}
	return __real_packet_recv(fd, iov, iov_cnt, fds, fd_cnt, ms);
}

static void answer(uint32_t end, const struct lease_message *msg, const void *data,
		   const int *fds)
{
	static struct fake_answer a;
	bool ends, any = fake_lender_answer(&f.model, msg, data, fds, &a, &ends);
	enum false_how how = any ? f.change(&a) : FALSE_SILENT;

	if (f.is_late)
		say(f.late_end, &f.late);
	drop_late();
	if (how == FALSE_LATE) {
		f.late = a;
		f.late_end = end;
		f.is_late = true;
		return;
	}
	if (how == FALSE_SAYS || how == FALSE_TWICE)
		say(end, &a);
	if (how == FALSE_TWICE)
		say(end, &a);
	if (how == FALSE_FLOOD)
		begin_flood(end, &a);
	packet_close_fds(a.fds, a.fd_cnt);
	if (how == FALSE_ENDS)
		end_connection(end);
}

/* Take a request, if there is one, and answer it. */
static void serve(uint32_t end)
{
	struct lease_message msg;
	uint8_t data[LEASE_DATA_MAX];
	struct iovec iov[2] = { { &msg, sizeof(msg) }, { data, sizeof(data) } };
	struct pollfd p = { .fd = f.ends[end], .events = POLLIN };
	int fds[PACKET_FDS_MAX];
	uint32_t cnt;
	ssize_t n;

	if (f.ends[end] < 0 || __real_poll(&p, 1, 0) != 1)
		return;
	f.is_flood = false;
	n = __real_packet_recv(f.ends[end], iov, 2, fds, &cnt, -1);
	if (n <= 0) {
		end_connection(end);
		return;
	}
	/* What the library asks is whole. */
	MUST(n == (ssize_t)(sizeof(msg) + msg.data_len) && msg.version == LEASE_VERSION &&
	     msg.fd_cnt == cnt && !msg.status);
	answer(end, &msg, data, fds);
}

static int connect_here(void)
{
	uint32_t i = 0;
	int fds[2], room = 4 << 20;

	/* Where the library has closed the other end it is seen now. */
	for (i = 0; i < CONNECTIONS; i++)
		serve(i);
	for (i = 0; i < CONNECTIONS && f.ends[i] >= 0; i++)
		;
	MUST(i < CONNECTIONS);
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	MUST(!packet_limit(fds[0]) && !packet_limit(fds[1]));
	f.ends[i] = fds[1];
	f.last = i;
	return fds[0];
}

int __wrap_packet_connect(const char *path)
{
	return f.active ? connect_here() : __real_packet_connect(path);
}

int __wrap_door_connect(struct doors *doors, const char *name, const char *provider)
{
	return connect_here();
}

int __wrap_packet_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds,
		       uint32_t fd_cnt)
{
	int err = __real_packet_send(fd, iov, iov_cnt, fds, fd_cnt);
	uint32_t i;

	for (i = 0; f.active && i < CONNECTIONS; i++)
		serve(i);
	return err;
}

/* The keeper alone waits for two descriptors, and after @rounds of that it has been told to end. */
int __wrap_poll(struct pollfd *fds, nfds_t cnt, int ms)
{
	int ready;

	if (!f.active)
		return __real_poll(fds, cnt, ms);
	if (cnt == 2 && f.rounds) {
		f.event();
		if (!--f.rounds)
			atomic_store(&f.kept->stop, true);
	}
	ready = __real_poll(fds, cnt, 0);
	if (ready)
		return ready;
	if (f.idle && (!cnt || fds[0].fd < 0)) {
		fake_time_pass(IDLE_MS);
		f.idle();
	} else {
		fake_time_pass(ms < 0 ? EVER_MS : (uint64_t)ms);
	}
	return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (!f.active)
		return __real_pthread_create(thread, attr, run, arg);
	f.keeper = run;
	*thread = pthread_self();
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	return f.active ? 0 : __real_pthread_join(thread, result);
}

void false_lender_begin(enum false_how (*change)(struct fake_answer *answer), void (*idle)(void))
{
	uint32_t i;

	fake_lender_begin(&f.model);
	for (i = 0; i < CONNECTIONS; i++)
		f.ends[i] = -1;
	f.change = change;
	f.idle = idle;
	f.is_late = f.is_flood = false;
	f.rounds = 0;
	f.active = true;
}

void false_lender_end(void)
{
	uint32_t i;

	drop_late();
	for (i = 0; i < CONNECTIONS; i++)
		end_connection(i);
	fake_lender_forget(&f.model);
	f.active = false;
}

struct fake_lender *false_lender_model(void)
{
	return &f.model;
}

void false_lender_keep(struct weft_lender *lender, uint32_t rounds, void (*event)(void))
{
	f.kept = lender;
	f.event = event;
	f.rounds = rounds;
	f.keeper(lender);
	f.rounds = 0;
	atomic_store(&lender->stop, false);
}

void false_lender_tell(const void *bytes, size_t len)
{
	struct iovec iov = { (void *)bytes, len };

	if (!len)
		end_connection(f.last);
	else if (f.ends[f.last] >= 0)
		__real_packet_send(f.ends[f.last], &iov, 1, NULL, 0);
}
