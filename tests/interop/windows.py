#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""windows - a rank of a program that uses MPI's one-sided operations, and checks each byte

usage: mpirun ... windows.py [SEED [weft]]

Puts and gets of every size around the steps of a transport, datatypes with gaps, atomics
of all ranks on the same words with exact results, all ways of synchronizing, targets
that call nothing meanwhile, and memory attached to a window later. The windows are
MPI_Win_create's: those of MPI_Win_allocate are shared memory within a host, and no
network's business. The first difference aborts all ranks with its text.

With weft, every operation is asked of a target that calls nothing, which btl/ofi of Open MPI
4.1 can't do (docs/openmpi.md), and how long the slowest took is printed.

What an operation reads or writes has to live until it is over: mpi4py holds no reference.
"""
import contextlib
import random
import sys
import time
import traceback

sys.dont_write_bytecode = True

import numpy
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SIZE = WORLD.size
NEXT = (RANK + 1) % SIZE
LAST = (RANK - 1) % SIZE

STEPS = (1, 8, 64, 256, 1 << 12, 1 << 13, 1 << 15, 1 << 16, 1 << 18, 1 << 20, 1 << 22)
SIZES = sorted({max(1, step + more) for step in STEPS for more in (-1, 0, 1)})
GUARD = 8
ROUNDS = 60


def pattern(source, tag, count):
    """The bytes that source puts with tag; cheap to make on either side."""
    start = (source * 131 + tag * 31) % 251
    return (numpy.arange(start, start + count, dtype=numpy.int64) % 251).astype('u1')


def same(got, want, what):
    if not numpy.array_equal(got, want):
        raise AssertionError(f'{what}: {got!r} is not {want!r}')


@contextlib.contextmanager
def window(count, kind='u1', fill=0):
    """Everyone's window of count elements: the window and the own part of it."""
    memory = numpy.full(count, fill, kind)
    win = MPI.Win.Create(memory, memory.itemsize, comm=WORLD)
    yield win, memory
    win.Free()


@contextlib.contextmanager
def locked_all(win):
    win.Lock_all()
    yield
    win.Unlock_all()


def own(win, memory):
    """The own part of a window in which others have ended what they did."""
    win.Lock(RANK, MPI.LOCK_SHARED)
    copy = memory.copy()
    win.Unlock(RANK)
    return copy


def every_size():
    """Put to the next rank, get it back, and get what the last one put there."""
    with window(SIZES[-1] + 2 * GUARD + 7, fill=0xEE) as (win, memory):
        for tag, count in enumerate(SIZES):
            at = GUARD + tag % 8
            out = pattern(RANK, tag, count)
            win.Fence()
            win.Put(out, NEXT, at)
            win.Fence()
            same(memory[at:at + count], pattern(LAST, tag, count), f'put of {count}')
            same(memory[at + count:][:GUARD], numpy.full(GUARD, 0xEE, 'u1'), f'beyond {count}')
            same(memory[:at], numpy.full(at, 0xEE, 'u1'), f'before {count}')
            into = numpy.full(count + GUARD, 0xDD, 'u1')
            win.Fence()
            win.Get([into, count, MPI.BYTE], NEXT, at)
            win.Fence()
            same(into[:count], out, f'get of {count}')
            same(into[count:], numpy.full(GUARD, 0xDD, 'u1'), f'beyond a get of {count}')
            memory[:] = 0xEE


def gaps():
    """Datatypes with gaps on either side, and on both with different ones."""
    column = MPI.INT.Create_vector(5000, 1, 3).Commit()
    pairs = MPI.INT.Create_vector(2500, 2, 5).Commit()
    out = numpy.arange(15000, dtype='i4') + RANK
    theirs = numpy.arange(15000, dtype='i4') + LAST
    for target, put in ((column, slice(0, 15000, 3)), (pairs, None)):
        places = numpy.arange(15000)[put] if put else \
            (numpy.arange(2500)[:, None] * 5 + (0, 1)).ravel()
        with window(15000, 'i4', -1) as (win, memory):
            win.Fence()
            win.Put([out, 1, column], NEXT, (0, 1, target))
            win.Fence()
            want = numpy.full(15000, -1, 'i4')
            want[places] = theirs[::3]
            same(memory, want, 'a put with gaps')
            into = numpy.full(15000, -2, 'i4')
            win.Fence()
            win.Get([into, 1, column], NEXT, (0, 1, target))
            win.Fence()
            want = numpy.full(15000, -2, 'i4')
            want[::3] = out[::3]
            same(into, want, 'a get with gaps')
    column.Free()
    pairs.Free()


