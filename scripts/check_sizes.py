#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if a file is longer than its kind may be: check_sizes.py [root]

An exception is a line 'path limit reason' in scripts/size_exceptions.txt.
"""

import re

from check_common import finish, project_files, root_from_arguments

# The first pattern that matches decides.
LIMITS = [
    (r"CMakeLists\.txt", 150),
    (r"(.*/)?CMakeLists\.txt", 30),
    (r"README\.md", 200),
    (r"examples/.*\.(h|cpp)", 80),
    (r".*\.(h|cpp|py|sh)", 400),
]


def read_exceptions(root, problems):
    exceptions = {}
    path = root / "scripts/size_exceptions.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\S+) (\d+) (\S.*)", line)
        if match:
            exceptions[match[1]] = int(match[2])
        else:
            problems.append(
                f"{path.name}:{number}: expected 'path limit reason'")
    return exceptions


def main():
    root = root_from_arguments()
    problems = []
    exceptions = read_exceptions(root, problems)
    checked = 0
    for name in project_files(root):
        limit = next((l for p, l in LIMITS if re.fullmatch(p, name)), None)
        if limit is None:
            continue
        checked += 1
        lines = (root / name).read_bytes().count(b"\n")
        allowed = exceptions.pop(name, limit)
        if lines > allowed:
            problems.append(f"{name}: {lines} lines, at most {allowed}")
        elif allowed != limit and lines <= limit:
            problems.append(f"{name}: needs its exception no longer")
    problems += [f"{name}: exception for no file" for name in exceptions]
    finish("sizes", problems, f"{checked} files")


main()
