/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of datagram endpoints: vectors, names, regions, what is left when they are closed, and
 * forks.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "party.h"

#include "mock_descriptors.h"

static struct party a, b;

static void many_endpoints_leave_no_descriptor(void **state)
{
	enum { CNT = 1000, OTHERS = 100 };
	static struct party many[CNT];
	struct rlimit limit;
	char in, out = 'x';
	int before, cnt;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* each takes two, beside those that are open already */
	assert_true(limit.rlim_cur > OTHERS + 2);
	cnt = limit.rlim_cur < 2 * CNT + OTHERS ? (int)(limit.rlim_cur - OTHERS) / 2 : CNT;
	party_open(&a, &(struct party_choice){ 0 });
	for (int round = 0; round < 2; round++) {
		before = mock_descriptors();
		for (int i = 0; i < cnt; i++)
			party_open(&many[i], &(struct party_choice){ .domain_of = &a });
		/*
		 * each wait object is one more; these queues have none, and so it is the socket and
		 * the event queue's bell
		 */
		assert_true(mock_descriptors() - before <= 2 * cnt);
		assert_int_equal(fi_recv(many[cnt - 1].ep, &in, 1, NULL, 0, NULL), 0);
		assert_int_equal(fi_inject(a.ep, &out, 1, party_meet(&a, &many[cnt - 1])), 0);
		assert_int_equal(party_completion(&many[cnt - 1], NULL).len, 1);
		for (int i = 0; i < cnt; i++)
			party_close(&many[i]);
		assert_int_equal(mock_descriptors(), before);
	}
	party_close(&a);
}

static void a_vector_knows_addresses(void **state)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = 1 };
	struct sockaddr_in got, both[2];
	fi_addr_t addr[6], again;
	size_t len = sizeof(got);
	char text[64];

	party_open(&a, &(struct party_choice){ 0 });
	assert_int_equal(fi_av_insertsvc(a.av, "127.0.0.1", "7001", addr, 0, NULL), 1);
	assert_int_equal(fi_av_lookup(a.av, addr[0], &got, &len), 0);
	assert_int_equal(len, sizeof(got));
	assert_int_equal(ntohs(got.sin_port), 7001);
	len = sizeof(text);
	assert_string_equal(fi_av_straddr(a.av, &got, text, &len),
			    "fi_sockaddr_in://127.0.0.1:7001");
	assert_int_equal(len, strlen(text) + 1);
	assert_int_equal(fi_av_insert(a.av, &got, 1, &again, 0, NULL), 1);
	assert_true(again == addr[0]);

	assert_int_equal(fi_av_insertsym(a.av, "127.0.0.1", 2, "7100", 3, addr, 0, NULL), 6);
	len = sizeof(got);
	assert_int_equal(fi_av_lookup(a.av, addr[4], &got, &len), 0);
	assert_int_equal(ntohl(got.sin_addr.s_addr), INADDR_LOOPBACK + 1);
	assert_int_equal(ntohs(got.sin_port), 7101);

	assert_int_equal(fi_av_remove(a.av, addr, 6, 0), 0);
	assert_int_equal(fi_av_remove(a.av, addr, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(a.av, addr[4], &got, &len), -FI_EINVAL);

	/* Of another family, without a port, without a host: none of these. */
	assert_int_equal(fi_av_insert(a.av, &six, 1, addr, 0, NULL), 0);
	assert_true(addr[0] == FI_ADDR_NOTAVAIL);
	both[0] = both[1] = got;
	both[0].sin_port = 0;
	both[1].sin_addr.s_addr = 0;
	assert_int_equal(fi_av_insert(a.av, both, 2, addr, 0, NULL), 0);
	party_close(&a);
}

