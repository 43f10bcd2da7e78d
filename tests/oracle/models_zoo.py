# SPDX-License-Identifier: BSD-3-Clause
"""Prints one module of each kind that lockstep/models/print.cpp knows."""
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList(
            [nn.ReLU(), nn.ReLU(), nn.Linear(2, 3), nn.ReLU()])
        self.empty = nn.Sequential()
        self.none = nn.ModuleList()
        self.twice = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.ReLU())] * 2)


for module in [
    nn.Conv1d(1, 2, 3),
    nn.Conv2d(1, 20, 5),
    nn.Conv2d(4, 8, (3, 5), (1, 2), (1, 0), (2, 1), 2, False, "reflect"),
    nn.Conv2d(1, 2, 3, padding="same"),
    nn.Conv3d(1, 2, 3, stride=2),
    nn.ConvTranspose2d(2, 4, 3, 2, 1, 1, bias=False),
    nn.Linear(3, 5),
    nn.Linear(3, 5, bias=False),
    nn.BatchNorm1d(3),
    nn.BatchNorm2d(64),
    nn.BatchNorm2d(4, 1e-3, None, False, False),
    nn.BatchNorm3d(2, momentum=0.25),
    nn.InstanceNorm2d(4),
    nn.GroupNorm(2, 4),
    nn.LayerNorm(8),
    nn.LayerNorm([4, 8], 1e-6, False),
    nn.ReLU(),
    nn.ReLU(True),
    nn.LeakyReLU(0.2, True),
    nn.Sigmoid(),
    nn.Tanh(),
    nn.GELU(),
    nn.SiLU(),
    nn.Softmax(1),
    nn.LogSoftmax(-1),
    nn.Dropout(),
    nn.Dropout(0.25, True),
    nn.Dropout2d(0.1),
    nn.MaxPool1d(2),
    nn.MaxPool2d(2, 2),
    nn.MaxPool2d((3, 2), (2, 1), (1, 0), ceil_mode=True),
    nn.AvgPool2d(2),
    nn.AdaptiveAvgPool1d(1),
    nn.AdaptiveAvgPool2d((7, 7)),
    nn.AdaptiveAvgPool2d((None, 3)),
    nn.AdaptiveMaxPool2d((2, 2)),
    nn.Flatten(),
    nn.Identity(),
    nn.Embedding(10, 3),
    nn.Embedding(10, 3, padding_idx=1),
    nn.CrossEntropyLoss(),
    nn.MSELoss(),
    nn.Sequential(nn.Linear(1, 2), nn.ReLU()),
    Net(),
]:
    print(module)
