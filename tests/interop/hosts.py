#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hosts made of namespaces, for tests and the demo.

A host is its own network, UTS, PID, IPC and mount namespace: an own hostname, /proc,
/dev/shm, TMPDIR, loopback and an eth0; two hosts are joined by a veth pair. With the
network namespace alone, processes of two hosts could still open each other's
descriptors through /proc, and would rightly be found local.

Nothing here has a name outside its own run: a host lives as long as its init, which
ends when the pipe it reads from is closed, and that happens however this process ends.
With init goes the PID namespace, with that every process in it, and then the rest. So
any number of runs can go side by side, and none leaves anything behind.

Needs root, or user namespaces: an ordinary user's run re-executes itself as the root
of a new one (become_root).

As a program: hosts.py [-n COUNT] COMMAND...   runs COMMAND on the first of the hosts
`a`, `b`..., where mpirun's launcher is set up to reach the others.
"""
import array
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
LOGIN = HERE / 'host-login'

# What a login to a fresh machine would not bring along.
FOREIGN = ('OMPI_', 'PMIX_', 'ORTE_', 'FI_', 'WEFT_', 'LD_', 'PYTHON', 'MESON', 'MAKE',
           'TMPDIR', 'ASAN_', 'TSAN_', 'UBSAN_')


class Unavailable(Exception):
    """This machine can't make namespaces; the text says which step was refused."""


def clean_env(**extra):
    """The environment of a fresh login: ours without the variables of MPI and libfabric."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(FOREIGN)}
    env['PATH'] = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    env.update({key: str(value) for key, value in extra.items()})
    return env


def become_root():
    """For an ordinary user: start over as root of a user namespace of our own."""
    if os.geteuid() == 0:
        return
    probe = subprocess.run(['unshare', '--user', '--map-root-user', 'true'],
                           capture_output=True, text=True, check=False)
    if probe.returncode:
        raise Unavailable(f'user namespaces: {probe.stderr.strip()}')
    os.execvp('unshare', ['unshare', '--user', '--map-root-user', '--',
                          sys.executable, *sys.argv])


class Result:
    """What a command left: status (None when its time was up), stdout and stderr."""

    def __init__(self, status, stdout, stderr):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def text(self):
        return self.stdout + self.stderr


def run_bounded(argv, env, timeout, cwd=None):
    """Run a command in a session of its own; when its time is up, end that session."""
    with subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors='replace', start_new_session=True) as child:
        try:
            out, err = child.communicate(timeout=timeout)
            return Result(child.returncode, out, err)
        except subprocess.TimeoutExpired:
            pass
        except BaseException:
            end_session(child)
            raise
        end_session(child)
        out, err = child.communicate()
        return Result(None, out, err)


def end_session(child):
    """End a child started with start_new_session, and its group: TERM, then KILL.

    The child is collected last: until then its number is its group's and no other one's.
    """
    try:
        ended = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
            select.select([ended], [], [], 3)
            # The leader may be gone, and what it started not.
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    finally:
        os.close(ended)


class Host:
    """One host; made and ended by Hosts.

    Its namespaces are held by descriptors: a number of a process is another's once init has ended.
    """

    # As nsenter calls them, and their files in /proc/PID.
    SPACES = {'net': 'ns/net', 'uts': 'ns/uts', 'ipc': 'ns/ipc', 'mount': 'ns/mnt', 'pid': 'ns/pid', 'root': 'root'}

    # $1 hostname, $2 a folder of this host's own. Ends with the pipe on its stdin.
    INIT = '''
        hostname "$1"
        mount --make-rprivate /
        mount -t tmpfs -o mode=1777 weft-shm /dev/shm
        mount --bind "$2/hosts" /etc/hosts
        ip link set lo up
        echo ready
        read _
    '''

    def __init__(self, name, folder, hosts_file, env):
        self.name = name
        self.tmp = folder / 'tmp'
        self.tmp.mkdir(parents=True)
        (folder / 'hosts').write_text(hosts_file)
        self.env = dict(env, TMPDIR=str(self.tmp), HOSTNAME=name)
        self.spaces = {}
        self.holder = subprocess.Popen(
            ['unshare', '--net', '--uts', '--ipc', '--mount', '--pid', '--fork',
             '--mount-proc', '--kill-child=SIGKILL', '--',
             'sh', '-euc', self.INIT, 'init', name, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=self.env, start_new_session=True)
        if self.holder.stdout.readline() != 'ready\n':
            reason = self.holder.stderr.read().strip().replace('\n', '; ')
            self.end()
            raise Unavailable(f'namespaces of host {name}: {reason}')
        children = pathlib.Path(f'/proc/{self.holder.pid}/task/{self.holder.pid}/children')
        try:
            init = children.read_text().split()[0]
            for space, file in self.SPACES.items():
                self.spaces[space] = os.open(f'/proc/{init}/{file}', os.O_RDONLY)
        except (OSError, IndexError) as error:
            reason = f'{error!r}; {self.ending()}'
            self.end()
            raise Unavailable(f'host {name}: {reason}') from error

    def space(self, name):
        """The file of a namespace, for as long as this process has the host."""
        return f'/proc/{os.getpid()}/fd/{self.spaces[name]}'

    def ending(self):
        """How this host has ended, though nobody ended it; '' while it lives."""
        status = self.holder.poll()
        if status is None:
            return ''
        return f'host {self.name} has ended by itself, with status {status}'

    def enter(self, argv, cwd):
        """The command line that runs argv on this host."""
        return ['nsenter', *(f'--{name}={self.space(name)}' for name in self.SPACES),
                '--', 'env', '-C', str(cwd), *map(str, argv)]

    def run(self, argv, timeout, env=None, cwd='/'):
        """Run argv here, bounded; env adds to the host's own."""
        merged = dict(self.env, **{k: str(v) for k, v in (env or {}).items()})
        result = run_bounded(self.enter(argv, cwd), merged, timeout)
        result.stderr += self.ending()
        return result

    def popen(self, argv, env=None, cwd='/', **options):
        """Start argv here; the caller waits for it, the host's end ends it anyway."""
        merged = dict(self.env, **{k: str(v) for k, v in (env or {}).items()})
        return subprocess.Popen(self.enter(argv, cwd), env=merged,
                                start_new_session=True, **options)

    def end(self):
        self.holder.stdin.close()
        if self.holder.poll() is None:
            os.killpg(self.holder.pid, signal.SIGKILL)
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()
        while self.spaces:
            os.close(self.spaces.popitem()[1])


