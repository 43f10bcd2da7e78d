# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of C++ and Python ranks: all must end with the bits of Python alone.

    ranks_test.py PROGRAM [all]

All jobs of all scenarios take minutes; without "all" each scenario has one mixed
job, "plain" has all.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import torch

# Which ranks are C++ (c) and which Python (p).
JOBS = ("cc", "cp", "pc", "pcp", "ccc")
SCENARIOS = {
    "plain": JOBS,
    "views": ("cp",),
    "unused": ("pc",),
    "static": ("cp",),
    "no_sync": ("pc",),
    "small_buckets": ("ccc",),
    "evaluation": ("cp",),
    "adamw": ("pc",),
}
PYTHON_RANK = pathlib.Path(__file__).parent.parent / "oracle/dist_rank.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_job(program, scenario, job, folder):
    """Starts a rank for each letter; their state dictionaries, by rank."""
    port = str(free_port())
    ranks = []
    for rank, language in enumerate(job):
        command = [program] if language == "c" else [sys.executable, PYTHON_RANK]
        command += [scenario, str(folder)]
        if language == "c" and "p" in job:
            command.append("mixed")
        ranks.append(subprocess.Popen(command, env={
            **os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(job)),
            "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(len(job)),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}))
    try:
        codes = [rank.wait(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    if any(codes):
        sys.exit(f"{scenario} {job}: exit codes {codes}")
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(len(job))]


def differences(states, expected):
    """Entries that are not the expected bits."""
    found = []
    for rank, (state, reference) in enumerate(zip(states, expected)):
        if list(state) != list(reference):
            found.append(f"rank {rank}: keys {list(state)}")
        found += [f"rank {rank}: {name}" for name in reference
                  if not torch.equal(state[name], reference[name])]
    return found


def main():
    program, *runs_all = sys.argv[1:]
    failed = False
    for scenario, jobs in SCENARIOS.items():
        expected = {}
        for job in JOBS if runs_all else jobs:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                if len(job) not in expected:
                    expected[len(job)] = run_job(
                        program, scenario, "p" * len(job), folder)
                states = run_job(program, scenario, job, folder)
            found = differences(states, expected[len(job)])
            print(f"{scenario:13} {job:4} "
                  f"{'differs: ' + ', '.join(found) if found else 'equal'}",
                  flush=True)
            failed = failed or bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main())
