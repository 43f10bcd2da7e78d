#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if a folder includes what it may not: check_layers.py [root]

The rules are in scripts/layers.toml of the folder that is checked.
"""

import re
import tomllib

from check_common import finish, project_files, root_from_arguments

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Any line that includes, in whatever way: behind a comment, with a digraph.
INCLUDES = re.compile(
    r"(?:.*\*/)?\s*(?:#|%:|\?\?=)(?:\s|/\*.*?\*/)*(?:include|\\$)")
COMPAT = (
    "lockstep/tensor/internal/compat.h", "lockstep/tensor/internal/compat.cpp")
# Own includes are written from the root of the repository.
OWN_ROOTS = (
    "lockstep/", "tests/", "cli/", "cli_train/", "bench/", "fuzz/", "python/")
# Programs as users write them.
USERS = ("examples/", "tests/user/", "tests/compile_fail/", "tests/consumer/")
# Sources end in .h or .cpp: what ends otherwise would not be checked.
OTHER_ENDINGS = (
    ".c", ".cc", ".cxx", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tpp")


class Rules:
    def __init__(self, root):
        text = (root / "scripts/layers.toml").read_text()
        data = tomllib.loads(text)
        self.packages = data["packages"]
        self.folders = data["folders"]
        self.owners = {  # of a header that lies outside of its room
            f"{folder.split('/')[0]}/{folder.split('/')[1]}/{header}": folder
            for folder, row in self.folders.items()
            for header in row.get("face", [])}
        self.shared = {
            f"{folder}/internal/{header}"
            for folder, row in self.folders.items()
            for header in row.get("shared", [])}
        self.tests = data["tests"]
        self.installed = data["installed"]

    def package_of(self, include):
        for package, starts in self.packages.items():
            if any(include.startswith(start) for start in starts):
                return package
        return None

    def folder_of(self, name):
        """The row a path belongs to: the one with the longest name."""
        if name in self.owners:
            return self.owners[name]
        path = name
        while path and path not in self.folders:
            path = path.rpartition("/")[0]
        return path or None

    def row_of(self, name):
        """(folder, may include, packages) of a file; None if it has no row."""
        if name.startswith("tests/") and self.folder_of(name) is None:
            return self.test_row(name)
        folder = self.folder_of(name)
        if folder is None:
            return None
        row = self.folders[folder]
        return folder, self.expanded(row["includes"]), set(row["packages"])

    def expanded(self, includes):
        """The libraries of a row; "ckpt/*" stands for all below ckpt."""
        libraries = set()
        for entry in includes:
            if entry.endswith("/*"):
                libraries |= {name for name in self.libraries()
                              if name.startswith(entry[:-1])}
            else:
                libraries.add(entry)
        return libraries

    def libraries(self):
        """What may be included: "base", "train/settings"."""
        return {f.partition("/")[2] for f in self.folders
                if f.startswith("lockstep/")}

    def library_of(self, include):
        """"train/settings" for "lockstep/train/settings/config.h"."""
        folder = self.folder_of(include)
        return folder.partition("/")[2] if folder else include.split("/")[1]

    def is_inside_room(self, name):
        """True for a header that only rooms of its house include."""
        row = self.folders.get(self.folder_of(name), {})
        return "face" in row and name not in self.owners

    def is_installed(self, name):
        """True for a header that users include."""
        return (name.startswith("lockstep/") and name.endswith(".h")
                and "/internal/" not in name and not self.is_inside_room(name))

    def may_see_internal(self, name, include):
        """Users see nothing of it, other folders what is shared with them."""
        if name.startswith(USERS) or self.is_installed(name):
            return False
        return (name.startswith(("tests/", include.split("internal/")[0]))
                or include in self.shared)

    def test_row(self, name):
        tested = self.library_of("lockstep/" + name.partition("/")[2])
        packages = set(self.tests["packages"])
        for folder, row in self.folders.items():  # it, or its rooms
            if f"{folder}/".startswith((f"lockstep/{tested}/", f"{tested}/")):
                packages |= set(row["packages"])
        if tested == "support":
            packages.add("torch")
        return f"tests/{tested}", self.libraries(), packages

    def circle(self):
        """Rows that reach themselves, "a -> b -> a"; None if none does."""
        done = set()

        def visit(library, path):
            if library in path:
                return path[path.index(library):] + [library]
            if library in done:
                return None
            done.add(library)
            row = self.folders.get(f"lockstep/{library}", {"includes": []})
            for other in sorted(self.expanded(row["includes"])):
                if found := visit(other, path + [library]):
                    return found
            return None

        for library in sorted(self.libraries()):
            if found := visit(library, []):
                return " -> ".join(found)
        return None


class Arrows:
    """Which folder includes which, whatever the rows say of either."""

    def __init__(self):
        self.places = {}  # (from, to) -> "file:line includes 'header'"

    def add(self, rules, name, number, include):
        arrow = (folder_part(rules, name), folder_part(rules, include))
        if arrow[0] != arrow[1] and name.startswith("lockstep/"):
            self.places.setdefault(
                arrow, f"{name}:{number} includes '{include}'")

    def reach(self, start):
        """The folders that `start` leads to, each with the way there."""
        ways = {start: []}
        pending = [start]
        for folder in pending:
            for arrow in sorted(self.places):
                if arrow[0] == folder and arrow[1] not in ways:
                    ways[arrow[1]] = ways[folder] + [arrow]
                    pending.append(arrow[1])
        return ways

    def circle(self):
        """The includes of a circle of folders; none if there is none."""
        for arrow in sorted(self.places):
            ways = self.reach(arrow[1])
            if arrow[0] in ways:
                return [self.places[a] for a in [arrow] + ways[arrow[0]]]
        return []


class Doors:
    """The headers that are installed, and who asks for them."""

    def __init__(self, rules, root, names):
        self.root = root
        self.limit = rules.installed["at_most"]
        self.installed = {name for name in names if rules.is_installed(name)}
        self.asked = set()
        for name in names:
            if name.startswith(("examples/", "docs/")) or name == "README.md":
                self.asked |= set(self.mentioned(name))

    def mentioned(self, name):
        return re.findall(r"lockstep/[\w/]+\.h", (self.root / name).read_text(
            errors="replace"))

    def problems(self):
        """A header for nobody, and one too many."""
        pending = [name for name in sorted(self.installed)
                   if name in self.asked or name.count("/") == 1]
        reached = set(pending)
        for name in pending:
            more = self.installed & set(self.mentioned(name)) - reached
            reached |= more
            pending += sorted(more)
        found = [f"{name}: installed, but no example, document or other "
                 "installed header includes it: internal/ is for such"
                 for name in sorted(self.installed - reached)]
        if len(self.installed) > self.limit:
            found.append(f"{len(self.installed)} headers are installed, at most "
                         f"{self.limit}")
        return found


def folder_part(rules, path):
    """A folder `internal` is a part of the one it is in."""
    return rules.owners.get(path) or (
        path.rpartition("/")[0].removesuffix("/internal"))


def check_path(name, include):
    """What is wrong with the path as such, or None."""
    if {"", ".", ".."} & set(include.split("/")):
        return f"'{include}' is not the plain path of a header"
    if not include.startswith(OWN_ROOTS):
        return None
    if not include.endswith(".h"):
        return f"'{include}' is not a header: its name ends in .h"
    # A program includes itself, a test also what it tests, a fuzz target what
    # tests have in common.
    top = include.split("/")[0]
    is_own = (top == name.split("/")[0] or name.startswith(f"tests/{top}/")
              or (name.startswith("fuzz/")
                  and include.startswith("tests/support/")))
    return (None if is_own or top == "lockstep"
            else f"may not include {top} ('{include}')")


def check_include(rules, name, row, mark, include):
    """What is wrong with one include, or None."""
    folder, may_include, packages = row
    if problem := check_path(name, include):
        return problem
    if include.startswith("lockstep/"):
        other = rules.library_of(include)
        house = include.split("/")[1]
        is_allowed = other in may_include or (
            include in rules.owners and house in may_include)
        if other != folder.partition("/")[2] and not is_allowed:
            return f"may not include lockstep/{other} ('{include}')"
        if "/internal/" in include and not rules.may_see_internal(name, include):
            return f"'{include}' is internal to lockstep/{other}"
        return None
    package = rules.package_of(include)
    if package is not None:
        if package not in packages:
            return f"may not include {package} ('{include}')"
        is_public = rules.is_installed(name)
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
    if INCLUDES.match(line):
        return 'an include is written #include "path" or #include <path>'
    if re.match(r"\s*#\s*pragma\s+omp\b", line):
        return "no OpenMP: the torch wheel has its own run time"
    if "TORCH_VERSION" in line and name not in COMPAT:
        return f"only {COMPAT[0]} may look at TORCH_VERSION"
    return None


def main():
    root = root_from_arguments()
    rules = Rules(root)
    arrows = Arrows()
    names = project_files(root)
    problems = Doors(rules, root, names).problems()
    checked = 0
    if circle := rules.circle():
        problems.append(f"scripts/layers.toml: rows in a circle: {circle}")
    for name in names:
        if name.endswith(OTHER_ENDINGS):
            problems.append(f"{name}: sources end in .h or .cpp")
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
            match = INCLUDE.match(line)
            if match and match[2].startswith("lockstep/"):
                arrows.add(rules, name, number, match[2])
    if circle := arrows.circle():
        problems.append("folders in a circle: " + "; ".join(circle))
    finish("layers", problems, f"{checked} files")


main()
