/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft tcp': the connections over tcp of running programs, from the page of counters that 'weft mem' reads too.
 */
#define _GNU_SOURCE
#include "follow.h"
#include "report.h"
#include "weft.h"

#include <getopt.h>
#include <jansson.h>

static const struct option longopts[] = {
	{ "watch", optional_argument, NULL, MEM_OPT_WATCH },
	{ "seconds", required_argument, NULL, MEM_OPT_SECONDS },
	{ "json", optional_argument, NULL, MEM_OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* The counters' names in JSON, by index. */
static const char *const names[WEFT_MEM_TCP_COUNTS] = {
	[WEFT_MEM_TCP_CONNS] = "connections",
	[WEFT_MEM_TCP_BROKEN] = "broken",
	[WEFT_MEM_TCP_RETAINED_BYTES] = "retained_bytes",
	[WEFT_MEM_TCP_MADE] = "made",
	[WEFT_MEM_TCP_LOST] = "lost",
	[WEFT_MEM_TCP_BREAKS] = "breaks",
	[WEFT_MEM_TCP_RESUMES] = "resumes",
	[WEFT_MEM_TCP_ACKS_SENT] = "acks_sent",
	[WEFT_MEM_TCP_ACKS_RECEIVED] = "acks_received",
	[WEFT_MEM_TCP_SENT_BYTES] = "sent_bytes",
	[WEFT_MEM_TCP_RECEIVED_BYTES] = "received_bytes",
	[WEFT_MEM_TCP_PROVED] = "proved",
	[WEFT_MEM_TCP_ENCRYPTED] = "encrypted",
	[WEFT_MEM_TCP_REFUSED_SECRET] = "refused_other_secret",
	[WEFT_MEM_TCP_REFUSED_NONE] = "refused_no_secret",
	[WEFT_MEM_TCP_REFUSED_TLS] = "refused_tls",
};

static void usage(void)
{
	printf("Usage: weft tcp [OPTIONS] [PID|NAME]...\n"
	       "       weft tcp [OPTIONS] -- COMMAND [ARGUMENTS]\n"
	       "\n"
	       "Shows the connections over tcp of running programs: how many are up, whether their\n"
	       "peers have proved a secret, which sockets were refused, broke and were made again,\n"
	       "and what is retained for peers that have not acknowledged it. Without a PID or NAME\n"
	       "it lists all processes that have had such connections and that you may look into.\n"
	       "\n"
	       "      --watch[=SECONDS]  a line every so many seconds, 1 if not given\n"
	       "      --seconds=SECONDS  end after so many\n"
	       "      --json[=FILE]      JSON instead of the text, into FILE if there is one; an\n"
	       "                         object for each line\n"
	       "  -h, --help             this text\n"
	       "\n"
	       "A COMMAND is run and looked at with all processes that it starts. It needs\n"
	       "--watch, and stdout is its own: what has no FILE goes to stderr.\n"
	       "'man weft-tcp' describes the figures.\n");
}

static unsigned long long count(const struct sample *sample, enum weft_mem_tcp_count idx)
{
	return sample_count(sample, WEFT_MEM_PART_TCP, idx);
}

/* Who may be at the other ends of those that are up. */
static const char *admitted(const struct sample *s)
{
	unsigned long long up = count(s, WEFT_MEM_TCP_CONNS);
	unsigned long long proved = count(s, WEFT_MEM_TCP_PROVED);

	if (!up)
		return "-";
	if (!proved)
		return "anyone";
	if (count(s, WEFT_MEM_TCP_ENCRYPTED) == up)
		return "tls";
	return proved == up && !count(s, WEFT_MEM_TCP_ENCRYPTED) ? "secret" : "mixed";
}

static unsigned long long refused(const struct sample *s)
{
	return count(s, WEFT_MEM_TCP_REFUSED_SECRET) + count(s, WEFT_MEM_TCP_REFUSED_NONE) +
	       count(s, WEFT_MEM_TCP_REFUSED_TLS);
}

/* The columns that lists and moments have, but for bytes of the lanes. */
#define COUNT_HEADINGS \
	"      up  access  broken     retained     made   breaks  resumes   lost refused"

static void print_counts(FILE *to, const struct sample *s)
{
	fprintf(to, "%8llu %7s %7llu %12llu %8llu %8llu %8llu %6llu %7llu",
		count(s, WEFT_MEM_TCP_CONNS), admitted(s), count(s, WEFT_MEM_TCP_BROKEN),
		count(s, WEFT_MEM_TCP_RETAINED_BYTES), count(s, WEFT_MEM_TCP_MADE),
		count(s, WEFT_MEM_TCP_BREAKS), count(s, WEFT_MEM_TCP_RESUMES),
		count(s, WEFT_MEM_TCP_LOST), refused(s));
}

static void print_list(FILE *to, const struct sample *samples, size_t cnt)
{
	fprintf(to, "%8s %-16s " COUNT_HEADINGS " %14s %14s\n", "pid", "command", "sent",
		"received");
	for (size_t i = 0; i < cnt; i++) {
		const struct sample *s = &samples[i];

		fprintf(to, "%8d %-16s ", (int)s->pid, s->command);
		print_counts(to, s);
		fprintf(to, " %14llu %14llu\n", count(s, WEFT_MEM_TCP_SENT_BYTES),
			count(s, WEFT_MEM_TCP_RECEIVED_BYTES));
	}
}

static void print_heading(FILE *to)
{
	fprintf(to, "%9s %-16s " COUNT_HEADINGS " %14s %14s\n", "seconds", "command", "sent/s",
		"received/s");
}

static double count_rate(const struct sample *s, const struct sample *last,
			 enum weft_mem_tcp_count idx)
{
	return report_rate(s, last, count(s, idx), last ? count(last, idx) : 0);
}

static void print_moment(FILE *to, const struct sample *s, const struct sample *last)
{
	fprintf(to, "%9.2f %-16s ", s->at_s, s->command);
	print_counts(to, s);
	fprintf(to, " %14.0f %14.0f\n", count_rate(s, last, WEFT_MEM_TCP_SENT_BYTES),
		count_rate(s, last, WEFT_MEM_TCP_RECEIVED_BYTES));
	fflush(to);
}

static void print_process(FILE *to, const struct sample *s)
{
	fprintf(to, "process %d, %s\n", (int)s->pid, s->command);
	fprintf(to, "  connections      %llu up; so far %llu made, %llu lost\n",
		count(s, WEFT_MEM_TCP_CONNS), count(s, WEFT_MEM_TCP_MADE),
		count(s, WEFT_MEM_TCP_LOST));
	fprintf(to, "  access           %s: %llu have proved the secret, %llu over TLS\n",
		admitted(s), count(s, WEFT_MEM_TCP_PROVED), count(s, WEFT_MEM_TCP_ENCRYPTED));
	fprintf(to, "  refused          %llu for another secret, %llu for none, %llu by TLS\n",
		count(s, WEFT_MEM_TCP_REFUSED_SECRET), count(s, WEFT_MEM_TCP_REFUSED_NONE),
		count(s, WEFT_MEM_TCP_REFUSED_TLS));
	fprintf(to,
		"  sockets          %llu broken now; so far %llu broke, %llu were made again\n",
		count(s, WEFT_MEM_TCP_BROKEN), count(s, WEFT_MEM_TCP_BREAKS),
		count(s, WEFT_MEM_TCP_RESUMES));
	fprintf(to,
		"  retained         %llu bytes; acknowledgements: %llu sent, %llu received\n",
		count(s, WEFT_MEM_TCP_RETAINED_BYTES), count(s, WEFT_MEM_TCP_ACKS_SENT),
		count(s, WEFT_MEM_TCP_ACKS_RECEIVED));
	fprintf(to, "  bytes            %llu sent, %llu received\n",
		count(s, WEFT_MEM_TCP_SENT_BYTES), count(s, WEFT_MEM_TCP_RECEIVED_BYTES));
	if (s->hidden)
		fprintf(to, "  and %u that the process had no room to show\n", s->hidden);
}

static json_t *process_object(const struct sample *s)
{
	json_t *object = json_object();
	/* a process chooses its own name, of which what is no ASCII was replaced */
	json_object_set_new(object, "pid", json_integer(s->pid));
	json_object_set_new(object, "command", json_string(s->command));
	json_object_set_new(object, "processes", json_integer(s->processes));
	json_object_set_new(object, "domains", json_integer(s->parts[WEFT_MEM_PART_TCP]));
	for (unsigned i = 0; i < WEFT_MEM_TCP_COUNTS; i++)
		json_object_set_new(object, names[i], json_integer((json_int_t)count(s, i)));
	json_object_set_new(object, "hidden", json_integer((json_int_t)s->hidden));
	return object;
}

static const struct mem_view view = {
	.command = "tcp",
	.shown = "connections over tcp",
	.over_time = "--watch",
	.kinds = MEM_KIND(WEFT_MEM_PART_TCP),
	.options = longopts,
	.usage = usage,
	.process = print_process,
	.list = print_list,
	.heading = print_heading,
	.moment = print_moment,
	.object = process_object,
};

int weft_tcp(int argc, char **argv)
{
	return mem_show(&view, argc, argv);
}
