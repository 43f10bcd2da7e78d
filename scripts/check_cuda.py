#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles what is for CUDA without CUDA: check_cuda.py COMPILE_COMMANDS

A build against a CPU wheel of torch has nothing to link these files to and
leaves them out, so they are compiled here, and thrown away. So are the kernels
that a program compiles for its GPU, by the compiler that it would use. Headers
and compiler are those of the packages that a CUDA wheel depends on; they are
fetched once, into build/cuda_packages. Without a network and without them this
says so and is content.
"""

import ctypes
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile

from check_common import finish
from check_tidy import for_clang, sources

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "build/cuda_packages"
# As torch 2.14 wants them.
PACKAGES = ("nvidia-nccl-cu13==2.30.7", "nvidia-cuda-runtime==13.0.96",
            "nvidia-cuda-crt==13.0.88", "nvidia-cuda-nvrtc==13.0.88")
WANTED = re.compile(r"/include/|/libnvrtc[^/]*\.so")
# A build without CUDA has the first of each two.
STAND_INS = {"lockstep/distributed/group/no_nccl.cpp": "nccl_backend.cpp",
             "lockstep/device/internal/no_cuda_graph.cpp": "cuda_graph.cpp"}
KERNELS = ("gpu_norm_parts.h", "gpu_norm_tables.h", "gpu_norm_at_once.h")
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def fetch():
    """False if the packages cannot be had."""
    if (PLACE / ".complete").exists():
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
                archive.extractall(PLACE, filter(WANTED.search, archive.namelist()))
    (PLACE / ".complete").touch()
    return True


def command(entry, own):
    """The command that checks `own` as `entry` compiles what stands in for it."""
    words = for_clang(entry)["arguments"]
    del words[words.index("-o"):words.index("-o") + 2]
    words[words.index("-c") + 1] = str(own)
    return words + [
        "-fsyntax-only", "-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE",
        "-I", str(ROOT / "lockstep/distributed/group/cuda_stub"),
        "-isystem", str(PLACE / "nvidia/nccl/include"),
        "-isystem", str(PLACE / "nvidia/cu13/include")]


def compile_files(commands):
    """What the compiler says of files that this build left out."""
    problems = []
    missing = set(STAND_INS)
    for entry in commands:
        for stand_in, own in STAND_INS.items():
            if stand_in in sources(entry):
                missing.discard(stand_in)
                path = (ROOT / stand_in).with_name(own)
                result = subprocess.run(
                    command(entry, path), cwd=entry["directory"],
                    capture_output=True, text=True, check=False)
                if result.returncode != 0:
                    problems += result.stderr.splitlines()
    # A build with CUDA's headers has the files themselves instead.
    built = {name for entry in commands for name in sources(entry)}
    return problems + [
        f"{name}: in no build, so that {STAND_INS[name]} is not checked"
        for name in sorted(missing)
        if str(pathlib.PurePath(name).with_name(STAND_INS[name])) not in built]


def compile_kernels():
    """What CUDA's run-time compiler says of the kernels."""
    parts = [(ROOT / "lockstep/kernels/internal" / name).read_text() for name in KERNELS]
    source = "".join(
        re.search(r'R"cuda\((.*)\)cuda"', part, re.S).group(1) for part in parts)
    libraries = PLACE / "nvidia/cu13/lib"
    for name in ("libnvrtc-builtins.so.13.0", "libnvrtc.so.13"):
        nvrtc = ctypes.CDLL(str(libraries / name), mode=ctypes.RTLD_GLOBAL)
    problems = []
    for architecture in ARCHITECTURES:
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(),
                                 b"lockstep.cu", 0, None, None)
        options = (ctypes.c_char_p * 2)(
            f"--gpu-architecture={architecture}".encode(), b"--std=c++17")
        if nvrtc.nvrtcCompileProgram(program, 2, options) != 0:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            problems += [f"{architecture}: {line}"
                         for line in log.value.decode().splitlines()]
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return problems


def main():
    commands = json.loads(pathlib.Path(sys.argv[1]).read_text())
    if not fetch():
        finish("cuda", [], "not compiled: its packages cannot be fetched")
    else:
        finish("cuda", compile_files(commands) + compile_kernels(), "compiles")


if __name__ == "__main__":
    main()
