#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if a folder includes what it may not: check_layers.py [root]

The rules are in scripts/layers.toml of the folder that is checked.
"""

import re
import tomllib

from check_common import finish, project_files, root_from_arguments

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMPAT = ("lockstep/tensor/compat.h", "lockstep/tensor/compat.cpp")
# Own includes are written from the root of the repository.
OWN_ROOTS = (
    "lockstep/", "tests/", "cli/", "cli_train/", "bench/", "fuzz/")


class Rules:
    def __init__(self, root):
        text = (root / "scripts/layers.toml").read_text()
        data = tomllib.loads(text)
        self.packages = data["packages"]
        self.folders = data["folders"]
        self.tests = data["tests"]

    def package_of(self, include):
        for package, starts in self.packages.items():
            if any(include.startswith(start) for start in starts):
                return package
        return None

    def row_of(self, name):
        """(folder, may include, packages) of a file; None if it has no row."""
        for folder, row in self.folders.items():
            if name == folder or name.startswith(folder + "/"):
                return folder, set(row["includes"]), set(row["packages"])
        if name.startswith("tests/"):
            return self.test_row(name)
        return None

    def library_of(self, include):
        """"train/settings" for "lockstep/train/settings/config.h"."""
        for folder in self.folders:
            if include == folder or include.startswith(folder + "/"):
                return folder.partition("/")[2]
        return include.split("/")[1]

    def test_row(self, name):
        tested = self.library_of("lockstep/" + name.partition("/")[2])
        row = self.folders.get(f"lockstep/{tested}") or self.folders.get(
            tested, {"packages": []})
        libraries = {f.partition("/")[2] for f in self.folders if "/" in f}
        packages = set(self.tests["packages"]) | set(row["packages"])
        if tested == "support":
            packages.add("torch")
        return f"tests/{tested}", libraries, packages


def check_include(rules, name, row, mark, include):
    """What is wrong with one include, or None."""
    folder, may_include, packages = row
    if include.startswith("lockstep/"):
        other = rules.library_of(include)
        if other != folder.partition("/")[2] and other not in may_include:
            return f"may not include lockstep/{other}"
        if "/internal/" in include and not name.startswith(
                include.split("internal/")[0]):
            return f"'{include}' is internal to lockstep/{other}"
        return None
    package = rules.package_of(include)
    if package is not None:
        if package not in packages:
            return f"may not include {package} ('{include}')"
        is_public = (name.startswith("lockstep/") and name.endswith(".h")
                     and "/internal/" not in name)
        if is_public and package != "torch":
            return f"public header shows {package} ('{include}')"
        if is_public and include == "torch/torch.h":
            return "public header includes torch/torch.h; take a narrow one"
        return None
    if mark == '"' and not include.startswith(OWN_ROOTS):
        return f"'{include}' is not written from the root of the repository"
    return None


def check_line(rules, name, row, line):
    if match := INCLUDE.match(line):
        return check_include(rules, name, row, match[1], match[2])
    if re.match(r"\s*#\s*pragma\s+omp\b", line):
        return "no OpenMP: the torch wheel has its own run time"
    if "TORCH_VERSION" in line and name not in COMPAT:
        return f"only {COMPAT[0]} may look at TORCH_VERSION"
    return None


def main():
    root = root_from_arguments()
    rules = Rules(root)
    problems = []
    checked = 0
    for name in project_files(root):
        if not name.endswith((".h", ".cpp")):
            continue
        row = rules.row_of(name)
        if row is None:
            problems.append(f"{name}: its folder has no row in layers.toml")
            continue
        checked += 1
        lines = (root / name).read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if problem := check_line(rules, name, row, line):
                problems.append(f"{name}:{number}: {problem}")
    finish("layers", problems, f"{checked} files")


main()
