/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets themselves: listening, accepting, connecting and reading. Called by socket.c with its
 * lock, which protects everything here; nothing blocks.
 *
 * A faulty process of the same user may connect and send nothing: of the sockets that no connection
 * uses IDLE_MAX stay open, and the one that has been idle longest is closed for another.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include "channel.h"
#include "conn.h"
#include "epoll.h"
#include "provider.h"
#include "socket.h"

/* Nothing is accepted for so long when descriptors are lacking. */
#define PAUSE_NS 10000000u
/* Sockets that one call of pshm_channels_look() reads, and notes that it reads of each. */
#define EVENTS_MAX 64u
#define NOTES_MAX  16u
/* Accepted sockets that no connection uses. */
#define IDLE_MAX 64u
/* Bytes of a folder's path that a socket's name has room for, with its NUL. */
#define FOLDER_LEN 82u
#define ABSTRACT   0
#define IN_FOLDER  1
#define LISTENERS  2

static struct list channels = { &channels, &channels };
static int listeners[LISTENERS] = { -1, -1 };
/* of the second listener */
static char folder[FOLDER_LEN];
/* the number that both listen at */
static uint64_t key;
/* epoll descriptor of all sockets, or -1 */
static int watch = -1;
static uint32_t idle_cnt;
/* channels with an unsent answer */
static uint32_t unsent_cnt;
/* no listener is watched until then; 0: they are */
static uint64_t paused_ns;

/* Listening */

static void folder_setting(void)
{
	char *text = NULL;

	folder[0] = '\0';
	if (fi_param_get_str(&pshm_provider, "socket_dir", &text) || !text || !*text)
		return;
	if (strlen(text) < sizeof(folder))
		strcpy(folder, text);
	else
		FI_WARN(&pshm_provider, FI_LOG_EP_CTRL,
			"FI_SHM_SOCKET_DIR is ignored: the path is too long for a socket\n");
}

static void listen_in_folder(void)
{
	if (!folder[0])
		return;
	sys_local_remove_stale(folder);
	listeners[IN_FOLDER] = sys_local_listen(key, folder);
	if (listeners[IN_FOLDER] < 0)
		FI_WARN(&pshm_provider, FI_LOG_EP_CTRL,
			"can't make a socket in FI_SHM_SOCKET_DIR (%s): %s\n", folder,
			strerror(-listeners[IN_FOLDER]));
}

static int listeners_watch(void)
{
	int err = 0;

	for (int i = 0; i < LISTENERS && !err; i++)
		if (listeners[i] >= 0)
			err = sys_epoll_add_known(watch, listeners[i], &listeners[i]);
	return err;
}

/* Sockets to other processes */

static void channel_free(struct pshm_channel *c)
{
	list_remove(&c->link);
	if (c->process.fd >= 0) {
		/*
		 * a child before its exec may have it open too: closing alone would leave it in
		 * the epoll set
		 */
		sys_epoll_remove(watch, c->process.fd);
		sys_local_close(c->process.fd);
	}
	platform_free(c);
}

/* Ends the channel; it is freed with its last reference. */
static void channel_over(struct pshm_channel *c)
{
	if (atomic_exchange_explicit(&c->process.over, true, memory_order_relaxed))
		return;
	unsent_cnt -= c->has_unsent;
	c->has_unsent = false;
	sys_epoll_remove(watch, c->process.fd);
	sys_local_shutdown(c->process.fd);
	if (c->process.refs)
		return;
	idle_cnt -= !c->asked;
	channel_free(c);
}

void pshm_channel_hold(struct pshm_channel *c)
{
	if (!c->process.refs++)
		idle_cnt -= !c->asked;
}

void pshm_channel_put(struct pshm_channel *c)
{
	if (--c->process.refs)
		return;
	if (c->asked || atomic_load_explicit(&c->process.over, memory_order_relaxed)) {
		channel_free(c);
		return;
	}
	idle_cnt++;
	c->idle_ns = platform_now_ns();
}

