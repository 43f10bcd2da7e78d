# SPDX-License-Identifier: BSD-3-Clause
"""The programs in docs/python_reader.md and python/README.md run."""
import collections
import contextlib
import io
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import numpy as np

import lockstep
from pt_files import TESTDATA, tensor, write_pt

ROOT = TESTDATA.parent
PAGES = [ROOT / "docs/python_reader.md", ROOT / "docs/python_reader.zh.md", ROOT / "python/README.md"]


def programs(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        shutil.copy(TESTDATA / "valid" / "dataparallel.pt", "model.pth")
        shutil.copy(TESTDATA / "corrupt" / "crc_data.pt", "damaged.pth")
        weights = collections.OrderedDict({"fc.weight": tensor(np.ones((2, 3), np.float32))})
        write_pt("a.pth", weights)
        write_pt("checkpoint.pth.tar", {"epoch": 3, "state_dict": weights, "optimizer": {"param_groups": [{"lr": 0.1}]}})
        lockstep.convert("a.pth", "b.safetensors")

    def test_the_programs_run(self):
        for page in PAGES:
            names = {"lockstep": lockstep}
            for number, program in enumerate(programs(page)):
                with self.subTest(page=page.name, number=number), contextlib.redirect_stdout(io.StringIO()):
                    pathlib.Path("model.safetensors").unlink(missing_ok=True)
                    exec(compile(program, f"{page.name}, {number}", "exec"), names)  # noqa: S102
            self.assertGreater(number, -1)

    def test_both_languages_show_the_same(self):
        self.assertEqual(programs(PAGES[0]), programs(PAGES[1]))

    def test_the_session(self):
        self.assertIn(">>> lockstep.keys(\"model.pth\")[:2]\n['module.0.weight', 'module.0.bias']", PAGES[0].read_text())
        self.assertEqual(lockstep.keys("model.pth")[:2], ["module.0.weight", "module.0.bias"])
        self.assertEqual(lockstep.scan("model.pth").verdict, "clean")


if __name__ == "__main__":
    unittest.main()
