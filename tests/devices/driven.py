# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Borrowers that a test drives, each a process of the program 'driven'"""
import errno
import os
import select
import signal
import subprocess

import stand

# enum weft_event_kind
DEVICE_ADDED, DEVICE_REMOVED, LEASE_ENDED, LENDER_LOST, LENDER_BACK = range(5)

# What a command that is answered at once may take on a machine with much to do.
ANSWER_S = 30
TRIES = 15


def check(condition, what):
    if not condition:
        raise stand.Failed(what)


class Driven:
    """A borrower with the lender of a stand open. What it is asked must succeed, where nothing else is said."""

    def __init__(self, s, name=None, prefix=(), env=None):
        program = s.build / 'tests' / 'devices' / 'driven'
        # Events: (kind, lease, device, node), and the first two of each.
        self.told = []
        self.heard = []
        self.popen = subprocess.Popen([*prefix, program, str(name or s.socket)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=0,
                                      env={**os.environ, **stand.library_env(s.build), **(env or {})})
        self.expect(self.answer('to begin'), 0, 'to begin')

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.kill()

    def kill(self):
        self.popen.kill()
        self.popen.communicate()

    def signal(self, number):
        self.popen.send_signal(number)

    def stop_process(self):
        """SIGSTOP, and wait until it has stopped."""
        self.signal(signal.SIGSTOP)
        stand.wait_until('it stops', lambda: open(f'/proc/{self.popen.pid}/stat', encoding='utf-8').read()
                         .rsplit(')', 1)[1].split()[0] == 'T')

    def answer(self, what):
        ready, _, _ = select.select([self.popen.stdout], [], [], ANSWER_S)
        line = self.popen.stdout.readline() if ready else ''
        try:
            words = line.split()
            return int(words[0]), words[1:]
        except (IndexError, ValueError):
            self.popen.kill()
            raise stand.Failed(f'{what}: {line or "no answer"}\n{self.popen.communicate()[0]}') from None

    def expect(self, answer, result, what):
        check(answer[0] == result, f'{what}: {answer[0]} ({os.strerror(-answer[0])}), not {result}')
        return answer[1]

    def try_(self, *command):
        """(result, the rest of the answer)"""
        self.popen.stdin.write(' '.join(map(str, command)) + '\n')
        return self.answer(command)

    def ask(self, *command, result=0):
        """The rest of the answer. On a machine that is busy the lender may answer too late: it is asked again."""
        answer = self.try_(*command)
        for _ in range(TRIES):
            if answer[0] != -errno.ETIMEDOUT or result == answer[0]:
                break
            answer = self.try_(*command)
        return self.expect(answer, result, command)

    def use(self, ms, how, shared=1, kept=0, depth=32, memory=('alloc',), first=0, cnt=512, lease=None):
        """Borrow, and have a thread use the device. Returns the lease"""
        lease = lease or int(self.ask('borrow', ms, shared, kept)[0])
        self.ask(*memory)
        self.ask('window')
        if how != 'call':
            self.ask('pair', 1 if how == 'read' else depth, int(how in ('sleep', 'wait')))
        self.ask('run', how, first, cnt)
        self.goes_on()
        return lease

    def state(self):
        """(the thread's first error, commands that have ended)"""
        err, rest = self.try_('state')
        return err, int(rest[0])

    def goes_on(self, more=20):
        """There is no error, and more commands end."""
        before = self.state()[1]

        def ended():
            err, cnt = self.state()
            check(not err, f'the thread has ended: {err}')
            return cnt > before + more
        stand.wait_until('commands end', ended, 20)

    def fails(self, seconds, *results):
        """The thread ends with one of these errors, within the bound."""
        stand.wait_until('the thread has an error', lambda: self.state()[0], seconds)
        err = self.state()[0]
        check(err in results, f'the thread ends with {err} ({os.strerror(-err)}), not one of {results}')
        self.try_('stop')

    def events(self):
        """All that have come, as (kind, lease)"""
        self.told += [tuple(map(int, event.split(':'))) for event in self.ask('events')]
        self.heard = [event[:2] for event in self.told]
        return self.heard

    def hears(self, kind, lease=0, seconds=30):
        try:
            stand.wait_until(f'event {kind} of lease {lease}', lambda: (kind, lease) in self.events(), seconds)
        except stand.Failed as why:
            raise stand.Failed(f'{why}; there are {self.heard}') from None
