# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy, and what it reads of ours.

ckpt_numpy.py make FOLDER: writes arrays and archives, and prints a line
"file name dtype shape crc32" for each array; elements row-major, little-endian.
ckpt_numpy.py others FOLDER: writes arrays that are not numbers and prints "file has_objects" for each, also with
another array behind them, and an archive of those without objects.
ckpt_numpy.py accepts FOLDER COUNT: prints "yes" or "no" for each of FOLDER/0.npy, ...: does NumPy read it?
ckpt_numpy.py read FILE: checks an archive of ours with zipfile, compares each
record with the bytes of numpy.save, and prints "name descr shape hex".
"""
import io
import os
import sys
import warnings
import zipfile
import zlib

import numpy as np

random = np.random.default_rng(5)
TYPES = {"f8": "float64", "f4": "float32", "f2": "float16", "i8": "int64", "i4": "int32", "i2": "int16", "i1": "int8",
         "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "?": "bool", "c16": "complex128",
         "c8": "complex64"}


def line(file, name, array):
    little = array.astype(array.dtype.newbyteorder("<"))
    shape = "".join(f" {n}" for n in array.shape)
    print(f"{file} {name} {TYPES[little.dtype.str[1:].replace('b1', '?')]}{shape} {zlib.crc32(little.tobytes('C'))}")


def array_of(kind, shape=(3, 4)):
    bits = random.integers(0, 2 if kind == "?" else 256, 16 * int(np.prod(shape)), dtype=np.uint8)
    return bits.view(kind)[:int(np.prod(shape))].reshape(shape).copy()


if sys.argv[1] == "make":
    folder = sys.argv[2]
    arrays = {"d." + name: array_of(kind) for kind, name in TYPES.items()}
    arrays |= {"sub/name": array_of("f4"), "Case": array_of("i2"), "case": array_of("i4")}
    arrays |= {"scalar": np.array(2.5), "empty": np.zeros((0, 3)), "one": np.arange(5)}
    arrays["fortran"] = np.asfortranarray(array_of("f4", (2, 3, 4)))
    arrays["big"] = array_of("f8").astype(">f8")
    arrays["big_complex"] = array_of("c8").astype(">c8")
    np.savez(os.path.join(folder, "stored.npz"), **arrays)
    np.savez_compressed(os.path.join(folder, "packed.npz"), **arrays)
    for file in ("packed.npz", "stored.npz"):
        for name, array in arrays.items():
            line(file, name, array)
    for name in ("fortran", "scalar", "big", "empty"):
        np.save(os.path.join(folder, name + ".npy"), arrays[name])
        line(name + ".npy", "-", arrays[name])
    with open(os.path.join(folder, "v2.npy"), "wb") as file:
        np.lib.format.write_array(file, arrays["one"], version=(2, 0))
    line("v2.npy", "-", arrays["one"])
elif sys.argv[1] == "others":
    folder = sys.argv[2]
    others = {"text": np.array(["O", "gASV"]), "bytes": np.array([b"\x80\x04N."]), "void": np.zeros(2, "V7"),
              "date": np.array(["2020-01-01"], "M8[D]"), "span": np.array([1], "m8[25us]"),
              "long": np.zeros(2, np.longdouble), "fields": np.zeros(2, [("xO", "i4"), ("y", "f4")]),
              "nested": np.zeros(1, [("a", "i4"), ("b", [("O", "f8"), ("d", "U3", (2, 3))])]),
              "titles": np.zeros(2, np.dtype({"names": ["a"], "formats": ["i4"], "titles": ["It's O"]})),
              "aligned": np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
              "objects": np.array([range(2), 1], object), "object_field": np.array([(1, range(2))], [("a", "i4"), ("b", "O")]),
              "nested_objects": np.array([(1, (range(2),))], [("a", "i4"), ("b", [("c", "O")])])}
    for name, array in others.items():
        np.save(os.path.join(folder, name + ".npy"), array)
        print(name, array.dtype.hasobject)
    plain = {name: array for name, array in others.items() if not array.dtype.hasobject}
    for name, array in plain.items():  # several calls of np.save on one handle
        for second in ("text", "objects"):
            with open(os.path.join(folder, f"{name}+{second}.npy"), "wb") as file:
                np.save(file, array)
                np.save(file, others[second])
            print(f"{name}+{second}", others[second].dtype.hasobject)
    np.savez(os.path.join(folder, "all.npz"), **plain)
    print("all False")
elif sys.argv[1] == "accepts":
    warnings.simplefilter("ignore")
    for i in range(int(sys.argv[3])):
        try:
            np.load(os.path.join(sys.argv[2], f"{i}.npy"), allow_pickle=False)
            print("yes")
        except (ValueError, TypeError):
            print("no")
else:
    with zipfile.ZipFile(sys.argv[2]) as archive:
        assert archive.testzip() is None
        members = {info.filename: archive.read(info) for info in archive.infolist()}
        starts = [info.header_offset for info in archive.infolist()]
    loaded = np.load(sys.argv[2], allow_pickle=False)
    for name in loaded.files:
        array = loaded[name]
        wanted = io.BytesIO()
        np.save(wanted, array)
        assert wanted.getvalue() == members[name + ".npy"], name
        print(name, np.lib.format.dtype_to_descr(array.dtype), list(array.shape), array.tobytes().hex())
