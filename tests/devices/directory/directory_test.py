#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""directory_test.py BUILD CASE - lenders and borrowers that meet at etcd

CASE is one of the functions below. Each starts the members and lenders that it needs. Bounds are those that docs/devices.md
names, and some seconds for a machine that is busy.
"""
import base64
import concurrent.futures
import json
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

from parts import Certificates, Site, encoded  # noqa: E402
from stand import END_S, check, run_case, wait_until  # noqa: E402

SKIP = 77

# enum weft_event_kind
DEVICE_ADDED, DEVICE_REMOVED, _, LENDER_LOST, LENDER_BACK, DEVICE_CHANGED, LENDER_ADDED, LENDER_REMOVED, \
    DIRECTORY_LOST, DIRECTORY_BACK = range(10)

# A registration is gone 6 s after its lender has died or the members have elected a leader, a watch moves within 5 s, a member has 2 s to answer, members that
# elect a leader have 5 s.
GONE_S, MOVE_S, ELECT_S, SLACK_S = 6, 5, 5, 20


class Events:
    """Those that a borrower hears, as many as have come so far"""

    def __init__(self, borrower):
        self.borrower = borrower
        self.heard = []

    def take(self):
        self.heard += [int(kind) for kind in self.borrower.ask('events')[1:]]
        return self.heard

    def wait(self, kind, seconds, never=None):
        wait_until(f'event {kind}', lambda: kind in self.take(), seconds)
        check(never not in self.heard, f'event {never} among {self.heard}')
        self.heard.clear()


class Lines:
    """The objects that 'weft devices --watch --json' has written"""

    def __init__(self, process):
        self.process = process
        self.seen = []

    def wait(self, event, seconds, name=None):
        def found():
            while not self.process.lines.empty():
                self.seen.append(json.loads(self.process.lines.get()))
            return any(line['event'] == event and (not name or line.get('name') == name) for line in self.seen)
        wait_until(f'{event} of {name} is watched', found, seconds)
        self.seen.clear()


def reads_on(borrower):
    """The device goes on: some more reads, and no error."""
    before = int(borrower.ask('reads')[1])

    def more():
        error, cnt = borrower.ask('reads')
        check(error == '0', f'a read fails: {error}')
        return int(cnt) > before + 20
    wait_until('reads go on', more, SLACK_S)


def one_dead(site, borrower, events, watch, names):
    """With one of three members dead, the leader, everything goes on, and that the others elect another one is no event."""
    dead = site.leader()
    site.members[dead].kill()
    status, out, errors, seconds = site.weft_devices('--json')
    check(status == 0 and len(json.loads(out)['devices']) == 2, f'the list with one dead member: {errors}')
    check(seconds < 2 + ELECT_S + SLACK_S, f'the list takes {seconds:.1f} s with one dead member')
    # A controller comes and goes, and a lender.
    site.controllers[0].kill()
    events.wait(DEVICE_REMOVED, MOVE_S + ELECT_S + SLACK_S, never=DIRECTORY_LOST)
    watch.wait('device-removed', SLACK_S, names[0])
    site.lenders[0].kill()
    site.start_controller(0)
    events.wait(LENDER_REMOVED, 2 * GONE_S + ELECT_S + SLACK_S)
    watch.wait('lender-removed', SLACK_S)
    check(list(site.devices()) == [names[1]], 'a lender that has died is listed')
    site.start_lender(0)
    events.wait(LENDER_ADDED, SLACK_S, never=DIRECTORY_LOST)
    watch.wait('device-added', SLACK_S, names[0])
    reads_on(borrower)
    return dead


def two_dead(site, borrower, events, watch, names):
    """Without a majority errors are clear and bounded, and what is known and borrowed is used as ever."""
    dead = site.leader()
    site.members[dead].kill()
    events.wait(DIRECTORY_LOST, MOVE_S + ELECT_S + SLACK_S)
    watch.wait('directory-lost', SLACK_S)
    status, _, errors, seconds = site.weft_devices()
    check(status == 1 and 'majority' in errors, f'the list without a majority says: {errors}')
    check(seconds < 3 * 2 + ELECT_S + SLACK_S, f'it takes {seconds:.1f} s to say so')
    # Leases of 3 s are renewed meanwhile, and one that is known of is borrowed.
    reads_on(borrower)
    listed = borrower.ask('list')
    check(listed[0] == '0' and len(listed) == 3, f'what is known is listed: {listed}')
    check(borrower.ask('return') == ['0'], 'a device is returned')
    answer = borrower.ask(f'borrow {names[0]} 12000')
    check(answer == ['0', names[0]], f'a device that is known is borrowed: {answer}')
    reads_on(borrower)
    check(borrower.ask('share') == ['0'], 'a segment has an address')
    check(borrower.ask('close') == ['-16'], 'a directory of which a device is borrowed is not closed')
    return dead


def members(build):
    """Three members, of which one and then two are killed."""
    with Site(build) as site:
        names = sorted(site.wait_devices(2), key=lambda name: name[-1])
        borrower = site.borrower()
        events = Events(borrower)
        watch = Lines(site.start('watch', site.build / 'tools/weft', 'devices', f'--directory={site.urls}', '--watch',
                                 '--json'))
        watch.wait('device', SLACK_S, names[1])
        answer = borrower.ask(f'borrow {names[1]} 12000')
        check(answer == ['0', names[1]], f'a device is borrowed by its name: {answer}')
        watch.wait('device-changed', SLACK_S, names[1])
        events.wait(DEVICE_CHANGED, SLACK_S)
        dead = one_dead(site, borrower, events, watch, names), two_dead(site, borrower, events, watch, names)
        for i in dead:
            site.start_member(i)
        events.wait(DIRECTORY_BACK, 20)
        watch.wait('directory-back', SLACK_S)
        site.wait_devices(2)
        wait_until('states are as they are', lambda: site.devices() == {names[0]: 'exclusive', names[1]: 'free'},
                   SLACK_S)
        reads_on(borrower)
        check(borrower.ask('return') == ['0'] and borrower.ask('close') == ['0'], 'the directory is closed')


def registrations(build):
    """What etcd has lost comes back, what others have written there does no harm, and a lender that ends is gone."""
    with Site(build, members=1) as site:
        names = sorted(site.wait_devices(2))
        prefix = {'key': encoded('/weft/lenders/'), 'range_end': encoded('/weft/lenders0')}
        lease = site.ask_member(0, 'kv/range', prefix)['kvs'][0]['lease']
        site.ask_member(0, 'lease/revoke', {'ID': lease})
        site.wait_devices(2)
        site.ask_member(0, 'kv/deleterange', prefix)
        site.wait_devices(2)
        # Keys that are no lender's, and values that are none.
        for i, value in enumerate(('', '{', '[]', '\x1b[2J', '{"version":1}', b'\xff\xfe')):
            for key in f'/weft/lenders/{i:016x}', f'/weft/lenders/{i}\x1b', f'/weft/lenders/{"a" * 400}{i}':
                site.ask_member(0, 'kv/put', {'key': encoded(key), 'value': encoded(value)})
        status, out, errors, _ = site.weft_devices()
        check(status == 0 and all(name in out for name in names) and '\x1b' not in out + errors,
              f'strangers in the directory: {out}{errors}')
        # More lenders than are read at once, of whom nobody is there.
        value = site.ask_member(0, 'kv/range', prefix)['kvs'][-1]['value']
        for i in range(150):
            site.ask_member(0, 'kv/put', {'key': encoded(f'/weft/lenders/0000000000001{i:03x}'), 'value': value})
        check(sorted(site.devices()) == names, 'a value of another key')
        commands(site, names)
        for lender in site.lenders:
            lender.signal(signal.SIGTERM)
        # Each ends its registration before it ends.
        for lender in site.lenders:
            lender.popen.wait(END_S)
        site.wait_devices(0, 3)
        elsewhere(site)


def commands(site, names):
    """The commands of 'weft devices' find the lender of a device."""
    status, out, errors, _ = site.weft_devices('id-ctrl', names[1])
    check(status == 0 and names[1][-5:] in out, f'id-ctrl: {errors}')
    status, ticket, errors, _ = site.weft_devices('borrow', names[1], '--for=30')
    check(status == 0, f'borrow: {errors}')
    status, out, errors, _ = site.weft_devices('leases')
    check(status == 0 and names[1] in out and names[0] not in out, f'leases: {out}{errors}')
    status, _, errors, _ = site.weft_devices('borrow', names[1])
    check(status == 1 and 'others have borrowed it' in errors, f'borrow: {errors}')
    status, _, errors, _ = site.weft_devices('borrow', 'nvme-')
    check(status == 1 and 'not unique' in errors, f'borrow: {errors}')
    status, _, errors, _ = site.weft_devices('return', ticket.strip())
    check(status == 0, f'return: {errors}')
    status, _, errors, _ = site.weft_devices('return', ticket.strip())
    check(status == 1 and 'has ended' in errors, f'return: {errors}')
    # What programs do that take no options; WEFT_LENDER comes first.
    status, out, errors, _ = site.weft_devices(env={'WEFT_DIRECTORY': site.urls, 'WEFT_LENDER': ''})
    check(status == 0 and all(name in out for name in names), f'WEFT_DIRECTORY: {out}{errors}')
    status, out, errors, _ = site.weft_devices(env={'WEFT_DIRECTORY': 'http://a',
                                                    'WEFT_LENDER': f'{site.folder}/lender0'})
    check(status == 0 and out.count('nvme-') == 1, f'WEFT_LENDER: {out}{errors}')


def elsewhere(site):
    """A lender that is started again elsewhere is found there by who has a lease of it."""
    site.start_lender(0)
    site.wait_devices(1)
    borrower = site.borrower()
    name = borrower.ask('borrow - 24000')[1]
    # The first one asks the lender what blocks there are.
    reads_on(borrower)
    site.lenders[0].kill()
    site.start_lender(0, socket='elsewhere')
    events = Events(borrower)
    events.wait(LENDER_BACK, SLACK_S)
    reads_on(borrower)
    check(borrower.ask('return') == ['0'], f'{name} is returned')


def by_ticket(site, command, ticket, **where):
    """A command about a lease, which needs no directory: it waits for none."""
    status, _, errors, seconds = site.weft_devices(command, ticket, **where)
    check(status == 0, f'{command}: {errors}')
    check(seconds < 10, f'{command} takes {seconds:.1f} s')


def no_member(site, names, tickets):
    """Leases are renewed, shared, used and returned, each by its ticket."""
    status, _, errors, _ = site.weft_devices()
    check(status == 1 and 'of the directory' in errors, f'the list: {errors}')
    by_ticket(site, 'renew', tickets[0])
    by_ticket(site, 'share', tickets[0])
    # As programs do that have a ticket, and find the rest in their environment.
    for env in {'WEFT_DIRECTORY': site.urls, 'WEFT_LENDER': ''}, {'WEFT_DIRECTORY': '', 'WEFT_LENDER': ''}:
        by_ticket(site, 'renew', tickets[1], env=env)
    status, out, errors, _ = site.weft_devices('leases', names[0], env={'WEFT_DIRECTORY': site.urls,
                                                                        'WEFT_LENDER': f'{site.folder}/lender0'})
    check(status == 0 and 'shared' in out, f'the lease is not shared: {out}{errors}')
    for ticket in tickets[:2]:
        by_ticket(site, 'return', ticket)
        status, _, errors, _ = site.weft_devices('return', ticket)
        check(status == 1 and 'has ended' in errors, f'it is returned twice: {errors}')


def tickets(build):
    """While no member is there, or none answers, nobody needs them who has a ticket; and where a lender has moved they
    say where it is."""
    with Site(build, members=1) as site:
        names = sorted(site.wait_devices(2), key=lambda name: name[-1])

        def borrow():
            site.wait_devices(2)
            done = [site.weft_devices('borrow', name) for name in names]
            check(not any(status for status, *_ in done), f'borrow: {done}')
            return [out.strip() for _, out, *_ in done]

        # Borrowed by a command beside them, which does not find its lender by the directory.
        inside = 'echo begun; read line; "$0" devices renew "$WEFT_TICKET" && "$0" devices list && echo renewed'
        lent = borrow()
        site.members[0].kill()
        no_member(site, names, lent)
        site.start_member(0)
        site.wait_members(0)
        site.wait_devices(2)
        command = site.start('command', site.build / 'tools/weft', 'devices', f'--directory={site.urls}', 'borrow',
                             names[0], '--', 'sh', '-c', inside, site.build / 'tools/weft')
        check(command.line() == 'begun', 'a command begins')
        site.members[0].signal(signal.SIGSTOP)
        command.popen.stdin.write('\n')
        command.popen.stdin.flush()
        wait_until('the command uses its lease', lambda: command.line(20) == 'renewed', 20)
        check(command.popen.wait(10) == 0, command.text())
        site.members[0].signal(signal.SIGCONT)
        lent = borrow()
        site.members[0].signal(signal.SIGSTOP)
        no_member(site, names, lent)
        site.members[0].signal(signal.SIGCONT)
        moved = borrow()[0]
        site.lenders[0].kill()
        site.start_lender(0, socket='elsewhere')
        site.wait_devices(2)
        by_ticket(site, 'renew', moved)
        # Another one is where it was.
        site.lenders[1].kill()
        site.start_lender(1, socket='lender0')
        site.wait_devices(2)
        wait_until('the lender is found', lambda: site.weft_devices('return', moved)[0] == 0, SLACK_S)


def door(build):
    """A lender whose socket can't be reached has an address, and one that has begun again another one."""
    with Site(build, members=1, lenders=1, door=True) as site:
        site.wait_devices(1)
        provider_is(site, 'tcp')
        (site.folder / 'lender0').unlink()
        borrower = site.borrower()
        check(borrower.ask('borrow - 24000')[0] == '0', f'a device is borrowed: {borrower.text()}')
        reads_on(borrower)
        site.lenders[0].kill()
        site.start_lender(0)
        (site.folder / 'lender0').unlink()
        reads_on(borrower)
        events = Events(borrower)
        events.wait(LENDER_BACK, 2 * SLACK_S)
        check(borrower.ask('return') == ['0'], 'it is returned')


