/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ends of tests of triggered operations; see trigger_ends.h. Called by the tests. */
#include "trigger_ends.h"

const char *provider;
struct end a, b;
struct fid_mr *mr;
struct fid_cntr *when, *done;
fi_addr_t to_b, to_a;
uint8_t region[REGION], buf[REGION], got[REGION];
struct fi_triggered_context2 contexts[16];
struct fi_cq_tagged_entry entry;

struct end_attr trigger_attr(void)
{
	return (struct end_attr){ .provider = provider,
				  .caps = FI_RMA | FI_ATOMIC | FI_TRIGGER,
				  .threading = FI_THREAD_DOMAIN };
}

void trigger_open(const struct end_attr *attr)
{
	end_open(&a, attr);
	end_open(&b, attr);
	to_b = end_knows(&a, &b);
	to_a = end_knows(&b, &a);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &when, NULL), 0);
	assert_int_equal(fi_cntr_open(a.domain, NULL, &done, NULL), 0);
	assert_int_equal(fi_mr_reg(b.domain, region, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
				   0, KEY, 0, &mr, NULL),
			 0);
	memset(region, 0, sizeof(region));
	memset(got, 0, sizeof(got));
	for (size_t i = 0; i < REGION; i++)
		buf[i] = (uint8_t)(i * 7 + 1);
}

bool trigger_offered(const struct end_attr *attr)
{
	struct fi_info *info = end_info(attr);

	fi_freeinfo(info);
	return info != NULL;
}

int trigger_setup(void **state)
{
	struct end_attr attr = trigger_attr();

	trigger_open(&attr);
	return 0;
}

int trigger_teardown(void **state)
{
	if (!mr) /* it was skipped */
		return 0;
	assert_int_equal(fi_close(&mr->fid), 0);
	if (a.ep) {
		assert_int_equal(fi_close(&when->fid), 0);
		assert_int_equal(fi_close(&done->fid), 0);
		end_close(&a);
	}
	end_close(&b);
	mr = NULL;
	return 0;
}

/* A round of progress of both. */
void turn(void)
{
	fi_cq_read(a.cq, NULL, 0);
	fi_cq_read(b.cq, NULL, 0);
}

void turns(int cnt)
{
	while (cnt--)
		turn();
}

static bool reads(struct end *e)
{
	ssize_t ret = fi_cq_read(e->cq, &entry, 1);

	assert_true(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1;
}

/* The next completion of an end. */
void completes(struct end *e, void *context, uint64_t flags)
{
	END_UNTIL(reads(e), turn());
	assert_ptr_equal(entry.op_context, context);
	assert_int_equal(entry.flags & ~FI_REMOTE_CQ_DATA, flags);
}

void fails(struct end *e, void *context, int err)
{
	struct fi_cq_err_entry error = { 0 };

	END_UNTIL(fi_cq_readerr(e->cq, &error, 0) == 1, turn());
	assert_ptr_equal(error.op_context, context);
	assert_int_equal(error.err, err);
}

void nothing(struct end *e)
{
	turns(20);
	assert_false(reads(e));
}

void *trigger(int i, uint64_t threshold)
{
	contexts[i] = (struct fi_triggered_context2){ .event_type = FI_TRIGGER_THRESHOLD };
	contexts[i].trigger.threshold.cntr = when;
	contexts[i].trigger.threshold.threshold = threshold;
	return &contexts[i];
}

ssize_t tsend_when(int i, uint64_t threshold, uint64_t flags)
{
	struct iovec iov = { &buf[i], 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov,
				     .iov_count = 1,
				     .addr = to_b,
				     .tag = 100 + (uint64_t)i,
				     .context = trigger(i, threshold) };

	return fi_tsendmsg(a.ep, &msg, FI_TRIGGER | flags);
}

void receives(int i)
{
	memset(got, 0, 8);
	assert_int_equal(fi_trecv(b.ep, got, 8, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &got), 0);
	completes(&b, &got, FI_TAGGED | FI_RECV);
	assert_int_equal(entry.tag, 100 + i);
	assert_memory_equal(got, &buf[i], 8);
}
