/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which names fi_av_insertsym asks for: the resolver is this file's, which knows the hosts that end
 * with a number. One thread.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include "party.h"

#define GAP 5 /* no host has this number */

static struct party a;
static char asked[256];

struct found {
	struct addrinfo info;
	struct sockaddr_in addr;
};

/* "127.0.0.1", or a name that ends with a number: 127.1.0 and that number. */
static bool known(const char *node, struct in_addr *ip)
{
	const char *number = node + strcspn(node, "0123456789");
	int n = atoi(number);

	if (inet_pton(AF_INET, node, ip) == 1)
		return true;
	ip->s_addr = htonl(0x7f010000u + (uint32_t)n);
	return n != GAP;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **out)
{
	struct found *found = calloc(1, sizeof(*found));
	size_t len = strlen(asked);

	if (!found)
		return EAI_MEMORY;
	snprintf(asked + len, sizeof(asked) - len, "%s ", node);
	found->addr.sin_family = AF_INET;
	found->addr.sin_port = htons((uint16_t)(service ? atoi(service) : 0));
	if (!known(node, &found->addr.sin_addr)) {
		free(found);
		return EAI_NONAME;
	}
	found->info.ai_family = AF_INET;
	found->info.ai_addr = (struct sockaddr *)&found->addr;
	found->info.ai_addrlen = sizeof(found->addr);
	*out = &found->info;
	return 0;
}

void freeaddrinfo(struct addrinfo *info)
{
	free(info);
}

static void stands_at(fi_addr_t index, uint32_t ip, int port)
{
	struct sockaddr_in got;
	size_t len = sizeof(got);

	assert_int_equal(fi_av_lookup(a.av, index, &got, &len), 0);
	assert_int_equal(ntohl(got.sin_addr.s_addr), ip);
	assert_int_equal(ntohs(got.sin_port), port);
}

static int range(const char *node, size_t cnt, size_t ports, fi_addr_t *out, int *errors)
{
	asked[0] = '\0';
	return fi_av_insertsym(a.av, node, cnt, "70", ports, out, errors ? FI_SYNC_ERR : 0,
			       errors);
}

static void hosts_are_counted_by_the_number_they_end_with(void **state)
{
	fi_addr_t out[4];
	int errors[3];

	party_open(&a, &(struct party_choice){ 0 });
	assert_int_equal(range("host9", 2, 2, out, NULL), 4);
	assert_string_equal(asked, "host9 host10 ");
	for (int i = 0; i < 4; i++)
		stands_at(out[i], 0x7f010009u + (uint32_t)i / 2, 70 + i % 2);
	assert_int_equal(range("host008", 3, 1, out, NULL), 3);
	assert_string_equal(asked, "host008 host009 host010 ");
	/* A number is asked for once, and one host needs none. */
	assert_int_equal(range("10.9.8.255", 2, 1, out, NULL), 2);
	assert_string_equal(asked, "10.9.8.255 ");
	stands_at(out[1], 0x0a090900u, 70);
	assert_int_equal(range("head", 1, 1, out, NULL), 1);
	/* One that is not found leaves the others. */
	assert_int_equal(range("host4", 3, 1, out, errors), 2);
	assert_true(!errors[0] && errors[1] && !errors[2]);
	assert_int_equal(out[1], FI_ADDR_NOTAVAIL);
	stands_at(out[2], 0x7f010006u, 70);
	assert_int_equal(range("head", 2, 1, out, NULL), -FI_EINVAL);
	assert_int_equal(range("host1.example.org", 2, 1, out, NULL), -FI_EINVAL);
	assert_string_equal(asked, "");
	party_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_counted_by_the_number_they_end_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
