# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What tests and benchmarks of devices start: controllers, and a lender of them

    with stand.Stand(build, stand.Controller('64M')) as s:
        ... s.socket is the lender's

All is in a temporary folder, which goes at the end. Processes are ended by their ids, and one that
has ended by itself, or that does not end, fails the test.
"""
import errno
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

# On a machine with much to do
READY_S = 30
END_S = 30
SLACK_S = 20
TRIES = 15


class Failed(Exception):
    """A test's finding; its text is all that is printed."""


def check(condition, what):
    if not condition:
        raise Failed(what)


@dataclass
class Controller:
    """What a weft-nvmed has: its size; a file behind it, which is made in the stand's folder if the path is a name
    alone; other options; and a command that runs it."""
    size: str = '64M'
    file: pathlib.Path = None
    options: list = field(default_factory=list)
    prefix: list = field(default_factory=list)


class Process:
    """One that says a line on standard output when it is ready; its standard error goes to a file."""

    def __init__(self, name, command, folder, env=None, stdin=subprocess.DEVNULL, **more):
        self.name = name
        self.errors = folder / f'{name}.err'
        with open(self.errors, 'ab') as errors:
            self.popen = subprocess.Popen(list(map(str, command)), stdin=stdin, stdout=subprocess.PIPE, stderr=errors,
                                          text=True, env={**os.environ, **(env or {})}, **more)

    @property
    def pid(self):
        return self.popen.pid

    def text(self):
        return self.errors.read_text(errors='replace')[-4000:]

    def wait_ready(self):
        """The line that it says."""
        ready, _, _ = select.select([self.popen.stdout], [], [], READY_S)
        line = self.popen.stdout.readline() if ready else ''
        if not line:
            self.kill()
            raise Failed(f'{self.name} is not ready after {READY_S} s:\n{self.text()}')
        return line.strip()

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def end(self):
        """What is wrong with how it ends, or None."""
        if self.popen.poll() is not None:
            status = self.popen.returncode
            return None if status == -signal.SIGKILL else f'{self.name} ended with {status}:\n{self.text()}'
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            status = self.popen.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return f'{self.name} does not end:\n{self.text()}'
        return None if status in (0, -signal.SIGTERM) else f'{self.name} ends with {status}:\n{self.text()}'


def library_env(build):
    """What programs find the libraries of BUILD by."""
    folders = [build / 'core', build / 'devices']
    return {'LD_LIBRARY_PATH': ':'.join(map(str, folders))}


class Stand:
    """Controllers and a lender, run by the command @prefix and with @options, from 'with' to its end."""

    def __init__(self, build, *controllers, lends=True, prefix=(), options=()):
        self.build = pathlib.Path(build).resolve()
        self.wanted = controllers or (Controller(),)
        self.lends = lends
        self.prefix = prefix
        self.options = options
        self.folder = None
        self.controllers = []
        self.slots = []
        self.lender = None

    @property
    def socket(self):
        return self.folder / 'lender'

    @property
    def state(self):
        return self.folder / 'state'

    def start_controller(self, wanted):
        self.slots.append(self.folder / f'slot{len(self.slots)}')
        self.controllers.append(self.run_controller(wanted, self.slots[-1]))

    def restart_controller(self, index):
        """One that has ended is there again, at its slot."""
        self.controllers[index].kill()
        self.controllers[index] = self.run_controller(self.wanted[index], self.slots[index])

    def run_controller(self, wanted, slot):
        file = wanted.file and self.folder / wanted.file
        if file and not file.exists():
            subprocess.run(['truncate', '-s', wanted.size, file], check=True)
        command = [*wanted.prefix, self.build / 'devices' / 'nvmed' / 'weft-nvmed', f'--slot={slot}',
                   *([f'--file={file}'] if file else [f'--memory={wanted.size}']),
                   *wanted.options]
        process = Process(f'nvmed-{slot.name}', command, self.folder)
        try:
            process.wait_ready()
        except Failed:
            process.kill()
            raise
        return process

    def start_lender(self):
        self.lender = Process('lender', [*self.prefix, self.build / 'tools' / 'weft', 'lend', f'--socket={self.socket}',
                                         f'--state={self.state}', *self.options,
                                         *self.slots],
                              self.folder, library_env(self.build))
        self.lender.wait_ready()

    def try_command(self, *arguments):
        """(status, standard output, standard error) of 'weft devices'"""
        for _ in range(TRIES):
            done = subprocess.run([self.build / 'tools' / 'weft', 'devices', f'--lender={self.socket}', *arguments],
                                  capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                                  env={**os.environ, **library_env(self.build)})
            # The lender of a machine that is busy may answer too late.
            if os.strerror(errno.ETIMEDOUT) not in done.stderr:
                break
        return done.returncode, done.stdout, done.stderr

    def command(self, *arguments):
        """What 'weft devices' prints, which succeeds"""
        status, out, errors = self.try_command(*arguments)
        if status:
            raise Failed(f'weft devices {" ".join(arguments)}: {errors}')
        return out

    def weft_devices(self, *arguments):
        """What 'weft devices' prints as JSON"""
        return json.loads(self.command('--json', *arguments))

    def reads(self, device=0):
        """How many a controller has executed"""
        name = self.weft_devices('list')['devices'][device]['name']
        return self.weft_devices('smart-log', name)['host_read_commands']

    def leases(self):
        """Those that run"""
        return self.weft_devices('leases')['leases']

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-devices.'))
        try:
            for wanted in self.wanted:
                self.start_controller(wanted)
            if self.lends:
                self.start_lender()
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        """Ends everything. Returns what was wrong with that."""
        processes = ([self.lender] if self.lender else []) + self.controllers
        wrong = [text for text in [process.end() for process in processes] if text]
        shutil.rmtree(self.folder, ignore_errors=True)
        return wrong

    def __exit__(self, kind, value, trace):
        wrong = self.close()
        if wrong and kind is None:
            raise Failed('\n'.join(wrong))
        return False


held_ports = []


def free_port():
    """One that is free now on this host, below those that the kernel gives to whoever asks for any. Nobody else who asks
    here gets it before this process ends, whether or not somebody listens there by then."""
    while True:
        number = random.randrange(16384, 32768)
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f'\0weft-test-port-{number}')
            with socket.socket() as one:
                one.bind(('127.0.0.1', number))
        except OSError:
            held.close()
            continue
        held_ports.append(held)
        return number


def wait_until(what, condition, seconds=SLACK_S):
    """Waits until the condition holds, which is looked at every few milliseconds. Returns what it was then."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise Failed(f'{what}: not after {seconds} s')
        time.sleep(0.005)
    return found


def run_case(cases, build, name):
    """Runs one of the functions, on a build. Returns the exit status."""
    try:
        {case.__name__: case for case in cases}[name](pathlib.Path(build).resolve())
    except Failed as why:
        print(f'failed: {why}')
        return 1
    print(f'{name}: passed')
    return 0