/* Takes @sock, even on failure. Returns a channel without a reference, or NULL and -FI_E*. */
static struct pshm_channel *channel_new(int sock, bool asked, int *err)
{
	struct pshm_channel *c = NULL;
	pid_t pid = 0;

	*err = -FI_EHOSTUNREACH;
	if (!sys_local_same_user(sock, &pid))
		goto err_close;
	*err = -FI_ENOMEM;
	c = platform_alloc(sizeof(*c));
	if (!c)
		goto err_close;
	*err = sys_epoll_add_known(watch, sock, c);
	if (*err)
		goto err_close;
	c->process.pid = (uint32_t)pid;
	c->process.fd = sock;
	c->process.how = PSHM_BY_SOCKET;
	c->process.release = pshm_sockets_release;
	c->process.wake = pshm_sockets_wake;
	c->asked = asked;
	list_init(&c->process.link);
	list_add_tail(&channels, &c->link);
	if (!asked) {
		idle_cnt++;
		c->idle_ns = platform_now_ns();
	}
	return c;

err_close:
	platform_free(c);
	sys_local_close(sock);
	return NULL;
}

int pshm_note_send(const struct pshm_channel *c, const struct pshm_note *note, const int *fds,
		   unsigned int cnt)
{
	return sys_local_send(c->process.fd, note, sizeof(*note), fds, cnt);
}

int pshm_note_refuse(struct pshm_channel *c, const uint8_t pair[PSHM_NONCE], int err)
{
	struct pshm_note note = pshm_note_of(PSHM_NOTE_REFUSED);

	note.error = (uint32_t)-err;
	memcpy(note.pair, pair, PSHM_NONCE);
	err = c->has_unsent ? -FI_EAGAIN : pshm_note_send(c, &note, NULL, 0);
	if (err != -FI_EAGAIN || c->has_unsent)
		return err;
	c->unsent = note;
	c->has_unsent = true;
	unsent_cnt++;
	sys_epoll_remove(watch, c->process.fd);
	return 0;
}

/* Sends the answers for which there was no room. */
static void send_unsent(void)
{
	struct pshm_channel *c;
	int err;

	list_for_each_entry(c, &channels, link) {
		if (!unsent_cnt)
			return;
		if (!c->has_unsent)
			continue;
		err = pshm_note_send(c, &c->unsent, NULL, 0);
		if (err == -FI_EAGAIN)
			continue;
		unsent_cnt--;
		c->has_unsent = false;
		if (err || sys_epoll_add_known(watch, c->process.fd, c))
			channel_over(c);
	}
}

/* Reads the notes of a channel, which may be freed by that. */
static void channel_read(struct pshm_channel *c)
{
	struct sys_local_received received;
	struct pshm_note note;
	ssize_t n;

	for (uint32_t i = 0; i < NOTES_MAX; i++) {
		n = sys_local_recv(c->process.fd, &note, sizeof(note), &received);
		if (n == -FI_EAGAIN || n == -FI_ENOMEM)
			return;
		if (n != (ssize_t)sizeof(note)) {
			/* an empty message has descriptors too */
			pshm_received_close(&received);
			channel_over(c);
			return;
		}
		if (pshm_note_take(c, &note, &received)) {
			channel_over(c);
			return;
		}
		if (c->has_unsent)
			return;
	}
}

/* Looks */

static void idle_limit(void)
{
	struct pshm_channel *oldest = NULL;
	struct pshm_channel *c;

	if (idle_cnt <= IDLE_MAX)
		return;
	list_for_each_entry(c, &channels, link) {
		if (!c->asked && !c->process.refs && (!oldest || c->idle_ns < oldest->idle_ns))
			oldest = c;
	}
	if (oldest)
		channel_over(oldest);
}

