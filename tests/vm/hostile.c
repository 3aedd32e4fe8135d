/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hostile - a borrower that tries what it should not, in machines
 *
 * usage: hostile mediated|direct LENDER       each line of the table in docs/devices.md, but for a reset
 *        hostile reset|disable LENDER         a direct borrower resets the function, or disables the controller
 *
 * It has the library's own queue pairs, and writes what it likes into queues and doorbells; what it was once sent it
 * keeps. A second lease of this process is the one that others have. Blocks of others it can write by right, as it has a
 * lease on the namespace: it keeps to the first 64.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nvme.h"

#define NSID	  1u
#define ANSWER_S  30
#define COMMANDS  600u
#define OWN_LBAS  64u
#define BLOCK_LEN 512u

#define SECRET 0x5ec4e7u

/* struct use - a lease with a pair */
struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
	uint8_t *memory;
	uint64_t addr;
};

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, strerror(-ret));
}

/* A descriptor of the device, which the library was sent and has closed; -1: it never was */
static int kept = -1;

static bool is_device(int fd)
{
	char path[32], target[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = '\0';
	return strstr(target, "vfio") != NULL;
}

/* In the place of the C library's: nobody has to let go of what was sent. */
int close(int fd)
{
	if (kept < 0 && is_device(fd)) {
		kept = fd;
		return 0;
	}
	return (int)syscall(SYS_close, fd);
}

static void pair_open(struct use *u)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = 32 };

	must(weft_nvme_open(u->dev, &attr, &u->qp), "a queue pair");
}

static void use_begin(struct use *u, const char *lender)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr),
					 .flags = WEFT_BORROW_SHARED,
					 .ms = 60000 };

	must(weft_lender_open(lender, NULL, &u->lender), "the lender");
	must(weft_device_borrow(u->lender, &attr, &u->dev), "borrowing");
	must(weft_segment_alloc(NULL, 1 << 20, 0, &u->seg), "a segment");
	must(weft_window_open(u->dev, u->seg, WEFT_WINDOW_RW, &u->window), "a window");
	u->memory = weft_segment_mem(u->seg);
	u->addr = u->window->spans[0].addr;
	pair_open(u);
}

/* An entry as it is, and its status */
static uint32_t run(struct use *u, struct nvme_sqe sqe)
{
	struct weft_nvme *qp = u->qp;
	time_t end = time(NULL) + ANSWER_S;
	struct nvme_cqe *cqe = &qp->cq[qp->cq_head];

	qp->sq[qp->sq_tail] = sqe;
	qp->sq_tail = qp->sq_tail + 1 == qp->entries ? 0 : qp->sq_tail + 1;
	__atomic_store_n(qp->sq_bell, qp->sq_tail, __ATOMIC_SEQ_CST);
	if (qp->doorbells && __atomic_load_n(&qp->doorbells->asleep, __ATOMIC_SEQ_CST) &&
	    write(qp->kick, &(uint64_t){ 1 }, 8) < 0)
		err(1, "waking it");
	while (NVME_CQE_PHASE(__atomic_load_n(&cqe->status, __ATOMIC_ACQUIRE)) != qp->phase)
		if (time(NULL) > end)
			errx(1, "opcode %#x: no answer", sqe.opcode);
	if (++qp->cq_head == qp->entries) {
		qp->cq_head = 0;
		qp->phase ^= 1;
	}
	__atomic_store_n(qp->cq_bell, qp->cq_head, __ATOMIC_SEQ_CST);
	return NVME_CQE_STATUS(cqe->status) & 0x7ff;
}

static void want(uint32_t got, uint32_t status, const char *what)
{
	if (got != status)
		errx(1, "%s: status %#x, not %#x", what, got, status);
}

static struct nvme_sqe read_of(uint64_t lba, uint32_t blocks, uint64_t prp1, uint64_t prp2)
{
	return (struct nvme_sqe){ .opcode = NVME_IO_READ,
				  .nsid = NSID,
				  .prp1 = prp1,
				  .prp2 = prp2,
				  .cdw10 = (uint32_t)lba,
				  .cdw11 = (uint32_t)(lba >> 32),
				  .cdw12 = blocks - 1 };
}

