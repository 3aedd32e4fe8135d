/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weft-nvmed: a software NVMe controller, a process of its own as hardware would be. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bridge/relay.h"
#include "loop.h"
#include "nvmed.h"
#include "options.h"
#include "port.h"
#include "remote/target.h"
#include "standard.h"

/* A descriptor for what ends the process; before anything could be interrupted by it */
static int signals_open(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		err(EXIT_FAILURE, "signalfd");
	return fd;
}

/* Each window, page and vector keeps a descriptor. */
static void descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct backend *vfio_backend(struct options *opt)
{
	struct backend_vfio from = { opt->vfio, opt->deadline_ms, opt->direct };
	char why[BACKEND_WHY_MAX] = "no memory";
	struct backend *b;

	if (backend_vfio_open(&from, &b, why))
		errx(EXIT_FAILURE, "%s", why);
	if (b->pairs && b->pairs->cnt < opt->config.queue_cnt)
		opt->config.queue_cnt = b->pairs->cnt;
	opt->config.block = b->device->block;
	if (!*opt->config.serial)
		strcpy(opt->config.serial, b->device->serial);
	return b;
}

static struct backend *backend_of(struct options *opt)
{
	struct backend *b;
	int ret;

	if (opt->vfio)
		return vfio_backend(opt);
	if (opt->file)
		ret = backend_file_open(opt->file, opt->config.block, opt->config.read_only, &b);
	else
		ret = backend_memory_open(opt->memory, &b);
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", opt->file ? opt->file : "--memory", strerror(-ret));
	return b;
}

/* What serves borrowers elsewhere, if something is to */
static void remote_open(const struct options *opt, struct nvmed *c)
{
	int ret;

	if (opt->fabric) {
		ret = target_create(c, opt->provider, opt->address, &c->remote);
		if (ret)
			errx(EXIT_FAILURE, "--fabric%s%s: %s", opt->provider ? "=" : "",
			     opt->provider ? opt->provider : "", port_strerror(ret));
	}
	if (opt->bridge) {
		ret = relay_create(c, opt->bridge, &c->remote);
		if (ret)
			errx(EXIT_FAILURE, "--bridge=%s: %s", opt->bridge, strerror(-ret));
	}
}

int main(int argc, char **argv)
{
	struct options opt;
	struct nvmed *c;
	struct loop l;
	struct remote *remote;
	int signals, ret;

	standard_open();
	options_parse(&opt, argc, argv);
	signals = signals_open();
	descriptors_raise();
	ret = nvmed_create(&opt.config, backend_of(&opt), &c);
	if (ret)
		errx(EXIT_FAILURE, "the controller: %s", strerror(-ret));
	remote_open(&opt, c);
	ret = loop_init(&l, c, opt.slot, signals);
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", opt.slot, strerror(-ret));
	printf("weft-nvmed: %s: serial %s, %llu blocks of %u bytes in %s, %u queue pairs\n",
	       opt.slot, opt.config.serial, (unsigned long long)c->blocks, opt.config.block,
	       c->backend->how, opt.config.queue_cnt);
	fflush(stdout);
	while (!l.stop)
		loop_step(&l);
	loop_fini(&l);
	remote = c->remote;
	nvmed_destroy(c);
	if (opt.bridge)
		relay_destroy(remote);
	else if (remote)
		target_destroy(remote);
	return EXIT_SUCCESS;
}
