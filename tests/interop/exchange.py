#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""exchange - a rank of a program that sends in every way MPI has, and checks each byte

usage: mpirun ... exchange.py [SEED [ob1]]

Every size around the steps where a transport changes its protocol, each mode of
sending, wildcards, probes, many unexpected messages, persistent requests, datatypes
with gaps, and each collective against its result computed from the ranks alone.
The first difference aborts all ranks with its text.

With ob1, no long message is received with less room than it needs: that layer of Open MPI 4.1
gets it whole, over its own transports too, and overwrites what is behind.
"""
import random
import sys
import threading
import traceback

sys.dont_write_bytecode = True

import numpy
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SIZE = WORLD.size
NEXT = (RANK + 1) % SIZE
LAST = (RANK - 1) % SIZE

STEPS = (0, 1, 64, 128, 1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
SIZES = sorted({max(0, step + more) for step in STEPS for more in (-1, 0, 1)})


def pattern(source, tag, count):
    """The bytes that source sends with tag; cheap to make on either side."""
    start = (source * 131 + tag * 31) % 251
    return (numpy.arange(start, start + count, dtype=numpy.int64) % 251).astype('u1')


def same(got, want, what):
    if not numpy.array_equal(got, want):
        raise AssertionError(f'{what}: {got!r} is not {want!r}')


def every_size_and_mode():
    for send in (WORLD.Isend, WORLD.Issend):
        for tag, count in enumerate(SIZES):
            into = numpy.full(count + 8, 0xEE, 'u1')
            receive = WORLD.Irecv([into, count, MPI.BYTE], LAST, tag)
            sent = send(pattern(RANK, tag, count), NEXT, tag)
            status = MPI.Status()
            receive.Wait(status)
            sent.Wait()
            same(into[:count], pattern(LAST, tag, count), f'{count} bytes')
            same(into[count:], numpy.full(8, 0xEE, 'u1'), f'beyond {count} bytes')
            if (status.source, status.tag, status.count) != (LAST, tag, count):
                raise AssertionError(f'status of {count} bytes: {status.source} '
                                     f'{status.tag} {status.count}')


def order_of_one_sender():
    """Messages of mixed sizes from one sender match in the order they were sent."""
    rng = random.Random(4)
    counts = [rng.choice(SIZES) % 70000 + 4 for _ in range(200)]
    sends = []
    for number, count in enumerate(counts):
        data = pattern(RANK, number, count)
        data[:4] = numpy.frombuffer(numpy.int32(number).tobytes(), 'u1')
        sends.append(WORLD.Isend(data, NEXT, 7))
    for number, count in enumerate(counts):
        into = numpy.empty(count, 'u1')
        WORLD.Recv(into, MPI.ANY_SOURCE if number % 2 else LAST, 7)
        same(into[:4].view('i4'), numpy.array([number], 'i4'), 'order')
    MPI.Request.Waitall(sends)


def unexpected_do_not_block(count=3000):
    """Many unexpected messages; the last one is received first."""
    sends = [WORLD.Isend(pattern(RANK, 1, 48), NEXT, 1) for _ in range(count)]
    sends.append(WORLD.Isend(pattern(RANK, 2, 4096), NEXT, 2))
    into = numpy.empty(4096, 'u1')
    WORLD.Recv(into, LAST, 2)
    same(into, pattern(LAST, 2, 4096), 'the message behind the unexpected ones')
    for _ in range(count):
        WORLD.Recv(into[:48], LAST, 1)
        same(into[:48], pattern(LAST, 1, 48), 'an unexpected message')
    MPI.Request.Waitall(sends)


def probes():
    for count in (0, 16, 5000, 300000):
        sent = WORLD.Isend(pattern(RANK, 3, count), NEXT, 3)
        status = MPI.Status()
        WORLD.Probe(MPI.ANY_SOURCE, 3, status)
        if (status.source, status.count) != (LAST, count):
            raise AssertionError(f'probe of {count}: {status.source} {status.count}')
        message = WORLD.Mprobe(LAST, MPI.ANY_TAG)
        into = numpy.empty(count, 'u1')
        message.Recv(into)
        same(into, pattern(LAST, 3, count), f'matched probe of {count}')
        sent.Wait()
    if WORLD.Iprobe(MPI.ANY_SOURCE, 99):
        raise AssertionError('a probe found a message that nobody sent')


def truncation_is_an_error(counts):
    WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    for count in counts:
        sent = WORLD.Isend(pattern(RANK, 4, count), NEXT, 4)
        into = numpy.full(count, 0xEE, 'u1')
        try:
            WORLD.Recv([into, 10, MPI.BYTE], LAST, 4)
        except MPI.Exception as error:
            if error.Get_error_class() != MPI.ERR_TRUNCATE:
                raise
        else:
            raise AssertionError(f'{count} bytes into 10 were no error')
        same(into[10:], numpy.full(count - 10, 0xEE, 'u1'), 'beyond the truncation')
        sent.Wait()
    WORLD.Set_errhandler(MPI.ERRORS_ARE_FATAL)


def cancelled_receive():
    into = numpy.empty(8, 'u1')
    receive = WORLD.Irecv(into, LAST, 5)
    receive.Cancel()
    status = MPI.Status()
    receive.Wait(status)
    if not status.Is_cancelled():
        raise AssertionError('a receive that nothing matched was not cancelled')


def to_oneself():
    for tag, count in enumerate(SIZES):
        sent = WORLD.Isend(pattern(RANK, tag, count), RANK, tag)
        into = numpy.empty(count, 'u1')
        WORLD.Recv(into, RANK, tag)
        same(into, pattern(RANK, tag, count), f'{count} bytes to oneself')
        sent.Wait()


def persistent():
    out = numpy.zeros(1000, 'i4')
    into = numpy.zeros(1000, 'i4')
    requests = [WORLD.Send_init(out, NEXT, 6), WORLD.Recv_init(into, LAST, 6)]
    for turn in range(50):
        out[:] = RANK * 1000 + turn
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        same(into, numpy.full(1000, LAST * 1000 + turn, 'i4'), 'persistent')
    for request in requests:
        request.Free()


def gaps():
    column = MPI.INT.Create_vector(500, 1, 3).Commit()
    out = numpy.arange(1500, dtype='i4') + RANK
    into = numpy.full(1500, -1, 'i4')
    WORLD.Sendrecv([out, 1, column], NEXT, 8, [into, 1, column], LAST, 8)
    want = numpy.full(1500, -1, 'i4')
    want[::3] = (numpy.arange(1500, dtype='i4') + LAST)[::3]
    same(into, want, 'a datatype with gaps')
    column.Free()


def collectives():
    for count in (1, 7, 1000, 40000):
        mine = numpy.arange(count, dtype='i8') + RANK * count
        whole = numpy.arange(count * SIZE, dtype='i8')
        for root in {0, SIZE - 1}:
            data = whole.copy() if RANK == root else numpy.zeros(count * SIZE, 'i8')
            WORLD.Bcast(data, root)
            same(data, whole, 'bcast')
            into = numpy.empty(count, 'i8')
            WORLD.Scatter(whole if RANK == root else None, into, root)
            same(into, mine, 'scatter')
            all_of_it = numpy.empty(count * SIZE, 'i8')
            WORLD.Gather(mine, all_of_it if RANK == root else None, root)
            if RANK == root:
                same(all_of_it, whole, 'gather')
            total = numpy.empty(count, 'i8')
            WORLD.Reduce(mine, total if RANK == root else None, MPI.SUM, root)
            sums = whole.reshape(SIZE, count).sum(axis=0)
            if RANK == root:
                same(total, sums, 'reduce')
        WORLD.Allgather(mine, all_of_it)
        same(all_of_it, whole, 'allgather')
        WORLD.Allreduce(mine, total, MPI.SUM)
        same(total, sums, 'allreduce')
        WORLD.Allreduce(mine, total, MPI.MAX)
        same(total, whole.reshape(SIZE, count).max(axis=0), 'allreduce max')
        WORLD.Scan(mine, total)
        same(total, whole.reshape(SIZE, count)[:RANK + 1].sum(axis=0), 'scan')
        WORLD.Reduce_scatter_block(whole, into)
        same(into, mine * SIZE, 'reduce_scatter')
        out = numpy.repeat(numpy.arange(SIZE, dtype='i8') + SIZE * RANK, count)
        WORLD.Alltoall(out, all_of_it)
        same(all_of_it, numpy.repeat(numpy.arange(SIZE, dtype='i8') * SIZE + RANK, count),
             'alltoall')
        request = WORLD.Ialltoall(out, all_of_it)
        other = WORLD.Iallreduce(mine, total)
        MPI.Request.Waitall([request, other])
        same(total, sums, 'iallreduce')


def everyone_at_once(seed):
    """Random traffic between all pairs, planned alike by all ranks."""
    rng = random.Random(seed)
    plan = [(rng.randrange(SIZE), rng.randrange(SIZE), rng.choice(SIZES)) for _ in range(400)]
    receives, sends, checks = [], [], []
    for tag, (source, target, count) in enumerate(plan):
        if RANK == target:
            into = numpy.empty(count, 'u1')
            receives.append(WORLD.Irecv(into, rng.choice((source, MPI.ANY_SOURCE)), tag))
            checks.append((into, source, tag, count))
        else:
            rng.choice((0, 1))
        if RANK == source:
            sends.append(WORLD.Isend(pattern(source, tag, count), target, tag))
    MPI.Request.Waitall(receives + sends)
    for into, source, tag, count in checks:
        same(into, pattern(source, tag, count), f'message {tag} of {count}')


def from_both_sides():
    """Many messages of each size around a step, sent by all at once before anything is received."""
    for step in (1 << 12, 1 << 13, 1 << 14, 1 << 16):
        for count in range(step - 72, step + 9, 8):
            near = {NEXT, LAST}
            sends = [WORLD.Isend(pattern(RANK, turn, count), peer, turn)
                     for turn in range(16) for peer in near]
            into = numpy.empty((16, len(near), count), 'u1')
            receives = [WORLD.Irecv(into[turn, at], peer, turn)
                        for turn in reversed(range(16)) for at, peer in enumerate(near)]
            MPI.Request.Waitall(receives + sends)
            for turn in range(16):
                for at, peer in enumerate(near):
                    same(into[turn, at], pattern(peer, turn, count), f'{count} from {peer}')


def from_threads():
    """Threads of all ranks that send to each other at once, by a communicator each."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return
    failures = []

    def talk(comm, seed):
        rng = random.Random(seed)
        try:
            for tag in range(150):
                count = rng.choice(SIZES[:-3])
                into = numpy.empty(count, 'u1')
                sent = comm.Isend(pattern(RANK, tag, count), NEXT, tag)
                comm.Recv(into, rng.choice((LAST, MPI.ANY_SOURCE)), tag)
                sent.Wait()
                same(into, pattern(LAST, tag, count), f'{count} bytes to a thread')
        except Exception:
            failures.append(traceback.format_exc())

    comms = [WORLD.Dup() for _ in range(3)]
    threads = [threading.Thread(target=talk, args=(comm, seed))
               for seed, comm in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise AssertionError('\n'.join(failures))
    for comm in comms:
        comm.Free()


def main(seed='1', pml=''):
    def random_traffic():
        everyone_at_once(int(seed))

    def truncation():
        truncation_is_an_error((100,) if pml == 'ob1' else (100, 200000))

    steps = (every_size_and_mode, order_of_one_sender, unexpected_do_not_block, probes,
             truncation, cancelled_receive, to_oneself, persistent, gaps,
             collectives, random_traffic, from_both_sides, from_threads)
    for step in steps:
        try:
            step()
            WORLD.Barrier()
        except Exception:
            print(f'rank {RANK} on {MPI.Get_processor_name()}, {step.__name__}:\n'
                  f'{traceback.format_exc()}', file=sys.stderr, flush=True)
            WORLD.Abort(1)
    if RANK == 0:
        print(f'exchange: {len(steps)} steps by {SIZE} ranks, seed {seed}', flush=True)


main(*sys.argv[1:])
