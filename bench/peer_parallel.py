# SPDX-License-Identifier: BSD-3-Clause
"""What nn.DataParallel's control flow costs in Python, beside parallel_bench.

nn.DataParallel itself needs GPUs; this does its steps by hand on the CPU:
chunk, new module objects for each replica, one new thread per replica,
concatenation, and the gradients' way back. The net has ResNet18's modules and
computes nothing. A round's line:

    bare       the module alone
    one        nn.DataParallel without devices
    N views    N replicas whose parameters are views: the least that is possible
    N copies   as nn.DataParallel: parameters and buffers are sent to every
               replica but the first in each step, and all gradients are summed
"""

from functools import partial
import threading
import time

import torch
from torch import nn
from torch._utils import (
    _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors)

from serve import serve

STEPS = 30


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))


class IdleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        self.layers = nn.ModuleList(
            nn.Sequential(Block(a, b, 1 if a == b else 2), Block(b, b, 1))
            for a, b in zip(widths, widths[1:]))
        self.fc = nn.Linear(512, 1000)
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.shift


def sent(tensors):
    """Copies, many tensors in one transfer of 10 MiB."""
    copies = []
    for chunk in _take_tensors(tensors, 10 << 20):
        flat = _flatten_dense_tensors(chunk)
        copies.extend(_unflatten_dense_tensors(flat, chunk))
    return copies


class Broadcast(torch.autograd.Function):
    """All parameters for all replicas; gradients are summed in replica order.
    As in nn.DataParallel, a parameter without a gradient gets zeros."""

    @staticmethod
    def forward(ctx, count, *parameters):
        ctx.count = count
        copies = list(parameters)
        for _ in range(1, count):
            copies.extend(sent(parameters))
        return tuple(copies)

    @staticmethod
    def backward(ctx, *gradients):
        rows = len(gradients) // ctx.count
        sums = [gradients[row].clone() for row in range(rows)]
        for place in range(rows, len(gradients)):
            sums[place % rows] += gradients[place]
        return (None, *sums)


def parameters_of_replicas(net, count, sends):
    parameters = list(net.parameters())
    if sends:
        copies = Broadcast.apply(count, *parameters)
    else:
        copies = [p.view_as(p) for _ in range(count) for p in parameters]
    rows = len(parameters)
    return [dict(zip(parameters, copies[i * rows:(i + 1) * rows]))
            for i in range(count)]


def replicate(net, count, sends):
    """New module objects with their own view or copy of each parameter."""
    modules = list(net.modules())
    place = {module: i for i, module in enumerate(modules)}
    parameters = parameters_of_replicas(net, count, sends)
    buffers = list(net.buffers())
    copies = []
    for i in range(count):
        made = [module._replicate_for_data_parallel() for module in modules]
        own = sent(buffers) if sends and i > 0 else buffers
        buffer_of = dict(zip(map(id, buffers), own))
        for module, copy in zip(modules, made):
            for name, child in module._modules.items():
                copy._modules[name] = made[place[child]]
            for name, parameter in module._parameters.items():
                setattr(copy, name, parameters[i].get(parameter))
            for name, buffer in module._buffers.items():
                copy._buffers[name] = buffer_of.get(id(buffer))
        copies.append(made[0])
    return copies


def data_parallel(net, x, count, sends):
    chunks = x.chunk(count)
    replicas = replicate(net, len(chunks), sends)
    outputs = [None] * len(chunks)

    def work(i):
        outputs[i] = replicas[i](chunks[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(chunks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.cat(outputs)


def main():
    torch.set_num_threads(1)
    net = IdleNet()
    wrapped = nn.DataParallel(net)
    x = torch.zeros(64, 1)
    forwards = {"bare": net, "one": wrapped}
    for count in (2, 4, 8):
        for how in ("views", "copies"):
            forwards[f"{count} {how}"] = partial(
                data_parallel, net, count=count, sends=how == "copies")

    for line, forward in forwards.items():
        net.zero_grad()
        forward(x).sum().backward()
        if net.shift.grad.item() != len(x):
            raise SystemExit(f"{line}: the gradient is {net.shift.grad.item()}")

    def run_round(line):
        forward = forwards[line]
        for _ in range(3):
            forward(x).sum().backward()
        start = time.perf_counter()
        for _ in range(STEPS):
            forward(x).sum().backward()
        return {"us_per_step": (time.perf_counter() - start) / STEPS * 1e6}

    serve(run_round)


main()
