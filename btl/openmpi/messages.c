/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Active messages, which pml/ob1 is built on: descriptors, sending, and delivering what arrives.
 * Called by Open MPI, on any of its threads.
 *
 * A descriptor has room for a whole message, so that header and data leave as one piece: the data
 * are packed behind the header once, here, and sent from there. Long messages of ob1 are gets and
 * puts.
 */
#include "btl_weft.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rdma/fi_errno.h"

/* Room of a small descriptor: what ob1 tells of a long message, with its handle, fits. */
#define SMALL_LEN 512

/*
 * Bytes of the longest message that is sent before the receiver asks for it, header included. All
 * that fits: copying 12 KiB twice takes 2.7 us here, having them got 6.6 us.
 */
#define EAGER_LEN 16384

/* Data that ob1 puts in pieces, where it does not get them at once (opal_leave_pinned is 0). */
#define PIECE_LEN    ((size_t)1 << 20)
#define PIPELINE_MIN ((size_t)64 << 10)

/*
 * struct btl_weft_message - a descriptor, and with threads a message that has arrived
 * @base:  Open MPI's part
 * @next:  in the module's list of free ones or of those to be delivered
 * @room:  of @bytes
 */
struct btl_weft_message {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segment;
	struct btl_weft_op op;
	struct btl_weft_message *next;
	size_t room;
	mca_btl_base_tag_t tag;
	_Alignas(64) unsigned char bytes[];
};

static struct btl_weft_message *message_of(struct btl_weft_op *op)
{
	return (struct btl_weft_message *)((char *)op - offsetof(struct btl_weft_message, op));
}

static int begin(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct btl_weft_message *message = message_of(op);

	return weft_btl_send(module->ctx, op->endpoint->peer, message->tag,
			     message->segment.seg_addr.pval, message->segment.seg_len, NULL,
			     &op->op);
}

static struct btl_weft_message **free_list(struct btl_weft_module *module, size_t room)
{
	return room <= SMALL_LEN ? &module->small : &module->large;
}

static void give(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct btl_weft_message *message = message_of(op);
	struct btl_weft_message **list = free_list(module, message->room);

	message->next = *list;
	*list = message;
}

static void give_back(struct btl_weft_module *module, struct btl_weft_message *message)
{
	OPAL_THREAD_LOCK(&module->lock);
	btl_weft_give_locked(module, &message->op);
	OPAL_THREAD_UNLOCK(&module->lock);
}

static void end(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct btl_weft_message *message = message_of(op);
	/* the function may give back a message that is its own */
	bool own = message->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	if (message->base.des_cbfunc)
		message->base.des_cbfunc(&module->super, op->endpoint, &message->base,
					 btl_weft_error(op->op.status));
	if (own)
		give_back(module, message);
}

static void destroy(struct btl_weft_op *op)
{
	struct btl_weft_message *message = message_of(op);

	OBJ_DESTRUCT(&message->base);
	free(message);
}

static struct btl_weft_message *create_locked(struct btl_weft_module *module, size_t room)
{
	size_t len = (sizeof(struct btl_weft_message) + room + 63) / 64 * 64;
	struct btl_weft_message *message = aligned_alloc(64, len);

	if (!message)
		return NULL;
	memset(message, 0, sizeof(*message));
	OBJ_CONSTRUCT(&message->base, mca_btl_base_descriptor_t);
	message->room = room;
	message->segment.seg_addr.pval = message->bytes;
	message->base.des_segments = &message->segment;
	message->base.des_segment_count = 1;
	message->op.begin = begin;
	message->op.end = end;
	message->op.give = give;
	message->op.destroy = destroy;
	btl_weft_add_locked(module, &message->op);
	return message;
}

/* Returns room for @len bytes, or NULL: without memory, or more than a message has. */
static struct btl_weft_message *take_locked(struct btl_weft_module *module, size_t len,
					    uint32_t flags)
{
	struct btl_weft_message **list = free_list(module, len), *message = *list;

	if (len > module->message_max)
		return NULL;
	if (message)
		*list = message->next;
	else
		message = create_locked(module,
					len <= SMALL_LEN ? SMALL_LEN : module->message_max);
	if (!message)
		return NULL;
	message->segment.seg_len = len;
	message->base.des_flags = flags;
	message->base.des_cbfunc = NULL;
	message->base.order = MCA_BTL_NO_ORDER;
	return message;
}

