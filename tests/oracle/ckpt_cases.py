# SPDX-License-Identifier: BSD-3-Clause
"""Objects that `torch.save` of PyTorch 2.13 writes, one file per case.

ckpt_cases.py FOLDER: writes FOLDER/<case>.pt and prints the case names.
"""
import collections
import os
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(7)


def net():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(2, 1, 4, 4)).square().sum().backward()
    optimizer.step()


def training(make_optimizer, make_scheduler):
    model = net()
    optimizer = make_optimizer(model.parameters())
    scheduler = make_scheduler(optimizer)
    for _ in range(2):
        step(model, optimizer)
        scheduler.step()
    return {
        "epoch": 3,
        "arch": "resnet18",
        "state_dict": model.state_dict(),
        "best_acc1": torch.tensor(91.25),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "args": {"lr": 0.1, "device": "cpu", "resume": "", "workers": 2},
    }


def two_groups():
    model = net()
    groups = [
        {"params": model[0].parameters()},
        {"params": list(model[3].parameters()), "lr": 1e-3, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.Adam(groups, lr=0.1, amsgrad=True)
    step(model, optimizer)
    return optimizer.state_dict()


PLAIN = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
         torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex128, torch.complex64]
UNTYPED = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e5m2, torch.float8_e4m3fn,
           torch.float8_e5m2fnuz, torch.float8_e4m3fnuz, torch.float8_e8m0fnu, torch.complex32]


def of_dtype(dtype):
    return torch.arange(6).to(torch.float32).to(dtype) if dtype != torch.bool else torch.ones(3, dtype=dtype)


def views():
    base = torch.arange(24.0)
    return {"base": base, "slice": base[5:9], "matrix": base.view(4, 6), "transposed": base.view(4, 6).t(),
            "steps": base[::3], "expanded": base[:1].expand(4), "scalar": base[7], "empty": torch.empty(0, 3),
            "again": base, "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)}


def ema():
    model = net()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    return {"model": model.state_dict(), "ema": averaged.state_dict(), "wrapped": nn.DataParallel(model).state_dict()}


def attributed():
    tensor = torch.ones(2)
    tensor.note = "x"
    parameter = nn.Parameter(torch.zeros(2))
    parameter.tag = {"a": 1}
    return [tensor, parameter, tensor]


def shared():
    inner = [1, 2]
    word = "".join(["sha", "red"])
    pair = (0.9, 0.999)
    return {"a": inner, "b": inner, "words": [word, word, "sha" + word[3:]], "pairs": [pair, pair, (0.9, 0.999)],
            "storage": "cpu", "key": "0", "t": torch.ones(1), "place": "cuda"}


def quantized():
    x = torch.randn(4, 3)
    return {"tensor": torch.quantize_per_tensor(x, 0.1, 2, torch.qint8),
            "channel": torch.quantize_per_channel(x, torch.rand(3) + 0.1, torch.zeros(3, dtype=torch.int64), 1, torch.quint8)}


def conjugates():
    z = torch.tensor([1 + 2j, 3 - 4j])
    return [z.conj(), z.clone().conj().imag, torch._neg_view(z.clone().conj())]


SGD = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
SCHED = torch.optim.lr_scheduler
CASES = {
    "tiny": lambda: collections.OrderedDict([("w", torch.tensor([1.0, 2.0]))]),
    "state_dict": lambda: net().state_dict(),
    "sgd": lambda: training(SGD, lambda o: SCHED.MultiStepLR(o, [1, 1, 5])),
    "adam": lambda: training(lambda p: torch.optim.Adam(p), lambda o: SCHED.StepLR(o, 2)),
    "adamw": lambda: training(lambda p: torch.optim.AdamW(p), lambda o: SCHED.CosineAnnealingLR(o, 9)),
    "onecycle": lambda: training(SGD, lambda o: SCHED.OneCycleLR(o, 0.1, total_steps=9)),
    "two_groups": two_groups,
    "plain_dtypes": lambda: {str(d): of_dtype(d) for d in PLAIN},
    "untyped_dtypes": lambda: [of_dtype(d) for d in UNTYPED],
    "views": views,
    "ema": ema,
    "parameters": lambda: dict(net().named_parameters()),
    "requires_grad": lambda: [torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(2), requires_grad=False)],
    "attributes": attributed,
    "shared": shared,
    "integers": lambda: [s * (1 << b) + d for b in range(70) for s in (1, -1) for d in (-1, 0, 1)],
    "scalars": lambda: [None, True, False, 0.0, -0.0, 1e-300, float("inf"), float("nan"), "", "\u00fc\u2713\U0001f600", ()],
    "long_list": lambda: list(range(3001)),
    "full_list": lambda: [0.5] * 2000,
    "long_dict": lambda: {f"key.{i}": i for i in range(1500)},
    "full_dict": lambda: {i: None for i in range(2000)},
    "long_ordered": lambda: collections.OrderedDict((f"k{i}", torch.full((1,), i)) for i in range(1001)),
    "nested": lambda: [[[]], [{}], {"a": {"b": [(), (1,), (1, 2, 3), (1, 2, 3, 4)]}}, ({1, 2}, set())],
    "counter": lambda: collections.Counter("abracadabra"),
    "others": lambda: [b"\x00ab\xff", bytearray(b"xy"), 1 + 2j, torch.Size([2, 3]), torch.Size([]),
                       torch.device("cpu"), torch.device("cuda", 1), torch.float32, torch.bfloat16, torch.float32],
    "conjugates": conjugates,
    "quantized": quantized,
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "meta": lambda: torch.empty(3, device="meta"),
    "storages": lambda: [torch.ones(3).untyped_storage()],
}

if __name__ == "__main__":
    folder = sys.argv[1]
    for name, make in CASES.items():
        torch.save(make(), os.path.join(folder, name + ".pt"))
        print(name)
