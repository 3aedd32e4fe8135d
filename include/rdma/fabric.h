/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The root of the OFI interface: object identifiers, capability and mode
 * bits, struct fi_info and the calls that find and open a fabric. Included by
 * every program, every provider and the core. The inline calls run on the
 * caller's thread and go straight to the object's own table.
 *
 * Names, values and layouts are libfabric's: an ABI. tests/abi compares them
 * with libfabric 1.17's headers and with the table of the 2.x level.
 * Source: fabric(7), fi_fabric(3), fi_getinfo(3), fi_control(3), fi_nic(3).
 */
#ifndef FABRIC_H
#define FABRIC_H

#include <rdma/fi_types.h>
#include <rdma/fi_errno.h>

#ifdef __GNUC__
#define FI_DEPRECATED_FUNC	    __attribute__((deprecated))
#define FI_DEPRECATED_FIELD	    __attribute__((deprecated))
#define FI_FORMAT_PRINTF(fmt, args) __attribute__((__format__(__printf__, (fmt), (args))))
#else
#define FI_DEPRECATED_FUNC
#define FI_DEPRECATED_FIELD
#define FI_FORMAT_PRINTF(fmt, args)
#endif

/* Attribute name for FI_EXT_INI; clang does not know it. */
#if defined(__GNUC__) && !defined(__clang__)
#define EXTERNALLY_VISIBLE externally_visible
#else
#define EXTERNALLY_VISIBLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Versions. The level is that of the newest released API which these headers
 * cover whole. What came after it (device-initiated transfers, `xpu`) is
 * declared where a struct or a table grew by it, so that layouts already fit.
 */
#define FI_MAJOR_VERSION    2
#define FI_MINOR_VERSION    6
#define FI_REVISION_VERSION 0

#define FI_VERSION(major, minor) (((major) << 16) | (minor))
#define FI_MAJOR(version)	 ((version) >> 16)
#define FI_MINOR(version)	 ((version)&0xFFFF)
#define FI_VERSION_GE(v1, v2)	 ((v1) >= (v2))
#define FI_VERSION_LT(v1, v2)	 ((v1) < (v2))

/*
 * fi_version - the interface level of the library in use
 *
 * Returns FI_VERSION(major, minor), which may differ from the headers' level.
 * Source: fi_version(3).
 */
uint32_t fi_version(void);

/* Sizes that programs were compiled with; they must never change again. */
enum {
	FI_NAME_MAX = 64,
	FI_ATOMIC_OP_LAST = 19,
	FI_DATATYPE_LAST = 14, /* more datatypes follow it */
};

/*
 * Objects. Each begins with a struct fid; the rest is declared in the header
 * of its kind. fid_xpu_* are handles for device-initiated transfers, opaque.
 */
typedef struct fid *fid_t;

struct fid;
struct fid_fabric;
struct fid_domain;
struct fid_av;
struct fid_mr;
struct fid_nic;
struct fid_ep;
struct fid_pep;
struct fid_stx;
struct fid_eq;
struct fid_cq;
struct fid_cntr;
struct fid_wait;
struct fid_poll;
struct fid_xpu_ctx;
struct fid_xpu_ep;
struct fid_xpu_cq;
struct fid_xpu_cntr;

/* Values of fid.fclass. */
enum {
	FI_CLASS_UNSPEC,
	FI_CLASS_FABRIC,
	FI_CLASS_DOMAIN,
	FI_CLASS_EP,
	FI_CLASS_SEP, /* scalable endpoint */
	FI_CLASS_RX_CTX,
	FI_CLASS_SRX_CTX,
	FI_CLASS_TX_CTX,
	FI_CLASS_STX_CTX,
	FI_CLASS_PEP, /* passive endpoint */
	FI_CLASS_INTERFACE,
	FI_CLASS_AV,
	FI_CLASS_MR,
	FI_CLASS_EQ,
	FI_CLASS_CQ,
	FI_CLASS_CNTR,
	FI_CLASS_WAIT,
	FI_CLASS_POLL,
	FI_CLASS_CONNREQ,
	FI_CLASS_MC,
	FI_CLASS_NIC,
	FI_CLASS_AV_SET,
	FI_CLASS_MR_CACHE,
	FI_CLASS_MEM_MONITOR,
	FI_CLASS_PEER_CQ,
	FI_CLASS_PEER_SRX,
	FI_CLASS_LOG,
	FI_CLASS_PEER_AV,
	FI_CLASS_PEER_AV_SET,
	FI_CLASS_PEER_CNTR,
	FI_CLASS_PROFILE,
	FI_CLASS_XPU_CTX,
};

/*
 * struct fi_ops - calls that every object answers
 *
 * @size is that of the table in the library that filled it in, in bytes: a slot beyond is not
 *
 * there (FI_CHECK_OP). All but the last two are always filled.
 */
struct fi_ops {
	size_t size;
	int (*close)(struct fid *fid);
	int (*bind)(struct fid *fid, struct fid *target, uint64_t flags);
	int (*control)(struct fid *fid, int command, void *arg);
	int (*ops_open)(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context);
	int (*tostr)(const struct fid *fid, char *buf, size_t len);
	int (*ops_set)(struct fid *fid, const char *name, uint64_t flags, void *ops,
		       void *context);
};

/*
 * struct fid - how every object begins, so that a pointer to it is a pointer to the object
 * @ops:  its calls; the provider's, and the object's only until it is closed
 */
struct fid {
	size_t fclass; /* FI_CLASS_* */
	void *context; /* the application's; returned in events */
	struct fi_ops *ops;
};

/*
 * Whether a table that may come from an older provider has a slot. Use it for
 * slots that were added after a table was first published; the others are
 * always filled.
 */
