/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The domain (one interface of one fabric) and what belongs to it alone:
 * address vectors and memory regions. The calls run on the caller's thread
 * and go straight to the object's table.
 * Source: fi_domain(3), fi_av(3), fi_mr(3).
 */
#ifndef FI_DOMAIN_H
#define FI_DOMAIN_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Address vectors */

/* fi_av_attr.flags */
#define FI_SYMMETRIC (1ULL << 59)
/* fi_av_insert: context is an int per address, for its own error */
#define FI_SYNC_ERR (1ULL << 58)

/* fi_av_set_attr.flags: everyone, and what the set will be used for */
#define FI_UNIVERSE	      (1ULL << 57)
#define FI_BARRIER_SET	      (1ULL << 40)
#define FI_BROADCAST_SET      (1ULL << 41)
#define FI_ALLTOALL_SET	      (1ULL << 42)
#define FI_ALLREDUCE_SET      (1ULL << 43)
#define FI_ALLGATHER_SET      (1ULL << 44)
#define FI_REDUCE_SCATTER_SET (1ULL << 45)
#define FI_REDUCE_SET	      (1ULL << 46)
#define FI_SCATTER_SET	      (1ULL << 47)
#define FI_GATHER_SET	      (1ULL << 48)

/*
 * struct fi_av_attr - how an address vector is to be
 * @type:         in: FI_AV_UNSPEC lets the provider choose; out: what it is
 * @rx_ctx_bits:  high bits of an fi_addr_t that choose a receive context (FI_NAMED_RX_CTX)
 * @ep_per_node:  a hint: expected endpoints of one node, 0 for unknown
 * @map_addr:     of a shared AV: in: where to map it, or NULL; out: where it is
 * @flags:        FI_EVENT, FI_READ, FI_SYMMETRIC, FI_AV_USER_ID, FI_PEER
 *
 * Source: fi_av(3).
 */
struct fi_av_attr {
	enum fi_av_type type;
	int rx_ctx_bits;
	size_t count; /* expected entries, a hint */
	size_t ep_per_node;
	const char *name; /* of a shared AV */
	void *map_addr;
	uint64_t flags;
};

/*
 * struct fi_av_set_attr - how a set is to begin
 * @count:          expected members, a hint
 * @start_addr:     first member, an entry of an FI_AV_TABLE; FI_ADDR_NOTAVAIL: none
 * @end_addr:       entry after which no more are taken
 * @stride:         entries from one member to the next; 0 where start_addr is none
 * @comm_key_size:  bytes of comm_key
 * @comm_key:       the network's own description of the set, or NULL
 * @flags:          FI_UNIVERSE, FI_BARRIER_SET and so on
 *
 * Source: fi_av_set(3).
 */
struct fi_av_set_attr {
	size_t count;
	fi_addr_t start_addr;
	fi_addr_t end_addr;
	uint64_t stride;
	size_t comm_key_size;
	uint8_t *comm_key;
	uint64_t flags;
};

struct fid_av_set;

/* struct fi_ops_av - calls of an address vector: fi_av_insert and so on */
struct fi_ops_av {
	size_t size;
	int (*insert)(struct fid_av *av, const void *addr, size_t cnt, fi_addr_t *fi_addr,
		      uint64_t flags, void *context);
	int (*insertsvc)(struct fid_av *av, const char *node, const char *service,
			 fi_addr_t *fi_addr, uint64_t flags, void *context);
	int (*insertsym)(struct fid_av *av, const char *node, size_t node_cnt,
			 const char *service, size_t svc_cnt, fi_addr_t *fi_addr,
			 uint64_t flags, void *context);
	int (*remove)(struct fid_av *av, fi_addr_t *fi_addr, size_t cnt, uint64_t flags);
	int (*lookup)(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen);
	const char *(*straddr)(struct fid_av *av, const void *addr, char *buf, size_t *len);
	int (*av_set)(struct fid_av *av, struct fi_av_set_attr *attr,
		      struct fid_av_set **av_set, void *context);
	int (*insert_auth_key)(struct fid_av *av, const void *auth_key, size_t auth_key_size,
			       fi_addr_t *fi_addr, uint64_t flags);
	int (*lookup_auth_key)(struct fid_av *av, fi_addr_t fi_addr, void *auth_key,
			       size_t *auth_key_size);
	int (*set_user_id)(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id,
			   uint64_t flags);
	int (*lookup2)(struct fid_av *av, fi_addr_t fi_addr, void *buf, size_t *len,
		       uint64_t flags, struct fid_xpu_ctx *ctx);
};

