/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* I/O commands */
#include "io.h"

#include <string.h>

#include "identify.h"
#include "nvmed.h"

#define FLAGS_FUSE 0x03
#define FLAGS_PSDT 0xc0

struct piece *piece_get(struct nvmed *c)
{
	const struct backend_ops *ops = c->backend->ops;
	struct piece *p;

	if (!ops->depth)
		return &c->piece;
	p = c->pieces;
	if (!p || c->piece_bytes >= ops->bytes)
		return NULL;
	c->pieces = p->next;
	return p;
}

void piece_put(struct nvmed *c, struct piece *p)
{
	if (p == &c->piece)
		return;
	p->next = c->pieces;
	c->pieces = p;
}

static uint64_t sqe_lba(const struct nvme_sqe *sqe)
{
	return sqe->cdw10 | (uint64_t)sqe->cdw11 << 32;
}

static int range_check(const struct nvmed *c, uint64_t lba, uint64_t blocks)
{
	uint64_t end;

	if (__builtin_add_overflow(lba, blocks, &end) || end > c->blocks)
		return NVME_SC_LBA_RANGE;
	return 0;
}

/* Blocks from cdw10 to cdw12, which all commands of a range have alike */
static int take_range(struct nvmed *c, struct command *cmd)
{
	uint64_t lba = sqe_lba(&cmd->sqe), blocks = (cmd->sqe.cdw12 & 0xffff) + 1;
	int status = range_check(c, lba, blocks);

	if (status)
		return status;
	cmd->offset = lba * c->config.block;
	cmd->left = blocks * c->config.block;
	return 0;
}

static int begin_data(struct nvmed *c, struct command *cmd, enum piece_op op)
{
	uint64_t len = ((uint64_t)(cmd->sqe.cdw12 & 0xffff) + 1) * c->config.block;
	int status;

	if (len > NVMED_DATA_MAX)
		return NVME_SC_INVALID_FIELD;
	status = take_range(c, cmd);
	if (!status)
		status = prp_begin(&cmd->prp, cmd->sqe.prp1, cmd->sqe.prp2, len);
	cmd->op = op;
	cmd->bytes = (uint32_t)len;
	return status;
}

static int begin_write(struct nvmed *c, struct command *cmd)
{
	if (c->config.read_only)
		return NVME_SC_WRITE_PROTECTED;
	return begin_data(c, cmd, PIECE_WRITE);
}

static int begin_zeroes(struct nvmed *c, struct command *cmd)
{
	if (c->config.read_only)
		return NVME_SC_WRITE_PROTECTED;
	cmd->op = cmd->sqe.cdw12 & NVME_RW_DEAC ? PIECE_DEALLOCATE : PIECE_ZERO;
	return take_range(c, cmd);
}

/* The ranges stay where they are: each is loaded, once, when its turn has come. */
static int begin_dsm(struct nvmed *c, struct command *cmd)
{
	uint32_t ranges = (cmd->sqe.cdw10 & 0xff) + 1;

	if (c->config.read_only)
		return NVME_SC_WRITE_PROTECTED;
	if (!(cmd->sqe.cdw11 & NVME_DSM_DEALLOCATE))
		return 0; /* hints about access, which change nothing here */
	cmd->op = PIECE_DISCARD;
	cmd->ranges = ranges;
	return prp_begin(&cmd->prp, cmd->sqe.prp1, cmd->sqe.prp2,
			 ranges * sizeof(struct nvme_dsm_range));
}

static int begin_flush(struct nvmed *c, struct command *cmd)
{
	cmd->op = PIECE_FLUSH;
	cmd->left = c->backend->write_cache;
	return 0;
}

/* Whether what is behind the namespace carries out what not all controllers have */
static bool opcode_there(const struct nvmed *c, uint8_t opcode)
{
	uint16_t oncs = identify_oncs(c);

	switch (opcode) {
	case NVME_IO_COMPARE:
		return oncs & NVME_ONCS_COMPARE;
	case NVME_IO_WRITE_ZEROES:
		return oncs & NVME_ONCS_WRITE_ZEROES;
	default:
		return oncs & NVME_ONCS_DSM;
	}
}