/* What a process of a mediated controller has open, or was sent, is no door to the device. */
static void has_no_device(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[256];
	ssize_t len;

	if (!dir)
		err(1, "/proc/self/fd");
	if (kept >= 0)
		errx(1, "it was sent a descriptor of the device");
	while ((entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		target[len < 0 ? 0 : len] = '\0';
		if (strcasestr(target, "vfio"))
			errx(1, "it has %s", target);
	}
	closedir(dir);
}

/* Addresses that are somebody's, somewhere: of the device's own queues, of interrupts, of other windows, of nobody. */
static void wild_addresses(struct use *u)
{
	static const uint64_t wild[] = { 0,
					 1ull << 20,
					 (1ull << 20) + 0x3000,
					 1ull << 21,
					 0xfee00000,
					 1ull << 30,
					 1ull << 36,
					 1ull << 38,
					 (1ull << 39) - 4096,
					 (1ull << 52) - 4096,
					 UINT64_MAX - 4095 };
	uint64_t *list = (uint64_t *)(u->memory + 65536), list_addr = u->addr + 65536;

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		want(run(u, read_of(0, 8, wild[i], 0)), NVME_SC_DATA_TRANSFER, "a wild page");
		want(run(u, read_of(0, 16, u->addr, wild[i])), NVME_SC_DATA_TRANSFER,
		     "a wild second page");
		want(run(u, read_of(0, 64, u->addr, wild[i])), NVME_SC_DATA_TRANSFER,
		     "a wild list");
		for (int k = 0; k < 7; k++)
			list[k] = k == 5 ? wild[i] : u->addr;
		want(run(u, read_of(0, 64, u->addr, list_addr)), NVME_SC_DATA_TRANSFER,
		     "a wild page in a list");
	}
	for (int k = 0; k < 7; k++)
		list[k] = list_addr;
	want(run(u, read_of(0, 64, u->addr, list_addr)), 0, "a list that reads into itself");
	want(run(u, read_of(0, 8, u->addr + 2, 0)), NVME_SC_INVALID_PRP_OFFSET, "an offset");
}

static void wrong_commands(struct use *u)
{
	struct nvme_sqe sqe = read_of(0, 1, u->addr, 0);

	want(run(u, read_of(UINT64_MAX, 2, u->addr, 0)), NVME_SC_LBA_RANGE, "a wild block");
	want(run(u, read_of(1ull << 40, 2, u->addr, 0)), NVME_SC_LBA_RANGE, "a far block");
	sqe.nsid = 2;
	want(run(u, sqe), NVME_SC_INVALID_NAMESPACE, "another namespace");
	sqe.nsid = NSID;
	sqe.flags = 0x40;
	want(run(u, sqe), NVME_SC_INVALID_FIELD, "a scatter list");
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		switch (opcode) {
		case NVME_IO_FLUSH:
		case NVME_IO_WRITE:
		case NVME_IO_READ:
		case NVME_IO_COMPARE:
		case NVME_IO_WRITE_ZEROES:
		case NVME_IO_DSM:
			continue;
		}
		sqe = (struct nvme_sqe){ .opcode = (uint8_t)opcode, .nsid = NSID };
		want(run(u, sqe), NVME_SC_INVALID_OPCODE, "an opcode");
	}
}

/* Whatever comes, of any kind, over blocks that are its own. */
static void random_commands(struct use *u)
{
	static const uint8_t opcodes[] = { NVME_IO_FLUSH,   NVME_IO_WRITE,	  NVME_IO_READ,
					   NVME_IO_COMPARE, NVME_IO_WRITE_ZEROES, NVME_IO_DSM,
					   NVME_IO_READ };
	unsigned good = 0;

	srandom(16);
	for (unsigned i = 0; i < COMMANDS; i++) {
		uint64_t *words = (uint64_t *)(u->memory + 65536);
		struct nvme_sqe sqe = { .opcode = opcodes[random() % 7], .nsid = NSID };

		for (int k = 0; k < 512; k++)
			words[k] = random() % 4 ? u->addr + (uint64_t)(random() % 16) * 4096
						: (uint64_t)random() << (random() % 32);
		sqe.prp1 = random() % 3 ? u->addr + (uint64_t)(random() % 300) * 512
					: (uint64_t)random() << (random() % 32);
		sqe.prp2 = random() % 3 ? u->addr + 65536 : (uint64_t)random();
		sqe.cdw10 = (uint32_t)random() % OWN_LBAS;
		sqe.cdw12 = (uint32_t)random() % (OWN_LBAS - sqe.cdw10);
		if (sqe.opcode == NVME_IO_DSM) {
			sqe.prp1 = UINT64_MAX - 4095;
			sqe.cdw10 = 255;
			sqe.cdw11 = NVME_DSM_DEALLOCATE;
		}
		good += !run(u, sqe);
	}
	printf("%u of %u random commands succeeded\n", good, COMMANDS);
}

