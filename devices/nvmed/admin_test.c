/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registers and admin commands, through the slot and an admin queue in shared memory */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "rig.h"

#define CC_GOOD                                                \
	(NVME_CC_EN | NVME_SQE_SHIFT << NVME_CC_IOSQES_SHIFT | \
	 NVME_CQE_SHIFT << NVME_CC_IOCQES_SHIFT)

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_open_enabled(r, RIG_MEMORY, NULL);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_close(*state);
	free(*state);
	return 0;
}

static void reset(struct rig *r)
{
	assert_int_equal(host_write(&r->h, NVME_REG_CC, 0), 0);
	for (int i = 0; i < 1000 && host_read(&r->h, NVME_REG_CSTS); i++)
		rig_rounds(r, 1);
	assert_int_equal(host_read(&r->h, NVME_REG_CSTS), 0);
	host_pair_forget(&r->admin);
}

static uint32_t enable_with(struct rig *r, uint32_t cc, uint32_t aqa, uint64_t asq, uint64_t acq)
{
	host_write(&r->h, NVME_REG_AQA, aqa);
	host_write(&r->h, NVME_REG_ASQ, asq);
	host_write(&r->h, NVME_REG_ACQ, acq);
	host_write(&r->h, NVME_REG_CC, cc);
	return host_read(&r->h, NVME_REG_CSTS);
}

static void capabilities_are_told(void **state)
{
	struct rig *r = *state;
	struct slot_message m = { .kind = SLOT_READ, .addr = NVME_REG_CAP, .len = 8 };

	assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), 0);
	assert_int_equal(NVME_CAP_MQES(m.value), 4095);
	assert_int_equal(NVME_CAP_DSTRD(m.value), SLOT_DSTRD);
	assert_true(m.value & NVME_CAP_CQR);
	assert_true(m.value & NVME_CAP_CSS_NVM);
	assert_true(m.value & NVME_CAP_CMBS);
	assert_int_equal(NVME_CAP_MPSMIN(m.value), 0);
	assert_true(NVME_CAP_TO(m.value));
	assert_int_equal(host_read(&r->h, NVME_REG_VS), NVME_VERSION_1_4);
}

/* Each with the one thing that is wrong; after a reset the controller is enabled as ever. */
static void a_bad_enable_is_fatal_until_reset(void **state)
{
	struct rig *r = *state;
	uint64_t sq = host_take(&r->h, NVME_PAGE), cq = host_take(&r->h, NVME_PAGE);
	const struct {
		uint32_t cc, aqa;
		uint64_t asq, acq;
	} bad[] = {
		{ CC_GOOD, 0x000f0000, sq, cq },
		{ CC_GOOD, 0x0000000f, sq, cq },
		{ CC_GOOD, 0x000f000f, 0x1000, cq },
		{ CC_GOOD, 0x000f000f, sq, 0x1000 },
		{ CC_GOOD, 0x0fff0fff, HOST_BASE + HOST_MEMORY_LEN - NVME_PAGE, cq },
		{ CC_GOOD | 1u << 7, 0x000f000f, sq, cq },
		{ CC_GOOD | 1u << 4, 0x000f000f, sq, cq },
		{ CC_GOOD | 1u << 11, 0x000f000f, sq, cq },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		reset(r);
		assert_int_equal(enable_with(r, bad[i].cc, bad[i].aqa, bad[i].asq, bad[i].acq),
				 NVME_CSTS_CFS);
	}
	reset(r);
	assert_int_equal(enable_with(r, CC_GOOD, 0x000f000f, sq, cq), NVME_CSTS_RDY);
	/* What is written to these while it is enabled does nothing. */
	host_write(&r->h, NVME_REG_AQA, 0x00010001);
	assert_int_equal(host_read(&r->h, NVME_REG_AQA), 0x000f000f);
	host_write(&r->h, NVME_REG_ASQ, 0);
	assert_int_equal(host_read(&r->h, NVME_REG_ASQ), (uint32_t)sq);
}

