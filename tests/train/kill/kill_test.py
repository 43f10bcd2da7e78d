# SPDX-License-Identifier: BSD-3-Clause
"""Kills runs with SIGKILL at random moments and lets them go on.

    kill_test.py PROGRAM [KILLS [SEED [RUNS]]]

What is left at the end must be that of a run which nobody killed: the
checkpoints, the best one and the tables, byte for byte (times left out). Ends
with a table; status 1 if anything differs. The seed gives the same moments, as
far as a machine can. RUNS: names with commas between, all unless said otherwise.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import own_data

# Columns of results.csv and members of metrics.jsonl that are times, and what
# those end with that are times of phases and sizes of memory.
TIME_COLUMNS = ("images_per_s", "epoch_s", "user_s", "system_s")
TIME_MEMBERS = ("seconds", "data_seconds", *TIME_COLUMNS)
COST_ENDS = ("_s", "_bytes")


def table_without_times(path):
    rows = [line.split(",") for line in path.read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name not in TIME_COLUMNS]
    return [[row[i] for i in kept] for row in rows]


def lines_without_times(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in record.items()
             if name not in TIME_MEMBERS and not name.endswith(COST_ENDS)}
            for record in records]


def log_without_times(path):
    """The positions that the log tells: each step and test once, in order."""
    rows = [line for line in path.read_text().splitlines()
            if line.startswith(("Epoch: [", "Test:"))]
    return [" ".join(row.split("eta:")[0].split("Total")[0].split())
            for row in rows]


def what_is_left(folder):
    """Name -> what must be equal, for every file of the run."""
    readers = {
        "results.csv": table_without_times,
        "metrics.jsonl": lines_without_times,
        "env.json": lambda path: json.loads(path.read_text())["args"],
        "log.txt": log_without_times,
    }
    left = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("events.out.tfevents."):
            continue  # one per start; EventObserverTest compares the points
        if path.name == "report.html":
            continue  # it tells times; report.json and results.svg do not
        left[path.name] = readers.get(path.name, pathlib.Path.read_bytes)(path)
        if path.is_symlink():
            left[path.name + " ->"] = os.readlink(path)
    return left


def finish(process, what):
    _, errors = process.communicate(timeout=600)
    if process.returncode != 0:
        sys.exit(f"{what}: status {process.returncode}\n{errors.decode()}")


class Case:
    """One kind of run, its undisturbed result, and how it fared."""

    def __init__(self, program, name, home):
        self.program = program
        self.name = name
        self.home = home
        begin = time.monotonic()
        folder = home / "undisturbed" / name
        finish(self.start(folder), f"{name}, undisturbed")
        self.seconds = time.monotonic() - begin
        self.expected = what_is_left(folder)
        self.kills = 0
        self.late = 0
        self.inside_writes = 0
        self.differences = []

    def start(self, folder):
        return subprocess.Popen(
            [self.program, self.name, folder, self.home / "data"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def kill_and_go_on(self, kills, rng):
        """One run that is killed `kills` times and then left alone."""
        # The same name: it is the title of results.svg.
        folder = self.home / "killed" / self.name
        moments = []
        for _ in range(kills):
            moment = rng.uniform(0, self.seconds)
            moments.append(round(moment, 3))
            process = self.start(folder)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
            if process.returncode not in (0, -signal.SIGKILL):
                sys.exit(f"{self.name}: status {process.returncode}\n"
                         f"{errors.decode()}")
            if process.returncode == 0:
                self.late += 1
            else:
                self.kills += 1
            if folder.exists() and any(".tmp." in path.name
                                       for path in folder.iterdir()):
                self.inside_writes += 1
        finish(self.start(folder), f"{self.name}, killed at {moments} s")
        left = what_is_left(folder)
        for name in sorted(set(left) | set(self.expected)):
            if left.get(name) != self.expected.get(name):
                self.differences.append(f"{name} after kills at {moments} s")
        shutil.rmtree(folder)


def main():
    program = sys.argv[1]
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    rng = random.Random(seed)
    names = subprocess.run([program], check=True, capture_output=True,
                           text=True).stdout.split()
    if len(sys.argv) > 4:
        names = sys.argv[4].split(",")
    with tempfile.TemporaryDirectory() as home:
        own_data.write_all(pathlib.Path(home) / "data")
        cases = [Case(program, name, pathlib.Path(home)) for name in names]
        turn = 0
        while sum(case.kills for case in cases) < kills:
            cases[turn % len(cases)].kill_and_go_on(2, rng)
            turn += 1
    print(f"seed {seed}")
    print(f"{'run':16}{'kills':>6}{'in a write':>12}{'too late':>10}"
          f"{'differences':>13}")
    for case in cases:
        print(f"{case.name:16}{case.kills:6}{case.inside_writes:12}"
              f"{case.late:10}{len(case.differences):13}")
        for text in case.differences:
            print(f"  {text}")
    failures = sum(len(case.differences) for case in cases)
    total = sum(case.kills for case in cases)
    print(f"{total} kills, {failures} differences")
    return 1 if failures or total < kills else 0


if __name__ == "__main__":
    sys.exit(main())