def provider_is(site, provider):
    """The directory, and whoever lists devices, knows by which provider a lender is reached from elsewhere."""
    prefix = {'key': encoded('/weft/lenders/'), 'range_end': encoded('/weft/lenders0')}
    value = site.ask_member(0, 'kv/range', prefix)['kvs'][0]['value']
    check(json.loads(base64.b64decode(value))['provider'] == provider, f'registered: {base64.b64decode(value)}')
    for env in {}, {'WEFT_DIRECTORY': '', 'WEFT_LENDER': f'{site.folder}/lender0'}:
        status, out, errors, _ = site.weft_devices('--json', env=env)
        check(status == 0 and json.loads(out)['devices'][0]['provider'] == provider, f'listed: {out}{errors}')
        status, out, errors, _ = site.weft_devices(env=env)
        head, line = out.splitlines()
        check(line[head.index('REMOTE'):].split()[0] == (provider or '-'), f'listed: {out}{errors}')


def providers(build):
    """A lender without a door has no provider; one of another provider than the default one is reached over that, which
    nobody has to be told."""
    with Site(build, members=1, lenders=1) as site:
        site.wait_devices(1)
        provider_is(site, '')
    with Site(build, members=1, lenders=1, door='link') as site:
        site.wait_devices(1)
        provider_is(site, 'link')
        (site.folder / 'lender0').unlink()
        borrower = site.borrower()
        check(borrower.ask('borrow - 60000')[0] == '0', f'a device is borrowed: {borrower.text()}')
        reads_on(borrower)
        check(borrower.ask('return') == ['0'], 'it is returned')
        # Nor has a command that is started with a lease.
        status, _, errors, _ = site.weft_devices('borrow', '--', 'sh', '-c', '"$0" devices renew "$WEFT_TICKET"',
                                                 str(site.build / 'tools/weft'))
        check(status == 0, f'the command renews its lease: {errors}')