static void the_admin_queue_losing_its_memory_is_fatal(void **state)
{
	struct rig *r = *state;
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .cdw10 = 1 };

	assert_int_equal(host_unmap(&r->h, 0, HOST_BASE, HOST_MEMORY_LEN), 0);
	host_submit(&r->admin, &sqe);
	host_ring(&r->admin);
	rig_rounds(r, 100);
	assert_int_equal(host_read(&r->h, NVME_REG_CSTS), NVME_CSTS_RDY | NVME_CSTS_CFS);
	reset(r);
	assert_int_equal(host_map(&r->h, 0, HOST_BASE, HOST_MEMORY_LEN, 3, r->h.memory_fd), 0);
	assert_int_equal(host_enable(&r->h, &r->admin, 16), 0);
}

static void a_shutdown_ends_in_order(void **state)
{
	struct rig *r = *state;

	host_write(&r->h, NVME_REG_CC, CC_GOOD | NVME_CC_SHN_NORMAL);
	for (int i = 0; i < 1000 && NVME_CSTS_SHST(host_read(&r->h, NVME_REG_CSTS)) != 2; i++)
		rig_rounds(r, 1);
	assert_int_equal(host_read(&r->h, NVME_REG_CSTS), NVME_CSTS_RDY | NVME_CSTS_SHST_DONE);
	reset(r);
	assert_int_equal(host_enable(&r->h, &r->admin, 16), 0);
}

static void registers_are_read_and_written_whole(void **state)
{
	struct rig *r = *state;
	struct slot_message m;
	static const uint64_t bad[][2] = {
		{ 2, 4 },     { 0x14, 8 },    { 0x14, 2 },	    { 0x14, 0 },
		{ 0x14, 16 }, { 1 << 20, 4 }, { UINT64_MAX - 3, 4 }
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m = (struct slot_message){ .kind = SLOT_READ,
					   .addr = bad[i][0],
					   .len = bad[i][1] };
		assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), -EINVAL);
		m = (struct slot_message){ .kind = SLOT_WRITE,
					   .addr = bad[i][0],
					   .len = bad[i][1] };
		assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), -EINVAL);
	}
	for (uint32_t at = 0; at < 0x1000;
	     at += 4) { /* nothing that is written breaks anything */
		if (at == NVME_REG_CC)
			continue;
		m = (struct slot_message){
			.kind = SLOT_WRITE, .addr = at, .len = 4, .value = UINT32_MAX
		};
		assert_int_equal(host_ask(&r->h, &m, NULL, 0, NULL), 0);
	}
	assert_int_equal(host_read(&r->h, NVME_REG_VS), NVME_VERSION_1_4);
	assert_int_equal(host_read(&r->h, NVME_REG_CSTS), NVME_CSTS_RDY);
	assert_int_equal(host_read(&r->h, NVME_REG_CMBSTS), 0);
}

static void controller_memory_over_a_window_is_invalid(void **state)
{
	struct rig *r = *state;

	host_write(&r->h, NVME_REG_CMBMSC, HOST_BASE | NVME_CMBMSC_CRE | NVME_CMBMSC_CMSE);
	assert_int_equal(host_read(&r->h, NVME_REG_CMBSTS), NVME_CMBSTS_CBAI);
	host_write(&r->h, NVME_REG_CMBMSC, (1ull << 50) | NVME_CMBMSC_CRE | NVME_CMBMSC_CMSE);
	assert_int_equal(host_read(&r->h, NVME_REG_CMBSTS), 0);
	assert_int_equal(host_map(&r->h, 0, 1ull << 50, NVME_PAGE, 3, r->h.memory_fd), -EEXIST);
	host_write(&r->h, NVME_REG_CMBMSC, 0);
	assert_int_equal(host_map(&r->h, 0, 1ull << 50, NVME_PAGE, 3, r->h.memory_fd), 0);
}

