# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of C++ and Python ranks: all must end with the bits of Python alone.

    ranks_test.py PROGRAM [all]

All jobs of all scenarios take half an hour; without "all" most scenarios have one
mixed job.
"""

import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

import torch

# Which ranks are C++ (c) and which Python (p), over Gloo: each place of one C++
# rank among two, three and four, and C++ alone; s: C++ over shared memory, which
# adds in the order of the ranks. With two that is Gloo's, too.
ALL_JOBS = ("cp", "pc", "cc", "ss", "cpp", "pcp", "ppc", "ccc",
            "cppp", "pcpp", "ppcp", "pppc", "cccc")
SCENARIOS = {
    "plain": ("cc", "pc", "ss", "ppcp"),
    "views": ("cp", "ss"),
    "unused": ("pc", "ss"),
    "static": ("cp", "ss"),
    "no_sync": ("pc", "ss"),
    "small_buckets": ("ccc", "ss"),
    "evaluation": ("cp", "ss"),
    "adamw": ("pc", "ss"),
    "fp16": ("cp", "ss"),
    "bf16": (),
    "power_sgd": ("cp", "ss"),
    "power_sgd_qr": (),
    "join": ("pcp",),
    "join_divide": (),
    "groups": ("cp", "ss"),
    "zero": ("pc", "ss"),
}
PYTHON_RANK = pathlib.Path(__file__).parent.parent / "oracle/dist_rank.py"
sys.path.insert(0, str(PYTHON_RANK.parent))
import dist_rank  # noqa: E402


def free_port():
    """Below the ports of clients: of these a rank that waits for the store may be
    given the store's own, and is then connected with itself."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def run_job(program, scenario, job, folder):
    """Starts a rank for each letter; their state dictionaries, by rank."""
    port = str(free_port())
    (folder / "optimizer.pt").unlink(missing_ok=True)
    ranks = []
    for rank, language in enumerate(job):
        command = [sys.executable, PYTHON_RANK] if language == "p" else [program]
        command += [scenario, str(folder)]
        if language != "p":
            command.append("shm" if language == "s" else "gloo")
        if "c" in job and "p" in job:
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
    states = [torch.load(folder / f"rank{rank}.pt") for rank in range(len(job))]
    if scenario == "zero" and len(set(job)) == 1:
        states.append(optimizer_state(folder / "optimizer.pt"))
    return states


def optimizer_state(path):
    """What Python's optimizer makes of a sharded one's state."""
    optimizer = torch.optim.AdamW(dist_rank.Net().parameters())
    optimizer.load_state_dict(torch.load(path))
    return {f"{key} of {number}": value
            for number, state in optimizer.state_dict()["state"].items()
            for key, value in state.items()}


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
        for job in ALL_JOBS if runs_all else jobs:
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
