# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's numbers in checkpoints.

make FOLDER: one file per protocol and format, with every type at its ends.
check FOLDER: prints what differs between them and Lockstep's copies, "*.copy",
which the safe loader takes; then how many numbers were equal.
"""
import pathlib
import sys

import numpy
import torch

FLOATS = [0, -0.0, 0.1, -2.5, float("inf"), float("-inf"), float("nan"), 1e-7]


def numbers():
    found = {}
    for name in ("float16 float32 float64 complex64 complex128 bool_ int8 int16 "
                 "int32 int64 uint8 uint16 uint32 uint64").split():
        make = getattr(numpy, name)
        kind = numpy.dtype(make).kind
        values = [0, 1]
        if kind in "fc":
            values += FLOATS
        if kind == "c":
            values += [complex(1, -2), complex(0.1, float("nan"))]
        if kind in "iu":
            info = numpy.iinfo(make)
            values += [info.min, info.max, info.max // 2 + 1]
        for value in values:
            found[f"{name} {len(found)}"] = make(value)
    for name in (">f8", ">i2", ">u8", ">c8"):
        found[name] = numpy.array([-2 if name[1] != "u" else 2**63]).astype(name)[0]
    return found


def make(folder):
    for protocol in (2, 3, 4, 5):
        for is_zip in (True, False):
            torch.save({"numbers": numbers(), "weight": torch.ones(2)},
                       folder / f"{protocol}{is_zip}.pt", pickle_protocol=protocol,
                       _use_new_zipfile_serialization=is_zip)


def check(folder):
    equal = 0
    for path in sorted(folder.glob("*.pt")):
        wanted = torch.load(path, weights_only=False)["numbers"]
        got = torch.load(f"{path}.copy", weights_only=True)["numbers"]
        for name, number in wanted.items():
            plain = number.item()
            if type(plain) is type(got[name]) and repr(plain) == repr(got[name]):
                equal += 1
            else:
                print(path.name, name, repr(plain), repr(got.get(name)))
    print(equal)


{"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
