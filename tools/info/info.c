/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft info': what fi_getinfo answers to given hints, with fi_info's options and
 * in its form; why other providers do not answer; the wires of a link.
 * Source for options and form: fi_info(1).
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "fabric.h"
#include "hint_names.h"
#include "libfabric.h"
#include "links.h"
#include "reasons.h"
#include "weft.h"

#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#define LINK_NAME "link"
#define HOOK	  "ofi_hook_"
#define TEXT_MAX  (32 * 1024)

enum info_form {
	FORM_SHORT,
	FORM_LONG,
	FORM_LIST,
	FORM_PARAMS,
	FORM_LINKS,
};

struct info_options {
	const char *node;
	const char *service;
	uint64_t flags;
	struct fi_info *hints;
	/* the user gave options that restrict the answer, so hints are passed */
	bool hinted;
	enum info_form form;
	/* of settings or of long infos; NULL: all */
	const char *substring;
	bool why;
};

enum {
	OPT_VERSION = 256,
	OPT_WHY,
	OPT_LINKS,
};

static const struct option longopts[] = {
	{ "src_addr", required_argument, NULL, 's' },
	{ "node", required_argument, NULL, 'n' },
	{ "port", required_argument, NULL, 'P' },
	{ "caps", required_argument, NULL, 'c' },
	{ "mode", required_argument, NULL, 'm' },
	{ "ep_type", required_argument, NULL, 't' },
	{ "domain", required_argument, NULL, 'd' },
	{ "fabric", required_argument, NULL, 'f' },
	{ "addr_format", required_argument, NULL, 'a' },
	{ "provider", required_argument, NULL, 'p' },
	{ "env", no_argument, NULL, 'e' },
	{ "getenv", required_argument, NULL, 'g' },
	{ "info", required_argument, NULL, 'i' },
	{ "list", no_argument, NULL, 'l' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "why", no_argument, NULL, OPT_WHY },
	{ "links", no_argument, NULL, OPT_LINKS },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft info [OPTIONS]\n"
	       "\n"
	       "Prints what libfabric offers for the given hints; without hints, everything.\n"
	       "\n"
	       "Hints:\n"
	       "  -n, --node=NAME          a host name or address to reach\n"
	       "  -P, --port=PORT          a port or service there\n"
	       "  -s, --src_addr=ADDR      a local name or address to use\n"
	       "  -c, --caps=A|B..         capabilities: FI_MSG|FI_TAGGED..\n"
	       "  -m, --mode=A|B..         modes that the program supports: FI_CONTEXT..; default: all\n"
	       "  -t, --ep_type=TYPE       FI_EP_RDM, FI_EP_MSG or FI_EP_DGRAM\n"
	       "  -a, --addr_format=FMT    FI_SOCKADDR_IN..\n"
	       "  -p, --provider=NAME      this provider only\n"
	       "  -d, --domain=NAME        this domain only\n"
	       "  -f, --fabric=NAME        this fabric only\n"
	       "\n"
	       "What to print:\n"
	       "  -v, --verbose            everything about each answer\n"
	       "  -i, --info=TEXT          the same, of answers that contain the text\n"
	       "  -l, --list               all providers, usable or not\n"
	       "  -e, --env                all settings (environment variables)\n"
	       "  -g, --getenv=TEXT        those whose name contains the text\n"
	       "      --why                also each provider that did not answer, and its reason\n"
	       "      --links              the wires of an endpoint of '" LINK_NAME
	       "', or of -p NAME:\n"
	       "                           shared memory, sockets, their state and address\n"
	       "      --version            versions of weft and libfabric\n"
	       "  -h, --help               this text\n"
	       "\n"
	       "Exit status: 0, or 1 when nothing was found.\n");
}

static uint64_t parse_hint(enum hint_kind kind, const char *what, const char *text)
{
	uint64_t value;

	if (hint_parse(kind, text, &value)) {
		warnx("%s: '%s' is not known; known are:", what, text);
		hint_names_print(stderr, kind);
		exit(WEFT_EXIT_USAGE);
	}
	return value;
}

static void set_name(char **name, const char *text)
{
	free(*name);
	*name = strdup(text);
	if (!*name)
		errx(EXIT_FAILURE, "no memory");
}

/* An option whose value goes into the hints. Returns false for any other option. */
static bool set_hint(struct fi_info *hints, int c, const char *arg)
{
	switch (c) {
	case 'c':
		hints->caps = parse_hint(HINT_CAPS, "capability", arg);
		return true;
	case 'm':
		hints->mode = parse_hint(HINT_MODE, "mode", arg);
		return true;
	case 't':
		hints->ep_attr->type = (enum fi_ep_type)parse_hint(HINT_EP_TYPE,
								   "endpoint type", arg);
		return true;
	case 'a':
		hints->addr_format = (uint32_t)parse_hint(HINT_ADDR_FORMAT, "address format",
							  arg);
		return true;
	case 'p':
		set_name(&hints->fabric_attr->prov_name, arg);
		return true;
	case 'd':
		set_name(&hints->domain_attr->name, arg);
		return true;
	case 'f':
		set_name(&hints->fabric_attr->name, arg);
		return true;
	default:
		return false;
	}
}

