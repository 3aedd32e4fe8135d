/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: what the controller of another host says to a borrower's queue pair, over a provider that is the target's,
 * and where its lender says that it is. Messages begin as an honest controller would make them and are changed byte by
 * byte; entries of queues near the borrower, remote CQ data and the ends of what is under way come in any order.
 *
 * Checked: nothing crashes or hangs, a command ends once, memory of a window that is closed is not reached any more, and
 * nothing is left when the pair has been closed.
 */
#define _GNU_SOURCE
#include <rdma/fi_errno.h>
#include <string.h>

#include "descriptors.h"
#include "fake_port.h"
#include "false_lender.h"
#include "fuzz.h"
#include "input.h"
#include "remote_pair.h"

#define WINDOWS 2u
#define DEPTH	8u
#define LEN	65536u

/* Of the provider's names. */
#define NAME_LEN 16u

/* @under_way: commands, by their argument, which is their place here */
static struct {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *segs[WINDOWS];
	struct weft_window *windows[WINDOWS];
	struct weft_nvme *qp;
	bool under_way[DEPTH];
	struct remote_place place;
} b;

static int refuse(void)
{
	uint8_t how = input_left() ? input_byte() : 0;

	return how < 240 ? 0 : how < 250 ? -FI_EAGAIN : -FI_ENOTCONN;
}

static void fill_some(void *mem, size_t len)
{
	memset(mem, input_byte(), len);
}

/* Where a lender says that the controller's endpoint is */
static void fill_place(struct fake_answer *a)
{
	uint8_t what = input_byte();

	b.place = (struct remote_place){ .version = REMOTE_VERSION,
					 .data_len = what & 1 ? 0 : 4,
					 .name_len = NAME_LEN,
					 .key = { { 11, 12 } },
					 .data_key = 0x123456,
					 .depth = DEPTH,
					 .message_max = 4096,
					 .inline_max = 512,
					 .provider = "fuzz" };
	if (what & 2)
		((uint8_t *)&b.place)[input_word() % sizeof(b.place)] ^= input_byte();
	memcpy(a->data, &b.place, sizeof(b.place));
	a->msg.data_len = sizeof(b.place);
	if (what & 4)
		a->msg.data_len = input_word() % sizeof(a->data);
	a->len = sizeof(a->msg) + a->msg.data_len;
}

/* The lender is honest, but for that. */
static enum false_how change(struct fake_answer *a)
{
	if (a->msg.kind != LEASE_QUEUES || a->msg.status)
		return FALSE_SAYS;
	packet_close_fds(a->fds, a->fd_cnt);
	a->fd_cnt = a->msg.fd_cnt = 0;
	fill_place(a);
	return FALSE_SAYS;
}

static void say(void)
{
	static union {
		struct remote_complete m;
		uint8_t bytes[512];
	} said;
	struct remote_head *head = &said.m.head;
	size_t len = sizeof(*head);
	uint32_t i;

	memset(&said, 0, sizeof(said));
	*head = (struct remote_head){ REMOTE_VERSION, input_byte() % (REMOTE_END + 1), 0,
				      b.place.key };
	if (head->kind == REMOTE_COMPLETE) {
		head->count = input_byte() % (REMOTE_COMPLETE_MAX + 1);
		len += head->count * sizeof(said.m.entries[0]);
		for (i = 0; i < head->count; i++) {
			said.m.entries[i].cid = input_byte() % (DEPTH + 1);
			said.m.entries[i].status = (uint16_t)(input_byte() << 1);
		}
	}
	if (input_byte() & 1)
		said.bytes[input_word() % len] ^= input_byte();
	if (input_byte() > 240)
		len = input_word() % sizeof(said);
	fake_port_message(&said, len);
}

/* Entries that the controller writes to a queue near the borrower, and data that says so, or not. */
static void write_data(void)
{
	uint8_t how = input_byte();
	struct nvme_cqe cqe = { .cid = how % (DEPTH + 1) };

	if (b.qp && b.qp->remote->queues && how & 0x80) {
		uint32_t at = how & 0x40 ? input_byte() % b.qp->entries : b.qp->cq_head;

		cqe.status = how & 0x20 ? input_word() & 0xffff : b.qp->phase;
		b.qp->cq[at] = cqe;
	}
	fake_port_written(how & 0x10 ? input_word()
				     : (uint32_t)remote_data(&b.place, how % (DEPTH + 1)));
}

