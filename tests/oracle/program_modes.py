# SPDX-License-Identifier: BSD-3-Clause
"""Nets whose modes, memory and arguments a program has to keep apart.

program_modes.py FOLDER   writes FOLDER/NAME.pt2 and prints the names; of `shared`
    it prints the gradient that Python gives, too: "shared 12.0"; of the others
    with results that depend on Python's rules the sum: "casts 12.3"
"""
import dataclasses
import os
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Shared(nn.Module):
    """A buffer in a parameter's memory."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("ref", self.w.detach())

    def forward(self, x):
        return x * self.ref * 2 + x * self.w


class Named(nn.Module):
    """A buffer that is called as a strict export calls a constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("lifted_tensor_0", torch.ones(4))

    def forward(self, x):
        return x + self.lifted_tensor_0 + torch.tensor([1.0, 2.0, 3.0, 4.0])


class Overlapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(6))
        self.b = nn.Parameter(self.a.detach()[:3])

    def forward(self, x):
        return x * self.a + torch.cat([self.b, self.b])


class Expanded(nn.Module):
    """Four elements in the memory of one."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.register_buffer("scale", torch.ones(1).expand(4))

    def forward(self, x):
        return self.fc(x) * self.scale


class Keywords(nn.Module):
    def forward(self, x, a=None, b=None):
        return x + 2 * a + 3 * b


class Smoothed(nn.Module):
    """Changes a buffer in training alone, which the graph does not say."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        y = self.fc(x)
        if self.training:
            self.mean.copy_(self.mean * 0.9 + y.mean(0).detach() * 0.1)
            y = y * torch.empty(y.shape[0], 1).bernoulli_(0.5)
        return y - self.mean


class Signs(nn.Module):
    """Python's signs between tensors are operators of their own."""

    def forward(self, x):
        mask = ((x > 0) & (x < 4) | (x > 6)) ^ (x > 7)
        count = x.to(torch.int64)
        count &= 7
        return torch.where(mask, (count << 2) >> 1, 0)


class Number(nn.Module):
    def forward(self, x, n):
        return x * n


class Scaled(nn.Module):
    def forward(self, x, mask=None, scale=None):
        x = x if mask is None else x * mask
        return x if scale is None else x * scale


class Queue(nn.Module):
    """Changes a part of a buffer."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("queue", torch.zeros(3, 8))

    def forward(self, x):
        y = self.fc(x)
        with torch.no_grad():
            self.queue[:, 2:6] = y.T
        return y


class Clamped(nn.Module):
    """Changes a weight in training alone."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.fc.weight.clamp_(-0.2, 0.2)
        return self.fc(x)


class Copied(nn.Module):
    """Changes copies of buffers, which operators make that may give views."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(5, 5).tril().bool())
        self.register_buffer("scale", torch.ones(1))
        self.table = nn.Embedding(4, 3, max_norm=1.0)

    def forward(self, x):
        mask = self.mask[:4, :4].to(x.dtype)
        mask.masked_fill_(mask == 0, -1.0)
        scale = self.scale.expand(3).contiguous()
        scale.add_(1)
        scale.add_(self.scale.to(torch.float32, copy=True).mul_(2))
        scale.add_(self.scale.expand(3, 1).reshape(3).mul_(2))
        return mask @ x * scale + self.table(torch.arange(4))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 3)
        self.head = nn.Linear(3, 9, bias=False)
        self.head.weight = self.table.weight

    def forward(self, words):
        return {"out": self.head(self.table(words))}


class Inverse(nn.Module):
    """Decomposed: a check that has effects."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 16)

    def forward(self, x):
        a = self.fc(x).view(-1, 4, 4)
        return torch.linalg.inv(a @ a.mT + 2 * torch.eye(4)), {}


class Averaged(nn.Module):
    """Changes a buffer where the graph is another one; its norm is frozen."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3).eval()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            self.mean.mul_(0.9)
        return self.norm(x)


class Casts(nn.Module):
    """An autocast of a device that the net is not on."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.fc(x)
            with torch.autocast("cuda", enabled=False):
                return self.fc(y)


@dataclasses.dataclass
class Found:
    logits: torch.Tensor
    hidden: torch.Tensor
    loss: torch.Tensor | None = None


