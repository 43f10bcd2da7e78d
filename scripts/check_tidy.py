#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy: check_tidy.py COMPILE_COMMANDS [FILE...]

Torch-free files are always checked. A file that sees LibTorch costs most of a
minute, so of these only the changed ones are checked (against origin/main, or
the previous commit), until LOCKSTEP_TIDY_SECONDS (300) are over; what was left
out is named. LOCKSTEP_TIDY=all checks everything, LOCKSTEP_TIDY=core no torch
file. FILEs given by name are checked in any case.
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
    return result.stdout.splitlines() if result.returncode == 0 else None


def changed_stems():
    """Paths without ending that differ from the main line."""
    head = git_lines("rev-parse", "HEAD")
    main = git_lines("merge-base", "HEAD", "origin/main")
    base = "HEAD~1" if not main or main == head else main[0]
    names = (git_lines("diff", "--name-only", base) or []) + (
        git_lines("ls-files", "--others", "--exclude-standard") or [])
    return {str(pathlib.PurePosixPath(name).with_suffix(""))
            for name in names if name.endswith((".h", ".cpp"))}


def choose(entries, named):
    """(torch-free files, torch files) to check."""
    mode = os.environ.get("LOCKSTEP_TIDY", "changed")
    stems = changed_stems() if mode == "changed" else set()
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
        elif mode == "all" or name.removesuffix(".cpp") in stems:
            torch.append(name)
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


def run_all(database, names, deadline):
    """Problems found, and the names that the time did not suffice for."""
    problems, skipped = [], []

    def work(name):
        if deadline is not None and time.monotonic() > deadline:
            skipped.append(name)
            return
        name, code, text, seconds = run_tidy(database, name)
        print(f"tidy: {name} ({seconds:.0f} s)", flush=True)
        if code:
            problems.append(f"{name}:\n{text}")

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(work, names))
    return problems, skipped


def main():
    # A file that several targets compile is checked once.
    entries = list({e["file"]: for_clang(e)
                    for e in json.load(open(sys.argv[1]))}.values())
    database = ROOT / "build/lint/tidy"
    database.mkdir(parents=True, exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(entries))
    core, torch = choose(entries, set(sys.argv[2:]))
    start = time.monotonic()
    problems, _ = run_all(database, core, None)
    core_seconds = time.monotonic() - start
    limit = float(os.environ.get("LOCKSTEP_TIDY_SECONDS", "300"))
    if os.environ.get("LOCKSTEP_TIDY") == "all":
        limit = float("inf")
    more, skipped = run_all(database, torch, time.monotonic() + limit)
    if skipped:
        print(f"tidy: no time left for {' '.join(skipped)}; "
              "LOCKSTEP_TIDY=all checks them")
    finish("tidy", problems + more,
           f"{len(core)} torch-free files in {core_seconds:.0f} s, "
           f"{len(torch) - len(skipped)} torch files")


if __name__ == "__main__":
    main()
