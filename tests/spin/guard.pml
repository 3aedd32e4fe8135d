/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A model of how a domain without a lock in its data calls is held: engine/guard.[ch]. `check` runs it,
 * whole and with each ordering weakened.
 *
 * One thread makes CALLS data calls, another one CONTROLS control calls, and the domain's thread enters
 * while it is idle, TURNS times. Once it is in, the domain's thread stays until a data call wants the
 * domain or nobody is left who might: its rounds have a bound, which stands for who waits with the lock.
 *
 * Memory: what a thread stores waits in a queue of its own, and arrives at any later time, in order; a
 * store that an ordering kept behind others is put before them where that is weakened. A membarrier
 * empties all queues, the lock that of who takes it or gives it back. A load that an ordering kept behind
 * another is done before that one, or where it stands, where that is weakened.
 *
 * What must hold, whatever happens when:
 *  - one at a time is in, and sees all that those did who were there before;
 *  - whoever waits gets in: nobody is left waiting when nobody can move any more.
 *
 * Left out: a domain that gets its lock late, and barriers that fail.
 *
 * -DWEAK_R_x, WEAK_A_x and WEAK_F_x take away what the ordering R:x, A:x or F:x of the sources orders; -DNO_x
 * takes away a step; with -DFORGETFUL the domain's thread takes the word of who waits back when it comes in.
 */
#ifndef CALLS
#define CALLS 2
#endif
#ifndef CONTROLS
#define CONTROLS 1
#endif
#ifndef TURNS
#define TURNS 1
#endif

#define INSIDE	0
#define CLAIMED 1
#define WANTED	2
#define WORK	3 /* what is done to the domain: how often */

/* Of each thread: what it has stored that has not arrived. */
#define DATA_CALL 0
#define CONTROL	  1
#define IDLE	  2
chan stored[3] = [6] of { byte, byte };

byte memory[4];
bit lock;
byte done;    /* work, arrived or not */
bit busy;     /* somebody is in */
byte leavers; /* threads that will not come again */
bit waits;    /* a control call, for the lock */

#define DRAIN(who) \
	do \
	:: nempty(stored[who]) -> stored[who]?at, value; memory[at] = value \
	:: empty(stored[who]) -> break \
	od

active proctype arrival()
{
	byte at, value;
end:
	do
	:: d_step { stored[DATA_CALL]?at, value; memory[at] = value }
	:: d_step { stored[CONTROL]?at, value; memory[at] = value }
	:: d_step { stored[IDLE]?at, value; memory[at] = value }
	od
}

/* A load of the work before the one that it is to come after. */
#define LATE 255
inline may_load_early()
{
	if
	:: early = memory[WORK]
	:: skip
	fi
}

/* What a thread does to the domain; @own: what it has stored itself, which it sees. */
inline work()
{
	d_step { assert(!busy); busy = 1 };
	d_step {
		seen = (early == LATE -> memory[WORK] : early);
		early = LATE;
		assert(seen == done || own == done);
		done++;
		own = done;
		busy = 0
	}
}

/* Its stores leave before the one that says that it is over, unless that may pass them. */
#define OVER_IN_ORDER(who, where) stored[who]!WORK, own; stored[who]!where, 0
#define OVER_WEAK(who, where) \
	if \
	:: stored[who]!WORK, own; stored[who]!where, 0 \
	:: stored[who]!where, 0; stored[who]!WORK, own \
	fi

/* engine_guard_enter(), engine_guard_wait(), engine_guard_leave() */
active proctype data_call()
{
	byte calls, at, value, seen, own, early = LATE, claimed = LATE;

	do
	:: calls < CALLS ->
		calls++;
#ifdef WEAK_F_domain_inside
		if
		:: claimed = memory[CLAIMED]
		:: skip
		fi;
#endif
		stored[DATA_CALL]!INSIDE, 1;
#ifdef WEAK_A_domain_claimed
		may_load_early();
#endif
		if
		:: claimed == LATE -> claimed = memory[CLAIMED]
		:: else
		fi;
		if
		:: claimed ->
			early = LATE;
#ifndef NO_WANTED
			stored[DATA_CALL]!WANTED, 1;
#endif
			stored[DATA_CALL]!INSIDE, 0;
			atomic { !lock -> lock = 1; DRAIN(DATA_CALL) };
#if !defined(FORGETFUL) && !defined(NO_WANTED)
			stored[DATA_CALL]!WANTED, 0;
#endif
			stored[DATA_CALL]!INSIDE, 1;
			atomic { DRAIN(DATA_CALL); lock = 0 }
		:: else
		fi;
		claimed = LATE;
		work();
#ifdef WEAK_R_domain_inside
		OVER_WEAK(DATA_CALL, INSIDE)
#else
		OVER_IN_ORDER(DATA_CALL, INSIDE)
#endif
	:: else -> break
	od;
	leavers++
}

inline membarrier()
{
#ifdef WEAK_F_engine_enter
	skip
#else
	atomic { DRAIN(CONTROL); DRAIN(IDLE); DRAIN(DATA_CALL) }
#endif
}

inline leave(who)
{
#ifdef WEAK_R_domain_claimed
	OVER_WEAK(who, CLAIMED);
#else
	OVER_IN_ORDER(who, CLAIMED);
#endif
	atomic { DRAIN(who); lock = 0 }
}

/* engine_enter(), engine_leave() */
active proctype control()
{
	byte calls, at, value, seen, own, early = LATE;

	do
	:: calls < CONTROLS ->
		calls++;
		waits = 1;
		atomic { !lock -> lock = 1; waits = 0 };
		stored[CONTROL]!CLAIMED, 1;
		membarrier();
#ifdef WEAK_A_domain_inside
		may_load_early();
#endif
		!memory[INSIDE];
		work();
		leave(CONTROL)
	:: else -> break
	od;
	leavers++
}

/* engine_enter_idle(), engine_leave() */
active proctype idle()
{
	byte turns, at, value, seen, own, early = LATE;

	do
	:: turns < TURNS ->
		turns++;
		if
		:: atomic { !lock -> lock = 1 }
		:: lock -> goto next
		fi;
		own = memory[WORK];
#ifdef FORGETFUL
		stored[IDLE]!WANTED, 0;
#else
		if
		:: memory[WANTED] -> goto back
		:: else
		fi;
#endif
		if
		:: memory[INSIDE] -> goto back
		:: else
		fi;
		stored[IDLE]!CLAIMED, 1;
		membarrier();
#ifdef WEAK_A_domain_inside
		may_load_early();
#endif
		if
		:: memory[INSIDE] ->
			early = LATE;
			goto back
		:: else
		fi;
		work();
		(memory[WANTED] || waits || leavers == 2);
		leave(IDLE);
		goto next;
back:
		stored[IDLE]!CLAIMED, 0;
		atomic { DRAIN(IDLE); lock = 0 };
next:
		skip
	:: else -> break
	od
}

active proctype watch()
{
	timeout -> assert(leavers == 2)
}
