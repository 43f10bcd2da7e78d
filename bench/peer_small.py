# SPDX-License-Identifier: BSD-3-Clause
"""A small step in Python, beside small_bench: 64-64-10, a batch of 8, forward,
loss, backward and SGD, without a wrapper."""

import time

import torch
from torch import nn

from serve import serve

STEPS = 300


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    images = torch.arange(512, dtype=torch.float32).div(512).view(8, 64)
    targets = torch.arange(8)

    def run(steps):
        for _ in range(steps):
            sgd.zero_grad()
            loss = nn.functional.cross_entropy(net(images), targets)
            loss.backward()
            sgd.step()
        return loss.item()

    def run_round(_):
        run(20)
        start = time.perf_counter()
        run(STEPS)
        return {"us_per_step": (time.perf_counter() - start) / STEPS * 1e6}

    serve(run_round, first_loss=run(1))


main()