def stopped(build):
    """A member that is stopped, and says nothing, is not waited for for long; one that goes on serves again."""
    with Site(build, lenders=1) as site:
        site.wait_devices(1)
        borrower = site.borrower()
        events = Events(borrower)
        for member in site.members:
            member.signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            meanwhile = pool.submit(site.weft_devices)
            events.wait(DIRECTORY_LOST, MOVE_S + 4 * 2 + SLACK_S)
            status, _, errors, seconds = meanwhile.result()
        check(status == 1 and 'no member of the directory answers' in errors, f'none answers: {errors}')
        check(seconds < 3 * 2 + SLACK_S, f'it takes {seconds:.1f} s to say so')
        for member in site.members:
            member.signal(signal.SIGCONT)
        events.wait(DIRECTORY_BACK, 3 * 2 + SLACK_S)
        # What has run out meanwhile is registered again.
        wait_until('the device is listed', lambda: len(borrower.ask('list')) == 2, 2 * SLACK_S)
        site.wait_devices(1)
        events.take().clear()
        # Whichever has the watch.
        site.members[0].signal(signal.SIGSTOP)
        check(borrower.ask('borrow - 12000')[0] == '0', 'a device is borrowed')
        events.wait(DEVICE_CHANGED, MOVE_S + 3 * 2 + SLACK_S)
        reads_on(borrower)
        site.members[0].signal(signal.SIGCONT)


