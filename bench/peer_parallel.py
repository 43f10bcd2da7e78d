# SPDX-License-Identifier: BSD-3-Clause
"""What nn.DataParallel's control flow costs in Python, beside parallel_bench.

nn.DataParallel itself needs GPUs; this does its steps by hand on the CPU:
chunk, new module objects for each replica with the parameters as views (no
bytes are copied, unlike on GPUs), one new thread per replica, concatenation,
and the gradients' way back. The net has ResNet18's modules and computes nothing.
"""

import threading
import time

import torch
from torch import nn

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


def replicate(net, count):
    """New module objects; their parameters are views of the net's."""
    modules = list(net.modules())
    place = {module: i for i, module in enumerate(modules)}
    copies = []
    for _ in range(count):
        made = [module._replicate_for_data_parallel() for module in modules]
        for module, copy in zip(modules, made):
            for name, child in module._modules.items():
                copy._modules[name] = made[place[child]]
            for name, parameter in module._parameters.items():
                view = None if parameter is None else parameter.view_as(parameter)
                setattr(copy, name, view)
            for name, buffer in module._buffers.items():
                copy._buffers[name] = buffer
        copies.append(made[0])
    return copies


def data_parallel(net, x, count):
    chunks = x.chunk(count)
    replicas = replicate(net, len(chunks))
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

    def run_round(line):
        forward = forwards.get(line) or (lambda x: data_parallel(net, x, int(line)))
        for _ in range(3):
            forward(x).sum().backward()
        start = time.perf_counter()
        for _ in range(STEPS):
            forward(x).sum().backward()
        return {"us_per_step": (time.perf_counter() - start) / STEPS * 1e6}

    serve(run_round)


main()
