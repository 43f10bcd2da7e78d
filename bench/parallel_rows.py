# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bench/run.py about DataParallel itself: what it costs per step."""

import statistics


def ratios(pairs):
    """Medians, and the median of peer / ours, as bench/run.py prints them."""
    each = sorted(peer / ours for peer, ours in pairs)
    return {"peer": statistics.median(p for p, _ in pairs),
            "ours": statistics.median(o for _, o in pairs),
            "ratio": statistics.median(each), "low": each[0], "high": each[-1]}


def step(process, what):
    return process.round(what)["us_per_step"]


def parallel_rows(peer, ours, rounds):
    """a2 for 2, 4 and 8 replicas; a3 as the time that the wrapper adds."""
    for replicas in ("2", "4", "8"):
        yield (f"a2 by hand in Python -> ours, cpu*{replicas}", "us",
               ratios([(step(peer, replicas), step(ours, replicas))
                       for _ in range(rounds)]))

    def added(process):
        return max(0.01, step(process, "one") - step(process, "bare"))

    yield ("a3 added by the wrapper on one device", "us",
           ratios([(added(peer), added(ours)) for _ in range(rounds)]))
