/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of an Open MPI job is removed from the component btl/weft, alive and killed, while operations on it are
 * under way and pending: each is told of once. Two ranks; the first does the work, the second is killed.
 *
 * usage: mpirun --enable-recovery -np 2 --mca pml ob1 --mca btl self,weft --mca btl_weft_timeout SECONDS
 *	removed SECONDS [WORD...]
 *
 * full:    what a device has of a process that has died stays in its queue for ever, which has no room for others then;
 *          a lock of shared memory that the process held stays locked, so it is stopped where it holds none
 * threads: MPI_THREAD_MULTIPLE
 */
#include "opal_config.h"
#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "opal/constants.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/proc.h"

/* More puts than a device takes at once, fewer than the component keeps. */
#define PUTS	 3000
#define MESSAGES 100
#define LONG	 ((size_t)1 << 20)
#define LEN	 (LONG + PUTS * sizeof(uint64_t))
#define SPARE	 20 /* s; for what has to end by itself, and beside waits */

#define TAG ((mca_btl_base_tag_t)(MCA_BTL_TAG_MAX - 1))

/* struct told - how often Open MPI was told of an operation, and with which status */
struct told {
	int cnt, status;
	mca_btl_base_descriptor_t *message;
};

/* struct remote - memory of the second rank */
struct remote {
	pid_t pid;
	uint64_t addr;
	unsigned char handle[256];
};

static mca_btl_base_module_t *module;
static struct remote remote;
static struct told told[PUTS + MESSAGES + 4];
static size_t begun;
static bool stays_full;
static unsigned char *local;

