/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The scheduler's protocol: PRODUCERS producers that send PACKETS packets each, the worker that
 * serves the queue, a NIC that refuses up to REFUSALS times, and a control thread that flushes or
 * deactivates and activates once (CONTROL).
 *
 * Memory is x86's or weaker where it matters: a plain store waits in its process's store buffer
 * until the memory process lets it out, a load sees its own buffer first, an atomic
 * read-modify-write and a sequentially consistent store wait until the buffer is empty.
 *
 * Names follow lib/sched_nolock/sched_nolock.c. How long a producer is lazy and whose packets it
 * takes is left to chance, so every policy is covered. B1 to B5 defined take a repair out; each
 * must yield an error.
 */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef PACKETS
#define PACKETS 2
#endif
#ifndef REFUSALS
#define REFUSALS 1
#endif
#ifndef BUDGET
#define BUDGET 2
#endif

#define SERVER PRODUCERS
#define CONTROLLER (PRODUCERS + 1)
#define PROCESSES (PRODUCERS + 2)

#define OWNED 1
#define MISSED 2
#define RESET 4
#define DEACTIVATED 8

/* mem[0] is the state word, mem[1 + p] producer p's gen, which here is its lane's tail too. */
#define STATE 0
#define GEN(p) (1 + (p))
byte mem[1 + PRODUCERS];

/* One store a process waits; var is index + 1, 0 none. */
byte buffer_var[PROCESSES];
byte buffer_value[PROCESSES];

byte slot[PRODUCERS * PACKETS]; /* sequence numbers in the lanes */
byte taken[PRODUCERS];		/* the lanes' heads */
byte held, held_of;		/* one packet is taken and sent at a time: at most one is held */

/* What is checked. */
bool inside;		/* somebody is the owner */
bool stopped;		/* deactivate() returned, activate() not begun */
byte last[PRODUCERS];	/* sequence number sent last */
byte sent, dropped, refusals, done;

/* The repairs. */
#ifdef B1_FENCE
#define POST_FENCE() skip
#else
#define POST_FENCE() FENCE()
#endif
#ifdef B1_MISSED
#define LOST_GIVES_UP goto sent_or_queued;
#else
#define LOST_GIVES_UP skip;
#endif
#ifdef B2
#define UNMISSED(clear) mem[STATE]
#else
#define UNMISSED(clear) (mem[STATE] & ~(clear))
#endif
#ifdef B4
#define LEFT 0
#else
#define LEFT MISSED
#endif
#ifdef B5
#define HELD_MAY_GO (i == PRODUCERS)
#define LANES_MAY_GO true
#else
#define HELD_MAY_GO true
#define LANES_MAY_GO (held == 0)
#endif

#define LOAD(i) (buffer_var[me] == (i) + 1 -> buffer_value[me] : mem[i])
#define FENCE() buffer_var[me] == 0

inline store(i, value)
{
	atomic {
		buffer_var[me] == 0;
		buffer_var[me] = (i) + 1;
		buffer_value[me] = value
	}
}

active proctype memory()
{
	byte i;

end:
	do
	:: atomic {
		i = 0;
		do
		:: i < PROCESSES && buffer_var[i] != 0 -> break
		:: i < PROCESSES - 1 -> i++
		:: i == PROCESSES - 1 -> goto end
		od;
		mem[buffer_var[i] - 1] = buffer_value[i];
		buffer_var[i] = 0;
		buffer_value[i] = 0;
		i = 0
	}
	od
}

/* The owner, in the driver, with packet seq of producer p. ok tells whether it was taken. */
inline transmit(p, seq)
{
	atomic {
		assert(!stopped);
		if
		:: refusals < REFUSALS -> refusals++; ok = false
		:: true ->
			assert(seq > last[p]);
			last[p] = seq;
			sent++;
			ok = true
		fi
	}
}

/* Sets found: the state before it, with OWNED if it failed. clear: MISSED, or 0 among others. */
inline try_own(clear)
{
	atomic {
		FENCE();
		found = mem[STATE];
		if
		:: (found & (OWNED | RESET)) == 0 ->
			mem[STATE] = UNMISSED(clear) | OWNED;
			assert(!inside);
			inside = true
		:: else -> found = found | OWNED
		fi
	}
}

inline leave_behind()
{
	atomic {
		FENCE();
		inside = false;
		mem[STATE] = (mem[STATE] & ~OWNED) | LEFT
	}
}

inline clear_missed()
{
	atomic {
		FENCE();
		mem[STATE] = mem[STATE] & ~MISSED
	}
}

