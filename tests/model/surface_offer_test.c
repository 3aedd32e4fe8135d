/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whatever fi_getinfo offers is asked for and used: each capability, default flag, message order,
 * registration mode, number and choice. What it does not offer it refuses to hints. See surface.h.
 *
 * usage: surface_offer_test PROVIDER
 */
#include "surface_offer.h"

/* Bits: of which attribute, and what may be offered of it */

struct bits {
	const char *name;
	const struct offered *offered;
	size_t cnt;
	uint64_t *(*at)(struct fi_info *info);
};

static uint64_t *caps_at(struct fi_info *info)
{
	return &info->caps;
}

static uint64_t *domain_caps_at(struct fi_info *info)
{
	return &info->domain_attr->caps;
}

static uint64_t *tx_flags_at(struct fi_info *info)
{
	return &info->tx_attr->op_flags;
}

static uint64_t *rx_flags_at(struct fi_info *info)
{
	return &info->rx_attr->op_flags;
}

static uint64_t *tx_order_at(struct fi_info *info)
{
	return &info->tx_attr->msg_order;
}

static uint64_t *rx_order_at(struct fi_info *info)
{
	return &info->rx_attr->msg_order;
}

static const struct bits all_bits[] = {
	{ "caps", caps_offered, CAPS_CNT, caps_at },
	{ "domain_attr->caps", caps_offered, CAPS_CNT, domain_caps_at },
	{ "tx_attr->op_flags", tx_flags_offered, TX_FLAGS_CNT, tx_flags_at },
	{ "rx_attr->op_flags", rx_flags_offered, RX_FLAGS_CNT, rx_flags_at },
	{ "tx_attr->msg_order", msg_order_offered, MSG_ORDER_CNT, tx_order_at },
	{ "rx_attr->msg_order", msg_order_offered, MSG_ORDER_CNT, rx_order_at },
};

static const struct offered *offered_bit(const struct bits *bits, uint64_t bit)
{
	for (size_t i = 0; i < bits->cnt; i++)
		if (bits->offered[i].bit == bit)
			return &bits->offered[i];
	return NULL;
}

/* The offer for all capabilities and one bit of one attribute. */
static struct fi_info *ask(const struct bits *bits, uint64_t bit, uint64_t caps)
{
	struct fi_info *hints = surface_hints(), *info = NULL;
	int ret;

	hints->caps = caps;
	*bits->at(hints) |= bit;
	ret = fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (ret) {
		assert_int_equal(ret, -FI_ENODATA);
		return NULL;
	}
	return info;
}

static void prove(const struct bits *bits, const struct offered *offered, struct fi_info *info)
{
	struct surface s;

	surface_open_with(&s, fi_dupinfo(info));
	print_message("%s: %s\n", bits->name, offered->name);
	offered->proof(&s);
	surface_close(&s);
}

static void each_bit_that_is_offered_works(void **state)
{
	uint64_t all = surface_all();

	for (const struct bits *bits = all_bits; bits < all_bits + COUNT_OF(all_bits); bits++) {
		for (int i = 0; i < 64; i++) {
			uint64_t bit = 1ull << i;
			const struct offered *offered = offered_bit(bits, bit);
			struct fi_info *alone = ask(bits, bit, 0), *info = ask(bits, bit, all);

			if (alone && !offered)
				fail_msg("bit %d of %s is granted, and nothing is known to work by it",
					 i, bits->name);
			assert_int_equal(!alone, !info);
			if (alone) {
				assert_true(*bits->at(alone) & bit);
				prove(bits, offered, info);
			}
			fi_freeinfo(alone);
			fi_freeinfo(info);
		}
	}
}

/*
 * Of its capabilities a context has those that the endpoint has. Hints that name one of the other
 * direction are met, since programs give both the same, and it is not granted.
 */
