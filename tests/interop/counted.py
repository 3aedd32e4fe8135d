#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""counted - a rank that sends a known number of messages to each other rank

usage: mpirun ... counted.py MESSAGES BYTES
"""
import sys

sys.dont_write_bytecode = True

from mpi4py import MPI


def main(messages, length):
    world = MPI.COMM_WORLD
    out = bytearray(length)
    others = [rank for rank in range(world.size) if rank != world.rank]
    for _ in range(messages):
        into = [bytearray(length) for _ in others]
        requests = [world.Irecv(buffer, rank, 1) for buffer, rank in zip(into, others)]
        requests += [world.Isend(out, rank, 1) for rank in others]
        MPI.Request.Waitall(requests)


main(*map(int, sys.argv[1:]))
