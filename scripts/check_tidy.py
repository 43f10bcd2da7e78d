#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy: check_tidy.py COMPILE_COMMANDS [FILE...]

The whole tree takes hours, so what was changed last is checked first, and what
LOCKSTEP_TIDY_SECONDS (900) do not suffice for is left out and counted: two
thirds of them are for torch-free files, a third is for those that see LibTorch,
which cost most of a minute each. LOCKSTEP_TIDY=all checks everything,
LOCKSTEP_TIDY=core everything that is torch-free. FILEs given by name are checked
in any case.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from check_common import finish

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = int(os.environ.get("LOCKSTEP_JOBS", "2"))
# GCC's precompiled header means nothing to clang; nor do some warnings.
DROPPED = {"-Winvalid-pch", "-Werror", "-Wno-restrict"}


def for_clang(entry):
    """The entry of the compile database without what only GCC understands."""
    words = shlex.split(entry["command"])
    if words[0].endswith("ccache"):
        words = words[1:]
    kept = []
    while words:
        word = words.pop(0)
        if word == "-include" and words[0].endswith("cmake_pch.hxx"):
            words.pop(0)
        elif word not in DROPPED:
            kept.append(word)
    return {"directory": entry["directory"], "file": entry["file"],
            "arguments": kept}


def git_lines(*arguments):
    result = subprocess.run(["git", "-C", str(ROOT), *arguments],
                            capture_output=True, text=True, check=False)
    return result.stdout.splitlines() if result.returncode == 0 else []


def ages():
    """Ranks of paths without ending: what was changed last has the lowest."""
    names = (git_lines("ls-files", "--others", "--exclude-standard") +
             git_lines("diff", "--name-only", "HEAD") +
             git_lines("log", "--format=", "--name-only"))
    found = {}
    for name in names:
        found.setdefault(name.rpartition(".")[0], len(found))
    return found


def choose(entries, named):
    """(torch-free files, torch files) to check, what was changed last first."""
    core, torch = [], []
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(
                ROOT / "build"):
            continue
        name = str(path.relative_to(ROOT))
        sees_torch = any("libtorch" in word or "/torch/include" in word
                         for word in entry["arguments"])
        if named:
            if name in named:
                core.append(name)
        elif not sees_torch:
            core.append(name)
        elif os.environ.get("LOCKSTEP_TIDY") != "core":
            torch.append(name)
    age = ages()
    for names in core, torch:
        names.sort(key=lambda name: age.get(name.rpartition(".")[0], len(age)))
    return core, torch


def run_tidy(database, name):
    start = time.monotonic()
    result = subprocess.run(
        ["clang-tidy-16", "--quiet", "-p", str(database),
         "--extra-arg=-Wno-unknown-warning-option", str(ROOT / name)],
        capture_output=True, text=True, check=False)
    # stderr only counts suppressed warnings, unless the run itself failed.
    text = result.stdout + (result.stderr if result.returncode else "")
    return name, result.returncode, text, time.monotonic() - start


def run_all(database, names, seconds):
    """Problems found, and for how many files the time did not suffice."""
    problems, skipped = [], []
    deadline = time.monotonic() + seconds

    def work(name):
        if time.monotonic() > deadline:
            skipped.append(name)
            return
        name, code, text, seconds = run_tidy(database, name)
        print(f"tidy: {name} ({seconds:.0f} s)", flush=True)
        if code:
            problems.append(f"{name}:\n{text}")

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(work, names))
    return problems, len(skipped)


def main():
    # A file that several targets compile is checked once.
    entries = list({e["file"]: for_clang(e)
                    for e in json.load(open(sys.argv[1]))}.values())
    database = ROOT / "build/lint/tidy"
    database.mkdir(parents=True, exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(entries))
    core, torch = choose(entries, set(sys.argv[2:]))
    limit = float(os.environ.get("LOCKSTEP_TIDY_SECONDS", "900"))
    if sys.argv[2:] or os.environ.get("LOCKSTEP_TIDY") in ("all", "core"):
        limit = float("inf")
    problems, skipped = run_all(database, core, limit * 2 / 3)
    more, skipped_torch = run_all(database, torch, limit / 3)
    if skipped or skipped_torch:
        print(f"tidy: no time left for {skipped} torch-free files and "
              f"{skipped_torch} torch files; LOCKSTEP_TIDY=all checks them")
    finish("tidy", problems + more,
           f"{len(core) + len(torch) - skipped - skipped_torch} files")


if __name__ == "__main__":
    main()
