/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: addresses. Those that programs pass (to fi_av_insert and related calls, to
 * fi_getinfo and fi_setname, with names and services), and those in a peer's hello, for each
 * provider and each form. Then the endpoint sends to the addresses that were inserted. Addresses
 * begin as those of an existing endpoint and are changed byte by byte, or are random bytes.
 *
 * Checked: nothing crashes, hangs or writes beyond its buffer; an address that was inserted can be
 * looked up, printed and inserted again, and is the same; answers of fi_getinfo can be opened;
 * messages of an honest peer arrive or fail; everything can be closed.
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include "address_host.h"
#include "ep_names.h"
#include "fuzz.h"
#include "liar.h"
#include "operations.h"

#define BATCH_MAX 3u  /* addresses of one insertion */
#define RANGE_MAX 24u /* nodes, services */
#define KNOWN_MAX 16u
#define SETS_MAX  3u
#define TEXT_MAX  300u
#define HONEST	  (1ull << 60) /* tag of the honest peer: nothing else wants it */
#define NAME_ROOM ENGINE_NAME_MAX
#define SLACK	  1024u /* behind strings that are none, which end nowhere */

static struct {
	enum host_kind kind;
	struct fake_end victim, honest;
	const struct engine_family *family; /* the victim's */
	struct liar liar;
	fi_addr_t known[KNOWN_MAX]; /* inserted once; may have been removed */
	uint32_t known_cnt;
	fi_addr_t to_victim, to_honest;
	struct fid_av_set *sets[SETS_MAX];
	uint64_t sent, ended, told, got; /* messages of the honest peer */
	bool disturbed; /* another endpoint has taken its name, or the vector may have lost it */
	bool user_ids;	/* the victim's vector gives ids of the program's */
} f;

/* Memory of exactly that length. */
static void *room(size_t len)
{
	void *at = calloc(1, len ? len : 1);

	MUST(at);
	return len ? at : realloc(at, 1);
}

/* Addresses */

static void some_place(struct weft_addr *a)
{
	static const uint8_t ips[][16] = {
		{ 127, 0, 0, 1 },	{ 10, 0, 0, 1 },    { 10, 0, 0, 9 },
		{ [15] = 1 },		{ 0xfd, [15] = 1 }, { 0xfe, 0x80, [15] = 9 },
		{ 'n', 'a', 'm', 'e' },
	};
	static const uint16_t families[] = { ADDR_FAMILY_INET, ADDR_FAMILY_INET6,
					     ADDR_FAMILY_LOCAL, ADDR_FAMILY_NONE };
	uint8_t which = input_byte();

	*a = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	a->family = families[which % 4];
	memcpy(a->ip, ips[(which >> 2) % (sizeof(ips) / sizeof(ips[0]))], sizeof(a->ip));
	a->port = a->family == ADDR_FAMILY_LOCAL ? 0 : (uint16_t)(which >> 6 | input_byte());
}

static void set_one(uint8_t *bytes, size_t len)
{
	size_t where = input_byte() % len;

	bytes[where] = input_byte();
}

static void change(struct weft_addr *a, uint8_t what)
{
	if (what & 1)
		a->kind = input_byte();
	if (what & 2)
		a->family = input_byte() % 12;
	if (what & 4)
		a->port = (uint16_t)input_word();
	if (what & 8)
		set_one(a->ip, sizeof(a->ip));
	if (what & 16)
		set_one(a->nonce, sizeof(a->nonce));
	if (what & 32)
		a->scope = input_word();
	if (what & 64)
		a->pid = input_word();
	if (what & 128)
		a->fd = input_word();
}

static void some_address(struct weft_addr *a)
{
	uint8_t how = input_byte();

	switch (how % 8) {
	case 0:
	case 1:
		*a = f.victim.ep ? f.victim.name : f.honest.name;
		break;
	case 2:
	case 3:
		*a = f.honest.name;
		break;
	case 4:
	case 5:
		*a = f.liar.hello.addr;
		break;
	default:
		some_place(a);
	}
	if (how & 1)
		addr_to_service(a);
	if (how & 8)
		change(a, input_byte());
	if (how & 16) /* its port is shared; or an undefined flag */
		a->flags = how & 32 ? ADDR_PORT_SHARED << 1 : ADDR_PORT_SHARED;
}

