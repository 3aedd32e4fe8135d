/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layouts and values of NVM Express, base specification 1.4, as far as the controller and the client of this
 * folder's users need them. All integers are little-endian, in memory and in registers. What the specification
 * reserves is named rsvdN after its first byte, is zero where we write it, and is not looked at where we read it.
 */
#ifndef WEFT_DEVICES_NVME_SPEC_H
#define WEFT_DEVICES_NVME_SPEC_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Controller registers, offsets in BAR 0 (section 3.1) */
enum nvme_reg {
	NVME_REG_CAP = 0x00,
	NVME_REG_VS = 0x08,
	NVME_REG_INTMS = 0x0c,
	NVME_REG_INTMC = 0x10,
	NVME_REG_CC = 0x14,
	NVME_REG_CSTS = 0x1c,
	NVME_REG_NSSR = 0x20,
	NVME_REG_AQA = 0x24,
	NVME_REG_ASQ = 0x28,
	NVME_REG_ACQ = 0x30,
	NVME_REG_CMBLOC = 0x38,
	NVME_REG_CMBSZ = 0x3c,
	NVME_REG_CMBMSC = 0x50,
	NVME_REG_CMBSTS = 0x58,
	NVME_REG_DOORBELLS = 0x1000,
};

#define NVME_VERSION_1_4 0x00010400u

/* CAP */
#define NVME_CAP_MQES(cap)   ((uint32_t)((cap)&0xffff))
#define NVME_CAP_CQR	     (1ULL << 16)
#define NVME_CAP_TO(cap)     ((uint32_t)((cap) >> 24 & 0xff)) /* of 500 ms */
#define NVME_CAP_TO_SHIFT    24
#define NVME_CAP_DSTRD(cap)  ((uint32_t)((cap) >> 32 & 0xf))
#define NVME_CAP_DSTRD_SHIFT 32
#define NVME_CAP_CSS_NVM     (1ULL << 37)
#define NVME_CAP_MPSMIN(cap) ((uint32_t)((cap) >> 48 & 0xf))
#define NVME_CAP_CMBS	     (1ULL << 57)

/* AQA: entries minus one, of the submission queue and the completion queue */
#define NVME_AQA_ASQS(aqa) ((aqa)&0xfff)
#define NVME_AQA_ACQS(aqa) ((aqa) >> 16 & 0xfff)

/* Controller memory: CMBLOC and CMBSZ are 0 until CMBMSC.CRE is set. */
#define NVME_CMBLOC_BIR(loc)	((loc)&7)
#define NVME_CMBLOC_CQMMS	(1u << 3) /* queues may be partly in other memory */
#define NVME_CMBLOC_CDPMLS	(1u << 5) /* and so may PRP lists */
#define NVME_CMBLOC_CDPCILS	(1u << 6) /* and data of a command whose lists are not here */
#define NVME_CMBLOC_CDMMMS	(1u << 7) /* and data of one command */
#define NVME_CMBSZ_SQS		(1u << 0)
#define NVME_CMBSZ_CQS		(1u << 1)
#define NVME_CMBSZ_LISTS	(1u << 2)
#define NVME_CMBSZ_RDS		(1u << 3)
#define NVME_CMBSZ_WDS		(1u << 4)
#define NVME_CMBSZ_SZU(sz)	((sz) >> 8 & 0xf) /* 0: of 4 KiB, and 16 times more with each */
#define NVME_CMBSZ_SZ_SHIFT	12
#define NVME_CMBLOC_OFST_SHIFT	12 /* in units of CMBSZ.SZU */
#define NVME_CMBMSC_CRE		(1ULL << 0)
#define NVME_CMBMSC_CMSE	(1ULL << 1)
#define NVME_CMBMSC_CBA(cmbmsc) ((cmbmsc) & ~0xfffULL)
#define NVME_CMBSTS_CBAI	(1u << 0)

