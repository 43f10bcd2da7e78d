# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that are killed, stopped, stuck or gone: the others must say who and where.

    faults_test.py RANK_PROGRAM LOCKSTEP [COUNT [SEED]]

First each fault once, with ranks that are started by hand, by `lockstep run` and
by torchrun; then COUNT jobs of random sizes, faults and moments. No job may hang,
every rank that is left must name the rank that failed and the collective in
which it was missed, and no process may be left. The seed gives the same jobs.
"""

import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from free_port import free_port

TIMEOUT = 2.0  # seconds that a collective may take
HANGS = 60  # seconds: far more than any machine needs
PLACES = ("wrap", "forward", "backward", "update")
STEPS = 12
# At any moment of the start: this test strikes, and the others would go on for good.
START = "start"
LONGEST_START = 1.5  # seconds, on an idle machine
FOREVER = 10**6  # steps

Fault = collections.namedtuple("Fault", "name rank step place size backend",
                               defaults=("",))

# What the others say about the rank that failed, and the status of that rank.
TEXTS = {
    "kill": ("is gone|waited|does not answer|cannot reach", -signal.SIGKILL),
    "stop": ("is stopped|waited|does not answer|cannot reach", None),
    "hang": ("is late|waited", None),
    "throw": ("has left the job|is gone|waited|does not answer", 1),
    "exit": ("has left the job|is gone|waited|does not answer", 0),
    "quit": ("is gone|waited|does not answer", 0),
    "leave": ("has left the job|is gone|waited|does not answer|reset", 1),
    "other": ("does something else|waited|does not answer", 1),
}
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
WHERE = re.compile(r"collective \d+ \(\w+|waited [\d.]+ s|the store")


def left_over(marker):
    """Processes that were started with the marker and still run."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (marker.encode() in (entry / "environ").read_bytes()
                    and "State:\tZ" not in (entry / "status").read_text()):
                found.append(int(entry.name))
        except (OSError, ValueError):
            pass
    return found