static void identify_tells_what_there_is(void **state)
{
	struct rig *r = *state;
	uint64_t at = host_take(&r->h, NVME_PAGE);
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY,
				.prp1 = at,
				.cdw10 = NVME_CNS_CONTROLLER };
	const struct nvme_id_ctrl *ctrl = host_at(&r->h, at);
	const struct nvme_id_ns *ns = host_at(&r->h, at);
	const struct nvme_ns_descriptor *d = host_at(&r->h, at);

	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	assert_memory_equal(ctrl->sn, "RIG1                ", 20);
	assert_int_equal(ctrl->mdts, 8);
	assert_int_equal(ctrl->nn, 1);
	assert_int_equal(ctrl->sqes, 0x66);
	assert_int_equal(ctrl->cqes, 0x44);
	assert_int_equal(strncmp(ctrl->subnqn, "nqn.2014-08.org.nvmexpress:uuid:", 32), 0);
	assert_int_equal(strlen(ctrl->subnqn), 32 + 36);
	sqe.cdw10 = NVME_CNS_NAMESPACE;
	sqe.nsid = 1;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	assert_int_equal(ns->nsze, RIG_LEN / 512);
	assert_int_equal(ns->lbaf[0].lbads, 9);
	sqe.cdw10 = NVME_CNS_NAMESPACE_DESCRIPTORS;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	assert_int_equal(d->nidt, 3);
	assert_int_equal(d->nidl, 16);
	sqe.cdw10 = NVME_CNS_ACTIVE_NAMESPACES;
	sqe.nsid = 0;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	assert_int_equal(*(uint32_t *)host_at(&r->h, at), 1);
	sqe.nsid = 1;
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	assert_int_equal(*(uint32_t *)host_at(&r->h, at), 0);
	sqe.nsid = 0xfffffffe;
	assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_INVALID_NAMESPACE);
	sqe.cdw10 = NVME_CNS_NAMESPACE;
	assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_INVALID_NAMESPACE);
	sqe.cdw10 = 0x42;
	assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_INVALID_FIELD);
	/* In two pages */
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_IDENTIFY,
				 .prp1 = at + 2048,
				 .cdw10 = NVME_CNS_CONTROLLER };
	sqe.prp2 = host_take(&r->h, NVME_PAGE);
	assert_int_equal(rig_admin(r, sqe, NULL), 0);
	assert_memory_equal((uint8_t *)host_at(&r->h, at) + 2048 + 4, "RIG1", 4);
	sqe.prp1 = 0x1000;
	assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_DATA_TRANSFER);
	sqe.flags = 0x40;
	assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_INVALID_FIELD);
	sqe.flags = 0;
	sqe.opcode = 0x7f;
	assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_INVALID_OPCODE);
}

static void what_is_wrong_with_a_queue_is_said(void **state)
{
	struct rig *r = *state;
	uint64_t at = host_take(&r->h, 2 * NVME_PAGE);
	const struct nvme_sqe cq = { .opcode = NVME_ADMIN_CREATE_CQ,
				     .prp1 = at,
				     .cdw10 = 1 | 15u << 16,
				     .cdw11 = NVME_QUEUE_CONTIGUOUS };
	const struct nvme_sqe sq = { .opcode = NVME_ADMIN_CREATE_SQ,
				     .prp1 = at + NVME_PAGE,
				     .cdw10 = 2 | 15u << 16,
				     .cdw11 = NVME_QUEUE_CONTIGUOUS | 1u << 16 };
	struct nvme_sqe sqe = cq, del = { .opcode = NVME_ADMIN_DELETE_CQ };

#define EXPECT(status) assert_int_equal(rig_admin(r, sqe, NULL), status)
	sqe.cdw10 = 15u << 16;
	EXPECT(NVME_SC_INVALID_QID);
	sqe.cdw10 = 9 | 15u << 16;
	EXPECT(NVME_SC_INVALID_QID);
	sqe.cdw10 = 1;
	EXPECT(NVME_SC_INVALID_QUEUE_SIZE);
	sqe.cdw10 = 1 | 4096u << 16;
	EXPECT(NVME_SC_INVALID_QUEUE_SIZE);
	sqe = cq;
	sqe.cdw11 = 0;
	EXPECT(NVME_SC_INVALID_FIELD);
	sqe.cdw11 = NVME_QUEUE_CONTIGUOUS | 9u << 16;
	EXPECT(NVME_SC_INVALID_VECTOR);
	sqe = cq;
	sqe.prp1 = at + 64;
	EXPECT(NVME_SC_INVALID_PRP_OFFSET);
	sqe.prp1 = 0x1000;
	EXPECT(NVME_SC_DATA_TRANSFER);
	sqe.prp1 = UINT64_MAX & ~4095ull;
	sqe.cdw10 = 1 | 4095u << 16;
	EXPECT(NVME_SC_DATA_TRANSFER);
	sqe = cq;
	sqe.cdw14 = 5;
	EXPECT(NVME_SC_INVALID_FIELD); /* no such lease runs */
	sqe = sq;
	EXPECT(NVME_SC_INVALID_CQ);
	sqe.cdw11 = NVME_QUEUE_CONTIGUOUS;
	EXPECT(NVME_SC_INVALID_CQ);
	sqe.cdw11 = NVME_QUEUE_CONTIGUOUS | 9000u << 16;
	EXPECT(NVME_SC_INVALID_CQ);
	sqe = cq;
	EXPECT(0);
	EXPECT(NVME_SC_INVALID_QID); /* there is one */
	sqe = sq;
	EXPECT(0);
	EXPECT(NVME_SC_INVALID_QID);
	sqe = del;
	sqe.cdw10 = 1;
	EXPECT(NVME_SC_INVALID_QUEUE_DELETION);
	sqe.cdw10 = 2;
	EXPECT(NVME_SC_INVALID_QID);
	sqe.cdw10 = 0;
	EXPECT(NVME_SC_INVALID_QID);
	sqe.opcode = NVME_ADMIN_DELETE_SQ;
	EXPECT(NVME_SC_INVALID_QID);
	sqe.cdw10 = 1;
	EXPECT(NVME_SC_INVALID_QID);
	sqe.cdw10 = 2;
	EXPECT(0);
	sqe.opcode = NVME_ADMIN_DELETE_CQ;
	sqe.cdw10 = 1;
	EXPECT(0);
	EXPECT(NVME_SC_INVALID_QID);
}