static void a_range_of_long_addresses_carries(void **state)
{
	const struct party_choice choice = { .six = true };
	struct fi_info *info = party_fi_info(&choice);
	struct sockaddr_in6 got;
	struct in6_addr next;
	size_t len = sizeof(got);
	fi_addr_t addr[2];

	if (!info)
		skip(); /* no IPv6 */
	fi_freeinfo(info);
	party_open(&a, &choice);
	assert_int_equal(
		fi_av_insertsym(a.av, "2001:db8::1:ffff:ffff", 2, "70", 1, addr, 0, NULL), 2);
	assert_int_equal(fi_av_lookup(a.av, addr[1], &got, &len), 0);
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::2:0:0", &next), 1);
	assert_memory_equal(&got.sin6_addr, &next, sizeof(next));
	party_close(&a);
}

/* Returns the name of a service that has a port of UDP and none of TCP, or NULL. */
static const char *service_of_datagrams(void)
{
	static const char *const names[] = { "tftp", "bootps", "ntp", "snmp-trap", "syslog" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getservbyname(names[i], "udp") && !getservbyname(names[i], "tcp"))
			return names[i];
	return NULL;
}

static void services_of_datagrams_have_names(void **state)
{
	const char *name = service_of_datagrams();
	struct fi_info *info;
	struct sockaddr_in got;
	size_t len = sizeof(got);
	fi_addr_t addr;

	if (!name)
		skip(); /* this host's list of services has none */
	party_open(&a, &(struct party_choice){ 0 });
	assert_int_equal(fi_av_insertsvc(a.av, "127.0.0.1", name, &addr, 0, NULL), 1);
	assert_int_equal(fi_av_lookup(a.av, addr, &got, &len), 0);
	assert_int_equal(got.sin_port, getservbyname(name, "udp")->s_port);
	assert_int_equal(fi_getinfo(PARTY_VERSION, "127.0.0.1", name, 0, a.info, &info), 0);
	fi_freeinfo(info);
	party_close(&a);
}

