/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The millrace authors
 */

/*
 * The exclusive form: a worker that keeps the ownership between its calls and uses it without an
 * atomic read-modify-write, another worker, and a control thread that becomes the owner twice,
 * taking it from the keeper after a grace period if that does not come by. Never two owners.
 *
 * The keeper's plain stores wait, in order, in a store buffer. NO_GRACE leaves the grace period
 * out, NO_RESET the keeper's look at RESET: both must yield an error.
 */

#define OWNED 1
#define RESET 4

#define NOBODY 0
#define KEEPER 1

#ifndef CALLS
#define CALLS 4
#endif

byte state;
byte keeper;	  /* NOBODY or KEEPER */
byte token;	  /* of the grace period asked for last */
byte reported;	  /* by the keeper */
bool offline;
bool inside;

/* The keeper's store buffer: true keeper := value, false reported := value. */
chan buffer = [3] of { bool, byte };
byte own_stores, own_value; /* of keeper in it, and the last one's value */

#define FENCE() (len(buffer) == 0)
#define LOAD_KEEPER() (own_stores > 0 -> own_value : keeper)

/* Before the call went on, a bare path was allowed by RESET not being set. */
#ifdef NO_RESET
#define BARE(s) ((s & OWNED) != 0)
#else
#define BARE(s) (s == OWNED)
#endif
#ifdef NO_GRACE
#define GRACE_OVER() true
#else
#define GRACE_OVER() (offline || reported == token)
#endif

inline store_keeper(value)
{
	atomic {
		buffer!true, value;
		own_stores++;
		own_value = value
	}
}

inline enter()
{
	d_step {
		assert(!inside);
		inside = true
	}
}

active proctype memory()
{
	bool which;
	byte value;

end:
	do
	:: atomic {
		buffer?which, value;
		if
		:: which -> keeper = value; own_stores--
		:: else -> reported = value
		fi;
		which = false;
		value = 0
	}
	od
}

/* keep() and let_go(). */
inline end_turn()
{
	inside = false;
	if
	:: (state & RESET) == 0 -> store_keeper(KEEPER)
	:: atomic {
		(state & RESET) != 0 && FENCE() -> state = state & ~OWNED
	   }
	fi
}

active proctype worker()
{
	byte n, s;
	bool ok;

	for (n : 1 .. CALLS) {
		s = state;
		ok = false;
		if
		:: BARE(s) && LOAD_KEEPER() == KEEPER ->
			store_keeper(NOBODY);
			enter();
			inside = false;
			store_keeper(KEEPER)
		:: else ->
			/* take_up(), else try_own() */
			if
			:: LOAD_KEEPER() == KEEPER ->
				atomic {
					FENCE();
					if
					:: keeper == KEEPER -> keeper = NOBODY; ok = true
					:: else
					fi
				}
			:: else
			fi;
			if
			:: !ok ->
				atomic {
					FENCE();
					if
					:: (state & (OWNED | RESET)) == 0 ->
						state = state | OWNED;
						ok = true
					:: else
					fi
				}
			:: else
			fi;
			if
			:: ok -> enter(); end_turn()
			:: else
			fi
		fi;
		/* Quiescent, or not yet. */
		if
		:: s = token; buffer!false, s
		:: true
		fi
	}
	FENCE();
	offline = true
}

active proctype other()
{
	byte n;
	bool ok;

	for (n : 1 .. 2) {
		atomic {
			ok = (state & (OWNED | RESET)) == 0;
			if
			:: ok -> state = state | OWNED
			:: else
			fi
		}
		if
		:: ok -> enter(); inside = false; atomic { state = state & ~OWNED }
		:: else
		fi
	}
}

active proctype controller()
{
	byte n;
	bool ok;

	for (n : 1 .. 2) {
		atomic { state = state | RESET }
		atomic { token++ }
		ok = false;
		do
		:: ok -> break
		:: atomic {
			!ok && (state & OWNED) == 0 -> state = state | OWNED;
			ok = true
		   }
		:: atomic {
			!ok && keeper == KEEPER && GRACE_OVER() -> keeper = NOBODY;
			ok = true
		   }
		od;
		enter();
		inside = false;
		atomic { state = state & ~(OWNED | RESET) }
	}
}
