# SPDX-License-Identifier: BSD-3-Clause
"""scan, verify, digest, convert, and the program in the wheel."""
import errno
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import lockstep
from lockstep import _tools
from pt_files import TESTDATA, tensor, write_pt

DATAPARALLEL = TESTDATA / "valid" / "dataparallel.pt"


class Scan(unittest.TestCase):
    def test_verdicts_of_hostile_files(self):
        for path in sorted((TESTDATA / "hostile").glob("*.expect.json")):
            expected = json.loads(path.read_text())
            file = path.with_name(path.name.removesuffix(".expect.json"))
            if "verdict" not in expected or file.is_dir():
                continue
            with self.subTest(file=file.name):
                report = lockstep.scan(file)
                self.assertEqual(report.verdict, expected["verdict"])
                with open(file, "rb") as opened:
                    self.assertEqual(lockstep.scan(opened).verdict, expected["verdict"])

    def test_findings(self):
        report = lockstep.scan(TESTDATA / "hostile" / "call.pt")
        self.assertEqual(report.verdict, "found")
        self.assertTrue(any(f.is_dangerous for f in report.findings))

    def test_folders(self):
        with self.assertRaises(lockstep.InvalidArgumentError):
            lockstep.scan(TESTDATA / "hostile")
        reports = lockstep.scan_folder(TESTDATA / "hostile")
        self.assertGreater(len(reports), 50)


class Verify(unittest.TestCase):
    def test_damage(self):
        self.assertTrue(lockstep.verify(DATAPARALLEL).is_sound)
        report = lockstep.verify(TESTDATA / "corrupt" / "crc_data.pt")
        self.assertFalse(report.is_sound)
        self.assertEqual(report.errors[0].code, "E_CRC")
        self.assertTrue(report.errors[0].tensors)

    def test_digest_rows(self):
        rows = lockstep.digest_rows(DATAPARALLEL)
        self.assertEqual(sorted(r.name for r in rows), sorted(lockstep.keys(DATAPARALLEL)))
        with open(DATAPARALLEL, "rb") as file:
            self.assertEqual(lockstep.digest(file), lockstep.digest(DATAPARALLEL))


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_formats(self):
        for name in ("a.safetensors", "a.npz", "a.pt"):
            out = self.folder / name
            report = lockstep.convert(DATAPARALLEL, out)
            self.assertEqual(pathlib.Path(report.output), out)
            self.assertEqual(report.tensors, 9)
            self.assertEqual(lockstep.digest(out), lockstep.digest(DATAPARALLEL))
        with np.load(self.folder / "a.npz") as arrays:
            for key, array in lockstep.load(DATAPARALLEL).items():
                np.testing.assert_array_equal(arrays[key], array)

    def test_what_is_left_out_is_said(self):
        report = lockstep.convert(TESTDATA / "valid" / "training.pth.tar", self.folder / "a.safetensors")
        self.assertIn("epoch", report.left_out)

    def test_types(self):
        out = self.folder / "a.pt"
        path = write_pt(self.folder / "b.pt", {"w": tensor(np.array([1.5, 2], np.float32))})
        report = lockstep.convert(path, out, dtype="float16")
        self.assertEqual([row["name"] for row in report.changed], ["w"])
        self.assertEqual(lockstep.load(out)["w"].dtype, np.float16)

    def test_nothing_is_overwritten_unasked(self):
        out = self.folder / "a.npz"
        out.write_bytes(b"mine")
        with self.assertRaises(FileExistsError) as caught:
            lockstep.convert(DATAPARALLEL, out)
        self.assertIsInstance(caught.exception, lockstep.ExistingFileError)
        self.assertEqual(caught.exception.code, "E_EXISTS")
        self.assertEqual(caught.exception.errno, errno.EEXIST)
        self.assertIn("overwrite=True", caught.exception.hint)
        self.assertEqual(out.read_bytes(), b"mine")
        lockstep.convert(DATAPARALLEL, out, overwrite=True)
        self.assertEqual(lockstep.digest(out), lockstep.digest(DATAPARALLEL))

    def test_errors(self):
        with self.assertRaises(lockstep.InvalidArgumentError):
            lockstep.convert(DATAPARALLEL, self.folder / "a.pt", to="onnx")
        with self.assertRaises(FileNotFoundError):
            lockstep.convert(self.folder / "nope.pt", self.folder / "a.pt")
        with self.assertRaises(lockstep.CorruptError) as caught:
            lockstep.convert(TESTDATA / "corrupt" / "conflict.pt", self.folder / "a.npz")
        with self.assertRaises(lockstep.CorruptError) as loaded:
            lockstep.load(TESTDATA / "corrupt" / "conflict.pt")
        self.assertEqual(str(caught.exception), str(loaded.exception))

    def test_names_that_utf8_cannot_spell(self):
        path, out = (self.folder / os.fsdecode(name) for name in (b"\xff.pt", b"\xfe.npz"))
        path.write_bytes(DATAPARALLEL.read_bytes())
        self.assertEqual(lockstep.convert(path, out).output, str(out))
        with self.assertRaises(FileExistsError) as caught:
            lockstep.convert(path, out)
        self.assertEqual(caught.exception.filename, str(out))

    def test_hints_are_for_python(self):
        path = self.folder / "a.pt"
        path.write_bytes(DATAPARALLEL.read_bytes())
        with self.assertRaises(lockstep.InvalidArgumentError) as caught:
            lockstep.convert(path, path)
        self.assertNotIn("--force", caught.exception.hint)
        with self.assertRaisesRegex(lockstep.UnsafeError, r"limits=\{'max_depth': N\}"):
            lockstep.convert(path, self.folder / "b.pt", limits={"max_depth": True})
        with self.assertRaisesRegex(lockstep.InvalidArgumentError, "to=FORMAT"):
            lockstep.convert(path, self.folder / "b.safetensor")
        for arguments in ({"dtype": ""}, {"to": ""}, {"map_location": ""}, {"shard": ""}):
            with self.assertRaisesRegex(ValueError, "not empty"):
                lockstep.convert(path, self.folder / "b.pt", **arguments)
        deep = lockstep.verify(TESTDATA / "corrupt" / "deep.pt").errors[0]
        self.assertIn("limits={'max_depth': N}", deep.hint)
        named = write_pt(self.folder / "c.pt", {"--force.w": tensor(np.ones(1, np.float32))})
        with self.assertRaisesRegex(KeyError, "'--force.w'"):
            lockstep.open(named)["--force.v"]
        with self.assertRaisesRegex(lockstep.UnsafeError, r"limits=\{'max_depth': N\}"):
            lockstep.load(path, limits={"max_depth": 1})

    def test_another_program_of_the_name_is_not_taken(self):
        other = self.folder / "lockstep"
        other.write_text("#!/bin/sh\necho Lockstep 0.0.1\n")
        other.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}), \
                mock.patch.object(_tools.importlib.metadata, "files", lambda name: []), \
                mock.patch.object(_tools, "__file__", str(self.folder / "none" / "_tools.py")):
            with self.assertRaisesRegex(lockstep.LockstepError, "another version") as caught:
                _tools.program()
            self.assertIn("install", caught.exception.hint)

    def test_the_program(self):
        done = subprocess.run([_tools.program(), "--version"], capture_output=True, text=True, check=True)
        self.assertIn(lockstep.__version__, done.stdout)
        module = subprocess.run([sys.executable, "-m", "lockstep", "--version"], capture_output=True, check=True, text=True)
        self.assertEqual(module.stdout, done.stdout)


if __name__ == "__main__":
    unittest.main()
