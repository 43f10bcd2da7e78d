#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gathers seeds for the fuzz targets: fuzz_seeds.py FOLDER

Takes the small files of testdata and what lies inside the archives among them:
pickles and arrays are inputs of their own.
"""
import hashlib
import io
import pathlib
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_BYTES = 32 << 10


def parts_of(data):
    """The file, and the records inside it if it is an archive."""
    yield data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.filename.endswith((".pkl", ".npy", ".distcp")):
                    yield archive.read(info)
    except Exception:  # broken on purpose, in every way that zipfile knows
        return


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "testdata").rglob("*")):
        if not path.is_file() or path.name.endswith(".expect.json"):
            continue
        for part in parts_of(path.read_bytes()):
            if len(part) <= MAX_BYTES:
                name = hashlib.sha256(part).hexdigest()[:16]
                (folder / name).write_bytes(part)
    print(f"{len(list(folder.iterdir()))} seeds")


main()
