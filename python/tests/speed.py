# SPDX-License-Identifier: BSD-3-Clause
"""Loads a state_dict of 240 MB with lockstep, torch and safetensors, in turn.

speed.py [--rounds 15]. Prints the median time until all tensors are there, the
processor's time for it, which a busy machine does not change, and the time with
every byte summed. Needs torch and safetensors; without them their rows are
left out and the file is made by pt_files.py.
"""
import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np

import lockstep
from pt_files import tensor, write_pt

BYTES = 240_000_000


def weights():
    """Like those of a ResNet: some large, many small."""
    chance, sizes, left = np.random.default_rng(0), [], BYTES // 4
    for i in range(400):
        sizes.append(64 << i % 5)
        left -= sizes[-1]
    sizes += [left // 100] * 100
    return {f"layer{i}.weight": chance.standard_normal(n, np.float32) for i, n in enumerate(sizes)}


def contenders(folder):
    arrays = weights()
    path = folder / "w.pt"
    rows = {}
    try:
        import torch
        torch.save({k: torch.from_numpy(v) for k, v in arrays.items()}, path)
        rows["torch.load"] = lambda: torch.load(path)
        rows["torch.load(mmap=True)"] = lambda: torch.load(path, mmap=True)
    except ImportError:
        write_pt(path, {k: tensor(v) for k, v in arrays.items()})
    try:
        import safetensors.numpy
        safetensors.numpy.save_file(arrays, folder / "w.safetensors")
        rows["safetensors.numpy.load_file"] = lambda: safetensors.numpy.load_file(folder / "w.safetensors")
        rows["lockstep.load(safetensors)"] = lambda: lockstep.load(folder / "w.safetensors")
    except ImportError:
        pass
    return path, {
        "lockstep.load": lambda: lockstep.load(path),
        "lockstep.load(check_crc=True)": lambda: lockstep.load(path, check_crc=True),
        "lockstep.load(mmap=False)": lambda: lockstep.load(path, mmap=False), **rows}


def sum_of(tree):
    return sum(float(value.sum()) for value in tree.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path, rows = contenders(pathlib.Path(folder))
        times = {name: ([], [], []) for name in rows}
        want = sum_of(lockstep.load(path))
        for _ in range(rounds):
            for name, work in rows.items():
                begin, begin_cpu = time.perf_counter(), time.process_time()
                tree = work()
                times[name][0].append(time.perf_counter() - begin)
                times[name][1].append(time.process_time() - begin_cpu)
                got = sum_of(tree)
                times[name][2].append(time.perf_counter() - begin)
                del tree
                assert abs(got - want) < 1, name
        print(f"{path.stat().st_size / 1e6:.0f} MB, 500 tensors, median (best) of {rounds} rounds, in ms")
        print(f"{'':32}{'load':>18}{'processor':>18}{'load and sum':>20}")
        for name, columns in times.items():
            cells = [f"{statistics.median(t) * 1e3:.2f} ({min(t) * 1e3:.2f})" for t in columns]
            print(f"{name:32}{cells[0]:>18}{cells[1]:>18}{cells[2]:>20}")


if __name__ == "__main__":
    main()