static bool strings(void)
{
	return engine_names_are_strings(f.family);
}

/*
 * As the program holds it, in NAME_ROOM bytes at @at, which need not be an address; a string ends in them.
 * Returns how many it has.
 */
static size_t some_bytes(uint8_t *at)
{
	struct weft_addr a;
	uint8_t how = input_byte();
	size_t len = f.family->addr_len, prefix;

	if (!(how & 1)) {
		for (size_t i = 0; i < len; i++)
			at[i] = input_byte();
	} else {
		some_address(&a);
		memset(at, 0, len);
		len = f.family->addr_write(&a, at);
		if (!strings()) /* it may have none of this format */
			len = f.family->addr_len;
		for (uint32_t n = how >> 6; n; n--)
			set_one(at, len);
	}
	if (!strings())
		return len;
	at[len - 1] = '\0';
	prefix = strcspn((char *)at, ":");
	prefix += strspn((char *)at + prefix, ":/");
	if (how & 2 && prefix < len) {
		len -= prefix;
		memmove(at, at + prefix, len);
	}
	memset(at + len, 0, NAME_ROOM - len);
	return len;
}

/* Returns true if that is a string, not an empty one, and nothing after it. */
static bool is_sound(const uint8_t *name, size_t len)
{
	return !strings() || (len > 1 && engine_name_len(f.family, name, SIZE_MAX) == len - 1);
}

static fi_addr_t some_known(void)
{
	uint8_t which = input_byte();

	if (which < 128 && f.known_cnt)
		return f.known[which % f.known_cnt];
	switch (which % 4) {
	case 0:
		return input_byte();
	case 1:
		return f.to_honest;
	case 2:
		return FI_ADDR_UNSPEC;
	default:
		return input_long();
	}
}

/* Names. Returns an owned string, or NULL. */
static char *some_text(void)
{
	static const char *const texts[] = {
		"127.0.0.1",
		"::1",
		"localhost",
		"host7",
		"10.0.0.255",
		"fe80::1%2",
		"255.255.255.250",
		"fi_sockaddr_in://10.0.0.1:7471",
		"fi_sockaddr_in6://[fd00::1]:7471",
		"http",
		"65530",
		"0",
		"7471",
		"name",
		"name9",
		"host099",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0",
		"65536",
		"eth0",
		"::ffff:10.0.0.1",
		"fi_sockaddr://host3:http",
		"link:10.0.0.9:7471",
		"link:[fe80::9%2]:7471",
		"fi_shm://name",
		"fi_ns://host3:name",
		"link:",
		"fi_shm://QAAAAAAAAAEAAAACAAAAAwAAAAQ",
		"",
	};
	uint8_t how = input_byte();
	char text[TEXT_MAX + 1] = "";
	size_t len;

	if (how >= 250)
		return NULL;
	snprintf(text, sizeof(text), "%s", texts[how % (sizeof(texts) / sizeof(texts[0]))]);
	len = strlen(text);
	if (how >= 128) /* then something else, or some more */
		for (uint32_t n = input_byte(); n && len < TEXT_MAX; n--)
			text[how & 1 ? len++ : n - 1] = (char)input_byte();
	return strdup(text);
}

/* What was inserted */

/* In words, with room for @len bytes. Returns how many it needs. */
static size_t straddr(const void *addr, size_t len, char *text)
{
	size_t need = len;

	MUST(fi_av_straddr(f.victim.av, addr, text, &need) == text);
	if (len)
		MUST(memchr(text, '\0', len));
	return need;
}

/* An address in words is one that can be inserted by name. */
static void insert_words(const char *text, fi_addr_t addr)
{
	fi_addr_t again = 0;

	MUST(fi_av_insertsvc(f.victim.av, text, NULL, &again, 0, NULL) == 1);
	MUST(again == addr);
	MUST(!fi_av_remove(f.victim.av, &again, 1, 0));
}