static void a_context_has_no_more_than_its_endpoint(void **state)
{
	uint64_t all = surface_all();

	for (int i = 0; i < 64; i++) {
		for (int rx = 0; rx < 2; rx++) {
			struct fi_info *hints = surface_hints(), *info = NULL;
			uint64_t bit = 1ull << i, got = 0;
			int ret;

			*(rx ? &hints->rx_attr->caps : &hints->tx_attr->caps) = bit;
			ret = fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &info);
			fi_freeinfo(hints);
			assert_true(!ret || ret == -FI_ENODATA);
			if (!ret)
				got = rx ? info->rx_attr->caps : info->tx_attr->caps;
			assert_true(!(got & bit) || all & bit);
			assert_int_equal(ret ? 0 : got & ~info->caps, 0);
			fi_freeinfo(info);
		}
	}
}

/* Nothing in an answer that hints could not have asked for. */
static void no_bit_is_shown_that_is_refused(void **state)
{
	struct fi_info *plain = NULL, *hints = surface_hints();

	assert_int_equal(fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &plain), 0);
	for (struct fi_info *info = plain; info; info = info->next) {
		for (const struct bits *bits = all_bits; bits < all_bits + COUNT_OF(all_bits);
		     bits++) {
			for (int i = 0; i < 64; i++) {
				struct fi_info *got;

				if (!(*bits->at(info) & 1ull << i))
					continue;
				got = ask(bits, 1ull << i, 0);
				assert_non_null(got);
				fi_freeinfo(got);
			}
		}
		assert_int_equal(info->tx_attr->caps & ~info->caps, 0);
		assert_int_equal(info->rx_attr->caps & ~info->caps, 0);
	}
	fi_freeinfo(plain);
	fi_freeinfo(hints);
}

/* Numbers */

static void *number_at(const struct limit *limit, struct fi_info *info)
{
	return *(char **)((char *)info + limit->part) + limit->at;
}

static uint64_t number_of(const struct limit *limit, struct fi_info *info)
{
	uint64_t whole;
	uint32_t half;

	memcpy(&half, number_at(limit, info), sizeof(half));
	if (limit->len == sizeof(half))
		return half;
	memcpy(&whole, number_at(limit, info), sizeof(whole));
	return whole;
}

/* Hints with this number; its answer in @info, unless that is NULL. */
static int ask_number(const struct limit *limit, uint64_t value, struct fi_info **info)
{
	struct fi_info *hints = surface_hints(), *answer = NULL;
	uint32_t half = (uint32_t)value;
	int ret;

	hints->caps = info ? surface_all() : FI_MSG | FI_RMA | FI_ATOMIC;
	memcpy(number_at(limit, hints),
	       limit->len == sizeof(half) ? (void *)&half : (void *)&value, limit->len);
	ret = fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &answer);
	fi_freeinfo(hints);
	if (info)
		*info = answer;
	else
		fi_freeinfo(answer);
	return ret;
}

