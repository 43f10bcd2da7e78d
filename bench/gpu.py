#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains ResNet18 on FashionMNIST on a CUDA device, Lockstep and Python in turn:

    bench/gpu.py --data-dir DIR [--bin DIR] [--epochs 20] [--batch 256] [--rounds 3]

Prints, for each way, the seconds of the epochs with a test after each, without
what happens once (CUDA's start, recording, compiling): median of the rounds, and
all of them. Lockstep also writes its run folder and its checkpoints meanwhile.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FAST = ["--amp", "bf16", "--channels-last", "--fused"]
LOCKSTEP = {
    "lockstep": [],
    "lockstep, fast": FAST,
    "lockstep, fast, graphs": [*FAST, "--cuda-graphs"],
    "lockstep, all": [*FAST, "--cuda-graphs", "--kernels", "lockstep"],
}
PEERS = ["eager", "graph", "compile"]


def lockstep(args, flags):
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run(
            [args.bin / "lockstep-train", "train", args.data_dir, "--devices", "cuda:0",
             "--epochs", str(args.epochs), "--batch-size", str(args.batch),
             "--lr", "0.05", "--lr-scheduler", "cosineannealinglr", "--seed", "1",
             "--val-batch-size", "1000", "--output", f"{folder}/run",
             "--workers", "2", "--quiet", *flags],
            check=True)
        wall = time.perf_counter() - start
        lines = pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in lines]
    epochs = [line for line in lines if line["event"] == "epoch"]
    steps = [line for line in lines if line["event"] == "step" and line["epoch"] > 1]
    seconds = [epoch["epoch_s"] for epoch in epochs]
    return {"seconds": statistics.median(seconds[1:]) * len(seconds), "wall": wall,
            "accuracy": epochs[-1]["val_top1"],
            "data": statistics.median(step["data_seconds"] for step in steps)
                    / statistics.median(step["seconds"] for step in steps)}


def python(args, how):
    start = time.perf_counter()
    output = subprocess.run(
        [sys.executable, HERE / "peer_train_gpu.py", "--data-dir", args.data_dir,
         "--how", how, "--epochs", str(args.epochs), "--batch", str(args.batch)],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    return {**result, "wall": time.perf_counter() - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=HERE.parent / "build/release/bin")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[*LOCKSTEP, *PEERS])
    args = parser.parse_args()
    found = {name: [] for name in args.only}
    for _ in range(args.rounds):
        for name, results in found.items():
            if name in LOCKSTEP:
                results.append(lockstep(args, LOCKSTEP[name]))
            else:
                results.append(python(args, name))
            print(name, json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(f"{args.epochs} epochs, batch {args.batch}; seconds (all rounds), img/s, "
          "accuracy, whole program")
    for name, results in found.items():
        seconds = [result["seconds"] for result in results]
        median = statistics.median(seconds)
        print(f"{name:24} {median:7.2f} ({', '.join(f'{s:.2f}' for s in seconds)})"
              f" {60000 * args.epochs / median:9,.0f}"
              f" {results[-1]['accuracy']:6.2f}% {results[-1]['wall']:6.1f} s")


if __name__ == "__main__":
    main()