static void check_inserted(fi_addr_t addr)
{
	size_t len = 0, need;
	fi_addr_t again = 0;
	uint8_t *whole;
	char *text;

	MUST(!fi_av_lookup(f.victim.av, addr, NULL, &len));
	MUST(strings() ? len <= f.family->addr_len : len == f.family->addr_len);
	whole = room(len);
	MUST(!fi_av_lookup(f.victim.av, addr, whole, &len));
	MUST(!strings() || strlen((char *)whole) + 1 == len);
	MUST(fi_av_insert(f.victim.av, whole, 1, &again, 0, NULL) == 1);
	MUST(again == addr);
	MUST(!fi_av_remove(f.victim.av, &again, 1, 0));
	need = straddr(whole, 0, NULL);
	text = room(need);
	MUST(straddr(whole, need, text) == need && strlen(text) + 1 == need);
	insert_words(text, addr);
	free(text);
	free(whole);
	f.known[f.known_cnt++ % KNOWN_MAX] = addr;
	if (f.known_cnt > KNOWN_MAX)
		f.known_cnt = KNOWN_MAX;
}

/* @ret of an insertion of @cnt addresses, and what it left. */
static void check_insertion(int ret, const fi_addr_t *out, const int *errors, size_t cnt)
{
	int good = 0;

	MUST(ret <= (int)cnt);
	if (ret < 0)
		return;
	for (size_t i = 0; i < cnt; i++) {
		MUST(!errors || !errors[i] == (out[i] != FI_ADDR_NOTAVAIL));
		good += out[i] != FI_ADDR_NOTAVAIL;
	}
	MUST(good == ret);
	for (size_t i = 0; i < cnt; i++)
		if (out[i] != FI_ADDR_NOTAVAIL)
			check_inserted(out[i]);
}

/* Flags of an insertion, with which it fails as a whole or not at all. */
static uint64_t some_flags(void)
{
	static const uint64_t flags[] = { 0, FI_SYNC_ERR, FI_MORE, FI_AV_USER_ID, FI_EVENT };
	uint8_t how = input_byte();

	return how < 200 ? how % 2 : flags[how % (sizeof(flags) / sizeof(flags[0]))];
}

/* How a program hands several in, in memory that ends with them. */
struct batch {
	uint8_t *bytes; /* owned */
	size_t len, cnt;
	bool good[BATCH_MAX]; /* this alone is an address */
	bool sound;	      /* all are strings, or of one size */
};

static void some_batch(struct batch *b)
{
	uint8_t how = input_byte(), all[BATCH_MAX * NAME_ROOM] = { 0 };
	size_t len, cell = strings() && how >= 128 ? NAME_ROOM : 0;
	struct weft_addr a;
	char why[128];

	*b = (struct batch){ .cnt = 1 + how % BATCH_MAX, .sound = true };
	for (size_t i = 0; i < b->cnt; i++) {
		uint8_t *at = all + b->len;

		len = some_bytes(at);
		b->sound &= is_sound(at, len);
		b->good[i] = is_sound(at, len) &&
			     !f.family->addr_read(at, len - strings(), &a, why, sizeof(why));
		b->len += cell ? cell : len;
	}
	b->bytes = room(b->len + (b->sound ? 0 : SLACK));
	memcpy(b->bytes, all, b->len);
}

static void insert(void)
{
	struct batch b;
	uint64_t flags;
	fi_addr_t *out;
	size_t cnt;
	int *errors, ret;

	some_batch(&b);
	cnt = b.cnt;
	flags = some_flags() ? FI_SYNC_ERR : 0;
	out = room(cnt * sizeof(*out));
	errors = room(cnt * sizeof(*errors));
	if (input_byte() & 1 && !f.user_ids)
		flags |= FI_AV_USER_ID;
	for (size_t i = 0; i < cnt; i++)
		out[i] = i;
	ret = fi_av_insert(f.victim.av, b.bytes, cnt, out, flags, errors);
	MUST(ret >= 0);
	for (size_t i = 0; i < cnt && b.sound; i++)
		MUST(b.good[i] == (out[i] != FI_ADDR_NOTAVAIL));
	check_insertion(ret, out, flags & FI_SYNC_ERR ? errors : NULL, cnt);
	free(errors);
	free(out);
	free(b.bytes);
}

static void insert_service(void)
{
	char *node = some_text(), *service = some_text();
	fi_addr_t out = 0;
	uint64_t flags = some_flags();
	int error = 0;
	int ret = fi_av_insertsvc(f.victim.av, node, service, &out, flags, &error);

	MUST(ret <= 1 && ret);
	if (ret > 0)
		check_inserted(out);
	free(node);
	free(service);
}