def tickets():
    """Fetch_and_op on one word of all: each value is handed out once."""
    for kind in ('i4', 'i8', 'f8'):
        with window(2, kind) as (win, memory):
            one = numpy.ones(1, kind)
            for target in {0, SIZE - 1}:
                got = numpy.full(ROUNDS, -1, kind)
                with locked_all(win):
                    for turn in range(ROUNDS):
                        win.Fetch_and_op(one, got[turn:turn + 1], target, 1, MPI.SUM)
                        win.Flush(target)
                if (numpy.diff(got) <= 0).any():
                    raise AssertionError(f'tickets of {kind} went back: {got!r}')
                drawn = numpy.empty(ROUNDS * SIZE, kind)
                WORLD.Allgather(got, drawn)
                same(numpy.sort(drawn), numpy.arange(ROUNDS * SIZE).astype(kind), f'tickets, {kind}')
            total = ROUNDS * SIZE if RANK in (0, SIZE - 1) else 0
            same(own(win, memory), numpy.array([0, total], kind), f'the sum of {kind}')


def sums():
    """Accumulate and Get_accumulate of all ranks on the same words of all ranks."""
    for kind, count in (('i4', 1), ('i8', 1), ('i8', 37), ('f8', 1), ('f8', 1000), ('i4', 9000),
                        ('i2', 5), ('f4', 3)):
        step = numpy.arange(1, count + 1).astype(kind)
        turns = 8 if count < 100 else 2
        with window(count, kind) as (win, memory):
            with locked_all(win):
                for target in range(SIZE):
                    before = numpy.full(count, -1, kind)
                    for turn in range(turns):
                        win.Accumulate(step, target, op=MPI.SUM)
                        into = numpy.full(count, -1, kind)
                        win.Get_accumulate(step, into, target, op=MPI.SUM)
                        win.Flush(target)
                        if (into <= before).any() or (into % step).any():
                            raise AssertionError(f'a sum of {count} {kind} fetched {into!r} '
                                                 f'after {before!r}')
                        before = into
            WORLD.Barrier()
            same(own(win, memory), step * (2 * turns * SIZE), f'sums of {count} {kind}')
            into = numpy.zeros(count, kind)
            none = numpy.zeros(count, kind)
            with locked_all(win):
                win.Get_accumulate(none, into, NEXT, op=MPI.NO_OP)
            same(into, step * (2 * turns * SIZE), f'no_op of {count} {kind}')
            WORLD.Barrier()
            other, factor = step * (RANK + 1), numpy.full(count, SIZE, kind)
            with locked_all(win):
                win.Accumulate(other, LAST, op=MPI.REPLACE)
                win.Flush(LAST)
                win.Accumulate(factor, LAST, op=MPI.PROD)
            WORLD.Barrier()
            same(own(win, memory), step * ((NEXT + 1) * SIZE), f'product of {count} {kind}')


