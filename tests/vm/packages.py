# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian packages for the machines: fetched by apt, unpacked into a cache, not installed.

The cache is WEFT_VM_CACHE, else weft/vm in XDG_CACHE_HOME or ~/.cache. A package is a folder
there, named as apt names its file, with the version in it. A folder appears by a rename once it
is whole, so that any number of runs can use the cache, and one that is killed leaves nothing
that another would take for a package. A new version replaces the old ones that no run uses. What apt
has answered is kept until its lists change: it takes seconds to read them.
"""
import contextlib
import dataclasses
import fcntl
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
MODULE = SOURCE / 'scripts' / 'debian-module'

APT_LISTS = '/var/lib/apt/lists'
# What Debian calls a processor.
DEBIAN = {'x86_64': 'amd64', 'aarch64': 'arm64'}


class Unavailable(Exception):
    """This machine lacks what it takes; the text says what."""


class Failed(Exception):
    """What should have worked did not; the text says what."""


class Outdated(Unavailable):
    """What apt's lists name is gone, or can't be fetched now. The lists are new now."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """image is what QEMU starts, modules the folder that modprobe looks into."""
    release: str
    image: pathlib.Path
    modules: pathlib.Path


def cache_folder():
    given = os.environ.get('WEFT_VM_CACHE')
    if given:
        return pathlib.Path(given).resolve()
    base = os.environ.get('XDG_CACHE_HOME')
    return (pathlib.Path(base) if base else pathlib.Path.home() / '.cache') / 'weft' / 'vm'


def command(argv, **options):
    """A command's output, with an error that names it."""
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise Failed(f'{" ".join(map(str, argv))}: {(done.stderr or done.stdout).strip()}')
    return done.stdout


