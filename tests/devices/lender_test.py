#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""lender_test.py BUILD CASE - who may be a lender, and where

CASE is one of the functions below.
"""
import os
import pwd
import signal
import subprocess
import sys

import stand
from driven import LEASE_ENDED, LENDER_BACK, Driven, check

sys.dont_write_bytecode = True


def refused(s, state, socket):
    """A second lender, of the stand's second controller, is not to begin with the first one's folder."""
    done = subprocess.run([s.build / 'tools' / 'weft', 'lend', f'--socket={socket}', f'--state={state}', s.slots[1]],
                          capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, **stand.library_env(s.build)})
    check(done.returncode == 1, f'a second lender ends with {done.returncode}: {done.stderr}')
    want = f'weft lend: {state} is the folder of another lender, process {s.lender.pid}: each has its own (--state)\n'
    check(done.stderr == want and not done.stdout, f'it says {done.stdout}{done.stderr}')


def one_state(build):
    """A folder of a state is one lender's, until its process ends, however it does."""
    with stand.Stand(build) as s, Driven(s) as borrower:
        s.start_controller(stand.Controller())
        lease = borrower.use(60000, 'own', first=8192, cnt=2048, depth=8)
        again = s.folder / 'again'
        again.symlink_to(s.state)
        refused(s, s.state, s.folder / 'second')
        refused(s, again, s.folder / 'second')
        # Nor does it take the first one's socket away.
        refused(s, s.state, s.socket)
        check([it['lease'] for it in s.leases()] == [lease], 'the first lender does not lend as before')
        borrower.goes_on()
        for number, times in ((signal.SIGKILL, 1), (signal.SIGTERM, 2)):
            s.lender.signal(number)
            s.lender.popen.wait(stand.END_S)
            s.start_lender()
            stand.wait_until('the next one is there',
                             lambda want=times: borrower.events().count((LENDER_BACK, 0)) == want)
            borrower.goes_on()
        check([it['lease'] for it in s.leases()] == [lease], 'the next lender does not have the lease')
        borrower.ask('stop')


SKIP = 77


def ordinary(build):
    """What runs a command as an ordinary user with no privileges, and its ids: nobody, where this is root."""
    if os.geteuid():
        return [], os.geteuid(), os.getegid()
    user = pwd.getpwnam('nobody')
    prefix = ['setpriv', f'--reuid={user.pw_uid}', f'--regid={user.pw_gid}', '--clear-groups', '--inh-caps=-all',
              '--bounding-set=-all', '--no-new-privs']
    try:
        may = not subprocess.run([*prefix, 'test', '-x', build / 'tools' / 'weft'], check=False).returncode
    except FileNotFoundError:
        print('there is no setpriv')
        sys.exit(SKIP)
    if not may:
        print(f'{user.pw_name} may not run what is in {build}')
        sys.exit(SKIP)
    return prefix, user.pw_uid, user.pw_gid


class OrdinaryStand(stand.Stand):
    """All of it an ordinary user's, with the second controller over a file. Lender and borrowers find the user's own
    places."""

    def __init__(self, build):
        self.user, self.uid, self.gid = ordinary(build)
        super().__init__(build, stand.Controller(prefix=self.user), stand.Controller(file='disk', prefix=self.user))

    @property
    def env(self):
        return {'XDG_RUNTIME_DIR': str(self.folder / 'run'), 'XDG_STATE_HOME': str(self.folder / 'home')}

    @property
    def socket(self):
        return self.folder / 'run' / 'weft' / 'lender'

    @property
    def state(self):
        return self.folder / 'home' / 'weft'

    def start_controller(self, wanted):
        for path in self.folder, self.folder / 'run', self.folder / 'home':
            path.mkdir(mode=0o700, exist_ok=True)
            os.chown(path, self.uid, self.gid)
        if wanted.file:
            (self.folder / wanted.file).touch(mode=0o600)
            os.truncate(self.folder / wanted.file, 64 << 20)
            os.chown(self.folder / wanted.file, self.uid, self.gid)
        super().start_controller(wanted)

    def start_lender(self):
        self.lender = stand.Process('lender', [*self.user, self.build / 'tools' / 'weft', 'lend', *self.slots],
                                    self.folder, {**stand.library_env(self.build), **self.env})
        self.lender.wait_ready()

    def as_user(self, *command, uid=None):
        """(status, standard error) of 'weft devices'"""
        prefix = [f'--reuid={uid}' if uid and word.startswith('--reuid=') else word for word in self.user]
        done = subprocess.run([*prefix, self.build / 'tools' / 'weft', 'devices', *command], check=False,
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={**os.environ, **stand.library_env(self.build), **self.env, 'WEFT_LENDER': ''})
        return done.returncode, done.stderr


def has_privileges(process):
    """Whether a process has capabilities, or is root's"""
    with open(f'/proc/{process.pid}/status', encoding='utf-8') as file:
        status = dict(line.split(':', 1) for line in file)
    return int(status['CapEff'], 16) or '0' in status['Uid'].split()


def ordinary_user(build):
    """Controllers, lender and borrowers of a user with no privileges, over memory and over a file."""
    with OrdinaryStand(build) as s, Driven(s, prefix=s.user) as one, Driven(s, prefix=s.user) as two, \
            Driven(s, prefix=s.user) as three, Driven(s, prefix=s.user) as holder:
        for process in (s.lender, *s.controllers, one.popen, two.popen):
            check(not has_privileges(process), f'process {process.pid} has privileges')
        # Each device is one's, then the first one has room for others too.
        leases = [borrower.use(60000, how, shared=0) for borrower, how in ((one, 'own'), (two, 'wait'))]
        one.ask('share')
        holder.ask('alloc')
        three.use(60000, 'poll', memory=('import', *holder.ask('export')), first=8192)
        check(len(s.leases()) == 3, f'not three leases: {s.leases()}')
        s.lender.kill()
        s.start_lender()
        for borrower in one, two, three:
            borrower.hears(LENDER_BACK)
            borrower.goes_on()
        # The lender's user may end leases, and another one may not even ask.
        name = s.weft_devices('list')['devices'][1]['name']
        check(s.as_user('revoke', name, str(leases[1])) == (0, ''), 'a lease is not revoked')
        two.hears(LEASE_ENDED, leases[1])
        if s.user:
            status, errors = s.as_user(f'--lender={s.socket}', 'list', uid=s.uid - 1)
            check(status == 1 and 'Permission denied' in errors, f'another user asks: {errors}')
        for borrower in one, three:
            borrower.goes_on()
            borrower.ask('stop')


CASES = (one_state, ordinary_user)


if __name__ == '__main__':
    sys.exit(stand.run_case(CASES, *sys.argv[1:]))
