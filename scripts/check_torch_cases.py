#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds tests/torch_cases.toml, the tests and docs/torch_tests.md together.

check_torch_cases.py [--update]: with --update the page is written anew.
"""

import pathlib
import re
import sys
import tomllib

from check_common import finish

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/torch_tests.md"
HEAD = """# PyTorch's tests

Cases of PyTorch's own test files, and where Lockstep has a test of the same name
that asserts the same. Made by `scripts/check_torch_cases.py --update`.
"""


def tests_by_name():
    """(suite, name) to the file that has the test."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        text = path.read_text(encoding="utf-8")
        for suite, name in re.findall(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text):
            found[suite, name] = path.relative_to(ROOT)
    return found


def main():
    cases = tomllib.loads((ROOT / "tests/torch_cases.toml").read_text())
    found = tests_by_name()
    problems, text = [], HEAD
    for title, names in cases.items():
        suite = title.split(", ")[1]
        text += f"\n## {title}\n\n| case | here |\n|---|---|\n"
        for name, reason in names.items():
            path = found.get((suite, name))
            if bool(path) == bool(reason):
                problems.append(f"{suite}.{name}: is a test: {bool(path)}, "
                                f"reason why not: '{reason}'")
            text += f"| {name} | {reason or f'[{path}](../{path})'} |\n"
    if "--update" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        problems.append("docs/torch_tests.md is old: run "
                        "scripts/check_torch_cases.py --update")
    finish("torch cases", problems, f"{sum(map(len, cases.values()))} cases")


main()
