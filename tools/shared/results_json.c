/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results as one JSON object, by way of Jansson; results.h has the contract,
 * weft-bench(1) the members. Called by results_publish.
 */
#include "json_names.h"
#include "results.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include <jansson.h>
#include <rdma/fabric.h>

#define FORMAT_NAME    "weft-bench"
#define FORMAT_VERSION 1
#define REAL_DIGITS    9

/* JSON has no word for what could not be measured but null. */
static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *array_of(const double *values, size_t cnt)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < cnt; i++)
		json_array_append_new(array, number(values[i]));
	return array;
}

static json_t *stats_object(const struct stats *st)
{
	return json_pack("{s:o, s:o, s:o}", "median", number(st->median), "p10",
			 number(st->p10), "p90", number(st->p90));
}

static json_t *side_object(const struct stats *st, const double *samples, size_t cnt)
{
	json_t *side = stats_object(st);

	json_object_set_new(side, "samples", array_of(samples, cnt));
	return side;
}

static json_t *row_object(const struct result *row, bool compared)
{
	json_t *object = json_pack("{s:s, s:s, s:I, s:o}", "test", figure_test_name(row->test),
				   "unit", figure_test_unit(row->test), "size",
				   (json_int_t)row->size, "a",
				   side_object(&row->a, row->samples[0], row->cnt));

	if (compared) {
		json_object_set_new(object, "b",
				    side_object(&row->b, row->samples[1], row->cnt));
		json_object_set_new(object, "a2", array_of(row->samples[2], row->cnt));
		json_object_set_new(object, "ratio", stats_object(&row->ratio));
		json_object_set_new(object, "aa", stats_object(&row->twin));
		json_object_set_new(object, "verdict", json_string(row->verdict));
	}
	json_object_set_new(object, "raw_ns", stats_object(&row->raw_ns));
	return object;
}

static json_t *machine_object(const struct machine *machine)
{
	return json_pack("{s:o, s:i, s:b, s:I, s:o, s:o}", "cpu", json_name(machine->cpu),
			 "cores", (int)machine->cores, "virtual", (int)machine->virtual,
			 "memory_bytes", (json_int_t)machine->memory_bytes, "kernel",
			 json_name(machine->kernel), "load", array_of(machine->load, 3));
}

static json_t *config_object(const struct results_config *config)
{
	json_t *api = json_null();

	if (config->api)
		api = json_sprintf("%u.%u", FI_MAJOR(config->api), FI_MINOR(config->api));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "provider", json_name(config->provider),
			 "provider_version", json_name(config->prov_version), "libfabric", api,
			 "build", json_name(config->build), "library",
			 json_name(config->library));
}

static json_t *command_array(char **command)
{
	json_t *array = json_array();

	for (; command && *command; command++)
		json_array_append_new(array, json_name(*command));
	return array;
}

static json_t *time_string(void)
{
	time_t now = time(NULL);
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&now, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

static json_t *whole_object(const struct results *results)
{
	bool compared = results->config_cnt == 2;
	json_t *rows = json_array(), *whole;
	size_t i;

	whole = json_pack("{s:s, s:i, s:o, s:o, s:o, s:s, s:i, s:i, s:o}", "format",
			  FORMAT_NAME, "format_version", FORMAT_VERSION, "time", time_string(),
			  "command", command_array(results->command), "machine",
			  machine_object(&results->machine), "interface", results->interface,
			  "rounds", (int)results->rounds, "restarts", (int)results->restarts,
			  "a", config_object(&results->config[0]));
	if (compared)
		json_object_set_new(whole, "b", config_object(&results->config[1]));
	if (results->refused)
		json_object_set_new(whole, "refused", json_string(results->refused));
	if (results->note)
		json_object_set_new(whole, "note", json_string(results->note));
	for (i = 0; i < results->cnt; i++)
		json_array_append_new(rows, row_object(&results->row[i], compared));
	json_object_set_new(whole, "figures", rows);
	return whole;
}

int results_print_json(FILE *to, const struct results *results)
{
	json_t *whole = whole_object(results);
	int rc;

	rc = json_dumpf(whole, to, JSON_REAL_PRECISION(REAL_DIGITS));
	json_decref(whole);
	return rc || fputc('\n', to) == EOF ? -EIO : 0;
}
