/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A controller and an I/O pair of its owner's; rig_io.h has the contract. */
#include "rig_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum rig_backend rig_io_backend;

bool rig_io_next(void)
{
	static const char *const names[] = { "memory", "file", "file, each piece waited for" };
	static unsigned next = RIG_MEMORY;

	if (next > RIG_FILE_SYNC)
		return false;
	rig_io_backend = (enum rig_backend)next;
	print_message("over %s\n", names[next++]);
	return true;
}

int rig_io_setup(void **state)
{
	struct rig_io *io = calloc(1, sizeof(*io));

	assert_non_null(io);
	rig_open_enabled(&io->rig, rig_io_backend, NULL);
	rig_pair(&io->rig, &io->q, 1, 64, 0);
	*state = io;
	return 0;
}

int rig_io_teardown(void **state)
{
	struct rig_io *io = *state;

	host_pair_forget(&io->q);
	rig_close(&io->rig);
	free(io);
	return 0;
}

void rig_fill(uint8_t *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = (uint8_t)(seed >> 16);
	}
}

uint16_t rig_rw(struct rig_io *io, uint8_t opcode, uint64_t lba, uint32_t blocks, uint64_t addr)
{
	struct nvme_sqe sqe = host_rw(&io->rig.h, opcode, lba, blocks, addr, blocks * 512ull);

	return host_run(&io->q, &sqe, NULL);
}