static struct nvme_sqe feature(uint8_t opcode, uint32_t id, uint32_t select, uint32_t dw11)
{
	return (struct nvme_sqe){ .opcode = opcode, .cdw10 = id | select << 8, .cdw11 = dw11 };
}

static void features_are_set_and_told(void **state)
{
	static const struct {
		uint32_t id, value, by_default;
	} plain[] = {
		{ NVME_FEATURE_ARBITRATION, 0x01020303, 7 },
		{ NVME_FEATURE_COALESCING, 0x0a04, 0 },
		{ NVME_FEATURE_ATOMICITY, 1, 0 },
		{ NVME_FEATURE_ASYNC_EVENTS, 0x1ff, 0 },
		{ NVME_FEATURE_TEMPERATURE, 320, 343 },
		{ NVME_FEATURE_TEMPERATURE, 1 << 20 | 270, 0 },
		{ NVME_FEATURE_VECTOR, 3 | NVME_VECTOR_CD, 3 },
	};
	struct rig *r = *state;
	uint32_t result;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		uint32_t id = plain[i].id,
			 dw11 = id == NVME_FEATURE_VECTOR ? 3 : plain[i].value & (3u << 20);
		struct nvme_sqe sqe = feature(NVME_ADMIN_SET_FEATURES, id, 0, plain[i].value);

		assert_int_equal(rig_admin(r, sqe, NULL), 0);
		sqe = feature(NVME_ADMIN_GET_FEATURES, id, NVME_SELECT_CURRENT, dw11);
		assert_int_equal(rig_admin(r, sqe, &result), 0);
		assert_int_equal(result, id == NVME_FEATURE_TEMPERATURE ? plain[i].value & 0xffff
									: plain[i].value);
		sqe = feature(NVME_ADMIN_GET_FEATURES, id, NVME_SELECT_DEFAULT, dw11);
		assert_int_equal(rig_admin(r, sqe, &result), 0);
		assert_int_equal(result, plain[i].by_default);
		sqe = feature(NVME_ADMIN_GET_FEATURES, id, NVME_SELECT_SUPPORTED, dw11);
		assert_int_equal(rig_admin(r, sqe, &result), 0);
		assert_int_equal(result, NVME_FEATURE_CHANGEABLE);
		sqe = feature(NVME_ADMIN_SET_FEATURES, id, 0, plain[i].value);
		sqe.cdw10 |= NVME_FEATURE_SAVE;
		assert_int_equal(rig_admin(r, sqe, NULL), NVME_SC_FEATURE_NOT_SAVEABLE);
	}
	assert_int_equal(rig_admin(r, feature(NVME_ADMIN_SET_FEATURES, 0x42, 0, 0), NULL),
			 NVME_SC_INVALID_FIELD);
	assert_int_equal(rig_admin(r, feature(NVME_ADMIN_GET_FEATURES, 0, 0, 0), NULL),
			 NVME_SC_INVALID_FIELD);
	assert_int_equal(rig_admin(r, feature(NVME_ADMIN_GET_FEATURES, 1, 4, 0), NULL),
			 NVME_SC_INVALID_FIELD);
	assert_int_equal(
		rig_admin(r, feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_VECTOR, 0, 9), NULL),
		NVME_SC_INVALID_FIELD);
	assert_int_equal(
		rig_admin(r, feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_POWER, 0, 1), NULL),
		NVME_SC_INVALID_FIELD);
	/* There is no write cache in memory. */
	assert_int_equal(
		rig_admin(r, feature(NVME_ADMIN_GET_FEATURES, NVME_FEATURE_WRITE_CACHE, 0, 0),
			  NULL),
		NVME_SC_INVALID_FIELD);
	assert_int_equal(
		rig_admin(r,
			  feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_QUEUES, 0, 3 | 3 << 16),
			  &result),
		0);
	assert_int_equal(result, 7 | 7 << 16);
	assert_int_equal(
		rig_admin(r, feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_QUEUES, 0, 0xffff),
			  NULL),
		NVME_SC_INVALID_FIELD);
}

