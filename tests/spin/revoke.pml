/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A model of how memory of the arena is taken back: mem/arena, mem/pin, and the part of providers/shm that
 * stores to a peer's memory. `check` runs it, whole and with each ordering weakened.
 *
 * The owner allocates a page (LIVE), registers it, with a new key each time, closes the region, frees the
 * page and uses it again: out of QUARANTINE as it is, or REVOKED from the wire that pins and PUNCHED. It may
 * fork while the region is open, and end the connection. A peer looks a key up, marks that it is inside the
 * region, stores through its mapping of the chunk, and leaves. Or, instead of peers, a wire that pins has the
 * grain of the page registered, which neighbours of the page are in, too.
 *
 * The owner waits for a peer that is inside, or cuts it off: a thread may stop at any step for as long as it
 * likes, so that both are tried at each step of the peer. When a peer was cut off, and before a fork, the
 * owner gets a page of its own in place of the chunk's, and what is registered next is in another chunk.
 *
 * Memory: what a thread stores waits in a queue of its own, and arrives at any later time, in order; a
 * store that an ordering kept behind others is put before them where that is weakened. A store with
 * memory_order_seq_cst, and a system call, empty the queue of their thread, a membarrier all. A load that
 * an ordering kept behind another access is done before that one where that is weakened.
 *
 * What must hold, whatever happens when:
 *  - no store of a peer is seen in memory whose key was closed, nor after a fork by parent or child;
 *  - what a peer was told is stored is there when the region was closed, and in the child;
 *  - a wire that has the page registered reaches the page that is there;
 *  - nobody waits for ever.
 *
 * Left out: fi_close that returns -FI_EBUSY, processes that die, transfers of a wire that pins during
 * a fork.
 *
 * -DWEAK_x_y takes away what the ordering x:y of the sources orders; -DNO_x takes away a step.
 */
#ifndef ACCESSES
#define ACCESSES 0 /* of the peer */
#endif
#ifndef REGIONS
#define REGIONS 1
#endif
#ifndef TRANSFERS
#define TRANSFERS 0 /* of the wire that pins */
#endif

#define KEY	0 /* of the region that is open, or 0 */
#define INSIDE	1 /* the peer is */
#define ENTERED 2 /* how often it was */
#define ENDED	3 /* the connection */
#define RETIRED 4 /* of each chunk: it is */
#define FILE	6 /* of each chunk: its page, which the peer has mapped */
#define OWN	8 /* of each chunk: the page that the owner has in its place */

#define CANARY 100

#define PEER  0
#define OWNER 1
/* Of each thread: what it has stored that has not arrived. */
chan stored[2] = [7] of { byte, byte };

byte memory[10];
byte chunk_of[4]; /* by key */
byte told[4];	  /* by key: the last store that the peer was told is done */
byte seen[4];	  /* by key: what was there when it was closed */
byte closed;	  /* the last key that was */
bit ended_peer, ended_owner, ended_wire, stopped;

/* For ever: at other times than these it is as if the peer were slow. */
inline may_stop()
{
	if
	:: stopped = 1; goto end_stopped
	:: skip
	fi
}

#define DRAIN(who) \
	do \
	:: nempty(stored[who]) -> stored[who]?at, value; memory[at] = value \
	:: empty(stored[who]) -> at = 0; value = 0; break \
	od

active proctype arrival()
{
	byte at, value;
end:
	do
	:: d_step { stored[PEER]?at, value; memory[at] = value; at = 0; value = 0 }
	:: d_step { stored[OWNER]?at, value; memory[at] = value; at = 0; value = 0 }
	od
}

/* The store, and the end of the mark behind it. */
inline peer_store(to, what)
{
#ifdef WEAK_R_pshm_pair_inside
	if
	:: stored[PEER]!to, what; stored[PEER]!INSIDE, 0
	:: stored[PEER]!INSIDE, 0; stored[PEER]!to, what
	fi
#else
	stored[PEER]!to, what;
	stored[PEER]!INSIDE, 0
#endif
}