def tls(build):
    """Over TLS, by a certificate that is trusted, and not by another one."""
    with Site(build, members=1, lenders=0, options=['--auto-tls']) as site:
        wait_until('there is a certificate', site.certificate.exists, 20)
        wait_until('the member works', lambda: site.weft_devices()[0] == 0, 20)
        site.start_controller(0)
        site.start_lender(0)
        site.wait_devices(1)
        # Each ends while its thread is in the TLS library.
        for _ in range(10):
            status, _, errors, _ = site.weft_devices('leases')
            check(status == 0 and not errors, f'{status}: {errors}')
        status, _, errors, _ = site.weft_devices(env={'ETCDCTL_CACERT': ''})
        check(status == 1 and 'not trusted' in errors, errors)
        status, _, errors, _ = site.weft_devices(env={'ETCDCTL_CACERT': '/none'})
        check(status == 1 and 'not trusted' in errors, errors)
        status, _, errors, _ = site.weft_devices(urls=site.urls.replace('https', 'http'))
        check(status == 1, 'a member of TLS answers without')


NOT_TRUSTED = 'the directory refuses, or is not trusted (ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY)'


def mutual(build):
    """Members that take nobody without a certificate: who shows one that they trust does all, and others nothing."""
    if not shutil.which('openssl'):
        print('openssl is not installed')
        sys.exit(SKIP)
    with Site(build, lenders=0, mutual=True) as site:
        wait_until('the members work', lambda: site.weft_devices()[0] == 0, 20)
        stranger = Certificates(site.folder / 'stranger', 'client').client('client')
        right = site.certificates.client('client')
        none = {'ETCDCTL_CERT': '', 'ETCDCTL_KEY': ''}
        # What is refused when the connection stands may be told by a reset, or by an alert.
        for what, env in (*(('none', none), ("a stranger's", stranger)) * 8,
                          ('another key', {**right, 'ETCDCTL_KEY': stranger['ETCDCTL_KEY']}),
                          ('no such file', {**right, 'ETCDCTL_CERT': '/none'}),
                          ("a stranger's authority", {'ETCDCTL_CACERT': str(site.folder / 'stranger' / 'ca.pem')})):
            status, _, errors, _ = site.weft_devices(env=env)
            check(status == 1 and NOT_TRUSTED in errors, f'{what}: {status}: {errors}')
        site.start_controller(0)
        # It lends, but is not registered, and says why.
        site.start_lender(0, env=none)
        wait_until('the lender says so', lambda: 'ETCDCTL_CERT' in site.lenders[0].text(), 3 * 2 + SLACK_S)
        check(not site.devices(), 'a lender without a certificate is registered')
        site.lenders[0].kill()
        site.start_lender(0)
        name, = site.wait_devices(1)
        borrower = site.borrower()
        events = Events(borrower)
        check(borrower.ask(f'borrow {name} 60000') == ['0', name], 'a device is borrowed')
        reads_on(borrower)
        events.wait(DEVICE_CHANGED, MOVE_S + SLACK_S)
        # The one that has the watch, or another one.
        site.members[0].kill()
        site.lenders[0].kill()
        events.wait(LENDER_REMOVED, 2 * GONE_S + ELECT_S + SLACK_S, never=DIRECTORY_LOST)
        site.start_lender(0)
        events.wait(LENDER_ADDED, GONE_S + ELECT_S + SLACK_S, never=DIRECTORY_LOST)
        reads_on(borrower)
        check(borrower.ask('return') == ['0'] and borrower.ask('close') == ['0'], 'the directory is closed')