#define FI_CHECK_OP(ops, opstype, op) \
	((ops) && (ops)->size > offsetof(opstype, op) && (ops)->op)

/*
 * 64-bit flags. Bits from 1 upwards mean the same in capabilities, operation
 * flags and completions; bits from 59 downwards belong to one call or class
 * and are defined beside it; 60 to 63 belong to providers.
 */

/* Kinds of transfer: primary capabilities, and the kind of a completion. */
#define FI_MSG	      (1ULL << 1)
#define FI_RMA	      (1ULL << 2)
#define FI_TAGGED     (1ULL << 3)
#define FI_ATOMIC     (1ULL << 4)
#define FI_ATOMICS    FI_ATOMIC
#define FI_MULTICAST  (1ULL << 5)
#define FI_COLLECTIVE (1ULL << 6)

/* Directions: they narrow a capability, and name what an object is bound for. */
#define FI_READ		(1ULL << 8)
#define FI_WRITE	(1ULL << 9)
#define FI_RECV		(1ULL << 10)
#define FI_SEND		(1ULL << 11)
#define FI_TRANSMIT	FI_SEND
#define FI_REMOTE_READ	(1ULL << 12)
#define FI_REMOTE_WRITE (1ULL << 13)

/* Operations */
#define FI_MULTI_RECV	  (1ULL << 16)
#define FI_REMOTE_CQ_DATA (1ULL << 17)
#define FI_MORE		  (1ULL << 18)
#define FI_PEEK		  (1ULL << 19)
#define FI_TRIGGER	  (1ULL << 20)
#define FI_FENCE	  (1ULL << 21)

/* Completion levels and the like */
#define FI_COMPLETION	     (1ULL << 24)
#define FI_EVENT	     FI_COMPLETION
#define FI_INJECT	     (1ULL << 25)
#define FI_INJECT_COMPLETE   (1ULL << 26)
#define FI_TRANSMIT_COMPLETE (1ULL << 27)
#define FI_DELIVERY_COMPLETE (1ULL << 28)
#define FI_AFFINITY	     (1ULL << 29)
#define FI_COMMIT_COMPLETE   (1ULL << 30)
#define FI_MATCH_COMPLETE    (1ULL << 31)

/* Secondary capabilities and flags of single calls */
#define FI_RESCAN		(1ULL << 35) /* fi_getinfo: look at the system again */
#define FI_PEER_TRANSFER	(1ULL << 36)
#define FI_AV_USER_ID		(1ULL << 41)
#define FI_FIREWALL_ADDR	(1ULL << 42)
#define FI_PEER			(1ULL << 43)
#define FI_XPU			(1ULL << 44)
#define FI_TAGGED_DIRECTED_RECV (1ULL << 45)
#define FI_TAGGED_MULTI_RECV	(1ULL << 46)
#define FI_HMEM			(1ULL << 47)
#define FI_EXACT_DIRECTED_RECV	(1ULL << 48)
#define FI_RMA_PMEM		(1ULL << 49)
#define FI_SOURCE_ERR		(1ULL << 50)
#define FI_LOCAL_COMM		(1ULL << 51)
#define FI_REMOTE_COMM		(1ULL << 52)
#define FI_SHARED_AV		(1ULL << 53)
#define FI_PROV_ATTR_ONLY	(1ULL << 54) /* fi_getinfo: defaults of each provider */
#define FI_NUMERICHOST		(1ULL << 55) /* fi_getinfo: node needs no resolver */
#define FI_RMA_EVENT		(1ULL << 56)
#define FI_SOURCE		(1ULL << 57)
#define FI_NAMED_RX_CTX		(1ULL << 58)
#define FI_DIRECTED_RECV	(1ULL << 59)

/* Receives that were announced by FI_PEEK, and AV inserts */
#define FI_AUTH_KEY (1ULL << 57)
#define FI_DISCARD  (1ULL << 58)
#define FI_CLAIM    (1ULL << 59)

/* fi_ep_bind to a CQ: only operations with FI_COMPLETION report success */
#define FI_SELECTIVE_COMPLETION (1ULL << 59)

/* Names that left the interface; old sources still compile with them. */
#define FI_VARIABLE_MSG	     0ULL
#define FI_NOTIFY_FLAGS_ONLY 0ULL
#define FI_RESTRICTED_COMP   0ULL
#define FI_EP_SOCK_STREAM    FI_EP_UNSPEC

/* fi_info.mode: what the provider asks of the application. */
#define FI_CONTEXT2   (1ULL << 52) /* context is a struct fi_context2 */
#define FI_LOCAL_MR   (1ULL << 55) /* before 1.5; see FI_MR_LOCAL */
#define FI_RX_CQ_DATA (1ULL << 56)
#define FI_ASYNC_IOV  (1ULL << 57)
#define FI_MSG_PREFIX (1ULL << 58)
#define FI_CONTEXT    (1ULL << 59) /* context is a struct fi_context */

/* fi_domain_attr.mr_mode */
#define FI_MR_UNSPEC	 0 /* before 1.5, as are the next two */
#define FI_MR_BASIC	 (1 << 0)
#define FI_MR_SCALABLE	 (1 << 1)
#define FI_MR_LOCAL	 (1 << 2)
#define FI_MR_RAW	 (1 << 3)
#define FI_MR_VIRT_ADDR	 (1 << 4)
#define FI_MR_ALLOCATED	 (1 << 5)
#define FI_MR_PROV_KEY	 (1 << 6)
#define FI_MR_MMU_NOTIFY (1 << 7)
#define FI_MR_RMA_EVENT	 (1 << 8)
#define FI_MR_ENDPOINT	 (1 << 9)
#define FI_MR_HMEM	 (1 << 10)
#define FI_MR_COLLECTIVE (1 << 11)
#define FI_MR_XPU_DESC	 (1 << 12)