def swaps():
    """Compare_and_swap as an increment.

    Of two bytes: btl/ofi of Open MPI 4.1 reads a null pointer for those of 4 and 8 bytes,
    over every libfabric; smaller ones osc/rdma does by a lock, a get and a put.
    """
    with window(1, 'i2') as (win, memory):
        with locked_all(win):
            for _ in range(ROUNDS // 3):
                seen = numpy.zeros(1, 'i2')
                win.Get(seen, 0)
                win.Flush(0)
                while True:
                    was, more = numpy.full(1, -1, 'i2'), seen + 1
                    win.Compare_and_swap(more, seen, was, 0)
                    win.Flush(0)
                    if was == seen:
                        break
                    seen = was
        WORLD.Barrier()
        want = ROUNDS // 3 * SIZE if RANK == 0 else 0
        same(own(win, memory), numpy.array([want], 'i2'), 'compare and swap')


def replaced():
    """Values that only change places: each is in one place in the end."""
    for kind in ('i4', 'i8'):
        with window(1, kind, -1) as (win, memory):
            held = numpy.empty(ROUNDS, kind)
            with locked_all(win):
                for turn in range(ROUNDS):
                    mine = numpy.array([RANK * ROUNDS + turn], kind)
                    win.Fetch_and_op(mine, held[turn:turn + 1], 0, 0, MPI.REPLACE)
                    win.Flush(0)
            everything = numpy.empty(ROUNDS * SIZE, kind)
            WORLD.Allgather(held, everything)
            last = WORLD.bcast(own(win, memory)[0], 0)
            same(numpy.sort(numpy.append(everything, last)), numpy.arange(-1, ROUNDS * SIZE),
                 f'values replaced, {kind}')


def post_and_start():
    """PSCW: both neighbours put into this rank's window, and this rank reads their windows."""
    near = WORLD.Get_group().Incl(sorted({NEXT, LAST}))
    with window(2 * 5000, 'i8') as (win, memory):
        for turn in range(20):
            out = numpy.arange(5000) + turn * 1000 + RANK
            win.Post(near)
            win.Start(near)
            win.Put(out, NEXT, 0)
            win.Put(out, LAST, 5000)
            win.Complete()
            win.Wait()
            same(memory, numpy.concatenate([out - RANK + LAST, out - RANK + NEXT]), 'PSCW')
    near.Free()


def exclusive():
    """Read, add and write under an exclusive lock: none is lost."""
    with window(3, 'i8') as (win, memory):
        for target in range(SIZE):
            for _ in range(10):
                value = numpy.zeros(3, 'i8')
                win.Lock(target, MPI.LOCK_EXCLUSIVE)
                win.Get(value, target)
                win.Flush(target)
                value += 1, 2, 3
                win.Put(value, target)
                win.Unlock(target)
        WORLD.Barrier()
        same(own(win, memory), numpy.array([1, 2, 3]) * 10 * SIZE, 'under a lock')


def requests():
    """Rput, Rget and Raccumulate, waited for one by one; local and full flushes."""
    with window(SIZE * 3000, 'i8') as (win, memory):
        with locked_all(win):
            out = [numpy.arange(3000) * (RANK + 1) + target for target in range(SIZE)]
            puts = [win.Rput(out[target], target, RANK * 3000) for target in range(SIZE)]
            MPI.Request.Waitall(puts)
            win.Flush_local_all()
            win.Flush_all()
            WORLD.Barrier()
            for target in range(SIZE):
                into = numpy.empty(3000, 'i8')
                win.Rget(into, target, NEXT * 3000).Wait()
                same(into, numpy.arange(3000) * (NEXT + 1) + target, 'rget')
            WORLD.Barrier()
            ones = numpy.ones(3000, 'i8')
            adds = [win.Raccumulate(ones, target, RANK * 3000) for target in range(SIZE)]
            MPI.Request.Waitall(adds)
        WORLD.Barrier()
        want = [numpy.arange(3000) * (rank + 1) + RANK + 1 for rank in range(SIZE)]
        same(own(win, memory), numpy.concatenate(want), 'raccumulate')


def passive():
    """The target waits in a barrier, then computes and calls nothing for a while."""
    for calls in (True, False):
        with window(70000 * SIZE + 1, 'i8') as (win, memory):
            WORLD.Barrier()
            if RANK == 0:
                until = time.monotonic() + 0.3
                while not calls and time.monotonic() < until:
                    pass
            else:
                out = numpy.arange(70000) + RANK
                into = numpy.empty(70000, 'i8')
                one = numpy.ones(1, 'i8')
                win.Lock(0, MPI.LOCK_SHARED)
                win.Put(out, 0, RANK * 70000 + 1)
                win.Accumulate(one, 0)
                win.Flush(0)
                win.Get(into, 0, RANK * 70000 + 1)
                win.Unlock(0)
                same(into, out, 'passive target')
            WORLD.Barrier()
            if RANK == 0:
                got = own(win, memory)
                same(got[:1], numpy.array([SIZE - 1]), 'passive target, accumulate')
                for rank in range(1, SIZE):
                    same(got[rank * 70000 + 1:][:70000], numpy.arange(70000) + rank,
                         'passive target, put')


def silent():
    """The target looks at its memory until everyone has put a word there, and makes no call.

    Every operation is flushed by itself. 10 ms are expected of each; 10 s are an error.
    """
    count, patience = 8192, 10
    with window(2 * count + SIZE, 'i8') as (win, memory):
        times = []

        def timed(what, operation):
            begun = time.monotonic()
            operation()
            win.Flush(0)
            times.append(((time.monotonic() - begun) * 1e3, what))

        memory[-SIZE:] = 0
        WORLD.Barrier()
        if RANK == 0:
            until = time.monotonic() + 2 * patience
            while not memory[-SIZE + 1:].all() and time.monotonic() < until:
                time.sleep(0.001)
        else:
            one, was, long = numpy.ones(1, 'i8'), numpy.empty(1, 'i8'), numpy.arange(count)
            into = numpy.empty(count, 'i8')
            win.Lock(0, MPI.LOCK_SHARED)
            for _ in range(20):
                timed('put', lambda: win.Put(one, 0, 0))
                timed('get', lambda: win.Get(was, 0, 0))
                timed('long put', lambda: win.Put(long, 0, count))
                timed('long get', lambda: win.Get(into, 0, count))
                for name in ('SUM', 'BAND', 'BOR', 'BXOR', 'MIN', 'MAX', 'REPLACE'):
                    op = getattr(MPI, name)
                    timed(f'{name}', lambda: win.Accumulate(one, 0, 1, op))
                    timed(f'fetching {name}', lambda: win.Fetch_and_op(one, was, 0, 1, op))
                    timed(f'{name} of all', lambda: win.Get_accumulate(one, was, 0, 1, op=op))
                timed('NO_OP', lambda: win.Fetch_and_op(one, was, 0, 1, MPI.NO_OP))
                timed('compare and swap', lambda: win.Compare_and_swap(one, one, was, 0, 1))
            same(into, long, 'a get of what was put')
            win.Put(one, 0, 2 * count + RANK)
            win.Unlock(0)
        every = sorted(it for rank in WORLD.allgather(times) for it in rank)
        slowest, what = every[-1]
        if RANK == 0:
            print(f'silent target: {len(every)} operations, median {every[len(every) // 2][0]:.3f} '
                  f'ms, slowest {slowest:.2f} ms ({what})', flush=True)
        if slowest > patience * 1e3:
            raise AssertionError(f'{what} took {slowest:.0f} ms at a target that calls nothing')


def attached():
    """Memory that joins a window later, more than once, and leaves it.

    Within a host only: osc/rdma of Open MPI 4.1 waits for ever for the list of another
    host's memory, over every libfabric.
    """
    near = WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    within = near.size == SIZE
    near.Free()
    if not within:
        return
    win = MPI.Win.Create_dynamic(comm=WORLD)
    for count in (1, 1000, 200000):
        memory = numpy.full(count, -1, 'i8')
        win.Attach(memory)
        places = WORLD.allgather(MPI.Get_address(memory))
        out = numpy.arange(count) + RANK
        into = numpy.empty(count, 'i8')
        with locked_all(win):
            win.Put(out, NEXT, places[NEXT])
            win.Flush(NEXT)
            win.Get(into, NEXT, places[NEXT])
        same(into, out, 'attached memory, got')
        WORLD.Barrier()
        one = numpy.ones(1, 'i8')
        with locked_all(win):
            win.Accumulate(one, NEXT, places[NEXT])
        WORLD.Barrier()
        want = numpy.arange(count) + LAST
        want[0] += 1
        same(own(win, memory), want, 'attached memory')
        WORLD.Barrier()
        win.Detach(memory)
    win.Free()


def everyone_at_once(seed):
    """Random puts and gets between all pairs, planned alike by all ranks."""
    rng = random.Random(seed)
    plan = [(rng.randrange(SIZE), rng.randrange(SIZE), rng.choice(SIZES[:-9]))
            for _ in range(300)]
    with window(sum(count for _, _, count in plan), fill=0xEE) as (win, memory):
        puts, gets = [], []
        with locked_all(win):
            at = 0
            for tag, (source, target, count) in enumerate(plan):
                if source == RANK:
                    puts.append(pattern(source, tag, count))
                    win.Put(puts[-1], target, at)
                at += count
            win.Flush_all()
            WORLD.Barrier()
            at = 0
            for tag, (source, target, count) in enumerate(plan):
                if rng.randrange(SIZE) == RANK:
                    gets.append((tag, source, numpy.empty(count, 'u1')))
                    win.Get(gets[-1][2], target, at)
                at += count
        for tag, source, into in gets:
            same(into, pattern(source, tag, len(into)), f'get {tag}')
        got, at = own(win, memory), 0
        for tag, (source, target, count) in enumerate(plan):
            want = pattern(source, tag, count) if target == RANK else \
                numpy.full(count, 0xEE, 'u1')
            same(got[at:at + count], want, f'put {tag}')
            at += count


def main(seed='1', btl=''):
    def random_traffic():
        everyone_at_once(int(seed))

    steps = (every_size, gaps, tickets, sums, swaps, replaced, post_and_start, exclusive, requests,
             passive, *([silent] if btl == 'weft' else []), attached, random_traffic)
    for step in steps:
        try:
            step()
            WORLD.Barrier()
        except Exception:
            print(f'rank {RANK} on {MPI.Get_processor_name()}, {step.__name__}:\n'
                  f'{traceback.format_exc()}', file=sys.stderr, flush=True)
            WORLD.Abort(1)
    if RANK == 0:
        print(f'windows: {len(steps)} steps by {SIZE} ranks, seed {seed}', flush=True)


main(*sys.argv[1:])
