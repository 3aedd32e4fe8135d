/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of an endpoint closed in every order: what another one still uses refuses, and is
 * closed once that is gone. One thread.
 */
#include <unistd.h>
#include "party.h"

enum object { GROUP, EP, CQ, AV, EQ, DOMAIN, FABRIC, OBJECT_CNT };

#define BIT(object) (1u << (object))

/* What has to be closed before each. */
static const unsigned int users[OBJECT_CNT] = {
	[GROUP] = 0,
	[EP] = BIT(GROUP),
	[CQ] = BIT(EP),
	[AV] = BIT(EP),
	[EQ] = BIT(EP),
	[DOMAIN] = BIT(EP) | BIT(CQ) | BIT(AV),
	[FABRIC] = BIT(DOMAIN) | BIT(EQ),
};

static struct fid *objects[OBJECT_CNT];
static char in, out = 'x';

static void open_all(struct party *p)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct iovec iov = { &out, 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fid_mc *mc;

	party_open(p, &(struct party_choice){ .caps = FI_MULTICAST, .wait = FI_WAIT_FD });
	group.sin_addr.s_addr = htonl(0xefff4d02u); /* 239.255.77.2 */
	group.sin_port = htons((uint16_t)(20000 + getpid() % 5000));
	assert_int_equal(fi_join(p->ep, &group, FI_SEND, &mc, NULL), 0);
	/* A receive that is posted, a send that is held back and an event that is not read. */
	assert_int_equal(fi_recv(p->ep, &in, 1, NULL, 0, NULL), 0);
	msg.addr = party_meet(p, p);
	assert_int_equal(fi_sendmsg(p->ep, &msg, FI_MORE | FI_INJECT), 0);
	objects[GROUP] = &mc->fid;
	objects[EP] = &p->ep->fid;
	objects[CQ] = &p->cq->fid;
	objects[AV] = &p->av->fid;
	objects[EQ] = &p->eq->fid;
	objects[DOMAIN] = &p->domain->fid;
	objects[FABRIC] = &p->fabric->fid;
}

/* Closes in that order, from the first on again until nothing is left. */
static void close_in_order(const enum object order[OBJECT_CNT])
{
	unsigned int left = BIT(OBJECT_CNT) - 1;

	while (left) {
		for (int i = 0; i < OBJECT_CNT; i++) {
			bool used = users[order[i]] & left;

			if (!(left & BIT(order[i])))
				continue;
			assert_int_equal(fi_close(objects[order[i]]), used ? -FI_EBUSY : 0);
			if (!used)
				left &= ~BIT(order[i]);
		}
	}
}

/* The next permutation in lexical order. Returns false after the last. */
static bool permute(enum object order[OBJECT_CNT])
{
	int i = OBJECT_CNT - 2, k = OBJECT_CNT - 1;
	enum object swap;

	while (i >= 0 && order[i] > order[i + 1])
		i--;
	if (i < 0)
		return false;
	while (order[k] < order[i])
		k--;
	swap = order[i];
	order[i] = order[k];
	order[k] = swap;
	for (i++, k = OBJECT_CNT - 1; i < k; i++, k--) {
		swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
	return true;
}

static void objects_close_in_every_order(void **state)
{
	enum object order[OBJECT_CNT] = { GROUP, EP, CQ, AV, EQ, DOMAIN, FABRIC };
	size_t before = 0;
	struct party p;
	int cnt = 0;

	do {
		open_all(&p);
		close_in_order(order);
		fi_freeinfo(p.info);
		/* The first ones allocate what is kept. */
		if (++cnt == 100)
			before = party_allocated();
	} while (permute(order));
	assert_int_equal(cnt, 7 * 6 * 5 * 4 * 3 * 2);
	/* What malloc() keeps of what a thread has freed counts as allocated: some chunks, and no byte of each round. */
	assert_true(party_allocated() < before + (size_t)cnt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_close_in_every_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
