/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft devices borrow', 'return', 'renew', 'share' and 'revoke'.
 */
#define _GNU_SOURCE
#include "devices.h"
#include "weft.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_SECONDS 600

static uint32_t lease_ms(const struct devices_options *opt)
{
	return (opt->seconds ? opt->seconds : DEFAULT_SECONDS) * 1000;
}

static struct weft_device *attach(const struct devices_options *opt)
{
	struct weft_device *dev;
	int err = weft_device_attach(opt->lender, opt->operands[0], &dev);

	if (err)
		devices_fail(opt->operands[0], err);
	return dev;
}

/* What programs find the lease by. Its lender is where the ticket says, also where a directory has led us there. */
static void set_environment(const struct weft_device *dev, const char *ticket,
			    const char *lender_name)
{
	const char *provider = weft_device_info(dev)->provider;
	const char *at = strchr(ticket, '@');

	if (at)
		lender_name = at + 1;
	/* The name of a host does not say by which provider it is reached. */
	if (at && at[1] != '/' && *provider)
		setenv("WEFT_FABRIC", provider, 0);
	setenv("WEFT_TICKET", ticket, 1);
	if (lender_name)
		setenv("WEFT_LENDER", lender_name, 1);
}

/* Run a command as a child, whose exit status is ours. The lease is ours too, and ends with us. */
static int run(char **command)
{
	int status;
	pid_t child;

	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	child = fork();
	if (child < 0)
		err(EXIT_FAILURE, "%s", command[0]);
	if (!child) {
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		execvp(command[0], command);
		warn("%s", command[0]);
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			err(EXIT_FAILURE, "waiting for %s", command[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void print_ticket(const struct devices_options *opt, struct weft_device *dev,
			 const char *ticket)
{
	json_t *root;

	if (!opt->json) {
		printf("%s\n", ticket);
		return;
	}
	root = json_pack("{s:s, s:s, s:I, s:f}", "device", weft_device_info(dev)->name,
			 "ticket", ticket, "lease", (json_int_t)weft_device_lease(dev),
			 "seconds", lease_ms(opt) / 1e3);
	json_dumpf(root, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(root);
}

/* A lease whose ticket nobody has is nobody's, and others would wait for its end. */
static int hand_over(const struct devices_options *opt, struct weft_device *dev,
		     const char *ticket)
{
	signal(SIGPIPE, SIG_IGN);
	print_ticket(opt, dev, ticket);
	if (!fflush(stdout) && !ferror(stdout)) {
		weft_device_leave(dev);
		return EXIT_SUCCESS;
	}
	warn("standard output");
	weft_device_return(dev);
	return EXIT_FAILURE;
}

int devices_borrow(const struct devices_options *opt)
{
	struct weft_borrow_attr attr = {
		.size = sizeof(attr),
		.name = opt->operand_cnt ? opt->operands[0] : NULL,
		.device_class = opt->device_class,
		.vendor = opt->vendor,
		.flags = opt->shared ? WEFT_BORROW_SHARED : 0,
		.ms = lease_ms(opt),
		.keep = !opt->program,
	};
	struct weft_device *dev;
	char ticket[WEFT_TICKET_MAX];
	int err, status;

	if (opt->disk)
		return devices_borrow_disk(opt, &attr);
	err = weft_device_borrow(opt->lender, &attr, &dev);
	if (err == -EBUSY)
		errx(EXIT_FAILURE, "%s: others have borrowed it%s",
		     attr.name ? attr.name : "every device",
		     opt->shared ? ", exclusively" : " (--shared?)");
	if (err)
		devices_fail(attr.name ? attr.name : "a device", err);
	weft_device_ticket(dev, ticket);
	if (opt->program) {
		set_environment(dev, ticket, opt->lender_name);
		status = run(opt->program);
		weft_device_return(dev);
	} else {
		status = hand_over(opt, dev, ticket);
	}
	weft_lender_close(opt->lender);
	return status;
}

int devices_return(const struct devices_options *opt)
{
	weft_device_return(attach(opt));
	return EXIT_SUCCESS;
}

int devices_renew(const struct devices_options *opt)
{
	struct weft_device *dev = attach(opt);
	int err = weft_device_renew(dev, lease_ms(opt));

	if (err)
		devices_fail(opt->operands[0], err);
	weft_device_leave(dev);
	return EXIT_SUCCESS;
}

int devices_share(const struct devices_options *opt)
{
	struct weft_device *dev = attach(opt);
	int err = weft_device_share(dev);

	if (err)
		devices_fail(opt->operands[0], err);
	weft_device_leave(dev);
	return EXIT_SUCCESS;
}

int devices_revoke(const struct devices_options *opt)
{
	struct weft_device_info info = devices_find(opt, opt->operands[0]);
	static struct weft_lease_info leases[1024];
	size_t cnt = sizeof(leases) / sizeof(leases[0]), i;
	int err = weft_lease_list(opt->lender, info.id, leases, &cnt);

	if (err)
		devices_fail(info.name, err);
	for (i = 0; i < cnt; i++) {
		char number[16];

		snprintf(number, sizeof(number), "%u", leases[i].lease);
		if (strcmp(number, opt->operands[1]))
			continue;
		err = weft_lease_revoke(opt->lender, &leases[i]);
		if (err)
			devices_fail(opt->operands[1], err);
		return EXIT_SUCCESS;
	}
	errx(EXIT_FAILURE, "%s has no lease %s", info.name, opt->operands[1]);
}
