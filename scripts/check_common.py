# SPDX-License-Identifier: BSD-3-Clause
"""What the check_*.py scripts share: the list of files and the report."""

import pathlib
import subprocess
import sys


def root_from_arguments():
    """The folder to check: the first argument, or the repository."""
    here = pathlib.Path(__file__).resolve().parent.parent
    return pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here


def project_files(root):
    """Paths (relative, with '/') that git knows or would add."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"],
        capture_output=True, check=False)
    if listing.returncode == 0:
        names = listing.stdout.decode().split("\0")
        return sorted({n for n in names if n and (root / n).is_file()})
    skipped = {"build", ".venv", ".git", "runs"}
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and not skipped & set(path.relative_to(root).parts))


def finish(name, problems, summary):
    """Prints the problems; exits 1 if there are any."""
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"{name}: ok, {summary}")
