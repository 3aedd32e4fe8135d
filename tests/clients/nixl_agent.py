#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nixl_agent - two processes that move memory between them by NIXL's agents

usage: nixl_agent.py BINDINGS CASE

BINDINGS is the folder with NIXL's Python module _bindings. Each process has an agent with the
backend LIBFABRIC and memory of the host; the first one reads or writes the other's, tells it so by
a notification, and both look at the bytes. CASE is one of CASES below.
"""
import ctypes
import importlib
import multiprocessing
import sys
import time

SECONDS = 60


class Failed(Exception):
    """Other bytes than were sent, or nothing in time."""


class Agent:
    """An agent of one process, and memory that is registered with it."""

    def __init__(self, nixl, name, size):
        self.nixl = nixl
        self.agent = nixl.nixlAgent(name, nixl.nixlAgentConfig())
        self.backend = self.agent.createBackend('LIBFABRIC', {})
        self.memory = ctypes.create_string_buffer(size)
        self.at = ctypes.addressof(self.memory)
        self.regions = nixl.nixlRegDList(nixl.DRAM_SEG)
        self.regions.addDesc((self.at, size, 0, ''))
        self.agent.registerMem(self.regions, [self.backend])
        self.told = {}

    def pieces(self, at, spans):
        found = self.nixl.nixlXferDList(self.nixl.DRAM_SEG)
        for offset, length in spans:
            found.addDesc((at + offset, length, 0))
        return found

    def begin(self, writes, other, at, spans, text):
        kind = self.nixl.NIXL_WRITE if writes else self.nixl.NIXL_READ
        handle = self.agent.createXferReq(kind, self.pieces(self.at, spans),
                                          self.pieces(at, spans), other, text)
        self.agent.postXferReq(handle)
        return handle

    def end(self, handle):
        until(lambda: self.agent.getXferStatus(handle) == self.nixl.NIXL_SUCCESS, 'a transfer')
        self.agent.releaseXferReq(handle)

    def hears(self, other, texts):
        def heard():
            self.told = self.agent.getNotifs(self.told)
            return len(self.told.get(other, [])) >= len(texts)
        until(heard, f'{len(texts)} notifications')
        if sorted(self.told.pop(other)) != sorted(text.encode() for text in texts):
            raise Failed('other notifications than were sent')

    def close(self, other):
        self.agent.invalidateRemoteMD(other)
        self.agent.deregisterMem(self.regions, [self.backend])


def until(done, what):
    end = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() > end:
            raise Failed(f'{what}: not within {SECONDS} s')


def pattern(seed, size):
    return (bytes((seed * 31 + index * 7) & 255 for index in range(251)) * (size // 251 + 1))[:size]


def even(length, cnt, gap=0):
    """Spans of one length, behind each other or with gaps."""
    return [(index * (length + gap), length) for index in range(cnt)]


# Transfers that are under way together, each a list of spans of the memory.
CASES = {
    'small': [even(8, 1)],
    'medium': [even(4096, 1)],
    'large': [even(64 << 20, 1)],
    'pieces': [even(1000, 300, 24)],
    'many': [[(index * 70000, 65536)] for index in range(64)],
    'uneven': [[(0, 1), (3, 100), (1 << 20 | 1, 70001), (2 << 20, 3 << 20)]],
}
NAMES = ('first', 'second')


def check(agent, transfers, seed):
    want = pattern(seed, len(agent.memory))
    for offset, length in (span for spans in transfers for span in spans):
        if agent.memory[offset:offset + length] != want[offset:offset + length]:
            raise Failed(f'{length} bytes at {offset} differ')


def turn(agent, index, pipe, at, transfers):
    """The first writes what the second then has, and reads what the second made of it."""
    size = len(agent.memory)
    for seed, writes in ((1, True), (2, False)):
        if (index == 0) == writes:
            agent.memory[:] = pattern(seed, size)
        else:
            agent.memory[:] = bytes(size)
        pipe.send(None)
        pipe.recv()
        texts = [f'{seed}: transfer {each}' for each in range(len(transfers))]
        if index == 0:
            begun = [agent.begin(writes, NAMES[1], at, spans, text)
                     for spans, text in zip(transfers, texts)]
            for handle in begun:
                agent.end(handle)
        else:
            agent.hears(NAMES[0], texts)
        check(agent, transfers, seed)
        pipe.send(None)
        pipe.recv()


def side(bindings, case, index, pipe):
    sys.path.insert(0, bindings)
    transfers = CASES[case]
    size = max(offset + length for spans in transfers for offset, length in spans)
    try:
        agent = Agent(importlib.import_module('_bindings'), NAMES[index], size)
        pipe.send((agent.agent.getLocalMD(), agent.at))
        about, at = pipe.recv()
        agent.agent.loadRemoteMD(about)
        for _ in range(3):
            turn(agent, index, pipe, at, transfers)
        agent.close(NAMES[1 - index])
    except (Failed, EOFError, RuntimeError) as error:
        print(f'{NAMES[index]}: {type(error).__name__} {error}', file=sys.stderr)
        sys.exit(1)


def main(bindings, case):
    ends = multiprocessing.Pipe()
    sides = [multiprocessing.Process(target=side, args=(bindings, case, index, end))
             for index, end in enumerate(ends)]
    for each in sides:
        each.start()
    for end in ends:
        end.close()     # a process that waits for a failed side reads the pipe's end
    for each in sides:
        each.join()
    return int(any(each.exitcode for each in sides))


if __name__ == '__main__':
    if len(sys.argv) != 3 or sys.argv[2] not in CASES:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