class Job:
    """Starts ranks, and knows how each has ended."""

    def __init__(self, program, lockstep):
        self.program = program
        self.lockstep = lockstep

    def command(self, fault, timeout=TIMEOUT):
        steps = FOREVER if fault.place == START else STEPS
        return [self.program, *map(str, (
            steps, timeout, fault.name, fault.rank, fault.step, fault.place,
            fault.backend))]

    def by_hand(self, fault, missing=(), timeout=TIMEOUT, meanwhile=None):
        """Statuses, error texts and record files by rank, and whether it hung.

        `meanwhile(ranks, folder)` is called once all have started; a rank that it
        stops at another moment than the start must go on."""
        marker = f"FAULTS_TEST={uuid.uuid4()}"
        port = str(free_port())
        ranks = {}
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(fault.size):
                if rank in missing:
                    continue
                own = pathlib.Path(folder, str(rank))
                own.mkdir()
                with open(own / "stderr", "wb") as errors:
                    ranks[rank] = subprocess.Popen(
                        self.command(fault, timeout),
                        stdout=subprocess.DEVNULL,
                        stderr=errors,
                        env={**os.environ, "FAULTS_TEST": marker.split("=")[1],
                             "RANK": str(rank), "WORLD_SIZE": str(fault.size),
                             "LOCAL_RANK": str(rank),
                             "LOCAL_WORLD_SIZE": str(fault.size),
                             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                             "TORCHELASTIC_ERROR_FILE": str(own / "error.json")})
            if meanwhile is not None:
                meanwhile(ranks, pathlib.Path(folder))
            others = [r for r in ranks if r != fault.rank]
            hung = self.wait([ranks[r] for r in others])
            if (not hung and fault.rank in ranks
                    and (meanwhile is None or fault.place == START)
                    and fault.name in ("stop", "hang")):
                ranks[fault.rank].kill()
            hung = hung or self.wait(ranks.values())
            for process in ranks.values():
                process.kill()
                process.wait()
            texts = {rank: pathlib.Path(folder, str(rank), "stderr").read_text()
                     for rank in ranks}
            files = {rank: pathlib.Path(folder, str(rank), "collectives.json")
                     .exists() for rank in ranks}
        assert not left_over(marker), left_over(marker)
        return {rank: p.returncode for rank, p in ranks.items()}, texts, files, hung

    @staticmethod
    def wait(processes):
        deadline = time.monotonic() + HANGS
        for process in processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return True
        return False

    def under(self, launcher, fault):
        """Status and output of a job that a launcher starts."""
        marker = f"FAULTS_TEST={uuid.uuid4()}"
        process = subprocess.Popen(
            [*launcher, "--nproc-per-node", str(fault.size),
             *self.command(fault)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1",
                 "FAULTS_TEST": marker.split("=")[1]})
        try:
            text, _ = process.communicate(timeout=2 * HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "hangs", "", left_over(marker)
        deadline = time.monotonic() + HANGS
        while left_over(marker) and time.monotonic() < deadline:
            time.sleep(0.05)
        return process.returncode, text, left_over(marker)


def names_rank(text, rank):
    return re.search(rf"\branks? (\d+, )*{rank}\b", text) is not None


def complaints(fault, statuses, texts, files, hung):
    """What is wrong with how the ranks of a job have ended."""
    found = ["hangs"] if hung else []
    about, own_status = TEXTS[fault.name]
    for rank, status in statuses.items():
        if rank == fault.rank:
            if own_status is not None and status != own_status:
                found.append(f"rank {rank}: status {status}, not {own_status}")
            continue
        text = texts[rank]
        if status != 1:
            found.append(f"rank {rank}: status {status}")
        elif not (names_rank(text, fault.rank) and re.search(about, text)
                  and WHERE.search(text)):
            found.append(f"rank {rank} does not say it: {text}")
        elif " did not end in " in text and not files[rank]:
            found.append(f"rank {rank} has left no collectives.json")
    return found


def random_fault(rng):
    size = rng.choice((2, 3, 4))
    place = rng.choice((*PLACES, START))
    names = sorted(SIGNALS) if place == START else sorted(TEXTS)
    return Fault(rng.choice(names), rng.randrange(size),
                 -1 if place in ("wrap", START) else rng.randrange(STEPS), place,
                 size, rng.choice(("gloo", "shm")))


class Tests:
    def __init__(self, job):
        self.job = job
        self.failures = 0
        self.begin = time.monotonic()

    def report(self, what, found):
        seconds = time.monotonic() - self.begin
        print(f"{what:52} {seconds:5.1f} s  {'; '.join(found) or 'ok'}", flush=True)
        self.begin = time.monotonic()
        self.failures += bool(found)

    def run_by_hand(self, fault, wait=0.0):
        def strike(ranks, _):
            time.sleep(wait)
            ranks[fault.rank].send_signal(SIGNALS[fault.name])

        self.report(f"by hand {fault.size} {fault.backend}: {fault.name} rank "
                    f"{fault.rank} {fault.place} "
                    f"{round(wait, 2) if fault.place == START else fault.step}",
                    complaints(fault, *self.job.by_hand(
                        fault,
                        meanwhile=strike if fault.place == START else None)))

    def ranks_that_never_start(self):
        fault = Fault("none", -1, -1, "none", 3)
        for missing in ((2,), (0,)):
            statuses, texts, _, hung = self.job.by_hand(fault, missing)
            found = ["hangs"] if hung else []
            found += [f"rank {rank}: {texts[rank]}" for rank in statuses
                      if statuses[rank] != 1
                      or not names_rank(texts[rank], missing[0])]
            self.report(f"by hand 3: rank {missing[0]} never starts", found)

    def stopped_for_a_while(self):
        fault = Fault("stop", 1, 5, "update", 3)

        def meanwhile(ranks, folder):
            deadline = time.monotonic() + HANGS
            for rank in (0, 2):
                warning = rf"rank {rank} has waited \d+ s in .*rank 1 is stopped"
                while (not re.search(warning, (folder / str(rank) / "stderr")
                                     .read_text())
                       and time.monotonic() < deadline):
                    time.sleep(0.05)
            ranks[1].send_signal(signal.SIGCONT)
            if time.monotonic() > deadline:
                self.report("by hand 3: warnings", ["there is none"])

        statuses, texts, _, hung = self.job.by_hand(
            fault, timeout=HANGS, meanwhile=meanwhile)
        self.report("by hand 3: rank 1 is stopped for a while",
                    ["hangs"] if hung else
                    [texts[rank] for rank in statuses if statuses[rank]])

    def run_under(self, name, launcher, fault, status, pattern):
        code, text, left = self.job.under(launcher, fault)
        found = [] if code == status else [f"status {code}, not {status}"]
        found += [] if re.search(pattern, text) else [f"says\n{text}"]
        found += [f"left {left}"] if left else []
        self.report(f"{name}: {fault.name} rank {fault.rank}", found)

    def run_under_lockstep(self):
        launcher = [self.job.lockstep, "run"]
        for fault, status, pattern in (
                (Fault("kill", 1, 5, "backward", 3), 137,
                 r"first failure: rank 1 .*killed by SIGKILL"),
                (Fault("throw", 2, 5, "forward", 3), 1,
                 r"first failure: rank 2 .*exit status 1\n.*no such file"),
                (Fault("quit", 0, 5, "update", 3), 1,
                 r"first failure: rank [12] .*\n.*collective \d+ .*rank 0 is gone"),
                (Fault("stop", 1, 5, "update", 2), 1,
                 r"first failure: rank 0 .*\n.*rank 1 is stopped")):
            self.run_under("lockstep run", launcher, fault, status, pattern)
        fault = Fault("kill", 1, 5, "backward", 2)
        self.run_under("lockstep run --max-restarts 1",
                       [*launcher, "--max-restarts", "1"], fault, 0,
                       r"killed by SIGKILL(.|\n)*restart 1 of 1(.|\n)*done")

    def run_under_torchrun(self):
        launcher = [pathlib.Path(sys.executable).parent / "torchrun",
                    "--no-python"]
        for fault, pattern in (
                (Fault("throw", 1, 5, "forward", 2), r"no such file"),
                (Fault("quit", 1, 5, "update", 2),
                 r"collective \d+ .*rank 1 is gone")):
            self.run_under("torchrun", launcher, fault, 1,
                           rf"Root Cause(.|\n)*{pattern}")
        self.run_under("torchrun --max-restarts 1",
                       [*launcher, "--max-restarts", "1"],
                       Fault("kill", 1, 5, "backward", 2), 0, "done")


def main():
    program, lockstep, *rest = sys.argv[1:]
    count = int(rest[0]) if rest else 10
    seed = int(rest[1]) if len(rest) > 1 else random.randrange(10**6)
    tests = Tests(Job(program, lockstep))
    if len(rest) < 2:
        for number, name in enumerate(TEXTS):
            tests.run_by_hand(Fault(name, number % 3, 3,
                                    PLACES[1 + number % 3], 3))
        tests.ranks_that_never_start()
        tests.stopped_for_a_while()
        tests.run_under_lockstep()
        tests.run_under_torchrun()
    rng = random.Random(seed)
    for _ in range(count):
        tests.run_by_hand(random_fault(rng), rng.uniform(0, LONGEST_START))
    print(f"seed {seed}: {count} random jobs; {tests.failures} failures in all")
    return 1 if tests.failures else 0


if __name__ == "__main__":
    sys.exit(main())
