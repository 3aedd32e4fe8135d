/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups: who gets what is sent to one, and what can't be joined. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>
#include "party.h"

enum { MEMBERS = 3 };

static struct party members[MEMBERS];
static struct fid_mc *groups[MEMBERS];

/* The port and the next one are this process's own, so that tests at the same time don't meet. */
static struct sockaddr_in group_of(uint16_t port)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, "239.255.77.1", &group.sin_addr);
	return group;
}

static uint16_t some_port(void)
{
	return (uint16_t)(20000 + 2 * (getpid() % 5000));
}

static int join(struct party *p, const void *addr, uint64_t flags, struct fid_mc **mc)
{
	struct fi_eq_entry entry;
	uint32_t event;
	int ret = fi_join(p->ep, addr, flags, mc, p);

	if (ret)
		return ret;
	assert_int_equal(fi_eq_sread(p->eq, &event, &entry, sizeof(entry), PARTY_WAIT_MS, 0),
			 sizeof(entry));
	assert_int_equal(event, FI_JOIN_COMPLETE);
	assert_ptr_equal(entry.fid, &(*mc)->fid);
	assert_ptr_equal(entry.context, p);
	return 0;
}

static void open_members(uint64_t caps)
{
	for (int i = 0; i < MEMBERS; i++)
		party_open(&members[i], &(struct party_choice){ .caps = caps });
}

static void close_members(void)
{
	for (int i = 0; i < MEMBERS; i++)
		party_close(&members[i]);
}

static void send_to(struct party *p, fi_addr_t addr, uint64_t flags, char byte)
{
	const struct iovec iov = { &byte, 1 };
	const struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = addr };

	assert_int_equal(fi_sendmsg(p->ep, &msg, flags | FI_INJECT), 0);
	assert_true(party_completion(p, NULL).flags & FI_SEND);
}

static void each_member_gets_a_message(void **state)
{
	const struct sockaddr_in group = group_of(some_port());
	char in[MEMBERS][8];
	fi_addr_t first[MEMBERS], src;

	open_members(FI_MULTICAST);
	for (int i = 0; i < MEMBERS; i++) {
		assert_int_equal(join(&members[i], &group, 0, &groups[i]), 0);
		first[i] = party_meet(&members[i], &members[0]);
		assert_int_equal(fi_recv(members[i].ep, in[i], 8, NULL, 0, in[i]), 0);
	}
	send_to(&members[0], fi_mc_addr(groups[0]), FI_MULTICAST, 'm');
	for (int i = 0; i < MEMBERS; i++) {
		assert_ptr_equal(party_completion(&members[i], &src).op_context, in[i]);
		assert_true(src == first[i]);
		assert_int_equal(in[i][0], 'm');
	}
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(fi_close(&groups[i]->fid), 0);
	close_members();
}

/* The last member left, and the second only sends: what they get next was sent to them. */
static void who_left_or_only_sends_gets_none(void **state)
{
	const struct sockaddr_in group = group_of(some_port());
	char in[MEMBERS][8];

	open_members(FI_MULTICAST);
	for (int i = 0; i < MEMBERS; i++) {
		assert_int_equal(join(&members[i], &group, i == 1 ? FI_SEND : 0, &groups[i]), 0);
		party_meet(&members[0], &members[i]);
		assert_int_equal(fi_recv(members[i].ep, in[i], 8, NULL, 0, NULL), 0);
	}
	assert_int_equal(fi_close(&members[2].ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&groups[2]->fid), 0);
	send_to(&members[1], fi_mc_addr(groups[1]), FI_MULTICAST, 'm');
	party_completion(&members[0], NULL);
	for (int i = 1; i < MEMBERS; i++) {
		send_to(&members[0], (fi_addr_t)i, 0, 'u');
		party_completion(&members[i], NULL);
		assert_int_equal(in[i][0], 'u');
		party_quiet(&members[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&groups[i]->fid), 0);
	close_members();
}

/* The addresses of two groups with one port, and of one group with two ports, are different. */
static void groups_are_told_apart(void **state)
{
	struct sockaddr_in group[MEMBERS];
	struct fid_mc *to[MEMBERS];
	char in[MEMBERS][8];

	open_members(FI_MULTICAST);
	for (int i = 0; i < MEMBERS; i++) {
		group[i] = group_of(some_port());
		if (i == 1)
			inet_pton(AF_INET, "239.255.77.2", &group[i].sin_addr);
		if (i == 2)
			group[i].sin_port = htons((uint16_t)(some_port() + 1));
		assert_int_equal(join(&members[i], &group[i], FI_RECV, &groups[i]), 0);
		assert_int_equal(join(&members[0], &group[i], FI_SEND, &to[i]), 0);
		assert_int_equal(fi_recv(members[i].ep, in[i], 8, NULL, 0, NULL), 0);
	}
	for (int i = 0; i < MEMBERS; i++)
		send_to(&members[0], fi_mc_addr(to[i]), FI_MULTICAST, (char)('0' + i));
	for (int i = 0; i < MEMBERS; i++) {
		party_completion(&members[i], NULL);
		assert_int_equal(in[i][0], '0' + i);
		party_quiet(&members[i]);
		assert_int_equal(fi_close(&groups[i]->fid), 0);
		assert_int_equal(fi_close(&to[i]->fid), 0);
	}
	close_members();
}

/*
 * A program that is no part of this joins a group; an endpoint at the wildcard address with the
 * group's port gets what is sent to itself alone.
 */
static void who_joined_none_gets_none(void **state)
{
	const struct ip_mreqn mreq = { .imr_multiaddr = group_of(0).sin_addr,
				       .imr_ifindex = (int)if_nametoindex("lo") };
	struct sockaddr_in all = { .sin_family = AF_INET, .sin_port = htons(some_port()) };
	const struct sockaddr_in group = group_of(some_port());
	int fd = socket(AF_INET, SOCK_DGRAM, 0), none = 0;
	struct party *p = &members[0];
	char in[8];

	assert_true(fd >= 0);
	if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &none, sizeof(none))) {
		close(fd);
		skip(); /* qemu-user, which does not know it */
	}
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &mreq, sizeof(mreq)), 0);
	party_open(p, &(struct party_choice){ .idle = true });
	assert_int_equal(fi_setname(&p->ep->fid, &all, sizeof(all)), 0);
	assert_int_equal(fi_enable(p->ep), 0);
	assert_int_equal(fi_recv(p->ep, in, 8, NULL, 0, NULL), 0);
	assert_int_equal(sendto(fd, "m", 1, 0, (const void *)&group, sizeof(group)), 1);
	all.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(sendto(fd, "u", 1, 0, (const void *)&all, sizeof(all)), 1);
	party_completion(p, NULL);
	assert_int_equal(in[0], 'u');
	assert_int_equal(fi_recv(p->ep, in, 8, NULL, 0, NULL), 0);
	party_quiet(p);
	party_close(p);
	close(fd);
}

