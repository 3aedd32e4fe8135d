/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: what a lender answers to the library that borrows, and the events that it sends, with descriptors of every
 * kind beside them. Answers begin as an honest lender would make them and are changed byte by byte; some come late, twice,
 * among others, or not at all. The lender plays the controller too: it writes entries to the completion queue.
 *
 * Checked: nothing crashes or hangs, calls return 0 or an error, memory that was given is there as far as it was asked for,
 * a command ends once, and no descriptor is left when the lender has been closed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "descriptors.h"
#include "false_lender.h"
#include "fuzz.h"
#include "input.h"
#include "nvme.h"

#define SEGMENTS 4u
#define WINDOWS	 4u
#define DEPTH	 4u

enum file_kind { SEALED, READ_ONLY, NAME, SHORT, EVENT, FOLDER, FILES };

/* @under_way: commands, by their argument, which is their place here */
static struct {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *segs[SEGMENTS];
	struct weft_window *windows[WINDOWS];
	struct weft_nvme *qp;
	bool under_way[DEPTH];
	struct weft_address address;
} b;

static int some_file(void)
{
	int fd;

	switch (input_byte() % FILES) {
	case READ_ONLY:
		return open("/dev/zero", O_RDONLY | O_CLOEXEC);
	case NAME:
		fd = memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		MUST(!ftruncate(fd, FAKE_LENDER_GRANULE) &&
		     !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
		return fd;
	case SHORT:
		return fake_file(100);
	case EVENT:
		return eventfd(0, EFD_CLOEXEC);
	case FOLDER:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	default:
		return fake_file(FAKE_LENDER_GRANULE);
	}
}

/* Descriptors that are not those that an honest lender would send */
static void change_files(struct fake_answer *a)
{
	uint8_t how = input_byte();
	uint32_t cnt = how & 0x80 ? how % PACKET_FDS_MAX : how % 4;

	packet_close_fds(a->fds, a->fd_cnt);
	for (a->fd_cnt = 0; a->fd_cnt < cnt; a->fd_cnt++) {
		a->fds[a->fd_cnt] = some_file();
		MUST(a->fds[a->fd_cnt] >= 0);
	}
	if (!(how & 0x40))
		a->msg.fd_cnt = a->fd_cnt;
}

static enum false_how change(struct fake_answer *a)
{
	static const enum false_how others[] = { FALSE_SILENT, FALSE_LATE, FALSE_TWICE,
						 FALSE_FLOOD, FALSE_ENDS };
	uint8_t what = input_byte();
	uint32_t n;

	if (what & 1)
		change_files(a);
	/* What follows is changed as well as the message. */
	for (n = what & 2 ? 1 + what % 4 : 0; n; n--)
		((uint8_t *)&a->msg)[input_byte() % sizeof(a->msg)] ^= input_byte();
	if (what & 4 && a->len > sizeof(a->msg))
		a->data[input_word() % (a->len - sizeof(a->msg))] ^= input_byte();
	if (what & 8) {
		a->len = input_word() % (sizeof(a->msg) + sizeof(a->data) + 1);
		if (input_byte() & 1)
			a->msg.data_len = (uint32_t)(a->len - sizeof(a->msg));
	}
	if (what & 16)
		a->msg.status = -(int32_t)input_byte();
	return what & 32 ? others[input_byte() % 5] : FALSE_SAYS;
}

static void check(int result)
{
	MUST(result <= 0 && result > -4096);
}

/* Memory of a segment is there. */
static void touch(const struct weft_segment *seg)
{
	uint8_t *mem = weft_segment_mem(seg);
	size_t at;

	for (at = 0; !seg->hidden && at < weft_segment_len(seg); at += NVME_PAGE)
		mem[at]++;
}

static void list_all(void)
{
	struct weft_device_info infos[2];
	struct weft_lease_info leases[2];
	uint8_t page[NVME_PAGE];
	size_t cnt = 2;
	int err = weft_device_list(b.lender, infos, &cnt);

	check(err);
	if (!err)
		MUST(cnt <= 2 && (!cnt || memchr(infos[0].name, 0, sizeof(infos[0].name))));
	cnt = 2;
	check(weft_lease_list(b.lender, FAKE_LENDER_DEVICE, leases, &cnt));
	check(weft_nvme_identify(b.lender, FAKE_LENDER_DEVICE, input_byte() % 2,
				 input_byte() % 2, page));
	check(weft_nvme_log(b.lender, FAKE_LENDER_DEVICE, 2, page, 512));
}

static void have_device(void)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .ms = 1000u * input_byte() };
	char ticket[WEFT_TICKET_MAX];
	struct weft_device *other;

	if (!b.dev) {
		attr.keep = input_byte() & 1;
		check(weft_device_borrow(b.lender, &attr, &b.dev));
		return;
	}
	weft_device_ticket(b.dev, ticket);
	if (!weft_device_attach(b.lender, ticket, &other))
		weft_device_leave(other);
	check(weft_device_renew(b.dev, 1000));
	check(weft_device_share(b.dev));
}

static void have_segment(uint32_t i)
{
	size_t len = 1 + input_byte() * 1000u;
	struct weft_segment *seg = NULL;
	int err;

	if (b.segs[i]) {
		if (!weft_segment_free(b.segs[i]))
			b.segs[i] = NULL;
		return;
	}
	switch (input_byte() % 4) {
	case 0:
		err = weft_segment_alloc(NULL, len, 0, &seg);
		break;
	case 1:
		err = weft_segment_import(b.lender, &b.address, &seg);
		len = 1;
		break;
	default:
		if (!b.dev)
			return;
		err = weft_segment_alloc(b.dev, len, 0, &seg);
	}
	check(err);
	if (err)
		return;
	MUST(weft_segment_len(seg) >= len);
	touch(seg);
	b.segs[i] = seg;
	if (!seg->exported && seg->fd_cnt == 1)
		check(weft_segment_export(b.lender, seg, 0, &b.address));
}

