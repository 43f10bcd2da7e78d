# SPDX-License-Identifier: BSD-3-Clause
"""Peer: torch.save and torch.load of a ResNet152 state_dict (about 240 MB).

Rounds: "save" writes a file in FOLDER ("save-no-crc" without checksums,
"save-durable" with fsync of file and folder), "load" reads it and adds up every
32-bit word of every tensor, so that lazily mapped pages are touched, too
("load-mmap" maps it).
"""

import argparse
import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
from serve import serve
from models_reference import make_model


def sum_of_words(state):
    """Sum of all tensors' bytes as 32-bit words, modulo 2^64."""
    total = 0
    for tensor in state.values():
        total += int(tensor.reshape(-1).view(torch.int32).sum(dtype=torch.int64))
    return total % 2**64


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    path = os.path.join(parser.parse_args().folder, "peer.pth")
    torch.manual_seed(0)
    state = make_model("resnet152").state_dict()
    size = sum(t.numel() * t.element_size() for t in state.values())
    torch.save(state, path)

    def run_round(what):
        total = None
        if what.startswith("save"):
            torch.serialization.set_crc32_options(what != "save-no-crc")
            os.remove(path)
            start = time.perf_counter()
            torch.save(state, path)
            if what == "save-durable":
                sync(path)
                sync(os.path.dirname(path))
            seconds = time.perf_counter() - start
        else:
            start = time.perf_counter()
            total = sum_of_words(torch.load(
                path, weights_only=True, mmap=what == "load-mmap"))
            seconds = time.perf_counter() - start
        return {"gb_per_s": size / seconds / 1e9, "sum": total}

    serve(run_round, bytes=size, path=path)


if __name__ == "__main__":
    main()
