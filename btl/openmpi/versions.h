/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What differs between the interfaces of Open MPI 4.1 and 5.0. Each of the two defines the same
 * names, and no other file of the component asks for the version.
 */
#ifndef BTL_WEFT_VERSIONS_H
#define BTL_WEFT_VERSIONS_H

#include "opal_config.h"
#include "opal/mca/btl/btl.h"

/*
 * btl_weft_deliver - hand a message to the function that is registered for its tag
 * @data: the caller's, until this returns
 */
static inline void btl_weft_deliver(mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				    const void *data, size_t len);

#if OPAL_MAJOR_VERSION < 5

#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"

#define BTL_WEFT_MODEX_SCOPE OPAL_PMIX_GLOBAL
#define BTL_WEFT_FLAGS_DONE  0

static inline void btl_weft_deliver(mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				    const void *data, size_t len)
{
	const mca_btl_active_message_callback_t *to = &mca_btl_base_active_message_trigger[tag];
	mca_btl_base_segment_t segment = { { .pval = (void *)(uintptr_t)data }, len };
	mca_btl_base_descriptor_t message = { .des_segments = &segment, .des_segment_count = 1 };

	if (to->cbfunc)
		to->cbfunc(module, tag, &message, to->cbdata);
}

#else

#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"

#define BTL_WEFT_MODEX_SCOPE PMIX_GLOBAL
/* an operation that has ended is seen at its target */
#define BTL_WEFT_FLAGS_DONE  MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION

static inline void btl_weft_deliver(mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				    const void *data, size_t len)
{
	const mca_btl_active_message_callback_t *to = &mca_btl_base_active_message_trigger[tag];
	const mca_btl_base_segment_t segment = { { .pval = (void *)(uintptr_t)data }, len };
	const mca_btl_base_receive_descriptor_t message = {
		.des_segments = &segment,
		.des_segment_count = 1,
		.tag = tag,
		.cbdata = to->cbdata,
	};

	if (to->cbfunc)
		to->cbfunc(module, &message);
}

#endif

#endif
