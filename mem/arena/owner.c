/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process that tests of reading an arena read; owner.h has the contract. */
#include "owner.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* The chunk that is written ends, and another one has its addresses, index and place. Returns that. */
static void *chunk_anew(struct arena *arena, void *addr)
{
	arena_retire(arena, addr);
	if (arena_free(arena, addr) ||
	    arena_alloc(arena, OWNER_LEN, 1, ARENA_WRITE, &addr, NULL))
		_exit(1);
	memset(addr, 77, OWNER_LEN);
	return addr;
}

static void owner_run(int in, int out)
{
	struct arena *arena = arena_get();
	struct owner_told told = { .id.pid = (uint32_t)getpid() };
	unsigned char *read_addr, *write_addr;
	void *addr;
	char command;

	if (!arena || arena_alloc(arena, OWNER_LEN, 1, ARENA_READ, &addr, NULL))
		_exit(1);
	read_addr = addr;
	memset(addr, 17, OWNER_LEN);
	if (arena_alloc(arena, OWNER_LEN, 1, ARENA_WRITE, &addr, NULL))
		_exit(1);
	write_addr = addr;
	told.id.fd = (uint32_t)arena->directory_fd;
	memcpy(told.id.nonce, arena->directory->head.nonce, ARENA_NONCE);
	told.read_addr = (uintptr_t)read_addr;
	told.write_addr = (uintptr_t)write_addr;
	if (!arena_find(arena, read_addr, OWNER_LEN, &told.read) ||
	    !arena_find(arena, write_addr, OWNER_LEN, &told.write))
		_exit(1);
	told.read_fd = arena->chunks[told.read.chunk].fd;
	told.write_fd = arena->chunks[told.write.chunk].fd;
	if (write(out, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	while (read(in, &command, 1) == 1 && command != 'q') {
		if (command == 'r')
			arena_retire(arena, write_addr);
		if (command == 'f')
			write_addr = chunk_anew(arena, write_addr);
		if (write(out, write_addr, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

int owner_start(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));
	int to[2], from[2];

	if (!o || pipe(to) || pipe(from))
		return -1;
	o->pid = fork();
	if (!o->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		owner_run(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	o->to = to[1];
	o->from = from[0];
	*state = o;
	if (read(o->from, &o->told, sizeof(o->told)) != sizeof(o->told))
		return -1;
	o->told.id.process = o;
	return 0;
}

int owner_end(void **state)
{
	struct owner *o = *state;
	int status;

	/* it may have ended already */
	signal(SIGPIPE, SIG_IGN);
	if ((write(o->to, "q", 1) != 1 && errno != EPIPE) ||
	    waitpid(o->pid, &status, 0) != o->pid)
		return -1;
	close(o->to);
	close(o->from);
	free(o);
	return status;
}

unsigned char owner_ask(struct owner *o, char command)
{
	unsigned char byte;

	assert_int_equal(write(o->to, &command, 1), 1);
	assert_int_equal(read(o->from, &byte, 1), 1);
	return byte;
}