/*
 * fi_{tx,rx}_attr.msg_order and comp_order: FI_ORDER_<A>A<B> keeps operation
 * A after an earlier B; R is a read, W a write, S a send.
 */
#define FI_ORDER_NONE	    0ULL
#define FI_ORDER_RAR	    (1ULL << 0)
#define FI_ORDER_RAW	    (1ULL << 1)
#define FI_ORDER_RAS	    (1ULL << 2)
#define FI_ORDER_WAR	    (1ULL << 3)
#define FI_ORDER_WAW	    (1ULL << 4)
#define FI_ORDER_WAS	    (1ULL << 5)
#define FI_ORDER_SAR	    (1ULL << 6)
#define FI_ORDER_SAW	    (1ULL << 7)
#define FI_ORDER_SAS	    (1ULL << 8)
#define FI_ORDER_STRICT	    0x1FF
#define FI_ORDER_DATA	    (1ULL << 16)
#define FI_ORDER_RMA_RAR    (1ULL << 32)
#define FI_ORDER_RMA_RAW    (1ULL << 33)
#define FI_ORDER_RMA_WAR    (1ULL << 34)
#define FI_ORDER_RMA_WAW    (1ULL << 35)
#define FI_ORDER_ATOMIC_RAR (1ULL << 36)
#define FI_ORDER_ATOMIC_RAW (1ULL << 37)
#define FI_ORDER_ATOMIC_WAR (1ULL << 38)
#define FI_ORDER_ATOMIC_WAW (1ULL << 39)

/* Addresses. An fi_addr_t is an entry of an address vector. */
typedef uint64_t fi_addr_t;

#define FI_ADDR_UNSPEC	  ((uint64_t)-1) /* any source */
#define FI_ADDR_NOTAVAIL  ((uint64_t)-1) /* no such entry */
#define FI_KEY_NOTAVAIL	  ((uint64_t)-1)
#define FI_SHARED_CONTEXT SIZE_MAX /* {tx,rx}_ctx_cnt: uses a shared one */
#define FI_AV_AUTH_KEY	  SIZE_MAX /* auth_key_size: keys live in the AV */

/* fi_info.addr_format: what src_addr, dest_addr and AV inserts hold */
enum {
	FI_FORMAT_UNSPEC,
	FI_SOCKADDR, /* any struct sockaddr */
	FI_SOCKADDR_IN,
	FI_SOCKADDR_IN6,
	FI_SOCKADDR_IB,
	FI_ADDR_PSMX,
	FI_ADDR_GNI,
	FI_ADDR_BGQ,
	FI_ADDR_MLX,
	FI_ADDR_STR, /* text, ends with a zero byte */
	FI_ADDR_PSMX2,
	FI_ADDR_IB_UD,
	FI_ADDR_EFA,
	FI_ADDR_PSMX3,
	FI_ADDR_OPX,
	FI_ADDR_CXI,
	FI_ADDR_UCX,
	FI_SOCKADDR_IP, /* sockaddr_in or sockaddr_in6 */
};

/*
 * enum fi_av_type - what an fi_addr_t is
 *
 * The provider's own number (FI_AV_MAP), or the index of the insertion (FI_AV_TABLE). In hints
 * FI_AV_UNSPEC lets the provider choose. Source: fi_av(3).
 */
enum fi_av_type {
	FI_AV_UNSPEC,
	FI_AV_MAP,
	FI_AV_TABLE,
};

/*
 * enum fi_progress - who drives operations on
 *
 * The provider, with threads of its own (FI_PROGRESS_AUTO), or calls of the application that read
 * or wait (FI_PROGRESS_MANUAL). FI_PROGRESS_CONTROL_UNIFIED is manual, and the application keeps
 * control and data from running side by side. Source: fi_domain(3).
 */
enum fi_progress {
	FI_PROGRESS_UNSPEC,
	FI_PROGRESS_AUTO,
	FI_PROGRESS_MANUAL,
	FI_PROGRESS_CONTROL_UNIFIED,
};

/*
 * enum fi_threading - which calls the application keeps from running side by side
 *
 * None (FI_THREAD_SAFE); those on one completion queue or counter and what is bound to it
 * (FI_THREAD_COMPLETION); those on one domain and all that belongs to it (FI_THREAD_DOMAIN).
 * FI_THREAD_FID and FI_THREAD_ENDPOINT are from before 2.0. Source: fi_domain(3).
 */
enum fi_threading {
	FI_THREAD_UNSPEC,
	FI_THREAD_SAFE,
	FI_THREAD_FID,
	FI_THREAD_DOMAIN,
	FI_THREAD_COMPLETION,
	FI_THREAD_ENDPOINT,
};

/*
 * enum fi_resource_mgmt - whether the provider protects queues from overruns
 *
 * With FI_RM_ENABLED a call that would overrun one returns -FI_EAGAIN; with FI_RM_DISABLED the
 * application has to count. Source: fi_domain(3).
 */
enum fi_resource_mgmt {
	FI_RM_UNSPEC,
	FI_RM_DISABLED,
	FI_RM_ENABLED,
};

/*
 * enum fi_ep_type - kinds of endpoint
 *
 * Connected and reliable (FI_EP_MSG), without connections and unreliable (FI_EP_DGRAM), without
 * connections and reliable (FI_EP_RDM). Source: fi_endpoint(3).
 */
enum fi_ep_type {
	FI_EP_UNSPEC,
	FI_EP_MSG,
	FI_EP_DGRAM,
	FI_EP_RDM,
};