/*
 * struct fid_av - address vector: addresses of peers, and their fi_addr_t
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_av(3).
 */
struct fid_av {
	struct fid fid;
	struct fi_ops_av *ops;
};

/* Memory regions */

/* fi_mr_regattr flags */
#define FI_MR_DMABUF	    (1ULL << 40)
#define FI_MR_SINGLE_USE    (1ULL << 41)
#define FI_HMEM_HOST_ALLOC  (1ULL << 45)
#define FI_HMEM_DEVICE_ONLY (1ULL << 46)

/*
 * struct fid_mr - registered memory; fi_mr_desc and fi_mr_key read it
 * @fid:       object header
 * @mem_desc:  local descriptor
 * @key:       for peers
 *
 * Source: fi_mr(3).
 */
struct fid_mr {
	struct fid fid;
	void *mem_desc;
	uint64_t key;
};

/*
 * enum fi_hmem_iface - whose memory a region is: ordinary, or a kind of device's. Source: fi_mr(3)
 */
enum fi_hmem_iface {
	FI_HMEM_SYSTEM,
	FI_HMEM_CUDA,
	FI_HMEM_ROCR,
	FI_HMEM_ZE,
	FI_HMEM_NEURON,
	FI_HMEM_SYNAPSEAI,
};

/*
 * struct fi_mr_dmabuf - a range of a dma-buf, to register
 * @fd:         of the dma-buf
 * @offset:     bytes from its beginning
 * @len:        bytes
 * @base_addr:  where its beginning is mapped, or NULL
 *
 * Source: fi_mr(3).
 */
struct fi_mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

/*
 * struct fi_mr_auth_key - auth_key of a region where keys are in the address vector
 * @av:        the address vector
 * @src_addr:  entry whose peers may use the region
 *
 * Source: fi_mr(3).
 */
struct fi_mr_auth_key {
	struct fid_av *av;
	fi_addr_t src_addr;
};

/*
 * struct fi_mr_attr - what to register
 * @mr_iov:         iov_count ranges
 * @iov_count:      at most domain_attr->mr_iov_limit
 * @access:         FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE
 * @offset:         must be 0
 * @requested_key:  the key, unless the domain has FI_MR_PROV_KEY
 * @context:        kept in the fid
 * @auth_key_size:  bytes of auth_key
 * @auth_key:       whose bearers may use the region; NULL for the domain's
 * @iface:          whose memory it is, with FI_HMEM
 * @device:         and which device of that kind
 * @reserved:       of FI_HMEM_SYSTEM: must be 0
 * @cuda:           number of the device, as the four that follow
 * @ze:             of fi_hmem_ze_device
 * @neuron:         number of the device
 * @synapseai:      number of the device
 * @rocr:           number of the device
 *
 * Source: fi_mr(3).
 */
struct fi_mr_attr {
	union {
		const struct iovec *mr_iov;
		const struct fi_mr_dmabuf *dmabuf; /* with FI_MR_DMABUF */
	};
	size_t iov_count;
	uint64_t access;
	uint64_t offset;
	uint64_t requested_key;
	void *context;
	size_t auth_key_size;
	uint8_t *auth_key;
	enum fi_hmem_iface iface;
	union {
		uint64_t reserved;
		int cuda;
		int ze;
		int neuron;
		int synapseai;
		int rocr;
	} device;
	void *hmem_data;	      /* since 1.19; older callers end before it */
	size_t page_size;	      /* since 1.22 */
	const struct fid_mr *base_mr; /* since 2.0 */
	size_t sub_mr_cnt;	      /* since 2.0 */
};

/*
 * struct fi_mr_modify - argument of FI_REFRESH; fi_mr_refresh() fills it in
 * @flags:  must be 0
 * @attr:   of which only the ranges count
 *
 * Source: fi_mr(3).
 */
struct fi_mr_modify {
	uint64_t flags;
	struct fi_mr_attr attr;
};

/* struct fi_ops_mr - calls of a domain for memory: fi_mr_reg, fi_mr_regv, fi_mr_regattr */
struct fi_ops_mr {
	size_t size;
	int (*reg)(struct fid *fid, const void *buf, size_t len, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context);
	int (*regv)(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access,
		    uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		    void *context);
	int (*regattr)(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		       struct fid_mr **mr);
};