static void have_window(uint32_t i)
{
	struct weft_segment *seg = b.segs[input_byte() % SEGMENTS];

	if (b.windows[i]) {
		if (!weft_window_close(b.windows[i]))
			b.windows[i] = NULL;
	} else if (b.dev && seg) {
		check(weft_window_open(b.dev, seg, WEFT_WINDOW_RW, &b.windows[i]));
	}
}

/* The argument of a command is its place. */
static void take_some(void)
{
	struct weft_nvme_completion done[DEPTH];
	ssize_t n = weft_nvme_poll(b.qp, done, DEPTH), i;

	MUST(n <= (ssize_t)DEPTH && n > -4096);
	for (i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)done[i].arg;

		MUST(at < DEPTH && b.under_way[at]);
		b.under_way[at] = false;
	}
}

static void have_pair(void)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = DEPTH };

	if (b.qp) {
		weft_nvme_close(b.qp);
		b.qp = NULL;
		return;
	}
	if (!b.dev)
		return;
	attr.flags = input_byte() & (WEFT_NVME_BLOCKING | WEFT_NVME_NEAR_DEVICE);
	memset(b.under_way, 0, sizeof(b.under_way));
	check(weft_nvme_open(b.dev, &attr, &b.qp));
}

static void submit_one(void)
{
	static const uint8_t opcodes[] = { WEFT_NVME_READ, WEFT_NVME_WRITE, WEFT_NVME_FLUSH,
					   WEFT_NVME_DEALLOCATE };
	const struct weft_segment *seg = b.segs[input_byte() % SEGMENTS];
	struct weft_nvme_command command = { .opcode = opcodes[input_byte() % 4],
					     .nsid = input_byte() % 3,
					     .blocks = 1u + input_byte(),
					     .buf = seg ? weft_segment_mem(seg) : b.under_way };
	uintptr_t at = 0;
	ssize_t n;

	while (at < DEPTH && b.under_way[at])
		at++;
	command.arg = (void *)at;
	n = weft_nvme_submit(b.qp, &command, 1);
	MUST(n <= 1 && n > -4096 && (n <= 0 || at < DEPTH));
	if (n == 1)
		b.under_way[at] = true;
}

/* As a controller may: any entry, at the place of the next one, or another one. */
static void write_entry(void)
{
	uint8_t how = input_byte();
	uint32_t at = how & 0x80 ? input_byte() % b.qp->entries : b.qp->cq_head;
	struct nvme_cqe cqe = { .cid = how & 0x40 ? input_word() & 0xffff : how % DEPTH };

	cqe.status = how & 0x20 ? input_word() & 0xffff : b.qp->phase;
	b.qp->cq[at] = cqe;
}

static void use_pair(void)
{
	uint8_t what = input_byte();

	if (!b.qp)
		return;
	if (what & 1)
		submit_one();
	if (what & 2)
		write_entry();
	if (what & 4 && b.qp->doorbells)
		b.qp->doorbells->ended = input_byte() & 1;
	take_some();
}

/* What the keeper hears: an event as a lender sends it, or not quite; or its connection ends. */
static void event(void)
{
	struct lease_message msg = { .version = LEASE_VERSION,
				     .kind = LEASE_EVENT,
				     .device = FAKE_LENDER_DEVICE };
	uint8_t how = input_byte();
	size_t len = sizeof(msg);

	if (how < 100)
		return;
	if (how > 250)
		len = 0;
	else if (how > 240)
		len = 1 + input_byte() % sizeof(msg);
	msg.index = input_byte() % 10;
	msg.lease = b.dev ? weft_device_lease(b.dev) : 0;
	if (how & 1)
		((uint8_t *)&msg)[input_byte() % sizeof(msg)] ^= input_byte();
	false_lender_tell(&msg, len);
}

/* All that is of the device goes with it, but segments. */
static void give_back(void)
{
	if (!b.dev)
		return;
	if (input_byte() & 1)
		weft_device_leave(b.dev);
	else
		check(weft_device_return(b.dev));
	b.dev = NULL;
	b.qp = NULL;
	memset(b.windows, 0, sizeof(b.windows));
}

static void one_step(void)
{
	uint8_t how = input_byte();

	switch (how % 9) {
	case 0:
		list_all();
		break;
	case 1:
		have_device();
		break;
	case 2:
		have_segment(how / 9 % SEGMENTS);
		break;
	case 3:
		have_window(how / 9 % WINDOWS);
		break;
	case 4:
		have_pair();
		break;
	case 5:
	case 6:
		use_pair();
		break;
	case 7:
		false_lender_keep(b.lender, 1 + how / 9 % 8, event);
		break;
	default:
		if (how > 200)
			give_back();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	unsigned open_before = descriptors_open();
	uint32_t i;

	memset(&b, 0, sizeof(b));
	input_begin(data, len);
	false_lender_begin(change, NULL);
	if (!weft_lender_open("/a/lender", NULL, &b.lender)) {
		while (input_left())
			one_step();
		give_back();
		for (i = 0; i < SEGMENTS; i++)
			if (b.segs[i])
				MUST(!weft_segment_free(b.segs[i]));
		MUST(!weft_lender_close(b.lender));
	}
	false_lender_end();
	MUST(descriptors_open() == open_before);
	return 0;
}
