# SPDX-License-Identifier: BSD-3-Clause
"""Writes files as torch.save does, without torch, for the tests.

    write_pt(path, {"w": Tensor(np.arange(6.0), (2, 3), (3, 1))})
"""
import dataclasses
import io
import pathlib
import pickle
import sys
import types
import zipfile

import numpy as np

STORAGES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "int64": "LongStorage",
    "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage",
    "bool": "BoolStorage", "bfloat16": "BFloat16Storage", "complex64": "ComplexFloatStorage",
}
TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "testdata"


@dataclasses.dataclass(eq=False)
class Storage:
    """A storage; `dtype` names its class, where NumPy has no such type."""

    data: np.ndarray
    dtype: str = ""


@dataclasses.dataclass(eq=False)
class Tensor:
    """A view of a storage; strides and offset count elements."""

    storage: Storage
    sizes: tuple
    strides: tuple
    offset: int = 0

    def __reduce__(self):
        hooks = sys.modules["collections"].OrderedDict()
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (
            self.storage, self.offset, self.sizes, self.strides, False, hooks)


def tensor(array):
    array = np.ascontiguousarray(array)
    strides = tuple(s // array.itemsize for s in array.strides)
    return Tensor(Storage(array.reshape(-1)), array.shape, strides)


class _Names:
    """Modules named torch for as long as a pickle is written: nothing of torch
    runs, pickle only wants to find what it names."""

    def __enter__(self):
        self._before = {n: sys.modules.get(n) for n in ("torch", "torch._utils")}
        torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

        def rebuild(*args):
            raise AssertionError("never called")

        rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
        utils._rebuild_tensor_v2 = rebuild
        torch._utils = utils
        for name in STORAGES.values():
            setattr(torch, name, type(name, (), {"__module__": "torch"}))
        sys.modules.update({"torch": torch, "torch._utils": utils})
        return torch

    def __exit__(self, *error):
        for name, module in self._before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def pickled(tree, storages):
    out = io.BytesIO()
    with _Names() as torch:

        class Pickler(pickle.Pickler):
            def persistent_id(self, value):
                if not isinstance(value, Storage):
                    return None
                key = storages.setdefault(id(value), (len(storages), value))[0]
                kind = value.dtype or value.data.dtype.name
                return "storage", getattr(torch, STORAGES[kind]), str(key), "cpu", len(value.data)

        Pickler(out, protocol=2).dump(tree)
    return out.getvalue()


def pt_bytes(tree, deflate=False, byteorder="little", code=None, says_order=True, edit=None):
    """Records lie at multiples of 64, as PyTorch puts them. `code`: the pickle,
    instead of that of `tree`; `edit` changes it."""
    storages = {}
    code = code or pickled(tree, storages)
    records = [("data.pkl", edit(code) if edit else code)]
    if says_order:
        records.append(("byteorder", byteorder.encode()))
    for key, storage in storages.values():
        data = storage.data.byteswap() if byteorder == "big" else storage.data
        records.append((f"data/{key}", data.tobytes()))
    records.append(("version", b"3\n"))
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in records:
            info = zipfile.ZipInfo(f"archive/{name}")
            info.compress_type = kind
            padding = -(out.tell() + 30 + len(info.filename) + 4) % 64
            info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            archive.writestr(info, content)
    return out.getvalue()


def write_pt(path, tree, **options):
    pathlib.Path(path).write_bytes(pt_bytes(tree, **options))
    return path
