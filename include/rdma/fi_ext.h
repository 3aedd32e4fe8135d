/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extensions: options of single providers, and importing the application's
 * own objects (memory monitor, logging) into the library. The calls run on
 * the caller's thread; imported objects are called on any thread.
 * Source: fi_provider(3), fi_mr(3), fi_efa(7).
 */
#ifndef FI_EXT_H
#define FI_EXT_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A provider's own options are negative: minus its 12-bit number shifted by
 * 16, and upwards from there.
 */
#define FI_PROV_SPECIFIC_EFA (0xefa << 16)
#define FI_PROV_SPECIFIC_TCP (0x7cb << 16)

enum {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA, /* size_t */
	FI_OPT_EFA_EMULATED_READ,		      /* bool, as all below */
	FI_OPT_EFA_EMULATED_WRITE,
	FI_OPT_EFA_EMULATED_ATOMICS,
	FI_OPT_EFA_USE_DEVICE_RDMA,
	FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_HOMOGENEOUS_PEERS,
	FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV,
};

/*
 * struct fi_fid_export - argument of FI_EXPORT_FID; fi_export_fid() fills it in
 * @fid:      receives the form that can be imported
 * @flags:    must be 0
 * @context:  kept in that fid
 *
 * Source: fi_control(3).
 */
struct fi_fid_export {
	struct fid **fid;
	uint64_t flags;
	void *context;
};

/* fi_export_fid - a form of the object that another library can import; 0 or an error */
static inline int fi_export_fid(struct fid *fid, uint64_t flags, struct fid **expfid,
				void *context)
{
	struct fi_fid_export arg = { expfid, flags, context };

	return fi_control(fid, FI_EXPORT_FID, &arg);
}

/* fi_import_fid - hand an exported or own object to @fid; 0 or an error */
static inline int fi_import_fid(struct fid *fid, struct fid *expfid, uint64_t flags)
{
	return fid->ops->bind(fid, expfid, flags);
}

/* A memory monitor of the application's, imported into "mr_cache". */
struct fid_mem_monitor;

/*
 * struct fi_ops_mem_monitor - what a monitor of the application's does for the library
 *
 * start and stop frame its use; subscribe asks to be told when what is mapped in a range changes,
 * unsubscribe takes that back, valid says whether nothing has changed. Calls return 0 or a negative
 * error. Source: fi_provider(7).
 */
struct fi_ops_mem_monitor {
	size_t size;
	int (*start)(struct fid_mem_monitor *monitor);
	void (*stop)(struct fid_mem_monitor *monitor);
	int (*subscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	void (*unsubscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	bool (*valid)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

/*
 * struct fi_ops_mem_notify - what the library gives the monitor: notify says that a range changed
 *
 * Source: fi_provider(7).
 */
struct fi_ops_mem_notify {
	size_t size;
	void (*notify)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

/*
 * struct fid_mem_monitor - memory monitor of the application's, imported into "mr_cache"
 * @fid:         object header
 * @export_ops:  the application's calls
 * @import_ops:  the library's; set by the import
 *
 * Source: fi_provider(7).
 */
struct fid_mem_monitor {
	struct fid fid;
	struct fi_ops_mem_monitor *export_ops;
	struct fi_ops_mem_notify *import_ops;
};

/* Logging of the application's, imported into "logging". */

/* Flag of fi_ops_log.enabled and ready: FI_LOG_PROV keeps this provider out */
#define FI_LOG_PROV_FILTERED (1ULL << 0)

/*
 * struct fi_ops_log - what a logger of the application's does for the library
 *
 * enabled says whether a line would be printed, ready the same at most once in a while (as
 * fi_log_ready), log prints one.
 */
struct fi_ops_log {
	size_t size;
	int (*enabled)(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags);
	int (*ready)(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime);
	void (*log)(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, const char *func, int line, const char *msg);
};

/*
 * struct fid_logging - logger of the application's, imported into "logging"
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_provider(7).
 */
struct fid_logging {
	struct fid fid;
	struct fi_ops_log *ops;
};

/*
 * fi_import - open one of the library's own objects, import into it, close it
 * @name, @attr, @attr_len: as for fi_open
 * @fid: what is imported; the library keeps it
 *
 * Returns 0, or the error of fi_open or of the import.
 */
static inline int fi_import(uint32_t version, const char *name, void *attr, size_t attr_len,
			    uint64_t flags, struct fid *fid, void *context)
{
	struct fid *host = NULL;
	int ret = fi_open(version, name, attr, attr_len, flags, &host, context);

	if (ret)
		return ret;
	ret = fi_import_fid(host, fid, flags);
	fi_close(host);
	return ret;
}

/*
 * fi_import_log - send the library's log to the application
 * @log_fid: its ops are filled in but for the size; class and size are set here
 *
 * Returns as fi_import does.
 */
static inline int fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
{
	log_fid->ops->size = sizeof(*log_fid->ops);
	log_fid->fid.fclass = FI_CLASS_LOG;
	return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid, log_fid);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_H */