static void wild_doorbells(struct use *u)
{
	static const uint32_t wild[] = { 33, 1000, 65535, 65536, 1u << 31, UINT32_MAX };

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		__atomic_store_n(&u->qp->doorbells->cq_head, wild[i], __ATOMIC_SEQ_CST);
		__atomic_store_n(&u->qp->doorbells->sq_tail, wild[i], __ATOMIC_SEQ_CST);
		if (write(u->qp->kick, &(uint64_t){ 1 }, 8) < 0)
			err(1, "waking it");
		weft_nvme_close(u->qp);
		pair_open(u);
	}
	want(run(u, read_of(0, 8, u->addr, 0)), 0, "a command after wild doorbells");
}

/*
 * Have the device write what is at an address to blocks, and read these. Returns whether there was anything. An emulated
 * device may say that it has, where the IOMMU has given it nothing.
 */
static bool has_read(struct use *u, uint64_t addr)
{
	const uint8_t *page = u->memory;
	struct nvme_sqe sqe = read_of(0, 8, addr, 0);

	sqe.opcode = NVME_IO_WRITE;
	if (run(u, sqe) || run(u, read_of(0, 8, u->addr, 0)))
		return false;
	for (unsigned i = 0; i < 4096; i++)
		if (page[i])
			return true;
	return false;
}

/* What lies in the window of the other lease */
static void hide_secret(const struct use *other)
{
	uint32_t *words = (uint32_t *)other->memory;

	for (unsigned i = 0; i < 1024; i++)
		words[i] = SECRET;
}

static bool has_secret(const struct use *u)
{
	return *(const uint32_t *)u->memory == SECRET;
}

/* The windows of all leases are in one space of addresses; the host's other memory is not there. */
static void other_addresses(struct use *u, const struct use *other)
{
	for (uint64_t at = 16ull << 20; at < 512ull << 20; at += 4ull << 20)
		if (has_read(u, at))
			errx(1, "%#llx is in reach", (unsigned long long)at);
	hide_secret(other);
	if (!has_read(u, other->addr) || !has_secret(u))
		errx(1, "the window of another lease is out of reach in direct mode");
	puts("read the window of another lease");
}

/* Each lease has a space of addresses of its own: the same address may be one of this lease, too. */
static bool is_own(const struct use *u, uint64_t addr)
{
	for (uint32_t i = 0; i < u->dev->span_cnt; i++)
		if (addr >= u->dev->spans[i].addr &&
		    addr - u->dev->spans[i].addr < u->dev->spans[i].len)
			return true;
	return false;
}

/* Where every PRP is looked up in the windows of its own lease, the address of another one's leads nowhere. */
static void other_window(struct use *u, struct use *other)
{
	struct nvme_sqe sqe;

	while (is_own(u, other->addr)) {
		must(weft_segment_alloc(NULL, 1 << 20, 0, &other->seg), "a segment");
		must(weft_window_open(other->dev, other->seg, WEFT_WINDOW_RW, &other->window),
		     "a window");
		other->memory = weft_segment_mem(other->seg);
		other->addr = other->window->spans[0].addr;
	}
	hide_secret(other);
	sqe = read_of(0, 8, other->addr, 0);
	want(run(u, sqe), NVME_SC_DATA_TRANSFER, "a read into the window of another lease");
	sqe.opcode = NVME_IO_WRITE;
	want(run(u, sqe), NVME_SC_DATA_TRANSFER, "a write from the window of another lease");
	want(run(u, read_of(0, 8, u->addr, 0)), 0, "a command");
	if (has_secret(u) || *(const uint32_t *)other->memory != SECRET)
		errx(1, "the window of another lease was reached");
}

