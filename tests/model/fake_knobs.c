/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the fake wires decide: the sequence of random numbers, and the knobs. Called by tests, and with
 * the wires' lock.
 */
#include <stdlib.h>
#include "fake_conn.h"

struct fake_knobs fake_knobs[FAKE_KINDS];

static uint64_t sequence = 1;

void fake_seed(uint64_t seed)
{
	sequence = seed * 2 + 1;
	if (list_empty(&fake_wires))
		fake_ports_anew();
}

uint32_t fake_random(uint32_t n)
{
	sequence ^= sequence << 13;
	sequence ^= sequence >> 7;
	sequence ^= sequence << 17;
	return (uint32_t)((sequence * 0x2545f4914f6cdd1dull) >> 33) % n;
}

void fake_knobs_default(struct fake_knobs *knobs)
{
	*knobs = (struct fake_knobs){
		.claim_max = 1024,
		.eager_max = 8192,
		.claim_room = 256,
		.sendv_room = 64,
		.burst = 64,
		.move = 256,
		.get_now = 256,
		.has_get = true,
	};
}

static uint16_t some_chance(void)
{
	static const uint16_t chances[] = { 0, 0, 8, 64, 128, 224, 256 };

	return chances[fake_random(sizeof(chances) / sizeof(chances[0]))];
}

void fake_knobs_random(struct fake_knobs *knobs)
{
	static const uint32_t claims[] = { 64, 65, 128, 200, 256, 257, 1000, 2048 };

	*knobs = (struct fake_knobs){
		.claim_max = claims[fake_random(sizeof(claims) / sizeof(claims[0]))],
		.claim_room = 1 + fake_random(fake_chance(128) ? 4 : 200),
		.sendv_room = 1 + fake_random(fake_chance(128) ? 3 : 40),
		.burst = 1 + fake_random(fake_chance(128) ? 4 : 64),
		.move = (uint16_t)(40 + fake_random(217)),
		.stall = (uint16_t)(fake_chance(128) ? 0 : fake_random(40)),
		.refuse = (uint16_t)(fake_chance(128) ? 0 : fake_random(160)),
		.split = some_chance(),
		.buffer = some_chance(),
		.get_now = some_chance(),
		.get_later = some_chance(),
		.get_fails = some_chance(),
		.has_get = fake_chance(160),
		.proof = some_chance(),
	};
	if (fake_chance(128))
		knobs->waits_min = WIRE_REQUEST_MAX + 1 +
				   fake_random(fake_chance(128) ? 1000 : 49152);
	knobs->eager_max = knobs->claim_max;
	if (fake_chance(200))
		knobs->eager_max += fake_random(fake_chance(128) ? 8192 : 49152);
}

void fake_knobs_set(enum fake_kind kind, const struct fake_knobs *knobs)
{
	fake_knobs[kind] = *knobs;
	fake_ops[kind].claim_max = knobs->claim_max;
	fake_ops[kind].eager_max = knobs->eager_max;
	fake_ops[kind].waits_min = knobs->waits_min;
	fake_ops[kind].polls_after_send = true;
	fake_ops_bare(kind, knobs->bare);
	fake_ops_get(kind, knobs->has_get);
}

void *fake_alloc(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		abort();
	return p;
}