static size_t some_count(void)
{
	uint8_t how = input_byte();

	return how < 250 ? how % RANGE_MAX : SIZE_MAX - how % 4;
}

static void insert_range(void)
{
	char *node = some_text(), *service = some_text();
	size_t nodes = some_count(), services = some_count(), cnt = nodes * services;
	bool possible = nodes <= RANGE_MAX && services <= RANGE_MAX;
	fi_addr_t *out = room(possible ? cnt * sizeof(*out) : 0);
	int ret = fi_av_insertsym(f.victim.av, node, nodes, service, services, out, 0, NULL);

	MUST(possible || ret < 0 || !cnt);
	if (possible)
		check_insertion(ret, out, NULL, cnt);
	free(out);
	free(node);
	free(service);
}

static void take_out(void)
{
	fi_addr_t addrs[2] = { some_known(), some_known() };
	int ret = fi_av_remove(f.victim.av, addrs, 1 + input_byte() % 2, 0);

	MUST(!ret || ret == -FI_EINVAL);
	f.disturbed = true;
}

static void look_up(void)
{
	size_t len = input_byte() % (NAME_ROOM + 2), need = len;
	uint8_t *at = room(len);
	int ret = fi_av_lookup(f.victim.av, some_known(), at, &need);

	MUST(ret == -FI_EINVAL || (!ret && need && need <= f.family->addr_len));
	free(at);
}

/* Any bytes can be printed, into any room. */
static void print(void)
{
	size_t len = input_byte() % 100, need;
	uint8_t whole[NAME_ROOM], *addr;
	char *text = room(len);
	size_t addr_len = some_bytes(whole);

	addr = room(is_sound(whole, addr_len) ? addr_len : NAME_ROOM);
	memcpy(addr, whole, addr_len);
	need = straddr(addr, len, text);
	MUST(need > 0 && need < 200);
	free(text);
	free(addr);
}

static void rename_one(void)
{
	fi_addr_t addr = some_known();
	int ret = fi_av_set_user_id(f.victim.av, addr, input_byte(), 0);

	MUST(!ret || ret == -FI_EINVAL);
}

/* Sets */

static struct fid_av_set *some_set(void)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL };
	uint32_t at = input_byte() % SETS_MAX;
	uint8_t how;

	if (f.sets[at])
		return f.sets[at];
	how = input_byte();
	if (how & 1) {
		attr.start_addr = how & 2 ? some_known() : 0;
		attr.end_addr = how & 4 ? some_known() : input_byte();
		attr.stride = how & 8 ? input_long() : 1;
		attr.count = how & 16 ? input_byte() : 0;
	}
	attr.flags = how & 32 ? FI_UNIVERSE : 0;
	if (fi_av_set(f.victim.av, &attr, &f.sets[at], NULL))
		f.sets[at] = NULL;
	return f.sets[at];
}

static void sets(void)
{
	struct fid_av_set *a = some_set(), *b = some_set();
	fi_addr_t addr = 0;

	if (!a || !b)
		return;
	switch (input_byte() % 7) {
	case 0:
		fi_av_set_insert(a, some_known());
		break;
	case 1:
		fi_av_set_remove(a, some_known());
		break;
	case 2:
		MUST(!fi_av_set_union(a, b));
		break;
	case 3:
		MUST(!fi_av_set_intersect(a, b));
		break;
	case 4:
		MUST(!fi_av_set_diff(a, b));
		break;
	case 5:
		MUST(!fi_av_set_addr(a, &addr) && addr != FI_ADDR_NOTAVAIL);
		break;
	default:
		for (uint32_t i = 0; i < SETS_MAX; i++)
			if (f.sets[i] == a)
				f.sets[i] = NULL;
		MUST(!fi_close(&a->fid));
	}
}

/* fi_getinfo */

static void hint(void **addr, size_t *addr_len)
{
	static const size_t lens[] = { 64, 16, 28, 0, 1, 15, 27, 63, 65 };
	uint8_t how = input_byte(), whole[2 * NAME_ROOM] = { 0 };
	size_t all = some_bytes(whole);
	size_t len = how & 1 ? all : lens[(how >> 1) % (sizeof(lens) / sizeof(lens[0]))];

	*addr = room(len);
	*addr_len = len;
	memcpy(*addr, whole, len);
}

