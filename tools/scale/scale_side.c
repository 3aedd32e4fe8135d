/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the figures of 'weft scale' are taken; scale.h has the contract.
 *
 * Endpoints are created in a child that has nothing else, and so are domains that are to be idle
 * (idle.c). For pairs there are two processes on two cores:
 * side 0 has two endpoints, each in a domain of its own, one that knows a single
 * peer and one that knows many; side 1 has all those peers. Pairs exchange one message each way,
 * one pair after the other. Then side 1 sleeps in the out-of-band channel, while side 0 reads the
 * two empty queues in turns: all that differs between the two is how many peers there are.
 */
#define _GNU_SOURCE
#include "scale.h"
#include "clock.h"
#include "ep_set.h"
#include "endpoint.h"
#include "fabric.h"

#include <err.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads until all that a message leaves behind is done; each of side 1's is of all endpoints. */
#define SETTLE_READS  20000
#define SETTLE_ROUNDS 200

/* Both sides of the second part. */
struct scale {
	const struct scale_options *opt;
	struct side *side;
	/* written on side 0 */
	struct scale_figures *figures;
	struct fi_info *info;
	/* side 0: of one peer, of many; side 1: of all */
	struct ep_set set[2];
	/* the first is the pair of one peer */
	struct ep_pair *links;
	/* addresses of this side, of the other side */
	pid_t pids[2];
};

static size_t link_cnt(const struct scale *sc)
{
	return (size_t)sc->opt->peers + 1;
}

static int measure_creation(const struct scale_options *opt, struct memory *grown)
{
	struct fi_info *info = ep_set_query(&opt->plan, &opt->channel);
	struct memory before, after;
	struct ep_set set = { 0 };
	pid_t me = getpid();
	int rc;

	if (!info)
		return -FI_ENODATA;
	rc = memory_read(&me, 1, &before);
	if (!rc)
		rc = ep_set_open(&set, info, opt->endpoints, true);
	if (!rc)
		rc = memory_read(&me, 1, &after);
	if (!rc)
		*grown = memory_growth(&before, &after, opt->endpoints);
	ep_set_close(&set);
	fabric_info_destroy(info);
	return rc;
}

/* Measures in a process of its own: @figure receives the result. Returns 0 or -FI_E* */
struct alone {
	int (*measure)(const struct scale_options *opt, void *figure);
	void *figure;
	size_t len;
};

static int creation(const struct scale_options *opt, void *figure)
{
	return measure_creation(opt, figure);
}

static int idleness(const struct scale_options *opt, void *figure)
{
	return idle_measure(&opt->plan, &opt->channel, opt->idle, opt->idle_time, figure);
}

