#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""calls_test.py OBJECTS... - no part of libweft-mem.so calls by name what that library puts before the C library's

Such a call comes to the library itself, which takes it for the program's: its mprotect() waits for the arena's
lock, and it may be called with that lock held, or in a fork. Nor does what runs with that lock allocate.
OBJECTS is an archive, or a folder of object files.
"""
import pathlib
import re
import subprocess
import sys

MAPPINGS = {'madvise', 'mmap', 'mmap64', 'mprotect', 'mremap', 'munmap', 'prlimit', 'prlimit64',
            'setrlimit', 'setrlimit64'}
MEMORY = {'aligned_alloc', 'calloc', 'free', 'malloc', 'malloc_usable_size', 'memalign',
          'posix_memalign', 'pvalloc', 'realloc', 'reallocarray', 'strdup', 'valloc'}
# Of an arena, with its lock held: allocators may have taken theirs for a fork that waits for it.
LOCKED = {f'arena_{name}.c.o' for name in (
    'arena', 'chunk', 'keeper', 'leave', 'limit', 'ranges', 'retain', 'show')} | \
    {'shown_shown.c.o'}
# object: what it may call, since
EXCEPTIONS = {
    'memfd.c.o': MAPPINGS,  # it maps where the kernel chooses, which is never in the arena
    'write_guard.c.o': MAPPINGS,  # the same
    'user_platform.c.o': MEMORY,  # it is platform_alloc()
    'shared_name.c.o': MEMORY,  # a name is opened by a program, outside of any lock
}


def files(path):
    """the files of a folder, or the archive itself"""
    return sorted(pathlib.Path(path).glob('*.o')) if pathlib.Path(path).is_dir() else [path]


def calls(path):
    """(object, name) of each name that an object of a file does not have itself"""
    text = subprocess.run(['nm', '-A', '-P', '--undefined-only', path], check=True,
                          capture_output=True, text=True).stdout
    for line in text.splitlines():
        where, name, *_ = line.rsplit(': ', 1)[0], *line.rsplit(': ', 1)[1].split()
        yield re.split(r'[\[/]', where)[-1].rstrip(']'), name


def main(paths):
    found = {call for path in paths for file in files(path) for call in calls(file)}
    assert found, 'no objects'
    wrong = sorted((where, name) for where, name in found
                   if name in (MAPPINGS | MEMORY) - EXCEPTIONS.get(where, set()))
    for where, name in wrong:
        print(f'{where} calls {name}(): by its number it would go to the kernel (sys/raw.h)')
    missing = sorted(LOCKED - {where for where, _ in found})
    for where in missing:
        print(f'{where}: there is no such object')
    locked = sorted((where, name) for where, name in found
                    if where in LOCKED and name in ('platform_alloc', 'platform_free'))
    for where, name in locked:
        print(f'{where} calls {name}(): the arena has its lock there')
    return 1 if wrong or missing or locked else 0


sys.exit(main(sys.argv[1:]))
