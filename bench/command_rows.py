# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bench/run.py that time whole commands, from start to exit.

Peer and ours alternate; what they wrote is compared before anything is timed.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = sys.executable
SPARSE_BYTES = 10 * 10**9


def run(command):
    subprocess.run([str(part) for part in command], check=True,
                   stdout=subprocess.DEVNULL)


def timed(command, prepare):
    prepare()
    start = time.perf_counter()
    run(command)
    return 1000 * (time.perf_counter() - start)


def peak_kib(command):
    """Peak memory; time(1) has little of its own, so that its child's counts."""
    done = subprocess.run(["/usr/bin/time", "-f", "%M", *map(str, command)],
                          check=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    return int(done.stderr.split()[-1])


def pair(name, peer, ours, rounds, prepare=lambda: None):
    """Milliseconds of both; the ratio is peer / ours, median of the pairs."""
    timed(peer, prepare), timed(ours, prepare)
    measured = [(timed(peer, prepare), timed(ours, prepare))
                for _ in range(rounds)]
    ratios = sorted(p / o for p, o in measured)
    return (name, "ms", {
        "peer": statistics.median(p for p, _ in measured),
        "ours": statistics.median(o for _, o in measured),
        "ratio": statistics.median(ratios), "low": ratios[0], "high": ratios[-1]})


def memory(name, peer, ours):
    """Peak memory of both in KiB."""
    p, o = peak_kib(peer), peak_kib(ours)
    return (name, "KiB", {"peer": p, "ours": o, "ratio": p / o,
                          "low": p / o, "high": p / o})


class Folder:
    """A checkpoint of 240 MB with the prefix of DataParallel, and copies."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.source = self.path / "wrapped.pth"
        self.peer("make", self.source)

    def __truediv__(self, name):
        return self.path / name

    @staticmethod
    def peer(*arguments):
        run([PYTHON, HERE / "peer_edit.py", *arguments])

    def fresh(self):
        """Puts the unedited file back to the one that is replaced."""
        shutil.copyfile(self.source, self / "edited.pth")
        os.sync()


def inspect_rows(folder, ours, rounds):
    path = folder.source
    look = [ours, "ckpt", path]
    torch_look = [PYTHON, "-c",
                  f"import torch; torch.load({str(path)!r}, mmap=True)"]
    yield pair("f1 torch.load(mmap) -> ckpt FILE", torch_look, look, rounds)
    yield memory("f1 the same, memory", torch_look, look)
    yield pair("f1 zipfile names -> ckpt FILE",
               [PYTHON, "-c", f"import zipfile; zipfile.ZipFile({str(path)!r}).namelist()"],
               look, rounds)
    tensors = folder / "keys.safetensors"
    folder.peer("convert", path, tensors)
    yield pair("f1 safetensors keys -> ckpt FILE",
               [PYTHON, "-c", "from safetensors import safe_open\n"
                f"print(len(list(safe_open({str(tensors)!r}, 'numpy').keys())))"],
               look, rounds)
    big = folder / "sparse.pth"
    folder.peer("sparse", big, SPARSE_BYTES)
    yield pair("f1 10 GB, with holes: torch.load(mmap) -> ckpt ls",
               [PYTHON, "-c", f"import torch; torch.load({str(big)!r}, mmap=True)"],
               [ours, "ckpt", "ls", big], rounds)
    big.unlink()


def strip_rows(folder, ours, rounds):
    out, edited = folder / "stripped.pth", folder / "edited.pth"
    new = [ours, "ckpt", "strip", folder.source, "--force", "-o", out]
    itself = [ours, "ckpt", "strip", edited]
    run(new)
    folder.fresh()
    run(itself)
    wanted = folder / "wanted.pth"
    folder.peer("strip", folder.source, wanted)
    folder.peer("same", out, wanted)
    folder.peer("same", edited, wanted)
    peer = [PYTHON, HERE / "peer_edit.py", "strip", folder.source, wanted]
    yield pair("f2 torch.load, torch.save -> strip to a new file", peer, new, rounds)
    yield pair("f2 plain copy (cp) -> strip to a new file",
               ["cp", folder.source, folder / "copy.pth"], new, rounds)
    yield pair("f3 torch.load, torch.save -> strip FILE itself",
               [PYTHON, HERE / "peer_edit.py", "strip", edited, edited],
               itself, rounds, folder.fresh)
    for name in ("stripped.pth", "edited.pth", "copy.pth", "wanted.pth"):
        (folder / name).unlink()


def convert_rows(folder, ours, rounds):
    out, wanted = folder / "ours.safetensors", folder / "wanted.safetensors"
    command = [ours, "ckpt", "convert", "--force", folder.source, out]
    run(command)
    folder.peer("convert", folder.source, wanted)
    folder.peer("same", out, wanted)
    yield pair("f7 torch.load, save_file -> convert to safetensors",
               [PYTHON, HERE / "peer_edit.py", "convert", folder.source, wanted],
               command, rounds)


def start_rows(ours, rounds):
    version, torch = [ours, "--version"], [PYTHON, "-c", "import torch"]
    yield pair("h1 import torch -> lockstep --version", torch, version, rounds)
    yield memory("h1 the same, memory", torch, version)


def command_rows(ours, folder, rounds):
    """f1, f2, f3, f7, h1: whole commands on a 240 MB checkpoint."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        files = Folder(scratch)
        yield from inspect_rows(files, ours, rounds)
        yield from strip_rows(files, ours, rounds)
        yield from convert_rows(files, ours, rounds)
    yield from start_rows(ours, rounds)
