#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""remote_test.py BUILD CASE - devices that are used over a network

CASE is one of the functions below. Each starts the controller and the lender that it needs; where
there are two hosts these are network namespaces, joined by a pair of interfaces.
"""
import contextlib
import ctypes.util
import errno
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import driven
import stand

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'interop'))
import hosts  # noqa: E402

SKIP = 77

# What must happen has within that, on a machine with much to do, beside what a bound of the product allows.
SLACK_S = stand.SLACK_S

# Leases that go on as long as their borrowers run: on such a machine a renewal, too, may be late by seconds.
LEASE_MS = 12000
LEASE_S = LEASE_MS / 1000


class Far(stand.Stand):
    """A stand that lends over a network; `net` enters the namespace that it is in, `lender` is of the lender alone;
    `env` is of all, unless borrowers have theirs. With a bridge, a file that is as memory of two machines, data does not
    go over the network."""

    def __init__(self, build, provider, address, port, net=(), env=None, controller=(), lender=None,
                 borrower=None, bridge=None):
        self.net = list(net)
        self.lender_net = self.net if lender is None else list(lender)
        self.provider = provider
        self.name = f'{address}:{port}'
        self.port = port
        self.address = address
        self.env = env or {}
        self.borrower_env = self.env if borrower is None else borrower
        super().__init__(build, stand.Controller(
            '64M', options=[*([f'--bridge={bridge}'] if bridge else
                              [f'--fabric={provider}', f'--address={address}']), *controller],
            prefix=[*self.net, 'env', *self.settings(stand.library_env(pathlib.Path(build)))]))

    def settings(self, env, more=None):
        return [f'{key}={value}' for key, value in {**env, **(self.env if more is None else more)}.items()]

    def start_lender(self):
        self.lender = stand.Process(
            'lender', [*self.lender_net, 'env', *self.settings(stand.library_env(self.build)),
                       self.build / 'tools' / 'weft', 'lend', f'--socket={self.socket}', f'--state={self.state}',
                       f'--fabric={self.provider}', f'--address={self.address}', f'--port={self.port}', *self.slots],
            self.folder)
        self.lender.wait_ready()

    def revoke(self, lease):
        name = self.weft_devices('list')['devices'][0]['name']
        done = subprocess.run([self.build / 'tools' / 'weft', 'devices', f'--lender={self.socket}', 'revoke', name,
                               str(lease['lease'])], check=False, capture_output=True, text=True,
                              env={**os.environ, **stand.library_env(self.build)})
        stand_check(done.returncode == 0, f'{done.stderr}{self.lender.text()}')

    def borrow(self, net, *arguments, program='remote', **options):
        """Start a borrower elsewhere."""
        return subprocess.Popen(
            [*net, 'env',
             *self.settings({**stand.library_env(self.build), 'WEFT_FABRIC': self.provider}, self.borrower_env),
             self.build / 'tests' / 'devices' / program, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **{'stdin': subprocess.DEVNULL, **options})


def finish(process, seconds=60):
    """Waits for a program, which must succeed."""
    try:
        text = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        raise stand.Failed(f'it hangs:\n{process.communicate()[0]}') from None
    if process.returncode:
        raise stand.Failed(f'exit status {process.returncode}:\n{text}')
    return text


def net_of(two, name):
    return ['nsenter', f'--net={two[name].space("net")}', '--']


def one_host(build, provider):
    with Far(build, provider, '127.0.0.1', stand.free_port()) as s:
        finish(s.borrow([], s.name))


def tcp(build):
    """Both on one host"""
    one_host(build, 'tcp')


def shm(build):
    one_host(build, 'shm')


def link(build):
    one_host(build, 'link')


def slow(build):
    """A lender that runs, and comes to nothing for a while, is waited for by who opens it."""
    for provider in ('tcp', 'shm'):
        with Far(build, provider, '127.0.0.1', stand.free_port()) as s:
            s.lender.signal(signal.SIGSTOP)
            borrower = s.borrow([], s.name, 1)
            time.sleep(4)
            s.lender.signal(signal.SIGCONT)
            finish(borrower)


def two_hosts(build):
    """In two network namespaces, over tcp"""
    with hosts.Hosts() as two:
        with Far(build, 'tcp', two.address('a'), 7471, net_of(two, 'a')) as s:
            finish(s.borrow(net_of(two, 'b'), s.name))


def stock_library():
    """The libfabric of the system"""
    found = ctypes.util.find_library('fabric')
    places = [pathlib.Path(folder) / (found or '-') for folder in
              ('/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib', '/usr/lib64')]
    library = next((place for place in places if place.exists()), None)
    if not library:
        print('there is no other libfabric')
        sys.exit(SKIP)
    return library


def stock_env(build, folder):
    """What has a process use the libfabric of the system"""
    place = folder / 'stock'
    place.mkdir()
    (place / 'libfabric.so.1').symlink_to(stock_library())
    return {'LD_LIBRARY_PATH': f'{place}:{pathlib.Path(build) / "devices"}'}


def stock(build):
    """The same with the libfabric of the system, where there is one"""
    with hosts.Hosts() as two:
        env = stock_env(build, two.folder)
        with Far(build, 'tcp', two.address('a'), 7471, net_of(two, 'a'), env) as s:
            finish(s.borrow(net_of(two, 'b'), s.name))


# Bits of fi_mr(3): local memory, raw keys, addresses, allocated, keys of the provider's, notices, events, of an endpoint
MODES = [0, 1, 2, 4, 16, 32, 64, 128, 256, 512, 4 + 512, 64 + 512, 16 + 64, 1012, *(1012 - bit for bit in (4, 16, 64, 512))]


def forced(build, provider, **settings):
    """Everything in a provider that wants or lacks what the settings say (tests/btl/forced.c)"""
    env = {f'FORCED_{name.upper()}': str(value) for name, value in settings.items()}
    env['LD_PRELOAD'] = str(pathlib.Path(build) / 'tests' / 'devices' / 'forced_preload.so')
    with Far(build, provider, '127.0.0.1', stand.free_port(), env=env) as s:
        try:
            finish(s.borrow([], s.name, 1, *(['far'] if settings.get('cq_data_size', 8) < 4 else [])))
        except stand.Failed as why:
            raise stand.Failed(f'{settings}: {why}\n{s.lender.text()}{s.controllers[0].text()}') from None


def modes(build):
    """Memory is registered as a provider wants it: every mode alone, all, all but one, those of before 1.5; keys of two
    bytes."""
    for mode in MODES:
        forced(build, 'shm', mr_mode=mode, key_size=2 if mode % 128 == 0 else 8)


def lacking(build):
    """A provider that injects little or nothing, has no remote CQ data or too little, and keeps no order"""
    forced(build, 'tcp', inject_size=0)
    forced(build, 'tcp', inject_size=64, no_order=1)
    for size in (0, 2):
        forced(build, 'tcp', cq_data_size=size, no_order=1, mr_mode=1012)
    forced(build, 'tcp', msg_size=1 << 20)
    try:
        forced(build, 'tcp', msg_size=65536)
    except stand.Failed as why:
        stand_check('--fabric=tcp: ' in str(why) and 'not ready' in str(why), why)
    else:
        raise stand.Failed('transfers of 1 MiB are made of a provider that has them of 64 KiB')


def mixed(build):
    """One end on Weft's libfabric, the other on the system's: with Weft's shm loaded into that they are alike. Their tcp are
    two protocols: who has the other one is told so in time, and nobody else is harmed."""
    library = stock_library()
    with tempfile.TemporaryDirectory() as folder:
        env = stock_env(build, pathlib.Path(folder))
        theirs = {**env, 'FI_PROVIDER_PATH': str(pathlib.Path(build) / 'providers' / 'loadable')}
        for far, near in (({}, theirs), (theirs, {})):
            with Far(build, 'shm', '127.0.0.1', stand.free_port(), env=far, borrower=near) as s:
                finish(s.borrow([], s.name, 1))
        with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
            s.borrower_env = env
            began = time.monotonic()
            process = s.borrow([], s.name, LEASE_MS, program='remote_busy')
            text = process.communicate(timeout=120)[0]
            stand_check(process.returncode, f'{library} speaks as Weft:\n{text}')
            # It is told in 10 s.
            stand_check(time.monotonic() - began < 10 + 2 * SLACK_S, 'it took long')
            s.borrower_env = {}
            finish(s.borrow([], s.name, 1))


def wait_line(process, want, seconds=30):
    end = time.monotonic() + seconds
    text = ''
    while time.monotonic() < end:
        line = process.stdout.readline()
        if not line:
            break
        text += line
        if want in line:
            return
    process.kill()
    raise stand.Failed(f"no '{want}':\n{text}")


def controller_killed(build):
    """Who has commands under way hears of it."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        busy = s.borrow([], s.name, 120000, program='remote_busy')
        wait_line(busy, 'busy')
        s.controllers[0].kill()
        stand_check('ended' in finish(busy, SLACK_S), 'it has not ended')


