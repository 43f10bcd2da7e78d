# SPDX-License-Identifier: BSD-3-Clause
"""The modules of tests/tensor/modules.h in Python."""
import torch
from torch import nn


class MyModule(nn.Module):
    def __init__(self, out=5):
        super().__init__()
        self.fc = nn.Linear(3, out)


class Net(nn.Module):
    """Children are registered before own tensors, one child is tied."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3, bias=False)
        self.bn = nn.BatchNorm2d(2)
        self.layer = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        self.register_buffer("offset", torch.zeros(3, dtype=torch.int64))
        self.scale = nn.Parameter(torch.zeros(()))
        self.tied = self.layer
        self.register_parameter("absent", None)


class Expanded(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(2))
        self.register_buffer("wide", torch.zeros(1).expand(3))


def fill(module):
    """Sets the i-th entry to i + 1 everywhere."""
    for i, tensor in enumerate(module.state_dict().values()):
        tensor.fill_(i + 1)
    return module
