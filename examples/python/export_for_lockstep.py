# SPDX-License-Identifier: BSD-3-Clause
"""Writes a net for Lockstep, with stock torch 2.9 or newer:

export_for_lockstep.py [OUT.pt2]

Replace `make_net` by any net: timm.create_model(...), torchvision's, yours.
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F


def make_net():
    net = nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
    return net, (torch.randn(16, 8),)  # the net, arguments of forward


def export(net, arguments, path):
    net.train()  # dropout and batch norms train; C++ switches them off in eval()
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(
        net, arguments, dynamic_shapes=tuple({0: batch} for _ in arguments))
    lost = set(net.state_dict()) - set(program.state_dict)
    if lost:
        sys.exit(f"not in the program, so not trained: {sorted(lost)}")
    torch.export.save(program, path)
    return program


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "net.pt2"
    torch.manual_seed(0)
    net, arguments = make_net()
    try:
        export(net, arguments, path)
    except Exception as error:
        sys.exit(
            f"{error}\n\nThe net cannot be exported as it is. Usual reasons:\n"
            "- the batch became a constant: write x.shape[0], not a number, in view and expand\n"
            "- an if depends on values of a tensor: torch.where, or torch.cond\n"
            "- forward calls NumPy, .item() or a C++ extension: keep it out of the net")
    torch.manual_seed(0)
    scores = net(*arguments)
    loss = F.cross_entropy(scores, torch.arange(len(scores)) % scores.shape[1])
    print(f"{path}: {sum(p.numel() for p in net.parameters())} parameters, first loss {loss:.4f}")


main()