/* In a child: other parts of the measurement fork, which libfabric does not survive. */
static int in_child(const struct scale_options *opt, const struct alone *alone)
{
	int fds[2], status;
	ssize_t got;
	pid_t child;

	if (pipe(fds))
		err(EXIT_FAILURE, "pipe");
	fflush(NULL);
	child = fork();
	if (child < 0)
		err(EXIT_FAILURE, "fork");
	if (!child) {
		status = alone->measure(opt, alone->figure) ||
			 write(fds[1], alone->figure, alone->len) != (ssize_t)alone->len;
		_exit(status ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	close(fds[1]);
	got = read(fds[0], alone->figure, alone->len);
	close(fds[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		warnx("a process that measured by itself was killed by signal %d",
		      WTERMSIG(status));
	return got == (ssize_t)alone->len && !status ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int open_sets(struct scale *sc)
{
	int rc;

	sc->info = ep_set_query(&sc->opt->plan, &sc->opt->channel);
	sc->links = calloc(link_cnt(sc), sizeof(*sc->links));
	if (!sc->info || !sc->links)
		return sc->info ? -FI_ENOMEM : -FI_ENODATA;
	if (sc->side->rank)
		return ep_set_open(&sc->set[0], sc->info, link_cnt(sc), false);
	rc = ep_set_open(&sc->set[0], sc->info, 1, false);
	return rc ? rc : ep_set_open(&sc->set[1], sc->info, 1, false);
}

/* Each side learns all addresses of the other. */
static int meet_all(struct scale *sc)
{
	size_t i, len = sizeof(sc->pids[1]);
	struct ep_pair *link;
	int rc;

	sc->pids[0] = getpid();
	rc = oob_exchange(&sc->side->oob, &sc->pids[0], len, &sc->pids[1], &len);
	for (i = 0; i < link_cnt(sc) && !rc; i++) {
		link = &sc->links[i];
		*link = (struct ep_pair){
			.set = &sc->set[!sc->side->rank && i],
			.side = sc->side,
			.idx = sc->side->rank ? i : 0,
			.number = i,
			.timeout_s = sc->opt->channel.timeout_s,
		};
		rc = ep_pair_connect(link);
	}
	return rc;
}

/* Acknowledgements of the last messages are sent on one side and received on the other. */
static int settle(struct scale *sc)
{
	int i, rc = 0;

	for (i = 0; i < 2 && !rc; i++) {
		rc = ep_set_read_idle(&sc->set[0], 0,
				      sc->side->rank ? SETTLE_ROUNDS : SETTLE_READS);
		if (!rc && !sc->side->rank)
			rc = ep_set_read_idle(&sc->set[1], 0, SETTLE_READS);
		rc = oob_barrier(&sc->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
	}
	return rc;
}

/* Side 0 measures both processes while side 1 waits for it. */
static int look(struct scale *sc, struct memory *memory)
{
	int rc = sc->side->rank ? 0 : memory_read(sc->pids, 2, memory);

	return oob_barrier(&sc->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
}

static int connect_all(struct scale *sc)
{
	struct memory before = { 0 }, after = { 0 };
	size_t i;
	int rc;

	rc = ep_pair_exchange(&sc->links[0]);
	if (!rc)
		rc = settle(sc);
	if (!rc)
		rc = look(sc, &before);
	for (i = 1; i < link_cnt(sc) && !rc; i++)
		rc = ep_pair_exchange(&sc->links[i]);
	if (!rc)
		rc = settle(sc);
	if (!rc)
		rc = look(sc, &after);
	if (!rc)
		sc->figures->pair = memory_growth(&before, &after, sc->opt->peers);
	return rc;
}

static int time_reads(struct scale *sc, size_t set, double *ns)
{
	uint64_t start = clock_ns();
	int rc;

	rc = ep_set_read_idle(&sc->set[set], 0, sc->opt->reads);
	*ns = (double)(clock_ns() - start) / sc->opt->reads;
	return rc;
}

static int measure_idle(struct scale *sc)
{
	double *ns[2] = { sc->figures->few_ns, sc->figures->many_ns };
	unsigned round, first;
	int rc = 0;

	for (round = 0; round < sc->opt->rounds && !rc && !sc->side->rank; round++) {
		first = round & 1;
		rc = time_reads(sc, first, &ns[first][round]);
		if (!rc)
			rc = time_reads(sc, !first, &ns[!first][round]);
	}
	return oob_barrier(&sc->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
}

static void describe(struct scale *sc)
{
	const struct channel ch = {
		.info = sc->info,
		.limits.provider = sc->info->fabric_attr->prov_name,
	};

	channel_describe(&ch, &sc->figures->config);
}

static int pairs_side(struct side *side, void *arg)
{
	struct scale *sc = arg;
	int rc;

	sc->side = side;
	rc = open_sets(sc);
	rc = oob_barrier(&side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
	if (!rc)
		rc = meet_all(sc);
	if (!rc)
		rc = connect_all(sc);
	if (!rc)
		rc = measure_idle(sc);
	if (!rc)
		describe(sc);
	ep_set_close(&sc->set[1]);
	ep_set_close(&sc->set[0]);
	fabric_info_destroy(sc->info);
	free(sc->links);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int scale_measure(const struct scale_options *opt, struct scale_figures *figures)
{
	struct scale sc = { .opt = opt, .figures = figures };
	int status;

	memset(figures, 0, sizeof(*figures));
	figures->few_ns = calloc(opt->rounds, sizeof(double));
	figures->many_ns = calloc(opt->rounds, sizeof(double));
	if (!figures->few_ns || !figures->many_ns)
		err(EXIT_FAILURE, "scale");
	status = in_child(opt, &(struct alone){ creation, &figures->endpoint,
						sizeof(figures->endpoint) });
	if (!status && opt->idle)
		status = in_child(opt, &(struct alone){ idleness, &figures->idle,
							sizeof(figures->idle) });
	if (!status)
		status = place_run(&opt->place, pairs_side, &sc);
	if (!status)
		return EXIT_SUCCESS;
	free(figures->few_ns);
	free(figures->many_ns);
	return status;
}