static void check_answer(const struct fi_info *info)
{
	struct fi_info *copy = fi_dupinfo(info);

	MUST(copy && copy->src_addrlen == info->src_addrlen);
	MUST(info->fabric_attr->prov_name && info->domain_attr->name);
	MUST(strlen(fi_tostr(info, FI_TYPE_INFO)));
	fi_freeinfo(copy);
}

/* Returns owned answers, or NULL. */
static struct fi_info *question(void)
{
	static const uint64_t flags[] = { 0, FI_SOURCE, FI_NUMERICHOST,
					  FI_SOURCE | FI_NUMERICHOST };
	struct fi_info *hints = host_hints(f.kind), *list = NULL;
	uint8_t how = input_byte();
	char *node = how & 1 ? some_text() : NULL, *service = how & 2 ? some_text() : NULL;

	if (how & 4)
		hint(&hints->src_addr, &hints->src_addrlen);
	if (how & 8)
		hint(&hints->dest_addr, &hints->dest_addrlen);
	if (how & 16)
		hints->addr_format = input_byte() % 20;
	if (how & 32) {
		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = NULL;
	}
	if (!fi_getinfo(FI_VERSION(2, 0), node, service, flags[how >> 6], hints, &list))
		for (struct fi_info *i = list; i; i = i->next)
			check_answer(i);
	fi_freeinfo(hints);
	free(node);
	free(service);
	return list;
}

/* Peers */

static void talk(void)
{
	size_t len = input_byte() * 5u;
	struct fuzz_op *op = op_new(len, 0);
	ssize_t ret;

	if (!op)
		return;
	ret = fi_tsend(f.victim.ep, op->buf, len, NULL, some_known(), 1, op);
	MUST(!ret || ret == -FI_EAGAIN || ret == -FI_EINVAL);
	if (ret)
		op_end(op);
}

static void listen(void)
{
	size_t len = input_byte() * 5u;
	fi_addr_t src = some_known();
	struct fuzz_op *op = op_new_receive(len);
	ssize_t ret;

	if (!op)
		return;
	ret = fi_trecv(f.victim.ep, op->buf, len, NULL, src, 1, ~HONEST, op);
	MUST(!ret || ret == -FI_EINVAL);
	if (ret)
		op_end(op);
}

/* Counts the honest peer's messages: told are those whose completion reported their arrival. */
static void honest_progress(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(f.honest.tx_cq, &e, 1)) == 1) {
		f.told++;
		f.ended++;
	}
	if (ret == -FI_EAVAIL && fi_cq_readerr(f.honest.tx_cq, &err, 0) == 1)
		f.ended++;
}

static void honest(void)
{
	static char text[] = "honest";
	struct iovec iov = { text, sizeof(text) };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = f.to_victim, .tag = HONEST
	};

	f.sent += !fi_tsendmsg(f.honest.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	honest_progress();
}

/* Returns true if these two lead to the same endpoint, by nonce or by where it listens. */
static bool alike(const struct weft_addr *a, const struct weft_addr *b)
{
	struct weft_addr a_service = *a, b_service = *b;

	addr_to_service(&a_service);
	addr_to_service(&b_service);
	return addr_same(a, b) || addr_same(&a_service, &b_service);
}

/* A peer connects, or answers, with the address that the input says. */
static void hello(void)
{
	uint8_t how = input_byte();

	liar_leave(&f.liar, how & 1 ? 0 : -FI_ECONNRESET);
	if (how & 2)
		some_address(&f.liar.hello.addr);
	if (how & 4) {
		f.liar.hello.addr.kind = ADDR_NONCE;
		f.liar.hello.addr.version = ADDR_VERSION;
	}
	f.liar.hello.incarnation++;
	if (how & 8)
		f.liar.hello.epoch = input_byte();
	f.liar.hello.rail = how & 32 ? input_byte() : 0;
	f.liar.hello.data.len = how & 64 ? input_word() : 0;
	f.liar.hello.data.reserved = how & 128 ? input_byte() : 0;
	f.disturbed |= alike(&f.liar.hello.addr, &f.honest.name) ||
		       alike(&f.liar.hello.addr, &f.victim.name);
	if (how & 16)
		liar_answer(&f.liar, &f.victim);
	else
		liar_connect(&f.liar, &f.victim);
}