/* The endpoint's own address always has a datagram more, and only one receive is posted. */
static void a_flood_of_one_address_starves_no_group(void **state)
{
	const struct sockaddr_in group = group_of(some_port());
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;
	struct party *p = &members[0];
	char in[8] = "";
	fi_addr_t self;

	party_open(p, &(struct party_choice){ .caps = FI_MULTICAST });
	assert_int_equal(join(p, &group, 0, &groups[0]), 0);
	self = party_meet(p, p);
	for (int i = 0; i < 50; i++)
		assert_int_equal(fi_inject(p->ep, "u", 1, self), 0);
	assert_int_equal(fi_inject(p->ep, "m", 1, fi_mc_addr(groups[0])), 0);
	while (in[0] != 'm') {
		assert_true(party_now_ms() < end);
		assert_int_equal(fi_inject(p->ep, "u", 1, self), 0);
		assert_int_equal(fi_recv(p->ep, in, 8, NULL, 0, NULL), 0);
		party_completion(p, NULL);
	}
	assert_int_equal(fi_close(&groups[0]->fid), 0);
	party_close(p);
}

static void what_is_no_group_is_not_joined(void **state)
{
	struct sockaddr_in group = group_of(some_port());
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = group.sin_port };
	struct fid_mc *mc, *only;
	char byte = 0;

	open_members(FI_MULTICAST);
	inet_pton(AF_INET6, "ff12::1", &six.sin6_addr);
	assert_int_equal(join(&members[0], &six, 0, &mc), -FI_EINVAL);
	assert_int_equal(join(&members[0], &members[1].name, 0, &mc), -FI_EINVAL);
	assert_int_equal(join(&members[0], &group, FI_MULTICAST, &mc), -FI_EBADFLAGS);
	group.sin_port = 0;
	assert_int_equal(join(&members[0], &group, 0, &mc), -FI_EINVAL);
	group = group_of(some_port());
	assert_int_equal(join(&members[0], &group, FI_RECV, &only), 0);
	assert_int_equal(fi_inject(members[0].ep, &byte, 1, fi_mc_addr(only)), -FI_EINVAL);
	assert_int_equal(fi_close(&only->fid), 0);
	assert_int_equal(fi_inject(members[0].ep, &byte, 1, 1ull << 62), -FI_EINVAL);
	close_members();
	open_members(0);
	assert_int_equal(join(&members[0], &group, 0, &mc), -FI_ENOSYS);
	close_members();
}

static void groups_of_ipv6_are_joined(void **state)
{
	const struct party_choice choice = { .caps = FI_MULTICAST, .six = true };
	struct sockaddr_in6 group = { .sin6_family = AF_INET6, .sin6_port = htons(some_port()) };
	struct fi_info *info = party_fi_info(&choice);
	char in[8];
	int ret;

	if (!info)
		skip(); /* no IPv6 here */
	fi_freeinfo(info);
	inet_pton(AF_INET6, "ff11::77", &group.sin6_addr);
	party_open(&members[0], &choice);
	assert_int_equal(join(&members[0], &group, 0, &groups[0]), 0);
	assert_int_equal(fi_recv(members[0].ep, in, 8, NULL, 0, in), 0);
	ret = (int)fi_inject(members[0].ep, "m", 1, fi_mc_addr(groups[0]));
	if (!ret) {
		assert_ptr_equal(party_completion(&members[0], NULL).op_context, in);
		assert_int_equal(in[0], 'm');
	} else {
		printf("loopback has no route to groups of IPv6: %s\n", fi_strerror(-ret));
	}
	assert_int_equal(fi_close(&groups[0]->fid), 0);
	party_close(&members[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_gets_a_message),
		cmocka_unit_test(who_left_or_only_sends_gets_none),
		cmocka_unit_test(groups_are_told_apart),
		cmocka_unit_test(who_joined_none_gets_none),
		cmocka_unit_test(a_flood_of_one_address_starves_no_group),
		cmocka_unit_test(what_is_no_group_is_not_joined),
		cmocka_unit_test(groups_of_ipv6_are_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
