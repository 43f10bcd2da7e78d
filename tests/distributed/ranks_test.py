# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of C++ and Python ranks: all must end with the bits of Python alone.

    ranks_test.py PROGRAM

A job is a group of processes that trains a model for every scenario, one after
another: to start a rank takes longer than to train one of them.
"""

import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch

from free_port import free_port

# Which ranks are C++ (c) and which Python (p), over Gloo: each place of one C++
# rank among two, three and four, several of them, and C++ alone; s: C++ over
# shared memory, which adds in the order of the ranks. With two that is Gloo's, too.
JOBS = ("cp", "pc", "cc", "ss", "cpp", "pcp", "ppc", "cpc", "ccc",
        "cppp", "pcpp", "ppcp", "pppc", "cppc", "pccp", "cccc")
SCENARIOS = (
    "plain", "views", "unused", "static", "no_sync", "small_buckets", "evaluation",
    "adamw", "fp16", "bf16", "power_sgd", "power_sgd_qr", "join", "join_divide",
    "groups", "zero")
# Seconds that a job may take on a busy machine; it takes less than a minute.
HANGS = 20 * 60
ORACLE = pathlib.Path(__file__).parent.parent / "oracle"
sys.path.insert(0, str(ORACLE))
import dist_rank  # noqa: E402

# Ranks of Python are forks of a process that has imported torch once, and what
# an optimizer's first step imports.
os.environ["PYTHONPATH"] = str(ORACLE)
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["dist_rank", "torch._dynamo"])


def environment(job, rank, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(len(job)),
            "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(len(job)),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def run_python_rank(variables, arguments):
    os.environ.update(variables)
    dist_rank.main(arguments)


class PythonRank:
    """A rank with the methods of a subprocess.Popen that are used here."""

    def __init__(self, variables, arguments):
        self.process = FORKS.Process(target=run_python_rank, args=(variables, arguments))
        self.process.start()

    def poll(self):
        return self.process.exitcode

    def kill(self):
        self.process.kill()

    def wait(self):
        self.process.join()


def start_rank(program, job, rank, folder, port):
    is_mixed = "c" in job and "p" in job
    backend = "mixed" if is_mixed else "shm" if job[rank] == "s" else "gloo"
    arguments = [folder, backend, *SCENARIOS]
    variables = environment(job, rank, port)
    if job[rank] == "p":
        return PythonRank(variables, arguments)
    return subprocess.Popen([program, *arguments], env={**os.environ, **variables})


def exit_codes(ranks):
    """Those of all ranks, or as they are when one fails or they hang: None for a
    rank that still runs."""
    deadline = time.monotonic() + HANGS
    while True:
        codes = [rank.poll() for rank in ranks]
        if any(codes) or None not in codes or time.monotonic() > deadline:
            return codes
        time.sleep(0.02)


def run_job(program, job):
    """Starts a rank for each letter; by scenario, the state dictionaries by rank."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        ranks = [start_rank(program, job, rank, folder, port)
                 for rank in range(len(job))]
        try:
            codes = exit_codes(ranks)
        finally:
            for rank in ranks:
                rank.kill()
            for rank in ranks:
                rank.wait()
        if any(codes) or None in codes:
            done = [name for name in SCENARIOS
                    if os.path.exists(f"{folder}/{name}_0.pt")]
            hung = "" if any(codes) else f", hung for {HANGS} s"
            sys.exit(f"{job}: exit codes {codes}{hung} after {done}")
        states = {name: [torch.load(f"{folder}/{name}_{rank}.pt")
                         for rank in range(len(job))] for name in SCENARIOS}
        if len(set(job)) == 1:
            states["zero"].append(optimizer_state(f"{folder}/zero_optimizer.pt"))
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


def parameters_differ(states):
    """Whether ranks have other parameters than rank 0; BatchNorm's numbers are each
    rank's own."""
    names = [f"module.{name}" for name, _ in dist_rank.Net().named_parameters()]
    return any(not torch.equal(state[name], states[0][name])
               for state in states for name in names)


def main():
    program = sys.argv[1]
    failed = False
    expected = {}
    for job in JOBS:
        start = time.monotonic()
        if len(job) not in expected:
            expected[len(job)] = run_job(program, "p" * len(job))
        states = run_job(program, job)
        found = [f"{name}: {text}" for name in SCENARIOS
                 for text in differences(states[name], expected[len(job)][name])]
        found += [f"{name}: the ranks' parameters" for name in SCENARIOS
                  if parameters_differ(states[name][:len(job)])]
        print(f"{job:4} {len(SCENARIOS)} scenarios, {time.monotonic() - start:5.1f} s: "
              f"{'differs: ' + ', '.join(found) if found else 'equal'}", flush=True)
        failed = failed or bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main())
