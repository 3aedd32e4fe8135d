/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Controller memory */
#define _GNU_SOURCE
#include "cmb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doorbells.h"
#include "nvme/spec.h"

#define BAR 2u

/* Word by word: memory of a device may not take what memset() does with that of the host. */
static void wipe(uint8_t *at, uint64_t len)
{
	volatile uint64_t *words = (volatile uint64_t *)(void *)at;

	for (uint64_t i = 0; i < len / sizeof(*words); i++)
		words[i] = 0;
}

/* Zeros, and another name */
static int renew_device(struct cmb *cmb, uint32_t index)
{
	int fd = memfd_create("weft-nvmed device memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)cmb->granule) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	wipe(cmb->base + index * cmb->granule, cmb->granule);
	if (cmb->fds[index] >= 0)
		close(cmb->fds[index]);
	cmb->fds[index] = fd;
	return 0;
}

int cmb_renew(struct cmb *cmb, uint32_t index)
{
	uint8_t *at = cmb->base + index * cmb->granule;
	int fd;

	if (cmb->device)
		return renew_device(cmb, index);
	fd = sealed_file("weft-nvmed memory", cmb->granule);
	if (fd < 0)
		return fd;
	if (mmap(at, cmb->granule, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	if (cmb->fds[index] >= 0)
		close(cmb->fds[index]);
	cmb->fds[index] = fd;
	return 0;
}

static int granules_make(struct cmb *cmb)
{
	cmb->fds = malloc(cmb->cnt * sizeof(int));
	if (!cmb->fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < cmb->cnt; i++)
		cmb->fds[i] = -1;
	for (uint32_t i = 0; i < cmb->cnt; i++) {
		int ret = cmb_renew(cmb, i);

		if (ret)
			return ret;
	}
	return 0;
}

int cmb_init(struct cmb *cmb, uint64_t len, uint64_t granule)
{
	int ret;

	*cmb = (struct cmb){ .len = len, .granule = granule };
	if (!len)
		return 0;
	cmb->cnt = (uint32_t)(len / granule);
	cmb->base = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0);
	if (cmb->base == MAP_FAILED) {
		cmb->len = 0;
		return -errno;
	}
	ret = granules_make(cmb);
	if (ret)
		cmb_fini(cmb);
	return ret;
}

/* A window on a granule has gone: nothing that is under way leads there by it any more. */
static bool window_gone(void *arg, struct window *w)
{
	struct cmb *cmb = arg;

	cmb->windows[(uint64_t)(w->files[0].base - cmb->base) / cmb->granule]--;
	return true;
}

int cmb_init_device(struct cmb *cmb, const struct backend_memory *memory, uint64_t granule)
{
	uint64_t cnt = memory->len / granule;
	int ret;

	cnt = cnt < CMB_GRANULES_MAX ? cnt : CMB_GRANULES_MAX;
	*cmb = (struct cmb){ .device = true,
			     .device_addr = memory->addr,
			     .base = memory->base,
			     .len = cnt * granule,
			     .granule = granule,
			     .cnt = (uint32_t)cnt,
			     .hooks = { .go = window_gone, .arg = cmb } };
	if (!cnt)
		return 0;
	cmb->windows = calloc(cnt, sizeof(*cmb->windows));
	ret = cmb->windows ? granules_make(cmb) : -ENOMEM;
	if (ret)
		cmb_fini(cmb);
	return ret;
}

bool cmb_find(const struct cmb *cmb, int fd, uint64_t *at)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat wanted, st;

	if (!cmb->device || seals < 0 || !(seals & F_SEAL_WRITE) || fstat(fd, &wanted))
		return false;
	for (uint32_t i = 0; i < cmb->cnt; i++)
		if (!fstat(cmb->fds[i], &st) && st.st_ino == wanted.st_ino &&
		    st.st_dev == wanted.st_dev) {
			*at = i * cmb->granule;
			return true;
		}
	return false;
}

int cmb_map(struct cmb *cmb, struct domain *d, const struct domain_request *req, uint64_t at)
{
	int ret = domain_map_named(d, req, cmb->base + at, cmb->granule, cmb->device_addr + at,
				   &cmb->hooks);

	if (!ret)
		cmb->windows[at / cmb->granule]++;
	return ret;
}

bool cmb_in_use(const struct cmb *cmb, uint32_t index)
{
	return cmb->device && cmb->windows[index];
}

void cmb_fini(struct cmb *cmb)
{
	if (!cmb->len)
		return;
	if (!cmb->device)
		munmap(cmb->base, cmb->len);
	for (uint32_t i = 0; cmb->fds && i < cmb->cnt; i++)
		if (cmb->fds[i] >= 0)
			close(cmb->fds[i]);
	free(cmb->fds);
	free(cmb->windows);
	cmb->len = 0;
}

uint32_t cmb_location(const struct cmb *cmb)
{
	return BAR | NVME_CMBLOC_CQMMS | NVME_CMBLOC_CDPMLS | NVME_CMBLOC_CDPCILS |
	       NVME_CMBLOC_CDMMMS;
}

/* Of 4 KiB while the number fits its 20 bits: up to 4 GiB less a page */
uint32_t cmb_size(const struct cmb *cmb)
{
	uint64_t units = cmb->len / NVME_PAGE;
	uint32_t szu = 0;

	for (; units >> 20; szu++)
		units /= 16;
	return (uint32_t)(units << NVME_CMBSZ_SZ_SHIFT) | szu << 8 | NVME_CMBSZ_SQS |
	       NVME_CMBSZ_CQS | NVME_CMBSZ_LISTS | NVME_CMBSZ_RDS | NVME_CMBSZ_WDS;
}
