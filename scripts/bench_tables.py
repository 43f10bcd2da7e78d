#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Markdown tables of what bench/run.py measured: bench_tables.py FILE.json...

The files are those of `bench/run.py --json FILE`.
"""

import json
import pathlib
import sys


def number(value):
    """Three digits, with commas: 1234.5 -> 1,230."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def row_table(rows):
    lines = ["| What | Unit | Peer | Lockstep | Ratio | Range |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        name = row["name"].replace("|", "\\|")
        lines.append(
            f"| {name} | {row['unit']} | {number(row['peer'])} "
            f"| {number(row['ours'])} | {row['ratio']:.2f} "
            f"| {row['low']:.2f} to {row['high']:.2f} |")
    return "\n".join(lines)


def page_part(path):
    """The tables of one file below a line that says where it was measured."""
    data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    machine = data["machine"]
    lines = [f"Measured on {machine['date']}: {machine['processor']}, "
             f"{machine['cores']} cores, torch {machine['torch']}, Python "
             f"{machine['python']}, revision `{machine['revision']}`, "
             f"{data['rounds']} pairs for each number."]
    kinds = []
    for row in data["results"]:
        if row["row"] not in kinds:
            kinds.append(row["row"])
    for kind in kinds:
        rows = [row for row in data["results"] if row["row"] == kind]
        lines += [f"## {kind}", data["titles"][kind].split("\n")[0],
                  row_table(rows)]
    return "\n\n".join(lines) + "\n"


def main():
    for path in sys.argv[1:]:
        print(page_part(path))


if __name__ == "__main__":
    main()
