# SPDX-License-Identifier: BSD-3-Clause
"""Everything that torch.load reads, against lockstep.load: structure, order and
types of keys, dtypes, shapes, strides, bits, sharing. Needs torch.

oracle.py [FOLDER...]: default testdata/valid, and what torch_files.py writes.
Prints a line for each file.
"""
import collections
import math
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch

import lockstep
import torch_files
from pt_files import TESTDATA

warnings.filterwarnings("ignore")
SIZES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Differs(Exception):
    pass


def need(is_so, where, ours, theirs):
    if not is_so:
        raise Differs(f"{where}: lockstep {ours!r}, torch {theirs!r}")


def bits_of(tensor):
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if tensor.is_quantized:
        flat = flat.int_repr()
    return b"" if flat.numel() == 0 else flat.view(torch.uint8).numpy().tobytes()


class Comparison:
    def __init__(self):
        self.tensors = 0
        self.storages = {}
        self.seen = {}

    def tensor(self, ours, theirs, where):
        if theirs.layout != torch.strided or theirs.is_nested or theirs.device.type == "meta":
            return need(isinstance(ours, lockstep.Object), where, ours, theirs.layout)
        name = str(theirs.dtype).removeprefix("torch.")
        array = ours
        if isinstance(ours, lockstep.Tensor):
            need(ours.dtype == name, where, ours.dtype, name)
            array = ours.array
        else:
            need(array.dtype.name == name, where, array.dtype, name)
        need(array.shape == tuple(theirs.shape), where, array.shape, theirs.shape)
        need(not array.flags.writeable, where, "writeable", "")
        need(np.ascontiguousarray(array).tobytes() == bits_of(theirs), where, array, theirs)
        if isinstance(ours, lockstep.Tensor) and ours.quantizer is not None:
            need(np.array_equal(ours.numbers(), theirs.dequantize().numpy()), where, ours.numbers(), theirs)
        if theirs.is_conj() or theirs.is_neg() or theirs.numel() == 0:
            return None
        for d, size in enumerate(theirs.shape):
            stride = theirs.stride(d) * theirs.element_size()
            need(size < 2 or array.strides[d] == stride, where, array.strides, theirs.stride())
        start = array.__array_interface__["data"][0] - theirs.storage_offset() * theirs.element_size()
        known = self.storages.setdefault(theirs.untyped_storage().data_ptr(), start)
        need(known == start, where, "another storage", "shared")
        self.tensors += 1
        return None

    def items(self, ours, theirs, where):
        need(len(ours) == len(theirs), where, len(ours), len(theirs))
        for (key, value), (their_key, their_value) in zip(ours.items(), theirs.items()):
            place = f"{where}[{key!r}]"
            if isinstance(their_key, torch.Tensor):
                self.tensor(key, their_key, place)
            else:
                Comparison().value(key, their_key, place)  # keys share nothing with values
            self.value(value, their_value, place)

    def value(self, ours, theirs, where="root"):
        if isinstance(theirs, (dict, list, tuple, torch.nn.Module, torch.optim.Optimizer)):
            if id(theirs) in self.seen:
                need(ours is self.seen[id(theirs)], where, ours, "one object")
                return
            self.seen[id(theirs)] = ours
        kind = type(theirs)
        if isinstance(theirs, torch.Tensor):
            self.tensor(ours, theirs, where)
        elif kind in (dict, collections.OrderedDict, collections.Counter):
            need(type(ours) is kind, where, type(ours), kind)
            self.items(ours, theirs, where)
            self.items(getattr(ours, "__dict__", {}), getattr(theirs, "__dict__", {}), where + ".__dict__")
        elif kind in (list, tuple, torch.Size):
            need(type(ours) is (lockstep.Size if kind is torch.Size else kind), where, type(ours), kind)
            need(len(ours) == len(theirs), where, ours, theirs)
            for i, pair in enumerate(zip(ours, theirs)):
                self.value(*pair, f"{where}[{i}]")
        elif kind in (int, bool, str, bytes, complex, type(None), set):
            need(type(ours) is kind and ours == theirs, where, ours, theirs)
        elif kind is float:
            need(type(ours) is float and (ours == theirs or math.isnan(ours) and math.isnan(theirs)), where, ours, theirs)
        elif kind is torch.device:
            need(str(ours) == str(theirs), where, ours, theirs)
        elif kind is torch.dtype:
            need(f"torch.{ours}" == str(theirs), where, ours, theirs)
        else:
            self.other(ours, theirs, where)

    def other(self, ours, theirs, where):
        if isinstance(theirs, np.ndarray) and theirs.dtype.kind in "biufcUS":
            need(isinstance(ours, np.ndarray), where, ours, theirs)
            kinds = [array.dtype.newbyteorder("=") for array in (ours, theirs)]
            need(kinds[0] == kinds[1] and np.array_equal(ours, theirs), where, ours, theirs)
            return
        if isinstance(theirs, np.generic) and not isinstance(ours, lockstep.Object):
            need(ours == theirs or ours != ours and theirs != theirs, where, ours, theirs)
            return
        need(isinstance(ours, lockstep.Object), where, ours, theirs)
        if isinstance(theirs, torch.nn.Module) and isinstance(ours.state, dict):
            need(ours.global_name.endswith(type(theirs).__name__), where, ours, type(theirs))
            for part in ("_parameters", "_buffers", "_modules"):
                self.items(ours.state[part], getattr(theirs, part), f"{where}.{part}")


def compare_script(path, module):
    comparison, file, state = Comparison(), lockstep.open(path), module.state_dict()
    state |= {n: getattr(module, n) for n in file if n not in state}  # tensors that are attributes
    need(set(file) == set(state), "names", list(file), list(state))
    for name in file:
        comparison.tensor(file[name], state[name], name)
    return f"equal, {comparison.tensors} tensors"


def compare(path):
    try:
        theirs = torch.load(path, map_location="cpu", weights_only=False)
    except BaseException as error:  # noqa: BLE001: a class of the file is not here
        lockstep.load(path)
        return f"torch cannot: {type(error).__name__}"
    if isinstance(theirs, torch.jit.ScriptModule):
        return compare_script(path, theirs)
    comparison = Comparison()
    for options in ({}, {"mmap": False}, {"check_crc": True}):
        comparison = Comparison()
        comparison.value(lockstep.load(path, ml_dtypes=False, **options), theirs)
    with open(path, "rb") as file:
        Comparison().value(lockstep.load(file, ml_dtypes=False), theirs)
    return f"equal, {comparison.tensors} tensors"


def main():
    with tempfile.TemporaryDirectory() as made:
        torch_files.write_all(pathlib.Path(made))
        folders = [pathlib.Path(a) for a in sys.argv[1:]] or [TESTDATA / "valid"]
        sys.exit(compare_all([*folders, pathlib.Path(made)]))


def compare_all(folders):
    failed = compared = 0
    for folder in folders:
        for path in sorted(folder.iterdir()):
            if path.suffix not in (".pt", ".pth", ".th", ".tar"):
                continue
            try:
                outcome = compare(path)
                compared += outcome.startswith("equal")
            except (Differs, lockstep.LockstepError) as error:
                failed += 1
                outcome = f"DIFFERS {error}"
            print(f"{path.name}: {outcome}")
    print(f"{compared} files equal, {failed} differ")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    main()