static void set_form(struct info_options *opt, enum info_form form, const char *substring)
{
	opt->form = form;
	opt->substring = substring;
}

static void print_version(void)
{
	uint32_t version = fi_version();

	printf("weft: %s\nlibfabric: %s\nlibfabric api: %u.%u\nlibrary: %s\n", WEFT_VERSION,
	       fi_tostr("1", FI_TYPE_VERSION), FI_MAJOR(version), FI_MINOR(version),
	       fabric_library_path());
}

/* What to print. Returns false for other options. */
static bool set_form_option(struct info_options *opt, int c, const char *arg)
{
	switch (c) {
	case 'e':
		set_form(opt, FORM_PARAMS, NULL);
		return true;
	case 'g':
		set_form(opt, FORM_PARAMS, arg);
		return true;
	case 'i':
		set_form(opt, FORM_LONG, arg);
		return true;
	case 'v':
		set_form(opt, FORM_LONG, NULL);
		return true;
	case 'l':
		set_form(opt, FORM_LIST, NULL);
		opt->flags |= FI_PROV_ATTR_ONLY;
		return true;
	case OPT_LINKS:
		set_form(opt, FORM_LINKS, NULL);
		return true;
	case OPT_WHY:
		opt->why = true;
		return true;
	default:
		return false;
	}
}

static void set_option(struct info_options *opt, int c, const char *arg)
{
	switch (c) {
	case 's':
		opt->node = arg;
		opt->flags |= FI_SOURCE;
		break;
	case 'n':
		opt->node = arg;
		break;
	case 'P':
		opt->service = arg;
		break;
	case OPT_VERSION:
		print_version();
		exit(EXIT_SUCCESS);
	case 'h':
		usage();
		exit(EXIT_SUCCESS);
	default:
		if (set_form_option(opt, c, arg))
			return;
		if (set_hint(opt->hints, c, arg)) {
			opt->hinted = true;
			return;
		}
		argument_unknown("info");
	}
}

static void print_short(const struct fi_info *info)
{
	printf("provider: %s\n", info->fabric_attr->prov_name);
	printf("    fabric: %s\n", info->fabric_attr->name);
	printf("    domain: %s\n", info->domain_attr->name);
	printf("    version: %u.%u\n", FI_MAJOR(info->fabric_attr->prov_version),
	       FI_MINOR(info->fabric_attr->prov_version));
	printf("    type: %s\n", fi_tostr(&info->ep_attr->type, FI_TYPE_EP_TYPE));
	printf("    protocol: %s\n", fi_tostr(&info->ep_attr->protocol, FI_TYPE_PROTOCOL));
}

static void print_long(const struct fi_info *info, const char *substring)
{
	static char text[TEXT_MAX];

	fi_tostr_r(text, sizeof(text), info, FI_TYPE_INFO);
	if (!substring || strcasestr(text, substring))
		printf("---\n%s", text);
}

static void print_listed(const struct fi_info *info)
{
	printf("%s:\n    version: %u.%u\n", info->fabric_attr->prov_name,
	       FI_MAJOR(info->fabric_attr->prov_version),
	       FI_MINOR(info->fabric_attr->prov_version));
}

static const char *param_type(enum fi_param_type type)
{
	switch (type) {
	case FI_PARAM_STRING:
		return "String";
	case FI_PARAM_INT:
		return "Integer";
	case FI_PARAM_SIZE_T:
		return "size_t";
	case FI_PARAM_BOOL:
		return "Boolean (0/1, on/off, true/false, yes/no)";
	default:
		return "Unknown";
	}
}

static int print_params(const char *substring)
{
	struct fi_param *params;
	const char *quote;
	int rc, cnt, i, found = 0;

	rc = fi_getparams(&params, &cnt);
	if (rc)
		return rc;
	for (i = 0; i < cnt; i++) {
		if (substring && !strcasestr(params[i].name, substring))
			continue;
		found++;
		printf("# %s: %s\n# %s\n", params[i].name, param_type(params[i].type),
		       params[i].help_string);
		if (params[i].value) {
			quote = strchr(params[i].value, ' ') ? "\"" : "";
			printf("%s=%s%s%s\n", params[i].name, quote, params[i].value, quote);
		}
		printf("\n");
	}
	fi_freeparams(params);
	if (found)
		return 0;
	warnx("no setting has '%s' in its name", substring ? substring : "");
	return -FI_ENODATA;
}

static int print_answers(const struct info_options *opt, struct fi_info *list)
{
	struct fi_info *info;

	if (opt->form == FORM_PARAMS)
		return print_params(opt->substring);
	if (opt->form == FORM_LINKS)
		return links_print(list);
	for (info = list; info; info = info->next) {
		if (opt->form == FORM_LIST)
			print_listed(info);
		else if (opt->form == FORM_LONG)
			print_long(info, opt->substring);
		else
			print_short(info);
	}
	return 0;
}

