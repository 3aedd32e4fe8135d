/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The subcommands of weft. Each is called once, from main, with argv[0] being
 * "weft NAME", and returns the exit status of the process.
 */
#ifndef WEFT_TOOLS_WEFT_H
#define WEFT_TOOLS_WEFT_H

int weft_info(int argc, char **argv);
int weft_pingpong(int argc, char **argv);
int weft_bench(int argc, char **argv);
int weft_scale(int argc, char **argv);
int weft_run(int argc, char **argv);
int weft_mem(int argc, char **argv);
int weft_tcp(int argc, char **argv);
int weft_copy(int argc, char **argv);
int weft_lend(int argc, char **argv);
int weft_devices(int argc, char **argv);

/* Exit status for a command line that makes no sense, as shells use it. */
#define WEFT_EXIT_USAGE 2

#endif
