# SPDX-License-Identifier: BSD-3-Clause
"""Lockstep's programs and C++ library for an installed torch.

`lockstep train` and what else needs LibTorch run through `lockstep-train`, which
this package adds; `python -m lockstep.cmake` prints `prefix()` for CMake. Nothing
here imports torch.
"""
from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from ._built import CUDA, TORCH, __version__

__all__ = ["CUDA", "TORCH", "TorchError", "__version__", "prefix", "torch_folder"]


class TorchError(ImportError):
    """No torch is installed, or one that this package was not built for."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"[torch.find] {message}. Hint: {hint}")
        self.message = message
        self.hint = hint


def prefix() -> Path:
    """The folder with bin, include and lib."""
    return Path(__file__).resolve().parent


def _torch_candidate() -> Path | None:
    # The one beside this package comes first: the loader takes it, too.
    beside = prefix().parent / "torch"
    if (beside / "lib" / "libtorch_cpu.so").exists():
        return beside
    spec = importlib.util.find_spec("torch")
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def _version_of(folder: Path) -> str:
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    found = re.search(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return found[1] if found else "unknown"


def torch_folder() -> Path:
    """The folder of the installed torch, whose lib holds LibTorch.

    Raises TorchError if there is none, or one of another minor version.
    """
    wanted = f'pip install "torch=={TORCH}.*"'
    folder = _torch_candidate()
    if folder is None or not (folder / "lib" / "libtorch_cpu.so").exists():
        raise TorchError(
            f"expected torch {TORCH}, got none"
            + (f": {folder} has no lib/libtorch_cpu.so" if folder else ""),
            wanted)
    version = _version_of(folder)
    if not re.match(re.escape(TORCH) + r"(?!\d)", version):
        raise TorchError(
            f"lockstep-torch {__version__} was built for torch {TORCH}: "
            f"expected {TORCH}, got {version} ({folder})",
            f"{wanted}, or the lockstep-torch that was built for torch {version}")
    if CUDA and not (folder / "lib" / "libtorch_cuda.so").exists():
        raise TorchError(
            f"lockstep-torch {__version__} was built for CUDA {CUDA}: expected a torch "
            f"with CUDA, got {version} ({folder})",
            "install a torch with CUDA, or the lockstep-torch that was built without")
    return folder