/* fi_ep_attr.protocol: endpoints with equal protocols can talk. */
enum {
	FI_PROTO_UNSPEC,
	FI_PROTO_RDMA_CM_IB_RC,
	FI_PROTO_IWARP,
	FI_PROTO_IB_UD,
	FI_PROTO_PSMX,
	FI_PROTO_UDP,
	FI_PROTO_SOCK_TCP,
	FI_PROTO_MXM,
	FI_PROTO_IWARP_RDM,
	FI_PROTO_IB_RDM,
	FI_PROTO_GNI,
	FI_PROTO_RXM,
	FI_PROTO_RXD,
	FI_PROTO_MLX,
	FI_PROTO_NETWORKDIRECT,
	FI_PROTO_PSMX2,
	FI_PROTO_SHM,
	FI_PROTO_MRAIL,
	FI_PROTO_RSTREAM,
	FI_PROTO_RDMA_CM_IB_XRC,
	FI_PROTO_EFA,
	FI_PROTO_PSMX3,
	FI_PROTO_RXM_TCP,
	FI_PROTO_OPX,
	FI_PROTO_CXI,
	FI_PROTO_XNET,
	FI_PROTO_COLL,
	FI_PROTO_UCX,
	FI_PROTO_SM2,
	FI_PROTO_CXI_RNR,
	FI_PROTO_LPP,
	FI_PROTO_LNX,
};

/* fi_ep_attr.mem_tag_format: a bit pattern, or one of these layouts. */
enum {
	FI_TAG_BITS,
	FI_TAG_MPI,
	FI_TAG_CCL,
	FI_TAG_MAX_FORMAT = (1ULL << 16),
};

/* tclass: a DSCP value with FI_TC_DSCP set, or one of the labels. */
enum {
	FI_TC_UNSPEC = 0,
	FI_TC_DSCP = 0x100,
	FI_TC_LABEL = 0x200,
	FI_TC_BEST_EFFORT = FI_TC_LABEL,
	FI_TC_LOW_LATENCY,
	FI_TC_DEDICATED_ACCESS,
	FI_TC_BULK_DATA,
	FI_TC_SCAVENGER,
	FI_TC_NETWORK_CTRL,
};

/* fi_tc_dscp_set - traffic class for a DSCP value. Source: fi_endpoint(3) */
static inline uint32_t fi_tc_dscp_set(uint8_t dscp)
{
	return FI_TC_DSCP | (uint32_t)dscp;
}

/* fi_tc_dscp_get - DSCP value of a traffic class; 0 if it holds none. Source: fi_endpoint(3) */
static inline uint8_t fi_tc_dscp_get(uint32_t tclass)
{
	return (uint8_t)((tclass & FI_TC_DSCP) ? tclass : 0);
}

/*
 * struct fi_tx_attr - the sending half of an endpoint, in an fi_info
 * @caps:           of FI_MSG and the like that this half has; 0 in hints: those of the fi_info
 * @mode:           what it asks of the application
 * @op_flags:       that calls without flags behave as if they were given
 * @msg_order:      FI_ORDER_* kept between operations to one peer
 * @comp_order:     without meaning since 2.0
 * @inject_size:    bytes that fi_inject and its like take at most
 * @iov_limit:      buffers in one local vector
 * @rma_iov_limit:  ranges in one remote vector
 * @tclass:         FI_TC_*
 *
 * Fields were only ever added at the end of an attribute structure; a comment on the line names
 * the first version of the ABI that has it where that is not 1.0.
 * Source: fi_getinfo(3), fi_endpoint(3).
 */
struct fi_tx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t inject_size;
	size_t size; /* operations that may be outstanding */
	size_t iov_limit;
	size_t rma_iov_limit;
	uint32_t tclass; /* 1.3 */
};

/*
 * struct fi_rx_attr - the receiving half of an endpoint, in an fi_info
 * @caps:                 as in struct fi_tx_attr, like the next two
 * @mode:                 what it asks of the application
 * @op_flags:             of receives without flags
 * @msg_order:            FI_ORDER_* in which messages of one peer are matched
 * @comp_order:           without meaning since 2.0
 * @total_buffered_recv:  bytes of messages without a receive that are kept; deprecated
 * @size:                 receives that may be posted at a time
 * @iov_limit:            buffers in one receive
 *
 * Source: fi_getinfo(3), fi_endpoint(3).
 */
struct fi_rx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t total_buffered_recv;
	size_t size;
	size_t iov_limit;
};

/*
 * struct fi_ep_attr - an endpoint as a whole, in an fi_info
 * @type:                kind of endpoint
 * @protocol:            FI_PROTO_*; endpoints talk only if it and the next are equal
 * @protocol_version:    of that protocol
 * @max_msg_size:        bytes of one transfer
 * @msg_prefix_size:     bytes in front of each buffer with FI_MSG_PREFIX
 * @max_order_raw_size:  bytes up to which a read after a write keeps FI_ORDER_RAW on data;
 *                       0: no order, SIZE_MAX: any size
 * @max_order_war_size:  the same for a write after a read
 * @max_order_waw_size:  the same for a write after a write
 * @mem_tag_format:      tag bits that there are, as a pattern of fields, or FI_TAG_*
 * @tx_ctx_cnt:          transmit contexts; 0 means 1, FI_SHARED_CONTEXT a shared one
 * @rx_ctx_cnt:          receive contexts, likewise
 * @auth_key_size:       bytes of auth_key; FI_AV_AUTH_KEY: keys are in the address vector
 * @auth_key:            authorization key, owned with the fi_info
 * @xpu_ctx:             device that starts the transfers
 *
 * Source: fi_getinfo(3), fi_endpoint(3).
 */
