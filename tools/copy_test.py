#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""copy_test.py WEFT - what 'weft copy' copies, and what it says when it can't

Files are copied over shm, tcp and link. Where one side has to do what weft does not, this program is that side: it
speaks the control connection's messages (tools/copy/message.h), and has no transport.
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

WEFT = sys.argv[1]
DEADLINE_S = 60
HEAD = struct.Struct('<IHHIIQqIIQQ176s')
MAGIC, VERSION, LEN, TEXT = 0x79706377, 1, 488, 256
HELLO, READY, FILE, WINDOW, WRITTEN, VERDICT, END = range(7)

failed = []


def check(name, good, *said):
    print(f'{"ok  " if good else "FAIL"} {name}')
    if not good:
        failed.append(name)
        for text in said:
            print('     | ' + str(text).strip().replace('\n', '\n     | '))


def held_port():
    """A port, and what holds it: nobody is given it, and a server that sets SO_REUSEADDR has it too."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(('', 0))
    return str(held.getsockname()[1]), held


class Receiver:
    """weft copy --listen, ready to be connected to"""

    def __init__(self, folder, *options, limit=None):
        self.port, self.held = held_port()
        command = [WEFT, 'copy', '--listen', str(folder), '-P', self.port, *options]
        if limit:  # in blocks of 512 bytes
            command = ['sh', '-c', f'ulimit -f {limit}; exec "$@"', 'sh', *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.first = self.process.stderr.readline()

    def end(self):
        """its status, and all it has said"""
        out, err = self.process.communicate(timeout=DEADLINE_S)
        self.held.close()
        self.out = out
        return self.process.returncode, self.first + out + err


def send(receiver, *arguments):
    """a sender's status, and all it has said"""
    done = subprocess.run([WEFT, 'copy', '-P', receiver.port, *map(str, arguments), 'localhost'],
                          capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout + done.stderr


class Forged:
    """a sender that has no transport"""

    def __init__(self, receiver):
        self.socket = socket.create_connection(('localhost', int(receiver.port)), timeout=DEADLINE_S)

    def blob(self, data):
        """sends what may be no message, and returns what comes, b'' for an end"""
        self.socket.sendall(struct.pack('<I', len(data)) + data)
        return self.receive()

    def receive(self):
        try:
            length = struct.unpack('<I', self.exactly(4))[0]
            return self.exactly(length)
        except (EOFError, ConnectionError):
            return b''

    def exactly(self, length):
        data = b''
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def exchange(self, kind, text=b'', size=0, error=0):
        """(kind, error, size, text) of the answer, or None"""
        got = self.blob(message(kind, text, size, error))
        if len(got) != LEN:
            return None
        fields = HEAD.unpack(got[:HEAD.size])
        return fields[2], fields[3], fields[5], got[HEAD.size:].rstrip(b'\0').decode()

    def begin(self):
        self.exchange(HELLO)
        self.exchange(READY)
        self.blob(b'')
        return self

    def offer(self, name, size):
        """what the receiver says of a file"""
        self.exchange(FILE, name, size)
        return self.exchange(READY)


def message(kind, text=b'', size=0, error=0, version=VERSION):
    return HEAD.pack(MAGIC, version, kind, error, 0o640, size, 0, 0, 0, 0, 0, b'') + text.ljust(TEXT, b'\0')


def same(a, b):
    one, other = a.stat(), b.stat()
    return a.read_bytes() == b.read_bytes() and one.st_mode == other.st_mode and one.st_mtime_ns == other.st_mtime_ns


def fresh(parent, name):
    folder = parent / name
    folder.mkdir()
    return folder


def left(folder):
    return sorted(entry.name for entry in folder.iterdir())


def make_sources(tmp):
    """files of no byte, some, about a block, and more than a window"""
    folder = fresh(tmp, 'from')
    sizes = {'empty': 0, 'one': 1, 'odd name \xe4': 4097, 'block': 1 << 20, 'windows': (129 << 20) + 5}
    for number, (name, size) in enumerate(sizes.items()):
        path = folder / name
        path.write_bytes(os.urandom(min(size, 1 << 20)) * (size // (1 << 20)) + os.urandom(size % (1 << 20))
                         if size > 1 << 20 else os.urandom(size))
        path.chmod(0o600 + number)
        os.utime(path, ns=(0, 1234567890_000000001 + number))
    return [folder / name for name in sizes]


def copies(tmp, sources):
    for provider in 'shm', 'tcp', 'link':
        folder = fresh(tmp, provider)
        (folder / 'one').write_text('the old one')
        receiver = Receiver(folder, '--json')
        status, said = send(receiver, '-p', provider, *sources)
        got, told = receiver.end()
        check(f'files arrive over {provider}', status == got == 0, said, told)
        check(f'with their mode and time over {provider}',
              left(folder) == sorted(s.name for s in sources) and all(same(s, folder / s.name) for s in sources))
        check(f'the rate and the route over {provider} are told', f'MB/s over {provider} by ' in said, said)
        whole = json.loads(receiver.out)
        check(f'the JSON has each file over {provider}',
              [(f['name'], f['bytes'], f['error']) for f in whole['files']] ==
              [(s.name, s.stat().st_size, None) for s in sources] and whole['provider'] == provider and
              whole['complete'], whole)


def failures_of_sources(tmp, sources):
    folder = fresh(tmp, 'some')
    receiver = Receiver(folder, '-p', 'shm')
    short = pathlib.Path('/sys/kernel/profiling')
    if not short.exists():
        short = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')
    status, said = send(receiver, tmp, '/nowhere/x', '/dev/null', short, f'{sources[1]}/', sources[1])
    got, told = receiver.end()
    check('a file that can\'t be sent is named, and others arrive', status == 1 and left(folder) == ['one'] and all(
        line in said for line in (f'{tmp}: is a directory', '/nowhere/x: No such file', '/dev/null: is no file',
                                  'one/: does not end in the name')), said, told)
    if short.exists():
        # Its size is a page's, and it has fewer bytes.
        check('a file that becomes shorter is told at both sides', 'became shorter while it was sent' in said and
              f'{short.name}: the sender: became shorter' in told and got == 1, said, told)
    else:
        print('skip no file of sysfs is here')
    status, said = send(receiver, sources[1], f'{sources[1].parent}/../from/one')
    check('files of one name are refused before any is sent', status == 1 and 'would arrive as one' in said, said)


def failures_of_receivers(tmp, sources):
    folder = fresh(tmp, 'limited')
    (folder / 'windows').write_text('the old one')
    receiver = Receiver(folder, limit=(100 << 20) // 512)
    status, said = send(receiver, '-p', 'tcp', sources[4], sources[1])
    got, told = receiver.end()
    check('a file without room is told at both sides', status == got == 1 and
          all('no room for it: File too large' in text for text in (said, told)), said, told)
    check('and what has its name stays', left(folder) == ['one', 'windows'] and
          (folder / 'windows').read_text() == 'the old one')
    folder = fresh(tmp, 'taken')
    fresh(folder, 'one')
    receiver = Receiver(folder)
    status, said = send(receiver, '-p', 'shm', sources[1])
    got, told = receiver.end()
    check('a directory is not replaced', status == got == 1 and 'Is a directory' in said and left(folder) == ['one'],
          said, told)
    receiver = Receiver('/sys/kernel', '-p', 'shm')
    status, said = send(receiver, sources[1]) if 'waiting' in receiver.first else (1, 'ermission denied')
    got, told = receiver.end()
    check('a directory that can\'t be written is told', status == got == 1 and
          any(text in told for text in ('ermission denied', 'Read-only', 'not permitted')), said, told)
    receiver = Receiver(tmp / 'nowhere')
    check('a directory that is not there is told', receiver.end()[0] == 1 and 'No such file' in receiver.first,
          receiver.first)


def strangers(tmp):
    folder = fresh(tmp, 'strangers')
    receiver = Receiver(folder, '-p', 'shm')
    peer = Forged(receiver).begin()
    for name in b'../away', b'/away', b'a/b', b'.', b'..', b'':
        answer = peer.offer(name, 0)
        check(f'the name {name} is refused', answer and answer[1] == 22 and 'not a name' in answer[3], answer)
    answer = peer.offer(b'huge', 1 << 62)
    check('a size beyond the disk is refused at once', answer and answer[1] in (27, 28), answer)
    check('and the sender may go on', peer.exchange(END)[0] == READY)
    check('nothing has been written', receiver.end()[0] == 1 and left(folder) == [] and not (tmp / 'away').exists())
    for what, data in (('a name with a zero byte', message(FILE, b'a\0b')), ('a size that is negative', message(FILE, b'a', 1 << 63)),
                       ('another version', message(FILE, b'a', version=2)), ('a message out of turn', message(WRITTEN)),
                       ('a longer message', message(FILE, b'a') + b'x'), ('a short one', b'')):
        receiver = Receiver(folder, '-p', 'shm')
        Forged(receiver).begin().blob(data)
        status, told = receiver.end()
        check(f'{what} ends the session', status == 1 and ('no \'weft copy\'' in told or 'too long' in told) and
              left(folder) == [], told)
    receiver = Receiver(folder, '--timeout', '1')
    silent = Forged(receiver)
    status, told = receiver.end()
    check('who says nothing is not waited for', status == 1 and 'timed out' in told, told, silent)


def sides_that_end(tmp, sources):
    folder = fresh(tmp, 'ended')
    receiver = Receiver(folder, '-p', 'shm')
    peer = Forged(receiver).begin()
    answer = peer.offer(b'torn', 1 << 20)
    check('a file under way is a hidden one', answer[2] == 1 << 20 and
          [name.startswith('.weft-copy-') for name in left(folder)] == [True], answer, left(folder))
    peer.socket.close()
    status, told = receiver.end()
    check('a sender that ends leaves no file', status == 1 and 'torn: has not arrived' in told and left(folder) == [], told)

    receiver = Receiver(folder, '-p', 'shm')
    peer = Forged(receiver).begin()
    peer.offer(b'torn', 1 << 20)
    receiver.process.send_signal(signal.SIGINT)
    status, told = receiver.end()
    check('an interrupt leaves no file', status == -signal.SIGINT and left(folder) == [], status, told, left(folder))

    receiver = Receiver(folder, '-p', 'shm')
    peer = Forged(receiver).begin()
    peer.offer(b'damaged', 4)
    answer = peer.exchange(WRITTEN)
    verdict = peer.exchange(READY)
    check('bytes that are not those of the sum are refused', answer[1] == 0 and verdict[1] == 5 and
          'are not those' in verdict[3], answer, verdict)
    peer.socket.close()
    receiver.end()
    check('and leave no file', left(folder) == [])

    with socket.socket() as listener:
        listener.bind(('localhost', 0))
        listener.listen()
        command = [WEFT, 'copy', '-P', str(listener.getsockname()[1]), str(sources[1]), 'localhost']
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
            listener.accept()[0].close()
            said = sender.communicate(timeout=DEADLINE_S)[1]
        check('a receiver that ends is told', sender.returncode == 1 and 'the other side has ended' in said, said)

    for who in 'sender', 'receiver':
        killed(tmp, sources[-1], who)


def killed(tmp, source, who):
    """One side is killed while a large file is copied: many times the same one, so that it is under way."""
    folder = fresh(tmp, f'killed {who}')
    many = fresh(tmp, f'for {who}')
    paths = [many / str(n) for n in range(50)]
    for path in paths:
        os.link(source, path)
    receiver = Receiver(folder, '-p', 'shm')
    command = [WEFT, 'copy', '-P', receiver.port, *map(str, paths), 'localhost']
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
        while not any(name[0] != '.' for name in left(folder)) and sender.poll() is None:
            pass
        (sender if who == 'sender' else receiver.process).kill()
        said = ''.join(sender.communicate(timeout=DEADLINE_S))
        status, told = receiver.end()
    if who == 'sender':
        check('a sender that is killed leaves no file', status == 1 and 'other side has ended' in told and
              not any(name[0] == '.' for name in left(folder)), told, left(folder))
    else:
        check('a receiver that is killed is told', sender.returncode == 1 and 'other side has ended' in said, said)
    for path in folder.iterdir():
        path.unlink()


def command_lines(tmp, sources):
    folder = fresh(tmp, 'kept')
    receiver = Receiver(folder, '-p', 'shm', '--keep')
    first, second = send(receiver, sources[1]), send(receiver, sources[2])
    check('a receiver may serve several senders', first[0] == second[0] == 0 and
          left(folder) == sorted(s.name for s in sources[1:3]), first, second)
    status, said = send(receiver, '-p', 'tcp', sources[1])
    check('two providers exclude each other', status == 1 and 'was given shm' in said, said)
    status, said = send(receiver, '-p', 'shm', '-d', 'no-such-domain', sources[1])
    check('a domain that is not there is told', status == 1 and 'no-such-domain has reliable messages' in said, said)
    receiver.process.terminate()
    check('until a signal ends it', receiver.end()[0] == -signal.SIGTERM)
    for arguments, text in (([], 'needs FILE'), (['x'], 'needs FILE'), (['--keep', 'x', 'y'], "--keep is the receiver's"),
                            (['--listen', '.', 'x'], 'takes no files'), (['-P', '0', 'x', 'y'], 'port')):
        done = subprocess.run([WEFT, 'copy', *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        check(f'the command line {arguments} is refused', done.returncode == 2 and text in done.stderr, done.stderr)


def many_names():
    def refused(*files):
        return subprocess.run([WEFT, 'copy', *files, 'no-such-host.invalid'], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False).stderr

    said = refused('b/x', 'y', 'a/x', 'z')
    check('files of one name are refused', "'b/x' and 'a/x' would arrive as one file" in said, said)
    began = time.monotonic()
    said = refused(*(f'f{i:05x}' for i in range(100000)))
    check('a hundred thousand names are compared soon', 'no-such-host' in said and time.monotonic() - began < 20, said)


with tempfile.TemporaryDirectory() as made:
    root = pathlib.Path(made)
    all_sources = make_sources(root)
    copies(root, all_sources)
    failures_of_sources(root, all_sources)
    failures_of_receivers(root, all_sources)
    strangers(root)
    sides_that_end(root, all_sources)
    command_lines(root, all_sources)
    many_names()
sys.exit(1 if failed else 0)
