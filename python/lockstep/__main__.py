# SPDX-License-Identifier: BSD-3-Clause
"""`python -m lockstep`: the program of the package, where PATH does not lead to it."""
import os
import sys

from ._tools import program

os.execv(program(), ["lockstep", *sys.argv[1:]])
