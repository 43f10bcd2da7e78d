#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles a file twice: compile_pair.py FILE TEXT COMPILER [ARGUMENT ...]

As it is it must compile; with -DLOCKSTEP_MISUSE it must not, and the compiler's
first error must contain TEXT.
"""

import subprocess
import sys


def compiled(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main():
    file, text, *command = sys.argv[1:]
    good = compiled([*command, file])
    if good.returncode != 0:
        sys.exit(f"{file} does not compile:\n{good.stderr}")
    bad = compiled([*command, "-DLOCKSTEP_MISUSE", file])
    if bad.returncode == 0:
        sys.exit(f"{file} compiles with LOCKSTEP_MISUSE")
    errors = [line for line in bad.stderr.splitlines() if "error:" in line]
    if not errors or text not in errors[0]:
        sys.exit(f"expected {text!r} in the first error:\n{bad.stderr}")


main()
