#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""names_test.py LIBRARY - libweft-mem.so exports what it puts before other libraries, and nothing of jemalloc

The functions of a program's allocator and of the C library have no version here, so that they are
found whatever version a program was linked with.
"""
import subprocess
import sys

NAMES = {
    'aligned_alloc', 'calloc', 'free', 'free_aligned_sized', 'free_sized', 'malloc',
    'malloc_usable_size', 'memalign', 'posix_memalign', 'pvalloc', 'realloc', 'reallocarray',
    'valloc', 'madvise', 'mmap', 'mmap64', 'mprotect', 'mremap', 'munmap', 'prlimit', 'prlimit64',
    'setrlimit', 'setrlimit64', 'weft_mem_arena@@WEFT_MEM_1',
    'WEFT_MEM_1'}


def main(library):
    text = subprocess.run(['nm', '-D', '--defined-only', library], check=True,
                          capture_output=True, text=True).stdout
    found = {line.split()[-1] for line in text.splitlines()}
    for name in sorted(found ^ NAMES):
        print(f'{name}: {"not expected" if name in found else "missing"}')
    return 0 if found == NAMES else 1


sys.exit(main(sys.argv[1]))