/* CC */
#define NVME_CC_EN	     (1u << 0)
#define NVME_CC_CSS(cc)	     ((cc) >> 4 & 7)
#define NVME_CC_MPS(cc)	     ((cc) >> 7 & 0xf)
#define NVME_CC_AMS(cc)	     ((cc) >> 11 & 7)
#define NVME_CC_SHN(cc)	     ((cc) >> 14 & 3)
#define NVME_CC_SHN_NORMAL   (1u << 14)
#define NVME_CC_SHN_ABRUPT   (2u << 14)
#define NVME_CC_IOSQES(cc)   ((cc) >> 16 & 0xf)
#define NVME_CC_IOSQES_SHIFT 16
#define NVME_CC_IOCQES(cc)   ((cc) >> 20 & 0xf)
#define NVME_CC_IOCQES_SHIFT 20

/* CSTS */
#define NVME_CSTS_RDY	     (1u << 0)
#define NVME_CSTS_CFS	     (1u << 1)
#define NVME_CSTS_SHST(csts) ((csts) >> 2 & 3)
#define NVME_CSTS_SHST_BUSY  (1u << 2)
#define NVME_CSTS_SHST_DONE  (2u << 2)

#define NVME_SQE_SHIFT 6u /* log2 of an entry's bytes, for CC.IOSQES */
#define NVME_CQE_SHIFT 4u

#define NVME_PAGE 4096u /* CC.MPS 0, the one memory page size here */

/* nvme_page_len - bytes of the pages that @len bytes from the beginning of one take */
static inline uint64_t nvme_page_len(uint64_t len)
{
	return (len + NVME_PAGE - 1) & ~(uint64_t)(NVME_PAGE - 1);
}

enum nvme_admin_opcode {
	NVME_ADMIN_DELETE_SQ = 0x00,
	NVME_ADMIN_CREATE_SQ = 0x01,
	NVME_ADMIN_GET_LOG_PAGE = 0x02,
	NVME_ADMIN_DELETE_CQ = 0x04,
	NVME_ADMIN_CREATE_CQ = 0x05,
	NVME_ADMIN_IDENTIFY = 0x06,
	NVME_ADMIN_ABORT = 0x08,
	NVME_ADMIN_SET_FEATURES = 0x09,
	NVME_ADMIN_GET_FEATURES = 0x0a,
	NVME_ADMIN_ASYNC_EVENT = 0x0c,
	/* vendor specific from 0xc0 on: devices/nvme/lease.h */
};

enum nvme_io_opcode {
	NVME_IO_FLUSH = 0x00,
	NVME_IO_WRITE = 0x01,
	NVME_IO_READ = 0x02,
	NVME_IO_COMPARE = 0x05,
	NVME_IO_WRITE_ZEROES = 0x08,
	NVME_IO_DSM = 0x09,
};

/* Status: type << 8 | code, as it stands in bits 1 to 11 of the status field (figures 128 to 132) */
enum nvme_status {
	NVME_SC_SUCCESS = 0x000,
	NVME_SC_INVALID_OPCODE = 0x001,
	NVME_SC_INVALID_FIELD = 0x002,
	NVME_SC_CID_CONFLICT = 0x003,
	NVME_SC_DATA_TRANSFER = 0x004,
	NVME_SC_INTERNAL = 0x006,
	NVME_SC_ABORT_REQUESTED = 0x007,
	NVME_SC_ABORT_SQ_DELETED = 0x008,
	NVME_SC_INVALID_NAMESPACE = 0x00b,
	NVME_SC_SEQUENCE = 0x00c,
	NVME_SC_INVALID_PRP_OFFSET = 0x013,
	NVME_SC_WRITE_PROTECTED = 0x020,
	NVME_SC_LBA_RANGE = 0x080,
	NVME_SC_CAPACITY = 0x081,
	NVME_SC_NOT_READY = 0x082,
	NVME_SC_INVALID_CQ = 0x100,
	NVME_SC_INVALID_QID = 0x101,
	NVME_SC_INVALID_QUEUE_SIZE = 0x102,
	NVME_SC_ABORT_LIMIT = 0x103,
	NVME_SC_AER_LIMIT = 0x105,
	NVME_SC_INVALID_VECTOR = 0x108,
	NVME_SC_INVALID_LOG_PAGE = 0x109,
	NVME_SC_INVALID_QUEUE_DELETION = 0x10c,
	NVME_SC_FEATURE_NOT_SAVEABLE = 0x10d,
	NVME_SC_FEATURE_NOT_CHANGEABLE = 0x10e,
	NVME_SC_CONFLICTING_ATTRIBUTES = 0x180,
	NVME_SC_WRITE_FAULT = 0x280,
	NVME_SC_READ_ERROR = 0x281,
	NVME_SC_COMPARE_FAILURE = 0x285,
	NVME_SC_DNR = 0x4000, /* do not retry: bit 15 of the field */
};

