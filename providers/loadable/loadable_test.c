/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A loadable provider in a libfabric: found, preferred to that one's own, opened by programs of
 * every age, closed without a trace. The libfabric is the argument, 'stock' for the machine's; like
 * any program this one uses it only by its symbols. One thread, beside those of automatic progress.
 *
 *	usage: loadable_test PROVIDER LIBRARY|stock [leave]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <weft/mem_stats.h>

#include "info.h"

/* More than travels ahead of its receive; of datagrams, all that one has room for. */
#define LARGE	 (datagrams ? 1472u : 300000u)
#define NAME_LEN 64

typedef int (*getinfo_fn)(uint32_t version, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints, struct fi_info **info);
typedef struct fi_info *(*dupinfo_fn)(const struct fi_info *info);
typedef void (*freeinfo_fn)(struct fi_info *info);
typedef int (*fabric_fn)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

static void *library;
static char *program, *provider, *library_name;
static char file_name[64]; /* of the provider */
static bool datagrams;	   /* it has FI_EP_DGRAM alone: untagged messages, and no RMA */

/* What a program was built with. */
static const struct age {
	const char *version;
	enum info_abi abi;
	uint32_t api;
	size_t err_len; /* of its struct fi_cq_err_entry */
} ages[] = {
	{ "FABRIC_1.0", INFO_ABI_1_0, FI_VERSION(1, 4), 72 },
	{ "FABRIC_1.1", INFO_ABI_1_1, FI_VERSION(1, 5), 80 },
	{ "FABRIC_1.2", INFO_ABI_1_2, FI_VERSION(1, 7), 80 },
	{ "FABRIC_1.3", INFO_ABI_1_3, FI_VERSION(1, 17), 80 },
	{ "FABRIC_1.7", INFO_ABI_1_7, FI_VERSION(1, 20), 88 },
	{ "FABRIC_1.8", INFO_ABI_1_8, FI_VERSION(2, 0), 88 },
	{ "FABRIC_1.9", INFO_ABI_1_9, FI_VERSION(2, 5), 88 },
	{ "FABRIC_1.10", INFO_ABI_1_10, FI_VERSION(2, 6), 88 },
};
#define AGE_CNT (sizeof(ages) / sizeof(ages[0]))
#define COMMON	(&ages[3]) /* every libfabric that we load into has it */

static void *symbol(const char *name, const char *version)
{
	return dlvsym(library, name, version);
}

/* An endpoint with all that it needs. */
struct end {
	const struct age *age;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
};

static void end_ask(struct end *e, enum fi_progress progress)
{
	getinfo_fn getinfo = (getinfo_fn)symbol("fi_getinfo", e->age->version);
	dupinfo_fn dupinfo = (dupinfo_fn)symbol("fi_dupinfo", e->age->version);
	freeinfo_fn freeinfo = (freeinfo_fn)symbol("fi_freeinfo", e->age->version);
	struct fi_info *hints = dupinfo(NULL);

	hints->caps = datagrams ? FI_MSG : FI_MSG | FI_TAGGED | FI_RMA;
	hints->ep_attr->type = datagrams ? FI_EP_DGRAM : FI_EP_RDM;
	hints->domain_attr->data_progress = progress;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->fabric_attr->prov_name = strdup(provider);
	assert_int_equal(getinfo(e->age->api, NULL, NULL, 0, hints, &e->info), 0);
	freeinfo(hints);
	/* Of other interfaces. */
	if (e->info->next)
		freeinfo(e->info->next);
	e->info->next = NULL;
}

/* Moves the first @len bytes of a structure to memory that goes on with ones. */
static void *with_tail(void *part, size_t len)
{
	char *longer = malloc(len + 128);

	memcpy(longer, part, len);
	memset(longer + len, 0xff, 128);
	free(part);
	return longer;
}

/* To a program of that age the structures end there. */
static void info_end_early(struct fi_info **info, enum info_abi abi)
{
	const struct info_layout *layout = info_layout_of(abi);
	struct fi_info *i = *info;

	i->tx_attr = with_tail(i->tx_attr, layout->tx_attr);
	i->rx_attr = with_tail(i->rx_attr, layout->rx_attr);
	i->ep_attr = with_tail(i->ep_attr, layout->ep_attr);
	i->domain_attr = with_tail(i->domain_attr, layout->domain_attr);
	*info = with_tail(i, layout->info);
}

/* fi_freeinfo would read the tails. */
static void info_drop(struct fi_info *info)
{
	free(info->tx_attr);
	free(info->rx_attr);
	free(info->ep_attr);
	free(info->domain_attr->name);
	free(info->domain_attr);
	free(info->fabric_attr->name);
	free(info->fabric_attr->prov_name);
	free(info->fabric_attr);
	free(info->src_addr);
	free(info);
}

