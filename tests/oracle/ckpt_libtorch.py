# SPDX-License-Identifier: BSD-3-Clause
"""LibTorch archives, judged by torch.jit of PyTorch 2.13.

ckpt_libtorch.py write FOLDER   saves weights as FOLDER/<case>.pt and TorchScript
                                programs as FOLDER/script_<case>.pt, and prints
                                "file TAB case" with the digest lines of each
ckpt_libtorch.py read FILE...   loads archives with torch.jit.load and prints
                                the same of their state_dict
ckpt_libtorch.py tie FILE       saves a TorchScript program with tied weights and
                                a complex attribute
ckpt_libtorch.py tied FILE      loads it, and prints whether the weights are one
                                tensor, and the attribute
"""
import os
import sys
import warnings

import torch
from torch import nn

import ckpt_cases
import ckpt_content

warnings.filterwarnings("ignore")


class Program(nn.Module):
    """Containers of every kind, a constant, a nested module."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3))
        self.words = ["a", "b"]
        self.numbers = [1, 2]
        self.table = {"x": torch.ones(2)}
        self.pair = (1, 2.5)
        self.big = 2**40
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, x):
        return self.body(x) + torch.tensor([1.0, 2.0, 3.0]) + float(len(self.words) + self.numbers[0])


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.z = 1 - 2j

    def forward(self, x):
        return self.b(self.a(x)) * self.z


def dtypes():
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8, torch.bool,
             torch.complex64, torch.uint16, torch.float8_e5m2, torch.float8_e4m3fn]
    return {f"t{i}": ckpt_cases.of_dtype(kind) for i, kind in enumerate(kinds)}


WEIGHTS = {"net": lambda: ckpt_cases.net().state_dict(), "lstm": lambda: nn.LSTM(2, 3, num_layers=2).state_dict(),
           "dtypes": dtypes, "views": ckpt_cases.views,
           "quantized": lambda: {"q": torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 2, torch.qint8)},
           "sparse": lambda: {"coo": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr()}}


def report(name, value):
    rows = []
    ckpt_content.walk("", value, rows)
    print(f"file\t{name}", *sorted(rows), sep="\n")


def write(folder):
    torch.manual_seed(3)
    for name, make in WEIGHTS.items():
        weights = make()
        torch.save(weights, os.path.join(folder, name + ".pt"))
        report(name, weights)
    program = torch.jit.script(Program())
    torch.jit.save(program, os.path.join(folder, "script_program.pt"), _extra_files={"note.txt": "x"})
    report("script_program", {**program.state_dict(), "table": program.table})
    traced = torch.jit.trace(ckpt_cases.net().eval(), torch.ones(1, 1, 4, 4))
    traced.save(os.path.join(folder, "script_traced.pt"))
    report("script_traced", traced.state_dict())
    linear = torch.jit.script(nn.Linear(2, 3).eval())
    torch.jit.freeze(linear).save(os.path.join(folder, "script_frozen.pt"))
    report("script_frozen", {})


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    if sys.argv[1] == "tie":
        torch.jit.script(Tied()).save(sys.argv[2])
    if sys.argv[1] == "tied":
        loaded = torch.jit.load(sys.argv[2])
        print(loaded.a.weight is loaded.b.weight, loaded.a.bias is loaded.b.bias, loaded.z)
    for path in sys.argv[2:] if sys.argv[1] == "read" else []:
        report(path, torch.jit.load(path).state_dict())