/* fi_set_ops name, and its table: the application copies device memory itself. */
#define FI_SET_OPS_HMEM_OVERRIDE "hmem_override_ops"

/*
 * struct fi_hmem_override_ops - how the application copies device memory itself
 *
 * Each call copies between len bytes in host memory and a vector of device memory from an offset
 * on, and returns the bytes copied or a negative error. Source: fi_domain(3).
 */
struct fi_hmem_override_ops {
	size_t size;
	ssize_t (*copy_from_hmem_iov)(void *dst, size_t len, enum fi_hmem_iface iface,
				      uint64_t device, const struct iovec *iov, size_t iov_cnt,
				      uint64_t iov_offset);
	ssize_t (*copy_to_hmem_iov)(enum fi_hmem_iface iface, uint64_t device,
				    const struct iovec *iov, size_t iov_cnt,
				    uint64_t iov_offset, const void *src, size_t len);
};

/* Operands of atomics and collectives; the latter add values from 256 up. */

#define FI_COLLECTIVE_OFFSET 256

/*
 * enum fi_datatype - elements of atomics and collectives, as C has them
 *
 * FI_VOID is none, for collectives without data. Source: fi_atomic(3).
 */
enum fi_datatype {
	FI_INT8,
	FI_UINT8,
	FI_INT16,
	FI_UINT16,
	FI_INT32,
	FI_UINT32,
	FI_INT64,
	FI_UINT64,
	FI_FLOAT,
	FI_DOUBLE,
	FI_FLOAT_COMPLEX,
	FI_DOUBLE_COMPLEX,
	FI_LONG_DOUBLE,
	FI_LONG_DOUBLE_COMPLEX,
	FI_INT128,
	FI_UINT128,
	FI_FLOAT16,
	FI_BFLOAT16,
	FI_FLOAT8_E4M3,
	FI_FLOAT8_E5M2,
	FI_VOID = FI_COLLECTIVE_OFFSET,
};

/*
 * enum fi_op - what an atomic or a reduction does with target and operand
 *
 * FI_NOOP is none, for collectives that do not reduce. Source: fi_atomic(3).
 */
enum fi_op {
	FI_MIN,
	FI_MAX,
	FI_SUM,
	FI_PROD,
	FI_LOR,
	FI_LAND,
	FI_BOR,
	FI_BAND,
	FI_LXOR,
	FI_BXOR,
	FI_ATOMIC_READ,
	FI_ATOMIC_WRITE,
	FI_CSWAP, /* store if compare == target ... */
	FI_CSWAP_NE,
	FI_CSWAP_LE, /* ... or compare <= target, and so on */
	FI_CSWAP_LT,
	FI_CSWAP_GE,
	FI_CSWAP_GT,
	FI_MSWAP, /* only the bits set in compare */
	FI_DIFF,
	FI_NOOP = FI_COLLECTIVE_OFFSET,
};

/* enum fi_collective_op - kinds of collective. Source: fi_collective(3) */
enum fi_collective_op {
	FI_BARRIER,
	FI_BROADCAST,
	FI_ALLTOALL,
	FI_ALLREDUCE,
	FI_ALLGATHER,
	FI_REDUCE_SCATTER,
	FI_REDUCE,
	FI_SCATTER,
	FI_GATHER,
};

/* Domains */

/* fi_domain_bind to an EQ: registrations complete there (deprecated) */
#define FI_REG_MR (1ULL << 59)

struct fi_atomic_attr;
struct fi_collective_attr;
struct fi_xpu_attr;

/* struct fi_ops_domain - calls of a domain: fi_av_open, fi_cq_open, fi_endpoint and so on */
struct fi_ops_domain {
	size_t size;
	int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		       void *context);
	int (*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		       void *context);
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			void *context);
	int (*scalable_ep)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			   void *context);
	int (*cntr_open)(struct fid_domain *domain, struct fi_cntr_attr *attr,
			 struct fid_cntr **cntr, void *context);
	int (*poll_open)(struct fid_domain *domain, struct fi_poll_attr *attr,
			 struct fid_poll **pollset);
	int (*stx_ctx)(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		       void *context);
	int (*srx_ctx)(struct fid_domain *domain, struct fi_rx_attr *attr,
		       struct fid_ep **rx_ep, void *context);
	int (*query_atomic)(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags);
	int (*query_collective)(struct fid_domain *domain, enum fi_collective_op coll,
				struct fi_collective_attr *attr, uint64_t flags);
	int (*endpoint2)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 uint64_t flags, void *context);
	int (*xpu_ctx)(struct fid_domain *domain, struct fi_xpu_attr *attr,
		       struct fid_xpu_ctx **ctx, void *context);
};