/* A submission queue entry (figure 105) */
struct nvme_sqe {
	uint8_t opcode;
	uint8_t flags; /* FUSE in bits 0 and 1, PSDT in bits 6 and 7; both 0: PRPs */
	uint16_t cid;
	uint32_t nsid;
	uint32_t cdw2;
	uint32_t cdw3;
	uint64_t mptr;
	uint64_t prp1;
	uint64_t prp2;
	uint32_t cdw10;
	uint32_t cdw11;
	uint32_t cdw12;
	uint32_t cdw13;
	uint32_t cdw14;
	uint32_t cdw15;
};

static_assert(sizeof(struct nvme_sqe) == 64, "figure 105");
static_assert(offsetof(struct nvme_sqe, prp1) == 24, "figure 105");
static_assert(offsetof(struct nvme_sqe, cdw10) == 40, "figure 105");

/* A completion queue entry (figure 123). The phase is bit 0 of @status, the status above it. */
struct nvme_cqe {
	uint32_t result;
	uint32_t rsvd4;
	uint16_t sq_head;
	uint16_t sq_id;
	uint16_t cid;
	uint16_t status;
};

static_assert(sizeof(struct nvme_cqe) == 16, "figure 123");
static_assert(offsetof(struct nvme_cqe, status) == 14, "figure 123");

#define NVME_CQE_PHASE(status)	((status)&1u)
#define NVME_CQE_STATUS(status) ((uint16_t)(status) >> 1)

/* A range of Dataset Management (figure 363) */
struct nvme_dsm_range {
	uint32_t attributes;
	uint32_t blocks;
	uint64_t lba;
};

static_assert(sizeof(struct nvme_dsm_range) == 16, "figure 363");

#define NVME_DSM_RANGES_MAX 256u
#define NVME_DSM_DEALLOCATE (1u << 2) /* AD in cdw11 */

#define NVME_RW_FUA  (1u << 30) /* in cdw12 */
#define NVME_RW_DEAC (1u << 25) /* in cdw12 of Write Zeroes: deallocate */

/* cdw11 of Create I/O Completion Queue and Create I/O Submission Queue */
#define NVME_QUEUE_CONTIGUOUS (1u << 0)
#define NVME_CQ_INTERRUPTS    (1u << 1)
#define NVME_CQ_VECTOR(cdw11) ((cdw11) >> 16)

enum nvme_cns {
	NVME_CNS_NAMESPACE = 0,
	NVME_CNS_CONTROLLER = 1,
	NVME_CNS_ACTIVE_NAMESPACES = 2,
	NVME_CNS_NAMESPACE_DESCRIPTORS = 3,
};

#define NVME_IDENTIFY_LEN 4096u

struct nvme_power_state {
	uint16_t max_power;
	uint8_t rsvd2[30];
};

