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
    tensor = torch.quantize_per_tensor(x, 0.1, 2, torch.qint8)
    noted = torch.quantize_per_tensor(x, 0.2, 1, torch.quint8)
    noted.note = "x"
    scales, zeros = torch.rand(3) + 0.1, torch.zeros(3, dtype=torch.int64)
    rows = torch.rand(4) + 0.1
    return {"tensor": tensor, "row": tensor[1:2], "transposed": tensor.t(), "again": tensor, "noted": noted,
            "wide": torch.quantize_per_tensor(x, 0.1, 0, torch.qint32),
            "parameter": nn.Parameter(tensor, requires_grad=False),
            "channel": torch.quantize_per_channel(x, scales, zeros, 1, torch.quint8),
            "float": torch.quantize_per_channel(x, rows, rows.clone(), 0, torch.quint8),
            "half_bytes": torch.quantize_per_channel(x, rows, rows.clone(), 0, torch.quint4x2),
            "quarter_bytes": torch.quantize_per_channel(x, rows, rows.clone(), 0, torch.quint2x4)}


def sparse():
    eye = torch.eye(4)
    noted = eye.to_sparse()
    noted.note = "x"
    twice = torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, 3.0], (3, 2))
    return {"coo": eye.to_sparse(), "twice": twice, "hybrid": torch.ones(3, 2).to_sparse(1), "noted": noted,
            "parameter": nn.Parameter(eye.to_sparse()), "csr": eye.to_sparse_csr(), "csc": eye.to_sparse_csc(),
            "bsr": eye.to_sparse_bsr((2, 2)), "bsc": eye.to_sparse_bsc((2, 2)),
            "half": eye.half().to_sparse_csr(), "batch": torch.stack([eye, eye]).to_sparse_csr()}


def nested():
    parts = [torch.arange(6.0).view(2, 3), torch.ones(1, 3)]
    return {"strided": torch.nested.nested_tensor(parts), "jagged": torch.nested.nested_tensor(parts, layout=torch.jagged)}


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
    "sparse": sparse,
    "layouts": nested,
    "meta": lambda: [torch.empty(3, device="meta"), torch.empty(2, 3, dtype=torch.int8, device="meta").t(),
                     nn.Parameter(torch.empty(2, device="meta"))],
    "names": lambda: [torch.strided, torch.sparse_csr, torch.per_channel_symmetric, torch.int4, torch.uint7,
                      torch.nn.Parameter, torch.Tensor, torch.FloatStorage],
    "bits": lambda: [torch.arange(4, dtype=torch.uint8).view(d) for d in
                     (torch.bits8, torch.bits1x8, torch.bits2x4, torch.bits4x2, torch.float4_e2m1fn_x2)],
    "storages": lambda: [torch.ones(3).untyped_storage()],
}

if __name__ == "__main__":
    folder = sys.argv[1]
    for name, make in CASES.items():
        torch.save(make(), os.path.join(folder, name + ".pt"))
        print(name)
