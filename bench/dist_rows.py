# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bench/run.py about two processes that train together."""

from parallel_rows import ratios

FLOATS = {
    "c1 all-reduce of 44.7 MB": (11_175_370, "ms"),
    "c2 all-reduce of 240.8 MB": (60_192_808, "ms"),
    "c3 all-reduce of 64 KB": (16_384, "us")}


def added(job):
    """Milliseconds that averaging the gradients adds to a step."""
    return max(0.01, job.round("step")["ms"] - job.round("no_sync")["ms"])


def dist_rows(python, gloo, shm, replicas, rounds):
    """Python's DDP and ours over Gloo, ours over shared memory with gradients
    that are views of the buckets, and two replicas of one process; all with the
    same model and batch."""
    kinds = (("Gloo", gloo, "allreduce"), ("shm", shm, "allreduce"),
             ("shm, tensors of allocate_tensor", shm, "allreduce_there"))
    for name, (numel, unit) in FLOATS.items():
        times = [[job.round(f"{order} {numel}")[unit] for job, order in
                  ((python, "allreduce"), *(kind[1:] for kind in kinds))]
                 for _ in range(rounds)]
        for index, (kind, *_) in enumerate(kinds, 1):
            yield f"{name}, Python, Gloo -> ours, {kind}", unit, ratios(
                [(row[0], row[index]) for row in times])
    times = [[added(job) for job in (python, gloo, shm)] for _ in range(rounds)]
    yield "a1 DDP adds, Python, Gloo -> ours, Gloo", "ms", ratios(
        [(theirs, ours) for theirs, ours, _ in times])
    yield "a1 DDP adds, Python, Gloo -> ours, shm", "ms", ratios(
        [(theirs, ours) for theirs, _, ours in times])
    slowness = [[1 / job.round(line)["images_per_s"]
                 for job, line in ((replicas, ""), (shm, "step"))]
                for _ in range(rounds)]
    row = ratios(slowness)
    yield "b2 ours, cpu*2 -> ours, DDP over shm, 2 ranks", "img/s", {
        **row, "peer": 1 / row["peer"], "ours": 1 / row["ours"]}
