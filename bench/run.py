# SPDX-License-Identifier: BSD-3-Clause
"""Runs the benchmarks: peers and Lockstep alternate, ratios are printed.

    bench/run.py [--rows train,fast,parallel,small,dist,data,ckpt,saving,commands,kernels] [--rounds 5] [--json FILE]
    bench/run.py --rows images   with a Python that has torchvision

Every row pairs Lockstep with a Python peer on this machine in this run
(A B A B ...) and prints the median of the per-pair ratios, with the spread.
A row whose own check fails prints no number. The machine is measured before
and after each row: if its second core was not there, or other jobs took more
than a tenth of the machine meanwhile, the row is void and tried again; a row
that stays void prints no number, and the exit status is 75.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

from command_rows import command_rows
from dist_rows import dist_rows
from image_rows import image_rows
from kernel_rows import kernel_rows
from parallel_rows import parallel_rows, small_rows

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
BIN = ROOT / "build" / os.environ.get("LOCKSTEP_BENCH_PRESET", "release") / "bin"
PYTHON = sys.executable


class Peer:
    """A process that speaks the protocol of serve.py."""

    def __init__(self, *command):
        environment = dict(os.environ, PYTHONPATH=str(HERE))
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment)
        self.ready = self.read()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.process.args} ended: {self.process.wait()}")

    def start(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def round(self, what=""):
        self.start(what)
        return self.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Together:
    """Peers that work at the same time: their rates add up."""

    def __init__(self, *peers):
        self.peers = peers

    def round(self, what=""):
        for peer in self.peers:
            peer.start(what)
        results = [peer.read() for peer in self.peers]
        return {key: sum(r[key] for r in results) for key in results[0]}


class CheckFailed(Exception):
    """A benchmark's own check: its number would mean nothing."""


def require(condition, text):
    if not condition:
        raise CheckFailed(text)


def pairs(peer, ours, rounds, key, what=""):
    """Medians of peer and ours, and of the ratios ours / peer per pair."""
    measured = [(peer.round(what)[key], ours.round(what)[key])
                for _ in range(rounds)]
    ratios = sorted(o / p for p, o in measured)
    return {"peer": statistics.median(p for p, _ in measured),
            "ours": statistics.median(o for _, o in measured),
            "ratio": statistics.median(ratios),
            "low": ratios[0], "high": ratios[-1]}


FAST = ("--threads", 2, "--kernels", "lockstep", "--layout", "nhwc")
KINDS = [(dtype, layout) for dtype in ("fp32", "bf16") for layout in ("nchw", "nhwc")]


def python_train(dtype, layout):
    return Peer(PYTHON, HERE / "peer_train.py", "--threads", 2,
                "--dtype", dtype, "--layout", layout)


def our_train(devices, *options):
    return Peer(BIN / "train_bench", "--devices", devices, *options)


def ours_on_one_core(batch, *options):
    return our_train("cpu", *options, "--threads", 1, "--batch", batch)


def require_equal_loss(peer, ours, tolerance):
    difference = abs(peer.ready["first_loss"] - ours.ready["first_loss"])
    require(difference < tolerance, f"first loss differs by {difference}")


def bench_fast(rounds):
    """d1, d2: the fast kernels, on one device and on two, beside Python's best.

    ResNet18, 28x28, global batch 256, two cores. Python's best is the one of its
    rows with the smallest ratio.
    """
    for row, devices in (("d1", "cpu"), ("d2", "cpu*2")):
        for ours_dtype in ("fp32", "bf16"):
            with our_train(devices, *FAST, "--dtype", ours_dtype) as ours:
                for dtype, layout in KINDS:
                    with python_train(dtype, layout) as peer:
                        # Each replica normalises its own half.
                        is_equal = dtype == ours_dtype == "fp32" and row == "d1"
                        require_equal_loss(peer, ours, 1e-4 if is_equal else 2e-2)
                        yield (f"{row} Python {dtype} {layout} -> ours, {devices}, "
                               f"lockstep, {ours_dtype}", "img/s",
                               pairs(peer, ours, rounds, "images_per_s"))
    with ours_on_one_core(256, *FAST) as one, our_train("cpu*2", *FAST) as two:
        yield ("ours, lockstep, cpu, 1 thread -> cpu*2", "img/s",
               pairs(one, two, rounds, "images_per_s"))


