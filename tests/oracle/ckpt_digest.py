# SPDX-License-Identifier: BSD-3-Clause
"""Content digests by PyTorch: what `lockstep ckpt digest` must print.

    ckpt_digest.py FILE...          "FILE TAB DIGEST" for each file
    ckpt_digest.py --cases FOLDER   writes FOLDER/<case>.pt, then the same
    ckpt_digest.py --update         writes testdata/digests.tsv anew
"""
import collections
import copyreg
import hashlib
import os
import pathlib
import sys
import warnings

import torch

import ckpt_content

warnings.filterwarnings("ignore")
DICTS = (dict, collections.OrderedDict, collections.Counter)
SCALARS = (str, bytes, bytearray, int, float, complex, bool, type(None), set, frozenset, torch.Size,
           torch.dtype, torch.device, type)


def below(name, key):
    return f"{name}.{key}" if name else str(key)


def parts(value):
    """What an object holds, each with its step (None: no step)."""
    if type(value) in DICTS:
        return [(str(key), item) for key, item in value.items()]
    if type(value) in (list, tuple):
        return [(str(index), item) for index, item in enumerate(value)]
    if isinstance(value, torch.nn.Module):
        skipped = value._non_persistent_buffers_set
        own = list(value._parameters.items()) + [
            row for row in value._buffers.items() if row[0] not in skipped]
        return own + list(value._modules.items())
    reduced = value.__reduce_ex__(2) + (None,) * 3
    given = reduced[1][1:] if reduced[0] is copyreg.__newobj__ else reduced[1]
    args = [(f"<args>.{i}", item) for i, item in enumerate(given)]
    appended = [(str(i), item) for i, item in enumerate(reduced[3] or [])]
    return args + [(None, reduced[2])] + [(str(key), item) for key, item in reduced[4] or []] + appended


def tensors(value, name="", seen=None):
    seen = set() if seen is None else seen
    if isinstance(value, torch.Tensor):
        yield name, value
        for part in ckpt_content.PARTS.get(value.layout, []):
            yield below(name, part.strip("_")), getattr(value, part)()
        return
    if isinstance(value, SCALARS):
        return
    if type(value) not in DICTS + (list, tuple) and not isinstance(value, torch.nn.Module):
        if id(value) in seen:
            return
        seen.add(id(value))
    for step, item in parts(value):
        yield from tensors(item, name if step is None else below(name, step), seen)


def raw(tensor):
    if tensor.layout != torch.strided or tensor.is_meta:
        return b""
    return ckpt_content.raw_bytes(tensor) + (ckpt_content.quantizer(tensor) if tensor.is_quantized else b"")


ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def line(name, *rest):
    return "\t".join((name.translate(ESCAPES),) + rest) + "\n"


def digest(value):
    rows = []
    for name, tensor in tensors(value):
        kind, shape = ckpt_content.type_and_shape(tensor)
        rows.append((name, kind, shape, hashlib.sha256(raw(tensor)).hexdigest()))
    rows.sort(key=lambda row: tuple(part.encode() for part in row))
    return hashlib.sha256("".join(line(*row) for row in rows).encode()).hexdigest()


class Holder:
    def __init__(self, **members):
        self.__dict__.update(members)


class Bag(list):
    pass


class Book(dict):
    pass


Pair = collections.namedtuple("Pair", "first second")


def objects():
    once = Holder(weight=torch.arange(3.0), inner={"x": [torch.ones(2)]})
    bag = Bag([torch.zeros(1), once])
    bag.label = torch.tensor(7)
    book = Book(a=torch.eye(2))
    book.note = {"a": torch.full((2,), 5)}
    return {"first": once, "second": once, "bag": bag, "book": book, "set": {1},
            "pair": Pair(torch.ones(1), torch.ones(1)),
            "default": collections.defaultdict(list, k=[torch.ones(3)])}


def model():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    net.register_buffer("scratch", torch.ones(1), persistent=False)
    net.append(net[0])
    return {"net": net, "wrapped": torch.nn.DataParallel(net), "rnn": torch.nn.LSTM(2, 2)}


def keys():
    return {1: torch.ones(1), True: torch.zeros(1), 2.5: torch.ones(2), None: torch.ones(3),
            ("a", 1): torch.ones(4), ("b",): torch.ones(5), "a.b": torch.ones(6),
            "a": {"b": torch.ones(7)}, "": torch.ones(8), "t\tn\nr\rb\\n": torch.ones(9)}


def strides():
    grid = torch.randn(5, 7, 3, dtype=torch.float64)
    z = torch.randn(4, 3, dtype=torch.complex64)
    return [grid.permute(2, 0, 1), grid[::2, 1::3], grid[..., 1].t(), grid[1:1], z.conj(),
            z.clone().t().conj().imag, torch._neg_view(z.clone().conj()), torch._neg_view(torch.arange(300).to(torch.int16)),
            torch.ones(1).expand(1000, 3), torch.randn(400_001).view(-1)[1:]]


def quantized():
    grid = torch.arange(6.0).reshape(2, 3)
    scales, zeros = torch.tensor([0.1, 0.25]), torch.tensor([3, 0])
    return {"tensor": torch.quantize_per_tensor(grid, 0.1, 2, torch.quint8),
            "channels": torch.quantize_per_channel(grid, scales.double(), zeros, 0, torch.qint8),
            "floats": torch.quantize_per_channel(grid, scales, zeros.float(), 0, torch.quint8)}


def layouts():
    grid = torch.eye(4)
    return {"coo": grid.to_sparse().coalesce(), "csr": grid.to_sparse_csr(), "bsc": grid.to_sparse_bsc((2, 2)),
            "meta": torch.ones(3, device="meta")}


CASES = {"quantized": quantized, "layouts": layouts, "objects": objects, "model": model, "keys": keys, "strides": strides, "bare": lambda: torch.arange(5),
         "nothing": lambda: {"epoch": 3}}


def load(path):
    return torch.load(path, weights_only=False, map_location="cpu")


def report(path):
    print(path, digest(load(path)), sep="\t")


# PyTorch cannot read them: their class is nowhere, or 2.13 lost the way.
NOT_FOR_TORCH = {"legacy_v3_dtypes.pt", "legacy_whole_2017.pt", "tar_whole_model.pth",
                 "legacy_variables.pt"}


def update():
    here = pathlib.Path(__file__).resolve().parents[2] / "testdata"
    rows = [f"{path.relative_to(here)}\t{digest(load(path))}\n"
            for path in sorted(here.glob("valid/*.pt*")) if not path.name.endswith(".json") and path.name not in NOT_FOR_TORCH]
    (here / "digests.tsv").write_text("file\tdigest\n" + "".join(rows))


def main(args):
    torch.manual_seed(5)
    if args == ["--update"]:
        update()
        return
    if args[0] == "--cases":
        paths = [os.path.join(args[1], name + ".pt") for name in CASES]
        for path, make in zip(paths, CASES.values()):
            torch.save(make(), path)
        args = paths
    for path in args:
        report(path)


if __name__ == "__main__":
    main(sys.argv[1:])
