#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compile each public header alone, as a program, a C++ program or a kernel would.

	alone.py [INCLUDE]

Every header of include/rdma and include/weft is the whole of a translation
unit in C11, C++14 and freestanding C, with warnings as errors, by gcc and by
clang where they are. A last unit uses every macro that is not a plain value,
since a macro is not compiled until it is used. The headers must also leave no
macro behind whose name is not libfabric's or our own.
Ends with 0 or 1.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.abspath(sys.argv[1] if len(sys.argv) > 1
			  else os.path.join(HERE, "..", "..", "include"))
WARN = ["-Wall", "-Wextra", "-Wpointer-arith", "-Wno-unused-parameter", "-Werror",
	"-I", INCLUDE, "-fsyntax-only"]
WARN_C = WARN + ["-Wshadow", "-Wmissing-prototypes", "-Wstrict-prototypes"]

MODES = [
	("C11", ["gcc", "clang"], ["-xc", "-std=c11", "-Wpedantic"] + WARN_C),
	("C++14", ["g++", "clang++"], ["-xc++", "-std=c++14"] + WARN),
	("freestanding", ["gcc", "clang"],
	 ["-xc", "-std=gnu11", "-ffreestanding", "-nostdinc", "-mgeneral-regs-only"] + WARN_C),
]

USES = """
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_peer.h>

FI_EXT_INI;

FI_DEPRECATED_FUNC void uses_all(struct fi_provider *prov, struct fid_ep *ep);

void uses_all(struct fi_provider *prov, struct fid_ep *ep)
{
	if (FI_CHECK_OP(ep->fid.ops, struct fi_ops, tostr))
		FI_WARN(prov, FI_LOG_CORE, "plain");
	else
		FI_INFO(prov, FI_LOG_CORE, "%d", 1);
	FI_TRACE(prov, FI_LOG_CORE, "%s", FI_LIB_SUFFIX);
	FI_WARN_SPARSE(prov, FI_LOG_CORE, "%d %d", 1, 2);
	FI_WARN_ONCE(prov, FI_LOG_CORE, "%zu", sizeof(*ep));
	FI_DBG(prov, FI_LOG_CORE, "%d", 1);
	FI_DBG_TRACE(prov, FI_LOG_CORE, "%d", 1);
	FI_LOG_SPARSE(prov, FI_LOG_WARN, FI_LOG_CORE, "%d", 1);
}
"""


def compile_with(compiler, flags, text):
	return subprocess.run([compiler] + flags + ["-"], input=text, text=True,
			      capture_output=True, timeout=60)


def public_headers():
	found = []
	for folder in ("rdma", "rdma/providers", "weft"):
		found += sorted(glob.glob(os.path.join(INCLUDE, folder, "*.h")))
	return [os.path.relpath(h, INCLUDE) for h in found]


def strangers(headers):
	"""Macros that our headers define and that carry neither prefix."""
	text = "".join(f"#include <{h}>\n" for h in headers)
	done = subprocess.run(["gcc", "-I", INCLUDE, "-E", "-dD", "-xc", "-"], input=text,
			      text=True, capture_output=True, check=True, timeout=60)
	current, found = "", []
	for line in done.stdout.splitlines():
		mark = re.match(r'# \d+ "([^"]*)"', line)
		if mark:
			current = mark.group(1)
		name = re.match(r"#define (\w+)", line)
		if name and current.startswith(INCLUDE + "/") and \
		   not re.match(r"(FI_|WEFT_|FABRIC_H$|EXTERNALLY_VISIBLE$)", name.group(1)):
			found.append(f"{os.path.relpath(current, INCLUDE)}: {name.group(1)}")
	return found


def main():
	headers, bad, cnt = public_headers(), 0, 0
	units = [(h, f"#include <{h}>\n") for h in headers]
	units.append(("every macro used", USES))
	units.append(("every macro used, with ENABLE_DEBUG", "#define ENABLE_DEBUG 1\n" + USES))
	for mode, compilers, flags in MODES:
		present = [c for c in compilers if shutil.which(c)]
		if not present:
			print(f"no compiler for {mode}: none of {', '.join(compilers)} is here")
			bad += 1
		for compiler in present:
			for name, text in units:
				cnt += 1
				done = compile_with(compiler, flags, text)
				if done.returncode:
					bad += 1
					print(f"{name} does not compile alone as {mode} "
					      f"with {compiler}:\n{done.stderr}")
	for name in strangers(headers):
		bad += 1
		print(f"macro without a prefix of ours: {name}")
	print(f"{cnt} units of {len(headers)} headers compiled, {bad} wrong")
	return 1 if bad else 0


sys.exit(main())
