# SPDX-License-Identifier: BSD-3-Clause
"""The command `lockstep-train`: finds torch, and becomes the program."""
from __future__ import annotations

import json
import os
import sys

from . import TorchError, prefix, torch_folder

_UNAVAILABLE = 5  # exit status of kUnavailable (docs/errors.md)


def _refuse(error: TorchError) -> int:
    if sys.argv[1:2] == ["--facts"]:  # `lockstep doctor` asks
        print(json.dumps({"findings": [{
            "group": "libtorch", "name": "version", "value": error.message,
            "health": "problem", "remedy": error.hint}]}))
        return 0
    print(error, file=sys.stderr)
    return _UNAVAILABLE


def main() -> int:
    try:
        folder = torch_folder()
    except TorchError as error:
        return _refuse(error)
    # Beside this package the program finds a torch by itself, elsewhere it does not;
    # and no other LibTorch may come before the one that was checked.
    libraries = [str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
    program = prefix() / "bin" / "lockstep-train"
    os.execve(program, ["lockstep-train", *sys.argv[1:]], environment)