/*
 * struct fid_domain - one interface of one fabric
 * @fid:  object header
 * @ops:  its calls
 * @mr:   those for memory
 *
 * Source: fi_domain(3).
 */
struct fid_domain {
	struct fid fid;
	struct fi_ops_domain *ops;
	struct fi_ops_mr *mr;
};

/*
 * fi_domain - open the domain that an fi_info names
 * @info:   from fi_getinfo; borrowed for the call
 * @domain: set to it
 *
 * Returns 0, or -FI_EINVAL for attributes it cannot give, -FI_ENOMEM.
 * Source: fi_domain(3).
 */
static inline int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
			    struct fid_domain **domain, void *context)
{
	return fabric->ops->domain(fabric, info, domain, context);
}

/*
 * fi_domain2 - the same with flags
 * @flags: FI_PEER: context is a struct fi_peer_domain_context
 *
 * Returns as fi_domain does, -FI_ENOSYS from old providers if flags are set.
 */
static inline int fi_domain2(struct fid_fabric *fabric, struct fi_info *info,
			     struct fid_domain **domain, uint64_t flags, void *context)
{
	if (flags == 0)
		return fabric->ops->domain(fabric, info, domain, context);
	if (!FI_CHECK_OP(fabric->ops, struct fi_ops_fabric, domain2))
		return -FI_ENOSYS;
	return fabric->ops->domain2(fabric, info, domain, flags, context);
}

/* fi_domain_bind - report the domain's events to an EQ; 0 or an error. Source: fi_domain(3) */
static inline int fi_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags)
{
	return domain->fid.ops->bind(&domain->fid, fid, flags);
}

/*
 * fi_cq_open - create a completion queue
 * @attr: format, wait object, size; what is left 0 the provider chooses and
 *        writes back
 * @cq:   set to it
 *
 * Returns 0, or -FI_ENOSYS for a format or wait object that is not offered,
 * -FI_ENOMEM. Source: fi_cq(3).
 */
static inline int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
			     struct fid_cq **cq, void *context)
{
	return domain->ops->cq_open(domain, attr, cq, context);
}

/* fi_cntr_open - create a counter; errors as fi_cq_open. Source: fi_cntr(3) */
static inline int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			       struct fid_cntr **cntr, void *context)
{
	return domain->ops->cntr_open(domain, attr, cntr, context);
}

/* fi_wait_open - create a wait set; 0 or an error. Source: fi_poll(3) */
static inline FI_DEPRECATED_FUNC int fi_wait_open(struct fid_fabric *fabric,
						  struct fi_wait_attr *attr,
						  struct fid_wait **waitset)
{
	return fabric->ops->wait_open(fabric, attr, waitset);
}

/* fi_poll_open - create a poll set; 0 or an error. Source: fi_poll(3) */
static inline FI_DEPRECATED_FUNC int fi_poll_open(struct fid_domain *domain,
						  struct fi_poll_attr *attr,
						  struct fid_poll **pollset)
{
	return domain->ops->poll_open(domain, attr, pollset);
}

/*
 * fi_mr_reg - register memory
 * @buf, @len: the range
 * @access:    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE
 * @offset:    must be 0
 * @requested_key: the key, unless the domain has FI_MR_PROV_KEY
 * @mr:        set to the region; fi_close ends it
 *
 * Returns 0, or -FI_ENOKEY when the key is taken, -FI_EINVAL, -FI_EBADFLAGS,
 * -FI_ENOMEM. Source: fi_mr(3).
 */
static inline int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len,
			    uint64_t access, uint64_t offset, uint64_t requested_key,
			    uint64_t flags, struct fid_mr **mr, void *context)
{
	return domain->mr->reg(&domain->fid, buf, len, access, offset, requested_key, flags, mr,
			       context);
}

/* fi_mr_regv - fi_mr_reg for several ranges under one key. Source: fi_mr(3) */
static inline int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t cnt,
			     uint64_t access, uint64_t offset, uint64_t requested_key,
			     uint64_t flags, struct fid_mr **mr, void *context)
{
	return domain->mr->regv(&domain->fid, iov, cnt, access, offset, requested_key, flags,
				mr, context);
}

