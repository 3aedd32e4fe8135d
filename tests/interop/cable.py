#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""cable - a cable is pulled and put back while libweft-btl puts by two devices

usage: cable.py BUILD PROGRAM short|long

Two hosts with two wires between them, and a stream of puts over both (PROGRAM is
tests/btl/cable.c, which checks each byte). One wire is cut in the middle of it: for some
seconds, once at either end, after which the same connection goes on; or for so long that
the connection is given up, and the other device does all until this one works again.
"""
import os
import re
import select
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import mpi
from hosts import Hosts

# s; a cut that a connection survives
SHORT = 3
# s; what has to come, and takes some of it: TCP tries a silent peer again more and more rarely
PATIENCE = 60
# bytes that a device sends in any state but the one in which it is cut
MUCH = 32 << 20

STATE = re.compile(r'round (\d+) sent (\d+) (\d+)')


class Stream:
    """The two processes, and what the client has said last: bytes sent by each device."""

    def __init__(self, hosts, program):
        pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'bufsize': 0}
        self.server = hosts['b'].popen([program, 'serve', 'tcp'], **pipes)
        told = self.server.stdout.readline()
        if not told:
            raise mpi.Failed('the server has ended')
        self.client = hosts['a'].popen([program, 'put', 'tcp'], **pipes)
        self.client.stdin.write(told)
        self.sent = (0, 0)
        self.begun = time.monotonic()

    def said(self, until):
        """The next line of the client's."""
        out = self.client.stdout
        while not select.select([out], [], [], 1)[0]:
            if time.monotonic() > until:
                raise mpi.Failed(f'{self}: nothing more is said')
        line = out.readline().decode()
        if not line:
            raise mpi.Failed(f'{self}: the client has ended with {self.client.wait(10)}')
        state = STATE.match(line)
        if state:
            self.sent = tuple(map(int, state.groups()[1:]))
        return line

    def wait(self, what, condition):
        """Read on until a condition of what was sent since holds."""
        before, until = self.sent, time.monotonic() + PATIENCE
        while not condition(*(now - then for now, then in zip(self.sent, before))):
            self.said(until)
            if time.monotonic() > until:
                raise mpi.Failed(f'{self}: not {what} within {PATIENCE} s')
        print(f'{self}: {what}', flush=True)

    def end(self):
        """The client has all bytes back, and ends well, and so does the server."""
        self.client.stdin.close()
        until = time.monotonic() + PATIENCE
        while not (line := self.said(until)).startswith('end'):
            pass
        print(f'{self}: {line.strip()}')
        self.server.stdin.close()
        for process in (self.client, self.server):
            if process.wait(PATIENCE):
                raise mpi.Failed(f'a process has ended with {process.returncode}')

    def __str__(self):
        sent = ' + '.join(f'{count >> 20} MiB' for count in self.sent)
        return f'{time.monotonic() - self.begun:.1f} s, {sent}'


def by_both(first, second):
    return min(first, second) > MUCH


def by_first(first, _second):
    return first > 4 * MUCH


def cut(hosts, stream, end, long):
    """Take the second wire away at a host's end, mid-stream, and give it back."""
    hosts.set_link(end, 'eth1', False)
    print(f'{stream}: cut at {end}', flush=True)
    if long:
        stream.wait('one device goes on', by_first)
    else:
        time.sleep(SHORT)
    hosts.set_link(end, 'eth1', True)
    stream.wait('both devices go on', by_both)


def cable(build, program, how):
    with Hosts(('a', 'b'), {name: mpi.btl_env(build) for name in ('a', 'b')}) as hosts:
        hosts.add_link('eth1', '10.199.1')
        stream = Stream(hosts, os.path.abspath(program))
        stream.wait('both devices are used', by_both)
        for end in ('a', 'b') if how == 'short' else ('b',):
            cut(hosts, stream, end, how == 'long')
        stream.end()


if __name__ == '__main__':
    sys.exit(mpi.main(cable, *sys.argv[1:]))
