/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A model of how shm's endpoints poll, sleep and are woken:
 * providers/shm/{paths/arm,conn/wake,conn/polling}.c, and pshm_line_publish() in polling.h. `check` runs it,
 * whole and with each ordering weakened.
 *
 * An endpoint that THREADS threads wait on, one of which may go away at any time; they arm,
 * look, sleep, are woken and poll in any order, as their domain's lock lets them. Its rings
 * cool and warm whenever they may, that of the first producer only without -DHOT0. The
 * producers publish LINES0 and LINES1 lines; with -DASKER the second one leaves requests in
 * the mailbox instead. PART has bit p for each producer p that takes part in the barriers
 * that the endpoint makes in other processes; the others, and all with PART=0, are told
 * PSHM_UNSURE. With -DNO_BELL_YET the bell is made some time; who arms before that naps.
 *
 * Memory: what a process stores waits in a buffer of its own and arrives at any later time.
 * The buffer keeps the order of stores to one location, and what a release comes after
 * before that. (Positions only grow, and `mode` has two values for a ring: so what was
 * stored last and what has arrived say all that a queue would.) An RMW operation is done in
 * memory, a release behind what the buffer has; a seq_cst fence empties it. A membarrier
 * empties the producers', one after the other. A load is done where it stands if what it
 * could pass orders it. Where an ordering is weakened so that it may be done earlier, it
 * sees what there is, or what there was then. So this is TSO, and what C11 allows beyond it
 * on machines where all others see a store at once. A system call on the pipe takes its
 * lock, which orders as acquire and release do.
 *
 * What must hold, whatever happens when:
 *  - when nobody can move any more, nothing that was published is unread;
 *  - who reads a line sees its data;
 *  - once the producers rest, two polls with sweeps read all there is;
 *  - a poll that takes a doorbell reads what was published before it, and none is lost
 *    while the endpoint polls.
 *
 * Left out: a bell that its ringer has not the means to open, connections that come and go,
 * and memory that a hostile neighbour writes.
 *
 * -DWEAK_R_x, WEAK_A_x and WEAK_F_x take away what the ordering R:x, A:x or F:x of the
 * sources orders; -DNO_x takes away a step, -DLATE_CLEAR does one too late.
 */
#define UNSURE 0
#define POLLED 1
#define RING_DOORBELL   2

#ifndef THREADS
#define THREADS 1
#endif
#ifndef LINES0
#define LINES0 2
#endif
#ifdef ASKER
#define LINES1	 0
#define REQUESTS 2
#else
#ifndef LINES1
#define LINES1 1
#endif
#define REQUESTS 0
#endif

#ifdef NO_BELL_YET
#define MADE 0
#else
#define MADE 1
#endif

/* Memory. */
byte data[2];  /* ring: lines whose data have arrived */
byte word[2];  /* ... and whose word has */
byte mode[2];   /* polling.mode of of that ring */
byte doorbells[2]; /* the ring's bit in inbox.doorbells: 0, or how much its producer had published */
bit doorbell_words;
byte slots; /* requests in the mailbox that are ready */
byte request_doorbell;
bit armed;
bit bell_id = MADE, bell = MADE;
bit pipe; /* readable */

/* What has been stored, arrived or not. */
byte published[2]; /* lines, by the producer */
byte want[2];	   /* mode, by the endpoint */
bit made = MADE;   /* bell_id, then bell, by the endpoint */
#ifdef WEAK_F_pshm_inbox_armed
bit arming; /* armed, by the endpoint */
#define ARM_ARRIVES armed = armed || arming; arming = 0
#else
#define ARM_ARRIVES
#endif

/* The endpoint's own. */
bit hot[2];
byte taken[2];
byte accepted, requests_seen;
bit w_armed;
byte asleep; /* threads, on the bell */
byte naps;   /* ... of those that armed before there was a bell: they wake after a while */
bit gone;    /* one of the threads */

byte at_rest; /* producers */

#define ALL_READ \
	(taken[0] == LINES0 && taken[1] == LINES1 && accepted == REQUESTS)
#define ALL_PUBLISHED \
	(at_rest == 2 && word[0] == published[0] && word[1] == published[1])

/* Empties a producer's buffer, the endpoint's. */
#define DRAIN(p)       data[p] = published[p]; word[p] = published[p]
#define DRAIN_ENDPOINT \
	mode[0] = want[0]; mode[1] = want[1]; bell_id = made; bell = made; \
	ARM_ARRIVES

