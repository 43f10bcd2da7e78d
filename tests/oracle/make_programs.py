# SPDX-License-Identifier: BSD-3-Clause
"""Writes the programs of testdata/programs by the torch that runs it.

make_programs.py pictures   a small net for pictures of 16 by 16 pixels and three
    classes, with all that a run can lose: statistics of a normalisation, random
    numbers, and a buffer that is not persistent
make_programs.py torch26    by torch 2.6, whose archives have other records: a net
    for words, with tied weights, a constant, and an infinity in its graph
"""
import pathlib
import sys

import torch
from torch import nn


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(8 * 16, 3)
        self.register_buffer("scale", torch.full((8, 1, 1), 0.5), persistent=False)

    def forward(self, x):
        hidden = torch.relu(self.norm(self.conv(x))) * self.scale
        hidden = nn.functional.avg_pool2d(hidden, 2)
        return self.last(self.drop(hidden.flatten(1)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.25)
        self.last = nn.Linear(8, 9, bias=False)
        self.last.weight = self.words.weight
        self.register_buffer("scale", torch.full((8,), 0.5), persistent=False)
        self.shift = torch.linspace(-1, 1, 9)

    def forward(self, x):
        y = self.words(x)
        scores = (y @ y.transpose(1, 2)).masked_fill((x == 0).unsqueeze(1), float("-inf"))
        y = (scores.softmax(-1) @ y).mean(1)
        return self.last(self.drop(self.norm(y)) * self.scale) + self.shift


NETS = {
    "pictures": lambda: (Pictures(), torch.randn(4, 3, 16, 16)),
    "torch26": lambda: (Words(), torch.randint(1, 9, (4, 5))),
}


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "testdata/programs"
    for name in sys.argv[1:]:
        torch.manual_seed(0)
        net, x = NETS[name]()
        batch = torch.export.Dim("batch", min=2)
        program = torch.export.export(net.train(), (x,), dynamic_shapes=({0: batch},))
        torch.export.save(program, folder / f"{name}.pt2")


main()
