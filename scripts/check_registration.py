#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if a source is on disk but in no target: check_registration.py [root]

Every .cpp and every public header of the library and every .cpp of programs,
tests and benchmarks must be named in a CMakeLists.txt of its folder or above.
Headers in internal/, in rooms and in folders without a face are listed nowhere.
"""

import pathlib
import re

from check_common import finish, project_files, root_from_arguments

MUST_BE_LISTED = re.compile(
    r"lockstep/(?!(ckpt|distributed|train)/.*/|(report|sim)/|.*/internal/).*\.h"
    r"|(lockstep|cli|cli_train|bench|fuzz|python|tests|examples)/.*\.cpp")


def words_of(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return set(re.split(r'[\s()"]+', "\n".join(
        line.split("#")[0] for line in lines)))


def is_listed(root, name, cache):
    for folder in pathlib.PurePosixPath(name).parents:
        if folder not in cache:
            cache[folder] = words_of(root / folder / "CMakeLists.txt")
        if str(pathlib.PurePosixPath(name).relative_to(folder)) in cache[folder]:
            return True
    return False


def main():
    root = root_from_arguments()
    cache = {}
    names = [n for n in project_files(root) if MUST_BE_LISTED.fullmatch(n)]
    problems = [f"{name}: in no CMakeLists.txt"
                for name in names if not is_listed(root, name, cache)]
    finish("registration", problems, f"{len(names)} files")


main()
