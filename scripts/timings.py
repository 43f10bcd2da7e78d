#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints where the time of a build went: timings.py BUILD_FOLDER...

Reads ninja's log; job seconds add up over all cores, wall seconds do not.
"""

import pathlib
import re
import sys

TORCH_FREE = r"lockstep/(base|ckpt|report)|cli|tests/(base|ckpt|report|cli|support)"
# The first pattern that matches an output decides.
PARTS = [
    ("precompiled header", r".*(cmake_pch|torch_pch).*"),
    ("torch-free tests", rf"(?=({TORCH_FREE})/)tests/.*\.o"),
    ("torch-free library, lockstep", rf"({TORCH_FREE})/.*\.o"),
    ("torch tests", r"tests/.*\.o"),
    ("benchmarks", r"bench/.*\.o"),
    ("replays of the fuzz targets", r"fuzz/.*\.o"),
    ("torch library, lockstep-train", r".*\.o"),
    ("archives and links", r".*"),
]


def read_log(build):
    """{output: (start ms, end ms)} of the last run of each job."""
    jobs = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output != "build.ninja":
            jobs[output] = (int(start), int(end))
    return jobs


def report(build):
    jobs = read_log(build)
    totals = {name: [0, 0.0] for name, _ in PARTS}
    for output, (start, end) in jobs.items():
        name = next(n for n, p in PARTS if re.fullmatch(p, output))
        totals[name][0] += 1
        totals[name][1] += (end - start) / 1000
    print(f"{build}:")
    for name, (count, seconds) in totals.items():
        if count:
            print(f"  {name:32} {count:4} jobs {seconds:8.1f} job s")
    slowest = sorted(jobs, key=lambda o: jobs[o][0] - jobs[o][1])[:5]
    for output in slowest:
        seconds = (jobs[output][1] - jobs[output][0]) / 1000
        print(f"    {seconds:6.1f} s  {re.sub('CMakeFiles/.*?dir/', '', output)}")


for argument in sys.argv[1:]:
    report(pathlib.Path(argument))
