# SPDX-License-Identifier: BSD-3-Clause
"""The table of `make demo`, from runs whose times are known."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class DemoTableTest(unittest.TestCase):
    def table(self, *walls):
        """What it prints for runs of so many seconds."""
        with tempfile.TemporaryDirectory() as scratch:
            folders = []
            for number, wall in enumerate(walls):
                folder = pathlib.Path(scratch, str(number))
                folder.mkdir()
                (folder / "results.csv").write_text(
                    "epoch_s,user_s,system_s,val_top1\n"
                    f"{wall},{wall},0.5,88.5\n")
                folders.append(folder)
            return subprocess.run(
                [sys.executable, ROOT / "scripts/demo_table.py", *folders],
                capture_output=True, text=True, check=True).stdout

    def test_times_are_rounded_as_in_the_log(self):
        lines = self.table(78.5, 59.5, 39.49).splitlines()
        self.assertIn("1min 19s    1min 19s    0min 01s", lines[1])
        self.assertIn("1min 00s", lines[2])
        self.assertIn("0min 39s", lines[3])

    def test_says_what_the_third_row_is(self):
        self.assertIn("2 ranks: two processes with one CPU each, started by "
                      "'lockstep run --nproc-per-node 2'",
                      self.table(80, 40, 50))


if __name__ == "__main__":
    unittest.main()