struct fi_ep_attr {
	enum fi_ep_type type;
	uint32_t protocol;
	uint32_t protocol_version;
	size_t max_msg_size;
	size_t msg_prefix_size;
	size_t max_order_raw_size;
	size_t max_order_war_size;
	size_t max_order_waw_size;
	uint64_t mem_tag_format;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t auth_key_size;	     /* 1.1 */
	uint8_t *auth_key;	     /* 1.1 */
	struct fid_xpu_ctx *xpu_ctx; /* 1.10 */
};

/*
 * struct fi_domain_attr - a domain, in an fi_info
 * @domain:              an open domain to use, or NULL
 * @name:                its name, owned with the fi_info
 * @threading:           which calls do not run side by side
 * @control_progress:    who drives control operations; older name of a pair
 * @data_progress:       who drives transfers
 * @progress:            the same field, under its name since 2.0
 * @resource_mgmt:       whether queues are protected from overruns
 * @av_type:             what an fi_addr_t is
 * @mr_mode:             FI_MR_* that the application has to respect
 * @mr_key_size:         bytes of a key
 * @cq_data_size:        bytes of remote completion data, 0 to 8
 * @cq_cnt:              completion queues that are worth opening
 * @ep_cnt:              endpoints, likewise
 * @tx_ctx_cnt:          transmit contexts, likewise
 * @rx_ctx_cnt:          receive contexts, likewise
 * @max_ep_tx_ctx:       transmit contexts of one endpoint at most
 * @max_ep_rx_ctx:       receive contexts of one endpoint at most
 * @max_ep_stx_ctx:      endpoints that share one transmit context at most
 * @max_ep_srx_ctx:      endpoints that share one receive context at most
 * @cntr_cnt:            counters that are worth opening
 * @mr_iov_limit:        ranges in one memory region
 * @caps:                FI_LOCAL_COMM, FI_REMOTE_COMM and the like of the domain
 * @mode:                what it asks of the application
 * @auth_key:            default authorization key, owned with the fi_info
 * @auth_key_size:       its bytes
 * @max_err_data:        bytes of err_data at most
 * @mr_cnt:              memory regions that are worth registering
 * @tclass:              default FI_TC_*
 * @max_ep_auth_key:     authorization keys of one endpoint at most
 * @max_group_id:        highest group of fi_group_addr; 0 for none
 * @max_cntr_value:      after which a counter starts again at 0
 * @max_err_cntr_value:  the same of its errors
 * @max_xpu_ctx_cnt:     devices whose transfers it can take
 *
 * Source: fi_getinfo(3), fi_domain(3).
 */
struct fi_domain_attr {
	struct fid_domain *domain;
	char *name;
	enum fi_threading threading;
	enum fi_progress control_progress;
	union {
		enum fi_progress data_progress;
		enum fi_progress progress;
	};
	enum fi_resource_mgmt resource_mgmt;
	enum fi_av_type av_type;
	int mr_mode;
	size_t mr_key_size;
	size_t cq_data_size;
	size_t cq_cnt;
	size_t ep_cnt;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t max_ep_tx_ctx;
	size_t max_ep_rx_ctx;
	size_t max_ep_stx_ctx;
	size_t max_ep_srx_ctx;
	size_t cntr_cnt; /* 1.1, with all down to mr_cnt */
	size_t mr_iov_limit;
	uint64_t caps;
	uint64_t mode;
	uint8_t *auth_key;
	size_t auth_key_size;
	size_t max_err_data;
	size_t mr_cnt;
	uint32_t tclass;	     /* 1.3 */
	size_t max_ep_auth_key;	     /* 1.7 */
	uint32_t max_group_id;	     /* 1.8 */
	uint64_t max_cntr_value;     /* 1.9 */
	uint64_t max_err_cntr_value; /* 1.9 */
	size_t max_xpu_ctx_cnt;	     /* 1.10 */
};

/*
 * struct fi_fabric_attr - a fabric, in an fi_info
 * @fabric:        an open fabric to use, or NULL
 * @name:          its name, owned with the fi_info
 * @prov_name:     its provider, layers separated by ';', owned with the fi_info
 * @prov_version:  the provider's own version
 * @api_version:   that fi_getinfo was asked for
 *
 * Source: fi_getinfo(3), fi_fabric(3).
 */
struct fi_fabric_attr {
	struct fid_fabric *fabric;
	char *name;
	char *prov_name;
	uint32_t prov_version;
	uint32_t api_version; /* 1.1 */
};

/*
 * struct fi_info - what an application asks for, and what a provider offers
 * @next:          next best offer, or NULL
 * @caps:          FI_MSG and the like. In hints: needed; the answer may have more
 * @mode:          in hints: what the application can live with; in answers: what it has to
 * @addr_format:   of the next four
 * @src_addrlen:   bytes of src_addr
 * @dest_addrlen:  bytes of dest_addr
 * @src_addr:      address of this side, or NULL
 * @dest_addr:     address of the peer, or NULL
 * @handle:        of a connection request, or of a passive endpoint that becomes active
 * @tx_attr:       the sending half
 * @rx_attr:       the receiving half
 * @ep_attr:       the endpoint
 * @domain_attr:   the domain
 * @fabric_attr:   the fabric
 *
 * All it points to is owned with it: fi_freeinfo. Never allocate one by hand, its size depends on
 * the library: fi_allocinfo. Source: fi_getinfo(3).
 */
struct fi_info {
	struct fi_info *next;
	uint64_t caps;
	uint64_t mode;
	uint32_t addr_format;
	size_t src_addrlen;
	size_t dest_addrlen;
	void *src_addr;
	void *dest_addr;
	fid_t handle;
	struct fi_tx_attr *tx_attr;
	struct fi_rx_attr *rx_attr;
	struct fi_ep_attr *ep_attr;
	struct fi_domain_attr *domain_attr;
	struct fi_fabric_attr *fabric_attr;
	struct fid_nic *nic; /* 1.2 */
};

