/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path - the calls of an 8-byte message, of 8-byte writes by packet and by a store, and of an 8-byte addition, to be
 * counted by callgrind
 *
 * usage: path PROVIDER [auto]
 *
 * Two endpoints of one process, each with a domain of its own (FI_THREAD_DOMAIN), send each
 * other tagged messages over shared memory, write and add. measured_send() and its like hold one call each;
 * tests/callgrind/budget.py has callgrind collect inside them alone. The library's clock is
 * ours: under callgrind every round would take so long that other wires were polled in each. With
 * `auto` the domains have automatic progress, and threads, whose clock is the real one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <weft/mem.h>

#define WARM 300
#define WARM_MAPPED \
	3000 /* ... until the peer has mapped what is shared, and is asked nothing */
#define KEY	 1
#define SHARED	 2   /* key of what peers map */
#define MEASURED 100 /* budget.py divides by it */

struct side {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_ep *rma; /* the same: writes complete at the target */
	struct fid_mr *mr;
	uint64_t word; /* that the peer writes */
	struct fid_mr *shared_mr;
	uint64_t *shared; /* the same, in memory that the peer maps */
	fi_addr_t peer;
	char name[64];
};

ssize_t measured_send(struct side *s, const uint64_t *word);
ssize_t measured_inject(struct side *s, const uint64_t *word);
ssize_t measured_senddata(struct side *s, const uint64_t *word);
ssize_t measured_injectdata(struct side *s, const uint64_t *word);
ssize_t measured_read(struct side *s, struct fi_cq_tagged_entry *entry);
ssize_t measured_idle(struct side *s, struct fi_cq_tagged_entry *entry);
ssize_t measured_post(struct side *s, uint64_t *word);
ssize_t measured_write(struct side *s, const uint64_t *word);
ssize_t measured_delivered(struct side *s, const uint64_t *word);
ssize_t measured_written(struct side *s, struct fi_cq_tagged_entry *entry);
ssize_t measured_stored(struct side *s, const uint64_t *word);
ssize_t measured_add(struct side *s, const uint64_t *word);
ssize_t measured_added(struct side *s, struct fi_cq_tagged_entry *entry);
ssize_t measured_fetch(struct side *s, const uint64_t *word, uint64_t *before);
ssize_t measured_fetched(struct side *s, struct fi_cq_tagged_entry *entry);

static __thread bool program; /* this thread is the program's */

