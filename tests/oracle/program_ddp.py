# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks of stock DistributedDataParallel train a net of program_nets.py.

program_ddp.py FOLDER NET   reads the batches of FOLDER/NET.sgd.pt, trains the
    original net for 6 steps, rank r on the r-th half of each batch, and writes
    FOLDER/NET.ddp.pt: the final state_dict of rank 0 and its losses
program_ddp.py FOLDER NET beside PROGRAM   the same with PROGRAM, a rank of C++
    that runs FOLDER/NET.pt2, as rank 0, and as rank 1; what both ranks end with
    is compared with FOLDER/NET.ddp.pt, and "equal" printed
program_ddp.py FOLDER NET rank RANK   is one of the ranks of Python
"""
import os
import pathlib
import subprocess
import sys

import torch
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import program_nets

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "distributed"))
from free_port import free_port  # noqa: E402

STEPS = 6


def rank(folder, name):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    index = dist.get_rank()
    torch.manual_seed(0)
    net = program_nets.NETS[name][0]().train()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    batches = torch.load(os.path.join(folder, name + ".sgd.pt"), weights_only=False)["batches"]
    losses = []
    for args, _, target in batches[:STEPS]:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(args[0].chunk(2)[index]), target.chunk(2)[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    result = {"state": net.state_dict(), "losses": torch.stack(losses)}
    torch.save(result, os.path.join(folder, f"{name}.rank{index}.pt"))
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # threads of Gloo may end after Python's own end


def start(command, index, port):
    variables = {"RANK": str(index), "LOCAL_RANK": str(index), "WORLD_SIZE": "2",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen(command, env={**os.environ, **variables})


def job(commands):
    port = free_port()
    ranks = [start(command, i, port) for i, command in enumerate(commands)]
    if max(process.wait() for process in ranks) != 0:
        sys.exit("a rank failed")


def load(folder, name):
    return torch.load(os.path.join(folder, name), weights_only=True)["state"]


def compare(expected, got, what):
    if list(expected) != list(got):
        sys.exit(f"{what}: {list(got)}")
    for key, value in expected.items():
        if not torch.equal(value, got[key]):
            sys.exit(f"{what}: {key} differs")


def main():
    folder, name, *more = sys.argv[1:]
    if more[:1] == ["rank"]:
        rank(folder, name)
    python = [sys.executable, __file__, folder, name, "rank"]
    if not more:
        job([python, python])
        os.replace(f"{folder}/{name}.rank0.pt", f"{folder}/{name}.ddp.pt")
        os.replace(f"{folder}/{name}.rank1.pt", f"{folder}/{name}.ddp1.pt")
        return
    program = [more[1], folder, name]
    job([program, python])
    compare(load(folder, f"{name}.ddp.pt"), load(folder, f"{name}.cpp.pt"), "C++, rank 0")
    compare(load(folder, f"{name}.ddp1.pt"), load(folder, f"{name}.rank1.pt"), "Python, rank 1")
    job([python, program])
    compare(load(folder, f"{name}.ddp.pt"), load(folder, f"{name}.rank0.pt"), "Python, rank 0")
    compare(load(folder, f"{name}.ddp1.pt"), load(folder, f"{name}.cpp.pt"), "C++, rank 1")
    print("equal")


main()
