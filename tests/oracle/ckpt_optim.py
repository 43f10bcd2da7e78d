# SPDX-License-Identifier: BSD-3-Clause
"""Optimizer states that went to C++ and back, judged by PyTorch 2.13.

ckpt_optim.py write FOLDER   saves FOLDER/<name>.pt: state_dicts after 3 steps
ckpt_optim.py check FOLDER   loads FOLDER/<name>.back.pt into a new optimizer and
                             prints "name ok" if it goes on as the first one does
"""
import os
import sys
import warnings

import torch

import ckpt_optimizers

warnings.filterwarnings("ignore")
NAMES = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"]


def trained(name):
    torch.manual_seed(11)
    net = ckpt_optimizers.model()
    optimizer = ckpt_optimizers.OPTIMIZERS[name](list(net.parameters()))
    ckpt_optimizers.train(net, optimizer)
    return net, optimizer


def go_on(net, optimizer):
    torch.manual_seed(12)
    ckpt_optimizers.train(net, optimizer)
    return [p.detach().clone() for p in net.parameters()]


for name in NAMES:
    net, optimizer = trained(name)
    path = os.path.join(sys.argv[2], name)
    if sys.argv[1] == "write":
        torch.save(optimizer.state_dict(), path + ".pt")
        print(name)
        continue
    copy = ckpt_optimizers.model()
    copy.load_state_dict(net.state_dict())
    other = ckpt_optimizers.OPTIMIZERS[name](list(copy.parameters()))
    other.load_state_dict(torch.load(path + ".back.pt", weights_only=True))
    same = all(torch.equal(a, b) for a, b in zip(go_on(net, optimizer), go_on(copy, other)))
    print(name, "ok" if same else "differs")
