# SPDX-License-Identifier: BSD-3-Clause
"""Exports nets that branch on sizes, and prints whether Python runs the
programs with inputs of other sizes:

program_guards.py FOLDER  ->  NET|9x4|3|runs, NET|9x4|4|refuses

program_guards.py FOLDER TEXT...  ->  what Python makes of each condition with
x of the sizes 6, 9, 1 and strides 9, 1, 1
"""
import itertools
import math
import sys

import torch
from torch import nn
from torch.export import Dim


class Groups(nn.Module):
    def forward(self, x, more):
        if x.shape[0] % 3 == 0 and x.shape[1] > more["y"].shape[0] + 1:
            return x.reshape(-1, 3, x.shape[1]).sum(1) + more["y"].sum()
        return x.sum(0, keepdim=True)


class Area(nn.Module):
    def forward(self, x, y):
        if x.shape[0] * x.shape[1] > 40 or x.shape[0] == 5:
            return x * 2
        return x + y.sum()


class Many(nn.Module):
    def forward(self, *xs):
        return xs[0][:2] if max(xs[0].shape[0], 4) < xs[1].shape[0] else xs[1][:2]


class Halves(nn.Module):
    def forward(self, x, *, y):
        if x.shape[0] // 2 <= y.shape[0] - 1:
            return x.sum() + y.sum()
        return x.sum() - y.sum()


def dims(count):
    return {d: Dim.AUTO for d in range(count)}


# Arguments of an export, what is dynamic in them, from shapes to arguments.
NETS = {
    "groups": (Groups(), [(6, 9), (4,)], lambda x, y: ((x, {"y": y}), {}),
               (dims(2), {"y": dims(1)})),
    "area": (Area(), [(4, 7), (3,)], lambda x, y: ((x, y), {}), (dims(2), dims(1))),
    "many": (Many(), [(3, 2), (8, 2)], lambda x, y: ((x, y), {}), ((dims(1), dims(1)),)),
    "halves": (Halves(), [(6, 2), (5,)], lambda x, y: ((x,), {"y": y}),
               {"x": dims(1), "y": dims(1)}),
}


def exported(name, folder):
    net, shapes, arguments, dynamic = NETS[name]
    args, kwargs = arguments(*map(torch.ones, shapes))
    program = torch.export.export(net, args, kwargs, dynamic_shapes=dynamic)
    torch.export.save(program, f"{folder}/{name}.pt2")
    return program.module()


def verdicts(name, folder):
    module = exported(name, folder)
    _, shapes, arguments, _ = NETS[name]
    changed = [[(n,) + shape[1:] for n in range(2, 11)] for shape in shapes]
    if name in ("groups", "area"):
        changed[0] = [(n, m) for n in (3, 5, 6, 7) for m in (3, 5, 6, 8, 12)]
    for given in itertools.product(*changed):
        args, kwargs = arguments(*map(torch.ones, given))
        try:
            module(*args, **kwargs)
            verdict = "runs"
        except (AssertionError, RuntimeError):
            verdict = "refuses"
        print("|".join([name, *("x".join(map(str, shape)) for shape in given), verdict]))


def main():
    if len(sys.argv) == 2:
        for name in NETS:
            verdicts(name, sys.argv[1])
    scope = {"L": {"x": torch.ones(6, 9, 1)}, "math": math, "torch": torch}
    for text in sys.argv[2:]:
        print(float(eval(text, scope)))


main()
