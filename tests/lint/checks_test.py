# SPDX-License-Identifier: BSD-3-Clause
"""Each check passes on a good tree and fails on a bad one, for its reason."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tree:
    """A small project in a scratch folder."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)
        self.put("scripts/layers.toml",
                 (ROOT / "scripts/layers.toml").read_text())
        self.put("lockstep/base/CMakeLists.txt", "lockstep_library(a.h)\n")
        self.put("lockstep/base/a.h", "#include <string>\n")
        self.put("examples/CMakeLists.txt", "add_executable(a a.cpp)\n")
        self.put("examples/a.cpp", '#include <lockstep/base/a.h>\n')

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, which):
        return subprocess.run(
            [sys.executable, ROOT / f"scripts/check_{which}.py", self.root],
            capture_output=True, text=True, check=False)


class ChecksTest(unittest.TestCase):
    def setUp(self):
        self.tree = Tree()

    def tearDown(self):
        self.tree.scratch.cleanup()

    def assert_passes(self, which):
        result = self.tree.check(which)
        self.assertEqual(result.returncode, 0, result.stderr)

    def assert_fails(self, which, reason):
        result = self.tree.check(which)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(reason, result.stderr)

    def assert_bad_line(self, name, line, reason):
        self.tree.put(name, line + "\n")
        self.assert_fails("layers", reason)
        (self.tree.root / name).unlink()

    def test_a_good_tree_passes(self):
        for which in ("sizes", "layers", "registration"):
            self.assert_passes(which)

    def test_sizes_are_limited_by_kind(self):
        for name, limit in (("lockstep/base/a.h", 400),
                            ("cli/main.cpp", 400),
                            ("tests/base/a_test.cpp", 400),
                            ("examples/a.cpp", 80),
                            ("lockstep/base/CMakeLists.txt", 30),
                            ("CMakeLists.txt", 150),
                            ("README.md", 200)):
            self.tree.put(name, "\n" * limit)
            self.assert_passes("sizes")
            self.tree.put(name, "\n" * (limit + 1))
            self.assert_fails(
                "sizes", f"{name}: {limit + 1} lines, at most {limit}")
            self.tree.put(name, "\n")

    def test_a_size_exception_needs_a_reason_and_a_need(self):
        name = "lockstep/base/a.h"
        self.tree.put(name, "\n" * 450)
        self.tree.put("scripts/size_exceptions.txt", f"{name} 450 a table\n")
        self.assert_passes("sizes")
        self.tree.put("scripts/size_exceptions.txt", f"{name} 450\n")
        self.assert_fails("sizes", "expected 'path limit reason'")
        self.tree.put(name, "\n")
        self.tree.put("scripts/size_exceptions.txt", f"{name} 450 a table\n")
        self.assert_fails("sizes", "needs its exception no longer")

    def test_layers_hold(self):
        bad = self.assert_bad_line
        bad("lockstep/base/b.h", '#include "lockstep/ckpt/core/value.h"',
            "lockstep/base/b.h:1: may not include lockstep/ckpt")
        bad("lockstep/data/b.cpp", '#include "lockstep/optim/sgd.h"',
            "may not include lockstep/optim")
        bad("cli/main.cpp", '#include "lockstep/tensor/bridge.h"',
            "may not include lockstep/tensor")
        bad("cli/main.cpp", '#include "lockstep/train/trainer.h"',
            "may not include lockstep/train")
        bad("lockstep/train/settings/b.cpp",
            '#include "lockstep/train/trainer.h"',
            "may not include lockstep/train")
        bad("lockstep/extra/b.h", "", "has no row in layers.toml")
        bad("lockstep/tensor/b.h", '#include "bridge.h"',
            "not written from the root")
        bad("lockstep/tensor/b.cpp",
            '#include "lockstep/base/internal/a.h"', "is internal to")

    def test_rooms_include_only_rooms_above_them(self):
        bad = self.assert_bad_line
        bad("lockstep/ckpt/zip/b.h",
            '\n#include "lockstep/ckpt/tools/scan/scan.h"',
            "lockstep/ckpt/zip/b.h:2: may not include lockstep/ckpt/tools/scan "
            "('lockstep/ckpt/tools/scan/scan.h')")
        bad("lockstep/ckpt/formats/numpy/b.cpp",
            '#include "lockstep/ckpt/formats/dcp/a.h"',
            "may not include lockstep/ckpt/formats/dcp")
        bad("lockstep/ckpt/zip/b.cpp", '#include "lockstep/ckpt/scan.h"',
            "may not include lockstep/ckpt/tools/scan "
            "('lockstep/ckpt/scan.h')")
        self.tree.put("lockstep/ckpt/load/b.h",
                      '#include "lockstep/ckpt/formats/dcp/a.h"\n')
        self.tree.put("lockstep/ckpt/core/b.cpp",
                      '#include "lockstep/ckpt/value.h"\n')
        self.assert_passes("layers")

    def test_others_see_the_face_of_a_house_alone(self):
        for name in ("cli/b.cpp", "lockstep/tensor/b.cpp",
                     "lockstep/ckpt.h", "tests/user/b.cpp"):
            self.assert_bad_line(
                name, '#include "lockstep/ckpt/zip/zip_reader.h"',
                f"{name}:1: may not include lockstep/ckpt/zip "
                "('lockstep/ckpt/zip/zip_reader.h')")
            self.tree.put(name, '#include "lockstep/ckpt/scan.h"\n')
            self.assert_passes("layers")

    def test_what_is_internal_is_shared_by_name(self):
        bad = self.assert_bad_line
        shared = '#include "lockstep/base/internal/numbers.h"'
        own = '#include "lockstep/base/internal/kernel_pipe.h"'
        for name in ("lockstep/ckpt/zip/b.cpp", "cli/b.cpp"):
            bad(name, own, "is internal to lockstep/base")
            self.tree.put(name, shared + "\n")
        self.tree.put("tests/base/b_test.cpp", own + "\n")
        self.assert_passes("layers")
        for name in ("lockstep/optim/b.h", "examples/b.cpp",
                     "tests/user/b_test.cpp"):
            bad(name, shared, "is internal to lockstep/base")

    def test_an_installed_header_is_for_somebody(self):
        reason = "lockstep/base/b.h: installed, but no example"
        self.assert_bad_line("lockstep/base/b.h", "", reason)
        self.tree.put("lockstep/base/b.h", "\n")
        for name, text in (("examples/b.cpp", "#include <{}>\n"),
                           ("docs/b.md", "`{}` shows it\n"),
                           ("lockstep/base/a.h", '#include "{}"\n'),
                           ("lockstep/lockstep.h", '#include "{}"\n')):
            self.assert_fails("layers", reason)
            self.tree.put(name, text.format("lockstep/base/b.h"))
            self.assert_passes("layers")
            self.tree.put(name, "#include <lockstep/base/a.h>\n"
                          if name.startswith("examples") else "\n")

    def test_installed_headers_are_counted(self):
        rules = (self.tree.root / "scripts/layers.toml").read_text()
        self.tree.put("scripts/layers.toml", re.sub(
            "at_most = [0-9]+", "at_most = 1", rules))
        self.assert_passes("layers")
        self.tree.put("lockstep/ckpt.h", "\n")
        self.assert_fails("layers", "2 headers are installed, at most 1")

    def test_no_spelling_of_an_include_gets_around_the_rows(self):
        name = "lockstep/ckpt/core/b.cpp"
        for path in ("lockstep/ckpt/core/../load/diagnose.h",
                     "./lockstep/ckpt/load/diagnose.h",
                     "lockstep//ckpt/load/diagnose.h",
                     "/usr/include/omp.h"):
            for line in (f'#include "{path}"', f"#include <{path}>"):
                self.assert_bad_line(
                    name, line, f"{name}:1: '{path}' is not the plain path")
        path = "lockstep/ckpt/load/diagnose.h"
        for line in (f'#/**/include "{path}"', f'#include /* x */ "{path}"',
                     f'%:include "{path}"', f'??=include "{path}"',
                     f'/* x */ #include "{path}"', "#include MACRO",
                     f'#\\\ninclude "{path}"', f'/*\n*/#include "{path}"',
                     f'#include_next "{path}"'):
            self.assert_bad_line(name, line, "an include is written")

    def test_the_library_includes_no_program_and_no_test(self):
        for path in ("cli/app.h", "cli_train/flags.h", "fuzz/exercise.h",
                     "bench/timing.h", "tests/ckpt/zip/zip_fixture.h"):
            line = f'#include "{path}"'
            top = path.split("/")[0]
            reason = f"may not include {top} ('{path}')"
            self.assert_bad_line("lockstep/ckpt/zip/b.h", line, reason)
            self.assert_bad_line("examples/b.cpp", line, reason)
            if top != "tests":
                self.assert_bad_line("tests/ckpt/b_test.cpp", line, reason)
        self.tree.put("tests/cli/b_test.cpp", '#include "cli/app.h"\n')
        self.tree.put("cli/b.cpp", '#include "cli/app.h"\n')
        self.assert_passes("layers")

    def test_sources_end_in_h_or_cpp(self):
        for ending in ("inc", "hpp", "cc"):
            name = f"lockstep/base/b.{ending}"
            self.assert_bad_line(name, "", f"{name}: sources end in .h or")
            self.assert_bad_line("lockstep/base/b.cpp", f'#include "{name}"',
                                 f"'{name}' is not a header")

    def test_rows_form_no_circle(self):
        name = "scripts/layers.toml"
        rules = (self.tree.root / name).read_text()
        row = '[folders."lockstep/ckpt/zip"]\nincludes = ["base", '
        self.assertIn(row, rules)
        self.tree.put(name, rules.replace(row, row + '"ckpt/load", '))
        self.assert_fails(
            "layers", "layers.toml: rows in a circle: "
            "ckpt/formats/archive -> ckpt/zip -> ckpt/load -> "
            "ckpt/formats/archive")

    def test_folders_form_no_circle(self):
        self.tree.put("lockstep/base/b.h",
                      '\n#include "lockstep/base/text/c.h"\n')
        self.tree.put("lockstep/base/text/c.h",
                      '#include "lockstep/base/a.h"\n')
        self.assert_fails(
            "layers",
            "folders in a circle: "
            "lockstep/base/b.h:2 includes 'lockstep/base/text/c.h'; "
            "lockstep/base/text/c.h:1 includes 'lockstep/base/a.h'")

    def test_torch_and_its_enemies_stay_apart(self):
        bad = self.assert_bad_line
        for line in ("#include <torch/torch.h>", "#include <ATen/ATen.h>"):
            bad("lockstep/ckpt/core/b.cpp", line, "may not include torch")
            bad("tests/report/b_test.cpp", line, "may not include torch")
            bad("tests/train/settings/b_test.cpp", line,
                "may not include torch")
        for package in ("fmt", "spdlog"):
            line = f"#include <{package}/core.h>"
            bad("lockstep/train/loop/b.cpp", line, f"may not include {package}")
            bad("tests/train/b_test.cpp", line, f"may not include {package}")
        bad("lockstep/train/loop/b.cpp", "#include <omp.h>",
            "may not include openmp")
        bad("lockstep/train/loop/b.cpp", "#pragma omp parallel for", "no OpenMP")
        bad("lockstep/optim/b.cpp", "#if TORCH_VERSION_MINOR > 12",
            "may look at TORCH_VERSION")

    def test_public_headers_show_no_third_party(self):
        bad = self.assert_bad_line
        bad("lockstep/data/b.h", "#include <libdeflate.h>",
            "public header shows libdeflate")
        bad("lockstep/optim/b.h", "#include <torch/torch.h>",
            "public header includes torch/torch.h")
        self.tree.put("lockstep/optim/b.h", "#include <torch/nn/module.h>\n")
        self.tree.put("docs/b.md", "see lockstep/optim/b.h\n")
        self.tree.put("lockstep/optim/c.cpp", "#include <torch/torch.h>\n")
        self.assert_passes("layers")

    def test_every_source_is_registered(self):
        for name in ("lockstep/base/b.cpp", "lockstep/base/b.h",
                     "tests/base/b_test.cpp", "cli/main.cpp"):
            self.tree.put(name, "\n")
            self.assert_fails("registration", f"{name}: in no CMakeLists.txt")
            (self.tree.root / name).unlink()
        self.tree.put("lockstep/base/internal/b.h", "\n")
        self.tree.put("lockstep/ckpt/zip/b.h", "\n")
        self.assert_passes("registration")

    def test_a_source_named_in_a_comment_is_not_registered(self):
        self.tree.put("tests/base/CMakeLists.txt", "# b_test.cpp\n")
        self.tree.put("tests/base/b_test.cpp", "\n")
        self.assert_fails("registration", "b_test.cpp")


if __name__ == "__main__":
    unittest.main()
