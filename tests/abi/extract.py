#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""List every public name of one or more libfabric header sets.

Run by hand when the interface moves to another level (README.md says how); the
tests only read its result, names.txt. clang's syntax tree supplies structs,
members, enumerators, functions and typedefs with their types, gcc's
preprocessor the macros, so nothing depends on someone remembering a name.

	extract.py 1.17=/usr/include 2.x=SOMEWHERE/include > names.txt

Each line: the sets that have the name, its kind, the name, and its type.
"""

import json
import os
import re
import subprocess
import sys

HEADERS = [
	"fabric.h", "fi_errno.h", "fi_eq.h", "fi_domain.h", "fi_endpoint.h",
	"fi_cm.h", "fi_rma.h", "fi_tagged.h", "fi_atomic.h", "fi_trigger.h",
	"fi_collective.h", "fi_ext.h",
	"providers/fi_prov.h", "providers/fi_log.h", "providers/fi_peer.h",
]


class Tree:
	"""Walks clang's JSON, which names a file only where it changes."""

	def __init__(self, inside):
		self.inside = inside
		self.file = ""
		self.out = {}

	def place(self, loc):
		for part in ("spellingLoc", "expansionLoc"):
			if part in loc:
				self.place(loc[part])
		self.file = loc.get("file", self.file)

	def follow(self, node):
		"""Keep track of the file through a node; returns where it is declared."""
		self.place(node.get("loc", {}))
		here = self.file
		for end in ("begin", "end"):
			self.place(node.get("range", {}).get(end, {}))
		for child in node.get("inner", []):
			self.follow(child)
		return here

	def add(self, kind, name, type_text=""):
		self.out[(kind, name)] = type_text

	def members(self, record, path):
		unnamed = None
		for child in record.get("inner", []):
			kind = child["kind"]
			if kind == "RecordDecl":
				unnamed = child
			elif kind == "FieldDecl" and "name" not in child:
				self.members(unnamed, path)
			elif kind == "FieldDecl" and re.search(r"\((unnamed|anonymous)",
							       child["type"]["qualType"]):
				self.members(unnamed, f"{path}{child['name']}.")
			elif kind == "FieldDecl":
				self.add("field", path + child["name"],
					 child["type"]["qualType"])

	def top(self, node):
		if not self.follow(node).startswith(self.inside):
			return
		kind, name = node["kind"], node.get("name", "")
		if kind == "RecordDecl" and node.get("completeDefinition"):
			self.add("record", f"{node['tagUsed']} {name}")
			self.members(node, f"{node['tagUsed']} {name}.")
		elif kind == "EnumDecl":
			if name:
				self.add("record", f"enum {name}")
			for child in node.get("inner", []):
				if child["kind"] == "EnumConstantDecl":
					self.add("const", child["name"])
		elif kind == "TypedefDecl":
			self.add("type", name, node["type"]["qualType"])
		elif kind == "FunctionDecl":
			self.add("inline" if node.get("inline") else "extern", name,
				 node["type"]["qualType"])


def compiles(include, text):
	return subprocess.run(["gcc", "-I", include, "-fsyntax-only", "-w", "-xc", "-"],
			      input=text, text=True, capture_output=True).returncode == 0


def macros(include, source, inside):
	"""Object-like macros by what they expand to; the others by name only."""
	text = subprocess.run(["gcc", "-I", include, "-E", "-dD", "-xc", "-"], input=source,
			      text=True, capture_output=True, check=True).stdout
	current, found = "", {}
	for line in text.splitlines():
		mark = re.match(r'# \d+ "([^"]*)"', line)
		if mark:
			current = mark.group(1)
		name = re.match(r"#define (\w+)(\(?)", line)
		if not name or not current.startswith(inside) or name.group(1).endswith("_H"):
			continue
		use = name.group(1)
		if name.group(2):
			kind = "macro"
		elif compiles(include, f"{source}\nint x = ({use}) == 0 && 1.0 * ({use});"):
			kind = "const"
		elif compiles(include, f'{source}\nchar x[] = "" {use};') and \
		     not compiles(include, f'{source}\n{use} char x[] = "" {use};'):
			kind = "text"
		else:
			kind = "macro"
		found[(kind, use)] = ""
	return found


def names(include):
	inside = os.path.join(include, "rdma") + "/"
	source = "".join(f"#include <rdma/{h}>\n" for h in HEADERS
			 if os.path.exists(inside + h))
	dump = subprocess.run(["clang", "-I", include, "-fsyntax-only", "-w", "-Xclang",
			       "-ast-dump=json", "-xc", "-"], input=source, text=True,
			      capture_output=True, check=True).stdout
	tree = Tree(inside)
	for node in json.loads(dump)["inner"]:
		tree.top(node)
	return {**tree.out, **macros(include, source, inside)}


def main():
	sets = [arg.split("=", 1) for arg in sys.argv[1:]]
	if not sets:
		sys.exit(__doc__)
	lines = {}
	for label, include in sets:
		for (kind, name), type_text in names(include).items():
			lines.setdefault((kind, name, type_text), []).append(label)
	for (kind, name, type_text), labels in lines.items():
		print(f"{','.join(labels)}\t{kind}\t{name}\t{type_text}".rstrip())


main()
