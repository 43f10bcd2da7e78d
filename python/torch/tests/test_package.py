# SPDX-License-Identifier: BSD-3-Clause
"""The package lockstep-torch as pip lays it out, with and without a torch.

LOCKSTEP_BIN, a folder with `lockstep` and `lockstep-train`, runs them through the
package; LOCKSTEP_TORCH is then the folder of the torch that they were built with.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "lockstep_torch"
BIN = os.environ.get("LOCKSTEP_BIN")
ECHO = "#!/bin/sh\necho \"$0 $*\"\necho \"LD_LIBRARY_PATH=$LD_LIBRARY_PATH\"\n"


class Site(unittest.TestCase):
    """A folder `site` with the package, whose program prints how it was started."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.site = self.root / "site"
        shutil.copytree(SOURCE, self.site / "lockstep_torch")
        self.built()
        self.program = self.site / "lockstep_torch/bin/lockstep-train"
        self.write(self.program, ECHO).chmod(0o755)

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def built(self, torch="2.13", cuda=""):
        self.write(self.site / "lockstep_torch/_built.py",
                   f'__version__ = "0.1.0"\nTORCH = "{torch}"\nCUDA = "{cuda}"\n')

    def torch(self, version, folder="site", cuda=False):
        torch = self.root / folder / "torch"
        self.write(torch / "__init__.py", "raise SystemExit('torch was imported')\n")
        self.write(torch / "version.py", f"from typing import Optional\n__version__ = '{version}'\n")
        self.write(torch / "lib/libtorch_cpu.so", "")
        if cuda:
            self.write(torch / "lib/libtorch_cuda.so", "")
        return torch

    def run_it(self, *args, search=(), **environment):
        path = ":".join(str(self.root / p) for p in ("site", *search))
        return subprocess.run(  # without -S: the site-packages of this Python may hold a torch
            [sys.executable, "-S", "-c", "import sys; sys.argv[0] = 'lockstep-train'; "
             "from lockstep_torch._launch import main; sys.exit(main())", *args],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **environment},
            capture_output=True, text=True, check=False)


