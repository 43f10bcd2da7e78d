# SPDX-License-Identifier: BSD-3-Clause
"""Files that torch writes, one for each kind of value: write_all(folder)."""
import collections

import numpy as np
import torch
from torch import nn

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn,
          torch.float8_e5m2fnuz, torch.float8_e4m3fnuz, torch.float8_e8m0fnu]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
            torch.bool]
COMPLEX = [torch.complex128, torch.complex64, torch.complex32]


class Sub(torch.Tensor):
    pass


def views():
    base = torch.arange(120, dtype=torch.float32)
    whole = base.view(4, 5, 6)
    return {"base": base, "turned": whole.permute(2, 0, 1), "steps": whole[1:4:2, ::2, 1::3],
            "wide": base[:3].expand(7, 3), "row": whole[2, 3], "one": whole[1, 1, 1], "none": whole[:, 5:],
            "diagonal": base.view(10, 12).diagonal(), "windows": base.unfold(0, 8, 4)}


def complex_views():
    numbers = torch.arange(6).to(torch.complex64).mul(1 + 2j)
    return {"plain": numbers, "conj": numbers.conj(), "neg": torch._neg_view(torch.arange(3.0)),
            "both": torch._neg_view(numbers.clone().conj())}


def quantized():
    values = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    rows = {}
    for dtype in (torch.qint8, torch.quint8, torch.qint32):
        rows[str(dtype)] = torch.quantize_per_tensor(values, 0.1, 3, dtype)
        rows[f"{dtype} t"] = torch.quantize_per_tensor(values, 0.1, 3, dtype).t()
        scales, zeros = torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 1, 2])
        rows[f"{dtype} c"] = torch.quantize_per_channel(values, scales, zeros, 1, dtype)
    return rows


def special():
    named = torch.ones(2)
    named.note = "mine"
    tied = nn.Linear(3, 3)
    double = nn.Sequential(tied, nn.ReLU(), tied, nn.BatchNorm1d(3))
    return {"attributes": named, "parameter": nn.Parameter(torch.ones(2)), "sub": torch.ones(2).as_subclass(Sub),
            "sparse": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr(), "tied": double,
            "state": double.state_dict(), "meta": torch.empty(3, device="meta")}


def values():
    shared = [1, 2]
    loop = {"shared": [shared, shared]}
    loop["loop"] = loop
    return {1: "int", (1, "a"): [None, True, -1, 1 << 80, -(1 << 90), 0.1, float("nan"), 1j], "text": "\u00e9\U0001f600",
            b"b": b"\x00\xff", "size": torch.Size([1, 2]), "device": torch.device("cuda", 1), "dtype": torch.bfloat16,
            "set": {1, "a"}, "ordered": collections.OrderedDict([("z", 1), ("a", 2)]), "loop": loop,
            "counter": collections.Counter("aab"), "array": np.arange(6.0).reshape(2, 3), "fortran": np.asfortranarray(
                np.arange(6, dtype=">i4").reshape(2, 3)), "scalar": np.float64(0.5), "empty": np.empty((0, 2), "f2"),
            "texts": np.array(["ab", "c"]), "zero": np.array(True), "objects": np.array([1, None], object)}


def training():
    """A checkpoint with what its parts share: betas of two groups, sizes of layers."""
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3), nn.LayerNorm(4), nn.LayerNorm(4), nn.MaxPool2d(2))
    groups = [{"params": net[0].parameters()}, {"params": net[1].parameters(), "lr": 0.1}]
    optimizer = torch.optim.AdamW(groups)
    net[1](net[0](torch.ones(1, 1, 6, 6))).sum().backward()
    optimizer.step()
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=9)
    return {"state_dict": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
            "net": net, "encoder": nn.TransformerEncoderLayer(4, 2, 8), "whole_optimizer": optimizer}


def cases():
    numbers = torch.tensor([[0, 1, 2], [3, 4, 5]])
    bits = torch.arange(6, dtype=torch.uint8)
    rows = {str(d): numbers.to(d) for d in FLOATS + INTEGERS + COMPLEX}
    rows |= {str(d): bits.clone().view(d) for d in (torch.bits8, torch.bits16, torch.bits1x8, torch.float4_e2m1fn_x2)}
    return {"dtypes": rows, "views": views(), "complex": complex_views(), "quantized": quantized(),
            "special": special(), "training": training(), "values": values()}


def write_all(folder):
    for name, tree in cases().items():
        torch.save(tree, folder / f"{name}.pt")
        if name != "dtypes":
            torch.save(tree, folder / f"{name}_legacy.pt", _use_new_zipfile_serialization=False)
    for protocol in (3, 4, 5):
        torch.save(values(), folder / f"values_{protocol}.pt", pickle_protocol=protocol)
    torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))).save(folder / "script.pt")
