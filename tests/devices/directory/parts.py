# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a site with a directory has, for directory_test.py: members of etcd, lenders with a controller each, programs

Everything is in one temporary folder, on ports that are free, and ends with it: processes are ended by their ids.
"""
import base64
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import stand  # noqa: E402
from stand import Failed, check, wait_until  # noqa: E402


def free_ports(cnt):
    ports = set()
    while len(ports) < cnt:
        ports.add(stand.free_port())
    return list(ports)


class Talker(stand.Process):
    """One that is asked on standard input, if it is, and whose lines on standard output are taken by a thread."""

    def __init__(self, name, command, folder, env=None, **more):
        super().__init__(name, command, folder, env, stdin=subprocess.PIPE, **more)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.put(line.rstrip('\n'))
        self.lines.put(None)

    def line(self, seconds=30):
        """The next line that it says."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            line = None
        if line is None:
            raise Failed(f'{self.name} says nothing in {seconds} s:\n{self.text()}')
        return line

    def ask(self, command, seconds=30):
        """A command of borrower.c: the words of the answer."""
        self.popen.stdin.write(command + '\n')
        self.popen.stdin.flush()
        return self.line(seconds).split()


class Certificates:
    """An authority and what it has signed, in a folder: NAME.pem and NAME.key"""

    SIGNED = 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n'

    def __init__(self, folder, *names):
        self.folder = folder
        folder.mkdir()
        (folder / 'signed').write_text(self.SIGNED)
        self.make('ca', '-x509', '-days', '2', '-out', folder / 'ca.pem')
        for name in names:
            self.make(name, '-out', folder / f'{name}.request')
            self.openssl('x509', '-req', '-in', folder / f'{name}.request', '-CA', folder / 'ca.pem', '-CAkey',
                         folder / 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', folder / 'signed', '-out',
                         folder / f'{name}.pem')

    def make(self, name, *more):
        self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj',
                     f'/CN={name}', '-keyout', self.folder / f'{name}.key', *more)

    @staticmethod
    def openssl(*command):
        done = subprocess.run(['openssl', *map(str, command)], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        check(done.returncode == 0, f'openssl {command[0]}: {done.stderr}')

    def file(self, name):
        return str(self.folder / name)

    def client(self, name):
        """The environment of a program that has a certificate"""
        return {'ETCDCTL_CERT': self.file(f'{name}.pem'), 'ETCDCTL_KEY': self.file(f'{name}.key')}


class Site:
    """Members of etcd, lenders and programs, from 'with' to its end. With @mutual everybody has a certificate, and shows
    it; with @door lenders have one, of the provider that it names, if it does."""

    def __init__(self, build, members=3, lenders=2, options=(), door=False, mutual=False):
        self.build = pathlib.Path(build).resolve()
        self.folder = None
        self.member_cnt, self.lender_cnt = members, lenders
        self.options = list(options)
        self.door = door
        self.mutual = mutual
        self.certificates = None
        self.scheme = 'https' if '--auto-tls' in self.options or mutual else 'http'
        self.members, self.controllers, self.lenders, self.others = [], [], [], []

    @property
    def env(self):
        env = stand.library_env(self.build)
        if self.scheme == 'https':
            env['ETCDCTL_CACERT'] = str(self.certificate)
        if self.mutual:
            env.update(self.certificates.client('client'))
        return env

    @property
    def certificate(self):
        """Of the authority, or what a member with --auto-tls has made for itself"""
        if self.mutual:
            return self.certificates.folder / 'ca.pem'
        return self.folder / 'm0' / 'fixtures' / 'client' / 'cert.pem'

    @property
    def urls(self):
        return ','.join(f'{self.scheme}://127.0.0.1:{port}' for port in self.ports)

    def start_member(self, i):
        peers = ','.join(f'm{k}=http://127.0.0.1:{port}' for k, port in enumerate(self.peer_ports))
        at, peer = f'{self.scheme}://127.0.0.1:{self.ports[i]}', f'http://127.0.0.1:{self.peer_ports[i]}'
        self.members[i:i + 1] = [Talker(
            f'etcd{i}', ['etcd', f'--name=m{i}', f'--data-dir={self.folder}/m{i}', f'--listen-client-urls={at}',
                         f'--advertise-client-urls={at}', f'--listen-peer-urls={peer}',
                         f'--initial-advertise-peer-urls={peer}', f'--initial-cluster={peers}',
                         f'--initial-cluster-token={self.folder.name}', '--logger=zap', '--log-level=error',
                         *self.options], self.folder)]

    def ask_member(self, i, path, body, seconds=20):
        """What etcd itself says."""
        request = urllib.request.Request(f'http://127.0.0.1:{self.ports[i]}/v3/{path}', json.dumps(body).encode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=seconds) as answer:
            return json.loads(answer.read())

    def works(self, i):
        try:
            return self.ask_member(i, 'kv/range', {'key': encoded('x')}, 2)
        except OSError:
            return None

    def leader(self):
        """Which member leads the others, once one does."""
        def found():
            for i, member in enumerate(self.members):
                if member.popen.poll() is None:
                    status = self.status(i)
                    if status and status.get('leader', '0') == status['header']['member_id']:
                        return [i]
            return None
        return wait_until('a member leads', found, 20)[0]

    def status(self, i):
        """What a member says of itself, or None."""
        try:
            return self.ask_member(i, 'maintenance/status', {}, 2)
        except OSError:
            return None

    def wait_members(self, *which):
        for i in which:
            wait_until(f'member {i} works', lambda i=i: self.works(i), 20)

    def start_controller(self, i):
        slot = self.folder / f'slot{i}'
        self.controllers[i:i + 1] = [Talker(
            f'nvmed{i}', [self.build / 'devices/nvmed/weft-nvmed', f'--slot={slot}', '--memory=16M',
                          f'--serial=TEST{i}', *(['--fabric', '--address=127.0.0.1'] if self.door else [])],
            self.folder)]
        self.controllers[i].line()

    def start_lender(self, i, socket=None, env=None):
        fabric = f'--fabric={self.door}' if isinstance(self.door, str) else '--fabric'
        door = [fabric, '--address=127.0.0.1', f'--port={free_ports(1)[0]}'] if self.door else []
        self.lenders[i:i + 1] = [Talker(
            f'lender{i}', [self.build / 'tools/weft', 'lend', f'--socket={socket or f"lender{i}"}',
                           f'--state={self.folder}/state{i}', f'--directory={self.urls}', *door,
                           self.folder / f'slot{i}'],
            self.folder, {**self.env, **(env or {})}, cwd=self.folder)]
        self.lenders[i].line()

    def start(self, name, *command):
        self.others.append(Talker(name, command, self.folder, self.env))
        return self.others[-1]

    def borrower(self):
        one = self.start(f'borrower{len(self.others)}', self.build / 'tests/devices/directory/borrower', self.urls)
        answer = one.line()
        check(answer == '0', f'a borrower opens the directory: {answer}\n{one.text()}')
        return one

    def weft_devices(self, *arguments, env=None, urls=None):
        """(status, standard output, standard error, seconds) of 'weft devices'"""
        begin = time.monotonic()
        named = [] if 'WEFT_DIRECTORY' in (env or {}) else [f'--directory={urls or self.urls}']
        done = subprocess.run([self.build / 'tools/weft', 'devices', *named, *arguments],
                              capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, **self.env, **(env or {})})
        return done.returncode, done.stdout, done.stderr, time.monotonic() - begin

    def devices(self):
        """{name: state}, by 'weft devices list'"""
        status, out, errors, _ = self.weft_devices('--json')
        check(status == 0, f'weft devices: {errors}')
        return {device['name']: device['state'] for device in json.loads(out)['devices']}

    def wait_devices(self, cnt, seconds=20):
        """Those that are listed, once they are so many. A list that fails is asked for again."""
        said = []

        def listed():
            try:
                said[:] = [self.devices()]
            except Failed as why:
                said[:] = [why]
                return False
            return len(said[0]) == cnt
        try:
            wait_until(f'{cnt} devices are listed', listed, seconds)
        except Failed as why:
            raise Failed(f'{why}; the last list: {said[0]}') from None
        return said[0]

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-directory.'))
        try:
            ports = free_ports(2 * self.member_cnt)
            self.ports, self.peer_ports = ports[:self.member_cnt], ports[self.member_cnt:]
            if self.mutual:
                self.certificates = Certificates(self.folder / 'certificates', 'server', 'client')
                file = self.certificates.file
                self.options += ['--client-cert-auth', f'--trusted-ca-file={file("ca.pem")}',
                                 f'--cert-file={file("server.pem")}', f'--key-file={file("server.key")}']
            for i in range(self.member_cnt):
                self.start_member(i)
            for i in range(self.lender_cnt):
                self.start_controller(i)
            # Lenders need no directory to begin, and register when there is one.
            for i in range(self.lender_cnt):
                self.start_lender(i)
            if self.scheme == 'http':
                self.wait_members(*range(self.member_cnt))
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        for process in [*self.others, *self.lenders, *self.controllers, *self.members]:
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for process in [*self.members, *self.lenders, *self.others]:
                print(f'--- {process.name}:\n{process.text()}')
        self.close()
        return False


def encoded(text):
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()