/* pshm_reach(), pshm_reached() */
active proctype peer()
{
	byte accesses, key, chunk, at, value, retired = 2, ended = 2;
	bit may;

	do
	:: accesses < ACCESSES ->
		accesses++;
		atomic { key = memory[KEY]; chunk = chunk_of[key] };
		if
		:: !key -> goto next
		:: else
		fi;
#ifdef WEAK_S_pshm_pair_inside
		if
		:: ended = memory[ENDED]
		:: skip
		fi;
#endif
		atomic { stored[PEER]!ENTERED, accesses; stored[PEER]!INSIDE, 1 };
#ifndef WEAK_S_mr_check
		d_step { DRAIN(PEER) };
#endif
		may = 1;
#ifndef NO_KEY_CHECK
		may = (memory[KEY] == key);
#endif
#ifndef NO_ENDED_CHECK
		ended = (ended == 2 -> memory[ENDED] : ended);
		may = may && !ended;
#endif
#ifndef NO_RETIRED_CHECK
		may = may && !memory[RETIRED + chunk];
#endif
		may_stop();
		if
		:: !may -> stored[PEER]!INSIDE, 0; goto next
		:: else
		fi;
#ifdef WEAK_B_arena_stored
		if
		:: retired = memory[RETIRED + chunk]
		:: skip
		fi;
#endif
		peer_store(FILE + chunk, accesses);
		d_step {
			retired = (retired == 2 -> memory[RETIRED + chunk] : retired);
#ifdef NO_STORED_CHECK
			retired = 0;
#endif
			if
			:: !retired ->
				told[key] = accesses;
				assert(closed < key || seen[key] >= accesses)
			:: else
			fi
		};
next:
		skip;
		d_step { key = 0; chunk = 0; may = 0; retired = 2; ended = 2 }
	:: else -> break
	od;
	ended_peer = 1;
	goto over;
end_stopped:
	false;
over:
	skip
}

/* Grains (mem/pin), of one user each. The word is changed by atomic operations alone. */
mtype = { NONE, PINNING, READY, BARRED };
mtype grain = NONE;
bit users;
bit arena_lock;
byte number;  /* which page the address leads to */
byte pinned;  /* which one the device reaches */
bit live;     /* the page is allocated */
bit transfer; /* under way, to the page itself */

/* mem_pins_get(), a transfer, mem_pins_put() */
active proctype wire()
{
	byte transfers;
	bit ours;

	do
	:: transfers < TRANSFERS ->
		transfers++;
		/* to the page, while the program has it, or to a neighbour */
		if
		:: atomic { live -> ours = 1; transfer = 1 }
		:: ours = 0
		fi;
again:
		if
		:: atomic { grain == READY -> users = 1 }
		:: atomic { grain == NONE -> grain = PINNING }; goto pin
		:: grain == BARRED ->
#ifndef NO_ARENA_LOCK
			atomic { !arena_lock -> arena_lock = 1 };
#endif
			grain = NONE;
#ifndef NO_ARENA_LOCK
			arena_lock = 0;
#endif
			goto again
		fi;
		goto use;
pin:
		pinned = number;
		atomic { grain = READY; users = 1 };
use:
		assert(!ours || pinned == number);
		atomic { ours = 0; transfer = 0 };
		users = 0
	:: else -> break
	od;
	ended_wire = 1
}

/* arena_chunk_retire(), arena_chunk_leave() */
inline chunk_leave()
{
	stored[OWNER]!RETIRED + chunk, 1;
#ifndef WEAK_S_arena_retired
	d_step { DRAIN(OWNER) };
#endif
#ifndef NO_MEMBARRIER
	d_step { DRAIN(OWNER); DRAIN(PEER) };
#endif
	d_step { DRAIN(OWNER) }; /* by the calls that follow */
#ifndef NO_OWN
	d_step { memory[OWN + chunk] = memory[FILE + chunk]; page = OWN };
#endif
	left = 1
}