/* "tcp;ofi_rxm" is an answer of both. */
static bool answered(const struct fi_info *list, const char *name)
{
	const size_t len = strlen(name);
	const char *at;

	for (; list; list = list->next)
		for (at = list->fabric_attr->prov_name; at && *at; at += !!*at) {
			if (!strncasecmp(at, name, len) && (!at[len] || at[len] == ';'))
				return true;
			at += strcspn(at, ";");
		}
	return false;
}

/* The reason why a provider did not answer, if it was logged. */
static void print_reason(const char *name)
{
	if (!reasons_are_there(name))
		return;
	printf("%s: no answer\n", name);
	reasons_print(stdout, name);
}

/*
 * Lists the providers that did not answer. Those without a reason are listed together: further
 * names of Weft's providers have the reasons of the providers that they name. @asked: the provider
 * that was named, or NULL
 */
static void print_those_there(const struct fi_info *there, const struct fi_info *answers,
			      const char *asked)
{
	const struct fi_info *info;
	bool silent = false;

	for (int pass = 0; pass < 2; pass++)
		for (info = there; info; info = info->next) {
			const char *name = info->fabric_attr->prov_name;

			/* A stock library lists hooks too; they wrap others and never answer. */
			if (answered(answers, name) || !strncmp(name, HOOK, strlen(HOOK)))
				continue;
			if (!pass) {
				print_reason(name);
			} else if (!reasons_are_there(name) &&
				   (!asked || !strcasecmp(asked, name))) {
				printf("%s%s", silent ? ", " : "", name);
				silent = true;
			}
		}
	if (silent)
		printf(": no answer, without a reason of its own\n");
}

/*
 * Providers of the library, then names that only the reasons mention, then hints that would be
 * answered.
 */
static void print_reasons(const struct fi_info *answers, const char *asked)
{
	struct fi_info *there = NULL;
	const char *name;
	unsigned i;

	if (fabric_getinfo(TOOLS_API_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &there))
		there = NULL;
	print_those_there(there, answers, asked);
	for (i = 0; (name = reasons_name(i)); i++)
		if (!answered(answers, name) && !answered(there, name))
			print_reason(name);
	if (!answers && reasons_nearest())
		printf("%s\n", reasons_nearest());
	fabric_info_destroy(there);
}

static int query_and_print(struct info_options *opt)
{
	struct fi_info *list = NULL;
	int heard = opt->why ? reasons_listen() : -FI_ENOSYS;
	int rc;

	rc = fabric_getinfo(TOOLS_API_VERSION, opt->node, opt->service, opt->flags,
			    opt->hinted ? opt->hints : NULL, &list);
	/* Settings are there whether anything answers or not. */
	if (rc && opt->form == FORM_PARAMS)
		rc = print_params(opt->substring);
	else if (rc)
		warnx("fi_getinfo: %s%s", fi_strerror(-rc),
		      opt->why ? "" : "; --why gives each provider's reason");
	else
		rc = print_answers(opt, list);
	if (opt->why && !heard)
		print_reasons(list, opt->hints->fabric_attr->prov_name);
	else if (opt->why)
		warnx("this libfabric does not support a logger (%s); FI_LOG_LEVEL=info makes it print",
		      fi_strerror(-heard));
	fabric_info_destroy(list);
	reasons_forget();
	return rc;
}

/* The wires of the provider that was named, or of link; only endpoints that Weft opens. */
static void want_links(struct info_options *opt)
{
	if (!opt->hints->fabric_attr->prov_name)
		set_name(&opt->hints->fabric_attr->prov_name, LINK_NAME);
	opt->hints->ep_attr->type = FI_EP_RDM;
	opt->hints->mode = FI_CONTEXT | FI_CONTEXT2;
	opt->hints->domain_attr->mode = 0;
	opt->hinted = true;
}

int weft_info(int argc, char **argv)
{
	struct info_options opt = { .form = FORM_SHORT };
	int c, rc;

	opt.hints = fabric_info_create();
	if (!opt.hints)
		errx(EXIT_FAILURE, "no memory");
	/* Accepts every mode that a provider may require, since nothing is sent. */
	opt.hints->mode = ~0ull;
	opt.hints->domain_attr->mode = ~0ull;
	opt.hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
	while ((c = getopt_long(argc, argv, "s:n:P:c:m:t:d:f:a:p:eg:i:lvh", longopts, NULL)) !=
	       -1)
		set_option(&opt, c, optarg);
	if (optind < argc)
		errx(WEFT_EXIT_USAGE,
		     "'%s' is one argument too many; 'weft info --help' lists the options",
		     argv[optind]);
	if (opt.form == FORM_LINKS)
		want_links(&opt);
	rc = query_and_print(&opt);
	fabric_info_destroy(opt.hints);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