/* Stores arrive. */
active proctype memory()
{
end:
	do
#if defined(WEAK_R_ring_line_word)
	:: d_step { data[0] < published[0] -> data[0]++ }
	:: d_step { data[1] < published[1] -> data[1]++ }
	:: d_step { word[0] < published[0] -> word[0]++ }
	:: d_step { word[1] < published[1] -> word[1]++ }
#else
	:: d_step { word[0] < published[0] -> data[0]++; word[0]++ }
	:: d_step { word[1] < published[1] -> data[1]++; word[1]++ }
#endif
#ifdef WEAK_F_pshm_inbox_armed
	:: d_step {
			arming && bell == made && mode[0] == want[0] && mode[1] == want[1] ->
			armed = 1;
			arming = 0
		}
#endif
	:: d_step { mode[0] != want[0] -> mode[0] = want[0] }
	:: d_step { mode[1] != want[1] -> mode[1] = want[1] }
#ifdef WEAK_R_pshm_inbox_bell
	:: d_step { bell_id != made -> bell_id = made }
	:: d_step { bell != made -> bell = made }
#else
	:: d_step { bell != made -> bell_id = made; bell = made }
#endif
	od
}

/*
 * pshm_peer_wake(). What it loads may have been loaded before, if an ordering is weakened that
 * would forbid it: early_armed, early_bell and early_id have that, or LATE.
 */
#define LATE 2

inline wake()
{
#ifdef WEAK_A_pshm_inbox_armed
	if
	:: skip
	:: d_step { early_bell = bell; early_id = bell_id }
	fi;
#endif
	if
	:: early_armed == LATE -> on = armed
	:: else -> on = early_armed
	fi;
	if
	:: on -> atomic { on = armed; armed = 0 }
	:: else
	fi;
#ifdef WEAK_A_pshm_inbox_bell
	if
	:: on && early_id == LATE -> early_id = bell_id
	:: else
	fi;
#endif
	if
	:: on ->
		if
		:: early_bell == LATE -> number = bell
		:: else -> number = early_bell
		fi;
		if
		:: !number -> skip
		:: number && (early_id == LATE -> bell_id : early_id) -> atomic { DRAIN(me); pipe = 1 }
		:: else -> armed = 1 /* it was not to be opened */
		fi
	:: else
	fi;
	d_step { on = 0; number = 0; early_armed = LATE; early_bell = LATE; early_id = LATE }
}

/* Where the load of armed may be done when what orders it behind the doorbell is weakened. */
inline may_look_early()
{
	if
	:: early_armed = armed
	:: skip
	fi
}

inline set_doorbell()
{
#ifdef WEAK_R_pshm_inbox_doorbells
	doorbells[me] = published[me]
#else
	d_step { DRAIN(me); doorbells[me] = published[me] }
#endif
}

/* R:pshm_inbox.doorbell_words; without that the load of armed still comes after: F:pshm_inbox.doorbell_words */
inline set_doorbell_word()
{
#ifdef WEAK_R_pshm_inbox_doorbell_words
	doorbell_words = 1
#else
	d_step { DRAIN(me); doorbell_words = 1 }
#endif
}

inline ring_doorbell()
{
#ifdef WEAK_F_pshm_inbox_doorbell_words
	may_look_early();
#endif
#ifdef WEAK_R_pshm_inbox_doorbell_words
	if
	:: set_doorbell(); set_doorbell_word()
	:: set_doorbell_word(); set_doorbell()
	fi;
#else
	set_doorbell();
	set_doorbell_word();
#endif
	wake()
}

proctype producer(byte me; byte lines)
{
	byte early_armed = LATE, early_bell = LATE, early_id = LATE;
	bit on, number;

	do
	:: published[me] < lines ->
		published[me]++; /* the data, and the word */
		if
		:: mode[me] == POLLED -> goto next
		:: mode[me] == RING_DOORBELL
		:: mode[me] == UNSURE ->
#ifndef WEAK_F_pshm_polling_mode
			d_step { DRAIN(me) };
#endif
			if
			:: mode[me] == RING_DOORBELL
			:: else -> goto next
			fi
		fi;
		ring_doorbell();
next:
		skip
	:: else -> break
	od;
	at_rest++
}

/* pshm_mailbox_post(), pshm_peer_wake() */
proctype asker(byte me)
{
	byte early_armed = LATE, early_bell = LATE, early_id = LATE;
	byte posted;
	bit on, number;

	do
	:: posted < REQUESTS ->
		posted++;
#ifdef WEAK_F_pshm_inbox_request_doorbell
		may_look_early();
#endif
#ifdef WEAK_R_pshm_inbox_request_doorbell
		if
		:: slots++; request_doorbell++
		:: request_doorbell++; slots++
		fi;
#else
		slots++;
		request_doorbell++;
#endif
		wake()
	:: else -> break
	od;
	at_rest++
}