static struct btl_weft_message *take(struct btl_weft_module *module, size_t len, uint32_t flags)
{
	struct btl_weft_message *message;

	OPAL_THREAD_LOCK(&module->lock);
	message = take_locked(module, len, flags);
	OPAL_THREAD_UNLOCK(&module->lock);
	return message;
}

static mca_btl_base_descriptor_t *alloc_message(mca_btl_base_module_t *base,
						struct mca_btl_base_endpoint_t *endpoint,
						uint8_t order, size_t len, uint32_t flags)
{
	struct btl_weft_message *message = take(btl_weft_module_of(base), len, flags);

	return message ? &message->base : NULL;
}

static int free_message(mca_btl_base_module_t *base, mca_btl_base_descriptor_t *descriptor)
{
	give_back(btl_weft_module_of(base), (struct btl_weft_message *)descriptor);
	return OPAL_SUCCESS;
}

/* Packs what comes next of an application's data. Returns how many bytes, or -1. */
static ssize_t pack(struct opal_convertor_t *convertor, void *to, size_t len)
{
	struct iovec iov = { to, len };
	uint32_t cnt = 1;

	if (!len)
		return 0;
	return opal_convertor_pack(convertor, &iov, &cnt, &len) < 0 ? -1 : (ssize_t)len;
}

static mca_btl_base_descriptor_t *prepare_src(mca_btl_base_module_t *base,
					      struct mca_btl_base_endpoint_t *endpoint,
					      struct opal_convertor_t *convertor, uint8_t order,
					      size_t reserve, size_t *len, uint32_t flags)
{
	struct btl_weft_module *module = btl_weft_module_of(base);
	struct btl_weft_message *message;
	ssize_t packed;

	if (reserve > base->btl_max_send_size)
		return NULL;
	if (*len > base->btl_max_send_size - reserve)
		*len = base->btl_max_send_size - reserve;
	message = take(module, reserve + *len, flags);
	if (!message)
		return NULL;
	packed = pack(convertor, message->bytes + reserve, *len);
	if (packed < 0) {
		give_back(module, message);
		return NULL;
	}
	*len = (size_t)packed;
	message->segment.seg_len = reserve + *len;
	return &message->base;
}

static int send_message(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
			mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	struct btl_weft_message *message = (struct btl_weft_message *)descriptor;
	struct btl_weft_module *module = btl_weft_module_of(base);
	/* once it is under way another thread may see its end */
	uint32_t flags = descriptor->des_flags;
	int ret;

	message->tag = tag;
	message->op.endpoint = endpoint;
	OPAL_THREAD_LOCK(&module->lock);
	ret = btl_weft_begin_locked(module, &message->op);
	OPAL_THREAD_UNLOCK(&module->lock);
	if (ret != 1)
		return btl_weft_error(ret);
	if (flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK)
		end(module, &message->op);
	else if (flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)
		give_back(module, message);
	return 1;
}

/*
 * Takes, fills and begins a message, unless others wait for the same device.
 * Returns as weft_btl_send().
 */