static void end_open(struct end *e, const struct age *age, enum fi_progress progress)
{
	fabric_fn fabric_open = (fabric_fn)symbol("fi_fabric",
						  age->abi ? "FABRIC_1.1" : "FABRIC_1.0");
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	*e = (struct end){ .age = age };
	end_ask(e, progress);
	info_end_early(&e->info, age->abi);
	assert_int_equal(fabric_open(e->info->fabric_attr, &e->fabric, NULL), 0);
	assert_int_equal(fi_domain(e->fabric, e->info, &e->domain, NULL), 0);
	assert_int_equal(fi_av_open(e->domain, &av_attr, &e->av, NULL), 0);
	assert_int_equal(fi_cq_open(e->domain, &cq_attr, &e->cq, NULL), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
}

static void end_close(struct end *e)
{
	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_close(&e->cq->fid), 0);
	assert_int_equal(fi_close(&e->av->fid), 0);
	assert_int_equal(fi_close(&e->domain->fid), 0);
	assert_int_equal(fi_close(&e->fabric->fid), 0);
	info_drop(e->info);
}

static void end_meet(struct end *e, struct end *other)
{
	char name[NAME_LEN];
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&other->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(e->av, name, 1, &e->peer, 0, NULL), 1);
}

/* Until the one has a completion, with progress of the other. */
static void wait_for(struct end *e, struct end *other, void *context)
{
	time_t deadline = time(NULL) + 30;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(e->cq, &entry, 1)) == -FI_EAGAIN && time(NULL) < deadline)
		fi_cq_read(other->cq, NULL, 0);
	assert_int_equal(ret, 1);
	assert_ptr_equal(entry.op_context, context);
}

static void post(struct end *e, char *in, size_t len)
{
	ssize_t ret = datagrams ? fi_recv(e->ep, in, len, NULL, FI_ADDR_UNSPEC, in)
				: fi_trecv(e->ep, in, len, NULL, FI_ADDR_UNSPEC, 7, 0, in);

	assert_int_equal(ret, 0);
}

static void send_one(struct end *from, struct end *to, size_t len)
{
	char *out = malloc(len), *in = malloc(len);

	memset(in, 0, len);
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(i % 251);
	post(to, in, len);
	assert_int_equal(datagrams ? fi_send(from->ep, out, len, NULL, from->peer, out)
				   : fi_tsend(from->ep, out, len, NULL, from->peer, 7, out),
			 0);
	wait_for(to, from, in);
	wait_for(from, to, out);
	assert_memory_equal(in, out, len);
	free(out);
	free(in);
}

static void write_one(struct end *from, struct end *to)
{
	char out[1000], in[1000] = "";
	struct iovec iov = { out, sizeof(out) };
	struct fi_rma_iov target = { .len = sizeof(out) };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = from->peer,
				  .rma_iov = &target,
				  .rma_iov_count = 1,
				  .context = out };
	struct fid_mr *mr;

	memset(out, 'w', sizeof(out));
	assert_int_equal(
		fi_mr_reg(to->domain, in, sizeof(in), FI_REMOTE_WRITE, 0, 17, 0, &mr, NULL), 0);
	if (to->info->domain_attr->mr_mode & INFO_MR_BASIC)
		target.addr = (uintptr_t)in;
	target.key = fi_mr_key(mr);
	assert_int_equal(fi_writemsg(from->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
	wait_for(from, to, out);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* An error's entry is as long as the program's structure. */
static void fail_one(struct end *e)
{
	char entry[128], in[8];
	struct fi_cq_tagged_entry none;

	memset(entry, 0, e->age->err_len);
	memset(entry + e->age->err_len, 0x5a, sizeof(entry) - e->age->err_len);
	post(e, in, sizeof(in));
	assert_int_equal(fi_cancel(&e->ep->fid, in), 0);
	assert_int_equal(fi_cq_read(e->cq, &none, 1), -FI_EAVAIL);
	assert_int_equal(e->cq->ops->readerr(e->cq, (struct fi_cq_err_entry *)entry, 0), 1);
	assert_int_equal(((struct fi_cq_err_entry *)entry)->err, FI_ECANCELED);
	for (size_t i = e->age->err_len; i < sizeof(entry); i++)
		assert_int_equal(entry[i], 0x5a);
}

static void it_is_this_file_that_answers(void **state)
{
	uint32_t (*version)(void) = (__typeof__(version))symbol("fi_version", "FABRIC_1.0");
	struct end e;
	Dl_info where;

	end_open(&e, COMMON, FI_PROGRESS_UNSPEC);
	assert_int_equal(e.info->fabric_attr->prov_version, PROVIDER_VERSION);
	assert_int_equal(dladdr((void *)e.ep->msg->send, &where) != 0, 1);
	assert_non_null(strstr(where.dli_fname, file_name));
	assert_int_equal(dladdr((void *)version, &where) != 0, 1);
	printf("in %s, whose fi_version() is %u.%u\n", where.dli_fname, FI_MAJOR(version()),
	       FI_MINOR(version()));
	end_close(&e);
}

static void programs_of_every_age_talk(void **state)
{
	size_t cnt = 0;

	for (; cnt < AGE_CNT && symbol("fi_getinfo", ages[cnt].version); cnt++) {
		struct end a, b;

		end_open(&a, &ages[cnt], FI_PROGRESS_UNSPEC);
		end_open(&b, COMMON, FI_PROGRESS_UNSPEC);
		end_meet(&a, &b);
		end_meet(&b, &a);
		send_one(&a, &b, 8);
		send_one(&b, &a, 8);
		send_one(&a, &b, LARGE);
		send_one(&b, &a, LARGE);
		if (!datagrams) {
			write_one(&a, &b);
			write_one(&b, &a);
		}
		fail_one(&a);
		end_close(&a);
		end_close(&b);
	}
	assert_true(cnt > 3);
}

static int entries_of(const char *folder)
{
	DIR *dir = opendir(folder);
	int cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* Mappings whose line has @part in it. */
static int mappings_of(const char *part)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	int cnt = 0;

	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, part) != NULL;
	fclose(maps);
	return cnt;
}

/* Two endpoints with a thread each. Says how many descriptors they had meanwhile. */
static int meet_and_part(void)
{
	struct end a, b;
	int files;

	end_open(&a, COMMON, FI_PROGRESS_AUTO);
	end_open(&b, COMMON, FI_PROGRESS_AUTO);
	end_meet(&a, &b);
	send_one(&a, &b, 8);
	send_one(&a, &b, LARGE);
	files = entries_of("/proc/self/fd");
	if (!strcmp(provider, "shm"))
		assert_true(mappings_of("memfd:") > 0);
	end_close(&a);
	end_close(&b);
	return files;
}

/*
 * But what a first time leaves: a sanitizer's thread, for example, and the page of counters (weft/mem_stats.h),
 * which the process has until it ends.
 */
static void closing_leaves_nothing(void **state)
{
	time_t deadline = time(NULL) + 30;
	int files, threads;

	meet_and_part();
	files = entries_of("/proc/self/fd");
	threads = entries_of("/proc/self/task");
	assert_true(meet_and_part() > files);
	assert_int_equal(entries_of("/proc/self/fd"), files);
	assert_int_equal(mappings_of("memfd:"), mappings_of("memfd:" WEFT_MEM_STATS_FILE " "));
	assert_true(mappings_of("memfd:") <= 1);
	/* One that was joined is listed until the kernel has taken it apart: before, too. */
	while (entries_of("/proc/self/task") > threads && time(NULL) < deadline)
		;
	assert_true(entries_of("/proc/self/task") <= threads);
}

static void assert_ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("status 0x%x", (unsigned int)status);
}