static void queues_are_counted_before_there_are_any(void **state)
{
	struct rig *r = *state;
	struct host_pair q;

	rig_pair(r, &q, 1, 16, 0);
	assert_int_equal(
		rig_admin(r, feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_QUEUES, 0, 0), NULL),
		NVME_SC_SEQUENCE);
	host_pair_forget(&q);
}

static struct nvme_sqe log_sqe(uint32_t page, uint64_t len, uint64_t offset, uint64_t at)
{
	return (struct nvme_sqe){ .opcode = NVME_ADMIN_GET_LOG_PAGE,
				  .prp1 = at,
				  .cdw10 = page | (uint32_t)(len / 4 - 1) << 16,
				  .cdw12 = (uint32_t)offset };
}

static void logs_tell_what_happened(void **state)
{
	struct rig *r = *state;
	struct host_pair q;
	uint64_t at = host_take(&r->h, NVME_PAGE), data = host_take(&r->h, NVME_PAGE);
	const struct nvme_error_log *errors = host_at(&r->h, at);
	const struct nvme_smart_log *smart = host_at(&r->h, at);
	const struct nvme_firmware_log *firmware = host_at(&r->h, at);
	struct nvme_sqe sqe;

	rig_pair(r, &q, 1, 16, 0);
	sqe = host_rw(&r->h, NVME_IO_WRITE, 0, 8, data, 4096);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	sqe.cdw10 = UINT32_MAX;
	assert_int_equal(host_run(&q, &sqe, NULL), NVME_SC_LBA_RANGE);
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_ERROR, 4096, 0, at), NULL), 0);
	assert_int_equal(errors[0].count, 1);
	assert_int_equal(errors[0].sq_id, 1);
	assert_int_equal(errors[0].cid, 2);
	assert_int_equal(errors[0].lba, UINT32_MAX);
	assert_int_equal(errors[0].status >> 1, NVME_SC_LBA_RANGE | NVME_SC_DNR);
	assert_int_equal(errors[1].count, 0);
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_SMART, 512, 0, at), NULL), 0);
	assert_int_equal(smart->host_writes[0], 1);
	assert_int_equal(smart->data_units_written[0], 1);
	assert_int_equal(smart->error_log_entries[0], 1);
	assert_int_equal(smart->critical_warning, 0);
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_FIRMWARE, 512, 0, at), NULL), 0);
	assert_int_equal(firmware->afi, 1);
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_SMART, 256, 32, at), NULL), 0);
	assert_int_equal(*(uint64_t *)host_at(&r->h, at + 16),
			 1); /* data units written, moved */
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_SMART, 256, 516, at), NULL),
			 NVME_SC_INVALID_FIELD);
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_SMART, 256, 2, at), NULL),
			 NVME_SC_INVALID_FIELD);
	assert_int_equal(rig_admin(r, log_sqe(0x42, 256, 0, at), NULL),
			 NVME_SC_INVALID_LOG_PAGE);
	assert_int_equal(rig_admin(r, log_sqe(NVME_LOG_SMART, 128 << 10, 0, at), NULL),
			 NVME_SC_INVALID_FIELD);
	host_pair_forget(&q);
}

