/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slots of an inbox (providers/shm/memory/mailbox.c) in all executions that C11 allows: a slot
 * has one claimer at a time, the owner reads what the claimer has written, and a slot that is used
 * again belongs to its new claimer alone.
 */
#include "descriptor.h"
#include "mailbox.h"
#include "memfd.h"
#include "process.h"
#include "weak.h"

#include <rdma/fi_errno.h>

static struct pshm_inbox inbox;
static struct pshm_ticket tickets[2];
static const struct pshm_offer offers[2] = {
	{ .pid = 11, .fd = 5, .nonce = { 1 } },
	{ .pid = 12, .fd = 6, .nonce = { 2 } },
};

/* The kernel: all processes live, and none has begun another program. */

bool pshm_process_gone(uint32_t pid)
{
	return false;
}

int sys_memfd_open(pid_t pid, int fd, bool writable)
{
	return -FI_EACCES;
}

void sys_descriptor_close(int fd)
{
}

void weak_relax(void)
{
}

static void set_up(void)
{
	memset(&inbox, 0, sizeof(inbox));
	memset(tickets, 0, sizeof(tickets));
	weak_name("pshm_slot.word", &inbox.slots[0].word, sizeof(inbox.slots[0].word));
}

static void ask(int n)
{
	weak_require(!pshm_mailbox_claim(&inbox, offers[n].pid, &tickets[n]));
	weak_require(!pshm_mailbox_post(&inbox, &offers[n], &tickets[n]));
}

static void asker(void)
{
	ask(0);
}

static void other_asker(void)
{
	ask(1);
}

/* Takes a request of the first slot, and answers it. */
static void answer(int err)
{
	struct pshm_offer offer = { 0 };
	uint32_t idx = 0;
	uint64_t word;

	weak_assume(pshm_mailbox_take(&inbox, &idx, &offer, &word) && !idx);
	weak_require(offer.pid == 11 || offer.pid == 12);
	weak_require(offer.fd == offers[offer.pid - 11].fd);
	weak_require(pshm_nonce_same(offer.nonce, offers[offer.pid - 11].nonce));
	pshm_mailbox_finish(&inbox, idx, word, err);
}

static void opener(void)
{
	answer(0);
}

static void refuser(void)
{
	answer(-FI_ENOMEM);
}

static void both_asked(void)
{
	weak_require(tickets[0].slot != tickets[1].slot);
}

static const struct weak_test requests_pass = {
	"a request is found as it was left", set_up, { asker, opener }, NULL
};

static const struct weak_test two_askers = {
	"a slot has one claimer", set_up, { asker, other_asker }, both_asked
};

/* The first slot has a request. */
static void set_up_asked(void)
{
	set_up();
	ask(0);
}

static void asker_of_first(void)
{
	weak_require(!pshm_mailbox_claim(&inbox, offers[1].pid, &tickets[1]));
	weak_assume(tickets[1].slot == &inbox.slots[0]);
	weak_require(!pshm_mailbox_post(&inbox, &offers[1], &tickets[1]));
}

static const struct weak_test slots_are_used_again = {
	"a slot is used again", set_up_asked, { opener, asker_of_first }, NULL
};

static void asker_looks(void)
{
	int err = pshm_mailbox_failed(&tickets[0]);

	weak_require(!err || err == -FI_ENOMEM);
}

static const struct weak_test failures = {
	"who is refused finds why", set_up_asked, { refuser, asker_looks }, NULL
};

/* A request is withdrawn while it is answered; the claimer continues with another one. */
static void leaver(void)
{
	pshm_mailbox_drop(&tickets[0]);
}

static void first_is_free(void)
{
	weak_require(!(atomic_load_explicit(&inbox.slots[0].word, memory_order_relaxed) & 0xff));
}

static const struct weak_test withdrawn = { "a request that is withdrawn leaves its slot free",
					    set_up_asked,
					    { opener, leaver },
					    first_is_free };

static const struct weak_test refused = {
	"so does one that is refused", set_up_asked, { refuser, leaver }, first_is_free
};

int main(void)
{
	static const struct weak_test *const tests[] = {
		&requests_pass, &two_askers, &slots_are_used_again, &failures, &withdrawn,
		&refused,	NULL
	};
	static const struct weak_ordering orderings[] = {
		{ "R:pshm_slot.word", &requests_pass },
		{ "A:pshm_slot.word", &requests_pass },
		{ "R:pshm_slot.word", &slots_are_used_again },
		{ "A:pshm_slot.word", &slots_are_used_again },
		{ "R:pshm_slot.word", &failures },
		{ "A:pshm_slot.word", &failures },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
