#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""nccl_net - two processes that exchange messages through a network plugin of NCCL

usage: nccl_net.py PLUGIN CASE

A collective library loads such a plugin and calls the functions of a table; this does the
same by ctypes, with memory of the host only. CASE is one of CASES below. The table is
ncclNetPlugin_v5 of aws-ofi-nccl's build for Neuron, which needs no GPU's libraries.
"""
import ctypes
import multiprocessing
import os
import sys
import time

SLOTS = ('init', 'devices', 'getProperties', 'listen', 'connect', 'accept', 'regMr', 'regMrDmaBuf',
         'deregMr', 'isend', 'irecv', 'iflush', 'test', 'closeSend', 'closeRecv', 'closeListen')
ARGUMENTS = {
    'init': 'p', 'devices': 'p', 'listen': 'ipp', 'connect': 'ipp', 'accept': 'pp',
    'regMr': 'ppzip', 'deregMr': 'pp', 'isend': 'ppiipp', 'irecv': 'pippppp', 'test': 'ppp',
    'closeSend': 'p', 'closeRecv': 'p', 'closeListen': 'p',
}
KINDS = {'p': ctypes.c_void_p, 'i': ctypes.c_int, 'z': ctypes.c_size_t}
HANDLE_BYTES = 128
HOST = 1
SECONDS = 60

LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int,
                          ctypes.c_char_p)


class Failed(Exception):
    """A call that failed, or took too long."""


@LOGGER
def say(level, _flags, file, line, text):
    if level <= 2:
        print(f'{os.path.basename(file.decode())}:{line}: {text.decode()}', file=sys.stderr)


class Net:
    """The plugin's table; each slot is called as a method and has to return 0."""

    def __init__(self, path):
        table = (ctypes.c_void_p * (1 + len(SLOTS))).in_dll(ctypes.CDLL(path), 'ncclNetPlugin_v5')
        for index, name in enumerate(SLOTS):
            if name in ARGUMENTS:
                kinds = [KINDS[letter] for letter in ARGUMENTS[name]]
                call = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(table[1 + index])
                setattr(self, name, self.checked(name, call))
        self.init(ctypes.cast(say, ctypes.c_void_p))
        count = ctypes.c_int()
        self.devices(ctypes.addressof(count))
        if count.value < 1:
            raise Failed('no device')

    @staticmethod
    def checked(name, call):
        def checked_call(*args):
            status = call(*args)
            if status:
                raise Failed(f'{name}: {status}')
        return checked_call

    def until(self, what, call):
        """Calls again until there is something in the pointer that it fills."""
        found = ctypes.c_void_p()
        end = time.monotonic() + SECONDS
        while not found.value:
            call(ctypes.addressof(found))
            if time.monotonic() > end:
                raise Failed(f'{what}: not within {SECONDS} s')
        return found.value

    def wait(self, request, what):
        done, size = ctypes.c_int(), (ctypes.c_int * 8)()
        end = time.monotonic() + SECONDS
        while not done.value:
            self.test(request, ctypes.addressof(done), ctypes.addressof(size))
            if time.monotonic() > end:
                raise Failed(f'{what}: not within {SECONDS} s')
        return size[0]


class Buffer:
    """Memory that is registered with one side of a connection."""

    def __init__(self, net, comm, size):
        self.net, self.comm = net, comm
        self.memory = ctypes.create_string_buffer(max(size, 1))
        self.at = ctypes.addressof(self.memory)
        self.handle = net.until('regMr', lambda out: net.regMr(comm, self.at, max(size, 1),
                                                               HOST, out))

    def close(self):
        self.net.deregMr(self.comm, self.handle)


def pattern(seed, size):
    return bytes((seed * 31 + index * 7) & 255 for index in range(251)) * (size // 251 + 1)


def send_all(net, comm, sizes):
    pending = []
    for index, size in enumerate(sizes):
        buffer = Buffer(net, comm, size)
        ctypes.memmove(buffer.at, pattern(index, size), size)
        request = net.until('isend', lambda out, b=buffer, n=size:
                            net.isend(comm, b.at, n, 1, b.handle, out))
        pending.append((request, buffer, size))
    for request, buffer, size in pending:
        net.wait(request, f'send of {size}')
        buffer.close()


def receive_all(net, comm, sizes, room):
    pending = []
    for size in sizes:
        buffer = Buffer(net, comm, max(size, room))
        length, tag = ctypes.c_int(max(size, room)), ctypes.c_int(1)
        at, handle = ctypes.c_void_p(buffer.at), ctypes.c_void_p(buffer.handle)
        request = net.until('irecv', lambda out, a=at, n=length, t=tag, h=handle: net.irecv(
            comm, 1, *(ctypes.addressof(each) for each in (a, n, t, h)), out))
        pending.append((request, buffer, size))
    for index, (request, buffer, size) in enumerate(pending):
        got = net.wait(request, f'receive of {size}')
        if got != size or buffer.memory.raw[:size] != pattern(index, size)[:size]:
            raise Failed(f'message {index} of {size} bytes: {got} came, or other bytes')
        buffer.close()


# Rounds of messages under way together, and the room of their receives.
CASES = {
    'small': ([[1], [8], [64], [1000]], 0),
    'medium': ([[4096], [8192], [16384], [65536]], 0),
    'large': ([[1 << 20], [4 << 20], [3 << 20 | 5]], 0),
    'empty': ([[0], [0, 1, 0]], 0),
    'shorter': ([[1], [100], [5000], [70000]], 1 << 17),
    'together': ([[8] * 32, [4096] * 32, [65536] * 16, [1 << 20] * 8], 0),
    'connect': ([], 0),
}


def process(path, case, pipe, first):
    """One side: listens, connects to the other, and they send in turns."""
    rounds, room = CASES[case]
    net = Net(path)
    for _ in range(4 if case == 'connect' else 1):
        handle = ctypes.create_string_buffer(HANDLE_BYTES)
        listener = net.until('listen', lambda out: net.listen(0, ctypes.addressof(handle), out))
        pipe.send_bytes(handle.raw)
        other = ctypes.create_string_buffer(pipe.recv_bytes(), HANDLE_BYTES)
        send = receive = None
        end = time.monotonic() + SECONDS
        sends, receives = ctypes.c_void_p(), ctypes.c_void_p()
        while not (send and receive):
            if not send:
                net.connect(0, ctypes.addressof(other), ctypes.addressof(sends))
                send = sends.value
            if not receive:
                net.accept(listener, ctypes.addressof(receives))
                receive = receives.value
            if time.monotonic() > end:
                raise Failed(f'connected {bool(send)}, accepted {bool(receive)}')
        for sizes in [*rounds, [8]]:
            for turn in (first, not first):
                if turn:
                    send_all(net, send, sizes)
                else:
                    receive_all(net, receive, sizes, room)
        pipe.send_bytes(b'done')
        pipe.recv_bytes()
        net.closeSend(send)
        net.closeRecv(receive)
        net.closeListen(listener)


def side(path, case, pipe, first):
    try:
        process(path, case, pipe, first)
    except Failed as error:
        print(f'{"first" if first else "second"}: {error}', file=sys.stderr)
        sys.exit(1)


def main(path, case):
    ends = multiprocessing.Pipe()
    sides = [multiprocessing.Process(target=side, args=(path, case, end, end is ends[0]))
             for end in ends]
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