static void __attribute__((noreturn)) fail(const char *what, long value)
{
	fprintf(stderr, "removed: %s: %ld\n", what, value);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static void check(const char *what, long value, long expected)
{
	if (value != expected)
		fail(what, value);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static mca_btl_base_module_t *find(void)
{
	opal_list_t *list = &mca_btl_base_modules_initialized;

	for (opal_list_item_t *item = opal_list_get_first(list);
	     item != opal_list_get_end(list); item = opal_list_get_next(item)) {
		mca_btl_base_selected_module_t *it = (mca_btl_base_selected_module_t *)item;

		if (!strcmp(it->btl_component->btl_version.mca_component_name, "weft"))
			return it->btl_module;
	}
	fail("there is no module of btl/weft", 0);
}

static void ended(mca_btl_base_module_t *by, struct mca_btl_base_endpoint_t *endpoint,
		  void *address, mca_btl_base_registration_handle_t *handle, void *context,
		  void *data, int status)
{
	struct told *it = data;

	it->cnt++;
	it->status = status;
}

/* Every second message is given back here, others later or by the component. */
static void sent(mca_btl_base_module_t *by, struct mca_btl_base_endpoint_t *endpoint,
		 mca_btl_base_descriptor_t *message, int status)
{
	struct told *it = message->des_cbdata;

	it->cnt++;
	it->status = status;
	if (it->message && (it - told) % 2) {
		it->message = NULL;
		by->btl_free(by, message);
	}
}

static struct opal_proc_t *proc_of(uint32_t rank)
{
	opal_process_name_t name = OPAL_PROC_MY_NAME;

	name.vpid = rank;
	return opal_proc_for_name(name);
}

/* An endpoint of our own. */
static struct mca_btl_base_endpoint_t *add(uint32_t rank)
{
	struct mca_btl_base_endpoint_t *endpoint = NULL;
	struct opal_proc_t *proc = proc_of(rank);

	check("add_procs", module->btl_add_procs(module, 1, &proc, &endpoint, NULL),
	      OPAL_SUCCESS);
	if (!endpoint)
		fail("add_procs has no endpoint of rank", rank);
	return endpoint;
}

/* Returns how many seconds it has taken. */
static double remove_proc(uint32_t rank, struct mca_btl_base_endpoint_t *endpoint)
{
	struct opal_proc_t *proc = proc_of(rank);
	double since = now();

	check("del_procs", module->btl_del_procs(module, 1, &proc, &endpoint), OPAL_SUCCESS);
	return now() - since;
}

static mca_btl_base_registration_handle_t *remote_handle(void)
{
	return (void *)remote.handle;
}

static struct told *begin(void)
{
	told[begun] = (struct told){ 0 };
	return &told[begun++];
}

static int put(struct mca_btl_base_endpoint_t *endpoint, uint64_t offset, size_t len,
	       struct told *it)
{
	return module->btl_put(module, endpoint, local + offset, remote.addr + offset, NULL,
			       remote_handle(), len, 0, MCA_BTL_NO_ORDER, ended, NULL, it);
}

/* More puts of a word each than the device takes at once. */
static void put_words(struct mca_btl_base_endpoint_t *endpoint)
{
	for (size_t i = 0; i < PUTS; i++)
		check("put", put(endpoint, LONG + 8 * i, 8, begin()), OPAL_SUCCESS);
}

static void send_message(struct mca_btl_base_endpoint_t *endpoint, size_t len)
{
	struct told *it = begin();
	uint32_t flags = MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	mca_btl_base_descriptor_t *message;
	int ret;

	if ((it - told) % 3 == 0)
		flags |= MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
	message = module->btl_alloc(module, endpoint, MCA_BTL_NO_ORDER, len, flags);
	if (!message)
		fail("alloc", (long)len);
	if (!(flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP))
		it->message = message;
	memset(message->des_segments->seg_addr.pval, 1, len);
	message->des_cbfunc = sent;
	message->des_cbdata = it;
	ret = module->btl_send(module, endpoint, message, TAG);
	if (ret != OPAL_SUCCESS && ret != 1)
		fail("send", ret);
}

/* All kinds of operations. */
static void begin_all(struct mca_btl_base_endpoint_t *endpoint)
{
	static uint64_t old[2];

	begun = 0;
	check("put", put(endpoint, 0, LONG, begin()), OPAL_SUCCESS);
	check("get",
	      module->btl_get(module, endpoint, local, remote.addr, NULL, remote_handle(), LONG,
			      0, MCA_BTL_NO_ORDER, ended, NULL, begin()),
	      OPAL_SUCCESS);
	check("fetch and add",
	      module->btl_atomic_fop(module, endpoint, &old[0], remote.addr, NULL,
				     remote_handle(), MCA_BTL_ATOMIC_ADD, 1, 0,
				     MCA_BTL_NO_ORDER, ended, NULL, begin()),
	      OPAL_SUCCESS);
	check("compare and swap",
	      module->btl_atomic_cswap(module, endpoint, &old[1], remote.addr, NULL,
				       remote_handle(), 1, 2, 0, MCA_BTL_NO_ORDER, ended, NULL,
				       begin()),
	      OPAL_SUCCESS);
	for (size_t i = 0; i < MESSAGES; i++)
		send_message(endpoint, i % 2 ? 40 : 9000);
	put_words(endpoint);
}

/* Each operation was told of once. Returns how many have failed. */
static size_t check_told(void)
{
	size_t failed = 0;

	for (size_t i = 0; i < begun; i++) {
		if (told[i].cnt != 1)
			fprintf(stderr, "removed: operation %zu of %zu was told of %d times\n",
				i, begun, told[i].cnt);
		check("an operation was not told of once", told[i].cnt, 1);
		failed += told[i].status != OPAL_SUCCESS;
		if (told[i].message)
			module->btl_free(module, told[i].message);
		told[i].message = NULL;
	}
	return failed;
}

static void check_within(const char *what, double took, double most)
{
	if (took > most)
		fail(what, (long)took);
}

/* What is pending to a process that lives is carried out. */
static void remove_one_that_lives(void)
{
	struct mca_btl_base_endpoint_t *endpoint = add(1);

	for (size_t i = 0; i < LEN; i++)
		local[i] = (unsigned char)(i / 8 * 5 + i);
	begun = 0;
	put_words(endpoint);
	check_within("removing a process takes s", remove_proc(1, endpoint), SPARE);
	check("operations on a process that lives have failed", (long)check_told(), 0);
	endpoint = add(1);
	begun = 0;
	memset(local + LONG, 0, LEN - LONG);
	check("get",
	      module->btl_get(module, endpoint, local + LONG, remote.addr + LONG, NULL,
			      remote_handle(), LEN - LONG, 0, MCA_BTL_NO_ORDER, ended, NULL,
			      begin()),
	      OPAL_SUCCESS);
	remove_proc(1, endpoint);
	check("a get has failed", (long)check_told(), 0);
	for (size_t i = LONG; i < LEN; i++)
		check("a byte was not put", local[i], (unsigned char)(i / 8 * 5 + i));
}

/* The memory of this process is reached whatever has become of others. */
static void put_to_itself(void)
{
	static uint64_t here, there;
	mca_btl_base_registration_handle_t *own = module->btl_register_mem(
		module, NULL, &there, sizeof(there), MCA_BTL_REG_FLAG_ACCESS_ANY);

	if (!own)
		fail("register", 0);
	here = there + 1;
	begun = 0;
	check("put to itself",
	      module->btl_put(module, NULL, &here, (uint64_t)(uintptr_t)&there, NULL, own,
			      sizeof(here), 0, MCA_BTL_NO_ORDER, ended, NULL, begin()),
	      OPAL_SUCCESS);
	check("flush", module->btl_flush(module, NULL), OPAL_SUCCESS);
	check("put to itself", (long)check_told(), 0);
	check("what was put", (long)there, (long)here);
	module->btl_deregister_mem(module, own);
}

/* Returns how many operations have failed. */
static size_t remove_one_that_is_killed(int timeout)
{
	struct mca_btl_base_endpoint_t *endpoint = add(1);
	size_t failed, all;
	struct told none = { 0 };

	begin_all(endpoint);
	check("kill", kill(remote.pid, SIGKILL), 0);
	check_within("removing a dead process takes s", remove_proc(1, endpoint),
		     timeout + SPARE);
	/* Open MPI removes some twice */
	check_within("removing it again takes s", remove_proc(1, endpoint), timeout - 2);
	failed = check_told();
	if (put(endpoint, 0, 8, &none) == OPAL_SUCCESS)
		fail("a put to a process that was removed has begun", 0);
	all = begun;
	if (!stays_full)
		put_to_itself();
	for (int i = 0; i < 10000; i++)
		module->btl_component->btl_progress();
	begun = all;
	/* the first is the one to this process */
	for (size_t i = 1; i < all; i++)
		check("an operation was told of again", told[i].cnt, 1);
	return failed;
}

/* Whether a stopped thread of the second rank was in a call of the kernel, where libfabric holds a lock only to copy. */
static bool waits(const char *task)
{
	char path[300];
	FILE *file;
	long nr = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/syscall", (int)remote.pid, task);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%ld", &nr) != 1)
		nr = -1;
	fclose(file);
	return nr >= 0 && nr != SYS_process_vm_readv && nr != SYS_process_vm_writev;
}