/* Sets ok. */
#ifdef B1_LET_GO
/* As a load and a store that may wait, and not as one read-modify-write. */
inline let_go()
{
	found = LOAD(STATE);
	if
	:: (found & MISSED) != 0 -> ok = false
	:: else ->
		inside = false;
		store(STATE, found & ~OWNED);
		ok = true
	fi
}
#endif
#ifdef B2
/* MISSED is cleared with the lock, after the look. */
inline let_go()
{
	atomic {
		FENCE();
		mem[STATE] = mem[STATE] & ~(OWNED | MISSED);
		inside = false;
		ok = true
	}
}
#endif
#if !defined(B1_LET_GO) && !defined(B2)
inline let_go()
{
	atomic {
		FENCE();
		if
		:: (mem[STATE] & MISSED) != 0 -> ok = false
		:: else ->
			mem[STATE] = mem[STATE] & ~OWNED;
			inside = false;
			ok = true
		fi
	}
}
#endif

/* Sets ok if nothing is held and each lane was empty when looked at, one after the other. */
inline all_empty()
{
	i = 0;
	ok = held == 0;
	do
	:: ok && i < PRODUCERS -> ok = LOAD(GEN(i)) == taken[i]; i++
	:: else -> break
	od
}

/* Takes the next packet of lane i. Owner. */
inline take(i)
{
	atomic {
		seq = slot[i * PACKETS + taken[i]];
		slot[i * PACKETS + taken[i]] = 0;
		taken[i]++
	}
}

/*
 * The owner's turn. producer: it may leave others' packets to them. Ends without ownership. In a
 * deactivated scheduler what it finds is dropped, after ownership was given up.
 */
inline drain_owned(producer)
{
	budget = BUDGET;
	left = false;
	do
	:: (found & DEACTIVATED) != 0 ->
		/* drop_raced() */
		budget = 0;
		atomic {
			if
			:: held != 0 -> held = 0; held_of = 0; budget++
			:: else
			fi
		}
		i = 0;
		do
		:: i < PRODUCERS ->
			if
			:: LOAD(GEN(i)) != taken[i] -> take(i); budget++
			:: else -> i++
			fi
		:: else -> break
		od;
		if
		:: budget == 0 ->
			let_go();
			if
			:: ok -> break
			:: else -> clear_missed()
			fi
		:: else ->
			leave_behind();
			dropped = dropped + budget;
			try_own(MISSED);
			if
			:: (found & OWNED) != 0 -> break
			:: (found & (OWNED | DEACTIVATED)) == 0 -> leave_behind(); break
			:: else
			fi
		fi
	:: else ->
		/* send_some() */
		i = 0;
		ok = true;
		do
		:: budget == 0 || !ok -> break
		:: budget > 0 && ok && held != 0 && HELD_MAY_GO ->
			transmit(held_of, held);
			if
			:: ok -> d_step { held = 0; held_of = 0; budget-- }
			:: else
			fi
		:: budget > 0 && ok && i < PRODUCERS && LANES_MAY_GO ->
			if
			:: LOAD(GEN(i)) == taken[i] -> i++
			:: LOAD(GEN(i)) != taken[i] && producer && i != me -> left = true; i++
			:: LOAD(GEN(i)) != taken[i] ->
				take(i);
				transmit(i, seq);
				if
				:: d_step { ok -> budget--; seq = 0 }
				:: d_step { !ok && held == 0 -> held = seq; held_of = i; seq = 0 }
				:: d_step { !ok && held != 0 -> dropped++ /* B5 only */ }
				fi
			fi
		:: budget > 0 && ok && i == PRODUCERS && held == 0 -> break
		od;
		if
		:: budget == 0 || !ok || left -> leave_behind(); break
		:: else ->
			let_go();
			if
			:: ok -> break
			:: else -> clear_missed()
			fi
		fi
	od
}

/* Two states that differ in what no longer matters are one. */
inline forget()
{
	d_step {
		found = 0;
		i = 0;
		seq = 0;
		budget = 0;
		ok = false;
		left = false
	}
}

inline post()
{
	slot[me * PACKETS + posted] = n;
	posted++;
	store(GEN(me), posted);
	POST_FENCE()
}

