# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fio on a borrowed device, for tests and benchmarks: a run, and what its JSON says."""
import json
import os
import subprocess

import stand


def engine(build):
    """The option that names ours."""
    return f'--ioengine=external:{build / "devices" / "fio" / "weft_fio.so"}'


TRIES = 5
# A clock that is chosen is not tried out, which takes long on a machine with much to do.
FIO = ['fio', '--output-format=json', '--verify_state_save=0', '--clocksource=clock_gettime']


def run_fio(env, *options, timeout=60, prefix=()):
    """(status, JSON or None, standard error) of a run

    A job that has not begun within 5 s, on a machine with much to do, is ended by fio, and not fio alone: its number is 0
    as yet, so the signal is for the process group. Then it is run again.
    """
    for _ in range(TRIES):
        done = subprocess.run([*prefix, *FIO, *map(str, options)], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env},
                              timeout=timeout, check=False, start_new_session=True)
        if 'failed to start' not in done.stderr + done.stdout:
            break
    # Messages of fio's own come before the object, in standard output.
    text = done.stdout[done.stdout.find('{'):]
    try:
        return done.returncode, json.loads(text), done.stderr + done.stdout[:-len(text)]
    except ValueError:
        return done.returncode, None, done.stderr + done.stdout


def on_device(s, *options, **how):
    """The same on the device of a stand"""
    return run_fio(stand.library_env(s.build), engine(s.build), f'--lender={s.socket}', *options, **how)


def jobs(s, *options, **how):
    """The jobs of a run on the device of a stand, which succeeds"""
    status, whole, said = on_device(s, *options, **how)
    if status or not whole or any(job['error'] for job in whole['jobs']):
        raise stand.Failed(f'fio ends with {status}:\n{said[-4000:]}')
    return whole['jobs']