def bench_train(rounds):
    """Training ResNet18 in Python's bits, global batch 256, two cores."""
    with our_train("cpu", "--threads", 2) as single, \
            our_train("cpu*2", "--threads", 2) as two:
        for dtype, layout in KINDS:
            with python_train(dtype, layout) as peer:
                require_equal_loss(peer, single, 1e-4 if dtype == "fp32" else 2e-2)
                yield (f"Python {dtype} {layout} -> ours, cpu*2", "img/s",
                       pairs(peer, two, rounds, "images_per_s"))
        with Peer(PYTHON, HERE / "peer_ddp.py") as peer:
            require_equal_loss(peer, two, 1e-4)
            yield ("Python DDP gloo, 2 ranks -> ours, cpu*2", "img/s",
                   pairs(peer, two, rounds, "images_per_s"))
        yield ("ours, cpu, 2 threads -> ours, cpu*2", "img/s",
               pairs(single, two, rounds, "images_per_s"))
        with ours_on_one_core(256) as one:
            yield ("b1 ours, cpu, 1 thread -> ours, cpu*2", "img/s",
                   pairs(one, two, rounds, "images_per_s"))
        with ours_on_one_core(128) as left, ours_on_one_core(128) as right:
            require(left.ready["first_loss"] == right.ready["first_loss"],
                    "two equal processes compute different losses")
            yield ("b1 two processes that share nothing -> ours, cpu*2", "img/s",
                   pairs(Together(left, right), two, rounds, "images_per_s"))
    for threads in (1, 2):
        options = "--threads", threads
        with our_train("cpu", *options) as cpu, our_train("sim*1", *options) as sim:
            require(sim.ready["first_loss"] == cpu.ready["first_loss"],
                    "the simulated device computes another loss")
            yield (f"ours, cpu, threads: {threads} -> ours, sim", "img/s",
                   pairs(cpu, sim, rounds, "images_per_s"))


def bench_parallel(rounds):
    """Control flow of DataParallel around a net that computes nothing."""
    with Peer(PYTHON, HERE / "peer_parallel.py") as peer, \
            Peer(BIN / "parallel_bench") as ours:
        yield from parallel_rows(peer, ours, rounds)


def bench_small(rounds):
    """Small steps: 64-64-10, a batch of 8, forward, backward and SGD."""
    with Peer(PYTHON, HERE / "peer_small.py") as peer, \
            Peer(BIN / "small_bench") as ours:
        yield from small_rows(peer, ours, rounds, require)


def bench_dist(rounds):
    """c1, c2, c3, a1: two processes with one thread each."""
    with Peer(PYTHON, HERE / "peer_ddp.py") as python, \
            Peer(BIN / "dist_bench", "--backend", "gloo") as gloo, \
            Peer(BIN / "dist_bench", "--backend", "shm", "--views") as shm, \
            Peer(BIN / "train_bench", "--devices", "cpu*2", "--threads", 2) as two:
        for job in (gloo, shm):
            difference = abs(python.ready["first_loss"] - job.ready["first_loss"])
            require(difference < 1e-4, f"first loss differs by {difference}")
        yield from dist_rows(python, gloo, shm, two, rounds)


