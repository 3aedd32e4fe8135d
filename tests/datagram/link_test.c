/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses that are valid on their link alone (IPv6): two links of a network namespace, with one
 * address on both, so that the scope alone says which of them is meant. Skipped where there is no
 * namespace or no TAP device. One thread.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "party.h"

#define SKIPPED 77
#define PORT	"47001"

/* What SIOCSIFADDR takes of IPv6; linux/ipv6.h has it, which netinet/in.h is not to be beside. */
struct six_request {
	struct in6_addr addr;
	uint32_t prefix;
	int index;
};

/* Two endpoints at one address and port of two links, and one more on the first. */
static struct party on[2], third;

/* The kernel gives no address away before it has asked the link, unless it is told not to ask. */
static void ask_nobody(const char *name)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0", 1) != 1)
		printf("%s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static bool up(int fd, const char *name)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &request))
		return false;
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	return !ioctl(fd, SIOCSIFFLAGS, &request);
}

/* Makes a link with the address fe80::77, by way of lo within the host. Returns false with errno. */
static bool link_make(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	struct six_request six = { .prefix = 64 };
	int tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool made;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	inet_pton(AF_INET6, "fe80::77", &six.addr);
	made = tap >= 0 && fd >= 0 && !ioctl(tap, TUNSETIFF, &request);
	if (made) {
		ask_nobody(name);
		six.index = (int)if_nametoindex(name);
		made = up(fd, "lo") && up(fd, name) && !ioctl(fd, SIOCSIFADDR, &six);
	}
	/* The link is there while the device is open: until the test ends. */
	if (fd >= 0)
		close(fd);
	return made;
}

/* Waits until the kernel has the address ready. */
static void await_address(const char *name)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_scope_id = if_nametoindex(name) };
	uint64_t end = party_now_ms() + PARTY_WAIT_MS;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	inet_pton(AF_INET6, "fe80::77", &at.sin6_addr);
	while (bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		assert_int_equal(errno, EADDRNOTAVAIL);
		assert_true(party_now_ms() < end);
		poll(NULL, 0, 10);
	}
	close(fd);
}

static void open_at(struct party *p, const char *link, const char *port)
{
	char node[32];

	snprintf(node, sizeof(node), "fe80::77%%%s", link);
	party_open(p, &(struct party_choice){ .caps = FI_MULTICAST,
					      .six = true,
					      .iface = link,
					      .node = node,
					      .port = port });
	assert_int_equal(p->name.sin6_scope_id, if_nametoindex(link));
}

static void open_three(void)
{
	await_address("net0");
	await_address("net1");
	open_at(&on[0], "net0", PORT);
	open_at(&on[1], "net1", PORT);
	open_at(&third, "net0", NULL);
}

static void close_three(void)
{
	party_close(&on[0]);
	party_close(&on[1]);
	party_close(&third);
}

static void the_scope_tells_links_apart(void **state)
{
	fi_addr_t to[2], from, src;
	char in = 0, none = 0;

	open_three();
	assert_int_equal(on[0].name.sin6_port, on[1].name.sin6_port);
	assert_memory_equal(&on[0].name.sin6_addr, &on[1].name.sin6_addr, 16);
	for (int i = 0; i < 2; i++)
		to[i] = party_meet(&third, &on[i]);
	assert_true(to[0] != to[1]);
	/* One more, so that the index is not what any other vector would say. */
	party_meet(&on[0], &on[1]);
	from = party_meet(&on[0], &third);
	assert_int_equal(fi_recv(on[0].ep, &in, 1, NULL, 0, &in), 0);
	assert_int_equal(fi_recv(on[1].ep, &none, 1, NULL, 0, &none), 0);
	assert_int_equal(fi_inject(third.ep, "s", 1, to[0]), 0);
	assert_ptr_equal(party_completion(&on[0], &src).op_context, &in);
	assert_int_equal(in, 's');
	assert_true(src == from);
	party_quiet(&on[1]);
	assert_int_equal(fi_inject(on[1].ep, "o", 1, party_meet(&on[1], &on[1])), 0);
	party_completion(&on[1], NULL);
	assert_int_equal(none, 'o');
	close_three();
}

static struct fid_mc *join(struct party *p, uint32_t scope)
{
	struct sockaddr_in6 group = { .sin6_family = AF_INET6,
				      .sin6_port = htons(47002),
				      .sin6_scope_id = scope };
	struct fid_mc *mc;

	inet_pton(AF_INET6, "ff12::77", &group.sin6_addr);
	assert_int_equal(fi_join(p->ep, &group, 0, &mc, NULL), 0);
	return mc;
}

/* A group is one of each link, whether the scope says so or the domain. */
static void a_group_is_one_of_its_link(void **state)
{
	struct party *members[3] = { &on[0], &on[1], &third };
	struct fid_mc *groups[3];
	char in[4] = "";
	fi_addr_t src, from;

	open_three();
	groups[0] = join(&on[0], if_nametoindex("net0"));
	groups[1] = join(&on[1], 0);
	groups[2] = join(&third, 0);
	from = party_meet(&on[0], &third);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_recv(members[i]->ep, &in[i], 1, NULL, 0, NULL), 0);
	assert_int_equal(fi_inject(third.ep, "g", 1, fi_mc_addr(groups[2])), 0);
	party_completion(&third, NULL);
	party_completion(&on[0], &src);
	assert_true(src == from);
	party_quiet(&on[1]);
	assert_int_equal(fi_inject(on[1].ep, "h", 1, fi_mc_addr(groups[1])), 0);
	party_completion(&on[1], NULL);
	assert_string_equal(in, "ghg");
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_close(&groups[i]->fid), 0);
	close_three();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_scope_tells_links_apart),
		cmocka_unit_test(a_group_is_one_of_its_link),
	};

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		printf("skip: no network namespace: %s\n", strerror(errno));
		return SKIPPED;
	}
	ask_nobody("default");
	if (!link_make("net0") || !link_make("net1")) {
		printf("skip: no TAP device: %s\n", strerror(errno));
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