/* A zero that says nothing; hints of the last are read from version 2.7 on. */
static bool says_nothing(const struct limit *limit)
{
	static const char *const names[] = { "max_xpu_ctx_cnt", "max_err_data" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (!strcmp(strchr(limit->name, '>') + 1, names[i]))
			return true;
	return false;
}

/* Beyond what is answered unasked. */
static void more_is_granted(const struct limit *limit, uint64_t max)
{
	struct fi_info *info = NULL;
	struct surface s;

	assert_int_equal(ask_number(limit, max + 1, NULL), 0);
	if (!limit->more)
		return;
	print_message("%s: %llu when asked for\n", limit->name, (unsigned long long)limit->more);
	assert_int_equal(ask_number(limit, limit->more, &info), 0);
	assert_int_equal(number_of(limit, info), limit->more);
	surface_open_with(&s, info);
	limit->proof(&s, limit->more);
	surface_close(&s);
}

static void each_number_that_is_offered_holds(void **state)
{
	struct surface s;

	for (const struct limit *limit = limits_offered; limit < limits_offered + LIMITS_CNT;
	     limit++) {
		uint64_t max;

		surface_open(&s, surface_all(), FI_THREAD_SAFE);
		max = number_of(limit, s.info);
		print_message("%s: %llu\n", limit->name, (unsigned long long)max);
		if (max && !limit->proof)
			fail_msg("%s is offered, and nothing is known to work by it",
				 limit->name);
		if (max && limit->proof)
			limit->proof(&s, max);
		assert_true(max || !limit->proof || says_nothing(limit));
		assert_int_equal(ask_number(limit, max, NULL), 0);
		surface_close(&s);
		if (limit->open)
			more_is_granted(limit, max);
		else if (max != UINT64_MAX && !(limit->len == 4 && max == UINT32_MAX) &&
			 !(!max && says_nothing(limit)))
			assert_int_equal(ask_number(limit, max + 1, NULL), -FI_ENODATA);
	}
}

static void patterns_and_modes_are_what_they_say(void **state)
{
	struct surface s;

	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	proof_patterns(&s);
	surface_close(&s);
}

/* Choices */

static int ask_choice(void (*choose)(struct fi_info *hints, int value), int value,
		      struct fi_info **info)
{
	struct fi_info *hints = surface_hints();
	int ret;

	hints->caps = surface_all();
	choose(hints, value);
	ret = fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

static void choose_threading(struct fi_info *hints, int value)
{
	hints->domain_attr->threading = (enum fi_threading)value;
}

static void choose_progress(struct fi_info *hints, int value)
{
	hints->domain_attr->data_progress = hints->domain_attr->control_progress =
		(enum fi_progress)value;
}

static void choose_management(struct fi_info *hints, int value)
{
	hints->domain_attr->resource_mgmt = (enum fi_resource_mgmt)value;
}

static void choose_av(struct fi_info *hints, int value)
{
	hints->domain_attr->av_type = (enum fi_av_type)value;
}

static void choose_ep(struct fi_info *hints, int value)
{
	hints->ep_attr->type = (enum fi_ep_type)value;
}

static void choose_mr(struct fi_info *hints, int value)
{
	hints->domain_attr->mr_mode = value;
}

static void choose_tclass(struct fi_info *hints, int value)
{
	hints->tx_attr->tclass = hints->domain_attr->tclass = (uint32_t)value;
}

/* Values from 0, those in @works as bits; each other is refused. */
static const struct {
	const char *name;
	void (*choose)(struct fi_info *hints, int value);
	int cnt;
	uint32_t works;
} choices[] = {
	{ "threading", choose_threading, FI_THREAD_ENDPOINT + 2,
	  1u << FI_THREAD_UNSPEC | 1u << FI_THREAD_SAFE | 1u << FI_THREAD_FID |
		  1u << FI_THREAD_DOMAIN | 1u << FI_THREAD_COMPLETION |
		  1u << FI_THREAD_ENDPOINT },
	{ "progress", choose_progress, FI_PROGRESS_CONTROL_UNIFIED + 2,
	  1u << FI_PROGRESS_UNSPEC | 1u << FI_PROGRESS_AUTO | 1u << FI_PROGRESS_MANUAL |
		  1u << FI_PROGRESS_CONTROL_UNIFIED },
	{ "resource_mgmt", choose_management, FI_RM_ENABLED + 1,
	  1u << FI_RM_UNSPEC | 1u << FI_RM_DISABLED | 1u << FI_RM_ENABLED },
	{ "av_type", choose_av, FI_AV_TABLE + 1,
	  1u << FI_AV_UNSPEC | 1u << FI_AV_MAP | 1u << FI_AV_TABLE },
	{ "ep_attr->type", choose_ep, FI_EP_RDM + 1, 1u << FI_EP_UNSPEC | 1u << FI_EP_RDM },
};

static void each_choice_is_kept_or_refused(void **state)
{
	for (size_t i = 0; i < COUNT_OF(choices); i++) {
		for (int value = 0; value < choices[i].cnt; value++) {
			struct fi_info *info = NULL;
			int ret = ask_choice(choices[i].choose, value, &info);
			struct surface s;

			print_message("%s %d: %s\n", choices[i].name, value,
				      ret ? "refused" : "offered");
			assert_int_equal(ret, choices[i].works & 1u << value ? 0 : -FI_ENODATA);
			if (ret)
				continue;
			surface_open_with(&s, info);
			proof_slot(&s, tagged_slots, TAGGED_SLOTS, "send");
			proof_slot(&s, tagged_slots, TAGGED_SLOTS, "recv");
			surface_close(&s);
		}
	}
}

static void each_traffic_class_is_taken(void **state)
{
	for (int tclass = FI_TC_BEST_EFFORT; tclass <= FI_TC_NETWORK_CTRL; tclass++) {
		struct fi_info *info = NULL;
		struct surface s;

		assert_int_equal(ask_choice(choose_tclass, tclass, &info), 0);
		assert_int_equal(info->tx_attr->tclass, tclass);
		assert_int_equal(info->domain_attr->tclass, tclass);
		surface_open_with(&s, info);
		proof_slot(&s, msg_slots, MSG_SLOTS, "send");
		surface_close(&s);
	}
}

/* None is asked of the program, whatever it grants; those of old programs mean what they did. */
static void registration_modes_are_what_was_granted(void **state)
{
	static uint64_t word;

	for (int bit = 0; bit <= 12; bit++) {
		struct fi_context2 context;
		struct fi_info *info = NULL;
		struct fid_mr *mr;
		struct surface s;
		bool basic;

		assert_int_equal(ask_choice(choose_mr, 1 << bit, &info), 0);
		basic = 1 << bit == FI_MR_BASIC;
		assert_int_equal(info->domain_attr->mr_mode, bit < 2 ? 1 << bit : 0);
		surface_open_with(&s, info);
		word = 0;
		assert_int_equal(
			fi_mr_reg(s.domain, &word, 8, FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL), 0);
		assert_true(basic || fi_mr_key(mr) == 5);
		assert_int_equal(fi_write(s.near.ep, "12345678", 8, NULL, s.far.addr,
					  basic ? (uintptr_t)&word : 0, fi_mr_key(mr), &context),
				 0);
		surface_done(s.near.cq, &context);
		END_UNTIL(end_holds(&word, "12345678", 8), fi_cq_read(s.far.cq, NULL, 0));
		assert_int_equal(fi_close(&mr->fid), 0);
		surface_close(&s);
	}
}

/* Keys */

static struct fi_info *info_with_key(size_t len)
{
	struct fi_info *hints = surface_hints(), *info = NULL;
	uint8_t *key = calloc(1, len);
	int ret;

	hints->caps = surface_all();
	hints->ep_attr->auth_key = key;
	hints->ep_attr->auth_key_size = len;
	ret = fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &info);
	assert_true(!ret || ret == -FI_ENODATA);
	fi_freeinfo(hints); /* and the key */
	return ret ? NULL : info;
}

static void the_longest_key_that_is_taken_opens_endpoints(void **state)
{
	struct fi_info *info, *longest = NULL;
	struct surface s;
	size_t len = 1;

	for (; (info = info_with_key(len)); len++) {
		fi_freeinfo(longest);
		longest = info;
		assert_true(len < 4096);
	}
	assert_non_null(longest);
	print_message("auth_key_size: %zu\n", len - 1);
	surface_open_with(&s, longest);
	assert_int_equal(s.info->ep_attr->auth_key_size, len - 1);
	/* Far is of another job: one more of this. */
	party_close(&s.far);
	party_open(&s, &s.far, s.info);
	party_enable(&s, &s.far);
	proof_slot(&s, msg_slots, MSG_SLOTS, "send");
	surface_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_bit_that_is_offered_works),
		cmocka_unit_test(a_context_has_no_more_than_its_endpoint),
		cmocka_unit_test(no_bit_is_shown_that_is_refused),
		cmocka_unit_test(each_number_that_is_offered_holds),
		cmocka_unit_test(patterns_and_modes_are_what_they_say),
		cmocka_unit_test(each_choice_is_kept_or_refused),
		cmocka_unit_test(each_traffic_class_is_taken),
		cmocka_unit_test(registration_modes_are_what_was_granted),
		cmocka_unit_test(the_longest_key_that_is_taken_opens_endpoints),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	surface_provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