static void requests_for_events_are_bounded_and_can_be_aborted(void **state)
{
	struct rig *r = *state;
	struct nvme_sqe aer = { .opcode = NVME_ADMIN_ASYNC_EVENT },
			abort = { .opcode = NVME_ADMIN_ABORT };
	struct nvme_cqe cqe;
	uint16_t first = 0;
	bool aborted = false, answered = false;

	for (int i = 0; i < 4; i++) {
		uint16_t cid = host_submit(&r->admin, &aer);

		first = i ? first : cid;
	}
	host_ring(&r->admin);
	rig_rounds(r, 50);
	assert_false(host_poll(&r->admin, &cqe));
	assert_int_equal(rig_admin(r, aer, NULL), NVME_SC_AER_LIMIT);
	abort.cdw10 = (uint32_t)first << 16;
	host_submit(&r->admin, &abort);
	host_ring(&r->admin);
	for (int i = 0; i < 2; i++) {
		assert_true(host_wait(&r->admin, &cqe));
		if (cqe.cid == first) {
			assert_int_equal(NVME_CQE_STATUS(cqe.status), NVME_SC_ABORT_REQUESTED);
			aborted = true;
		} else {
			assert_int_equal(NVME_CQE_STATUS(cqe.status), 0);
			assert_int_equal(cqe.result, 0);
			answered = true;
		}
	}
	assert_true(aborted && answered);
	abort.cdw10 = 0xfff0u << 16;
	uint32_t result;
	assert_int_equal(rig_admin(r, abort, &result), 0);
	assert_int_equal(result, 1);
	abort.cdw10 = 7;
	assert_int_equal(rig_admin(r, abort, &result), NVME_SC_INVALID_FIELD);
}

static void interrupts_go_to_their_eventfd(void **state)
{
	struct rig *r = *state;
	struct slot_message m = { .kind = SLOT_VECTOR, .index = 2 };
	uint64_t data = host_take(&r->h, NVME_PAGE), count;
	struct nvme_sqe sqe = host_rw(&r->h, NVME_IO_READ, 0, 8, data, 4096);
	int fd = eventfd(0, EFD_NONBLOCK);
	struct host_pair q;

	assert_int_equal(host_ask(&r->h, &m, &fd, 1, NULL), 0);
	assert_int_equal(host_pair_create(&r->h, &r->admin, &q, 1, 16, 0, 2), 0);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_int_equal(read(fd, &count, 8), 8);
	assert_int_equal(count, 1);
	/* One that polls gets none. */
	q.page->polling = 1;
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_int_equal(read(fd, &count, 8), -1);
	q.page->polling = 0;
	/* A masked one waits. */
	host_write(&r->h, NVME_REG_INTMS, 1 << 2);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_int_equal(read(fd, &count, 8), -1);
	assert_int_equal(host_read(&r->h, NVME_REG_INTMC), 1 << 2);
	host_write(&r->h, NVME_REG_INTMC, 1 << 2);
	assert_int_equal(read(fd, &count, 8), 8);
	/* Four entries, or 25.5 ms, are told at once; not those of a vector that is left out. */
	assert_int_equal(
		rig_admin(r,
			  feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_COALESCING, 0, 0xff03),
			  NULL),
		0);
	nvmed_clock(r->c);
	for (int i = 0; i < 4; i++)
		host_submit(&q, &sqe);
	host_ring(&q);
	for (int i = 0; i < 4; i++) {
		struct nvme_cqe cqe;

		assert_true(host_wait(&q, &cqe));
	}
	rig_rounds(r, 1);
	assert_int_equal(read(fd, &count, 8), 8);
	assert_int_equal(count, 1);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	for (int i = 0; i < 100000000 && read(fd, &count, 8) != 8; i++)
		rig_rounds(r, 1); /* the time ends it */
	assert_int_equal(count, 1);
	assert_int_equal(rig_admin(r,
				   feature(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_VECTOR, 0,
					   2 | NVME_VECTOR_CD),
				   NULL),
			 0);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_int_equal(read(fd, &count, 8), 8);
	/* An eventfd that is full blocks nobody. */
	count = UINT64_MAX - 1;
	assert_int_equal(write(fd, &count, 8), 8);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_true(r->c->vectors.each[2].fd >= 0);
	/* Nor does one that would. */
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_true(r->c->vectors.each[2].fd >= 0);
	assert_int_equal(read(fd, &count, 8), 8);
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	rig_rounds(r, 1);
	assert_int_equal(read(fd, &count, 8), 8);
	assert_int_equal(count, 1);
	host_pair_forget(&q);
	close(fd);
}

