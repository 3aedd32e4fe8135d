/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A model of how both ends of a transfer claim its chunks: providers/shm/memory/coop_copy.c and its callers,
 * get.c and coop_write.c. `check` runs it, whole and with each ordering weakened.
 *
 * A receiver shares GENS transfers in one slot, one after the other, of two chunks and one by turns. It
 * claims and reads some, may withdraw the rest at any time, and waits until the sender holds no chunk; then the
 * memory is used for something else. The sender is told of each transfer by a line, late or never; it
 * copies what the slot says, claims, writes, counts, and may die between any two steps.
 *
 * Memory is as in sleep.pml: what a process stores waits in a buffer of its own and arrives at any later
 * time, to one location in order, and what a release comes after before that; an RMW operation is done
 * in memory, behind what the buffer has for that location. What a process wrote has arrived before
 * others see it dead.
 *
 * What must hold, whatever happens when:
 *  - who has claimed a chunk has read a slot that is whole, and of that transfer;
 *  - no chunk is copied twice, and all of them are there when a transfer ends well;
 *  - the sender writes to no memory that is used for something else;
 *  - the receiver comes to an end.
 *
 * Left out: chunks that fail, and memory that a hostile neighbour writes.
 */
#ifndef GENS
#define GENS 3
#endif
#define CHUNKS	 2
#define CNT(gen) (1 + (gen) % 2)
#define CLOSED	 9

/* Memory. */
byte word_gen, next = CLOSED;
byte id, cnt; /* what the slot says */
byte written;
byte told;	    /* generation, by the line */
byte data[CHUNKS];  /* generation that was written there, 0: something else's */
bit dead;	    /* the sender, as others see it */

/* The receiver's stores that have not arrived, all of generation gen. */
byte gen;
bit p_closed, p_id, p_cnt, p_written, p_open, p_told;

/* The sender's. */
byte s_gen, s_ended;
bit s_data[CHUNKS], s_written;

bit over; /* the receiver is */

/* Stores arrive. */
active proctype memory()
{
end:
	do
	:: d_step { p_closed -> p_closed = 0; word_gen = gen - 1; next = CLOSED }
#ifdef WEAK_R_pshm_coop_copy_fields
	:: d_step { p_id -> p_id = 0; id = gen }
	:: d_step { p_cnt -> p_cnt = 0; cnt = CNT(gen) }
#else
	:: d_step { p_id && !p_closed -> p_id = 0; id = gen }
	:: d_step { p_cnt && !p_closed -> p_cnt = 0; cnt = CNT(gen) }
#endif
	:: d_step { p_written -> p_written = 0; written = 0 }
#ifdef WEAK_R_pshm_coop_copy_word
	:: d_step { p_open && !p_closed -> p_open = 0; word_gen = gen; next = 0 }
#else
	:: d_step {
			p_open && !p_closed && !p_id && !p_cnt && !p_written -> p_open = 0;
			word_gen = gen;
			next = 0
		}
#endif
	:: d_step {
			p_told && !p_closed && !p_id && !p_cnt && !p_written && !p_open ->
			p_told = 0;
			told = gen
		}
	:: d_step {
			s_data[0] -> s_data[0] = 0;
			assert(s_gen == gen && data[0] == 0);
			data[0] = s_gen
		}
	:: d_step {
			s_data[1] -> s_data[1] = 0;
			assert(s_gen == gen && data[1] == 0);
			data[1] = s_gen
		}
#ifdef WEAK_R_pshm_coop_copy_written
	:: d_step { s_written -> s_written = 0; written = s_ended }
#else
	:: d_step {
			s_written && !s_data[0] && !s_data[1] -> s_written = 0;
			written = s_ended
		}
#endif
	:: timeout -> assert(over); break
	od
}

active proctype receiver()
{
	byte ours, claimed, chunk, seen[CHUNKS];
	bit drained;

	do
	:: gen == GENS -> break
	:: else ->
		/* pshm_coop_copy_open(), the line */
		d_step {
			!p_told -> gen++;
#ifndef NO_CLOSE
			p_closed = 1;
#endif
			p_id = 1;
			p_cnt = 1;
			p_written = 1;
			p_open = 1;
			p_told = 1;
			ours = 0;
			drained = 0
		}
		do
		:: drained -> break
		:: else ->
			if
			:: d_step { /* pshm_coop_copy_claim() */
					!p_closed && !p_open ->
					assert(word_gen == gen);
					if
					:: next < CNT(gen) ->
						chunk = next;
						next++;
						assert(data[chunk] == 0);
						data[chunk] = gen;
						ours++
					:: else -> claimed = CNT(gen); drained = 1
					fi;
					chunk = 0
				}
			:: d_step { /* pshm_coop_copy_close() */
					!p_closed && !p_open ->
					claimed = next;
					next = CLOSED;
					drained = 1
				}
			fi
		od;
#ifdef WEAK_A_pshm_coop_copy_written
		/* what is read next, before the count */
		if
		:: d_step { seen[0] = data[0]; seen[1] = data[1] }
		fi;
#endif
		skip;
#ifndef NO_WAIT
		(!p_written && written >= claimed - ours) || dead;
#endif
#ifndef WEAK_A_pshm_coop_copy_written
		d_step { seen[0] = data[0]; seen[1] = data[1] };
#endif
		d_step {
			if
			:: !dead ->
				assert(claimed < 1 || seen[0] == gen);
				assert(claimed < 2 || seen[1] == gen)
			:: else
			fi;
			/* it is the program's again */
			data[0] = 0;
			data[1] = 0;
			seen[0] = 0;
			seen[1] = 0
		};
		/* and something else's, until it is open again */
		d_step { assert(!s_data[0] && !s_data[1]) }
	od;
	over = 1
}

active proctype sender()
{
	byte my_id, my_cnt, chunk;
	bit claimed;

	do
	:: d_step { told != s_gen && !s_written -> s_gen = told; s_ended = 0 };
		/* pshm_coop_copy_read(), in any order */
		if
		:: my_id = id; my_cnt = cnt
		:: my_cnt = cnt; my_id = id
		fi;
		do
		:: d_step { /* pshm_coop_copy_claim() */
				claimed = 0;
				if
#ifdef NO_GENERATION
				:: next != CLOSED && next < my_cnt ->
#else
				:: word_gen == s_gen && next != CLOSED && next < my_cnt ->
#endif
					chunk = next;
					next++;
					claimed = 1;
					assert(my_id == s_gen && my_cnt == CNT(s_gen))
				:: else
				fi
			};
			if
			:: claimed -> skip
			:: else -> break
			fi;
			s_data[chunk] = 1;
			d_step { !s_written -> s_ended++; s_written = 1 }
		:: break /* it computes, or the receiver ended it */
		od
	:: true -> /* it dies */
		d_step { !s_data[0] && !s_data[1] && !s_written -> dead = 1 };
		break
	od
}
