# SPDX-License-Identifier: BSD-3-Clause
"""scripts/scan_action.sh with a program that notes what it is asked for."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Says its arguments, one a line; $STATUS and $SARIF_STATUS are how it ends.
PROGRAM = """#!/bin/sh
printf '%s\\n' "$@" >>"$ASKED"
echo '::add-mask::a name of a file' >&2
case "$*" in
  *--sarif*) printf "$PRINTED"; exit "$SARIF_STATUS" ;;
esac
printf '::error::a name of a pickle'
exit "$STATUS"
"""


class ScanActionTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        program = self.folder / "a program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        (self.folder / "temporary").mkdir()

    def scan(self, status=0, sarif_status=None, printed="{}", **inputs):
        """Its exit status; asked, outputs and stderr become members."""
        for name in ("asked", "outputs"):
            (self.folder / name).write_text("")
        variables = {
            "SCAN_PROGRAM": str(self.folder / "a program"),
            "GITHUB_OUTPUT": str(self.folder / "outputs"),
            "RUNNER_TEMP": str(self.folder / "temporary"),
            "ASKED": str(self.folder / "asked"), "STATUS": str(status),
            "PRINTED": printed,
            "SARIF_STATUS": str(status if sarif_status is None else sarif_status),
            **{f"SCAN_{name.upper()}": text for name, text in inputs.items()}}
        done = subprocess.run(
            [ROOT / "scripts/scan_action.sh"], cwd=self.folder,
            env={"PATH": os.environ["PATH"], **variables},
            capture_output=True, text=True, check=False)
        self.asked = (self.folder / "asked").read_text().split("\n")[:-1]
        self.outputs = (self.folder / "outputs").read_text().split()
        self.stdout, self.stderr = done.stdout, done.stderr
        self.assertEqual(list((self.folder / "temporary").iterdir()), [])
        return done.returncode

    def test_takes_the_paths_of_all_lines(self):
        self.assertEqual(self.scan(paths="a.pt  b\n-c.pt\n"), 0)
        self.assertEqual(self.asked, [
            "ckpt", "scan", "--", "a.pt", "b", "-c.pt",
            "ckpt", "scan", "--sarif", "--", "a.pt", "b", "-c.pt"])

    def test_no_path_is_an_error_and_no_input_this_folder(self):
        self.assertEqual(self.scan(paths=" \n"), 2)
        self.assertIn("names no file", self.stderr)
        self.assertEqual((self.asked, self.outputs), ([], []))
        self.assertEqual(self.scan(paths=""), 0)
        self.assertEqual(self.asked[:4], ["ckpt", "scan", "--", "."])

    def test_findings_fail_as_it_was_asked(self):
        for status, fail_on, expected in (
                (0, "unreadable", 0), (1, "unreadable", 1), (1, "found", 1),
                (1, "never", 0), (3, "unreadable", 3), (3, "found", 0),
                (3, "never", 0)):
            with self.subTest(status=status, fail_on=fail_on):
                self.assertEqual(self.scan(status, fail_on=fail_on), expected)
                self.assertEqual(self.outputs, [
                    f"status={status}", "sarif=lockstep-scan.sarif"])
        self.assertEqual((self.folder / "lockstep-scan.sarif").read_text(), "{}")
        self.assertEqual(self.scan(fail_on="often"), 2)

    def test_no_sarif_is_named_where_nothing_was_scanned(self):
        for status in (2, 4):
            self.assertEqual(self.scan(status, fail_on="never"), status)
            self.assertEqual(self.outputs, [f"status={status}"])
        for second in ({"sarif_status": 4}, {"printed": ""}):
            self.assertEqual(self.scan(**second), 4)
            self.assertEqual(self.outputs, ["status=0"])
        self.assertFalse((self.folder / "lockstep-scan.sarif").exists())

    def test_a_file_that_cannot_be_written_is_an_error(self):
        for status in (0, 1):
            self.assertEqual(
                self.scan(status, sarif="none/a.sarif", fail_on="never"), 4)
            self.assertIn("cannot be written", self.stderr)
            self.assertEqual((self.asked, self.outputs), ([], []))
        self.assertEqual(self.scan(sarif="a b.sarif"), 0)
        self.assertEqual((self.folder / "a b.sarif").read_text(), "{}")

    def test_the_scanned_repository_cannot_choose_another_file(self):
        victim = self.folder / "victim"
        victim.write_text("old")
        (self.folder / "a.sarif").symlink_to(victim)
        (self.folder / "none.sarif").symlink_to("nowhere")
        (self.folder / "folder").mkdir()
        (self.folder / "to_folder").symlink_to("folder")
        for name in ("a.sarif", "none.sarif", "folder", "to_folder"):
            with self.subTest(name=name):
                self.assertEqual(self.scan(sarif=name), 4)
                self.assertEqual(self.asked, [])
        (self.folder / "b.sarif.part").symlink_to(victim)
        self.assertEqual(self.scan(sarif="b.sarif"), 0)
        self.assertFalse((self.folder / "b.sarif").is_symlink())
        self.assertEqual(victim.read_text(), "old")
        self.assertEqual(list((self.folder / "folder").iterdir()), [])

    def test_what_the_program_prints_is_no_command_to_the_runner(self):
        tokens = set()
        for status in (0, 1, 2):
            self.scan(status)
            lines = self.stdout.splitlines()
            stop, token = lines[0].rsplit("::", 1)
            self.assertEqual(stop, "::stop-commands")
            self.assertRegex(token, "^[0-9a-f]{32}$")
            self.assertIn("::add-mask::a name of a file", lines[1:-1])
            self.assertIn("::error::a name of a pickle", self.stdout)
            self.assertEqual(lines[-1], f"::{token}::")
            self.assertEqual(self.stderr, "")
            tokens.add(token)
        self.assertEqual(len(tokens), 3)


if __name__ == "__main__":
    unittest.main()
