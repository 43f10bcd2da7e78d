#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files whose numbers are Python's are compiled so: rounding_test.py commands

`commands` is CMake's compile_commands.json. With -march=native, or on ARM, a
compiler makes one operation of a * b + c, which rounds once.
"""

import json
import re
import sys

EXACT = ("optim", "metrics", "train", "data")


def main():
    with open(sys.argv[1]) as file:
        commands = json.load(file)
    for name in EXACT:
        own = [entry["command"] for entry in commands
               if re.search(rf"/lockstep_{name}\.dir/", entry["command"])]
        assert own, f"no file of lockstep/{name}"
        for command in own:
            assert "-ffp-contract=off" in command, command
    print("rounding: ok")


main()
