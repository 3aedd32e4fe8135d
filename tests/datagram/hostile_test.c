/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What strangers send to an endpoint, what a program closes under it, and full descriptor tables:
 * others are not disturbed, and nothing is left. One thread; the seed is printed.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "party.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { FORGED = 10000, LONGEST = 65507, ROUNDS = 1000 };

static struct party a, b;
static char noise[LONGEST], in[2048];

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* A socket of no endpoint, that sends to @a. */
static int stranger(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a.name, sizeof(struct sockaddr_in)), 0);
	return fd;
}

/* The bytes of the message that is in, which came from no peer. */
static void assert_forged(const struct fi_cq_tagged_entry *entry, fi_addr_t src, size_t len)
{
	assert_int_equal(entry->len, len);
	assert_int_equal(src, FI_ADDR_NOTAVAIL);
	assert_memory_equal(in, noise, len);
}

static void forged_datagrams_are_messages_or_too_long(void **state)
{
	unsigned int seed = (unsigned int)getpid();
	struct fi_cq_tagged_entry entry;
	int fd, errors = 0;
	fi_addr_t src, peer;

	printf("seed %u\n", seed);
	party_open(&a, &(struct party_choice){ 0 });
	party_open(&b, &(struct party_choice){ 0 });
	peer = party_meet(&a, &b);
	fd = stranger();
	for (int i = 0; i < FORGED; i++) {
		/* Most are short, some empty, some longer than any message. */
		size_t len = (size_t)rand_r(&seed) % (i % 16 ? 64 : LONGEST + 1);

		for (size_t k = 0; k < len && k < sizeof(in); k++)
			noise[k] = (char)rand_r(&seed);
		assert_int_equal(fi_recv(a.ep, in, sizeof(in), NULL, 0, in), 0);
		assert_int_equal(send(fd, noise, len, 0), len);
		if (len <= sizeof(in)) {
			entry = party_completion(&a, &src);
			assert_forged(&entry, src, len);
		} else {
			struct fi_cq_err_entry err = party_error(&a);

			errors++;
			assert_int_equal(err.err, FI_ETRUNC);
			assert_int_equal(err.len, sizeof(in));
			assert_int_equal(err.olen, len - sizeof(in));
		}
	}
	assert_true(errors > 0);
	/* A peer is still told by its address. */
	(void)party_meet(&b, &a);
	assert_int_equal(fi_recv(a.ep, in, sizeof(in), NULL, 0, in), 0);
	assert_int_equal(fi_inject(b.ep, "x", 1, 0), 0);
	entry = party_completion(&a, &src);
	assert_int_equal(entry.len, 1);
	assert_int_equal(src, peer);
	party_quiet(&a);
	close(fd);
	party_close(&a);
	party_close(&b);
}

/* A stranger's segments arrive as the datagrams that they are, the short last one too. */
static void segments_of_a_stranger_are_datagrams(void **state)
{
	enum { LEN = 90, CNT = 20, LAST = 7 };
	int fd, segment = LEN;
	ssize_t sent;

	party_open(&a, &(struct party_choice){ 0 });
	fd = stranger();
	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment))) {
		printf("the kernel has no segments\n");
		close(fd);
		party_close(&a);
		skip();
	}
	for (size_t k = 0; k < sizeof(noise); k++)
		noise[k] = (char)(k / LEN);
	for (int i = 0; i <= CNT; i++)
		assert_int_equal(fi_recv(a.ep, in + i * LEN, LEN, NULL, 0, in + i * LEN), 0);
	sent = send(fd, noise, CNT * LEN + LAST, 0);
	assert_int_equal(sent, CNT * LEN + LAST);
	for (int i = 0; i <= CNT; i++) {
		struct fi_cq_tagged_entry entry = party_completion(&a, NULL);

		assert_ptr_equal(entry.op_context, in + i * LEN);
		assert_int_equal(entry.len, i < CNT ? LEN : LAST);
	}
	assert_memory_equal(in, noise, CNT * LEN + LAST);
	close(fd);
	party_close(&a);
}

/* A flood that nobody receives neither stops a peer of another endpoint nor stays. */
/* Messages that leave as segments arrive as one packet where the receiver takes such. */
static ssize_t packet_of_two(int fd, fi_addr_t to)
{
	const struct iovec iov = { noise, 100 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to };

	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_sendmsg(a.ep, &msg, i ? 0 : FI_MORE), 0);
	return fd < 0 ? 0 : recv(fd, in, sizeof(in), 0);
}

/* An address that nothing can be sent to says nothing of the kernel's segments. */
static void an_address_that_is_none_costs_others_no_segments(void **state)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = PARTY_WAIT_MS / 1000 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
	socklen_t len = sizeof(name);
	fi_addr_t good, bad;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on))) {
		close(fd);
		skip(); /* no segments */
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&name, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	party_open(&a, &(struct party_choice){ 0 });
	assert_int_equal(fi_av_insert(a.av, &name, 1, &good, 0, NULL), 1);
	/* Of another host, which loopback's address does not reach: EINVAL, if there is a route. */
	inet_pton(AF_INET, "203.0.113.9", &name.sin_addr);
	assert_int_equal(fi_av_insert(a.av, &name, 1, &bad, 0, NULL), 1);
	if (packet_of_two(fd, good) == 200) {
		party_completion(&a, NULL);
		party_completion(&a, NULL);
		packet_of_two(-1, bad);
		for (int i = 0; i < 2; i++)
			assert_true(party_error(&a).err > 0);
		assert_int_equal(packet_of_two(fd, good), 200);
	} else {
		printf("loopback has no segments\n");
	}
	close(fd);
	party_close(&a);
}

