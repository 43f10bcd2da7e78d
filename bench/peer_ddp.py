# SPDX-License-Identifier: BSD-3-Clause
"""Peer: Python DistributedDataParallel over Gloo, one thread per process.

The global batch is that of peer_train.py, split among the ranks. Rank 0 talks
to bench/run.py and tells the others with a broadcast. A round's line: "step"
(or nothing) trains, "no_sync" trains without averaging, "allreduce N" adds up
N floats.
"""

import argparse
import os
import pathlib
import socket
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
from serve import serve
from models_reference import make_model

END, ALLREDUCE, STEP, NO_SYNC = range(4)
ORDERS = {"allreduce": ALLREDUCE, "step": STEP, "no_sync": NO_SYNC}


def work(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks)
    torch.manual_seed(0)
    model = make_model("resnet18", num_classes=10, in_channels=1)
    model = torch.nn.parallel.DistributedDataParallel(model)
    torch.manual_seed(1)
    images = torch.randn(args.batch, 1, 28, 28).chunk(args.ranks)[rank]
    targets = torch.randint(0, 10, (args.batch,)).chunk(args.ranks)[rank]
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    loss_function = torch.nn.CrossEntropyLoss()

    def step():
        loss = loss_function(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def timed(count, run):
        run()
        dist.barrier()
        start = time.perf_counter()
        for _ in range(count):
            run()
        dist.barrier()
        return (time.perf_counter() - start) / count

    def work_on(order, numel):
        """Seconds for one of what is ordered."""
        if order == ALLREDUCE:
            tensor = torch.zeros(numel)
            return timed(min(max(200_000_000 // numel, 5), 2000),
                         lambda: dist.all_reduce(tensor))
        if order == STEP:
            return timed(args.steps, step)
        with model.no_sync():
            return timed(args.steps, step)

    def run_round(line):
        name, *numel = line.split() or ["step"]
        order = torch.tensor([ORDERS[name], *map(int, numel or ["0"])])
        dist.broadcast(order, 0)
        seconds = work_on(*order.tolist())
        return {"us": seconds * 1e6, "ms": seconds * 1e3,
                "images_per_s": args.batch / seconds}

    first_loss = step()
    dist.all_reduce(first_loss)
    step()
    if rank == 0:
        serve(run_round, first_loss=first_loss.item() / args.ranks)
        dist.broadcast(torch.tensor([END, 0]), 0)
    else:
        sys.stdin = None
        order = torch.tensor([END, 0])
        while True:
            dist.broadcast(order, 0)
            if order[0] == END:
                break
            work_on(*order.tolist())
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    children = []
    for rank in range(1, args.ranks):
        child = torch.multiprocessing.get_context("spawn").Process(
            target=work, args=(rank, args, port), daemon=True)
        child.start()
        children.append(child)
    work(0, args, port)
    for child in children:
        child.join()


if __name__ == "__main__":
    main()
