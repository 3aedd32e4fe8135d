/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reference model; see reference.h. Called by model_test.c. It is meant to be seen to be
 * right, not to be fast.
 */
#include "reference.h"

void ref_init(struct ref *ref)
{
	*ref = (struct ref){ 0 };
	for (int i = 0; i < REF_ENDS_MAX; i++) {
		for (int t = 0; t < 2; t++) {
			list_init(&ref->posted[i][t]);
			list_init(&ref->stored[i][t]);
		}
	}
}

void ref_fini(struct ref *ref)
{
	for (int i = 0; i < REF_ENDS_MAX; i++) {
		for (int k = 0; k < REF_ENDS_MAX; k++) {
			free(ref->pairs[i][k].msgs);
			free(ref->pairs[i][k].here);
		}
	}
}

void ref_send(struct ref *ref, struct ref_msg *msg)
{
	struct ref_pair *p = &ref->pairs[msg->from][msg->to];

	if (p->cnt == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->msgs = realloc(p->msgs, p->cap * sizeof(struct ref_msg *));
		p->here = realloc(p->here, p->cap * sizeof(*p->here));
		if (!p->msgs || !p->here)
			abort();
	}
	list_init(&msg->link);
	msg->state = REF_SENT;
	p->here[p->cnt] = false;
	p->msgs[p->cnt++] = msg;
}

bool ref_unsend(struct ref *ref, struct ref_msg *msg)
{
	struct ref_pair *p = &ref->pairs[msg->from][msg->to];

	for (size_t i = p->turn; i < p->cnt; i++) {
		if (p->msgs[i] != msg)
			continue;
		/* What is sent in order has not left any earlier than what it waits behind. */
		for (size_t k = i; k < p->cnt; k++)
			if (p->here[k])
				return false;
		memmove(&p->msgs[i], &p->msgs[i + 1],
			(p->cnt - i - 1) * sizeof(struct ref_msg *));
		p->cnt--;
		msg->state = REF_CANCELLED;
		return true;
	}
	return false;
}

struct ref_msg *ref_header(struct ref *ref, int from, int to, uint32_t seq)
{
	struct ref_pair *p = &ref->pairs[from][to];
	uint32_t at = seq - (uint32_t)p->first_seq;

	if (at >= p->cnt || p->here[at])
		return NULL;
	p->here[at] = true;
	return p->msgs[at];
}

static bool fits(const struct ref_recv *recv, const struct ref_msg *msg)
{
	if (recv->tagged != msg->tagged)
		return false;
	if (recv->from != REF_ANYONE && recv->from != msg->from)
		return false;
	return (recv->tag & ~recv->ignore) == (msg->tag & ~recv->ignore);
}

void ref_give(struct ref *ref, struct ref_recv *recv, struct ref_msg *msg)
{
	msg->state = REF_MATCHED;
	msg->recv = recv;
	recv->msg = msg;
	recv->posted = false;
	ref->matched(recv, msg);
}

static void arrive(struct ref *ref, struct ref_msg *msg)
{
	struct ref_recv *recv;

	if (msg->access) {
		msg->state = REF_CARRIED;
		ref->carried(msg);
		return;
	}
	list_for_each_entry(recv, &ref->posted[msg->to][msg->tagged], link) {
		if (!fits(recv, msg))
			continue;
		list_remove(&recv->link);
		ref->posted_cnt[msg->to]--;
		ref_give(ref, recv, msg);
		return;
	}
	msg->state = REF_STORED;
	list_add_tail(&ref->stored[msg->to][msg->tagged], &msg->link);
	ref->stored_cnt[msg->to]++;
}

void ref_turns(struct ref *ref, int from, int to)
{
	struct ref_pair *p = &ref->pairs[from][to];

	while (p->turn < p->cnt && p->here[p->turn])
		arrive(ref, p->msgs[p->turn++]);
}

void ref_cut_sender(struct ref *ref, int from, int to, size_t left)
{
	struct ref_pair *p = &ref->pairs[from][to];

	while (p->cnt > left)
		p->msgs[--p->cnt]->state = REF_FAILED;
}

void ref_cut_receiver(struct ref *ref, int from, int to)
{
	struct ref_pair *p = &ref->pairs[from][to];

	for (size_t i = p->turn; i < p->cnt; i++)
		p->here[i] = false;
}

struct ref_msg *ref_fits(struct ref *ref, int at, const struct ref_recv *recv)
{
	struct ref_msg *msg;

	list_for_each_entry(msg, &ref->stored[at][recv->tagged], link) {
		if (fits(recv, msg))
			return msg;
	}
	return NULL;
}

void ref_take(struct ref *ref, struct ref_msg *msg, enum ref_msg_state state)
{
	list_remove(&msg->link);
	ref->stored_cnt[msg->to]--;
	msg->state = state;
}

void ref_post(struct ref *ref, int at, struct ref_recv *recv)
{
	struct ref_msg *msg = ref_fits(ref, at, recv);

	list_init(&recv->link);
	if (msg) {
		ref_take(ref, msg, REF_MATCHED);
		ref_give(ref, recv, msg);
		return;
	}
	recv->posted = true;
	list_add_tail(&ref->posted[at][recv->tagged], &recv->link);
	ref->posted_cnt[at]++;
}

bool ref_cancel(struct ref *ref, int at, struct ref_recv *recv)
{
	if (!recv->posted)
		return false;
	list_remove(&recv->link);
	ref->posted_cnt[at]--;
	recv->posted = false;
	return true;
}