/* A program that only communicates: between two looks at the clock pass 100 ns. */
int clock_gettime(clockid_t id, struct timespec *at)
{
	static uint64_t now_ns = 1000000000;

	if (!program)
		return (int)syscall(SYS_clock_gettime, id, at);
	now_ns += 100;
	*at = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				 .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

static void check(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "path: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void share_word(struct side *s)
{
	struct weft_mem_ops *mem;

	check("fi_open_ops", fi_open_ops(&s->domain->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL));
	check("alloc",
	      mem->alloc(sizeof(*s->shared), 64, WEFT_MEM_REMOTE_WRITE, (void **)&s->shared));
	check("fi_mr_reg", fi_mr_reg(s->domain, s->shared, sizeof(*s->shared), FI_REMOTE_WRITE,
				     0, SHARED, 0, &s->shared_mr, NULL));
}

static void side_open(struct side *s, const char *provider, enum fi_progress progress)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	size_t len = sizeof(s->name);

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = progress;
	hints->domain_attr->data_progress = progress;
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info));
	check("fi_fabric", fi_fabric(info->fabric_attr, &s->fabric, NULL));
	check("fi_domain", fi_domain(s->fabric, info, &s->domain, NULL));
	check("fi_av_open", fi_av_open(s->domain, &av_attr, &s->av, NULL));
	check("fi_cq_open", fi_cq_open(s->domain, &cq_attr, &s->cq, NULL));
	check("fi_endpoint", fi_endpoint(s->domain, info, &s->ep, NULL));
	check("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	check("fi_ep_bind",
	      fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	check("fi_ep_bind", fi_ep_bind(s->ep, &s->cq->fid, FI_RECV));
	check("fi_enable", fi_enable(s->ep));
	check("fi_ep_alias", fi_ep_alias(s->ep, &s->rma, FI_TRANSMIT | FI_DELIVERY_COMPLETE));
	check("fi_mr_reg", fi_mr_reg(s->domain, &s->word, sizeof(s->word),
				     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &s->mr, NULL));
	share_word(s);
	check("fi_getname", fi_getname(&s->ep->fid, s->name, &len));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

__attribute__((noinline)) ssize_t measured_send(struct side *s, const uint64_t *word)
{
	return fi_tsend(s->ep, word, sizeof(*word), NULL, s->peer, 7, NULL);
}

__attribute__((noinline)) ssize_t measured_inject(struct side *s, const uint64_t *word)
{
	return fi_tinject(s->ep, word, sizeof(*word), s->peer, 7);
}

/* What Open MPI and MPICH send with. */
__attribute__((noinline)) ssize_t measured_senddata(struct side *s, const uint64_t *word)
{
	return fi_tsenddata(s->ep, word, sizeof(*word), NULL, 5, s->peer, 7, NULL);
}

__attribute__((noinline)) ssize_t measured_injectdata(struct side *s, const uint64_t *word)
{
	return fi_tinjectdata(s->ep, word, sizeof(*word), 5, s->peer, 7);
}

__attribute__((noinline)) ssize_t measured_read(struct side *s, struct fi_cq_tagged_entry *entry)
{
	return fi_cq_read(s->cq, entry, 1);
}

/* A read that finds nothing. */
__attribute__((noinline)) ssize_t measured_idle(struct side *s, struct fi_cq_tagged_entry *entry)
{
	return fi_cq_read(s->cq, entry, 1);
}

__attribute__((noinline)) ssize_t measured_post(struct side *s, uint64_t *word)
{
	return fi_trecv(s->ep, word, sizeof(*word), NULL, s->peer, 7, 0, NULL);
}

__attribute__((noinline)) ssize_t measured_write(struct side *s, const uint64_t *word)
{
	return fi_write(s->ep, word, sizeof(*word), NULL, s->peer, 0, KEY, NULL);
}

__attribute__((noinline)) ssize_t measured_delivered(struct side *s, const uint64_t *word)
{
	return fi_write(s->rma, word, sizeof(*word), NULL, s->peer, 0, KEY, NULL);
}

/* It is there when the call returns. */
__attribute__((noinline)) ssize_t measured_stored(struct side *s, const uint64_t *word)
{
	return fi_write(s->ep, word, sizeof(*word), NULL, s->peer, 0, SHARED, NULL);
}

/* The read that lets a write arrive, and finds nothing. */
__attribute__((noinline)) ssize_t measured_written(struct side *s,
						   struct fi_cq_tagged_entry *entry)
{
	return fi_cq_read(s->cq, entry, 1);
}

__attribute__((noinline)) ssize_t measured_add(struct side *s, const uint64_t *word)
{
	return fi_atomic(s->ep, word, 1, NULL, s->peer, 0, KEY, FI_UINT64, FI_SUM, NULL);
}

/* The read that lets an addition arrive, and finds nothing. */
__attribute__((noinline)) ssize_t measured_added(struct side *s,
						 struct fi_cq_tagged_entry *entry)
{
	return fi_cq_read(s->cq, entry, 1);
}

__attribute__((noinline)) ssize_t measured_fetch(struct side *s, const uint64_t *word,
						 uint64_t *before)
{
	return fi_fetch_atomic(s->ep, word, 1, NULL, before, NULL, s->peer, 0, KEY, FI_UINT64,
			       FI_SUM, NULL);
}

/* The read in which an addition with a result arrives at the target, and which finds no entry. */
__attribute__((noinline)) ssize_t measured_fetched(struct side *s,
						   struct fi_cq_tagged_entry *entry)
{
	return fi_cq_read(s->cq, entry, 1);
}

static void is_word(const char *what, uint64_t word, uint64_t expected)
{
	if (word == expected)
		return;
	fprintf(stderr, "path: %s %lu instead of %lu\n", what, (unsigned long)word,
		(unsigned long)expected);
	exit(1);
}

static void add_word(struct side *from, struct side *to, uint64_t word)
{
	uint64_t expected = to->word + word;
	struct fi_cq_tagged_entry entry;

	check("measured add", measured_add(from, &word));
	if (measured_added(to, &entry) != -FI_EAGAIN)
		check("measured added", -FI_EOTHER);
	is_word("an addition made", to->word, expected);
	fi_cq_read(from->cq, &entry, 1);
}

static void fetch_word(struct side *from, struct side *to, uint64_t word)
{
	uint64_t before = 0, expected = to->word;
	struct fi_cq_tagged_entry entry;

	check("measured fetch", measured_fetch(from, &word, &before));
	if (measured_fetched(to, &entry) != -FI_EAGAIN)
		check("measured fetched", -FI_EOTHER);
	fi_cq_read(from->cq, &entry, 1);
	is_word("an addition found", before, expected);
}

static void write_word(struct side *from, struct side *to, uint64_t word, int measured,
		       int delivered)
{
	struct fi_cq_tagged_entry entry;

	if (measured && delivered) {
		check("measured delivered", measured_delivered(from, &word));
		fi_cq_read(to->cq, &entry, 1);
	} else if (measured) {
		check("measured write", measured_write(from, &word));
		if (measured_written(to, &entry) != -FI_EAGAIN)
			check("measured written", -FI_EOTHER);
	} else {
		check("fi_write",
		      fi_write(from->ep, &word, sizeof(word), NULL, from->peer, 0, KEY, NULL));
		do {
			fi_cq_read(from->cq, &entry, 1);
			fi_cq_read(to->cq, &entry, 1);
		} while (*(volatile uint64_t *)&to->word != word);
	}
	fi_cq_read(from->cq, &entry, 1);
	is_word("a write left", to->word, word);
}

/* Writes to memory that is mapped, or is about to be. */
static void store_word(struct side *from, struct side *to, uint64_t word, int measured)
{
	struct fi_cq_tagged_entry entry;

	if (measured) {
		check("measured stored", measured_stored(from, &word));
	} else {
		check("fi_write", fi_write(from->ep, &word, sizeof(word), NULL, from->peer, 0,
					   SHARED, NULL));
		do {
			fi_cq_read(from->cq, &entry, 1);
			fi_cq_read(to->cq, &entry, 1);
		} while (*(volatile uint64_t *)to->shared != word);
	}
	is_word("a store left", *to->shared, word);
	fi_cq_read(from->cq, &entry, 1);
}

static void message(struct side *from, struct side *to, uint64_t word, int measured)
{
	struct fi_cq_tagged_entry entry;
	uint64_t got = 0;
	ssize_t ret;

	if (measured) {
		if (measured_idle(to, &entry) != -FI_EAGAIN)
			check("measured idle", -FI_EOTHER);
		check("measured post", measured_post(to, &got));
		check("measured send", measured_send(from, &word));
		ret = measured_read(to, &entry);
	} else {
		check("fi_trecv",
		      fi_trecv(to->ep, &got, sizeof(got), NULL, to->peer, 7, 0, NULL));
		check("fi_tsend",
		      fi_tsend(from->ep, &word, sizeof(word), NULL, from->peer, 7, NULL));
		do {
			fi_cq_read(from->cq, &entry, 1);
			ret = fi_cq_read(to->cq, &entry, 1);
		} while (ret == -FI_EAGAIN);
	}
	check("fi_cq_read", ret);
	is_word("a message brought", got, word);
}

/* A message that another call than fi_tsend() sends. */
static void send_word(struct side *from, struct side *to, uint64_t word,
		      ssize_t (*measured)(struct side *s, const uint64_t *word))
{
	struct fi_cq_tagged_entry entry;
	uint64_t got = 0;
	ssize_t ret;

	check("fi_trecv", fi_trecv(to->ep, &got, sizeof(got), NULL, to->peer, 7, 0, NULL));
	check("measured send", measured(from, &word));
	while ((ret = fi_cq_read(to->cq, &entry, 1)) == -FI_EAGAIN)
		;
	check("fi_cq_read", ret);
	is_word("a message brought", got, word);
	fi_cq_read(from->cq, &entry, 1);
}

int main(int argc, char **argv)
{
	enum fi_progress progress = argc == 3 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	static struct side a, b;
	uint64_t word = 0;

	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "auto"))) {
		fprintf(stderr, "usage: path PROVIDER [auto]\n");
		return 2;
	}
	program = true;
	side_open(&a, argv[1], progress);
	side_open(&b, argv[1], progress);
	check("fi_av_insert", fi_av_insert(a.av, b.name, 1, &a.peer, 0, NULL) - 1);
	check("fi_av_insert", fi_av_insert(b.av, a.name, 1, &b.peer, 0, NULL) - 1);
	for (int i = 0; i < WARM; i++) {
		message(&a, &b, ++word, 0);
		message(&b, &a, ++word, 0);
	}
	for (int i = 0; i < MEASURED; i++)
		message(&a, &b, ++word, 1);
	for (int i = 0; i < MEASURED; i++)
		send_word(&a, &b, ++word, measured_inject);
	for (int i = 0; i < MEASURED; i++)
		send_word(&a, &b, ++word, measured_senddata);
	for (int i = 0; i < MEASURED; i++)
		send_word(&a, &b, ++word, measured_injectdata);
	for (int i = 0; i < WARM; i++)
		write_word(&a, &b, ++word, 0, 0);
	for (int i = 0; i < MEASURED; i++)
		write_word(&a, &b, ++word, 1, 0);
	for (int i = 0; i < MEASURED; i++)
		write_word(&a, &b, ++word, 1, 1);
	for (int i = 0; i < MEASURED; i++)
		add_word(&a, &b, ++word);
	for (int i = 0; i < MEASURED; i++)
		fetch_word(&a, &b, ++word);
	/* at the end: the other ways are measured between peers that map nothing */
	for (int i = 0; i < WARM_MAPPED; i++)
		store_word(&a, &b, ++word, 0);
	for (int i = 0; i < MEASURED; i++)
		store_word(&a, &b, ++word, 1);
	return 0;
}
