/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program that a peer executes (program.c): it maps memory with known bytes wherever the peer
 * had memory of its own, and checks at the end whether they are unchanged. It does not map the
 * addresses of memory that the peer shared: those are random, and no test depends on a program that
 * maps something there by chance.
 *
 *	other FD	a file with the peer's /proc/PID/maps
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTE	   0xa5
#define PIECE_MAX  (64u << 20) /* of what a sanitizer has there is more */
#define MEMORY_MAX (80u << 20) /* in all */
#define PIECES	   4096u

static struct {
	unsigned char *addr;
	size_t len;
} pieces[PIECES];

static uint32_t cnt;
static size_t sum;

static void take(uintptr_t from, uintptr_t to)
{
	size_t len = to - from;
	void *addr;

	if (len > PIECE_MAX || sum + len > MEMORY_MAX || cnt == PIECES)
		return;
	addr = mmap((void *)from, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (addr != (void *)from)
		return; /* ours, or not available */
	memset(addr, BYTE, len);
	pieces[cnt].addr = addr;
	pieces[cnt++].len = len;
	sum += len;
}

/* Returns true if nothing was written. */
static int untouched(void)
{
	for (uint32_t i = 0; i < cnt; i++)
		for (size_t k = 0; k < pieces[i].len; k++) {
			if (pieces[i].addr[k] == BYTE)
				continue;
			fprintf(stderr, "another program's memory was written at %p: %02x\n",
				(void *)(pieces[i].addr + k), pieces[i].addr[k]);
			return 0;
		}
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long from, to;
	char line[512], perms[8];
	sigset_t set;
	FILE *maps;
	int sig;

	if (argc != 2)
		return 2;
	maps = fdopen(atoi(argv[1]), "r");
	if (!maps)
		return 3;
	rewind(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, perms) == 3 && perms[3] == 'p')
			take(from, to);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (sigwait(&set, &sig))
		return 4;
	return !untouched() || !cnt;
}