static void a_flood_disturbs_no_other_endpoint(void **state)
{
	int fd, before = descriptors();
	fi_addr_t to;

	party_open(&a, &(struct party_choice){ 0 });
	party_open(&b, &(struct party_choice){ .domain_of = &a });
	to = party_meet(&b, &b);
	fd = stranger();
	for (int i = 0; i < FORGED; i++) {
		assert_int_equal(send(fd, noise, 64, 0), 64);
		if (i % 100)
			continue;
		party_quiet(&a);
		assert_int_equal(fi_recv(b.ep, in, 1, NULL, 0, in), 0);
		assert_int_equal(fi_inject(b.ep, "x", 1, to), 0);
		assert_int_equal(party_completion(&b, NULL).len, 1);
	}
	close(fd);
	party_close(&b);
	party_close(&a);
	assert_int_equal(descriptors(), before);
}

/* The descriptor of that name. */
static int socket_of(const struct party *p)
{
	struct sockaddr_in name;
	socklen_t len;

	for (int fd = 0; fd < 1024; fd++) {
		len = sizeof(name);
		if (!getsockname(fd, (struct sockaddr *)&name, &len) &&
		    name.sin_family == AF_INET &&
		    name.sin_port == ((const struct sockaddr_in *)&p->name)->sin_port)
			return fd;
	}
	fail_msg("no socket of that port");
	return -1;
}

/* The program closes the endpoint's descriptor: nothing arrives there, and the others go on. */
static void a_descriptor_that_is_closed_ends_one_endpoint(void **state)
{
	fi_addr_t to_a, to_b;
	int fd;

	party_open(&a, &(struct party_choice){ 0 });
	fd = socket_of(&a);
	party_open(&b, &(struct party_choice){ .domain_of = &a });
	to_a = party_meet(&b, &a);
	to_b = party_meet(&b, &b);
	assert_int_equal(fi_recv(a.ep, in, 1, NULL, 0, in), 0);
	assert_int_equal(close(fd), 0);
	party_quiet(&a);
	assert_int_equal(fi_inject(a.ep, "x", 1, party_meet(&a, &b)), -EBADF);
	assert_int_equal(fi_inject(b.ep, "x", 1, to_a), 0);
	assert_int_equal(fi_recv(b.ep, in, 1, NULL, 0, in), 0);
	assert_int_equal(fi_inject(b.ep, "x", 1, to_b), 0);
	assert_int_equal(party_completion(&b, NULL).len, 1);
	party_quiet(&a);
	party_close(&b);
	party_close(&a);
}

static int join(const struct sockaddr_in *group, struct fid_mc **mc)
{
	struct fi_eq_entry entry;
	uint32_t event;
	int ret = fi_join(a.ep, group, 0, mc, NULL);

	if (!ret)
		assert_int_equal(
			fi_eq_sread(a.eq, &event, &entry, sizeof(entry), PARTY_WAIT_MS, 0),
			sizeof(entry));
	return ret;
}

static void groups_joined_and_left_often_leave_nothing(void **state)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rlimit limit, full;
	struct fid_mc *mc;
	size_t memory = 0;
	int before, ret;

	inet_pton(AF_INET, "239.255.77.9", &group.sin_addr);
	group.sin_port = htons((uint16_t)(15000 + getpid() % 5000));
	party_open(&a, &(struct party_choice){ .caps = FI_MULTICAST, .wait = FI_WAIT_FD });
	before = descriptors();
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(join(&group, &mc), 0);
		if (i % 10 == 0) {
			struct iovec iov = { noise, 1 };
			struct fi_msg msg = { .msg_iov = &iov,
					      .iov_count = 1,
					      .addr = fi_mc_addr(mc) };

			assert_int_equal(fi_recv(a.ep, in, 1, NULL, 0, in), 0);
			assert_int_equal(fi_sendmsg(a.ep, &msg, FI_MULTICAST), 0);
			assert_true(party_completion(&a, NULL).flags & FI_MSG);
			assert_true(party_completion(&a, NULL).flags & FI_MSG);
		}
		assert_int_equal(fi_close(&mc->fid), 0);
		/* The first ones allocate what is kept. */
		if (i == ROUNDS / 10)
			memory = party_allocated();
	}
	assert_int_equal(party_allocated(), memory);
	assert_int_equal(descriptors(), before);
	/* No descriptor is left for a socket: it is told, and goes well when there is one again. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	full = limit;
	full.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	ret = join(&group, &mc);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(ret, -FI_EMFILE);
	assert_int_equal(join(&group, &mc), 0);
	assert_int_equal(fi_close(&mc->fid), 0);
	assert_int_equal(descriptors(), before);
	party_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_datagrams_are_messages_or_too_long),
		cmocka_unit_test(segments_of_a_stranger_are_datagrams),
		cmocka_unit_test(an_address_that_is_none_costs_others_no_segments),
		cmocka_unit_test(a_flood_disturbs_no_other_endpoint),
		cmocka_unit_test(a_descriptor_that_is_closed_ends_one_endpoint),
		cmocka_unit_test(groups_joined_and_left_often_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
