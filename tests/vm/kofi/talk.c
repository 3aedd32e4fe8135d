/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of an exchange as a process, and what else the jobs 'kofi-sockets' and 'kofi-rds' need of one.
 *
 * usage: kofi_talk PROVIDER ROLE TYPE END HOST PORT   as the module kofi_talk
 * kofi_talk garbage COUNT HOST PORT   connects so often and sends random bytes, some behind the
 * first ones of a preamble kofi_talk key NAME FILE             puts a key of the kind logon,
 * with the file's bytes, into the user's keyring
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/keyctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "exchange.h"
#include "place.h"

char *place_provider;

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* One stranger. Returns false if it reaches nobody. */
static bool stranger(const struct sockaddr_in *at, uint32_t *state)
{
	/* TCP_MAGIC, TCP_VERSION and a lane of tcp_wire.h; of others by chance */
	static const uint8_t first[8] = { 0x70, 0x63, 0x74, 0x77, 5, 0, 4, 0 };
	uint8_t bytes[2048], answer[64];
	size_t len = next(state) % sizeof(bytes), i;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool there = !connect(fd, (const struct sockaddr *)at, sizeof(*at));

	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)next(state);
	if (len >= sizeof(first) && next(state) % 2)
		memcpy(bytes, first, sizeof(first));
	if (there && len && send(fd, bytes, len, MSG_NOSIGNAL) > 0 && next(state) % 4 == 0) {
		shutdown(fd, SHUT_WR);
		while (recv(fd, answer, sizeof(answer), 0) > 0)
			;
	}
	close(fd);
	return there;
}

static int garbage(int cnt, const char *host, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(port)) };
	uint32_t state = 1;
	int reached = 0, i;

	inet_pton(AF_INET, host, &at.sin_addr);
	for (i = 0; i < cnt; i++)
		reached += stranger(&at, &state);
	printf("%d of %d strangers reached the port\n", reached, cnt);
	return reached ? 0 : 1;
}

static int key(const char *name, const char *path)
{
	char bytes[4096];
	FILE *file = fopen(path, "r");
	size_t len = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

	if (file)
		fclose(file);
	if (len && syscall(SYS_add_key, "logon", name, bytes, len, KEY_SPEC_USER_KEYRING) >= 0)
		return 0;
	perror("add_key");
	return 1;
}

int main(int argc, char **argv)
{
	struct exchange_how how = { .listens = false };
	int ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 5 && !strcmp(argv[1], "garbage"))
		return garbage(atoi(argv[2]), argv[3], argv[4]);
	if (argc == 4 && !strcmp(argv[1], "key"))
		return key(argv[2], argv[3]);
	if (argc != 7 || exchange_read(&how, argv[2], argv[3], argv[4]))
		return 2;
	place_provider = argv[1];
	how.host = argv[5];
	how.port = argv[6];
	ret = exchange_run(&how);
	if (ret)
		printf("%s: %d, %s\n", argv[2], ret, fi_strerror(-ret));
	return ret ? 1 : 0;
}
