# SPDX-License-Identifier: BSD-3-Clause
"""Where CMake finds Lockstep.

    cmake -S . -B build -DCMAKE_PREFIX_PATH="$(python -m lockstep.cmake)"

The C++ library is in the package lockstep-torch.
"""
from __future__ import annotations

import sys


def prefix() -> str:
    """The folder for CMAKE_PREFIX_PATH. Raises ImportError without lockstep-torch."""
    try:
        import lockstep_torch
    except ModuleNotFoundError:
        raise ImportError(
            "[cmake.prefix] the package lockstep-torch is not installed. "
            "Hint: scripts/torch_package.sh makes its wheel (docs/packages.md)") from None
    return str(lockstep_torch.prefix())


if __name__ == "__main__":
    try:
        print(prefix())
    except ImportError as error:
        sys.exit(str(error))
