# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job with stock DistributedDataParallel; torch 2.13.

tests/distributed/rank.cpp is the same program in C++.
Arguments: folder for the results, "mixed" beside ranks of C++ or "gloo", scenarios.
"""
import contextlib
import os
import sys

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
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


def register_hook(model, scenario):
    if scenario == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif scenario == "bf16":
        # Under its own name Python takes it with CUDA only.
        model.register_comm_hook(
            None, lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket))
    elif scenario.startswith("power_sgd"):
        state = powerSGD_hook.PowerSGDState(
            None,
            matrix_approximation_rank=3 if scenario.endswith("qr") else 2,
            start_powerSGD_iter=3,
            min_compression_rate=1.1)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def backward(model, scenario, step):
    images = torch.randn(6, 1, 8, 8)
    targets = torch.randint(10, (6,))
    both_heads = scenario != "unused" or step % 2 == 0
    nn.functional.cross_entropy(model(images, both_heads), targets).backward()


def train(model, scenario, steps):
    if scenario == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    elif scenario == "zero":
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + dist.get_rank())
    for step in range(steps):
        optimizer.zero_grad()
        if scenario == "no_sync":
            with model.no_sync():
                backward(model, scenario, step)
        backward(model, scenario, step)
        if scenario == "evaluation" and step % 5 == 4:
            with torch.no_grad():
                model(torch.randn(6, 1, 8, 8), True)
        optimizer.step()
    return optimizer


def check_groups():
    """A group of two, and values from all, with whoever the others are."""
    rank, world = dist.get_rank(), dist.get_world_size()
    pair = dist.new_group([1, 0])
    if rank < 2:
        total = torch.tensor([rank + 1.0])
        dist.all_reduce(total, group=pair)
        assert total.item() == 3.0
    values = [{"rank": r, "text": "x" * r} for r in range(world)]
    found = [None] * world
    dist.all_gather_object(found, values[rank])
    assert found == values, found
    one = [values[rank]]
    dist.broadcast_object_list(one, src=1)
    assert one == [values[1]], one
    found = [None] * world if rank == 1 else None
    dist.gather_object(values[rank], found, dst=1)
    assert rank != 1 or found == values, found
    check_strides()
    check_complex()


def check_strides():
    """Tensors that lie in columns: all ranks reduce and broadcast them as they lie,
    and letters come in order."""
    rank, world = dist.get_rank(), dist.get_world_size()
    numbers = torch.arange(6.0).view(2, 3)
    columns = numbers.t().contiguous().t()
    dist.all_reduce(columns)
    assert torch.equal(columns, world * numbers), columns
    columns = (rank * numbers).t().contiguous().t()
    dist.broadcast(columns, src=1)
    assert torch.equal(columns, numbers), columns
    if rank == 0:
        dist.send(numbers, 1)
    elif rank == 1:
        letter = torch.empty(2, 3)
        dist.recv(letter, 0)
        assert torch.equal(letter, numbers), letter


def check_complex():
    """Complex numbers, by all that carries them."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.complex64, torch.complex128):
        def numbers(place):
            return torch.complex(torch.arange(3.0), torch.full((3,), place + 0.5)).to(dtype)

        def total(place):
            return sum(numbers(place + r) for r in range(world))

        mine = numbers(rank)
        dist.all_reduce(mine)
        assert torch.equal(mine, total(0)), mine
        mine = numbers(rank)
        dist.broadcast(mine, src=1)
        assert torch.equal(mine, numbers(1)), mine
        found = [torch.empty(3, dtype=dtype) for _ in range(world)]
        dist.all_gather(found, numbers(rank))
        assert torch.equal(found[1], numbers(1)), found
        every = [numbers(r) for r in range(world)]
        dist.scatter(mine, every if rank == 1 else None, src=1)
        assert torch.equal(mine, numbers(rank)), mine
        dist.reduce_scatter(mine, [numbers(rank + r) for r in range(world)])
        assert torch.equal(mine, total(rank)), mine
        if rank == 0:
            dist.send(numbers(7), 1)
        elif rank == 1:
            dist.recv(mine, 0)
            assert torch.equal(mine, numbers(7)), mine


def run(scenario, folder, mixed):
    """Trains a model as `scenario` says, and saves it in `folder`."""
    if scenario == "groups":
        check_groups()
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(Net(), **options_of(scenario))
    register_hook(model, scenario)
    if scenario.startswith("join"):
        with model.join(divide_by_initial_world_size=scenario == "join"):
            train(model, scenario, 8 + 6 * dist.get_rank())
    else:
        optimizer = train(model, scenario, 20)
        if scenario == "zero" and not mixed:
            optimizer.consolidate_state_dict()
            if dist.get_rank() == 0:
                torch.save(optimizer.state_dict(), f"{folder}/zero_optimizer.pt")
    torch.save(model.state_dict(), f"{folder}/{scenario}_{dist.get_rank()}.pt")


def main(arguments):
    """Never returns. Python's own end aborts now and then when a thread of Gloo's
    still lets go of an object ("terminate called without an active exception")."""
    folder, backend, *scenarios = arguments
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for scenario in scenarios:
        run(scenario, folder, backend == "mixed")
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
