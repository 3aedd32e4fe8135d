# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The first files of a machine: busybox, our init, and the modules by which it reaches the host's.

Source of the format: Linux's Documentation/driver-api/early-userspace/buffer-format.rst.
"""
import itertools
import stat

# What init needs before it has the host's files: the bus, 9p over it, and a place for changes.
FIRST = ('virtio_pci', '9pnet_virtio', '9p', 'overlay')


def with_dependencies(modules, names):
    """The files of modules and of all that they need, in the order in which they are loaded."""
    needs = {}
    for line in (modules / 'modules.dep').read_text().splitlines():
        path, others = line.split(':')
        needs[path.split('/')[-1].split('.')[0].replace('-', '_')] = (path, others.split())
    files = {}
    for name in names:
        # A module that is part of this kernel has no file.
        if name.replace('-', '_') in needs:
            path, others = needs[name.replace('-', '_')]
            files.update(dict.fromkeys([*reversed(others), path]))
    return [modules / path for path in files]


def archive(entries):
    """The bytes of a cpio archive of (path, mode, content)."""
    parts = []
    for number, (path, mode, content) in enumerate(itertools.chain(
            entries, [('TRAILER!!!', 0, b'')]), 1):
        name = path.encode() + b'\0'
        device = (5, 1) if stat.S_ISCHR(mode) else (0, 0)
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
        head = b'070701' + b''.join(b'%08X' % field for field in fields) + name
        parts += [head, bytes(-len(head) % 4), content, bytes(-len(content) % 4)]
    return b''.join(parts)


def initrd(modules, busybox, init, settings):
    """The archive: settings is shell text that init reads."""
    files = with_dependencies(modules, FIRST)
    entries = [(folder, stat.S_IFDIR | 0o755, b'') for folder in
               ('bin', 'dev', 'proc', 'sys', 'host', 'change', 'root', 'modules')]
    # The kernel opens it for init, before anything is mounted.
    entries.append(('dev/console', stat.S_IFCHR | 0o600, b''))
    entries.append(('bin/busybox', stat.S_IFREG | 0o755, busybox.read_bytes()))
    entries.append(('init', stat.S_IFREG | 0o755, init.read_bytes()))
    entries.append(('settings', stat.S_IFREG | 0o644, settings.encode()))
    for file in files:
        entries.append((f'modules/{file.name}', stat.S_IFREG | 0o644, file.read_bytes()))
    # None, where the kernel has all of it.
    order = ''.join(f'{file.name}\n' for file in files)
    entries.append(('modules/order', stat.S_IFREG | 0o644, order.encode()))
    return archive(entries)