def absent(build):
    """Without members, without libweft-directory.so, with what is no URL: what is wrong is said."""
    with Site(build, members=0, lenders=0) as site:
        status, _, errors, _ = site.weft_devices(urls='http://127.0.0.1:1')
        check(status == 1 and 'no member of the directory is there' in errors, errors)
        status, _, errors, _ = site.weft_devices(urls='127.0.0.1:1')
        check(status == 2 and 'http://HOST' in errors, errors)
        status, _, errors, _ = site.weft_devices(urls='http://a,b')
        check(status == 2 and 'http://HOST' in errors, errors)
        site.start_controller(0)
        tool = site.folder / 'bin' / 'weft'
        tool.parent.mkdir()
        shutil.copy(site.build / 'tools' / 'weft', tool)
        for library in [*site.build.glob('core/libfabric.so.1'), *site.build.glob('btl/libweft-btl.so.0'),
                        site.build / 'devices' / 'libweft-device.so.0']:
            shutil.copy(library, tool.parent)
        for command in ('devices', '--directory=http://a'), \
                ('lend', '--directory=http://a', f'--state={site.folder}', f'--socket={site.folder}/s',
                 site.folder / 'slot0'):
            process = site.start(command[0], 'env', f'LD_LIBRARY_PATH={tool.parent}', tool, *command)
            status = process.popen.wait(10)
            check(status == 1 and 'there is no libweft-directory.so' in process.text(),
                  f'{command}: {status}: {process.text()}')
        # Who names no directory has nothing of HTTP.
        for path in tool, tool.parent / 'libweft-device.so.0':
            needs = subprocess.run(['ldd', path], capture_output=True, text=True, check=True).stdout
            check('libcurl' not in needs, f'{path.name} needs {needs}')


CASES = (members, registrations, tickets, door, providers, stopped, tls, mutual, absent)


def main(build, name):
    if name != 'absent' and not shutil.which('etcd'):
        print('etcd is not installed')
        return SKIP
    return run_case(CASES, build, name)


sys.exit(main(*sys.argv[1:]))