class Hosts:
    """A few hosts on one wire. Use it in a `with`; index it by host name.

    names: one name a host; the hosts are 10.199.0.1, .2... on their eth0
    envs:  what a login there has set beside clean_env(), by host name
    """

    def __init__(self, names=('a', 'b'), envs=None):
        self.names = list(names)
        self.envs = envs or {}
        self.hosts = {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-hosts.'))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._catch_signals(stack)
            self._listen(stack)
            lines = ['127.0.0.1 localhost']
            lines += [f'{self.address(name)} {name}' for name in self.names]
            for name in self.names:
                env = clean_env(WEFT_HOSTS_LOGIN=self.socket_path,
                                OMPI_ALLOW_RUN_AS_ROOT=1,
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1,
                                OMPI_MCA_plm='rsh',
                                OMPI_MCA_plm_rsh_agent=LOGIN,
                                **self.envs.get(name, {}))
                host = Host(name, self.folder / name, '\n'.join(lines) + '\n', env)
                stack.callback(host.end)
                self.hosts[name] = host
            self._wire()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def __getitem__(self, name):
        return self.hosts[name]

    def address(self, name):
        return f'10.199.0.{self.names.index(name) + 1}'

    @staticmethod
    def _catch_signals(stack):
        """Leave through the `with` on the signals that would end us at once."""
        numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

        def leave(number, _frame):
            for other in numbers:   # one is enough; the next must not break the leaving
                signal.signal(other, signal.SIG_IGN)
            raise SystemExit(128 + number)
        if threading.current_thread() is not threading.main_thread():
            return
        for number in numbers:
            stack.callback(signal.signal, number, signal.signal(number, leave))

    def _in_net(self, name, *command):
        argv = ['nsenter', f'--net={self.hosts[name].space("net")}', *command]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f'{" ".join(command)}: {done.stderr.strip()}')

    def _wire(self):
        """Join the hosts: a veth pair, for more than two a bridge on the first."""
        first, *others = self.names
        if not others:
            self._in_net(first, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer',
                         'name', 'other-end')
            self._in_net(first, 'ip', 'link', 'set', 'other-end', 'up')
        elif len(others) == 1:
            self._in_net(first, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer',
                         'name', 'eth0', 'netns', self.hosts[others[0]].space('net'))
        else:
            self._in_net(first, 'ip', 'link', 'add', 'eth0', 'type', 'bridge')
            for name in others:
                port = f'to-{name}'
                self._in_net(first, 'ip', 'link', 'add', port, 'type', 'veth', 'peer',
                             'name', 'eth0', 'netns', self.hosts[name].space('net'))
                self._in_net(first, 'ip', 'link', 'set', port, 'master', 'eth0', 'up')
        for name in self.names:
            self._in_net(name, 'ip', 'addr', 'add', self.address(name) + '/24',
                         'dev', 'eth0')
            self._in_net(name, 'ip', 'link', 'set', 'eth0', 'up')
            self._in_net(name, 'ip', 'route', 'add', 'default', 'dev', 'eth0')

    def add_link(self, device, network):
        """Join two hosts by another veth pair: they are NETWORK.1 and NETWORK.2 at DEVICE."""
        first, other = self.names
        self._in_net(first, 'ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', device,
                     'netns', self.hosts[other].space('net'))
        for number, name in enumerate(self.names, 1):
            self._in_net(name, 'ip', 'addr', 'add', f'{network}.{number}/24', 'dev', device)
            self.set_link(name, device, True)

    def set_link(self, name, device, works):
        """Set the end of a wire at a host up or down."""
        self._in_net(name, 'ip', 'link', 'set', device, 'up' if works else 'down')

    # Logins: host-login, which mpirun runs in place of ssh, can't see the other
    # hosts from inside its own; it asks here, through a socket in the file system.

    def _listen(self, stack):
        self.socket_path = str(self.folder / 'login')
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(self.socket_path)
        self.server.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()
        stack.callback(self.server.close)

    def _accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._login, args=(connection,), daemon=True).start()

    def _login(self, connection):
        """Serve one login: a request with the caller's stdio, then the exit status."""
        with connection:
            connection.settimeout(10)
            try:
                data, fds = receive_request(connection)
                request = json.loads(data)
                host = self.hosts[request['host']]
            except (OSError, ValueError, KeyError) as error:
                connection.sendall(json.dumps({'error': repr(error)}).encode())
                return
            connection.settimeout(None)
            child = host.popen(['sh', '-c', request['command']], cwd=host.tmp,
                               stdin=fds[0], stdout=fds[1], stderr=fds[2])
            for fd in fds:
                os.close(fd)
            threading.Thread(target=self._hang_up, args=(connection, child),
                             daemon=True).start()
            status = child.wait()
            reply = {'error': host.ending()} if status and host.ending() else {'status': status}
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps(reply).encode())
                connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _hang_up(connection, child):
        """A caller that ends ends its command too, as ssh does."""
        with contextlib.suppress(OSError):
            connection.recv(1)
        if child.poll() is None:
            end_session(child)


def receive_request(connection):
    """One message of JSON up to its newline, and the three descriptors beside it."""
    fds = array.array('i')
    room = socket.CMSG_SPACE(3 * fds.itemsize)
    data, ancillary, _, _ = connection.recvmsg(65536, room)
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
    while data and not data.endswith(b'\n'):
        more = connection.recv(65536)
        if not more:
            break
        data += more
    if len(fds) != 3:
        raise ValueError('a login brings stdin, stdout and stderr')
    return data, list(fds)


def main(argv):
    count = 2
    if argv[:1] == ['-n']:
        count = int(argv[1])
        argv = argv[2:]
    if not argv:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        become_root()
        with Hosts([chr(ord('a') + i) for i in range(count)]) as hosts:
            first = hosts['a']
            return first.popen(argv, cwd=os.getcwd()).wait()
    except Unavailable as error:
        print(f'hosts: {error}', file=sys.stderr)
        return 77


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
