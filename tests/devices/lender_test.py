#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""lender_test.py BUILD CASE - who may be a lender, and where

CASE is one of the functions below.
"""
import os
import signal
import subprocess
import sys

import stand
from driven import LENDER_BACK, Driven, check

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


CASES = (one_state,)


if __name__ == '__main__':
    sys.exit(stand.run_case(CASES, *sys.argv[1:]))