/* A namespace has no borders inside: who has a shared lease on it may write all of it. */
static void other_blocks(struct use *u, struct use *other)
{
	struct nvme_sqe sqe = read_of(8, 8, u->addr, 0);

	memset(u->memory, 0x77, 4096);
	sqe.opcode = NVME_IO_WRITE;
	want(run(u, sqe), 0, "a write");
	want(run(other, read_of(8, 8, other->addr, 0)), 0, "a read of the other lease");
	if (memcmp(u->memory, other->memory, 4096))
		errx(1, "blocks are not those that were written");
}

/* Its page is a file of its own, of one page: the doorbells of others are not behind it. */
static void page_is_its_own(const struct use *u)
{
	int seals = fcntl(u->qp->page, F_GET_SEALS);
	struct stat st;

	if (fstat(u->qp->page, &st) || st.st_size != sizeof(struct slot_doorbells))
		errx(1, "its page has %lld bytes", (long long)st.st_size);
	if (seals < 0 ||
	    (seals & (F_SEAL_GROW | F_SEAL_SHRINK)) != (F_SEAL_GROW | F_SEAL_SHRINK) ||
	    !ftruncate(u->qp->page, 1 << 20))
		errx(1, "its page can be made longer");
}

/*
 * Its lease ends, and it rings on: an entry that writes a block is still in its queue. Both mappings are its own, and
 * nobody takes them away.
 */
static void goes_on(struct use *u, struct use *other)
{
	struct nvme_sqe sqe = read_of(16, 8, u->addr, 0), wipe = read_of(16, 8, other->addr, 0);
	uint32_t tail = u->qp->sq_tail, next = tail + 1 == u->qp->entries ? 0 : tail + 1;
	uint8_t *bells, *queue;

	wipe.opcode = sqe.opcode = NVME_IO_WRITE;
	memset(other->memory, 0, 4096);
	want(run(other, wipe), 0, "a write");
	memset(u->memory, 0x99, 4096);
	/* Of the same files, so that they stay when the library unmaps its own */
	queue = mmap(NULL, u->qp->memory->len, PROT_READ | PROT_WRITE, MAP_SHARED,
		     u->qp->memory->fds[0], 0);
	bells = mmap(NULL, u->qp->bells_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		     kept >= 0 ? kept : u->qp->page, kept >= 0 ? NVME_REG_DOORBELLS : 0);
	if (queue == MAP_FAILED || bells == MAP_FAILED)
		err(1, "mapping them once more");
	bells += (uint8_t *)u->qp->sq_bell - u->qp->bells;
	queue += (uint8_t *)u->qp->sq - (uint8_t *)u->qp->memory->mem;
	must(weft_device_return(u->dev), "returning");
	memcpy(queue + tail * sizeof(sqe), &sqe, sizeof(sqe));
	for (int i = 0; i < 20; i++) {
		__atomic_store_n((uint32_t *)bells, next, __ATOMIC_SEQ_CST);
		want(run(other, read_of(16, 8, other->addr, 0)), 0, "a read of the other lease");
		if (other->memory[0] == 0x99)
			errx(1, "a queue goes on after its lease");
		__atomic_store_n((uint32_t *)bells, tail, __ATOMIC_SEQ_CST);
	}
}

/* Those of the other pairs, the controller process's and the admin one among them */
static void other_doorbells(struct use *u)
{
	static const uint32_t wild[] = { 5000, 65535, UINT32_MAX };
	uint32_t *first = (uint32_t *)u->qp->bells, cnt = 0;

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
		for (uint32_t n = 0; n < 34; n++) {
			if (first + n == u->qp->sq_bell || first + n == u->qp->cq_bell)
				continue;
			__atomic_store_n(first + n, wild[i], __ATOMIC_SEQ_CST);
			cnt++;
		}
	want(run(u, read_of(0, 8, u->addr, 0)), 0, "a command after others' doorbells");
	printf("%u doorbells of others rung\n", cnt);
}