/* Whether the owner has to wait for the peer: peer_inside() */
#ifdef NO_ENTERED
#define EXCUSED (cut)
#else
#define EXCUSED (cut && cut_entered == memory[ENTERED])
#endif
#define MUST_WAIT (!gone && memory[INSIDE] && !EXCUSED)

/* pshm_conn_end(), pshm_share_keep() */
inline conn_end()
{
	stored[OWNER]!ENDED, 1;
#ifndef WEAK_S_pshm_pair_ended
	d_step { DRAIN(OWNER) };
#endif
	/* a guest's pair is kept for as long as it is inside */
	gone = !memory[INSIDE];
	conn_ended = 1
}

inline fork_now()
{
	chunk_leave();
	d_step { forked = memory[page + chunk]; assert(forked >= told[key]) };
	/* neither process stores; nothing else may be seen */
	assert(memory[page + chunk] == forked)
}

/* engine_mr_end_key() */
inline close_key()
{
	stored[OWNER]!KEY, 0;
#ifndef WEAK_S_mr_seq
	d_step { DRAIN(OWNER) };
#endif
#ifdef WEAK_A_pshm_pair_inside
	if
	:: early = memory[page + chunk]
	:: skip
	fi;
#endif
	do
	:: !MUST_WAIT -> break
#ifndef NO_CUT
	:: MUST_WAIT ->
		if
		:: !left -> chunk_leave()
		:: else
		fi;
		d_step {
			cut = memory[INSIDE] || cut;
			cut_entered = (memory[INSIDE] -> memory[ENTERED] : cut_entered)
		}
#endif
	od;
	skip;
	d_step {
		seen[key] = (early == 255 -> memory[page + chunk] : early);
		early = 255;
		closed = key;
		assert(seen[key] >= told[key])
	}
}

/* arena_revoke_locked() of the page, which is not allocated: the pages of its chunk, or its own */
inline punch()
{
	atomic { !arena_lock -> arena_lock = 1 };
	atomic {
		if
		:: grain == PINNING || users -> revoked = 0
		:: else ->
			revoked = 1;
#ifdef NO_BAR
			grain = NONE
#else
			grain = BARRED
#endif
		fi;
#ifdef NO_USERS
		revoked = 1;
#endif
	};
	if
	:: revoked -> d_step { DRAIN(OWNER); memory[page + chunk] = 0; number++; expected = 0 }
	:: else
	fi;
	arena_lock = 0
}

/* What is used again holds what its new user has stored. */
inline use_again()
{
	d_step { DRAIN(OWNER); memory[page + chunk] = CANARY + key; expected = CANARY + key };
	if
	:: punch()
	:: skip
	fi;
	assert(memory[page + chunk] == expected)
}

active proctype owner()
{
	byte key, chunk, page = FILE, at, value, early = 255, forked, expected, cut_entered;
	bit left, gone, cut, conn_ended, revoked;

	do
	:: key < REGIONS ->
		key++;
		d_step {
			DRAIN(OWNER);
			memory[page + chunk] = 0;
			chunk_of[key] = chunk
		};
		stored[OWNER]!KEY, key;
		live = 1;
#if ACCESSES
		if
		:: !left -> fork_now()
		:: !conn_ended -> conn_end()
		:: skip
		fi;
#endif
		atomic { !transfer -> live = 0 };
		close_key();
		use_again();
		/* what is allocated next is in another chunk */
		d_step {
			assert(memory[page + chunk] == expected);
			if
			:: left && !chunk -> chunk = 1; left = 0; page = FILE
			:: else
			fi
		}
	:: else -> break
	od;
	ended_owner = 1
}

active proctype watch()
{
	timeout -> assert(ended_owner && ended_wire && (ended_peer || stopped))
}