static void a_program_may_end_with_all_open(void **state)
{
	char *argv[] = { program, provider, library_name, (char *)"leave", NULL };
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
	assert_ends_well(pid);
}

static int leave(void)
{
	static struct end a, b;

	end_open(&a, COMMON, FI_PROGRESS_AUTO);
	end_open(&b, COMMON, FI_PROGRESS_AUTO);
	end_meet(&a, &b);
	send_one(&a, &b, LARGE);
	return 0;
}

/* What is called around fork() is still there when the core has let go of the provider. */
static void fork_goes_well_after_the_end(void **state)
{
	pid_t pid;

	assert_int_equal(dlclose(library), 0);
	assert_true(mappings_of(file_name) > 0);
	pid = fork();
	if (!pid)
		_exit(0);
	assert_ends_well(pid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_this_file_that_answers),
		cmocka_unit_test(programs_of_every_age_talk),
		cmocka_unit_test(closing_leaves_nothing),
		cmocka_unit_test(a_program_may_end_with_all_open),
		cmocka_unit_test(fork_goes_well_after_the_end),
	};
	char *(*tostr)(const void *data, enum fi_type type);
	bool ours;

	if (argc < 3)
		return 2;
	program = argv[0];
	provider = argv[1];
	library_name = argv[2];
	datagrams = !strcmp(provider, "udp");
	snprintf(file_name, sizeof(file_name), "lib%s-fi.so", provider);
	library = dlopen(strcmp(argv[2], "stock") ? argv[2] : "libfabric.so.1", RTLD_NOW);
	tostr = library ? (__typeof__(tostr))symbol("fi_tostr", "FABRIC_1.0") : NULL;
	ours = tostr && strstr(tostr("", FI_TYPE_VERSION), "Weft");
	if (!strcmp(argv[2], "stock") && (!tostr || ours)) {
		printf("skipped: no stock libfabric is installed\n");
		return 77;
	}
	if (!tostr) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	/* Our own core prefers what is built in to the same thing loaded. */
	setenv("FI_PROVIDER_PATH", ours ? "@" LOADABLE_DIR : LOADABLE_DIR, 1);
	/* A libfabric prefers ofi_rxm over endpoints of type FI_EP_MSG to what has FI_EP_RDM itself. */
	if (!ours)
		setenv("FI_PROVIDER", "^ofi_rxm", 1);
	if (argc > 3)
		return leave();
	return cmocka_run_group_tests_name(file_name, tests, NULL, NULL);
}
