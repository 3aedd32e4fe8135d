/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The secret by which processes know each other; tcp_secret.h has the contract. Called when a hub is
 * created and freed, on any thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "tcp.h"
#include "tcp_secret.h"

static const char *const file_setting = "FI_TCP_SECRET_FILE";

/* Checks who may read the file, and what it is. Returns 0 or -FI_EACCES. The path, which may be long, comes last */
static int file_check(int fd, const char *path, char *why, size_t len)
{
	struct stat st;

	if (fstat(fd, &st))
		snprintf(why, len, "%s: %s: %s", file_setting, strerror(errno), path);
	else if (!S_ISREG(st.st_mode))
		snprintf(why, len, "%s is not a regular file: %s", file_setting, path);
	else if (st.st_uid != geteuid() && st.st_uid)
		snprintf(why, len, "%s belongs to another user: %s", file_setting, path);
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		snprintf(why, len, "%s is open to others (%04o): chmod 600 %s", file_setting,
			 (unsigned int)(st.st_mode & 07777), path);
	else if (st.st_size < TCP_SECRET_MIN || st.st_size > TCP_SECRET_MAX)
		snprintf(why, len, "%s has %lld bytes, and not %u to %u: %s", file_setting,
			 (long long)st.st_size, TCP_SECRET_MIN, TCP_SECRET_MAX, path);
	else
		return 0;
	return -FI_EACCES;
}

/* Reads the file. Returns its length, or -FI_E* */
static ssize_t file_read(const char *path, uint8_t room[TCP_SECRET_MAX + 1], char *why,
			 size_t len)
{
	size_t have = 0;
	int fd, err;
	ssize_t n;

	if (!*path) {
		snprintf(why, len,
			 "%s is set to nothing: name a file with the secret, or unset it",
			 file_setting);
		return -FI_EACCES;
	}
	/* Without blocking: it may be a pipe. */
	fd = sys_descriptor_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		err = errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : FI_EACCES;
		snprintf(why, len, "%s: %s: %s", file_setting, strerror(errno), path);
		return -err;
	}
	err = file_check(fd, path, why, len);
	while (!err && have <= TCP_SECRET_MAX) {
		n = sys_descriptor_read(fd, room + have, TCP_SECRET_MAX + 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	sys_descriptor_close(fd);
	if (err)
		return err;
	if (have >= TCP_SECRET_MIN && have <= TCP_SECRET_MAX)
		return (ssize_t)have;
	snprintf(why, len, "%s can't be read: %s", file_setting, path);
	return -FI_EACCES;
}

/* Loads the library of the keyed hashes. It stays: a lane of any domain may need it. */
static const struct tcp_crypto *crypto_load(char *why, size_t len)
{
	void *library = dlopen(TCP_CRYPTO_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const struct tcp_crypto *crypto = library ? dlsym(library, TCP_CRYPTO_SYMBOL) : NULL;

	if (crypto && crypto->version == TCP_CRYPTO_VERSION)
		return crypto;
	snprintf(why, len, "%s needs %s: %s", file_setting, TCP_CRYPTO_LIBRARY,
		 crypto ? "it is of another Weft" : "it is missing, or OpenSSL is");
	return NULL;
}

/* Derives the keys. Returns 0 or -FI_E* */
static int derive(struct tcp_secret *secret, const uint8_t *bytes, size_t len)
{
	const struct tcp_crypto *crypto = secret->crypto;
	uint8_t psk[TCP_KEY_LEN];
	int err = crypto->derive(bytes, len, "weft tcp proof 1", secret->key);

	if (err || !tcp_settings.tls)
		return err;
	err = crypto->derive(bytes, len, "weft tcp tls 1", psk);
	if (err)
		return err;
	secret->tls = crypto->context_create(psk);
	crypto->wipe(psk, sizeof(psk));
	return secret->tls ? 0 : -FI_ENOMEM;
}

static int create(struct tcp_secret **out, uint8_t room[TCP_SECRET_MAX + 1], char *why,
		  size_t why_len)
{
	ssize_t len = file_read(tcp_settings.secret_file, room, why, why_len);
	const struct tcp_crypto *crypto;
	struct tcp_secret *secret;
	int err;

	if (len < 0)
		return (int)len;
	crypto = crypto_load(why, why_len);
	if (!crypto)
		return -FI_EACCES;
	secret = calloc(1, sizeof(*secret));
	if (!secret) {
		snprintf(why, why_len, "out of memory");
		return -FI_ENOMEM;
	}
	secret->crypto = crypto;
	err = derive(secret, room, (size_t)len);
	if (err) {
		snprintf(why, why_len, "%s: no key can be made", file_setting);
		tcp_secret_free(secret);
		return err;
	}
	*out = secret;
	return 0;
}

/* Returns a variable that can only be meant to be the setting of a secret, FI_TCP_SECRET say, or NULL. */
static const char *misspelt(void)
{
	static const char begins[] = "FI_TCP_SECRET";

	if (getenv(file_setting))
		return NULL;
	for (char **entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, begins, sizeof(begins) - 1))
			return *entry;
	return NULL;
}

/* There is no secret. Returns 0 if none was asked for either, or -FI_EACCES */
static int without(char *why, size_t why_len)
{
	const char *name = misspelt();

	if (name)
		snprintf(why, why_len, "%.*s is no setting: set %s", (int)strcspn(name, "="),
			 name, file_setting);
	else if (tcp_settings.tls)
		snprintf(why, why_len, "FI_TCP_TLS needs a secret: set %s", file_setting);
	return name || tcp_settings.tls ? -FI_EACCES : 0;
}

int tcp_secret_create(struct tcp_secret **out, char *why, size_t why_len)
{
	uint8_t room[TCP_SECRET_MAX + 1];
	int err;

	*out = NULL;
	if (!tcp_settings.secret_file)
		return without(why, why_len);
	err = create(out, room, why, why_len);
	explicit_bzero(room, sizeof(room));
	return err;
}

void tcp_secret_free(struct tcp_secret *secret)
{
	if (!secret)
		return;
	secret->crypto->context_free(secret->tls);
	secret->crypto->wipe(secret->key, sizeof(secret->key));
	free(secret);
}