/* Identify Controller (figure 249) */
struct nvme_id_ctrl {
	uint16_t vid;
	uint16_t ssvid;
	char sn[20];
	char mn[40];
	char fr[8];
	uint8_t rab;
	uint8_t ieee[3];
	uint8_t cmic;
	uint8_t mdts; /* a power of two, in units of the least page size; 0: no limit */
	uint16_t cntlid;
	uint32_t ver;
	uint32_t rtd3r;
	uint32_t rtd3e;
	uint32_t oaes;
	uint32_t ctratt;
	uint16_t rrls;
	uint8_t rsvd102[9];
	uint8_t cntrltype;
	uint8_t fguid[16];
	uint8_t rsvd128[128];
	uint16_t oacs;
	uint8_t acl;
	uint8_t aerl;
	uint8_t frmw;
	uint8_t lpa;
	uint8_t elpe;
	uint8_t npss;
	uint8_t avscc;
	uint8_t apsta;
	uint16_t wctemp;
	uint16_t cctemp;
	uint8_t rsvd270[242];
	uint8_t sqes;
	uint8_t cqes;
	uint16_t maxcmd;
	uint32_t nn;
	uint16_t oncs;
	uint16_t fuses;
	uint8_t fna;
	uint8_t vwc;
	uint16_t awun;
	uint16_t awupf;
	uint8_t nvscc;
	uint8_t nwpc;
	uint16_t acwu;
	uint8_t rsvd534[2];
	uint32_t sgls;
	uint32_t mnan;
	uint8_t rsvd544[224];
	char subnqn[256];
	uint8_t rsvd1024[1024];
	struct nvme_power_state psd[32];
	uint8_t vs[1024];
};

static_assert(sizeof(struct nvme_id_ctrl) == NVME_IDENTIFY_LEN, "figure 249");
static_assert(offsetof(struct nvme_id_ctrl, cntrltype) == 111, "figure 249");
static_assert(offsetof(struct nvme_id_ctrl, oacs) == 256, "figure 249");
static_assert(offsetof(struct nvme_id_ctrl, sqes) == 512, "figure 249");
static_assert(offsetof(struct nvme_id_ctrl, sgls) == 536, "figure 249");
static_assert(offsetof(struct nvme_id_ctrl, subnqn) == 768, "figure 249");
static_assert(offsetof(struct nvme_id_ctrl, psd) == 2048, "figure 249");

#define NVME_ONCS_COMPARE      (1u << 0)
#define NVME_ONCS_DSM	       (1u << 2)
#define NVME_ONCS_WRITE_ZEROES (1u << 3)
#define NVME_ONCS_SELECT       (1u << 4) /* Select in Get Features */
#define NVME_VWC_PRESENT       (1u << 0)

struct nvme_lba_format {
	uint16_t ms;
	uint8_t lbads; /* log2 of the bytes of a block */
	uint8_t rp;
};

/* Identify Namespace (figure 247) */
struct nvme_id_ns {
	uint64_t nsze;
	uint64_t ncap;
	uint64_t nuse;
	uint8_t nsfeat;
	uint8_t nlbaf; /* the number of formats minus one */
	uint8_t flbas;
	uint8_t mc;
	uint8_t dpc;
	uint8_t dps;
	uint8_t nmic;
	uint8_t rescap;
	uint8_t fpi;
	uint8_t dlfeat;
	uint16_t nawun;
	uint16_t nawupf;
	uint16_t nacwu;
	uint16_t nabsn;
	uint16_t nabo;
	uint16_t nabspf;
	uint16_t noiob;
	uint8_t nvmcap[16];
	uint8_t rsvd64[35];
	uint8_t nsattr; /* bit 0: write protected */
	uint8_t rsvd100[4];
	uint8_t nguid[16];
	uint8_t eui64[8];
	struct nvme_lba_format lbaf[16];
	uint8_t rsvd192[192];
	uint8_t vs[3712];
};

static_assert(sizeof(struct nvme_id_ns) == NVME_IDENTIFY_LEN, "figure 247");
static_assert(offsetof(struct nvme_id_ns, nguid) == 104, "figure 247");
static_assert(offsetof(struct nvme_id_ns, lbaf) == 128, "figure 247");

/* A descriptor of CNS 3, before its value (figure 250) */
struct nvme_ns_descriptor {
	uint8_t nidt; /* 1: EUI64, 2: NGUID, 3: UUID; 0: the end */
	uint8_t nidl;
	uint8_t rsvd2[2];
};

enum nvme_log_page {
	NVME_LOG_ERROR = 0x01,
	NVME_LOG_SMART = 0x02,
	NVME_LOG_FIRMWARE = 0x03,
};

/* In cdw10 of Get Log Page: an event that the log tells about is not taken for seen (RAE). */
#define NVME_LOG_RETAIN (1u << 15)