static void insertions_are_reported(void **state)
{
	struct fi_av_attr attr = { .type = FI_AV_MAP, .flags = FI_EVENT };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	struct sockaddr_in two[2];
	struct fid_av *av;
	fi_addr_t addr[2];
	uint32_t event;

	party_open(&a, &(struct party_choice){ 0 });
	/* Both what makes a shared vector and what looks for one, as over libfabric's udp */
	attr.name = "shared";
	assert_int_equal(fi_av_open(a.domain, &attr, &av, NULL), -FI_ENOSYS);
	attr.flags = FI_READ;
	assert_int_equal(fi_av_open(a.domain, &attr, &av, NULL), -FI_ENOSYS);
	attr.name = NULL;
	attr.flags = FI_EVENT;
	assert_int_equal(fi_av_open(a.domain, &attr, &av, NULL), 0);
	memcpy(&two[0], &a.name, sizeof(two[0]));
	two[1] = two[0];
	two[1].sin_port = 0;
	assert_int_equal(fi_av_insert(av, two, 2, addr, 0, &two), -FI_ENOEQ);
	assert_int_equal(av->fid.ops->bind(&av->fid, &a.eq->fid, 0), 0);
	assert_int_equal(fi_av_insert(av, two, 2, addr, 0, &two), 0);
	assert_int_equal(fi_eq_read(a.eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	assert_true(fi_eq_readerr(a.eq, &err, 0) > 0);
	assert_int_equal(err.data, 1);
	assert_int_equal(err.err, FI_EINVAL);
	assert_int_equal(fi_eq_read(a.eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_int_equal(entry.data, 1);
	assert_int_equal(fi_close(&av->fid), 0);
	party_close(&a);
}

static void a_name_is_known_before_the_endpoint_is_enabled(void **state)
{
	struct sockaddr_in before = { 0 }, after = { 0 }, chosen;
	size_t len = sizeof(before);
	uint16_t port;

	party_open(&a, &(struct party_choice){ .idle = true });
	assert_int_equal(fi_getname(&a.ep->fid, &before, &len), 0);
	assert_int_not_equal(before.sin_port, 0);
	assert_int_equal(fi_setname(&a.ep->fid, &before, len), -FI_EOPBADSTATE);
	assert_int_equal(fi_enable(a.ep), 0);
	assert_int_equal(fi_getname(&a.ep->fid, &after, &len), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(fi_enable(a.ep), 0);
	len = 0;
	assert_int_equal(fi_getname(&a.ep->fid, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(before));
	len = 3;
	assert_int_equal(fi_getname(&a.ep->fid, &after, &len), -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(before));

	/* Another endpoint can't have it as long as it is open, and can then. */
	party_open(&b, &(struct party_choice){ .idle = true });
	chosen = before;
	port = before.sin_port;
	assert_int_equal(fi_setname(&b.ep->fid, &chosen, sizeof(chosen)), 0);
	assert_int_equal(fi_enable(b.ep), -FI_EADDRINUSE);
	party_close(&a);
	assert_int_equal(fi_enable(b.ep), 0);
	len = sizeof(after);
	assert_int_equal(fi_getname(&b.ep->fid, &after, &len), 0);
	assert_int_equal(after.sin_port, port);
	party_close(&b);
}

/* The domain's interface is lo. */
static void an_address_is_chosen_at_the_domains_interface(void **state)
{
	struct sockaddr_in name = { 0 };
	size_t len = sizeof(name);
	struct fid_ep *ep;

	party_open(&a, &(struct party_choice){ .idle = true });
	free(a.info->src_addr);
	a.info->src_addr = NULL;
	a.info->src_addrlen = 0;
	assert_int_equal(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	assert_int_equal(fi_getname(&ep->fid, &name, &len), 0);
	assert_int_equal(ntohl(name.sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(fi_close(&ep->fid), 0);
	party_close(&a);
}

static void what_is_missing_is_told(void **state)
{
	struct fid_ep *ep;
	char byte = 0;

	party_open(&a, &(struct party_choice){ .idle = true });
	assert_int_equal(fi_send(a.ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_recv(a.ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_tsend(a.ep, &byte, 1, NULL, 0, 1, NULL), -FI_ENOSYS);
	assert_int_equal(fi_write(a.ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_endpoint(a.domain, a.info, &ep, NULL), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(ep, &a.av->fid, 0), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_close(&a.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&a.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&a.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&ep->fid), 0);
	party_close(&a);
}

static void memory_is_registered_for_who_does(void **state)
{
	struct fid_mr *mr;
	char buf[64];

	party_open(&a, &(struct party_choice){ 0 });
	assert_int_equal(
		fi_mr_reg(a.domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, 77, 0, &mr, &a), 0);
	assert_int_equal(fi_mr_key(mr), 77);
	assert_int_equal(fi_close(&mr->fid), 0);
	party_close(&a);
}

/* fi_poll tells of a change of a counter once, whether somebody reads the counter or not. */
static void a_poll_set_tells_each_change_once(void **state)
{
	void *there[2];
	struct fid_poll *set;

	party_open(&a, &(struct party_choice){ .counts = true });
	a.tx_cntr->fid.context = &b;
	assert_int_equal(a.domain->ops->poll_open(a.domain, NULL, &set), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(set->ops->poll_add(set, &a.tx_cntr->fid, 0), 0);
	assert_int_equal(set->ops->poll(set, there, 2), 0);
	assert_int_equal(fi_inject(a.ep, "x", 1, party_meet(&a, &a)), 0);
	assert_int_equal(fi_cntr_read(a.tx_cntr), 1);
	assert_int_equal(set->ops->poll(set, there, 0), 0);
	assert_int_equal(set->ops->poll(set, there, 2), 1);
	assert_ptr_equal(there[0], &b);
	assert_int_equal(set->ops->poll(set, there, 2), 0);
	/* What the program does itself is no news. */
	assert_int_equal(fi_cntr_add(a.tx_cntr, 1), 0);
	assert_int_equal(fi_cntr_set(a.tx_cntr, 7), 0);
	assert_int_equal(set->ops->poll(set, there, 2), 0);
	assert_int_equal(fi_cntr_adderr(a.tx_cntr, 1), 0);
	assert_int_equal(set->ops->poll(set, there, 2), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(set->ops->poll_del(set, &a.tx_cntr->fid, 0), 0);
	assert_int_equal(fi_cntr_adderr(a.tx_cntr, 1), 0);
	assert_int_equal(set->ops->poll(set, there, 2), 0);
	assert_int_equal(fi_close(&set->fid), 0);
	party_close(&a);
}

/* Queues and counters are closed before the sets that they are in, or after. */
static void poll_sets_forget_what_is_closed(void **state)
{
	struct fi_cq_attr attr = { 0 };
	struct fid_poll *sets[2];
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	void *there[2];

	party_open(&a, &(struct party_choice){ 0 });
	assert_int_equal(fi_cq_open(a.domain, &attr, &cq, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &cntr, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(a.domain->ops->poll_open(a.domain, NULL, &sets[i]), 0);
		assert_int_equal(sets[i]->ops->poll_add(sets[i], &cq->fid, 0), 0);
		assert_int_equal(sets[i]->ops->poll_add(sets[i], &cntr->fid, 0), 0);
	}
	/* An object is in a set once. */
	assert_int_equal(sets[1]->ops->poll_add(sets[1], &cntr->fid, 0), 0);
	assert_int_equal(fi_cntr_adderr(cntr, 1), 0);
	assert_int_equal(sets[1]->ops->poll(sets[1], there, 2), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sets[1]->ops->poll_del(sets[1], &cntr->fid, 0), 0);
	assert_int_equal(sets[1]->ops->poll(sets[1], there, 2), 0);
	assert_int_equal(fi_cntr_readerr(cntr), 1);
	assert_int_equal(sets[1]->ops->poll_add(sets[1], &cntr->fid, 0), 0);
	assert_int_equal(fi_close(&sets[0]->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(sets[1]->ops->poll(sets[1], there, 2), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(sets[1]->ops->poll(sets[1], there, 2), 0);
	assert_int_equal(fi_close(&sets[1]->fid), 0);
	party_close(&a);
}

static bool drops_are_known(void)
{
	uint32_t info[9];
	socklen_t len = sizeof(info);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int ret = getsockopt(fd, SOL_SOCKET, 55 /* SO_MEMINFO */, info, &len);

	close(fd);
	return !ret && len == sizeof(info);
}

/*
 * Nobody receives what is sent: the kernel keeps some, and the endpoint tells of the rest when it
 * is closed.
 */
static void what_the_kernel_drops_is_told(void **state)
{
	char out[1400] = { 0 }, said[1000] = "";
	fi_addr_t addr;
	FILE *file;
	int err;

	if (!drops_are_known())
		skip(); /* qemu-user, which has no SO_MEMINFO */
	file = tmpfile();
	err = dup(STDERR_FILENO);
	assert_non_null(file);
	assert_true(err >= 0);
	party_open(&a, &(struct party_choice){ 0 });
	party_open(&b, &(struct party_choice){ 0 });
	addr = party_meet(&a, &b);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(fi_inject(a.ep, out, sizeof(out), addr), 0);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	party_close(&b);
	assert_true(dup2(err, STDERR_FILENO) >= 0);
	close(err);
	rewind(file);
	assert_true(fread(said, 1, sizeof(said) - 1, file) > 0);
	assert_non_null(strstr(said, "datagrams came faster than they were received"));
	fclose(file);
	party_close(&a);
}

/* What a program prints that was started without standard streams goes to no socket. */
static void no_descriptor_is_a_standard_stream(void **state)
{
	int status, open = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			close(fd);
		party_open(&a, &(struct party_choice){ .wait = FI_WAIT_FD });
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			open += fcntl(fd, F_GETFD) >= 0;
		_exit(open);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The child frees its copy of the memory of sends that the parent holds back; the parent sends them. */
static void a_forked_child_leaves_no_memory(void **state)
{
	const struct iovec iov = { "h", 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	size_t before, held;
	char in = 0;
	int status;
	pid_t pid;

	party_open(&a, &(struct party_choice){ 0 });
	msg.addr = party_meet(&a, &a);
	assert_int_equal(fi_recv(a.ep, &in, 1, NULL, 0, NULL), 0);
	before = party_allocated();
	assert_int_equal(fi_sendmsg(a.ep, &msg, FI_MORE | FI_INJECT), 0);
	held = party_allocated() - before;
	pid = fork();
	if (!pid) {
		before = party_allocated();
		_exit(fi_close(&a.ep->fid) || (held && party_allocated() + held > before));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++)
		party_completion(&a, NULL);
	assert_int_equal(in, 'h');
	party_close(&a);
}

/* The child of a fork closes what it has; the parent's endpoints work on. */
static void a_forked_child_closes_and_does_nothing_else(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fid_poll *set;
	struct fid *fids[1];
	char in = 0, out = 'f';
	size_t least, len = sizeof(least);
	uint32_t event;
	fi_addr_t addr;
	int status;
	pid_t pid;

	party_open(&a, &(struct party_choice){ .wait = FI_WAIT_FD });
	party_open(&b, &(struct party_choice){ .wait = FI_WAIT_FD });
	addr = party_meet(&a, &b);
	fids[0] = &b.eq->fid;
	assert_int_equal(b.domain->ops->poll_open(b.domain, NULL, &set), 0);
	assert_int_equal(set->ops->poll_add(set, &b.cq->fid, 0), 0);
	assert_int_equal(fi_eq_write(b.eq, FI_NOTIFY, &out, 1, 0), 1);
	pid = fork();
	if (!pid) {
		if (fi_send(a.ep, &out, 1, NULL, addr, NULL) != -FI_EOPBADSTATE ||
		    fi_cq_read(b.cq, &entry, 1) != -FI_EOPBADSTATE ||
		    fi_eq_read(b.eq, &event, &entry, sizeof(entry), 0) != -FI_EOPBADSTATE ||
		    fi_eq_write(b.eq, FI_NOTIFY, &entry, 1, 0) != -FI_EOPBADSTATE ||
		    fi_trywait(b.fabric, fids, 1) != -FI_EOPBADSTATE ||
		    fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			      &len) != -FI_EOPBADSTATE ||
		    set->ops->poll_del(set, &b.cq->fid, 0) != -FI_EOPBADSTATE ||
		    fi_close(&set->fid) || fi_close(&b.ep->fid) || fi_close(&b.cq->fid) ||
		    fi_close(&b.av->fid) || fi_close(&b.eq->fid) || fi_close(&b.domain->fid))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, 0, NULL), 0);
	assert_int_equal(fi_inject(a.ep, &out, 1, addr), 0);
	assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, PARTY_WAIT_MS), 1);
	assert_int_equal(in, 'f');
	assert_int_equal(fi_eq_sread(b.eq, &event, &in, 1, PARTY_WAIT_MS, 0), 1);
	assert_int_equal(fi_close(&set->fid), 0);
	party_close(&a);
	party_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_endpoints_leave_no_descriptor),
		cmocka_unit_test(a_vector_knows_addresses),
		cmocka_unit_test(a_range_of_long_addresses_carries),
		cmocka_unit_test(services_of_datagrams_have_names),
		cmocka_unit_test(insertions_are_reported),
		cmocka_unit_test(a_name_is_known_before_the_endpoint_is_enabled),
		cmocka_unit_test(an_address_is_chosen_at_the_domains_interface),
		cmocka_unit_test(what_is_missing_is_told),
		cmocka_unit_test(memory_is_registered_for_who_does),
		cmocka_unit_test(a_poll_set_tells_each_change_once),
		cmocka_unit_test(poll_sets_forget_what_is_closed),
		cmocka_unit_test(what_the_kernel_drops_is_told),
		cmocka_unit_test(no_descriptor_is_a_standard_stream),
		cmocka_unit_test(a_forked_child_closes_and_does_nothing_else),
		cmocka_unit_test(a_forked_child_leaves_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
