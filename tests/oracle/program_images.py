# SPDX-License-Identifier: BSD-3-Clause
"""Programs for `lockstep train` on FashionMNIST, and the nets they came from.

program_images.py FOLDER              writes net.pt2 (any batch), other.pt2 (another
                                      graph), static.pt2 (batches of 4), few.pt2 (3
                                      classes), deep.pt2 (3 dimensions),
                                      scaled.pt2 (a number beside the images)
program_images.py load CHECKPOINT     loads the state_dict into the original module
                                      of net.pt2, strictly, and prints "loaded"
"""
import os
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")


class Net(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, 2)
        self.bn = nn.BatchNorm2d(width)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return self.head(self.drop(x.mean((2, 3))))


class Deep(Net):
    def forward(self, x):
        return super().forward(x).unsqueeze(2)


class Scaled(Net):
    def forward(self, x, n):
        return super().forward(x) * n


def write(net, path, is_dynamic=True, more=()):
    batch = ({0: torch.export.Dim("batch", min=2)},) + (torch.export.Dim.DYNAMIC,) * len(more)
    program = torch.export.export(net.train(), (torch.randn(4, 1, 28, 28), *more),
                                  dynamic_shapes=batch if is_dynamic else None)
    torch.export.save(program, path)


def main():
    if sys.argv[1] == "load":
        file = torch.load(sys.argv[2], weights_only=True)
        Net().load_state_dict(file["state_dict"])
        print("loaded")
        return
    torch.manual_seed(0)
    write(Net(), os.path.join(sys.argv[1], "net.pt2"))
    write(Net(width=12), os.path.join(sys.argv[1], "other.pt2"))
    write(Net(), os.path.join(sys.argv[1], "static.pt2"), is_dynamic=False)
    write(Net(classes=3), os.path.join(sys.argv[1], "few.pt2"))
    write(Deep(), os.path.join(sys.argv[1], "deep.pt2"))
    write(Scaled(), os.path.join(sys.argv[1], "scaled.pt2"), more=(3,))


main()
