/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tcp provider answers to fi_getinfo, with the interfaces that the machine happens to
 * have, and the settings that it takes from the environment.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "iface.h"
#include "info.h"
#include "mock_core.h"
#include "tcp.h"

#define VERSION FI_VERSION(1, 17)

static struct fi_info *ask(const char *node, const char *service, uint64_t flags,
			   const struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int err = tcp_getinfo(VERSION, node, service, flags, hints, &info);

	if (err)
		fail_msg("%d: %s", err, mock_log);
	assert_non_null(info);
	return info;
}

static void assert_refused(const char *node, const char *service, uint64_t flags,
			   const struct fi_info *hints, const char *why)
{
	struct fi_info *info = NULL;

	assert_int_equal(tcp_getinfo(VERSION, node, service, flags, hints, &info), -FI_ENODATA);
	assert_null(info);
	if (!strstr(mock_log, why))
		fail_msg("'%s' is not in '%s'", why, mock_log);
}

static const struct sockaddr_in *in(const void *addr)
{
	assert_non_null(addr);
	return addr;
}

static struct fi_info *hints_with(uint32_t format)
{
	struct fi_info *hints = info_alloc();

	assert_non_null(hints);
	hints->addr_format = format;
	return hints;
}

/* An address for hints, which free it. */
static void set_addr(void **slot, size_t *len, const char *ip, uint16_t port)
{
	struct sockaddr_in *addr = calloc(1, sizeof(*addr));

	assert_non_null(addr);
	addr->sin_family = AF_INET;
	addr->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, ip, &addr->sin_addr), 1);
	*slot = addr;
	*len = sizeof(*addr);
}

static void every_address_is_offered_and_loopback_last(void **state)
{
	struct fi_info *info = ask(NULL, NULL, 0, NULL), *i;
	bool loopback = false;
	union ip_sockaddr src;

	for (i = info; i && i->ep_attr->type != FI_EP_MSG; i = i->next) {
		assert_int_equal(ip_sockaddr_copy(&src, i->src_addr, i->src_addrlen), 0);
		assert_int_equal(i->addr_format, src.sa.sa_family == AF_INET ? FI_SOCKADDR_IN
									     : FI_SOCKADDR_IN6);
		assert_int_equal(i->src_addrlen, ip_sockaddr_len(&src));
		assert_int_equal(ip_sockaddr_port(&src), 0);
		assert_null(i->dest_addr);
		assert_int_equal(i->ep_attr->type, FI_EP_RDM);
		assert_int_equal(i->domain_attr->mr_mode, 0);
		assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_AUTO);
		assert_true((i->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG)) ==
			    (FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG));
		/* tcp_fabric() distinguishes the families by this */
		assert_int_equal(!strchr(i->fabric_attr->name, ':'),
				 src.sa.sa_family == AF_INET);
		assert_true(!loopback || ip_sockaddr_loopback(&src));
		loopback = ip_sockaddr_loopback(&src);
	}
	assert_true(loopback);
	info_free(info);
}

static void formats_narrow_the_answers(void **state)
{
	struct fi_info *hints = hints_with(FI_SOCKADDR_IN), *info, *i;
	static const uint32_t general[] = { FI_SOCKADDR, FI_SOCKADDR_IP, FI_FORMAT_UNSPEC };
	size_t k;

	info = ask(NULL, NULL, 0, hints);
	for (i = info; i; i = i->next)
		assert_int_equal(i->addr_format, FI_SOCKADDR_IN);
	info_free(info);
	for (k = 0; k < sizeof(general) / sizeof(general[0]); k++) {
		hints->addr_format = general[k];
		info_free(ask(NULL, NULL, 0, hints));
	}
	hints->addr_format = FI_ADDR_STR;
	assert_refused(NULL, NULL, 0, hints, "FI_ADDR_STR");
	hints->addr_format = FI_SOCKADDR_IN6;
	assert_refused("127.0.0.1", "7471", 0, hints, "no address of the requested format");
	info_free(hints);
}

