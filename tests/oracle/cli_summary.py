# SPDX-License-Identifier: BSD-3-Clause
"""Saves a ResNet-like training checkpoint and prints what is in it.

    cli_summary.py FILE wrapped|bare
One line of JSON: counts for the summary, one row per tensor for `ls`.
"""
import collections
import json
import sys

import torch
from torch import nn


def block(width):
    return nn.Sequential(
        collections.OrderedDict(
            conv1=nn.Conv2d(width, width, 3, bias=False), bn1=nn.BatchNorm2d(width),
            relu=nn.ReLU(), conv2=nn.Conv2d(width, width, 3, bias=False),
            bn2=nn.BatchNorm2d(width)))


def rows(value, name):
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        yield [name, dtype, list(value.shape), value.numel() * value.element_size()]
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from rows(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from rows(item, f"{name}.{i}")


def main(path, wrapped):
    torch.manual_seed(3)
    net = nn.Sequential(
        collections.OrderedDict(
            conv1=nn.Conv2d(1, 8, 7, bias=False), bn1=nn.BatchNorm2d(8),
            layer1=block(8), layer2=block(8), fc=nn.Linear(8, 10)))
    model = nn.DataParallel(net) if wrapped else net
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    scheduler.step()
    file = {
        "epoch": 3, "arch": "resnet", "state_dict": model.state_dict(),
        "best_acc1": 0.875, "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict()}
    torch.save(file, path)
    print(json.dumps({
        "rows": list(rows(file, "")),
        "parameters": sum(p.numel() for p in model.parameters()),
        "parameter_tensors": len(list(model.parameters())),
        "buffer_tensors": len(list(model.buffers())),
        "lr": optimizer.param_groups[0]["lr"]}))


main(sys.argv[1], sys.argv[2] == "wrapped")
