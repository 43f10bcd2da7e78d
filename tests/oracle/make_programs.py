# SPDX-License-Identifier: BSD-3-Clause
"""Writes testdata/programs/pictures.pt2: a small net for pictures of 16 by 16
pixels and three classes, with all that a run can lose: statistics of a
normalisation, random numbers, and a buffer that is not persistent.

make_programs.py [FOLDER]
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


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "testdata/programs")
    torch.manual_seed(0)
    net = Pictures().train()
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net, (torch.randn(4, 3, 16, 16),), dynamic_shapes=({0: batch},))
    torch.export.save(program, folder / "pictures.pt2")


main()
