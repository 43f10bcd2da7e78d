# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bench/run.py about DataParallel itself: what it costs per step."""

import statistics


def ratios(pairs):
    """Medians, and the median of peer / ours, as bench/run.py prints them."""
    each = sorted(peer / ours for peer, ours in pairs)
    return {"peer": statistics.median(p for p, _ in pairs),
            "ours": statistics.median(o for _, o in pairs),
            "ratio": statistics.median(each), "low": each[0], "high": each[-1]}


def added(process, what):
    """Microseconds per step above the bare module's."""
    step, bare = (process.round(line)["us_per_step"] for line in (what, "bare"))
    return max(0.01, step - bare)


def parallel_rows(peer, ours, rounds):
    """a2 for 2, 4 and 8 replicas, a3 for one: the time that the wrapper adds."""
    for replicas in ("2", "4", "8"):
        for how, text in (
                ("views", "by hand in Python, nothing sent"),
                ("copies", "nn.DataParallel's steps in Python")):
            yield (f"a2 {text} -> ours, cpu*{replicas}", "us",
                   ratios([(added(peer, f"{replicas} {how}"), added(ours, replicas))
                           for _ in range(rounds)]))
    yield ("a3 nn.DataParallel on one device -> ours", "us",
           ratios([(added(peer, "one"), added(ours, "one")) for _ in range(rounds)]))


def small_rows(peer, ours, rounds, require):
    """Python's small step beside ours, and ours in the wrapper."""
    losses = [peer.ready["first_loss"], *ours.ready["first_loss"].values()]
    require(max(losses) - min(losses) < 1e-5, f"first losses differ: {losses}")

    def us(process, what):
        return process.round(what)["us_per_step"]
    yield ("Python, bare -> ours, bare", "us",
           ratios([(us(peer, ""), us(ours, "bare")) for _ in range(rounds)]))
    for devices in ("cpu", "cpu*2", "sim*2"):
        yield (f"ours, bare -> ours, {devices}", "us",
               ratios([(us(ours, "bare"), us(ours, devices))
                       for _ in range(rounds)]))