/*
 * struct fi_device_attr - the device behind an fi_info
 * @name:            of the device
 * @device_id:       the vendor's number of its model, as text, as all of these
 * @device_version:  of the model
 * @vendor_id:       the vendor's number
 * @driver:          that runs it
 * @firmware:        its version
 *
 * Any may be NULL. Source: fi_nic(3).
 */
struct fi_device_attr {
	char *name;
	char *device_id;
	char *device_version;
	char *vendor_id;
	char *driver;
	char *firmware;
};

/* enum fi_bus_type - which member of struct fi_bus_attr's attr counts. Source: fi_nic(3) */
enum fi_bus_type {
	FI_BUS_UNSPEC,
	FI_BUS_UNKNOWN = FI_BUS_UNSPEC,
	FI_BUS_PCI,
};

/*
 * struct fi_pci_attr - where a device is on PCI
 * @domain_id:    the first of the four numbers that lspci(8) shows
 * @bus_id:       the second
 * @device_id:    the third
 * @function_id:  the last
 *
 * Source: fi_nic(3).
 */
struct fi_pci_attr {
	uint16_t domain_id;
	uint8_t bus_id;
	uint8_t device_id;
	uint8_t function_id;
};

/*
 * struct fi_bus_attr - where a device is
 * @bus_type:  the kind of bus
 * @attr:      and the place there
 * @pci:       with FI_BUS_PCI
 *
 * Source: fi_nic(3).
 */
struct fi_bus_attr {
	enum fi_bus_type bus_type;
	union {
		struct fi_pci_attr pci;
	} attr;
};

/* enum fi_link_state - whether the cable is in. Source: fi_nic(3) */
enum fi_link_state {
	FI_LINK_UNKNOWN,
	FI_LINK_DOWN,
	FI_LINK_UP,
};

/*
 * struct fi_link_attr - the link of a network device
 * @address:       its own, as text; may be NULL
 * @mtu:           bytes of one packet at most
 * @state:         up or down
 * @network_type:  "Ethernet" or the like; may be NULL
 *
 * Source: fi_nic(3).
 */
struct fi_link_attr {
	char *address;
	size_t mtu;
	size_t speed; /* bits per second */
	enum fi_link_state state;
	char *network_type;
};

/*
 * struct fid_nic - the network device behind an fi_info
 * @fid:          object header; fi_dupinfo and fi_freeinfo copy and release it with the fi_info
 * @device_attr:  the device, or NULL, as all of these
 * @bus_attr:     where it is
 * @link_attr:    its link
 * @prov_attr:    what its provider alone knows
 *
 * Source: fi_nic(3).
 */
struct fid_nic {
	struct fid fid;
	struct fi_device_attr *device_attr;
	struct fi_bus_attr *bus_attr;
	struct fi_link_attr *link_attr;
	void *prov_attr;
};

/*
 * fi_getinfo - find what can reach a node, or be reached
 * @version: FI_VERSION the caller was written for; decides the meaning of attributes
 * @node:    name or address, of the peer, or of this side with FI_SOURCE; may be NULL
 * @service: port or service name; may be NULL
 * @flags:   FI_SOURCE, FI_NUMERICHOST, FI_PROV_ATTR_ONLY, FI_RESCAN
 * @hints:   what is needed; NULL for anything
 * @info:    set to a list, best first; release it with fi_freeinfo
 *
 * Returns 0, or -FI_ENODATA when nothing satisfies the hints, -FI_ENOSYS for
 * a version newer than the library, -FI_EBADFLAGS, -FI_ENOMEM.
 * Source: fi_getinfo(3).
 */
int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info);

/* fi_freeinfo - release a list, or one fi_dupinfo result; NULL is allowed */
void fi_freeinfo(struct fi_info *info);

/*
 * fi_dupinfo - copy one entry (not the list), with everything it points to
 * @info: entry; NULL for an empty one with all attribute structs in place
 *
 * Returns owned (fi_freeinfo), or NULL without memory. Source: fi_getinfo(3).
 */
struct fi_info *fi_dupinfo(const struct fi_info *info);

/* fi_allocinfo - an empty fi_info to fill in as hints; NULL without memory */
static inline struct fi_info *fi_allocinfo(void)
{
	return fi_dupinfo(NULL);
}

/* The fabric object: one network as one provider sees it. */
struct fi_eq_attr;
struct fi_wait_attr;

/* struct fi_ops_fabric - calls of a fabric: fi_domain, fi_passive_ep, fi_eq_open and so on */
struct fi_ops_fabric {
	size_t size;
	int (*domain)(struct fid_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, void *context);
	int (*passive_ep)(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			  void *context);
	int (*eq_open)(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		       void *context);
	int (*wait_open)(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			 struct fid_wait **waitset);
	int (*trywait)(struct fid_fabric *fabric, struct fid **fids, int cnt);
	int (*domain2)(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, uint64_t flags, void *context);
};

/*
 * struct fid_fabric - one network as one provider sees it
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_fabric(3).
 */
struct fid_fabric {
	struct fid fid;
	struct fi_ops_fabric *ops;
	uint32_t api_version; /* the fi_getinfo version it was opened for */
};

/*
 * fi_fabric - open the fabric that an fi_info names
 * @attr:    its fabric_attr
 * @fabric:  set to the object; fi_close it last
 * @context: the application's, kept in the fid
 *
 * Returns 0, or -FI_ENODEV when no provider of that name is loaded, or the
 * provider's error. Source: fi_fabric(3).
 */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/*
 * fi_fabric2 - the same from the whole fi_info, with flags
 * @flags: handed to the provider; 0 where it defines none
 *
 * Returns as fi_fabric does. Source: fi_fabric(3).
 */