/* While the borrower waits for the controller, or between two of its calls */
static void be_controller(void)
{
	uint8_t how = input_byte();

	if (how < 120)
		say();
	else if (how < 180)
		write_data();
	else if (how < 250)
		fake_port_finish(input_byte(), how < 230 ? 0 : FI_EIO, fill_some);
}

static void take_some(void)
{
	struct weft_nvme_completion done[DEPTH];
	ssize_t n = weft_nvme_poll(b.qp, done, 1 + input_byte() % DEPTH), i;

	MUST(n <= (ssize_t)DEPTH && n > -4096);
	for (i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)done[i].arg;

		MUST(at < DEPTH && b.under_way[at]);
		b.under_way[at] = false;
	}
}

static void submit_some(void)
{
	static const uint8_t opcodes[] = { WEFT_NVME_READ,    WEFT_NVME_WRITE,
					   WEFT_NVME_FLUSH,   WEFT_NVME_DEALLOCATE,
					   WEFT_NVME_COMPARE, WEFT_NVME_WRITE_ZEROES };
	struct weft_nvme_command commands[DEPTH];
	uint32_t cnt = 0, at;
	ssize_t n, i;

	for (at = 0; at < DEPTH && cnt < 1 + input_byte() % 3u; at++) {
		uint8_t what = input_byte();
		uint8_t *mem = weft_segment_mem(b.segs[what % WINDOWS]);

		if (b.under_way[at])
			continue;
		commands[cnt++] = (struct weft_nvme_command){
			.opcode = opcodes[input_byte() % sizeof(opcodes)],
			.nsid = 1,
			.lba = what,
			.blocks = 1u + what / 32,
			.buf = mem + (what & 4 ? LEN - 512 : 0),
			.arg = (void *)(uintptr_t)at,
		};
	}
	n = weft_nvme_submit(b.qp, commands, cnt);
	MUST(n <= (ssize_t)cnt && n > -4096);
	for (i = 0; i < n; i++)
		b.under_way[(uintptr_t)commands[i].arg] = true;
}

static void have_pair(void)
{
	struct weft_nvme_attr attr = { .size = sizeof(attr), .depth = DEPTH };

	memset(b.under_way, 0, sizeof(b.under_way));
	if (b.qp) {
		weft_nvme_close(b.qp);
		b.qp = NULL;
		MUST(!fake_port_left());
		return;
	}
	attr.flags = input_byte() & 1 ? WEFT_NVME_NEAR_BORROWER : 0;
	if (weft_nvme_open(b.dev, &attr, &b.qp))
		MUST(!b.qp && !fake_port_left());
}

static void have_window(uint32_t i)
{
	uint8_t *mem = weft_segment_mem(b.segs[i]);

	if (!b.windows[i]) {
		MUST(!weft_window_open(b.dev, b.segs[i], WEFT_WINDOW_RW, &b.windows[i]));
		return;
	}
	MUST(!weft_window_close(b.windows[i]));
	b.windows[i] = NULL;
	MUST(!fake_port_reaches(mem) && !fake_port_reaches(mem + LEN - 1));
}

static void one_step(void)
{
	uint8_t how = input_byte();

	if (how < 100)
		be_controller();
	else if (how > 250)
		have_window(how % WINDOWS);
	else if (!b.qp || how == 250)
		have_pair();
	else if (how < 180)
		submit_some();
	else
		take_some();
}

static void begin(void)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .ms = WEFT_LEASE_MS_MAX };
	uint32_t i;

	memset(&b, 0, sizeof(b));
	fake_port_begin(refuse);
	false_lender_begin(change, be_controller);
	MUST(!weft_lender_open("elsewhere", NULL, &b.lender));
	MUST(!weft_device_borrow(b.lender, &attr, &b.dev));
	for (i = 0; i < WINDOWS; i++) {
		MUST(!weft_segment_alloc(NULL, LEN, 0, &b.segs[i]));
		have_window(i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	unsigned open_before = descriptors_open();
	uint32_t i;

	input_begin(NULL, 0);
	begin();
	input_begin(data, len);
	have_pair();
	while (input_left())
		one_step();
	if (b.qp)
		have_pair();
	MUST(!weft_device_return(b.dev));
	for (i = 0; i < WINDOWS; i++)
		MUST(!weft_segment_free(b.segs[i]));
	MUST(!weft_lender_close(b.lender));
	false_lender_end();
	MUST(descriptors_open() == open_before);
	return 0;
}