/*
 * The doorbell of another pair, which its owner has not rung: the device takes the entry that is there. Any page of
 * doorbells that it has mapped has those of the others too.
 */
static void early_doorbell(struct use *u, struct use *other)
{
	struct weft_nvme *qp = other->qp;
	uint32_t *bells = (uint32_t *)u->qp->bells, *bell;
	struct nvme_cqe *cqe = &qp->cq[qp->cq_head];
	time_t end = time(NULL) + ANSWER_S;

	bell = bells + (qp->sq_bell - (uint32_t *)qp->bells);
	qp->sq[qp->sq_tail] = read_of(0, 8, other->addr, 0);
	qp->sq_tail = qp->sq_tail + 1 == qp->entries ? 0 : qp->sq_tail + 1;
	__atomic_store_n(bell, qp->sq_tail, __ATOMIC_SEQ_CST);
	while (NVME_CQE_PHASE(__atomic_load_n(&cqe->status, __ATOMIC_ACQUIRE)) != qp->phase)
		if (time(NULL) > end)
			errx(1, "the doorbell of another pair has no effect in direct mode");
	if (++qp->cq_head == qp->entries) {
		qp->cq_head = 0;
		qp->phase ^= 1;
	}
	__atomic_store_n(qp->cq_bell, qp->cq_head, __ATOMIC_SEQ_CST);
	puts("rang the doorbell of another pair");
}

/* By the descriptor: the function, or a register of the controller. Its own commands end, too. */
static void reset(struct use *u, bool disable)
{
	struct weft_nvme_completion done;
	struct weft_nvme_command command = {
		.opcode = WEFT_NVME_READ, .nsid = NSID, .blocks = 8, .buf = u->memory
	};
	time_t end = time(NULL) + 2 * ANSWER_S;
	ssize_t n;

	if (kept < 0)
		errx(1, "it has no descriptor of the device");
	if (disable) {
		uint8_t *registers = mmap(NULL, NVME_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
					  kept, 0);

		if (registers == MAP_FAILED)
			err(1, "the registers");
		__atomic_store_n((uint32_t *)(registers + NVME_REG_CC), 0, __ATOMIC_SEQ_CST);
	} else if (ioctl(kept, VFIO_DEVICE_RESET)) {
		err(1, "a reset");
	}
	do {
		n = weft_nvme_submit(u->qp, &command, 1);
		if (n == 1 || n == -EAGAIN)
			n = weft_nvme_wait(u->qp, &done, 1, 1000);
	} while (n >= 0 && !(n == 1 && done.status) && time(NULL) < end);
	if (time(NULL) >= end)
		errx(1, "its commands do not end");
	printf("%s it, and its own commands ended with %s\n", disable ? "disabled" : "reset",
	       strerror(n < 0 ? (int)-n : -done.status));
}

static void mediated(struct use *u, struct use *other)
{
	has_no_device();
	page_is_its_own(u);
	want(run(u, read_of(0, 8, u->addr, 0)), 0, "a command");
	wild_addresses(u);
	wrong_commands(u);
	random_commands(u);
	wild_doorbells(u);
	other_window(u, other);
}

static void direct(struct use *u, struct use *other)
{
	other_addresses(u, other);
	other_doorbells(u);
	early_doorbell(u, other);
}

int main(int argc, char **argv)
{
	struct use u, other;

	if (argc != 3)
		errx(2, "usage: hostile mediated|direct|reset|disable LENDER");
	use_begin(&u, argv[2]);
	if (!strcmp(argv[1], "reset") || !strcmp(argv[1], "disable")) {
		reset(&u, !strcmp(argv[1], "disable"));
		return 0;
	}
	use_begin(&other, argv[2]);
	if (!strcmp(argv[1], "direct"))
		direct(&u, &other);
	else
		mediated(&u, &other);
	other_blocks(&u, &other);
	/* What it maps may go while the device is to read there. */
	goes_on(&u, &other);
	must(weft_device_return(other.dev), "returning");
	return 0;
}