class Launching(Site):
    def assert_refused(self, done, *words):
        self.assertEqual((done.returncode, done.stdout), (5, ""))
        for word in (*words, "expected", "got", ". Hint: "):
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_the_program_takes_the_place_of_python(self):
        lib = self.torch("2.13.0+cpu") / "lib"
        done = self.run_it("train", "--lr", "0.1")
        self.assertEqual(done.stdout, f"{self.program} train --lr 0.1\nLD_LIBRARY_PATH={lib}\n")

    def test_a_torch_elsewhere_is_named_to_the_loader(self):
        lib = self.torch("2.13.1", "other") / "lib"
        self.assertIn(f"LD_LIBRARY_PATH={lib}\n", self.run_it("train", search=["other"]).stdout)
        done = self.run_it("train", search=["other"], LD_LIBRARY_PATH="/mine")
        self.assertIn(f"LD_LIBRARY_PATH={lib}:/mine\n", done.stdout)

    def test_the_torch_beside_it_comes_first(self):
        lib = self.torch("2.13.0") / "lib"
        self.torch("2.14.0", "other")
        path = f"{self.root}/other:{self.site}"
        self.assertIn(f"={lib}\n", self.run_it("train", PYTHONPATH=path).stdout)

    def test_another_version_is_refused(self):
        for version in ("2.12.1", "2.14.1+cu130", "2.130.0", "3.13.0", "2.1"):
            with self.subTest(version=version):
                folder = self.torch(version)
                self.assert_refused(self.run_it("train"), "2.13", version, str(folder), "pip install")
        (folder / "version.py").unlink()
        self.assert_refused(self.run_it("train"), "2.13", "unknown")

    def test_versions_of_the_minor_are_taken(self):
        for version in ("2.13", "2.13.0", "2.13.9+cpu", "2.13.0a0+git1234"):
            with self.subTest(version=version):
                self.torch(version)
                self.assertEqual(self.run_it("train").returncode, 0)

    def test_no_torch_is_refused(self):
        self.assert_refused(self.run_it("train"), "2.13", "none", 'pip install "torch==2.13.*"')
        shutil.rmtree(self.torch("2.13.0") / "lib")
        self.assert_refused(self.run_it("train"), "none", "lib/libtorch_cpu.so")

    def test_a_torch_without_cuda_is_refused_where_it_is_needed(self):
        self.built(cuda="13.0")
        self.torch("2.13.0+cpu")
        self.assert_refused(self.run_it("train"), "CUDA 13.0", "2.13.0+cpu")
        self.torch("2.13.0+cu130", cuda=True)
        self.assertEqual(self.run_it("train").returncode, 0)

    def test_the_doctor_gets_a_finding(self):
        self.torch("2.14.0")
        done = self.run_it("--facts")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith('{"findings":'))
        self.assertIn('"health": "problem"', done.stdout)

    def test_cmake_gets_the_prefix(self):
        python = [sys.executable, "-S", str(SOURCE.parents[1] / "lockstep/cmake.py")]
        done = subprocess.run(python, env={"PYTHONPATH": str(self.site)}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, f"{self.site}/lockstep_torch\n")
        done = subprocess.run(python, env={}, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("torch_package.sh", done.stderr)


@unittest.skipUnless(BIN, "LOCKSTEP_BIN is not set")
class Programs(Site):
    """The programs of a build, beside a script as pip writes it."""

    def setUp(self):
        super().setUp()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        shutil.copy(pathlib.Path(BIN) / "lockstep", self.bin)
        self.program.unlink()
        self.program.symlink_to(pathlib.Path(BIN) / "lockstep-train")
        self.write(self.bin / "lockstep-train", f"#!{sys.executable} -S\nimport sys\n"
                   "from lockstep_torch._launch import main\nsys.exit(main())\n").chmod(0o755)

    def lockstep(self, *args):
        return subprocess.run([self.bin / "lockstep", *args], env={"PYTHONPATH": str(self.site), "PATH": "/nowhere"},
                              capture_output=True, text=True, check=False)

    def link_torch(self):
        real = pathlib.Path(os.environ["LOCKSTEP_TORCH"])
        torch = self.torch((real / "version.py").read_text().split("__version__ = '")[1].split("'")[0])
        self.built(torch=(torch / "version.py").read_text().split("'")[1].rpartition(".")[0])
        shutil.rmtree(torch / "lib")
        (torch / "lib").mkdir()
        for library in (real / "lib").glob("*.so*"):
            (torch / "lib" / library.name).symlink_to(library)
        if (real.parent / "nvidia").exists():  # what a CUDA wheel looks for beside it
            (torch.parent / "nvidia").symlink_to(real.parent / "nvidia")
        return torch

    def test_with_torch(self):
        self.link_torch()
        done = self.lockstep("summary", "mlp", "--in-channels", "1", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('"lockstep.summary/1"', done.stdout)

    def test_a_cuda_library_is_loaded(self):
        library = self.link_torch() / "lib/libtorch_cuda.so"
        if library.exists():
            self.skipTest("a program for a CUDA wheel needs the real one")
        self.write(library, "no library")
        done = self.lockstep("summary", "mlp", "--in-channels", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("[torch.cuda] no GPU", done.stderr)
        self.assertIn(str(library), done.stderr)

    def test_without_torch(self):
        done = self.lockstep("train", "--data", "fashion-mnist")
        self.assertEqual(done.returncode, 5)
        self.assertIn("expected torch 2.13, got none", done.stderr)
        done = self.lockstep("doctor", "--json")
        self.assertIn("expected torch 2.13, got none", done.stdout)
        self.assertIn('pip install \\"torch==2.13.*\\"', done.stdout)


if __name__ == "__main__":
    unittest.main()