int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context);

/*
 * fi_open - open one of the library's own objects by name
 * @version:  FI_VERSION of the caller
 * @name:     such as "logging" or "mr_cache"
 * @attr:     argument of that object, attr_len bytes
 * @fid:      set to the object; release it with fi_close
 *
 * Returns 0, or -FI_ENOSYS for a name that this library does not have.
 * Source: fi_fabric(3), fi_provider(3).
 */
int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
	    struct fid **fid, void *context);

/*
 * fi_close - release any object
 *
 * Returns 0, or -FI_EBUSY while other objects still depend on it (it stays
 * usable then). Source: fi_fabric(3) and the page of each object.
 */
static inline int fi_close(struct fid *fid)
{
	return fid->ops->close(fid);
}

/* fi_control commands; the comment names what @arg points to. */
enum {
	FI_GETFIDFLAG,	    /* uint64_t */
	FI_SETFIDFLAG,	    /* uint64_t */
	FI_GETOPSFLAG,	    /* uint64_t: FI_TRANSMIT or FI_RECV in, flags out */
	FI_SETOPSFLAG,	    /* uint64_t */
	FI_ALIAS,	    /* struct fi_alias */
	FI_GETWAIT,	    /* the wait object: an int for FI_WAIT_FD, ... */
	FI_ENABLE,	    /* none */
	FI_BACKLOG,	    /* int */
	FI_GET_RAW_MR,	    /* struct fi_mr_raw_attr */
	FI_MAP_RAW_MR,	    /* struct fi_mr_map_raw */
	FI_UNMAP_KEY,	    /* uint64_t */
	FI_QUEUE_WORK,	    /* struct fi_deferred_work */
	FI_CANCEL_WORK,	    /* struct fi_deferred_work */
	FI_FLUSH_WORK,	    /* NULL: all, or struct fi_deferred_work: its counter's */
	FI_REFRESH,	    /* struct fi_mr_modify */
	FI_DUP,		    /* struct fid * */
	FI_GETWAITOBJ,	    /* enum fi_wait_obj */
	FI_GET_VAL,	    /* struct fi_fid_var */
	FI_SET_VAL,	    /* struct fi_fid_var */
	FI_EXPORT_FID,	    /* struct fi_fid_export */
	FI_GET_FD,	    /* int */
	FI_GET_MR_XPU_DESC, /* struct fi_mr_xpu_desc */
};

/*
 * struct fi_alias - argument of FI_ALIAS
 * @fid:    receives the alias
 * @flags:  its FI_TRANSMIT or FI_RECV, and its default operation flags
 *
 * Source: fi_control(3).
 */
struct fi_alias {
	struct fid **fid;
	uint64_t flags;
};

/*
 * struct fi_fid_var - argument of FI_GET_VAL and FI_SET_VAL
 * @val:  of the type that belongs to the name
 *
 * Source: fi_control(3).
 */
struct fi_fid_var {
	int name; /* a provider's own name has the top bit set */
	void *val;
};

/*
 * struct fi_mr_raw_attr - argument of FI_GET_RAW_MR; fi_mr_raw_attr() fills it in
 * @flags:      must be 0
 * @base_addr:  receives the region's base
 * @raw_key:    receives the key
 * @key_size:   in: room at raw_key; out: bytes of the key
 *
 * Source: fi_mr(3).
 */
struct fi_mr_raw_attr {
	uint64_t flags;
	uint64_t *base_addr;
	uint8_t *raw_key;
	size_t *key_size;
};

/*
 * struct fi_mr_map_raw - argument of FI_MAP_RAW_MR; fi_mr_map_raw() fills it in
 * @flags:      must be 0
 * @base_addr:  of the peer's region
 * @raw_key:    key_size bytes of its key
 * @key_size:   bytes of raw_key
 * @key:        receives the 64-bit key that transfers take
 *
 * Source: fi_mr(3).
 */
struct fi_mr_map_raw {
	uint64_t flags;
	uint64_t base_addr;
	uint8_t *raw_key;
	size_t key_size;
	uint64_t *key;
};

/*
 * struct fi_mr_xpu_desc - argument of FI_GET_MR_XPU_DESC; fi_mr_get_xpu_desc() fills it in
 * @buf:    receives the descriptor
 * @len:    in: room at buf; out: its bytes
 * @flags:  must be 0
 * @ctx:    device that will use it
 *
 * Source: fi_xpu(3).
 */
struct fi_mr_xpu_desc {
	void *buf;
	size_t *len;
	uint64_t flags;
	struct fid_xpu_ctx *ctx;
};

/*
 * fi_control - ask or tell an object something
 * @command: from the list above
 * @arg:     what that command takes
 *
 * Returns 0, or -FI_ENOSYS for a command that the object does not know.
 * Source: fi_control(3).
 */
static inline int fi_control(struct fid *fid, int command, void *arg)
{
	return fid->ops->control(fid, command, arg);
}

/*
 * fi_alias - a second object for the same resources, with other default flags
 * @alias_fid: set to the alias; close it as any object
 *
 * Returns 0 or the object's error. Source: fi_control(3), fi_endpoint(3).
 */
static inline int fi_alias(struct fid *fid, struct fid **alias_fid, uint64_t flags)
{
	struct fi_alias arg = { alias_fid, flags };

	return fi_control(fid, FI_ALIAS, &arg);
}

/* fi_get_val - read a provider's variable into @val. Source: fi_control(3) */
static inline int fi_get_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var arg = { name, val };

	return fi_control(fid, FI_GET_VAL, &arg);
}