/* fi_mr_regattr - fi_mr_reg with everything in one struct. Source: fi_mr(3) */
static inline int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
				uint64_t flags, struct fid_mr **mr)
{
	return domain->mr->regattr(&domain->fid, attr, flags, mr);
}

/* fi_mr_desc - the local descriptor that transfers take. Source: fi_mr(3) */
static inline void *fi_mr_desc(struct fid_mr *mr)
{
	return mr->mem_desc;
}

/* fi_mr_key - the key that peers use; FI_KEY_NOTAVAIL before it has one. Source: fi_mr(3) */
static inline uint64_t fi_mr_key(struct fid_mr *mr)
{
	return mr->key;
}

/*
 * fi_mr_raw_attr - a key that is longer than 64 bits
 * @base_addr: set to the region's base
 * @raw_key:   receives the key
 * @key_size:  in: room at raw_key; out: bytes of the key
 *
 * Returns 0, or -FI_ETOOSMALL. Source: fi_mr(3).
 */
static inline int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key,
				 size_t *key_size, uint64_t flags)
{
	struct fi_mr_raw_attr arg = { flags, base_addr, raw_key, key_size };

	return mr->fid.ops->control(&mr->fid, FI_GET_RAW_MR, &arg);
}

/* fi_mr_map_raw - a 64-bit key for a peer's raw one; 0 or an error. Source: fi_mr(3) */
static inline int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key,
				size_t key_size, uint64_t *key, uint64_t flags)
{
	struct fi_mr_map_raw arg = { flags, base_addr, raw_key, key_size, key };

	return domain->fid.ops->control(&domain->fid, FI_MAP_RAW_MR, &arg);
}

/* fi_mr_unmap_key - give back what fi_mr_map_raw returned. Source: fi_mr(3) */
static inline int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key)
{
	return domain->fid.ops->control(&domain->fid, FI_UNMAP_KEY, &key);
}

/* fi_mr_bind - tie a region to an endpoint or counter; 0 or an error. Source: fi_mr(3) */
static inline int fi_mr_bind(struct fid_mr *mr, struct fid *fid, uint64_t flags)
{
	return mr->fid.ops->bind(&mr->fid, fid, flags);
}

/* fi_mr_refresh - pages behind these ranges changed; 0 or an error. Source: fi_mr(3) */
static inline int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t cnt,
				uint64_t flags)
{
	struct fi_mr_modify arg;

	memset(&arg, 0, sizeof(arg));
	arg.flags = flags;
	arg.attr.mr_iov = iov;
	arg.attr.iov_count = cnt;
	return mr->fid.ops->control(&mr->fid, FI_REFRESH, &arg);
}

/* fi_mr_enable - make a bound region usable; 0 or an error. Source: fi_mr(3) */
static inline int fi_mr_enable(struct fid_mr *mr)
{
	return mr->fid.ops->control(&mr->fid, FI_ENABLE, NULL);
}

/*
 * fi_mr_get_xpu_desc - the descriptor that a device passes to transfers
 * @len: in: room at buf; out: bytes of the descriptor
 *
 * Returns 0, or -FI_ENOSYS from providers without it. Source: fi_xpu(3).
 */
static inline int fi_mr_get_xpu_desc(struct fid_mr *mr, void *buf, size_t *len, uint64_t flags,
				     struct fid_xpu_ctx *ctx)
{
	struct fi_mr_xpu_desc arg = { buf, len, flags, ctx };

	return fi_control(&mr->fid, FI_GET_MR_XPU_DESC, &arg);
}

/* fi_hmem_ze_device - the number of a Level Zero device in fi_mr_attr. Source: fi_mr(3) */
static inline int fi_hmem_ze_device(int driver_index, int device_index)
{
	return (driver_index << 16) | device_index;
}

/*
 * fi_av_open - create an address vector
 * @attr: type is written back when it was FI_AV_UNSPEC
 * @av:   set to it
 *
 * Returns 0, or -FI_ENOSYS for a kind that is not offered, -FI_ENOMEM.
 * Source: fi_av(3).
 */
static inline int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
			     struct fid_av **av, void *context)
{
	return domain->ops->av_open(domain, attr, av, context);
}

/* fi_av_bind - report asynchronous inserts to an EQ; 0 or an error. Source: fi_av(3) */
static inline FI_DEPRECATED_FUNC int fi_av_bind(struct fid_av *av, struct fid *fid,
						uint64_t flags)
{
	return av->fid.ops->bind(&av->fid, fid, flags);
}