/* The endpoint, by whichever of its threads holds the domain. */

inline heat(p)
{
	if
	:: !hot[p] ->
		hot[p] = 1;
		if
		:: !w_armed -> want[p] = ((PART >> p) & 1 -> POLLED : UNSURE)
		:: else
		fi
	:: else
	fi
}

inline cool(p)
{
	hot[p] = 0;
	want[p] = RING_DOORBELL
}

inline hot_mode(sleeps)
{
	if
	:: hot[0] -> want[0] = (sleeps -> RING_DOORBELL : ((PART & 1) -> POLLED : UNSURE))
	:: else
	fi;
	if
	:: hot[1] -> want[1] = (sleeps -> RING_DOORBELL : ((PART & 2) -> POLLED : UNSURE))
	:: else
	fi
}

/* What a load saw, early or not. */
#define MAY_LOAD_WORDS \
	if \
	:: d_step { early_word[0] = word[0]; early_word[1] = word[1] } \
	:: skip \
	fi
#define MAY_LOAD_DATA \
	if \
	:: d_step { early_data[0] = data[0]; early_data[1] = data[1] } \
	:: skip \
	fi
#define NOT_EARLY      255
#define WORD(p)	       (early_word[p] == NOT_EARLY -> word[p] : early_word[p])
#define DATA(p)	       (early_data[p] == NOT_EARLY -> data[p] : early_data[p])

inline take_doorbells()
{
	d_step {
		heard[0] = doorbells[0];
		heard[1] = doorbells[1];
		doorbells[0] = 0;
		doorbells[1] = 0
	}
}

/* pshm_polling_take_doorbells() */
inline doorbells_take()
{
#ifdef WEAK_A_pshm_inbox_doorbell_words
	if
	:: take_doorbells(); doorbell_words = 0
	:: doorbell_words = 0; take_doorbells()
	fi;
#else
	doorbell_words = 0;
#ifdef WEAK_A_pshm_inbox_doorbells
	MAY_LOAD_WORDS;
#endif
	take_doorbells();
#endif
	d_step {
		if
		:: heard[0] -> heat(0)
		:: else
		fi;
		if
		:: heard[1] -> heat(1)
		:: else
		fi
	}
}

/* conn_receive() */
inline receive(p)
{
	d_step {
		do
		:: hot[p] && WORD(p) > taken[p] ->
			assert(DATA(p) > taken[p]);
			taken[p]++
		:: else -> break
		od;
		assert(taken[p] >= heard[p]);
		heard[p] = 0
	}
}

/* pshm_accept() */
inline accept()
{
#ifdef WEAK_A_pshm_inbox_request_doorbell
	if
	:: found_slots = slots
	:: skip
	fi;
#endif
	new_requests = request_doorbell;
	d_step {
		if
		:: found_slots == NOT_EARLY -> found_slots = slots
		:: else
		fi;
		slots = slots - found_slots;
		accepted = accepted + found_slots;
		requests_seen = new_requests;
		found_slots = NOT_EARLY;
		new_requests = 0
	}
}

/* pshm_poll() */
inline poll()
{
#ifdef WEAK_A_ring_line_word
	MAY_LOAD_DATA;
#endif
	if
	:: doorbell_words -> doorbells_take()
	:: !doorbell_words
	fi;
	receive(0);
	receive(1);
#if defined(WEAK_A_pshm_inbox_doorbells) || defined(WEAK_A_ring_line_word)
	d_step {
		early_word[0] = NOT_EARLY;
		early_word[1] = NOT_EARLY;
		early_data[0] = NOT_EARLY;
		early_data[1] = NOT_EARLY
	}
#endif
	if
	:: request_doorbell != requests_seen -> accept()
	:: request_doorbell == requests_seen
	fi
}

inline look_at_cold(p)
{
	d_step {
		if
		:: word[p] > taken[p] -> heat(p)
		:: else
		fi
	}
}

inline clear()
{
	if
	:: !old && made -> pipe = 0
	:: else
	fi;
	old = 0
}

inline disarm()
{
	if
	:: w_armed ->
		d_step { w_armed = 0; hot_mode(0) };
		d_step { old = armed; armed = 0 };
		clear()
	:: else
	fi
}

/* pshm_disarm(), when engine_wires_disarm() finds that nobody sleeps */
inline rest()
{
	if
	:: asleep + naps == 0 -> disarm()
	:: else
	fi
}