static int begin(struct nvmed *c, struct command *cmd)
{
	const struct nvme_sqe *sqe = &cmd->sqe;

	if (sqe->flags & (FLAGS_FUSE | FLAGS_PSDT))
		return NVME_SC_INVALID_FIELD;
	switch (sqe->opcode) {
	case NVME_IO_FLUSH:
		if (sqe->nsid == UINT32_MAX)
			return begin_flush(c, cmd);
		break;
	case NVME_IO_WRITE:
	case NVME_IO_READ:
		break;
	case NVME_IO_COMPARE:
	case NVME_IO_WRITE_ZEROES:
	case NVME_IO_DSM:
		if (!opcode_there(c, sqe->opcode))
			return NVME_SC_INVALID_OPCODE;
		break;
	default:
		return NVME_SC_INVALID_OPCODE;
	}
	if (sqe->nsid != NVMED_NSID)
		return NVME_SC_INVALID_NAMESPACE;
	switch (sqe->opcode) {
	case NVME_IO_READ:
		return begin_data(c, cmd, PIECE_READ);
	case NVME_IO_WRITE:
		return begin_write(c, cmd);
	case NVME_IO_FLUSH:
		return begin_flush(c, cmd);
	case NVME_IO_COMPARE:
		return begin_data(c, cmd, PIECE_COMPARE);
	case NVME_IO_WRITE_ZEROES:
		return begin_zeroes(c, cmd);
	default:
		return begin_dsm(c, cmd);
	}
}

void io_begin(struct nvmed *c, struct command *cmd)
{
	int status = begin(c, cmd);

	if (status || (!cmd->left && !cmd->ranges)) {
		cmd->left = cmd->ranges = 0;
		command_end(c, cmd, (uint16_t)status, 0);
		return;
	}
	cmd->sq->current = cmd;
}

static void io_count(struct nvmed *c, const struct command *cmd)
{
	switch (cmd->sqe.opcode) {
	case NVME_IO_READ:
	case NVME_IO_COMPARE:
		c->stats.reads++;
		c->stats.read_bytes += cmd->bytes;
		break;
	case NVME_IO_WRITE:
		c->stats.writes++;
		c->stats.written_bytes += cmd->bytes;
		break;
	}
}

/* No piece is left to begin: the command ends with the last one under way. */
static void io_begun(struct nvmed *c, struct command *cmd)
{
	if (cmd->sq->current == cmd)
		cmd->sq->current = NULL;
	if (cmd->inflight)
		return;
	if (!cmd->status)
		io_count(c, cmd);
	command_end(c, cmd, cmd->status, 0);
}

static void io_fail(struct nvmed *c, struct command *cmd, int status)
{
	if (!cmd->status)
		cmd->status = (uint16_t)status;
	cmd->left = 0;
	cmd->ranges = 0;
	io_begun(c, cmd);
}

/* Take the next range of Dataset Management: 16 bytes, which may lie in two pages. */
static int range_next(struct nvmed *c, struct command *cmd)
{
	struct segment segs[PRP_SEGMENTS(sizeof(struct nvme_dsm_range))];
	struct nvme_dsm_range range;
	uint8_t *to = (uint8_t *)&range;
	uint32_t cnt;
	int status = prp_gather(&cmd->prp, &cmd->sq->lease->domain, SLOT_DMA_READ,
				sizeof(range), segs, &cnt);

	if (status)
		return status;
	for (uint32_t i = 0; i < cnt; i++) {
		memcpy(to, segs[i].window->files[0].base + segs[i].at, segs[i].len);
		to += segs[i].len;
	}
	cmd->ranges--;
	status = range_check(c, range.lba, range.blocks);
	if (status)
		return status;
	cmd->offset = range.lba * c->config.block;
	cmd->left = (uint64_t)range.blocks * c->config.block;
	return 0;
}