static int send_now_locked(struct btl_weft_module *module,
			   struct mca_btl_base_endpoint_t *endpoint,
			   struct opal_convertor_t *convertor, const struct iovec *header,
			   size_t len, mca_btl_base_tag_t tag)
{
	struct btl_weft_message *message;
	int ret;

	if (endpoint->pending.first)
		return -FI_EAGAIN;
	message = take_locked(module, header->iov_len + len, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
	if (!message)
		return -FI_EAGAIN;
	memcpy(message->bytes, header->iov_base, header->iov_len);
	if (pack(convertor, message->bytes + header->iov_len, len) == (ssize_t)len) {
		message->tag = tag;
		message->op.endpoint = endpoint;
		ret = btl_weft_try_locked(module, &message->op);
	} else {
		ret = -FI_EIO;
	}
	if (ret)
		btl_weft_give_locked(module, &message->op);
	return ret;
}

static int send_now(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint,
		    struct opal_convertor_t *convertor, void *header, size_t header_len,
		    size_t len, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
		    mca_btl_base_descriptor_t **descriptor)
{
	struct btl_weft_module *module = btl_weft_module_of(base);
	const struct iovec iov = { header, header_len };
	int ret;

	OPAL_THREAD_LOCK(&module->lock);
	ret = send_now_locked(module, endpoint, convertor, &iov, len, tag);
	OPAL_THREAD_UNLOCK(&module->lock);
	if (ret >= 0)
		return OPAL_SUCCESS;
	/* the caller fills this one, and waits until it has been sent */
	if (descriptor)
		*descriptor = alloc_message(base, endpoint, order, header_len + len, flags);
	return ret == -FI_EAGAIN ? OPAL_ERR_RESOURCE_BUSY : btl_weft_error(ret);
}

/*
 * Keeps a copy of a message, with the module's lock held. Without memory the process ends: nobody
 * sends it again, and who waits for it would wait for ever.
 */
static void keep_locked(struct btl_weft_module *module, mca_btl_base_tag_t tag,
			const void *data, size_t len)
{
	struct btl_weft_message *message = take_locked(module, len, 0);

	if (!message) {
		fprintf(stderr, "btl:weft: no memory for a message of %zu bytes\n", len);
		abort();
	}
	memcpy(message->bytes, data, len);
	message->tag = tag;
	message->next = NULL;
	if (module->received)
		module->received_last->next = message;
	else
		module->received = message;
	module->received_last = message;
}

/* Called from within the library's progress. */
static void arrived(void *arg, const void *data, size_t len)
{
	const struct btl_weft_tag *it = arg;

	if (opal_using_threads())
		keep_locked(it->module, it->tag, data, len);
	else
		btl_weft_deliver(&it->module->super, it->tag, data, len);
}

int btl_weft_messages_deliver(struct btl_weft_module *module)
{
	struct btl_weft_message *message, *next;
	int cnt = 0;

	OPAL_THREAD_LOCK(&module->lock);
	while (!module->delivers && (message = module->received)) {
		module->received = NULL;
		module->delivers = true;
		for (; message; message = next, cnt++) {
			next = message->next;
			OPAL_THREAD_UNLOCK(&module->lock);
			btl_weft_deliver(&module->super, message->tag, message->bytes,
					 message->segment.seg_len);
			OPAL_THREAD_LOCK(&module->lock);
			btl_weft_give_locked(module, &message->op);
		}
		module->delivers = false;
	}
	OPAL_THREAD_UNLOCK(&module->lock);
	return cnt;
}

static int listen_all(struct btl_weft_module *module)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < MCA_BTL_TAG_MAX; i++) {
		module->tags[i].module = module;
		module->tags[i].tag = (mca_btl_base_tag_t)i;
		ret = weft_btl_listen(module->btl, (uint8_t)i, arrived, &module->tags[i]);
	}
	return ret;
}

static void at_most(size_t *value, size_t most)
{
	if (!*value || *value > most)
		*value = most;
}

void btl_weft_messages_open(struct btl_weft_module *module)
{
	size_t most = weft_btl_message_max(module->btl);
	mca_btl_base_module_t *m = &module->super;

	module->message_max = most;
	if (!(m->btl_flags & MCA_BTL_FLAGS_SEND) || !most || listen_all(module)) {
		m->btl_flags &= ~(uint32_t)MCA_BTL_FLAGS_SEND;
		return;
	}
	at_most(&m->btl_max_send_size, most);
	at_most(&m->btl_eager_limit, m->btl_max_send_size);
	at_most(&m->btl_rndv_eager_limit, m->btl_eager_limit);
}

void btl_weft_messages_drop(struct btl_weft_module *module)
{
	if (!(module->super.btl_flags & MCA_BTL_FLAGS_SEND))
		return;
	for (size_t i = 0; i < MCA_BTL_TAG_MAX; i++)
		weft_btl_listen(module->btl, (uint8_t)i, NULL, NULL);
}

void btl_weft_messages_describe(mca_btl_base_module_t *m)
{
	m->btl_flags |= MCA_BTL_FLAGS_SEND;
	m->btl_eager_limit = EAGER_LEN;
	m->btl_rndv_eager_limit = EAGER_LEN;
	m->btl_max_send_size = SIZE_MAX;
	m->btl_rdma_pipeline_send_length = 0;
	m->btl_rdma_pipeline_frag_size = PIECE_LEN;
	m->btl_min_rdma_pipeline_size = PIPELINE_MIN;
	m->btl_alloc = alloc_message;
	m->btl_free = free_message;
	m->btl_prepare_src = prepare_src;
	m->btl_send = send_message;
	m->btl_sendi = send_now;
}
