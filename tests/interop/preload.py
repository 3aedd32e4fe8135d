#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""preload - Debian's programs with their large allocations in the arena

usage: preload.py BUILD CASE

Each is started by 'weft run --mem', and has to have memory of the arena.
"""
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import mpi
from hosts import HERE, clean_env, run_bounded

KEYS = 64
VALUE = 128 << 10

NUMPY = r'''
import os, subprocess, sys
import numpy

def arena():
    return 'weft-arena' in open('/proc/self/maps').read()

a = numpy.arange(1 << 21)
assert arena()
for n in (1 << 12, 1 << 14, 1 << 17, 1 << 20):
    b = numpy.random.default_rng(n).random((n // 64, 64))
    assert abs((b @ numpy.eye(64)) - b).max() == 0
    c = numpy.sort(b.ravel())
    assert (numpy.diff(c) >= 0).all()
    c = numpy.concatenate([c, c, c])
    c.resize(4 * n)
    assert c[3 * n:].sum() == 0
assert subprocess.run(['sh', '-c', 'exit 5']).returncode == 5
child = os.fork()
if not child:
    os._exit(0 if (a == numpy.arange(1 << 21)).all() else 1)
a += 1
assert os.waitpid(child, 0)[1] == 0
assert (a == numpy.arange(1 << 21) + 1).all()
print('done')
'''


def command(build, *argv):
    return [pathlib.Path(build).resolve() / 'tools' / 'weft', 'run', '--mem', '--', *argv]


def numpy(build):
    """Arrays of many sizes, and a child that has them as they were."""
    done = run_bounded(command(build, '/usr/bin/python3', '-c', NUMPY), clean_env(), 60)
    if done.status != 0 or done.stdout.strip() != 'done':
        raise mpi.Failed(f'{done.status}\n{done.text}')


def cxx(build):
    """Containers, alignments, exceptions and threads of C++, with the library and without."""
    if not shutil.which('g++'):
        print('skip: there is no g++')
        sys.exit(mpi.SKIP)
    with tempfile.TemporaryDirectory() as name:
        program = pathlib.Path(name, 'allocations')
        built = run_bounded(['g++', '-std=c++17', '-O1', '-pthread', '-o', program,
                             HERE / 'allocations.cpp'], clean_env(), 100)
        if built.status != 0:
            raise mpi.Failed(built.text)
        for argv, says in (([program], 'done'), (command(build, program), 'arena done')):
            done = run_bounded(argv, clean_env(), 60)
            if done.status != 0 or done.stdout.strip() != says:
                raise mpi.Failed(f'{done.status}\n{done.text}')


class Redis:
    """A server on a socket in a folder."""

    def __init__(self, argv, folder):
        self.path = folder / 'socket'
        self.path.unlink(missing_ok=True)
        self.server = subprocess.Popen(
            [*argv, 'redis-server', '--port', '0', '--unixsocket', self.path, '--dir', folder,
             '--save', '', '--loglevel', 'warning'], env=clean_env(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        until = time.monotonic() + 30
        while True:
            try:
                self.socket.connect(str(self.path))
                break
            except OSError:
                if time.monotonic() > until or self.server.poll() is not None:
                    raise mpi.Failed(f'no redis-server: {self.server.poll()}') from None
                time.sleep(.01)
        self.file = self.socket.makefile('rb')

    def ask(self, *words):
        """The answer to one command."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b'*%d\r\n' % len(words) +
                            b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))
        line = self.file.readline().strip()
        if line[:1] == b'-':
            raise mpi.Failed(f'{words[0]}: {line}')
        if line[:1] != b'$':
            return line[1:]
        return self.file.read(int(line[1:]) + 2)[:-2]

    def end(self):
        self.server.terminate()
        self.server.wait(30)
        self.socket.close()


def value(key, generation):
    return (b'%d %d,' % (key, generation)) * (VALUE // 8)


def redis(build):
    """What BGSAVE writes is one moment's, while the server goes on."""
    if not shutil.which('redis-server'):
        print('skip: there is no redis-server')
        sys.exit(mpi.SKIP)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = Redis(command(build), folder)
        try:
            for generation in range(3):
                for key in range(KEYS):
                    server.ask('SET', key, value(key, generation))
                maps = pathlib.Path(f'/proc/{server.server.pid}/maps').read_text()
                if 'weft-arena' not in maps:
                    raise mpi.Failed(f'no memory of the arena:\n{maps}')
                server.ask('BGSAVE')
                later = 100
                while b'rdb_bgsave_in_progress:1' in server.ask('INFO', 'persistence'):
                    for key in range(KEYS):
                        server.ask('SET', key, value(key, later))
                    later += 1
                if b'rdb_last_bgsave_status:ok' not in server.ask('INFO', 'persistence'):
                    raise mpi.Failed('BGSAVE failed')
                check_dump(folder, generation)
        finally:
            server.end()


def check_dump(folder, generation):
    """Another server, without the library, reads what was saved."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(folder / 'dump.rdb', name)
        reader = Redis([], pathlib.Path(name))
        try:
            for key in range(KEYS):
                if reader.ask('GET', key) != value(key, generation):
                    raise mpi.Failed(f'{key} is not as it was saved')
        finally:
            reader.end()


CASES = {'numpy': numpy, 'cxx': cxx, 'redis': redis}

if __name__ == '__main__':
    try:
        CASES[sys.argv[2]](sys.argv[1])
    except mpi.Failed as failed:
        sys.exit(f'{sys.argv[2]}: {failed}')