static bool all_wait(void)
{
	char path[64];
	DIR *dir;
	bool yes = true;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)remote.pid);
	dir = opendir(path);
	if (!dir)
		fail("opendir", errno);
	for (struct dirent *it; (it = readdir(dir));)
		yes = yes && (it->d_name[0] == '.' || waits(it->d_name));
	closedir(dir);
	return yes;
}

static void stop_second(void)
{
	double end = now() + SPARE;

	check("stop", kill(remote.pid, SIGSTOP), 0);
	while (stays_full && !all_wait()) {
		check("continue", kill(remote.pid, SIGCONT), 0);
		usleep(1000);
		check("stop", kill(remote.pid, SIGSTOP), 0);
		usleep(1000);
		if (now() > end)
			fail("the second rank never waits", 0);
	}
}

static void first(int timeout)
{
	struct mca_btl_base_endpoint_t *endpoint;
	size_t failed, all;
	double since;

	MPI_Recv(&remote, sizeof(remote), MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	remove_one_that_lives();
	/* it takes nothing any more, and is not yet found to be dead */
	stop_second();
	failed = remove_one_that_is_killed(timeout);
	all = begun;
	/* the end finds some more */
	endpoint = add(1);
	begun = 0;
	for (size_t i = 0; i < 10; i++)
		put(endpoint, LONG + 8 * i, 8, begin());
	since = now();
	check("finalize", module->btl_finalize(module), OPAL_SUCCESS);
	since = now() - since;
	check_within("finalize takes s", since, timeout + SPARE);
	printf("removed: %zu of %zu operations have failed, each was told of once; finalize took "
	       "%.1f s\n",
	       failed, all, since);
	fflush(stdout);
	/* MPI waits for the dead */
	_exit(0);
}

static void second(void)
{
	mca_btl_base_registration_handle_t *own = module->btl_register_mem(
		module, NULL, local, LEN, MCA_BTL_REG_FLAG_ACCESS_ANY);

	if (!own || module->btl_registration_handle_size > sizeof(remote.handle))
		fail("register", (long)module->btl_registration_handle_size);
	remote.pid = getpid();
	remote.addr = (uintptr_t)local;
	memcpy(remote.handle, own, module->btl_registration_handle_size);
	MPI_Send(&remote, sizeof(remote), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	for (;;)
		pause();
}

static bool is_said(char *const *words, const char *word)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words;
}

int main(int argc, char **argv)
{
	int rank, level;

	MPI_Init_thread(&argc, &argv,
			is_said(argv, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
			&level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	module = find();
	local = calloc(1, LEN);
	if (argc < 2 || !local)
		fail("usage: removed SECONDS [WORD...]", argc);
	stays_full = is_said(argv, "full");
	if (rank)
		second();
	else
		first(atoi(argv[1]));
}