static void a_destination_brings_the_source_that_leads_there(void **state)
{
	struct fi_info *hints = hints_with(FI_FORMAT_UNSPEC), *info;

	hints->ep_attr->type = FI_EP_RDM;
	info = ask("127.0.0.1", "7471", 0, hints);
	info_free(hints);

	assert_int_equal(ntohs(in(info->dest_addr)->sin_port), 7471);
	assert_int_equal(ntohl(in(info->dest_addr)->sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(ntohl(in(info->src_addr)->sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(ntohs(in(info->src_addr)->sin_port), 0);
	assert_string_equal(info->domain_attr->name, "lo");
	assert_string_equal(info->fabric_attr->name, "127.0.0.0/8");
	assert_null(info->next);
	info_free(info);

	info = ask("127.0.0.1", NULL, FI_NUMERICHOST, NULL);
	assert_int_equal(ntohs(in(info->dest_addr)->sin_port), 0);
	info_free(info);
	/* no node: this host */
	info = ask(NULL, "7471", 0, NULL);
	assert_int_equal(ntohl(in(info->dest_addr)->sin_addr.s_addr), INADDR_LOOPBACK);
	info_free(info);
}

static void a_source_is_where_to_listen(void **state)
{
	struct fi_info *hints = hints_with(FI_FORMAT_UNSPEC), *info, *i;
	union ip_sockaddr src;
	int wildcards = 0, others = 0;

	hints->ep_attr->type = FI_EP_RDM;
	info = ask("127.0.0.1", "7471", FI_SOURCE, hints);

	assert_int_equal(ntohs(in(info->src_addr)->sin_port), 7471);
	assert_null(info->dest_addr);
	assert_null(info->next);
	info_free(info);

	/* no node: anywhere, then each interface, with that port */
	info = ask(NULL, "7471", FI_SOURCE, hints);
	info_free(hints);
	for (i = info; i; i = i->next) {
		assert_int_equal(ip_sockaddr_copy(&src, i->src_addr, i->src_addrlen), 0);
		assert_int_equal(ip_sockaddr_port(&src), 7471);
		wildcards += ip_sockaddr_any(&src);
		others += !ip_sockaddr_any(&src);
	}
	assert_int_equal(in(info->src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
	assert_true(wildcards >= 1 && wildcards <= 2 && others >= wildcards);
	info_free(info);
	info = ask("0.0.0.0", "7471", FI_SOURCE, NULL);
	assert_int_equal(in(info->src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
	assert_non_null(info->next);
	info_free(info);
	assert_refused("203.0.113.77", "1", FI_SOURCE, NULL,
		       "no interface of this host has the address 203.0.113.77:1");
}

/* A program that names an interface listens there alone; without a port clients don't find it. */
static void no_host_is_anywhere_unless_an_interface_is_named(void **state)
{
	struct fi_info *hints = info_alloc(), *info, *i;

	hints->domain_attr->name = strdup("lo");
	info = ask(NULL, "7471", FI_SOURCE, hints);
	for (i = info; i; i = i->next)
		if (i->addr_format == FI_SOCKADDR_IN)
			assert_int_not_equal(in(i->src_addr)->sin_addr.s_addr,
					     htonl(INADDR_ANY));
	info_free(info);
	info_free(hints);

	tcp_settings.iface = "lo";
	info = ask(NULL, "7471", FI_SOURCE, NULL);
	assert_int_not_equal(in(info->src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
	info_free(info);
	tcp_settings.iface = NULL;

	info = ask("0.0.0.0", NULL, FI_SOURCE, NULL);
	assert_int_not_equal(in(info->src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
	info_free(info);
}

static void hints_may_bring_both_addresses(void **state)
{
	struct fi_info *hints = hints_with(FI_SOCKADDR_IN), *info;

	set_addr(&hints->src_addr, &hints->src_addrlen, "127.0.0.2", 5000);
	set_addr(&hints->dest_addr, &hints->dest_addrlen, "127.0.0.3", 6000);
	info = ask(NULL, NULL, 0, hints);
	assert_int_equal(ntohl(in(info->src_addr)->sin_addr.s_addr), 0x7f000002);
	assert_int_equal(ntohs(in(info->src_addr)->sin_port), 5000);
	assert_int_equal(ntohl(in(info->dest_addr)->sin_addr.s_addr), 0x7f000003);
	info_free(info);

	/* node and service outrank the destination, with FI_SOURCE the source */
	info = ask("127.0.0.9", "9", 0, hints);
	assert_int_equal(ntohl(in(info->dest_addr)->sin_addr.s_addr), 0x7f000009);
	assert_int_equal(ntohs(in(info->src_addr)->sin_port), 5000);
	info_free(info);
	info = ask("127.0.0.9", "9", FI_SOURCE, hints);
	assert_int_equal(ntohl(in(info->src_addr)->sin_addr.s_addr), 0x7f000009);
	assert_int_equal(ntohs(in(info->dest_addr)->sin_port), 6000);
	info_free(info);

	/* a port that is not known yet, as libfabric answers; it can't be inserted */
	info = ask("127.0.0.9", "0", 0, hints);
	assert_int_equal(ntohl(in(info->dest_addr)->sin_addr.s_addr), 0x7f000009);
	assert_int_equal(in(info->dest_addr)->sin_port, 0);
	info_free(info);
	info_free(ask(NULL, "0", 0, NULL));

	/* a wildcard source: from where the routing table says, at that port */
	in(hints->src_addr);
	((struct sockaddr_in *)hints->src_addr)->sin_addr.s_addr = 0;
	info = ask(NULL, NULL, 0, hints);
	assert_int_equal(ntohl(in(info->src_addr)->sin_addr.s_addr) >> 24, 127);
	assert_int_equal(ntohs(in(info->src_addr)->sin_port), 5000);
	info_free(info);

	hints->src_addrlen = 3;
	assert_refused(NULL, NULL, 0, hints, "source address of 3 bytes");
	hints->src_addrlen = sizeof(struct sockaddr_in);
	((struct sockaddr_in *)hints->dest_addr)->sin_family = 200;
	assert_refused(NULL, NULL, 0, hints, "destination address of 16 bytes");
	info_free(hints);
}

static void refusals_have_reasons(void **state)
{
	struct fi_info *hints = hints_with(FI_FORMAT_UNSPEC);

	assert_refused("256.1.2.3", NULL, FI_NUMERICHOST, NULL, "256.1.2.3 can't be resolved");
	assert_refused("127.0.0.1", "no-such-service", 0, NULL,
		       "no-such-service can't be resolved");
	hints->caps = FI_MULTICAST;
	assert_refused(NULL, NULL, 0, hints, "FI_MULTICAST");
	hints->caps = 0;
	hints->domain_attr->name = strdup("no-such-if0");
	assert_refused(NULL, NULL, 0, hints, "no-such-if0");
	info_free(hints);
	tcp_settings.iface = "no-such-if0";
	assert_refused(NULL, NULL, 0, NULL, "FI_TCP_IFACE is no-such-if0");
	tcp_settings.iface = "lo";
	info_free(ask(NULL, NULL, 0, NULL));
	tcp_settings.iface = NULL;
}

static void connected_endpoints_are_offered_to_who_asks(void **state)
{
	struct fi_info *hints = hints_with(FI_SOCKADDR_IN), *info;

	info = ask(NULL, NULL, 0, NULL);
	assert_int_equal(info->ep_attr->type, FI_EP_RDM);
	info_free(info);
	hints->ep_attr->type = FI_EP_MSG;
	info = ask("127.0.0.1", "7", 0, hints);
	assert_int_equal(info->ep_attr->type, FI_EP_MSG);
	assert_int_equal(info->ep_attr->protocol, FI_PROTO_SOCK_TCP);
	assert_int_equal(ntohs(in(info->dest_addr)->sin_port), 7);
	assert_true(info->caps & FI_MSG && info->caps & FI_RMA && info->caps & FI_ATOMIC);
	assert_false(info->caps & (FI_DIRECTED_RECV | FI_SOURCE));
	info_free(info);
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->caps = FI_MSG | FI_TAGGED;
	info_free(ask(NULL, NULL, 0, hints));
	hints->fabric_attr->prov_name = strdup("sockets");
	info_free(ask(NULL, NULL, 0, hints));
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	assert_refused(NULL, NULL, 0, hints,
		       "no FI_EP_MSG endpoints under the name tcp;ofi_rxm");
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	hints->caps = FI_MSG | FI_DIRECTED_RECV;
	assert_refused(NULL, NULL, 0, hints, "FI_DIRECTED_RECV");
	info_free(hints);
}

/* Returns how many answers are RDM and, behind all of these, how many are MSG endpoints. */
static void count(const struct fi_info *info, int *rdm, int *msg)
{
	*rdm = *msg = 0;
	for (; info; info = info->next) {
		if (info->ep_attr->type == FI_EP_RDM)
			++*rdm;
		else
			++*msg;
		assert_true(info->ep_attr->type == FI_EP_MSG || !*msg);
	}
}

static void connected_endpoints_are_behind_the_others_where_the_type_is_open(void **state)
{
	struct fi_info *hints = hints_with(FI_SOCKADDR_IN), *info;
	int rdm, msg;

	info = ask(NULL, NULL, 0, NULL);
	count(info, &rdm, &msg);
	assert_true(rdm && rdm == msg);
	info_free(info);
	info = ask("127.0.0.1", "7", 0, hints);
	count(info, &rdm, &msg);
	assert_int_equal(rdm, 1);
	assert_int_equal(msg, 1);
	assert_int_equal(info->next->ep_attr->protocol, FI_PROTO_SOCK_TCP);
	info_free(info);
	/* what only one of them has */
	hints->ep_attr->protocol = FI_PROTO_SOCK_TCP;
	info = ask("127.0.0.1", "7", 0, hints);
	count(info, &rdm, &msg);
	assert_true(!rdm && msg == 1);
	info_free(info);
	hints->ep_attr->protocol = FI_PROTO_UNSPEC;
	hints->caps = FI_MSG | FI_DIRECTED_RECV;
	mock_log_cnt = 0;
	info = ask("127.0.0.1", "7", 0, hints);
	count(info, &rdm, &msg);
	assert_true(rdm == 1 && !msg);
	assert_int_equal(mock_log_cnt, 0);
	info_free(info);
	hints->caps = 0;
	hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
	info = ask("127.0.0.1", "7", 0, hints);
	count(info, &rdm, &msg);
	assert_true(rdm == 1 && !msg);
	assert_int_equal(mock_log_cnt, 0);
	info_free(info);
	info_free(hints);
}

static void settings_out_of_bounds_are_left_alone(void **state)
{
	const struct tcp_settings defaults = { .dead_ms = 10000 };

	mock_params[0][0] = "port_low_range";
	mock_params[0][1] = "5000";
	mock_params[1][0] = "dead_ms";
	mock_params[1][1] = "7";
	mock_params[2][0] = "iface";
	mock_params[2][1] = "lo";
	mock_log_cnt = 0;
	assert_ptr_equal(weft_tcp_ini(), &tcp_provider);
	assert_int_equal(tcp_settings.port_low, 5000);
	assert_int_equal(tcp_settings.port_high, 65535);
	assert_int_equal(tcp_settings.dead_ms, 10000);
	assert_string_equal(tcp_settings.iface, "lo");
	assert_int_equal(mock_log_cnt, 1);
	assert_non_null(strstr(mock_log, "FI_TCP_DEAD_MS=7 is not between 1000 and 3600000"));

	tcp_settings = defaults;
	mock_params[1][0] = "port_high_range";
	mock_params[1][1] = "4000";
	mock_params[2][0] = NULL;
	assert_ptr_equal(weft_tcp_ini(), &tcp_provider);
	assert_int_equal(tcp_settings.port_low, 0);
	assert_int_equal(mock_log_cnt, 2);
	tcp_settings = defaults;
	mock_params[0][0] = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_address_is_offered_and_loopback_last),
		cmocka_unit_test(formats_narrow_the_answers),
		cmocka_unit_test(a_destination_brings_the_source_that_leads_there),
		cmocka_unit_test(a_source_is_where_to_listen),
		cmocka_unit_test(no_host_is_anywhere_unless_an_interface_is_named),
		cmocka_unit_test(hints_may_bring_both_addresses),
		cmocka_unit_test(refusals_have_reasons),
		cmocka_unit_test(connected_endpoints_are_offered_to_who_asks),
		cmocka_unit_test(
			connected_endpoints_are_behind_the_others_where_the_type_is_open),
		cmocka_unit_test(settings_out_of_bounds_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
