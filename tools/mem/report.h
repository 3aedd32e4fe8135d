/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Samples as text and as JSON. One thread.
 */
#ifndef WEFT_TOOLS_REPORT_H
#define WEFT_TOOLS_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "sample.h"

struct mem_view;

/* report_process - all of one process, in words */
void report_process(FILE *to, const struct sample *sample);

/*
 * report_list - a line for each process
 */
void report_list(FILE *to, const struct sample *samples, size_t cnt);

/*
 * report_moment - a line for one moment, under a heading that report_heading() writes
 * @last: the sample before, or NULL: rates are since then
 */
void report_heading(FILE *to);
void report_moment(FILE *to, const struct sample *sample, const struct sample *last);

/* report_object - all of one process as an object of JSON, owned; weft-mem(1) names its members */
json_t *report_object(const struct sample *sample);

/*
 * report_json - one JSON object, on a line, with the objects of @view
 * @at: the time is a member
 * Returns 0 or -EIO.
 */
int report_json(FILE *to, const struct mem_view *view, const struct sample *samples, size_t cnt,
		bool at);

/* report_rate - what a counter grew in a second between two samples; 0 where it shrank */
double report_rate(const struct sample *sample, const struct sample *last, uint64_t now,
		   uint64_t before);

#endif