inline kick()
{
	found = LOAD(STATE);
	/* may_wait(): among others and with MISSED set, a producer may be lazy, or not. */
	if
	:: (found & MISSED) != 0 -> goto sent_or_queued
	:: (found & MISSED) == 0 || (found & OWNED) == 0
	fi;
	if
	:: try_own(MISSED)
	:: try_own(0)
	fi;
	if
	:: (found & OWNED) != 0 && (found & MISSED) != 0 -> goto sent_or_queued
	:: (found & OWNED) != 0 && (found & MISSED) == 0 ->
		LOST_GIVES_UP
		atomic {
			FENCE();
			mem[STATE] = mem[STATE] | MISSED
		}
		try_own(MISSED);
		if
		:: (found & OWNED) != 0 -> goto sent_or_queued
		:: else
		fi
	:: else
	fi;
	drain_owned(true)
}

/* sched_nolock_enqueue(), a packet at a time. */
proctype producer(byte me)
{
	byte n, posted, found, i, seq, budget;
	bool ok, left;

	for (n : 1 .. PACKETS) {
		found = LOAD(STATE);
		if
		:: (found & DEACTIVATED) != 0 -> dropped++
#ifdef B3
		/* A free lock grants the bypass. */
		:: (found & (OWNED | RESET | DEACTIVATED)) == 0 ->
#else
		:: found == 0 ->
#endif
			atomic {
				FENCE();
				if
				:: mem[STATE] == found ->
					mem[STATE] = found | OWNED;
					assert(!inside);
					inside = true;
					ok = true
				:: else -> ok = false
				fi
			}
			if
			:: !ok -> post(); kick()
			:: else ->
				found = 0;
#ifdef B3
				ok = held == 0;
#else
				all_empty();
#endif
				if
				:: !ok -> post(); drain_owned(true)
				:: else ->
					transmit(me, n);
					if
					:: !ok -> held = n; held_of = me; leave_behind()
					:: else ->
						let_go();
						if
						:: ok
						:: else -> clear_missed(); found = 0; drain_owned(true)
						fi
					fi
				fi
			fi
		:: else -> post(); kick()
		fi;
sent_or_queued:
		forget()
	}
	FENCE();
	done++
}

/* sched_nolock_drain() in a loop, until everybody is done and MISSED is clear. */
proctype server(byte me)
{
	byte found, i, seq, budget;
	bool ok, left;

	do
	:: (LOAD(STATE) & MISSED) != 0 && (LOAD(STATE) & (OWNED | RESET)) == 0 ->
		try_own(MISSED);
		if
		:: (found & OWNED) == 0 -> drain_owned(false)
		:: else
		fi;
		forget()
	:: done == CONTROLLER && (mem[STATE] & MISSED) == 0 -> break
	od;
	/* No packet is stuck, and the books balance. */
	assert(held == 0);
	for (i : 0 .. PRODUCERS - 1) {
		assert(mem[GEN(i)] == taken[i])
	}
	assert(sent + dropped == PRODUCERS * PACKETS);
	assert(mem[STATE] == 0)
}

/* flush() of control.c. Sets left if it must be called again. */
inline flush()
{
	atomic {
		FENCE();
		mem[STATE] = mem[STATE] | RESET
	}
	atomic {
		(mem[STATE] & OWNED) == 0;
		mem[STATE] = (mem[STATE] & ~MISSED) | OWNED;
		assert(!inside);
		inside = true
	}
	budget = 0;
	atomic {
		if
		:: held != 0 -> held = 0; held_of = 0; budget++
		:: else
		fi
	}
	i = 0;
	left = false;
	do
	:: i < PRODUCERS ->
		if
		:: LOAD(GEN(i)) != taken[i] -> take(i); budget++
		:: LOAD(GEN(i)) != taken[i] -> left = true; i++
		:: LOAD(GEN(i)) == taken[i] -> i++
		fi
	:: else -> break
	od;
	atomic {
		FENCE();
		inside = false;
		mem[STATE] = (mem[STATE] & ~(OWNED | RESET)) | (left -> MISSED : 0);
		left = (mem[STATE] & MISSED) != 0
	}
	dropped = dropped + budget
}

proctype controller(byte me)
{
	byte i, seq, budget;
	bool left;

#ifdef CONTROL
	if
	:: flush()
	:: atomic {
		FENCE();
		mem[STATE] = mem[STATE] | DEACTIVATED
	   }
	   do
	   :: flush();
		if
		:: left
		:: else -> break
		fi
	   od;
	   stopped = true;
	   stopped = false;
	   atomic {
		FENCE();
		mem[STATE] = mem[STATE] & ~DEACTIVATED
	   }
	fi;
#endif
	done++
}

init
{
	byte p;

	atomic {
		for (p : 0 .. PRODUCERS - 1) {
			run producer(p)
		}
		run server(SERVER);
		run controller(CONTROLLER)
	}
}
