# SPDX-License-Identifier: BSD-3-Clause
"""Training states of PyTorch 2.13: every optimizer, every scheduler.

OPTIMIZERS and SCHEDULERS map names to makers; `states()` gives the state_dicts
after a few steps, by name.
"""
import torch
from torch import nn

O = torch.optim
S = torch.optim.lr_scheduler

OPTIMIZERS = {
    "Adadelta": lambda p: O.Adadelta(p),
    "Adafactor": lambda p: O.Adafactor(p),
    "Adagrad": lambda p: O.Adagrad(p, lr_decay=0.1),
    "Adam": lambda p: O.Adam(p, amsgrad=True),
    "AdamW": lambda p: O.AdamW(p),
    "Adamax": lambda p: O.Adamax(p),
    "ASGD": lambda p: O.ASGD(p),
    "LBFGS": lambda p: O.LBFGS(p, lr=0.1),
    "Muon": lambda p: O.Muon([q for q in p if q.ndim == 2]),
    "NAdam": lambda p: O.NAdam(p),
    "RAdam": lambda p: O.RAdam(p),
    "RMSprop": lambda p: O.RMSprop(p, momentum=0.5, centered=True),
    "Rprop": lambda p: O.Rprop(p),
    "SGD": lambda p: O.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "SGD_plain": lambda p: O.SGD(p, lr=0.1),
    "SGD_tensor_lr": lambda p: O.SGD(p, lr=torch.tensor(0.1)),
    "Adam_named": lambda p: O.Adam([(f"w{i}", q) for i, q in enumerate(p)]),
}

SCHEDULERS = {
    "LambdaLR": lambda o: S.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda epoch: 0.9),
    "StepLR": lambda o: S.StepLR(o, 2),
    "MultiStepLR": lambda o: S.MultiStepLR(o, [1, 1, 3]),
    "ConstantLR": lambda o: S.ConstantLR(o),
    "LinearLR": lambda o: S.LinearLR(o),
    "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9),
    "SequentialLR": lambda o: S.SequentialLR(o, [S.ConstantLR(o), S.ExponentialLR(o, 0.9)], [2]),
    "PolynomialLR": lambda o: S.PolynomialLR(o),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 9),
    "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 2),
    "ChainedScheduler": lambda o: S.ChainedScheduler([S.ConstantLR(o), S.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda o: S.ReduceLROnPlateau(o),
    "CyclicLR": lambda o: S.CyclicLR(o, 0.01, 0.1),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 0.1, total_steps=9),
}


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def train(net, optimizer, scheduler=None, steps=3):
    data = torch.randn(5, 3)
    for _ in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = net(data).square().sum()
            loss.backward()
            return loss
        loss = optimizer.step(closure)
        if isinstance(scheduler, S.ReduceLROnPlateau):
            scheduler.step(loss.item())
        elif scheduler is not None:
            scheduler.step()


def optimizer_state(name):
    net = model()
    optimizer = OPTIMIZERS[name](list(net.parameters()))
    train(net, optimizer)
    return optimizer.state_dict()


def sparse_adam_state():
    table = nn.Embedding(5, 2, sparse=True)
    optimizer = O.SparseAdam(table.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        table(torch.tensor([1, 3])).sum().backward()
        optimizer.step()
    return optimizer.state_dict()


def scheduler_state(name):
    net = model()
    optimizer = O.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = SCHEDULERS[name](optimizer)
    train(net, optimizer, scheduler)
    return {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}


def states():
    torch.manual_seed(5)
    result = {f"optimizer_{name}": optimizer_state(name) for name in OPTIMIZERS}
    result["optimizer_SparseAdam"] = sparse_adam_state()
    result.update({f"scheduler_{name}": scheduler_state(name) for name in SCHEDULERS})
    return result