def controller_stopped(build):
    """Its host still acknowledges what is sent: who waits has an error when the lease must have ended."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        borrowers = {how: driven.Driven(s, s.name, env={'WEFT_FABRIC': 'tcp'}) for how in ('poll', 'sleep', 'wait')}
        try:
            leases = {how: borrower.use(LEASE_MS, how) for how, borrower in borrowers.items()}
            s.controllers[0].signal(signal.SIGSTOP)
            for how, borrower in borrowers.items():
                borrower.fails(LEASE_S + SLACK_S, -errno.ESTALE, -errno.ECANCELED, -errno.ENOTCONN)
                borrower.ask('fill', 0x5a)
                borrower.hears(driven.LEASE_ENDED, leases[how])
            s.controllers[0].signal(signal.SIGCONT)
            stand.wait_until('leases end', lambda: not s.leases())
            for borrower in borrowers.values():
                borrower.ask('check', 0x5a)
        finally:
            s.controllers[0].signal(signal.SIGCONT)
            for borrower in borrowers.values():
                borrower.kill()


def lender_killed(build):
    """It is on no data path, and leases go on until their time runs out."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        busy = s.borrow([], s.name, LEASE_MS, program='remote_busy')
        wait_line(busy, 'busy')
        began = time.monotonic()
        s.lender.kill()
        text = finish(busy, LEASE_S + SLACK_S)
        took = time.monotonic() - began
        # It was renewed when a third of its time had passed, or some seconds later.
        stand_check(took > LEASE_S / 4, f'it took {took:.1f} s')
        stand_check('ended' in text, text)


