# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""known - lists of the differences that are meant to be there

One a line: a pattern of a signature, in which * stands for anything, two spaces, a #, and the
reason. A line in brackets, [1.] or [2.], begins those that hold for libraries of that level
alone; [all] ends that.
"""
import re


class Known:
    """One list, and which of its entries have matched something."""

    def __init__(self, path, version):
        self.entries = []
        self.used = set()
        level = ''
        for line in path.read_text(encoding='utf-8').splitlines():
            section = re.fullmatch(r'\[(\S+)\]', line.strip())
            if section:
                level = '' if section.group(1) == 'all' else section.group(1)
            elif line.strip() and not line.startswith('#') and version.startswith(level):
                pattern, hash_, reason = line.partition('  # ')
                if not hash_ or not reason.strip():
                    raise ValueError(f'{path.name}: no reason: {line}')
                regex = '.*'.join(map(re.escape, pattern.strip().split('*')))
                self.entries.append((pattern.strip(), re.compile(regex)))

    def matches(self, difference):
        """Whether it is in the list."""
        for pattern, regex in self.entries:
            if regex.fullmatch(difference.signature):
                self.used.add(pattern)
                return True
        return False

    def unused(self):
        """Entries that have matched nothing."""
        return [pattern for pattern, _ in self.entries if pattern not in self.used]
