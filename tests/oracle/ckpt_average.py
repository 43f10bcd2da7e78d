# SPDX-License-Identifier: BSD-3-Clause
"""The mean of the weights of several checkpoints, as timm's avg_checkpoints.py
takes it: a sum in float64 in the order of the files, divided, rounded to the
type that the tensor has (timm: float32).

ckpt_average.py FOLDER: writes FOLDER/a.pt, b.pt, c.pt and mean.pt.
"""
import sys

import torch
from torch import nn

TYPES = (torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)


def net():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 5))
    model.tied = nn.Linear(8, 5, bias=False)
    model.tied.weight = model[3].weight
    for dtype in TYPES:
        model.register_buffer("as_" + str(dtype)[6:], torch.randn(2000, dtype=dtype) * 100)
    model.register_buffer("turned", torch.randn(7, 5).t())
    model.register_buffer("extreme", torch.tensor([1e38, -1e38, float("inf"), float("nan"), 1e-45, 0.1]))
    model.register_buffer("mask", torch.rand(9) < 0.5)
    model.register_buffer("number", torch.randn(()))
    model[1](model[0](torch.randn(2, 3, 3, 3)))
    return model


def mean(states):
    result = {}
    for name, last in states[-1].items():
        if not (last.is_floating_point() or last.is_complex()):
            result[name] = last
            continue
        real = torch.view_as_real if last.is_complex() else torch.Tensor.clone
        total = real(states[0][name]).clone().to(torch.float64)
        for state in states[1:]:
            total += real(state[name]).to(torch.float64)
        total.div_(len(states))
        result[name] = (torch.view_as_complex(total) if last.is_complex() else total).to(last.dtype)
    return result


def main():
    torch.manual_seed(0)
    folder = sys.argv[1]
    states = []
    for letter in "abc":
        states.append(net().state_dict())
        whole = {"epoch": ord(letter), "state_dict": states[-1]}
        torch.save(whole if letter == "b" else states[-1], f"{folder}/{letter}.pt")
    torch.save(mean(states), f"{folder}/mean.pt")


main()
