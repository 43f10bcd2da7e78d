# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks of stock DistributedDataParallel train a net of program_nets.py.

program_ddp.py FOLDER NET   reads the batches of FOLDER/NET.sgd.pt, trains the
    original net for 6 steps, rank r on the r-th half of each batch, and writes
    FOLDER/NET.ddp.pt: the final state_dict of rank 0 and its losses
program_ddp.py FOLDER NET RANK   is one of the ranks
"""
import os
import subprocess
import sys

import torch
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import program_nets

STEPS = 6


def rank(index, folder, name):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}.store", rank=index, world_size=2)
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
    if index == 0:
        result = {"state": net.state_dict(), "losses": torch.stack(losses)}
        torch.save(result, os.path.join(folder, name + ".ddp.pt"))
    dist.barrier()
    dist.destroy_process_group()


def main():
    if len(sys.argv) == 4:
        rank(int(sys.argv[3]), sys.argv[1], sys.argv[2])
        return
    ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], str(r)]) for r in range(2)]
    sys.exit(max(process.wait() for process in ranks))


main()
