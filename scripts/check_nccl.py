#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles lockstep/dist/nccl_backend.cpp without CUDA: check_nccl.py
COMPILE_COMMANDS

A build against a CPU wheel of torch has nothing to link that file to and leaves
it out, so it is compiled here, and thrown away. The headers are those of the
packages that a CUDA wheel depends on; they are fetched once, into build/nccl.
Without a network and without them this says so and is content.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import zipfile

from check_common import finish
from check_tidy import for_clang

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "build/nccl"
# As torch 2.14 wants them.
PACKAGES = ("nvidia-nccl-cu13==2.30.7", "nvidia-cuda-runtime==13.0.96",
            "nvidia-cuda-crt==13.0.88")


def fetch():
    """False if the packages cannot be had."""
    if (HEADERS / ".complete").exists():
        return True
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [ROOT / ".venv/bin/python", "-m", "pip", "download", "-qqq",
             "--disable-pip-version-check", "--no-deps", "--dest", folder,
             *shlex.split(os.environ.get("LOCKSTEP_PIP_ARGS", "")), *PACKAGES],
            check=False)
        if result.returncode != 0:
            return False
        for wheel in pathlib.Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(HEADERS, [
                    name for name in archive.namelist() if "/include/" in name])
    (HEADERS / ".complete").touch()
    return True


def command(entry):
    """That of the file that stands in for it, without the output."""
    words = for_clang(entry)["arguments"]
    del words[words.index("-o"):words.index("-o") + 2]
    words[words.index("-c") + 1] = entry["file"].replace(
        "no_nccl.cpp", "nccl_backend.cpp")
    return words + [
        "-fsyntax-only", "-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE",
        "-I", str(ROOT / "lockstep/dist/internal/cuda_stub"),
        "-isystem", str(HEADERS / "nvidia/nccl/include"),
        "-isystem", str(HEADERS / "nvidia/cu13/include")]


def main():
    entries = json.loads(pathlib.Path(sys.argv[1]).read_text())
    found = [entry for entry in entries
             if entry["file"].endswith("/dist/no_nccl.cpp")]
    if not found:
        finish("nccl", [], "compiled by the build")
    elif not fetch():
        finish("nccl", [], "not compiled: its headers cannot be fetched")
    else:
        result = subprocess.run(command(found[0]), cwd=found[0]["directory"],
                                capture_output=True, text=True, check=False)
        finish("nccl", result.stderr.splitlines() if result.returncode else [],
               "compiles")


if __name__ == "__main__":
    main()
