#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy: check_tidy.py COMPILE_COMMANDS [FILE...]

It checks the batches that the build compiles: what LibTorch's headers cost is
paid once for each. The whole tree takes too long for CI, so what was changed last is
checked first, and what LOCKSTEP_TIDY_SECONDS (200) do not suffice for is left
out and counted: half of them are for torch-free files. LOCKSTEP_TIDY=all checks
everything, LOCKSTEP_TIDY=core everything that is torch-free. The batches of FILEs
given by name are checked in any case.
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
TIDY = ROOT / ".venv/bin/clang-tidy"
# GCC's precompiled header means nothing to clang; nor do some warnings.
DROPPED = {"-Winvalid-pch", "-Werror", "-Wno-restrict"}
# A batch is a file that includes sources.
OPTIONS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option",
           "--checks=-bugprone-suspicious-include"]


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
        elif word not in DROPPED and not word.startswith("--param="):
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


def sources(entry):
    """The files of the project, relative, that an entry of the compile database
    compiles: those of a batch, or its own."""
    path = pathlib.Path(entry["file"])
    paths = [path]
    if path.name.startswith("unity_"):
        paths = [pathlib.Path(line.split('"')[1])
                 for line in path.read_text().splitlines()
                 if line.startswith("#include")]
    return [str(path.relative_to(ROOT)) for path in paths
            if path.is_relative_to(ROOT)
            and not any(path.is_relative_to(ROOT / folder)
                        for folder in ("build", ".venv"))]


def choose(entries, named):
    """(torch-free, torch) entries to check, what was changed last first."""
    age = ages()
    core, torch = [], []
    for entry in entries:
        names = sources(entry)
        if not names or (named and not named & set(names)):
            continue
        rank = min(age.get(name.rpartition(".")[0], len(age)) for name in names)
        sees_torch = any("libtorch" in word or "/torch/include" in word
                         for word in entry["arguments"])
        if not sees_torch:
            core.append((rank, entry))
        elif named or os.environ.get("LOCKSTEP_TIDY") != "core":
            torch.append((rank, entry))
    for part in core, torch:
        part.sort(key=lambda ranked: ranked[0])
    return [[entry for _, entry in part] for part in (core, torch)]


def own_options(entry):
    """A batch lies in the build: the options of its sources' folder."""
    folder = (ROOT / sources(entry)[0]).parent
    while not (folder / ".clang-tidy").exists():
        folder = folder.parent
    return [] if folder == ROOT else [f"--config-file={folder}/.clang-tidy"]


def run_tidy(database, entry):
    name = entry["file"]
    start = time.monotonic()
    result = subprocess.run(
        [TIDY, *OPTIONS, *own_options(entry), "-p", database, name],
        capture_output=True, text=True, check=False)
    # stderr only counts suppressed warnings, unless the run itself failed.
    text = result.stdout + (result.stderr if result.returncode else "")
    return name, result.returncode, text, time.monotonic() - start


def run_all(database, entries, seconds):
    """Problems found, and for how many batches the time did not suffice."""
    problems, skipped = [], []
    deadline = time.monotonic() + seconds

    def work(entry):
        if time.monotonic() > deadline:
            skipped.append(entry)
            return
        name, code, text, seconds = run_tidy(database, entry)
        name = name.removeprefix(f"{ROOT}/build/lint/")
        print(f"tidy: {name} ({seconds:.0f} s)", flush=True)
        if code:
            problems.append(f"{name}:\n{text}")

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(work, entries))
    return problems, len(skipped)


def main():
    # A file that several targets compile is checked once.
    entries = list({e["file"]: for_clang(e)
                    for e in json.load(open(sys.argv[1]))}.values())
    database = ROOT / "build/lint/tidy"
    database.mkdir(parents=True, exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(entries))
    core, torch = choose(entries, set(sys.argv[2:]))
    limit = float(os.environ.get("LOCKSTEP_TIDY_SECONDS", "200"))
    if sys.argv[2:] or os.environ.get("LOCKSTEP_TIDY") in ("all", "core"):
        limit = float("inf")
    problems, skipped = run_all(database, core, limit / 2)
    more, skipped_torch = run_all(database, torch, limit / 2)
    if skipped or skipped_torch:
        print(f"tidy: no time left for {skipped} torch-free batches and "
              f"{skipped_torch} torch batches; LOCKSTEP_TIDY=all checks them")
    finish("tidy", problems + more,
           f"{len(core) + len(torch) - skipped - skipped_torch} batches")


if __name__ == "__main__":
    main()
