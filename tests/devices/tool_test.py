#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tool_test.py BUILD CASE - 'weft lend' and 'weft devices' do what their manuals say

CASE is one of the functions below.
"""
import os
import subprocess
import sys
import xml.etree.ElementTree

import stand

sys.dont_write_bytecode = True

USAGE = 2


def devices(s, *arguments):
    """A run of 'weft devices'"""
    return subprocess.run([s.build / 'tools' / 'weft', 'devices', f'--lender={s.socket}', *arguments],
                          capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, **stand.library_env(s.build)})


def texts(s, *arguments):
    """Those of the drawing"""
    file = s.folder / 'drawing.svg'
    done = devices(s, f'--plot={file}', *arguments)
    stand.check(done.returncode == 0, f'there is no drawing: {done.stderr}')
    return ' '.join(text.strip() for text in xml.etree.ElementTree.parse(file).getroot().itertext())


def drawing_has_what_is_listed(build):
    """--class and --vendor choose what is drawn as what is listed."""
    with stand.Stand(build, stand.Controller(), stand.Controller()) as s:
        names = [it['name'] for it in s.weft_devices('list')['devices']]
        for arguments, wanted in (((), names), (('--class=nvme',), names), (('--vendor=abcd',), [])):
            listed = [it['name'] for it in s.weft_devices('list', *arguments)['devices']]
            drawn = texts(s, *arguments)
            stand.check(listed == wanted, f'{arguments}: {listed} are listed')
            stand.check([name for name in names if name in drawn] == wanted, f'{arguments}: drawn is {drawn}')


def namespace_is_a_number(build):
    """What is no number is told, and is no namespace."""
    with stand.Stand(build) as s:
        name = s.weft_devices('list')['devices'][0]['name']
        stand.check(s.weft_devices('id-ns', name, '1')['nsze'] > 0, 'namespace 1 is empty')
        for text in ('1x', 'x', '0', '4294967295', '4294967297'):
            done = devices(s, 'id-ns', name, text)
            stand.check(done.returncode == USAGE and text in done.stderr,
                        f'{text}: {done.returncode}: {done.stderr}')


def lender_waits_for_its_controllers(build):
    """One that begins with its controllers has them, though they listen later."""
    with stand.Stand(build, lends=False) as s:
        slot = s.folder / 'late'
        s.slots.append(slot)
        lender = stand.Process('early', [s.build / 'tools' / 'weft', 'lend', f'--socket={s.socket}',
                                         f'--state={s.state}', *s.slots], s.folder, stand.library_env(s.build))
        try:
            stand.wait_until('the lender waits', lambda: 'is waited for' in lender.text())
            s.controllers.append(s.run_controller(stand.Controller(), slot))
            lender.wait_ready()
            stand.check(len(s.weft_devices('list')['devices']) == 2, 'a controller is not lent')
        finally:
            wrong = lender.end()
        stand.check(not wrong, wrong)


if __name__ == '__main__':
    sys.exit(stand.run_case((drawing_has_what_is_listed, namespace_is_a_number, lender_waits_for_its_controllers),
                            *sys.argv[1:]))
