# SPDX-License-Identifier: BSD-3-Clause
"""What nn.DataParallel computes, done by hand on the CPU.

usage: parallel_by_hand.py DIR NET REPLICAS STEPS BATCH

Writes raw little-endian files to DIR: init.f32 (the weights before), images.f32
and targets.i64 (all steps), losses.f32 and final.f32 (the weights after).
Weights are the state dictionary's values in its order, as float32.
"""
import copy
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

from models_reference import make_model


def small():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(16, 10))


def dropout():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))


def resnet18():
    return make_model("resnet18", num_classes=10, in_channels=1)


NETS = {"resnet18": (resnet18, 28), "small": (small, 8), "dropout": (dropout, 8)}


def dump(net, path):
    flat = torch.cat([v.detach().reshape(-1).float() for v in net.state_dict().values()])
    flat.numpy().tofile(path)


def forward(replicas, shards, uses_random):
    """Each replica in turn; random numbers as in Note [Replica streams]."""
    if not uses_random:
        return [r(x) for r, x in zip(replicas, shards)]
    seed = int(torch.randint(2**31, ()))
    state = torch.get_rng_state()
    outputs = []
    for i, (replica, x) in enumerate(zip(replicas, shards)):
        torch.manual_seed(seed + i)
        outputs.append(replica(x))
    torch.set_rng_state(state)
    return outputs


def step(net, images, targets, count, uses_random):
    shards = images.chunk(count)
    replicas = [net] + [copy.deepcopy(net) for _ in shards[1:]]
    outputs = forward(replicas, shards, uses_random)
    joined = torch.cat([o.detach() for o in outputs]).requires_grad_()
    loss = F.cross_entropy(joined, targets)
    loss.backward()
    parts = joined.grad.split([len(o) for o in outputs])
    total = None
    for replica, output, part in zip(replicas, outputs, parts):
        grads = torch.autograd.grad(output, list(replica.parameters()), part)
        total = grads if total is None else [a + b for a, b in zip(total, grads)]
    for parameter, grad in zip(net.parameters(), total):
        parameter.grad = grad
    return loss.item()


def main():
    directory, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    count, steps, batch = map(int, sys.argv[3:6])
    torch.set_num_threads(1)
    torch.manual_seed(7)
    build, size = NETS[name]
    net = build()
    dump(net, directory / "init.f32")
    images = torch.randn(steps, batch, 1, size, size)
    targets = torch.randint(10, (steps, batch))
    images.numpy().tofile(directory / "images.f32")
    targets.numpy().tofile(directory / "targets.i64")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(11)
    losses = []
    for x, y in zip(images, targets):
        optimizer.zero_grad()
        losses.append(step(net, x, y, count, name == "dropout"))
        optimizer.step()
    torch.tensor(losses).numpy().tofile(directory / "losses.f32")
    dump(net, directory / "final.f32")


main()
