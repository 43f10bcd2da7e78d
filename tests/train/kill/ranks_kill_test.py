# SPDX-License-Identifier: BSD-3-Clause
"""Kills ranks of `lockstep train`, and their starter, at random moments.

    ranks_kill_test.py LOCKSTEP KILL_RUN [KILLS [SEED [SIZES]]]

`lockstep run` starts the ranks again; a starter that was killed is started again
here. What is left at the end must be that of a job which nobody killed, byte for
byte (times left out), and no process may be left. One kind of job trains on
FashionMNIST, one a net that Python exported on pictures in folders, and in one,
which KILL_RUN makes, a rank has little memory, so that steps are made again.
SIZES: numbers of ranks, "2" unless said otherwise.
"""

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
from kill_test import what_is_left

FLAGS = ("--threads 1 --lr 0.05 --lr-step-size 1 --log-interval 1 "
         "--checkpoint-interval 4 --progress off").split()
FASHION = ("--model mlp --epochs 3 --batch-size 36 --max-train-samples 720 "
           "--max-eval-samples 144 --accumulate 2 --clip-grad 1 --ema 0.9 "
           "--amp fp16 --warmup-steps 4 --class-weights balanced "
           "--sampler balanced --layer-decay 0.8 --no-decay-norms "
           "--patience 9").split()
PICTURES = ("--epochs 8 --data folder --img-size 16 --batch-size 8 --augment strong "
            "--mixup-alpha 0.4 --cutmix-alpha 1 --metric f1_macro").split()
ENDS = 120  # seconds: far more than any machine needs


def children_of(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in path.read_text().split()]
    except OSError:
        return []


def runs(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return "State:\tZ" not in status


def check_gone(pids, what):
    deadline = time.monotonic() + ENDS
    while any(map(runs, pids)):
        if time.monotonic() > deadline:
            sys.exit(f"{what}: {list(filter(runs, pids))} are left")
        time.sleep(0.02)


class Case:
    """Jobs of one size, the undisturbed result, and how they fared."""

    def __init__(self, programs, size, home, kind):
        lockstep, kill_run = programs
        self.size = size
        self.home = home
        self.kind = kind
        # Without the flag a job knows by itself that it was started again.
        self.resumes = kind != "folder"
        self.name = f"{size} ranks, {kind}"
        starter = [lockstep, "run", "--nproc-per-node", str(size), "--max-restarts", "1000"]
        train = [lockstep, "train", "--strategy", "distributed", *FLAGS]
        pictures = [*PICTURES, "--model", home / "data" / "net.pt2",
                    "--data-dir", home / "data" / "classes"]
        # A job's command in a folder.
        self.command = {
            "fashion": lambda folder: [*starter, *train, *FASHION, "--output", folder, "--resume", "auto"],
            "folder": lambda folder: [*starter, *train, *pictures, "--output", folder],
            "memory": lambda folder: [*starter, kill_run, "memory", folder, home / "data"],
        }[kind]
        self.kills = self.starter_kills = self.late = 0
        self.differences = []
        begin = time.monotonic()
        folder = home / f"undisturbed-{size}-{kind}" / "run"
        self.finish(self.start(folder), "undisturbed")
        self.seconds = time.monotonic() - begin
        self.expected = what_is_left(folder)

    def start(self, folder):
        return subprocess.Popen(
            self.command(folder),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"})

    def finish(self, starter, what):
        _, errors = starter.communicate(timeout=600)
        if starter.returncode != 0:
            sys.exit(f"{self.name}, {what}: status {starter.returncode}\n"
                     f"{errors.decode()}")

    def kill_once(self, starter, folder, rng):
        """False if the job was over before."""
        if not self.resumes:
            # Until then there is nothing that could be gone on with.
            while (starter.poll() is None
                   and not (folder / "checkpoint.pth.tar").exists()):
                time.sleep(0.01)
        try:
            starter.wait(rng.uniform(0, self.seconds))
            self.late += 1
            return False
        except subprocess.TimeoutExpired:
            pass
        ranks = children_of(starter.pid)
        if self.resumes and rng.random() < 0.25:
            starter.kill()
            starter.communicate()
            check_gone(ranks, "the starter was killed")
            self.starter_kills += 1
        elif ranks:
            try:
                os.kill(rng.choice(ranks), signal.SIGKILL)
            except ProcessLookupError:
                return True
            self.kills += 1
        return True

    def kill_and_go_on(self, kills, rng):
        folder = self.home / f"killed-{self.size}-{self.kind}" / "run"
        starter = self.start(folder)
        for _ in range(kills):
            if not self.kill_once(starter, folder, rng):
                break
            if starter.poll() is not None and starter.returncode == -9:
                starter = self.start(folder)
        self.finish(starter, "killed")
        left = what_is_left(folder)
        for name in sorted(set(left) | set(self.expected)):
            if left.get(name) != self.expected.get(name):
                self.differences.append(name)
        others = [path.name for path in folder.parent.iterdir()
                  if path != folder]
        self.differences += [f"a second folder {name}" for name in others]
        shutil.rmtree(folder.parent)


def main():
    programs = sys.argv[1:3]
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(10**6)
    sizes = sys.argv[5] if len(sys.argv) > 5 else "2"
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        own_data.write_all(pathlib.Path(home) / "data")
        cases = [Case(programs, int(size), pathlib.Path(home), kind)
                 for size in sizes.split(",") for kind in ("fashion", "folder", "memory")]
        turn = 0
        while sum(case.kills + case.starter_kills for case in cases) < kills:
            cases[turn % len(cases)].kill_and_go_on(3, rng)
            turn += 1
    print(f"seed {seed}")
    print(f"{'job':24}{'ranks':>7}{'starters':>10}{'too late':>10}"
          f"{'differences':>13}")
    for case in cases:
        print(f"{case.name:24}{case.kills:7}{case.starter_kills:10}"
              f"{case.late:10}{len(case.differences):13}")
        for text in case.differences:
            print(f"  {text}")
    failures = sum(len(case.differences) for case in cases)
    print(f"{sum(c.kills + c.starter_kills for c in cases)} kills, "
          f"{failures} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