/* The loads of something_there() where nothing keeps them behind the stores before. */
#ifdef WEAK_F_pshm_arm
#define LOOK(now, then) (early_look -> then : now)
#define NOT_EARLY_LOOK \
	early_look = 0; look_doorbells = 0; look_requests = 0; look_word[0] = 0; look_word[1] = 0
#else
#define NOT_EARLY_LOOK
#define LOOK(now, then) now
#endif

/* pshm_arm(); found: it returns 0 */
inline arm()
{
#ifdef WEAK_F_pshm_arm
	if
	:: d_step {
			early_look = 1;
			look_doorbells = doorbell_words;
			look_requests = request_doorbell;
			look_word[0] = word[0];
			look_word[1] = word[1]
		}
	:: skip
	fi;
#endif
	if
	:: !w_armed -> d_step { w_armed = 1; hot_mode(1) }
	:: else
	fi;
#ifdef LATE_CLEAR
	d_step { DRAIN_ENDPOINT; old = armed; armed = 1 };
	clear();
#else
	old = armed;
	clear();
#if defined(WEAK_F_pshm_inbox_armed)
	arming = 1; /* a release alone: it waits for the fence */
#elif defined(WEAK_R_pshm_inbox_armed)
	armed = 1;
#else
	d_step { DRAIN_ENDPOINT; armed = 1 };
#endif
#endif
#ifndef WEAK_F_pshm_arm
	d_step { DRAIN_ENDPOINT };
#endif
#if PART && !defined(NO_MEMBARRIER)
	/* a system call, which orders what its caller does as well */
	d_step { DRAIN_ENDPOINT; NOT_EARLY_LOOK };
#if PART & 1
	d_step { DRAIN(0) };
#endif
#if PART & 2
	d_step { DRAIN(1) };
#endif
#endif
	/* something_there() */
	found = LOOK(doorbell_words, look_doorbells);
	found = found || LOOK(request_doorbell, look_requests) != requests_seen;
	if
	:: found
	:: !found && LOOK(word[0], look_word[0]) > taken[0] -> d_step { found = 1; heat(0) }
	:: !found && LOOK(word[0], look_word[0]) == taken[0]
	fi;
	if
	:: found
	:: !found && LOOK(word[1], look_word[1]) > taken[1] -> d_step { found = 1; heat(1) }
	:: !found && LOOK(word[1], look_word[1]) == taken[1]
	fi;
#ifdef WEAK_F_pshm_arm
	d_step { NOT_EARLY_LOOK };
#endif
}

#define AWAKE (THREADS - gone - asleep - naps)

active proctype endpoint()
{
	byte early_word[2] = NOT_EARLY, early_data[2] = NOT_EARLY, found_slots = NOT_EARLY;
	byte heard[2], new_requests;
	bit old, found;
#ifdef WEAK_F_pshm_arm
	bit early_look, look_doorbells;
	byte look_requests, look_word[2];
#endif

	atomic {
		hot[0] = 1;
		hot[1] = 1;
		hot_mode(0);
		mode[0] = want[0];
		mode[1] = want[1];
		run producer(0, LINES0);
#ifdef ASKER
		run asker(1)
#else
		run producer(1, LINES1)
#endif
	}
	do
	/* what a thread that is awake may do */
	:: AWAKE > 0 && !made -> made = 1
	:: AWAKE > 0 -> poll()
	:: AWAKE > 0 && !hot[0] -> look_at_cold(0)
	:: AWAKE > 0 && !hot[1] -> look_at_cold(1)
#ifndef HOT0
	:: AWAKE > 0 && hot[0] -> d_step { cool(0) }
#endif
	:: AWAKE > 0 && hot[1] -> d_step { cool(1) }
	:: AWAKE > 0 && !gone -> gone = 1
	:: AWAKE > 0 ->
		arm();
		if
		:: found ->
			disarm();
			d_step { found = 0; asleep = 0; naps = 0 } /* engine_wake() */
		:: !found && made -> asleep++
		:: !found && !made -> naps++
		:: !found -> rest() /* what the thread waits for is there */
		fi
	/* a thread wakes */
	:: asleep > 0 && pipe -> asleep--; rest()
	:: naps > 0 -> naps--; rest()
	/* nobody goes to sleep or lets a ring cool any more */
	:: asleep + naps == 0 && ALL_PUBLISHED -> goto polling
	:: timeout -> assert(ALL_READ); goto over
	od;

polling:
	assert(doorbell_words || hot[0] || doorbells[0] <= taken[0]);
	assert(doorbell_words || hot[1] || doorbells[1] <= taken[1]);
	poll();
#ifndef NO_SWEEP
	look_at_cold(0);
	look_at_cold(1);
#endif
	poll();
	assert(ALL_READ);
over:
	skip
}