class Packages:
    """What apt offers now, and what of it is in the cache. Use it in a `with`: what unpacked()
    has returned stays in the cache until the end. debugging: the kernel is that of scripts/debug-kernel."""

    def __init__(self, debugging=False):
        self.folder = cache_folder()
        self.debugging = debugging
        self.debug_folder = None
        self.answers = {}
        self.updated = False
        self.held = contextlib.ExitStack()

    def __enter__(self):
        if not shutil.which('apt-get'):
            raise Unavailable('no apt-get, which fetches the kernel')
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *exc):
        self.held.close()

    def unpacked(self, name, arch):
        """The folder with a package's files."""
        return self._again(self._unpacked, name, arch)

    def kernel(self, arch):
        """The kernel for a processor: Debian's newest, or the debugging one."""
        if self.debugging:
            folder = self._debug_kernel(arch)
            return Kernel((folder / 'release').read_text().strip(), folder / 'image', folder / 'modules')
        return self._again(self._kernel, arch)

    def headers(self, arch):
        """The folder that a module for that kernel is built with (make -C)."""
        if self.debugging:
            return self._debug_kernel(arch) / 'build'
        return self._again(self._headers, arch)

    def module(self, name, folder, option, arch):
        """The file of a module that Debian's kernel leaves out."""
        if arch != own_arch():
            raise Unavailable(f'{name} is built for this machine\'s processor alone')
        return pathlib.Path(command([MODULE, name, folder, option, self.headers(arch), self.folder]).strip())

    def _debug_kernel(self, arch):
        """The folder of the debugging kernel, which is built if there is none yet."""
        if arch != own_arch() or arch != 'x86_64':
            raise Unavailable('the debugging kernel is one for x86_64, built there')
        if self.debug_folder:
            return self.debug_folder
        build = SOURCE / 'scripts' / 'debug-kernel'
        done = subprocess.run([build, self.folder], stdout=subprocess.PIPE, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failed(f'{build} has failed')
        self.debug_folder = pathlib.Path(done.stdout.strip())
        self._hold(self.debug_folder)
        return self.debug_folder

    @staticmethod
    def _again(fetch, *args):
        try:
            return fetch(*args)
        except Outdated:
            return fetch(*args)

    def _unpacked(self, name, arch, finish=None):
        """finish(folder) adds what is made of the files, once."""
        package = f'{name}:{DEBIAN[arch]}'
        file_name = self._file_name(package)
        folder = self.folder / file_name.removesuffix('.deb')
        if not self._hold(folder):
            with self._lock(self.folder / 'lock', fcntl.LOCK_EX):
                if not folder.is_dir():
                    self._fetch(package, file_name, folder, finish)
                self._hold(folder)
                self._remove_older(folder)
        return folder

    def _kernel(self, arch):
        name = self._newest(f'linux-image-{DEBIAN[arch]}', arch)
        release = name.removeprefix('linux-image-')
        kmod = self._unpacked('kmod', own_arch(), relink_depmod)

        def finish(folder):
            command([kmod / 'sbin' / 'depmod', '-b', folder, release])
            packed = (folder / 'boot' / f'vmlinuz-{release}').read_bytes()
            (folder / 'boot' / 'image').write_bytes(unpacked_image(packed))
        folder = self._unpacked(name, arch, finish)
        return Kernel(release, folder / 'boot' / 'image', folder / 'lib' / 'modules' / release)

    def _headers(self, arch):
        release = self._newest(f'linux-image-{DEBIAN[arch]}', arch).removeprefix('linux-image-')
        common = release.removesuffix(DEBIAN[arch]) + 'common'
        # kbuild has programs, which run here.
        parts = [self._unpacked(f'linux-headers-{common}', arch),
                 self._unpacked('linux-kbuild-' + '.'.join(release.split('.')[:2]), own_arch())]

        def finish(folder):
            for part in parts:
                shutil.copytree(part / 'usr', folder / 'usr', symlinks=True, dirs_exist_ok=True)
            makefile = folder / 'usr' / 'src' / f'linux-headers-{release}' / 'Makefile'
            makefile.write_text(makefile.read_text().replace('/usr/src/', '../'))
        folder = self._unpacked(f'linux-headers-{release}', arch, finish)
        return folder / 'usr' / 'src' / f'linux-headers-{release}'

    def _newest(self, meta, arch):
        """The package that one without files of its own, such as linux-image-amd64, stands for."""
        stem = meta.removesuffix(DEBIAN[arch])
        for line in self._ask('apt-cache', 'depends', f'{meta}:{DEBIAN[arch]}').splitlines():
            words = line.split()
            if words[:1] == ['Depends:'] and words[1].startswith(stem):
                return words[1].split(':')[0]
        raise Unavailable(f'apt knows no package behind {meta}:{DEBIAN[arch]}')

    def _ask(self, *argv):
        """What apt answers from its lists."""
        question, stamp = ' '.join(argv), os.stat(APT_LISTS).st_mtime_ns
        kept = self.folder / 'answers'
        if not self.answers:
            with contextlib.suppress(OSError, ValueError):
                self.answers = json.loads(kept.read_text())
        if self.answers.get('stamp') != stamp:
            self.answers = {'stamp': stamp}
        if question not in self.answers:
            try:
                said = command(argv)
            except Failed:
                said = ''
            if not said.strip():
                self._update()
                return self._ask(*argv)
            self.answers[question] = said
            with self._lock(self.folder / 'lock', fcntl.LOCK_EX):
                part = self.folder / 'partial.answers'
                part.write_text(json.dumps(self.answers))
                part.replace(kept)
        return self.answers[question]

    def _update(self):
        """Fetch apt's lists, once, as root."""
        if self.updated or os.geteuid():
            raise Unavailable('apt does not know, or no longer has, a package: is apt-get update needed?')
        self.updated = True
        try:
            command(['apt-get', '-q', '-o', 'DPkg::Lock::Timeout=300', 'update'])
        except Failed as error:
            raise Unavailable(str(error)) from error

    def _file_name(self, package):
        """What apt calls the file of a package."""
        return self._ask('apt-get', 'download', '--print-uris', package).split()[1]

    def _fetch(self, package, file_name, folder, finish):
        """Download and unpack; the caller has the lock of the cache."""
        for left in self.folder.glob('partial.*/'):
            shutil.rmtree(left, ignore_errors=True)
        print(f'fetching {folder.name}', flush=True)
        partial = pathlib.Path(tempfile.mkdtemp(prefix='partial.', dir=self.folder))
        try:
            try:
                command(['apt-get', '-q', '-o', 'APT::Sandbox::User=root', 'download', package],
                        cwd=partial)
            except Failed as error:
                self._update()
                raise Outdated(str(error)) from error
            if not (partial / file_name).exists():
                raise Outdated(f'{file_name} is not what apt has downloaded for {package}')
            command(['dpkg', '-x', partial / file_name, partial / 'files'])
            if finish:
                finish(partial / 'files')
            (partial / 'files').rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _hold(self, folder):
        """Keep a package from being removed; False if it is not there."""
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return False
        self.held.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return os.path.isdir(folder)

    def _remove_older(self, kept):
        """Other versions of a package that no run holds; the caller has the lock of the cache. The
        name of a kernel's package has numbers in it, too."""
        name, _, arch = kept.name.split('_')
        for folder in self.folder.glob(re.sub(r'\d[\d.-]*', '*', name) + f'_*_{arch}'):
            if folder == kept:
                continue
            with contextlib.suppress(OSError), \
                    self._lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    @contextlib.contextmanager
    def _lock(path, how):
        flags = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR | os.O_CREAT
        descriptor = os.open(path, flags, 0o666)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)


def relink_depmod(folder):
    """Its link leads to where the package would be installed."""
    depmod = folder / 'sbin' / 'depmod'
    depmod.unlink()
    depmod.symlink_to('../bin/kmod')


def own_arch():
    return os.uname().machine


def unpacked_image(packed):
    """An x86 kernel as the ELF file within its bzImage, which starts sooner: unpacking it takes an
    emulated processor longer than starting it. Others as they are.

    Source: Linux's Documentation/x86/boot.rst, payload_offset and payload_length.
    """
    if packed[0x202:0x206] != b'HdrS':
        return packed
    begin = (packed[0x1f1] + 1) * 512 + int.from_bytes(packed[0x248:0x24c], 'little')
    payload = packed[begin:begin + int.from_bytes(packed[0x24c:0x250], 'little')]
    if not payload.startswith(b'\xfd7zXZ\0'):
        return packed
    image = lzma.LZMADecompressor().decompress(payload)
    return image if image.startswith(b'\x7fELF') else packed
