# SPDX-License-Identifier: BSD-3-Clause
"""Exports nets with batch norms in every company, and prints which ReLUs stay
steps of their own where norms take what follows them:

program_norms.py FOLDER  ->  NET|0|trains
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Pair(nn.Module):
    """Two convolutions with norms, and what is made of the four."""

    def __init__(self, combine):
        super().__init__()
        self.combine = combine
        self.first, self.second = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
        self.bn1, self.bn2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        return self.combine(self, x, self.first(x), self.second(x))


def add_in_place(net, x, a, b):
    y = net.bn1(a)
    y += net.bn2(b)
    return y.relu_()


def wider_in_place(net, x, a, b):
    y = net.bn1(a)
    y += b.double()
    return F.relu(y)


def changed_before(net, x, a, b):
    y = net.bn1(a)
    a.mul_(2)
    return F.relu(y + a)


def addend_changed(net, x, a, b):
    y = net.bn1(a)
    x = x * 1
    z = y + x
    x.add_(1)
    return F.relu(z) + x


def added_to_another(net, x, a, b):
    z = b * 1
    z += net.bn1(a)
    return F.relu(z) + z


def far(net, x, a, b):
    y = net.bn1(a)
    for _ in range(80):
        b = b * 0.99
    return F.relu(y + b)


# A net, and its ReLUs that no norm takes.
NETS = {
    "relu": (lambda net, x, a, b: F.relu(net.bn1(a)) + net.bn2(b).relu_(), 0),
    "add": (lambda net, x, a, b: F.relu(net.bn1(a) + b), 0),
    "added": (lambda net, x, a, b: F.relu(b + net.bn1(a)), 0),
    "add_in_place": (add_in_place, 0),
    "two": (lambda net, x, a, b: F.relu(net.bn1(a) + net.bn2(b)), 0),
    "own_input": (lambda net, x, a, b: F.relu(net.bn1(x) + x), 0),
    "norm_again": (lambda net, x, a, b: F.relu(net.bn1(a) + net.bn1(b)), 0),
    "twice": (lambda net, x, a, b: F.relu(net.bn1(F.relu(net.bn1(a)))), 0),
    "broadcast": (lambda net, x, a, b: F.relu(net.bn1(a) + b.mean((2, 3), keepdim=True)), 1),
    "wider": (lambda net, x, a, b: F.relu(net.bn1(a) + b.double()), 1),
    "wider_in_place": (wider_in_place, 1),
    "statistics": (lambda net, x, a, b: F.relu(
        net.bn1(a) + b * net.bn1.running_var.view(1, -1, 1, 1)), 1),
    "number": (lambda net, x, a, b: F.relu(net.bn1(a) + 1), 1),
    "scaled": (lambda net, x, a, b: F.relu(torch.add(net.bn1(a), b, alpha=2)), 1),
    "itself": (lambda net, x, a, b: F.relu((lambda y: y + y)(net.bn1(a))), 1),
    "read_twice": (lambda net, x, a, b: (lambda y: F.relu(y) + y)(net.bn1(a)), 1),
    "result_too": (lambda net, x, a, b: (lambda y: (F.relu(y), y)[0] * y.sum())(net.bn1(a)), 1),
    "other_function": (lambda net, x, a, b: F.relu6(net.bn1(a)), 0),
    "changed_before": (changed_before, 1),
    "addend_changed": (addend_changed, 1),
    "added_to_another": (added_to_another, 1),
    "far": (far, 1),
}

# PyTorch itself refuses to differentiate these.
WITHOUT_GRADIENTS = {"changed_before"}


def main():
    folder = sys.argv[1]
    for name, (combine, own) in NETS.items():
        torch.manual_seed(0)
        net = Pair(combine).train()
        batch = torch.export.Dim("batch", min=2)
        program = torch.export.export(net, (torch.randn(4, 4, 6, 6),), dynamic_shapes=({0: batch},))
        torch.export.save(program, f"{folder}/{name}.pt2")
        print(f"{name}|{own}|{'runs' if name in WITHOUT_GRADIENTS else 'trains'}")


main()