static bool has_data(const struct command *cmd)
{
	return cmd->op == PIECE_READ || cmd->op == PIECE_WRITE || cmd->op == PIECE_COMPARE;
}

static bool is_durable(const struct nvmed *c, const struct command *cmd)
{
	/* Dataset Management has no such bit. */
	bool has_fua = cmd->op == PIECE_WRITE || cmd->op == PIECE_ZERO ||
		       cmd->op == PIECE_DEALLOCATE;

	if (!c->backend->write_cache || cmd->op == PIECE_READ || cmd->op == PIECE_COMPARE)
		return false;
	return (has_fua && cmd->sqe.cdw12 & NVME_RW_FUA) ||
	       !feature_value(c, NVME_FEATURE_WRITE_CACHE);
}

/* What the next piece does. Returns 0 or an NVMe status */
static int piece_fill(struct nvmed *c, struct command *cmd, struct piece *p, uint64_t most)
{
	if (!has_data(cmd))
		most = c->backend->ops->zeroes;
	else if (most > c->backend->ops->slice)
		most = c->backend->ops->slice;

	p->owner = cmd;
	p->op = cmd->op;
	p->durable = is_durable(c, cmd);
	p->offset = cmd->offset;
	p->len = cmd->left < most ? cmd->left : most;
	p->seg_cnt = 0;
	if (!has_data(cmd))
		return 0;
	return prp_gather(&cmd->prp, &cmd->sq->lease->domain,
			  cmd->op == PIECE_READ ? SLOT_DMA_WRITE : SLOT_DMA_READ, p->len,
			  p->segs, &p->seg_cnt);
}

static void piece_account(struct nvmed *c, struct command *cmd, struct piece *p)
{
	cmd->inflight++;
	share_began(c, cmd->sq, p);
	c->piece_bytes += p->seg_cnt ? p->len : 0;
	for (uint32_t i = 0; i < p->seg_cnt; i++)
		p->segs[i].window->users++;
}

int64_t io_advance(struct nvmed *c, struct command *cmd, uint64_t most)
{
	const struct backend_ops *ops = c->backend->ops;
	struct piece *p = piece_get(c);
	int64_t cost;
	int status;

	if (!p)
		return -1;
	status = cmd->left ? 0 : range_next(c, cmd);
	if (!status && cmd->left)
		status = piece_fill(c, cmd, p, most);
	if (status || !cmd->left) {
		piece_put(c, p);
		if (status)
			io_fail(c, cmd, status);
		else if (!cmd->ranges)
			io_begun(c, cmd);
		return 0;
	}
	cmd->offset += p->len;
	cmd->left -= p->len;
	cost = (int64_t)p->len;
	if (!ops->depth) {
		ops->start(c->backend, p);
		if (!cmd->status)
			cmd->status = p->status;
		if (cmd->status)
			cmd->left = cmd->ranges = 0;
	} else {
		piece_account(c, cmd, p);
		if (ops->start(c->backend, p))
			io_piece_done(c, p);
		if (!cmd->sq)
			return cost;
	}
	if (!cmd->left && !cmd->ranges)
		io_begun(c, cmd);
	return cost;
}

void io_piece_done(struct nvmed *c, struct piece *p)
{
	struct command *cmd = p->owner;

	c->piece_bytes -= p->seg_cnt ? p->len : 0;
	for (uint32_t i = 0; i < p->seg_cnt; i++)
		window_put(p->segs[i].window);
	cmd->inflight--;
	share_ended(c, cmd->sq, p);
	if (p->status && !cmd->status)
		cmd->status = p->status;
	if (cmd->status)
		cmd->left = cmd->ranges = 0;
	piece_put(c, p);
	if (!cmd->left && !cmd->ranges)
		io_begun(c, cmd);
}