class Finds(nn.Module):
    def forward(self, x):
        return Found(x * 2, x * 3)


class Pads(nn.Module):
    def forward(self, x):
        return x.new_ones(x.shape[0] >> 1, x.shape[1] << 2)


class Attends(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Kept(nn.Module):
    """Keeps what an operator gives that has a flag."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(2, 2, 5, 4))

    def forward(self, q):
        y = nn.functional.scaled_dot_product_attention(q, q, q)
        self.last.copy_(y)
        return y + 1


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(9, 3, mode="sum")

    def forward(self, words, offsets):
        return self.bag(words, offsets)


def image():
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)), (torch.randn(2, 3, 4, 4),)


torch.export.register_dataclass(Found, serialized_type_name="Found")


def nets():
    """(name, net, args, keywords of export, whether it is decomposed)."""
    batch = torch.export.Dim("batch", min=2, max=64)
    x = torch.ones(4, 3)
    norm, photo = image()
    yield "shared", Shared(), (x,), {}, False
    yield "named", Named(), (torch.ones(4),), {"strict": True}, False
    yield "overlapping", Overlapping(), (torch.ones(4, 6),), {}, False
    yield "expanded", Expanded(), (x,), {}, False
    yield "keywords", Keywords(), (x,), {"kwargs": {"b": x + 1, "a": x + 2}}, False
    yield "smoothed", Smoothed(), (x,), {}, False
    yield "signs", Signs(), (torch.arange(9.0),), {}, False
    yield "number", Number(), (x, 3), {"dynamic_shapes": (None, torch.export.Dim.DYNAMIC)}, False
    yield "scaled", Scaled(), (x,), {"kwargs": {"scale": x + 1}}, False
    yield "only", Scaled(), (), {"kwargs": {"x": x}}, False
    yield "queue", Queue(), (x,), {}, False
    yield "queue_decomposed", Queue(), (x,), {}, True
    yield "clamped", Clamped(), (x,), {}, False
    yield "copied", Copied(), (x,), {}, False
    yield "tied", Tied(), (torch.arange(4),), {}, False
    yield "inverse", Inverse(), (x,), {}, True
    yield "averaged", Averaged(), (x,), {}, False
    yield "casts", Casts(), (x,), {}, False
    yield "finds", Finds(), (x,), {}, False
    some = torch.export.Dim.AUTO
    yield "pads", Pads(), (x,), {"dynamic_shapes": ({0: some, 1: some},)}, False
    length = torch.export.Dim.DYNAMIC
    photos = torch.rand(2, 2, 5, 4), torch.rand(2, 2, 6, 4), torch.rand(2, 2, 6, 4)
    yield "attends", Attends(), photos, {"dynamic_shapes": ({2: length}, {2: length}, {2: length})}, False
    yield "kept", Kept(), photos[:1], {}, True
    words = torch.arange(6), torch.tensor([0, 2, 3])
    bags = Bags()
    offsets = {"dynamic_shapes": (None, {0: length})}
    yield "bags", bags, words, offsets, False
    yield "bags_decomposed", bags, words, offsets, True
    yield "dropout2d", nn.Sequential(nn.Conv2d(3, 4, 1), nn.Dropout2d()), photo, {}, True
    yield "norm", norm, photo, {"dynamic_shapes": ({0: batch},)}, True
    yield "norm_in_eval", image()[0].eval(), photo, {}, True


def main(folder):
    for name, net, args, keywords, is_decomposed in nets():
        program = torch.export.export(net, args, **keywords)
        if is_decomposed:
            program = program.run_decompositions()
        torch.export.save(program, os.path.join(folder, name + ".pt2"))
        print(name, flush=True)
    module = torch.export.load(os.path.join(folder, "shared.pt2")).module()
    module(torch.ones(4, 3)).sum().backward()
    print("shared", module.w.grad.sum().item())
    for name, args in (("casts", (torch.ones(4, 3),)), ("bags", (torch.arange(6), torch.tensor([0, 2, 3])))):
        module = torch.export.load(os.path.join(folder, name + ".pt2")).module()
        print(name, str(module(*args).dtype)[6:], module(*args).sum().item())


if __name__ == "__main__":
    main(sys.argv[1])