def borrower_killed(build):
    """Their leases end when their time has run out, and their queue pairs are others'."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        killed = [s.borrow([], s.name, LEASE_MS, program='remote_busy') for _ in range(3)]
        for busy in killed:
            wait_line(busy, 'busy')
        for busy in killed:
            busy.kill()
            busy.communicate()
        stand.wait_until('the leases end', lambda: not s.leases(), LEASE_S + SLACK_S)
        stand_check(s.weft_devices('list')['devices'][0]['queue_pairs_free'] == 64, 'a queue pair is lost')
        finish(s.borrow([], s.name, 1))


def revoked(build):
    """Who has commands under way hears of it at once."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        busy = s.borrow([], s.name, 120000, program='remote_busy')
        wait_line(busy, 'busy')
        s.revoke(s.leases()[0])
        stand_check('ended' in finish(busy, SLACK_S), 'it has not ended')


def partition(build):
    """The wire is cut: both sides end what is under way."""
    with hosts.Hosts() as two:
        with Far(build, 'tcp', two.address('a'), 7471, net_of(two, 'a')) as s:
            busy = s.borrow(net_of(two, 'b'), s.name, LEASE_MS, program='remote_busy')
            wait_line(busy, 'busy')
            two._in_net('a', 'ip', 'link', 'set', 'eth0', 'down')
            stand_check('ended' in finish(busy, LEASE_S + SLACK_S), 'it has not ended')
            stand.wait_until('the lease ends', lambda: not s.leases(), SLACK_S)


@contextlib.contextmanager
def bridged(build, mib=16):
    """A stand with a bridge. Its head and pairs are in a file of this host's memory."""
    with tempfile.NamedTemporaryFile(dir='/dev/shm', prefix='weft-bridge.') as file:
        file.truncate(mib << 20)
        with Far(build, 'tcp', '127.0.0.1', stand.free_port(), env={'WEFT_BRIDGE': file.name}, bridge=file.name) as s:
            s.bridge = file
            yield s


