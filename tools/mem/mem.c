/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft mem': its help and its view; the figures: report.c.
 */
#define _GNU_SOURCE
#include "follow.h"
#include "report.h"
#include "weft.h"

#include <getopt.h>

static const struct option longopts[] = {
	{ "watch", required_argument, NULL, MEM_OPT_WATCH },
	{ "seconds", required_argument, NULL, MEM_OPT_SECONDS },
	{ "plot", required_argument, NULL, MEM_OPT_PLOT },
	{ "json", optional_argument, NULL, MEM_OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft mem [OPTIONS] [PID|NAME]...\n"
	       "       weft mem [OPTIONS] -- COMMAND [ARGUMENTS]\n"
	       "\n"
	       "Shows the registered memory of running programs: what their arena holds, what\n"
	       "devices have registered, and how the cache of registrations fares. Without a PID\n"
	       "or NAME it lists all processes that have such memory and that you may look into.\n"
	       "\n"
	       "      --watch=SECONDS    a line every so many seconds\n"
	       "      --seconds=SECONDS  end after so many\n"
	       "      --plot=FILE        a picture (SVG) over time, until the processes or the\n"
	       "                         COMMAND end, --seconds are over, or SIGINT\n"
	       "      --json[=FILE]      JSON instead of the text, into FILE if there is one; an\n"
	       "                         object for each line\n"
	       "  -h, --help             this text\n"
	       "\n"
	       "A COMMAND is run and looked at with all processes that it starts. It needs\n"
	       "--watch or --plot, and stdout is its own: what has no FILE goes to stderr.\n"
	       "'man weft-mem' describes the figures.\n");
}

static const struct mem_view view = {
	.command = "mem",
	.shown = "registered memory",
	.over_time = "--watch or --plot",
	.kinds = ~MEM_KIND(WEFT_MEM_PART_TCP),
	.options = longopts,
	.usage = usage,
	.process = report_process,
	.list = report_list,
	.heading = report_heading,
	.moment = report_moment,
	.object = report_object,
};

int weft_mem(int argc, char **argv)
{
	return mem_show(&view, argc, argv);
}