static void a_reset_ends_queues_and_keeps_what_is_mapped(void **state)
{
	struct rig *r = *state;
	uint64_t data = host_take(&r->h, 1 << 20);

	for (int i = 0; i < 1000; i++) {
		struct host_pair q;
		struct nvme_sqe sqe;

		rig_pair(r, &q, 1, 16, 0);
		for (int n = 0; n < 10; n++) {
			sqe = host_rw(&r->h, NVME_IO_READ, 0, 2048, data, 1 << 20);
			host_submit(&q, &sqe);
		}
		host_ring(&q);
		rig_rounds(r, i % 3);
		reset(r);
		host_pair_forget(&q);
		r->h.used = 2 << 20;
		assert_int_equal(host_enable(&r->h, &r->admin, 64), 0);
	}
}

static void a_read_only_namespace_is_not_written(void **state)
{
	const struct nvmed_config config = {
		.queue_cnt = 1, .block = 4096, .granule = 4096, .read_only = true, .serial = "RO"
	};
	struct rig r;
	struct host_pair q;
	uint64_t data;
	struct nvme_sqe sqe;

	rig_open_enabled(&r, RIG_MEMORY, &config);
	data = host_take(&r.h, NVME_PAGE);
	rig_pair(&r, &q, 1, 16, 0);
	sqe = host_rw(&r.h, NVME_IO_WRITE, 0, 1, data, 4096);
	assert_int_equal(host_run(&q, &sqe, NULL), NVME_SC_WRITE_PROTECTED);
	sqe.opcode = NVME_IO_WRITE_ZEROES;
	assert_int_equal(host_run(&q, &sqe, NULL), NVME_SC_WRITE_PROTECTED);
	sqe.opcode = NVME_IO_DSM;
	assert_int_equal(host_run(&q, &sqe, NULL), NVME_SC_WRITE_PROTECTED);
	sqe.opcode = NVME_IO_READ;
	assert_int_equal(host_run(&q, &sqe, NULL), 0);
	sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_IDENTIFY, .nsid = 1, .prp1 = data };
	assert_int_equal(rig_admin(&r, sqe, NULL), 0);
	assert_int_equal(((struct nvme_id_ns *)host_at(&r.h, data))->nsattr, 1);
	assert_int_equal(((struct nvme_id_ns *)host_at(&r.h, data))->nsze, RIG_LEN / 4096);
	host_pair_forget(&q);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(capabilities_are_told),
		TEST(a_bad_enable_is_fatal_until_reset),
		TEST(the_admin_queue_losing_its_memory_is_fatal),
		TEST(a_shutdown_ends_in_order),
		TEST(registers_are_read_and_written_whole),
		TEST(controller_memory_over_a_window_is_invalid),
		TEST(identify_tells_what_there_is),
		TEST(what_is_wrong_with_a_queue_is_said),
		TEST(features_are_set_and_told),
		TEST(queues_are_counted_before_there_are_any),
		TEST(logs_tell_what_happened),
		TEST(requests_for_events_are_bounded_and_can_be_aborted),
		TEST(interrupts_go_to_their_eventfd),
		TEST(a_reset_ends_queues_and_keeps_what_is_mapped),
		cmocka_unit_test(a_read_only_namespace_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