/* SMART / Health Information (figure 196); those of 16 bytes are integers of 128 bits */
struct nvme_smart_log {
	uint8_t critical_warning;
	uint8_t temperature[2]; /* kelvins */
	uint8_t spare;
	uint8_t spare_threshold;
	uint8_t used;
	uint8_t endurance_warning;
	uint8_t rsvd7[25];
	uint64_t data_units_read[2]; /* of 512,000 bytes */
	uint64_t data_units_written[2];
	uint64_t host_reads[2];
	uint64_t host_writes[2];
	uint64_t busy_minutes[2];
	uint64_t power_cycles[2];
	uint64_t power_on_hours[2];
	uint64_t unsafe_shutdowns[2];
	uint64_t media_errors[2];
	uint64_t error_log_entries[2];
	uint32_t warning_minutes;
	uint32_t critical_minutes;
	uint16_t sensors[8];
	uint8_t rsvd216[296];
};

static_assert(sizeof(struct nvme_smart_log) == 512, "figure 196");
static_assert(offsetof(struct nvme_smart_log, data_units_read) == 32, "figure 196");
static_assert(offsetof(struct nvme_smart_log, sensors) == 200, "figure 196");

/* Firmware Slot Information (figure 197) */
struct nvme_firmware_log {
	uint8_t afi;
	uint8_t rsvd1[7];
	char frs[7][8];
	uint8_t rsvd64[448];
};

static_assert(sizeof(struct nvme_firmware_log) == 512, "figure 197");

/* An entry of the error log (figure 195) */
struct nvme_error_log {
	uint64_t count;
	uint16_t sq_id;
	uint16_t cid;
	uint16_t status;
	uint16_t location;
	uint64_t lba;
	uint32_t nsid;
	uint8_t vs;
	uint8_t trtype;
	uint8_t rsvd30[2];
	uint64_t command_specific;
	uint16_t trtype_specific;
	uint8_t rsvd42[22];
};

static_assert(sizeof(struct nvme_error_log) == 64, "figure 195");

/* Asynchronous events (figures 146 to 149), in dword 0 of the completion */
#define NVME_EVENT(type, info, page) \
	((uint32_t)(type) | (uint32_t)(info) << 8 | (uint32_t)(page) << 16)
#define NVME_EVENT_TYPE_ERROR	    0u
#define NVME_EVENT_TYPE_VENDOR	    7u
#define NVME_EVENT_BAD_DOORBELL_REG 0u /* written to a queue that is not there */
#define NVME_EVENT_BAD_DOORBELL	    1u /* an invalid value */
#define NVME_EVENT_INTERNAL	    3u /* a queue that can't go on: its memory is gone */

enum nvme_feature {
	NVME_FEATURE_ARBITRATION = 0x01,
	NVME_FEATURE_POWER = 0x02,
	NVME_FEATURE_TEMPERATURE = 0x04,
	NVME_FEATURE_ERROR_RECOVERY = 0x05,
	NVME_FEATURE_WRITE_CACHE = 0x06,
	NVME_FEATURE_QUEUES = 0x07,
	NVME_FEATURE_COALESCING = 0x08,
	NVME_FEATURE_VECTOR = 0x09,
	NVME_FEATURE_ATOMICITY = 0x0a,
	NVME_FEATURE_ASYNC_EVENTS = 0x0b,
};

#define NVME_FEATURE_SAVE	   (1u << 31) /* in cdw10 of Set Features */
#define NVME_FEATURE_SELECT(cdw10) ((cdw10) >> 8 & 7)

/* Select in Get Features, and what the last one answers */
enum nvme_feature_select {
	NVME_SELECT_CURRENT = 0,
	NVME_SELECT_DEFAULT = 1,
	NVME_SELECT_SAVED = 2,
	NVME_SELECT_SUPPORTED = 3,
};

#define NVME_FEATURE_CHANGEABLE (1u << 2)

#define NVME_COALESCING_THR(dw11)  ((dw11)&0xff)	/* entries minus one */
#define NVME_COALESCING_TIME(dw11) ((dw11) >> 8 & 0xff) /* of 100 us */
#define NVME_VECTOR_CD		   (1u << 16) /* Interrupt Vector Configuration: not coalesced */

#endif