def bridge(build):
    """Queues and data are in memory that both hosts have."""
    with bridged(build) as s:
        finish(s.borrow([], s.name), 60)


def bridge_is_full(build):
    """Pairs have parts of it, as many as fit, and give them back."""
    with bridged(build, 6) as s:
        for _ in range(3):
            held = [s.borrow([], s.name, 120000, program='remote_busy') for _ in range(2)]
            for busy in held:
                wait_line(busy, 'busy')
            more = s.borrow([], s.name, 120000, program='remote_busy')
            text = more.communicate(timeout=30)[0]
            stand_check(more.returncode and 'queue pair: -28' in text, text)
            for busy in held:
                busy.kill()
                busy.communicate()
            for lease in s.leases():
                s.revoke(lease)
            stand.wait_until('the leases end', lambda: not s.leases(), SLACK_S)


def bridge_revoked(build):
    """Who has commands under way hears of it at once, by the memory alone."""
    with bridged(build) as s:
        busy = s.borrow([], s.name, 60000, program='remote_busy')
        wait_line(busy, 'busy')
        s.revoke(s.leases()[0])
        text = finish(busy, SLACK_S)
        stand_check('ended' in text, text)


def bridge_controller_killed(build):
    """It does not count on: who has commands under way sees that."""
    with bridged(build) as s:
        busy = s.borrow([], s.name, 60000, program='remote_busy')
        wait_line(busy, 'busy')
        s.controllers[0].kill()
        text = finish(busy, 60)
        stand_check('ended' in text, text)


def bridge_falls_silent(build):
    """Where nobody is left who could say that the controller is gone, it shows by its count, long before the lease ends."""
    with bridged(build) as s:
        busy = s.borrow([], s.name, 120000, program='remote_busy')
        wait_line(busy, 'busy')
        began = time.monotonic()
        s.lender.kill()
        s.controllers[0].kill()
        text = finish(busy, 60)
        took = time.monotonic() - began
        # Before the end, too, it may have counted late.
        stand_check(took > 5, f'it took {took:.1f} s')
        stand_check('ended' in text, text)


def bridge_elsewhere(build):
    """Who does not have that memory is told."""
    with bridged(build) as s, tempfile.NamedTemporaryFile(dir='/dev/shm') as other:
        other.truncate(1 << 20)
        s.borrower_env = {'WEFT_BRIDGE': other.name}
        busy = s.borrow([], s.name, 60000, program='remote_busy')
        text = busy.communicate(timeout=30)[0]
        stand_check(busy.returncode and 'queue pair: -19' in text, text)