/* fi_set_val - set a provider's variable from @val. Source: fi_control(3) */
static inline int fi_set_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var arg = { name, val };

	return fi_control(fid, FI_SET_VAL, &arg);
}

/*
 * fi_open_ops - a provider's own call table for an object
 * @name: of the table
 * @ops:  set to it; lives as long as the object
 *
 * Returns 0, or -FI_ENOSYS for an unknown name. Source: fi_provider(7).
 */
static inline int fi_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops,
			      void *context)
{
	return fid->ops->ops_open(fid, name, flags, ops, context);
}

/*
 * fi_set_ops - replace part of what an object does by the application's table
 * @name: what is replaced, for example FI_SET_OPS_HMEM_OVERRIDE
 *
 * Returns 0, or -FI_ENOSYS for an unknown name. Source: fi_domain(3).
 */
static inline int fi_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops,
			     void *context)
{
	if (!FI_CHECK_OP(fid->ops, struct fi_ops, ops_set))
		return -FI_ENOSYS;
	return fid->ops->ops_set(fid, name, flags, ops, context);
}

/*
 * enum fi_type - the type of what fi_tostr prints
 *
 * FI_TYPE_VERSION is the library's own version, whatever the data. Source: fi_fabric(3).
 */
enum fi_type {
	FI_TYPE_INFO,
	FI_TYPE_EP_TYPE,
	FI_TYPE_CAPS,
	FI_TYPE_OP_FLAGS,
	FI_TYPE_ADDR_FORMAT,
	FI_TYPE_TX_ATTR,
	FI_TYPE_RX_ATTR,
	FI_TYPE_EP_ATTR,
	FI_TYPE_DOMAIN_ATTR,
	FI_TYPE_FABRIC_ATTR,
	FI_TYPE_THREADING,
	FI_TYPE_PROGRESS,
	FI_TYPE_PROTOCOL,
	FI_TYPE_MSG_ORDER,
	FI_TYPE_MODE,
	FI_TYPE_AV_TYPE,
	FI_TYPE_ATOMIC_TYPE,
	FI_TYPE_ATOMIC_OP,
	FI_TYPE_VERSION,
	FI_TYPE_EQ_EVENT,
	FI_TYPE_CQ_EVENT_FLAGS,
	FI_TYPE_MR_MODE,
	FI_TYPE_OP_TYPE,
	FI_TYPE_FID,
	FI_TYPE_COLLECTIVE_OP,
	FI_TYPE_HMEM_IFACE,
	FI_TYPE_CQ_FORMAT,
	FI_TYPE_LOG_LEVEL,
	FI_TYPE_LOG_SUBSYS,
	FI_TYPE_AV_ATTR,
	FI_TYPE_CQ_ATTR,
	FI_TYPE_MR_ATTR,
	FI_TYPE_CNTR_ATTR,
	FI_TYPE_CQ_ERR_ENTRY,
	FI_TYPE_CQ_WAIT_COND,
	FI_TYPE_WAIT_OBJ,
};

/*
 * fi_tostr - describe a value in words
 * @data:     points to the value
 * @datatype: says which type it has
 *
 * Returns a buffer of the library that the next call overwrites, so that only
 * one thread at a time may use it. Source: fi_fabric(3).
 */
char *fi_tostr(const void *data, enum fi_type datatype);

/* fi_tostr_r - the same into @len bytes at @buf, cut to fit, for any thread; returns @buf */
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);

/*
 * enum fi_param_type - the type of a parameter: char *, int, int as a truth value, size_t
 *
 * Parameters of the library and its providers are read from the environment.
 * Source: fi_provider(3).
 */
enum fi_param_type {
	FI_PARAM_STRING,
	FI_PARAM_INT,
	FI_PARAM_BOOL,
	FI_PARAM_SIZE_T,
};

/*
 * struct fi_param - a parameter, as fi_getparams lists it
 * @type:         of its value
 * @help_string:  what it does
 *
 * Source: fi_provider(3).
 */
struct fi_param {
	const char *name; /* environment variable */
	enum fi_param_type type;
	const char *help_string;
	const char *value; /* NULL when unset */
};

/*
 * fi_getparams - list all parameters
 * @params: set to an array; release it with fi_freeparams
 * @count:  set to its length
 *
 * Returns 0 or -FI_ENOMEM. Source: fi_provider(3).
 */
int fi_getparams(struct fi_param **params, int *count);

/* fi_freeparams - release what fi_getparams returned */
void fi_freeparams(struct fi_param *params);

/*
 * struct fi_context - memory of an operation's context, with FI_CONTEXT in the mode
 * @internal:  the provider's from the call until the operation completes
 *
 * The operation's context points to one then. Source: fi_getinfo(3).
 */
struct fi_context {
	void *internal[4];
};

/*
 * struct fi_context2 - the same with FI_CONTEXT2
 * @internal:  the provider's from the call until the operation completes
 *
 * Source: fi_getinfo(3).
 */
struct fi_context2 {
	void *internal[8];
};

/*
 * struct fi_recv_context - context of buffered receives, which left the interface: layout only
 * @ep:       endpoint that had the receive
 * @context:  the application's
 *
 * Source: fi_msg(3) of 1.x.
 */
struct fi_recv_context {
	struct fid_ep *ep;
	void *context;
};

/*
 * struct fi_ioc - a vector of counted elements, as atomics and collectives use it
 * @addr:   first element
 * @count:  elements of the operation's datatype, not bytes
 *
 * Source: fi_atomic(3).
 */
struct fi_ioc {
	void *addr;
	size_t count;
};

#ifdef __cplusplus
}
#endif

#endif /* FABRIC_H */
