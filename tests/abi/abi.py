#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compare what our headers declare with libfabric's, name by name.

	abi.py dump LABEL INCLUDE          print all values of a set of names
	abi.py installed LABEL INCLUDE     compare with the headers in INCLUDE
	abi.py table LABEL FILE            compare with a committed dump
	abi.py assert LABEL FILE           its values as C++14 and freestanding C see them

LABEL chooses names from names.txt and departures-LABEL.txt, which lists each
difference that is meant, with its reason: kind (`grown`: bigger, and all that
was there is where it was; `differs`; `gone`), key (may be a pattern), reason.
A difference that is not listed fails, and so does a line that no longer applies.
Ends with 0, 1 for a difference, 77 where the comparison is not possible.
"""

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import probe

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(HERE, "..", "..", "include")
OUR_LABEL = "2.x"
HEADERS = [
	"fabric.h", "fi_errno.h", "fi_eq.h", "fi_domain.h", "fi_endpoint.h",
	"fi_cm.h", "fi_rma.h", "fi_tagged.h", "fi_atomic.h", "fi_trigger.h",
	"fi_collective.h", "fi_ext.h",
	"providers/fi_prov.h", "providers/fi_log.h", "providers/fi_peer.h",
]


class DoesNotCompile(Exception):
	pass


def skip(reason):
	print(f"skipped: {reason}")
	sys.exit(77)


def dump(label, include):
	"""{key: value} of all names of a set, as the headers in include have them."""
	headers = [h for h in HEADERS if os.path.exists(os.path.join(include, "rdma", h))]
	text = probe.program(headers, probe.load(os.path.join(HERE, "names.txt"), label))
	with tempfile.TemporaryDirectory() as where:
		source, binary = os.path.join(where, "probe.c"), os.path.join(where, "probe")
		with open(source, "w", encoding="ascii") as out:
			out.write(text)
		compiler = shlex.split(os.environ.get("CC", "cc"))
		done = subprocess.run(compiler + ["-std=gnu11", "-w", "-I", include, source,
						  "-o", binary], capture_output=True, text=True)
		if done.returncode:
			raise DoesNotCompile(f"names.txt does not compile against {include}:\n"
					     f"{done.stderr}")
		lines = subprocess.run([binary], capture_output=True, text=True, check=True,
				       timeout=60).stdout.splitlines()
	return dict(line.split("\t", 1) for line in lines)


def departures(label):
	path = os.path.join(HERE, f"departures-{label}.txt")
	with open(path, encoding="ascii") as lines:
		return [line.rstrip("\n").split("\t") for line in lines
			if line.strip() and not line.startswith("#")]


def size(value):
	return int(re.match(r"size (\d+)", value).group(1))


def difference(key, theirs, ours):
	"""None, or the kind of difference that a departure would have to name."""
	if ours is None:
		return "gone"
	if ours == theirs:
		return None
	if key.startswith("record struct") and size(ours) > size(theirs):
		return "grown"
	return "differs"


def read_table(path):
	with open(path, encoding="ascii") as lines:
		return dict(line.rstrip("\n").split("\t", 1) for line in lines
			    if not line.startswith("#"))


def compare(label, theirs, ours):
	"""Print each difference that is not meant; how many there are."""
	allowed, used, bad = departures(label), set(), 0
	for key, value in theirs.items():
		kind = difference(key, value, ours.get(key))
		if kind is None:
			continue
		hits = [i for i, (what, pattern, _) in enumerate(allowed)
			if what == kind and fnmatch.fnmatchcase(key, pattern)]
		used.update(hits)
		if not hits:
			bad += 1
			print(f"{kind}: {key}\n  {label}: {value}\n  ours: {ours.get(key)}")
	for i, (what, pattern, _) in enumerate(allowed):
		if i not in used:
			bad += 1
			print(f"departures-{label}.txt: no longer '{what}': '{pattern}'")
	print(f"{len(theirs)} values compared, {len(used)} departures, {bad} wrong")
	return bad


def assertions(table):
	"""The table's sizes, offsets and constants, each as a static assertion."""
	for key, value in table.items():
		kind, name = key.split(" ", 1)
		if kind == "record":
			yield f"sizeof({name}) == {size(value)}"
		elif kind == "field":
			record, member = name.split(".", 1)
			yield f"offsetof({record}, {member}) == {value.split()[0]}"
		elif kind == "const" and not name.startswith("fi_"):
			yield f"({name}) == {value.split()[0]}"


def check_assertions(table):
	"""Compile the assertions in the modes that can't run the probe; the failures."""
	modes = [
		("C++14", "c++", ["-xc++", "-std=c++14"], "static_assert", lambda text: True),
		# No pthread types there, so no struct that points to them.
		("freestanding", os.environ.get("CC", "cc"),
		 ["-xc", "-std=gnu11", "-ffreestanding", "-nostdinc", "-mgeneral-regs-only"],
		 "_Static_assert", lambda text: "fi_mutex_cond" not in text),
	]
	bad = 0
	for mode, compiler, flags, word, fits in modes:
		checks = [text for text in assertions(table) if fits(text)]
		source = "".join(f"#include <rdma/{h}>\n" for h in HEADERS)
		source += "".join(f'{word}({text}, "{text}");\n' for text in checks)
		if not shutil.which(shlex.split(compiler)[0]):
			print(f"no compiler for {mode}: {compiler} is not here")
			bad += 1
			continue
		done = subprocess.run(shlex.split(compiler) + flags +
				      ["-w", "-I", OURS, "-fsyntax-only", "-"], input=source,
				      capture_output=True, text=True, timeout=120)
		print(f"{mode}: {len(checks)} assertions" + (", wrong:" if done.returncode else ""))
		if done.returncode:
			bad += 1
			print(done.stderr)
	return bad


def check_level(label, include):
	path = os.path.join(include, "rdma", "fabric.h")
	if not os.path.exists(path):
		skip(f"no libfabric headers in {include} (package libfabric-dev)")
	with open(path, encoding="utf-8") as header:
		level = re.findall(r"define FI_(?:MAJOR|MINOR)_VERSION (\d+)", header.read())
	if ".".join(level) != label:
		skip(f"the headers in {include} are of level {'.'.join(level)}, not {label}")


def main():
	if len(sys.argv) != 4:
		sys.exit(__doc__)
	what, label, where = sys.argv[1:]
	if sys.maxsize < 2**63 - 1:
		skip("the tables are those of 64-bit machines")
	try:
		if what == "dump":
			for key, value in dump(label, where).items():
				print(f"{key}\t{value}")
			return 0
		if what == "installed":
			check_level(label, where)
			return compare(label, dump(label, where), dump(OUR_LABEL, OURS)) != 0
		if what == "table":
			return compare(label, read_table(where), dump(label, OURS)) != 0
		if what == "assert":
			return check_assertions(read_table(where)) != 0
	except DoesNotCompile as error:
		print(error)
		return 1
	sys.exit(__doc__)


if __name__ == "__main__":
	sys.exit(main())
