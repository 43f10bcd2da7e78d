# SPDX-License-Identifier: BSD-3-Clause
"""Each process trains on its part: torchrun --nproc-per-node 2 ranks.py"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group(backend="gloo")
torch.manual_seed(0)
torch.set_num_threads(1)
rows = torch.randn(100, 5)
dataset = TensorDataset(rows, rows[:, :1])
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=10, sampler=sampler)
model = DistributedDataParallel(nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for input, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(input), target)
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss.detach())
    if dist.get_rank() == 0:
        print("epoch", epoch, "samples", len(sampler),
              "loss {:.3f}".format(loss.item()))
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "with_prefix.pth")
    torch.save(model.module.state_dict(), "weights.pth")
dist.barrier()
net = nn.Linear(5, 1)
net.load_state_dict(torch.load("weights.pth"))
model.load_state_dict(torch.load("with_prefix.pth"))
if dist.get_rank() == 0:
    print("equal" if torch.equal(net.weight, model.module.weight) else "")
dist.destroy_process_group()
