# SPDX-License-Identifier: BSD-3-Clause
"""The protocol between bench/run.py and its peers (Python or C++).

A peer prepares, prints one JSON line ("ready"), then answers every line on
its standard input with one round of work and one JSON line of results.
"""

import json
import sys


def serve(run_round, **ready):
    """Answers each input line with `run_round(line)` as one JSON line."""
    print(json.dumps({"ready": True, **ready}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run_round(line.strip())), flush=True)