def bench_data(rounds):
    """One epoch of shuffled, normalised FashionMNIST, batch 256."""
    for workers in (0, 2):
        with Peer(BIN / "loader_bench", workers) as ours, \
                Peer(PYTHON, HERE / "peer_data.py", "--workers", workers) as peer:
            require(peer.ready["checksum"] == ours.ready["checksum"],
                    "the two loaders do not yield the same pixels")
            yield (f"Python DataLoader -> ours, {workers} workers each", "img/s",
                   pairs(peer, ours, max(3, rounds // 2), "images_per_s"))


def bench_images(rounds):
    """Folders of pictures of 500 x 375 to batches of 224 x 224."""
    yield from image_rows(Peer, BIN / "image_bench", ROOT / "build", rounds, require)


def bench_ckpt(rounds):
    """Saving and loading a ResNet152 state_dict, every byte touched."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder, \
            Peer(PYTHON, HERE / "peer_ckpt.py", folder) as peer:
        copy = os.path.join(folder, "ours.pth")
        with Peer(BIN / "ckpt_bench", peer.ready["path"], copy) as ours:
            require(peer.ready["bytes"] == ours.ready["bytes"], "sizes differ")
            require(peer.round("load")["sum"] == ours.round("load")["sum"],
                    "the sums of the tensors differ")
            for name, what in (
                    ("f4 torch.save -> ckpt::save (CRC on)", "save"),
                    ("f4 torch.save without CRC -> ckpt::save (CRC on)", "save-no-crc"),
                    ("f4 the same with fsync", "save-durable"),
                    ("f5 torch.load -> ckpt::load (CRC on)", "load"),
                    ("f5 torch.load(mmap) -> ckpt::load (CRC on)", "load-mmap")):
                yield name, "GB/s", pairs(peer, ours, rounds, "gb_per_s", what)


def bench_saving(rounds):
    """f6: what a checkpoint costs a run; weights and momentum of ResNet18."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder, \
            Peer(PYTHON, HERE / "peer_save.py", folder) as peer, \
            Peer(BIN / "checkpoint_bench", folder) as ours:
        yield ("f6 training waits: torch.save -> CheckpointWriter", "ms",
               pairs(peer, ours, rounds, "ms", "stall"))
        steps = [(ours.round("plain")["ms"], ours.round("writing"))
                 for _ in range(rounds)]
        require(steps[-1][1]["written"] >= rounds, "too few were written")
        ratios = sorted(w["ms"] / p for p, w in steps)
        yield ("f6 a step: nothing in flight -> a checkpoint in flight", "ms",
               {"peer": statistics.median(p for p, _ in steps),
                "ours": statistics.median(w["ms"] for _, w in steps),
                "ratio": statistics.median(ratios),
                "low": ratios[0], "high": ratios[-1]})


def bench_kernels(rounds):
    """Convolutions: exact -> one of our ways; * where it is better."""
    with Peer(BIN / "convolution_bench") as bench:
        yield from kernel_rows(bench, max(3, rounds // 2))


def bench_commands(rounds):
    """f1, f2, f3, f7, h1: whole commands on a 240 MB checkpoint."""
    yield from command_rows(BIN / "lockstep", ROOT / "build", rounds)


ROWS = {"train": bench_train, "fast": bench_fast, "parallel": bench_parallel,
        "small": bench_small, "dist": bench_dist, "data": bench_data,
        "ckpt": bench_ckpt, "saving": bench_saving, "commands": bench_commands,
        "kernels": bench_kernels, "images": bench_images}


def processor_ticks():
    """Ticks of all cores so far: user, nice, system, idle, iowait, irq, softirq,
    steal."""
    with open("/proc/stat", encoding="ascii") as stat:
        return [int(field) for field in stat.readline().split()[1:9]]


def steal_ticks():
    return processor_ticks()[7]


class OtherJobs:
    """What others took of the machine's time inside a `with`: other processes,
    and other machines on the same processor."""

    LIMIT = 0.1

    def __enter__(self):
        self.start = self._times()
        return self

    def __exit__(self, *_):
        (busy, own, wall), before = self._times(), self.start
        others = busy - before[0] - (own - before[1])
        self.share = max(0.0, others / (wall - before[2]) / os.cpu_count())

    @staticmethod
    def _times():
        ticks, own = processor_ticks(), os.times()
        busy = sum(ticks) - ticks[3] - ticks[4]
        return busy / os.sysconf("SC_CLK_TCK"), sum(own[:4]), own.elapsed


def machine_is_whole(machine):
    """True if two threads do at least 1.8 times the work of one."""
    rates = machine.round()
    fma = rates["fma_2t"] / rates["fma_1t"]
    copy = rates["copy_2t"] / rates["copy_1t"]
    print(f"  machine: 2 threads / 1 thread: multiply-add {fma:.2f}, copy {copy:.2f}")
    return fma >= 1.8 and copy >= 1.8


def describe():
    """Prints what is measured on, and returns it."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        model = next((l.split(":")[1].strip() for l in info if "model name" in l), "?")
    torch = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"],
                           capture_output=True, text=True, check=True).stdout.strip()
    revision = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                              capture_output=True, text=True).stdout.strip()
    python = platform.python_version()
    print(f"{model}, {os.cpu_count()} cores, torch {torch}, "
          f"Python {python}, revision {revision}")
    return {"date": datetime.date.today().isoformat(), "processor": model,
            "cores": os.cpu_count(), "torch": torch, "python": python,
            "revision": revision}


def run_row(row, rounds, machine):
    """Results of a row, or None if the machine was not whole meanwhile."""
    before = machine_is_whole(machine)
    with OtherJobs() as others:
        results = [{"row": row, "name": name, "unit": unit, **r}
                   for name, unit, r in ROWS[row](rounds)]
    print(f"  other jobs took {100 * others.share:.0f} % of the machine")
    whole = machine_is_whole(machine) and before
    return results if whole and others.share <= others.LIMIT else None


def show(results):
    print(f"  {'peer -> ours':54} {'peer':>10} -> {'ours':>10}"
          "         median of the ratios (range)")
    for r in results:
        print(f"  {r['name']:54} {r['peer']:>10.4g} -> {r['ours']:>10.4g} {r['unit']:6}"
              f"  {r['ratio']:.2f}x ({r['low']:.2f} .. {r['high']:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rows", default=",".join(row for row in ROWS if row != "images"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--attempts", type=int, default=3,
                        help="how often a void row is run before it is given up")
    parser.add_argument("--json", help="also write the results to this file, of "
                        "which scripts/bench_tables.py makes tables")
    args = parser.parse_args()

    about = describe()
    kept, failed, void = [], False, []
    stolen = steal_ticks()
    with Peer(BIN / "machine_bench") as machine:
        for row in args.rows.split(","):
            print(f"\n{row}: {ROWS[row].__doc__}", flush=True)
            results = None
            try:
                for attempt in range(args.attempts):
                    results = run_row(row, args.rounds, machine)
                    if results is not None:
                        break
                    print(f"  void, attempt {attempt + 1} of {args.attempts}: "
                          "the machine was not ours the whole time", flush=True)
            except CheckFailed as reason:
                failed = True
                print(f"  no number: {reason}")
                continue
            if results is None:
                void.append(row)
                continue
            show(results)
            kept += results
    print(f"\nstolen by other machines meanwhile: {steal_ticks() - stolen} ticks")
    if args.json:
        titles = {row: ROWS[row].__doc__ for row in args.rows.split(",")}
        pathlib.Path(args.json).write_text(json.dumps(
            {"machine": about, "rounds": args.rounds, "titles": titles,
             "results": kept}, indent=1) + "\n")
    if failed:
        sys.exit(1)
    if void:
        print(f"void, run again: {', '.join(void)}")
        sys.exit(75)


if __name__ == "__main__":
    main()
