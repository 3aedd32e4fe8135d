#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pingpong_test.py WEFT secret|open - 'weft pingpong' over endpoints of each type

With "secret" also what it says of a peer that refuses: this build can prove a secret.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

KINDS = {'rdm': 'tcp', 'msg': 'tcp', 'dgram': 'udp'}
SIZES = '1,64,1k'


def held_port():
    """A port, and what holds it: nobody is given it, and a server that sets SO_REUSEADDR has it too."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(('', 0))
    return str(held.getsockname()[1]), held


def run(weft, *args):
    return subprocess.run([weft, 'pingpong', *args], capture_output=True, text=True, timeout=100,
                          check=False)


def played(weft, kind, provider):
    """Every size is there, and every byte was right. Returns what is wrong."""
    done = run(weft, '--fork', '-c', '-S', SIZES, '-e', kind, '-p', provider)
    sizes = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    if done.returncode or ','.join(sizes) != SIZES:
        return [f'{kind}: status {done.returncode}\n{done.stdout}{done.stderr}']
    return []


def refused(weft):
    """The server has a secret and the client has none: an error, named once."""
    port, held = held_port()
    with held, tempfile.TemporaryDirectory() as folder:
        secret = pathlib.Path(folder, 'secret')
        secret.touch(0o600)
        secret.write_text('sixteen bytes or more')
        with subprocess.Popen([weft, 'pingpong', '-p', 'tcp', '-P', port], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              env={**os.environ, 'FI_TCP_SECRET_FILE': str(secret)}) as server:
            done = run(weft, '-p', 'tcp', '-P', port, '127.0.0.1')
            if server.wait(100) == 0:
                return ['the server has not failed']
    line = f'weft pingpong: an operation failed: {os.strerror(129)}'
    if done.returncode != 1 or line not in done.stderr.splitlines():
        return [f'no line {line!r}\n{done.stdout}{done.stderr}']
    return []


def main(weft, with_secret):
    wrong = [text for kind, provider in KINDS.items() for text in played(weft, kind, provider)]
    if with_secret == 'secret':
        wrong += refused(weft)
    print('\n'.join(wrong) or 'all as it should be')
    return len(wrong)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
