# SPDX-License-Identifier: BSD-3-Clause
"""Programs of torch.export, and what training of the original nets gives.

program_train.py FOLDER OPTIMIZER NET...   writes FOLDER/NET.pt2, and
    FOLDER/NET.OPTIMIZER.pt with the batches, the losses of 20 steps, the final
    state_dict and the outputs of eval(); the batches have 16 and 12 samples
program_train.py check FOLDER NET...       prints for each FOLDER/NET.trained.pt2
    whether its outputs are those of the trained net, bit for bit
"""
import os
import sys
import warnings

import torch
from torch.nn import functional as F

import program_more_nets
import program_nets

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
# A kernel of its own for attention in eval(), with other last bits.
torch.backends.mha.set_fastpath_enabled(False)
STEPS = 20
NETS = program_nets.NETS | program_more_nets.NETS
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
}


def output_of(result):
    return result["out"] if isinstance(result, dict) else result


def outputs_in_eval(net, batch):
    net.eval()
    args, kwargs, _ = batch
    with torch.no_grad():
        return output_of(net(*args, **kwargs))


def train(folder, kind, name):
    make, batch, shapes = NETS[name]
    torch.manual_seed(0)
    net = make().train()
    batches = [batch(16 if step % 2 == 0 else 12) for step in range(STEPS)]
    path = os.path.join(folder, name + ".pt2")
    if not os.path.exists(path):
        args, kwargs, _ = batches[0]
        program = torch.export.export(net, args, kwargs, dynamic_shapes=shapes, strict=False)
        torch.export.save(program, path)
    optimizer = OPTIMIZERS[kind](net.parameters())
    torch.manual_seed(1)
    losses = []
    for args, kwargs, target in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(output_of(net(*args, **kwargs)), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    result = {
        "batches": batches, "losses": torch.stack(losses), "state": net.state_dict(),
        "eval": outputs_in_eval(net, batches[0])}
    torch.save(result, os.path.join(folder, f"{name}.{kind}.pt"))


def check(folder, name):
    program = torch.export.load(os.path.join(folder, name + ".trained.pt2"))
    given = torch.load(os.path.join(folder, name + ".sgd.pt"), weights_only=False)
    state = program.state_dict
    same = all(torch.equal(state[key], value) for key, value in given["state"].items())
    args, kwargs, _ = given["batches"][0]
    net = NETS[name][0]().train()
    net.load_state_dict(given["state"])
    for key, value in program.named_buffers():  # those that are not saved, too
        net.get_buffer(key).copy_(value)
    torch.manual_seed(5)
    got = output_of(program.module()(*args, **kwargs))
    torch.manual_seed(5)
    return same and torch.equal(got, output_of(net(*args, **kwargs)))


def main():
    if sys.argv[1] == "check":
        for name in sys.argv[3:]:
            print(name, check(sys.argv[2], name))
        return
    for name in sys.argv[3:]:
        train(sys.argv[1], sys.argv[2], name)
        print(name)


main()