/*
 * fi_av_insert - make addresses usable in transfers
 * @addr:    cnt addresses of the domain's format, one after the other
 * @fi_addr: receives an entry each, FI_ADDR_NOTAVAIL for one that failed; may
 *           be NULL with FI_AV_TABLE
 * @context: with FI_SYNC_ERR an int per address
 *
 * Returns how many were inserted, or a negative error when none was tried.
 * Source: fi_av(3).
 */
static inline int fi_av_insert(struct fid_av *av, const void *addr, size_t cnt,
			       fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insert(av, addr, cnt, fi_addr, flags, context);
}

/* fi_av_insertsvc - insert one address by host and service name; 1 or an error */
static inline int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service,
				  fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insertsvc(av, node, service, fi_addr, flags, context);
}

/*
 * fi_av_insertsym - insert consecutive nodes and services
 * @node:    first name or address; it is counted up node_cnt times
 * @service: first port; it is counted up svc_cnt times for each node
 *
 * Returns as fi_av_insert does. Source: fi_av(3).
 */
static inline int fi_av_insertsym(struct fid_av *av, const char *node, size_t node_cnt,
				  const char *service, size_t svc_cnt, fi_addr_t *fi_addr,
				  uint64_t flags, void *context)
{
	return av->ops->insertsym(av, node, node_cnt, service, svc_cnt, fi_addr, flags, context);
}

/*
 * fi_av_remove - forget entries; no transfer may use them any more
 *
 * An address that was inserted several times is to be removed as often. Returns 0, or -FI_EINVAL when
 * one of them is not there: all are left then. Source: fi_av(3).
 */
static inline int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t cnt, uint64_t flags)
{
	return av->ops->remove(av, fi_addr, cnt, flags);
}

/*
 * fi_av_lookup - the address of an entry
 * @addrlen: in: room at addr; out: bytes of the address, copied as far as it fits
 *
 * Returns 0, or -FI_EINVAL for no such entry. Source: fi_av(3).
 */
static inline int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	return av->ops->lookup(av, fi_addr, addr, addrlen);
}

/*
 * fi_av_straddr - an address in words
 * @len: in: room at buf; out: bytes needed, with the zero byte
 *
 * Returns buf. Source: fi_av(3).
 */
static inline const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf,
					size_t *len)
{
	return av->ops->straddr(av, addr, buf, len);
}

/* fi_av_insert_auth_key - an entry for an authorization key; -FI_ENOSYS without it */
static inline int fi_av_insert_auth_key(struct fid_av *av, const void *auth_key,
					size_t auth_key_size, fi_addr_t *fi_addr, uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, insert_auth_key))
		return -FI_ENOSYS;
	return av->ops->insert_auth_key(av, auth_key, auth_key_size, fi_addr, flags);
}

/* fi_av_lookup_auth_key - the key of such an entry; -FI_ENOSYS without it */
static inline int fi_av_lookup_auth_key(struct fid_av *av, fi_addr_t addr, void *auth_key,
					size_t *auth_key_size)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, lookup_auth_key))
		return -FI_ENOSYS;
	return av->ops->lookup_auth_key(av, addr, auth_key, auth_key_size);
}

/* fi_av_set_user_id - what completions report as source instead of fi_addr */
static inline int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id,
				    uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, set_user_id))
		return -FI_ENOSYS;
	return av->ops->set_user_id(av, fi_addr, user_id, flags);
}

/* fi_av_lookup2 - an entry's address as a device takes it; -FI_ENOSYS without it */
static inline int fi_av_lookup2(struct fid_av *av, fi_addr_t fi_addr, void *buf, size_t *len,
				uint64_t flags, struct fid_xpu_ctx *ctx)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, lookup2))
		return -FI_ENOSYS;
	return av->ops->lookup2(av, fi_addr, buf, len, flags, ctx);
}

/* fi_rx_addr - an entry, and one receive context of it (FI_NAMED_RX_CTX). Source: fi_av(3) */
static inline fi_addr_t fi_rx_addr(fi_addr_t fi_addr, int rx_index, int rx_ctx_bits)
{
	return fi_addr | ((fi_addr_t)rx_index << (64 - rx_ctx_bits));
}

/* fi_group_addr - an entry, within a group of max_group_id. Source: fi_av(3) */
static inline fi_addr_t fi_group_addr(fi_addr_t fi_addr, uint32_t group_id)
{
	return fi_addr | ((fi_addr_t)group_id << 32);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_DOMAIN_H */