static void message(void)
{
	struct packet p = { .op = PACKET_EAGER,
			    .flags = PACKET_TAGGED,
			    .epoch = (uint16_t)f.liar.hello.epoch,
			    .seq = f.liar.seq,
			    .len = input_byte(),
			    .tag = 1 };
	uint8_t payload[256] = { 0 };

	if (liar_connected(&f.liar) && !fake_raw_send(f.liar.raw, &p, payload, p.len, NULL))
		f.liar.seq++;
}

static void progress(void)
{
	ops_read_cq(f.victim.rx_cq);
	ops_read_cq(f.victim.tx_cq);
	honest_progress();
}

static fi_addr_t insert_end(struct fake_end *end, const struct fake_end *other)
{
	uint8_t whole[NAME_ROOM] = { 0 };
	size_t len = sizeof(whole);
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	MUST(!fi_getname(&other->ep->fid, whole, &len));
	MUST(fi_av_insert(end->av, whole, 1, &addr, 0, NULL) == 1);
	return addr;
}

/* The victim is what fi_getinfo answers to a question of the input's, if it is of its kind. */
static void begin_victim(void)
{
	struct fi_info *list, *asked;
	uint8_t how = input_byte(), name[NAME_ROOM];
	size_t len = 0;

	f.user_ids = how & 1;
	list = how & 2 ? question() : NULL;
	for (asked = list; asked && !host_is(f.kind, asked);)
		asked = asked->next;
	if (how & 4)
		len = some_bytes(name);
	if (!asked || host_end_open(&f.victim, asked, f.user_ids ? FI_AV_USER_ID : 0,
				    how & 4 ? name : NULL, len))
		MUST(!host_end_open(&f.victim, host_info(f.kind),
				    f.user_ids ? FI_AV_USER_ID : 0, NULL, 0));
	fi_freeinfo(list);
}

static void begin(void)
{
	host_begin();
	f.kind = input_byte() % HOST_KINDS;
	MUST(!host_end_open(&f.honest, host_info(f.kind), 0, NULL, 0));
	f.family = fake_end_engine(&f.honest)->domain->family;
	liar_begin(&f.liar, &f.honest.name);
	begin_victim();
	f.to_victim = insert_end(&f.honest, &f.victim);
	f.to_honest = insert_end(&f.victim, &f.honest);
}

/*
 * Whatever was inserted and sent: messages of the honest peer arrive, or fail if another endpoint
 * has taken its name or the vector has lost it.
 */
static void serve_honest(void)
{
	struct fi_cq_tagged_entry e;
	static char buf[8];
	bool posted = false;

	for (int i = 0; f.ended < f.sent || f.got < f.told; i++) {
		MUST(i < 100000);
		if (!posted)
			MUST(!fi_trecv(f.victim.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC,
				       HONEST, 0, &f));
		posted = fi_cq_read(f.victim.rx_cq, &e, 1) != 1;
		honest_progress();
		if (posted)
			continue;
		MUST(!strcmp(buf, "honest"));
		f.got++;
	}
	MUST(f.disturbed || f.told == f.sent);
	if (posted)
		MUST(!fi_cancel(&f.victim.ep->fid, &f));
}

static void end(void)
{
	liar_leave(&f.liar, -FI_ECONNRESET);
	for (uint32_t i = 0; i < OPS_MAX; i++)
		op_cancel(f.victim.ep, op_at(i));
	for (int i = 0; i < 2 * OPS_MAX; i++)
		progress();
	for (uint32_t i = 0; i < OPS_MAX; i++)
		MUST(!op_at(i)->active || !op_at(i)->receive);
	serve_honest();
	for (uint32_t i = 0; i < SETS_MAX; i++)
		MUST(!f.sets[i] || !fi_close(&f.sets[i]->fid));
	fake_end_close(&f.victim);
	fake_end_close(&f.honest);
	ops_begin();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const steps[])(void) = {
		insert, insert,	    insert_service, insert_range, take_out, look_up,
		print,	rename_one, sets,	    talk,	  talk,	    listen,
		honest, hello,	    message,	    progress,
	};

	memset(&f, 0, sizeof(f));
	input_begin(data, len);
	begin();
	while (input_left()) {
		uint8_t step = input_byte();

		if (step < 240)
			steps[step % (sizeof(steps) / sizeof(steps[0]))]();
		else
			fi_freeinfo(question());
	}
	end();
	return 0;
}
