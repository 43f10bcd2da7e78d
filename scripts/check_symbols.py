#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what liblockstep-ckpt.so shows with the installed headers:

    check_symbols.py LIBRARY [COMPILER]

Fails if it lacks a function that a header declares, shows a name that none
declares, or shows one without its version. COMPILER is a clang (clang++-16), which
says what headers declare. What C++ emits with types (vtables, instances of
templates) may be there, too, if the type is one of lockstep::.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from check_common import finish

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ["lockstep/base/*.h", "lockstep/ckpt/*.h", "lockstep/ckpt.h"]
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl",
             "CXXDestructorDecl", "CXXConversionDecl"}
TEMPLATES = {"ClassTemplateDecl", "FunctionTemplateDecl", "VarTemplateDecl",
             "ClassTemplatePartialSpecializationDecl"}


def exported(library):
    """Name of each symbol -> its kind, as nm says, and its version."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                         capture_output=True, text=True).stdout
    symbols = {}
    for line in out.splitlines():
        *_, kind, name = line.split()
        name, _, version = name.partition("@@")
        if kind != "A": # the name of the version itself
            symbols[name] = (kind, version)
    return symbols


def one_of_several(name):
    """Constructors and destructors have up to three symbols: one name for all."""
    return re.sub(r"(C[123]|D[012])(?=E)", lambda m: m[0][0] + "1", name)


def is_defined_elsewhere(node):
    """Whether a library must define it: no inline, deleted or pure function."""
    has_body = any(child.get("kind") == "CompoundStmt"
                   for child in node.get("inner", []))
    return not (has_body or node.get("explicitlyDeleted") or node.get("pure")
                or node.get("explicitlyDefaulted") or node.get("isImplicit")
                or node.get("inline") or node.get("constexpr"))


def declared(compiler):
    """Names of functions and variables: all, and those a library must define."""
    names, needed = set(), set()

    def visit(node, in_template):
        kind = node.get("kind")
        name = node.get("mangledName")
        in_template = in_template or kind in TEMPLATES
        if name and (kind in FUNCTIONS or kind == "VarDecl"):
            names.add(one_of_several(name))
            if kind in FUNCTIONS and not in_template and is_defined_elsewhere(node):
                needed.add(one_of_several(name))
        for child in node.get("inner", []):
            if child:
                visit(child, in_template)

    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "all.cpp")
        source.write_text("".join(
            f'#include "{path.relative_to(ROOT)}"\n'
            for pattern in HEADERS for path in sorted(ROOT.glob(pattern))))
        out = subprocess.run(
            [compiler, "-std=c++20", f"-I{ROOT}", "-fsyntax-only", "-Xclang",
             "-ast-dump=json", "-Xclang", "-ast-dump-filter=lockstep::", source],
            check=True, capture_output=True, text=True).stdout
    decoder, at = json.JSONDecoder(), 0
    while (start := out.find("{", at)) >= 0:
        node, at = decoder.raw_decode(out, start)
        visit(node, False)
    return names, needed


def main():
    library = sys.argv[1]
    symbols = exported(library)
    shown = {one_of_several(name) for name in symbols}
    problems = [f"{name}: version '{version}' instead of LOCKSTEP_0"
                for name, (_, version) in symbols.items() if version != "LOCKSTEP_0"]
    problems += [f"{name}: not of lockstep::" for name in symbols
                 if not re.match(r"_Z(T[CISTVhv].*)?NK?[RO]?8lockstep", name)]
    names, needed = declared(sys.argv[2] if len(sys.argv) > 2 else "clang++-16")
    problems += [f"{name}: declared in a header, but not shown"
                 for name in sorted(needed - shown)]
    # Strong ones: weak symbols are inline functions, templates and type data.
    problems += [f"{name}: shown, but no installed header declares it"
                 for name, (kind, _) in sorted(symbols.items())
                 if kind in "TDBR" and one_of_several(name) not in names
                 and not name.startswith("_ZT")]
    finish("symbols", problems, f"{len(needed)} functions, {len(symbols)} symbols")


main()
