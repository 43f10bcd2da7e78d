# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job with stock DistributedDataParallel; torch 2.13.

tests/dist/rank.cpp is the same program in C++.
Arguments: scenario, folder for the result.
"""
import contextlib
import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(8)
        self.head1 = nn.Linear(8, 10)
        self.head2 = nn.Linear(8, 10)

    def forward(self, images, both_heads):
        x = torch.relu(self.bn1(self.conv1(images)))
        x = torch.relu(self.bn2(self.conv2(x)))
        x = x.mean((2, 3))
        return self.head1(x) + self.head2(x) if both_heads else self.head1(x)


def options_of(scenario):
    options = {
        "gradient_as_bucket_view": scenario == "views",
        "find_unused_parameters": scenario == "unused",
        "static_graph": scenario == "static",
    }
    if scenario == "small_buckets":
        options["bucket_cap_mb"] = 0.0005
    return options


def backward(model, scenario, step):
    images = torch.randn(6, 1, 8, 8)
    targets = torch.randint(10, (6,))
    both_heads = scenario != "unused" or step % 2 == 0
    nn.functional.cross_entropy(model(images, both_heads), targets).backward()


def train(model, scenario):
    if scenario == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + dist.get_rank())
    for step in range(20):
        optimizer.zero_grad()
        if scenario == "no_sync":
            with model.no_sync():
                backward(model, scenario, step)
        backward(model, scenario, step)
        if scenario == "evaluation" and step % 5 == 4:
            with torch.no_grad():
                model(torch.randn(6, 1, 8, 8), True)
        optimizer.step()


def main():
    scenario, folder = sys.argv[1:3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(Net(), **options_of(scenario))
    train(model, scenario)
    torch.save(model.state_dict(), f"{folder}/rank{dist.get_rank()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
