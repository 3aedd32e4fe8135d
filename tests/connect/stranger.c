/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See stranger.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "stranger.h"

static char path[] = "/tmp/weft-secret-test.XXXXXX";

const char *stranger_settings(const char *secret, const char *tls)
{
	int fd;

	setenv("FI_TCP_TLS", tls, 1);
	if (!secret) {
		unsetenv("FI_TCP_SECRET_FILE");
		return NULL;
	}
	memcpy(strrchr(path, '.'), ".XXXXXX", 7);
	fd = mkstemp(path);
	if (fd < 0 || write(fd, secret, strlen(secret)) != (ssize_t)strlen(secret))
		_exit(9);
	close(fd);
	setenv("FI_TCP_SECRET_FILE", path, 1);
	return path;
}

void stranger_forget(void)
{
	unlink(path);
}

pid_t stranger_start(void (*act)(int fd), const char *secret, const char *tls, int *fd)
{
	int ends[2];
	pid_t pid;

	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		_exit(9);
	pid = fork();
	if (pid < 0)
		_exit(9);
	if (!pid) {
		close(ends[0]);
		stranger_settings(secret, tls);
		act(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*fd = ends[0];
	return pid;
}

int rdm_open(struct rdm *r, const char *provider)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();
	int err;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	*r = (struct rdm){ .info = NULL };
	err = fi_getinfo(FI_VERSION(1, 18), "127.0.0.1", NULL, FI_SOURCE, hints, &r->info);
	fi_freeinfo(hints);
	if (err || fi_fabric(r->info->fabric_attr, &r->fabric, NULL) ||
	    fi_domain(r->fabric, r->info, &r->domain, NULL) ||
	    fi_av_open(r->domain, &av_attr, &r->av, NULL) ||
	    fi_cq_open(r->domain, &cq_attr, &r->cq, NULL) ||
	    fi_endpoint(r->domain, r->info, &r->ep, NULL) || fi_ep_bind(r->ep, &r->av->fid, 0) ||
	    fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV))
		return -1;
	return fi_enable(r->ep);
}

void rdm_close(struct rdm *r)
{
	fi_close(&r->ep->fid);
	fi_close(&r->cq->fid);
	fi_close(&r->av->fid);
	fi_close(&r->domain->fid);
	fi_close(&r->fabric->fid);
	fi_freeinfo(r->info);
}

int rdm_send_once(struct rdm *r, fi_addr_t peer)
{
	struct fi_cq_err_entry error = { .err = 0 };
	struct fi_cq_entry entry;
	ssize_t n;

	do
		n = fi_send(r->ep, "hello", 5, NULL, peer, NULL);
	while (n == -FI_EAGAIN && fi_cq_read(r->cq, &entry, 1) == -FI_EAGAIN);
	do
		n = fi_cq_read(r->cq, &entry, 1);
	while (n == -FI_EAGAIN);
	if (n != -FI_EAVAIL)
		return 0;
	fi_cq_readerr(r->cq, &error, 0);
	return error.err;
}

void stranger_send(int fd)
{
	unsigned char name[64];
	fi_addr_t peer;
	struct rdm r;
	int err;

	if (read(fd, name, sizeof(name)) != sizeof(name) || rdm_open(&r, "tcp") ||
	    fi_av_insert(r.av, name, 1, &peer, 0, NULL) != 1)
		_exit(1);
	err = rdm_send_once(&r, peer);
	stranger_forget();
	_exit(err);
}