static void accept_one(int listener)
{
	struct pshm_channel *c;
	int sock, err;

	sock = sys_local_accept(listener);
	if (sock >= 0) {
		c = channel_new(sock, false, &err);
		if (!c)
			return;
		channel_read(c);
		idle_limit();
		return;
	}
	if (sock == -FI_EAGAIN || !pshm_is_shortage(sock))
		return;
	/*
	 * the listener stays readable: without a pause a sleeper would be woken at once again and
	 * again
	 */
	paused_ns = platform_now_ns() + PAUSE_NS;
	for (int i = 0; i < LISTENERS; i++)
		if (listeners[i] >= 0)
			sys_epoll_remove(watch, listeners[i]);
}

static void resume(void)
{
	if (!paused_ns || platform_now_ns() < paused_ns)
		return;
	paused_ns = 0;
	if (listeners_watch())
		paused_ns = platform_now_ns() + PAUSE_NS;
}

bool pshm_channels_look(void)
{
	bool any = false;
	void *what;

	resume();
	if (unsent_cnt)
		send_unsent();
	for (uint32_t i = 0; i < EVENTS_MAX && sys_epoll_next(watch, &what) == 1; i++) {
		any = true;
		if (what == &listeners[ABSTRACT] || what == &listeners[IN_FOLDER])
			accept_one(*(int *)what);
		else
			channel_read(what);
	}
	return any;
}

int pshm_channels_watch(void)
{
	return watch;
}

void pshm_channels_close(void)
{
	struct pshm_channel *c;

	for (int i = 0; i < LISTENERS; i++) {
		if (listeners[i] < 0)
			continue;
		if (i == IN_FOLDER)
			sys_local_remove(key, folder);
		sys_local_close(listeners[i]);
		listeners[i] = -1;
	}
	list_for_each_entry(c, &channels, link)
		channel_over(c);
	if (watch >= 0)
		sys_local_close(watch);
	watch = -1;
	paused_ns = 0;
}

int pshm_channels_open(uint64_t number)
{
	int err;

	if (watch >= 0)
		return 0;
	key = number;
	watch = sys_epoll_open();
	if (watch < 0)
		return watch;
	folder_setting();
	listeners[ABSTRACT] = sys_local_listen(key, NULL);
	err = listeners[ABSTRACT];
	listen_in_folder();
	if (listeners[IN_FOLDER] >= 0)
		err = 0;
	if (err >= 0)
		err = listeners_watch();
	if (err)
		pshm_channels_close();
	return err;
}

struct pshm_channel *pshm_channel_find(uint64_t number)
{
	struct pshm_channel *c;

	list_for_each_entry(c, &channels, link) {
		if (c->asked && c->key == number && !pshm_process_dead(&c->process))
			return c;
	}
	return NULL;
}

struct pshm_channel *pshm_channel_connect(uint64_t number, int *err)
{
	struct pshm_channel *found = pshm_channel_find(number);
	int sock;

	if (found)
		return found;
	sock = sys_local_connect(number, NULL);
	if (sock == -FI_ECONNREFUSED && folder[0])
		sock = sys_local_connect(number, folder);
	if (sock >= 0) {
		struct pshm_channel *c = channel_new(sock, true, err);

		if (c)
			c->key = number;
		return c;
	}
	*err = pshm_is_shortage(sock) || sock == -FI_EAGAIN ? sock : -FI_EHOSTUNREACH;
	return NULL;
}

bool pshm_channels_open_now(void)
{
	return watch >= 0;
}

bool pshm_channels_paused(void)
{
	return paused_ns || unsent_cnt;
}

void pshm_channels_forget(void)
{
	struct list *node;

	for (int i = 0; i < LISTENERS; i++) {
		if (listeners[i] >= 0)
			sys_local_close(listeners[i]);
		listeners[i] = -1;
	}
	while ((node = list_pop(&channels))) {
		struct pshm_channel *c = container_of(node, struct pshm_channel, link);

		list_init(node);
		c->has_unsent = false;
		sys_local_close(c->process.fd);
		c->process.fd = -1;
		atomic_store_explicit(&c->process.over, true, memory_order_relaxed);
		if (!c->process.refs)
			platform_free(c);
	}
	pshm_channels_close();
	idle_cnt = unsent_cnt = 0;
}