def bridge_scribbles(build):
    """What a machine writes over all of it ends its own pairs at most: the controller serves the next ones."""
    seed = int.from_bytes(os.urandom(4), 'little')
    print('seed', seed)
    chance = random.Random(seed)
    with bridged(build) as s:
        busy = s.borrow([], s.name, LEASE_MS, program='remote_busy')
        wait_line(busy, 'busy')
        # All but the head: doorbells, entries, lists and data of the pair, whose first page is behind the head
        for _ in range(2000):
            at = 4096 + 4 * chance.randrange((3 << 20) // 4 if chance.random() < 0.5 else 4096)
            os.pwrite(s.bridge.fileno(), chance.randbytes(4), at)
        busy.kill()
        busy.communicate()
        stand.wait_until('the lease ends', lambda: not s.leases(), LEASE_S + SLACK_S)
        finish(s.borrow([], s.name), 60)


def partition_canaries(build):
    """Memory of a borrower that is cut off is the program's when it hears so, also after the wire is whole again."""
    for how in ('stream', 'sleep'):
        with hosts.Hosts() as two, Far(build, 'tcp', two.address('a'), 7471, net_of(two, 'a')) as s, \
                driven.Driven(s) as beside, \
                driven.Driven(s, s.name, net_of(two, 'b'), {'WEFT_FABRIC': 'tcp'}) as borrower:
            beside.use(20000, 'own', first=8192, cnt=2048, depth=8)
            lease = borrower.use(LEASE_MS, how)
            two._in_net('a', 'ip', 'link', 'set', 'eth0', 'down')
            borrower.fails(LEASE_S + SLACK_S, -errno.ESTALE, -errno.ECANCELED, -errno.ENOTCONN)
            borrower.ask('fill', 0x5a)
            borrower.hears(driven.LEASE_ENDED, lease)
            borrower.hears(driven.LENDER_LOST)
            stand.wait_until('the lease ends', lambda: lease not in [it['lease'] for it in s.leases()], SLACK_S)
            two._in_net('a', 'ip', 'link', 'set', 'eth0', 'up')
            borrower.hears(driven.LENDER_BACK)
            borrower.ask('check', 0x5a)
            borrower.ask('return')
            borrower.use(20000, how)
            borrower.ask('stop')
            beside.goes_on()


def garbage(build):
    """What is sent by who can't behave harms nobody else: a borrower that checks all it reads goes on."""
    seed = int.from_bytes(os.urandom(4), 'little')
    print('seed', seed)
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        holder = s.borrow([], s.name, LEASE_MS, program='remote_busy')
        wait_line(holder, 'busy')
        liars = [s.borrow([], *s.name.split(':'), seed + n, 300, program='remote_garbage') for n in range(2)]
        for liar in liars:
            text = finish(liar)
            stand_check(int(text.split()[-2]) > 2, text)
        stand_check(holder.poll() is None, 'the borrower has ended')
        # One of three messages is any bytes. The line may be among those that are left out.
        lines = s.lender.errors.read_text(errors='replace').count('the door drops a message of version')
        stand_check(lines <= 1, f'{lines} lines of another version')
        holder.kill()
        holder.communicate()
        stand.wait_until('leases end', lambda: not s.leases(), LEASE_S + SLACK_S)
        finish(s.borrow([], s.name, 1))


def listening(pid):
    """The TCP ports at which a process listens"""
    inodes = set()
    for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir():
        try:
            inodes.add(os.readlink(fd).removeprefix('socket:[').removesuffix(']'))
        except FileNotFoundError:
            pass
    rows = [line.split() for line in pathlib.Path(f'/proc/{pid}/net/tcp').read_text().splitlines()[1:]]
    return {int(row[1].split(':')[1], 16) for row in rows if row[3] == '0A' and row[9] in inodes}


def strangers(build):
    """Who reaches the endpoints of a borrower, of its sessions and of the lender, and has no key, changes nothing: a borrower
    that checks all it reads goes on."""
    seed = int.from_bytes(os.urandom(4), 'little')
    print('seed', seed)
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        victim = s.borrow([], s.name, 1, 'long', stdin=subprocess.PIPE)
        wait_line(victim, 'busy')
        sent = rounds = 0
        until = time.monotonic() + 5
        while victim.poll() is None and (time.monotonic() < until or sent <= 100 and rounds < 30):
            ports = set()
            for pid in (s.controllers[0].pid, s.lender.pid, victim.pid):
                try:
                    ports |= listening(pid)
                except FileNotFoundError:
                    pass
            those = [s.borrow([], '127.0.0.1', number, seed + rounds, 300, program='remote_stranger')
                     for number in sorted(ports)]
            rounds += 1
            for process in those:
                # One at which nobody listens any more has sent nothing.
                text = process.communicate(timeout=60)[0]
                found = re.search(r'^(\d+) sent', text, re.M)
                sent += int(found[1]) if found else 0
        # That ends its input, at which it ends.
        finish(victim)
        print(f'{sent} in {rounds} rounds')
        stand_check(sent > 100, f'{sent} in {rounds} rounds')
        stand.wait_until('leases end', lambda: not s.leases(), LEASE_S + SLACK_S)
        finish(s.borrow([], s.name, 1))


def unreached(build):
    """Who names endpoints that there are not takes no answers away from others."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        print(finish(s.borrow([], '127.0.0.1', s.port, stand.free_port(), 600, program='remote_unreached'), 60))
        finish(s.borrow([], s.name, 1))


def say(borrowers, line):
    for process in borrowers:
        process.stdin.write(line)
        process.stdin.flush()


def starving(borrowers, kinds):
    """Who has read much less than others of its kind so far: (kind, counts) or None"""
    say(borrowers, 'count\n')
    counts = [int(process.stdout.readline() or -1) for process in borrowers]
    for kind in set(kinds):
        some = [count for count, its in zip(counts, kinds) if its == kind]
        if min(some) < max(1, statistics.median(some) / 20):
            return kind, some
    return None


def together(borrowers, kinds):
    """Has all of them write and read for a while. Each reads a share of what those of its kind do, before long: the
    machine, too, may be slow to let one of them run."""
    for process in borrowers:
        wait_line(process, 'ready', 60)
    say(borrowers, 'go\n')
    began = time.monotonic()
    # Not a synchronization: so long they are in each other's way at least.
    time.sleep(4)
    while (found := starving(borrowers, kinds)) and time.monotonic() - began < 60:
        time.sleep(1)
    say(borrowers, 'end\n')
    for process in borrowers:
        finish(process)
    stand_check(not found, f'one starves: {found}')


def many(build):
    """32 remote borrowers, half of them blocking, beside four mapped ones, which all check what they read"""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        kinds = [('remote', 'remote, blocking')[n % 2] for n in range(32)] + ['mapped'] * 4
        together([s.borrow([], s.socket if kind == 'mapped' else s.name, n, 0, *(['blocking'] if 'blocking' in kind else []),
                           program='remote_share', stdin=subprocess.PIPE) for n, kind in enumerate(kinds)], kinds)
        stand.wait_until('leases end', lambda: not s.leases(), LEASE_S + SLACK_S)


def many_hosts(build):
    """Eight borrowers of another host beside two mapped ones"""
    with hosts.Hosts() as two:
        with Far(build, 'tcp', two.address('a'), 7471, net_of(two, 'a')) as s:
            kinds = ['remote'] * 8 + ['mapped'] * 2
            together([s.borrow(*(([], s.socket) if kind == 'mapped' else (net_of(two, 'b'), s.name)), n, program='remote_share',
                               stdin=subprocess.PIPE) for n, kind in enumerate(kinds)], kinds)


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def rounds(build):
    """Nothing is left of a borrower that has given everything back."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        pids = s.controllers[0].pid, s.lender.pid
        finish(s.borrow([], s.name, 0, 10, program='remote_share'))
        finish(s.borrow([], s.socket, 0, 10, program='remote_share'))
        # Sessions linger until their end is told.
        before = [descriptors(pid) for pid in pids]
        text = finish(s.borrow([], s.name, 0, 100, program='remote_share'), 120)
        first, last = map(int, text.split())
        stand_check(first == last, f'descriptors of the borrower: {text}')
        # A closed connection's may go a little later.
        stand.wait_until(f'descriptors are as they were, {before}',
                         lambda: all(descriptors(pid) <= was + 2 for pid, was in zip(pids, before)), SLACK_S)


def stopped(build):
    """Borrowers that are stopped past their leases find their commands cancelled, and nothing of them is in the way of
    others."""
    with Far(build, 'tcp', '127.0.0.1', stand.free_port()) as s:
        other = s.borrow([], s.name, 20, program='remote_share', stdin=subprocess.PIPE)
        wait_line(other, 'ready')
        say([other], 'go\n')
        held = [s.borrow([], s.name, LEASE_MS, program='remote_busy') for _ in range(3)]
        for busy in held:
            wait_line(busy, 'busy')
        for busy in held:
            busy.send_signal(signal.SIGSTOP)
        stand.wait_until('the leases end', lambda: len(s.leases()) == 1, LEASE_S + SLACK_S)
        reads = s.reads()
        stand.wait_until('others read on', lambda: s.reads() > reads + 10, SLACK_S)
        for busy in held:
            busy.send_signal(signal.SIGCONT)
        for busy in held:
            stand_check('ended' in finish(busy), 'it does not know')
        say([other], 'end\n')
        finish(other)
        stand_check(s.weft_devices('list')['devices'][0]['queue_pairs_free'] == 64, 'a queue pair is lost')


def stand_check(condition, what):
    if not condition:
        raise stand.Failed(what)


def main(build, case):
    try:
        globals()[case](os.path.abspath(build))
    except hosts.Unavailable as why:
        print(f'no namespaces: {why}')
        sys.exit(SKIP)
    except stand.Failed as why:
        sys.exit(f'{case}: {why}')


if __name__ == '__main__':
    main(*sys.argv[1:])
