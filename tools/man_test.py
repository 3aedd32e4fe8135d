#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""man_test.py WEFT PAGES [PROGRAM...] - the manual pages say what the tool says

Every option of 'weft COMMAND --help', and of 'PROGRAM --help', is in the command's page and the
other way round, with the same argument; weft(7) has every setting that 'weft info --env' knows, and no other; no
page has an error that groff or, where it is installed, mandoc finds.
"""
import pathlib
import re
import shutil
import subprocess
import sys

HELP_OPTION = re.compile(r'^ +(?:-(\w), |)--([\w-]+)(\[=|=|)(\S*)')
PAGE_OPTION = re.compile(r'^\.It (?:Fl (\w) , |)Fl Fl ([\w-]+)(?: Ns (Op =|=) Ns Ar (\S+)|)$')

findings = []


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)


def help_options(*command):
    """{(short, long, '=' or '[=' or '', argument)} of a --help"""
    found = set()
    for line in output(*command, '--help').stdout.splitlines():
        match = HELP_OPTION.match(line)
        if match:
            short, name, sign, argument = match.groups(default='')
            found.add((short, name, sign, argument.rstrip(']') if sign else ''))
    return found


def page_options(page):
    found = set()
    for line in page.read_text().splitlines():
        match = PAGE_OPTION.match(line)
        if match:
            short, name, sign, argument = match.groups(default='')
            found.add((short, name, '[=' if sign.startswith('Op') else sign, argument))
    return found


def options_agree(pages, page, *command):
    told, written = help_options(*command), page_options(pages / f'{page}.1')
    if not told:
        findings.append(f'{command} --help has no option')
    for option in sorted(told - written):
        findings.append(f'{page}.1 lacks {option}')
    for option in sorted(written - told):
        findings.append(f'{command} --help lacks {option}')


def commands_agree(weft, pages):
    told = set(re.findall(r'^  (\w+) ', output(weft, '--help').stdout, re.M))
    written = set(re.findall(r'^\.It Cm (\w+)', (pages / 'weft.1').read_text(), re.M))
    if told != written:
        findings.append(f'commands: {sorted(told)} and in weft.1 {sorted(written)}')


def settings_agree(weft, pages):
    told = set(re.findall(r'^# (FI_\w+):', output(weft, 'info', '--env').stdout, re.M))
    written = set(re.findall(r'^\.It Ev (FI_\w+)', (pages / 'weft.7').read_text(), re.M))
    for name in sorted(told - written):
        findings.append(f'weft.7 lacks {name}')
    for name in sorted(written - told):
        findings.append(f'weft.7 has {name}, which no setting is called')


def pages_are_clean(pages):
    checkers = [['groff', '-mandoc', '-Tutf8', '-ww', '-z'], ['mandoc', '-Tlint', '-Wwarning']]
    for checker in checkers:
        if not shutil.which(checker[0]):
            print(f'{checker[0]} is not installed: not asked')
            continue
        for page in sorted(pages.iterdir()):
            said = output(*checker, str(page)).stdout.strip()
            if said:
                findings.append(f'{checker[0]}: {said}')


def main(weft, pages, *programs):
    for command in ('info', 'pingpong', 'bench', 'scale', 'run', 'mem', 'copy', 'lend', 'devices',
                    'tcp'):
        options_agree(pages, f'weft-{command}', weft, command)
    for program in programs:
        options_agree(pages, pathlib.Path(program).name, program)
    commands_agree(weft, pages)
    settings_agree(weft, pages)
    pages_are_clean(pages)
    print('\n'.join(findings) or 'all pages')
    return 1 if findings else 0


sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:]))
