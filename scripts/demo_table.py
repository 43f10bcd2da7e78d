# SPDX-License-Identifier: BSD-3-Clause
"""The table of scripts/demo.sh from the results.csv of three runs.

    demo_table.py RUN_ON_ONE_DEVICE RUN_ON_TWO RUN_IN_TWO_PROCESSES
"""

import csv
import pathlib
import sys

ROW = "{:<10} {:<8} {:>11} {:>11} {:>11} {:>9} {:>11}   {}".format


def clock(seconds):
    """To the nearest second, a half up as in log.txt; round() takes the even one."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes}min {rest:02}s"


class Run:
    """The whole run: its times, and its last test."""

    def __init__(self, folder):
        with open(pathlib.Path(folder) / "results.csv", newline="") as file:
            self.epochs = list(csv.DictReader(file))
        self.wall, self.user, self.system = (
            sum(float(epoch[name]) for epoch in self.epochs)
            for name in ("epoch_s", "user_s", "system_s"))
        self.accuracy = float(self.epochs[-1]["val_top1"])

    def row(self, devices, one=None):
        speed_up = one.wall / self.wall if one else None
        print(ROW("resnet18", devices, clock(self.wall), clock(self.user),
                  clock(self.system), f"{speed_up:.2f}x" if one else "",
                  f"{50 * speed_up:.1f} %" if one else "",
                  f"{self.accuracy:.2f} %"))


one, two, ranks = map(Run, sys.argv[1:])
print(ROW("model", "devices", "time", "user", "system", "speed-up",
          "efficiency", "test accuracy"))
one.row("1 CPU")
two.row("2 CPUs", one)
ranks.row("2 ranks", one)
print("2 CPUs: one process with two replicas (DataParallel). 2 ranks: two processes "
      "with one CPU each, started by 'lockstep run --nproc-per-node 2'.")
print("The experiment as it was published, in Python on GPUs, 20 epochs:")
print(ROW("resnet18", "1 GPU", "6min 36s", "", "", "", "", "").rstrip())
print(ROW("resnet18", "2 GPUs", "5min 02s", "5min 19s", "0min 22s", "1.31x",
          "65.6 %", "").rstrip())

work = 100 * ((two.user + two.system) / (one.user + one.system) - 1)
busy = 50 * (two.user + two.system) / two.wall
print(f"""
What limits it: two replicas took {work:+.0f} % of processor time in all (smaller
batches, the sum of the gradients), and kept two cores busy for {busy:.0f} % of the
time; the rest is waiting: for the slower one, for what one thread does alone,
or for other programs.""")
