# SPDX-License-Identifier: BSD-3-Clause
"""Nets with rarer parts, for tests of exported programs; as program_nets.py."""
import torch
from torch import nn
from torch.nn import functional as F

BATCH = torch.export.Dim("batch", min=2, max=1024)
CLASSES = 10
X = {"x": {0: BATCH}}


def rows(n, width=16):
    return (torch.randn(n, width),), {}, torch.randint(CLASSES, (n,))


class Cells(nn.Module):
    """A loop that export unrolls."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 8)
        for step in range(4):
            state = self.cell(x[:, 4 * step:4 * step + 4], state)
        return self.head(state)


class Attend(nn.Module):
    """Attention with weights that are given back, and a bilinear layer."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.both = nn.Bilinear(8, 8, CLASSES)

    def forward(self, x):
        x = x.view(-1, 2, 8)
        y, weights = self.attention(x, x, x)
        return self.both(x[:, 0], y[:, 1]) + weights.mean()


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = x.view(-1, 2, 8)
        mask = nn.Transformer.generate_square_subsequent_mask(2)
        return self.head(self.net(x, x, tgt_mask=mask, tgt_is_causal=True)).mean(1)


class Dropouts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 16), nn.AlphaDropout(0.1), nn.SELU(), nn.FeatureAlphaDropout(0.1),
            nn.RReLU(), nn.Dropout(0.1), nn.Linear(16, 16))
        self.norm = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.layers(x).view(-1, 4, 4)
        return self.head(F.dropout1d(self.norm(x), 0.1, self.training).flatten(1))


class Weights(nn.Module):
    """A weight that is computed, einsum, topk, indices, sums by index."""

    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Linear(16, 16))
        self.table = nn.Parameter(torch.randn(16, CLASSES))
        self.register_buffer("order", torch.randperm(16))

    def forward(self, x):
        x = self.first(x)[:, self.order]
        best = x.topk(8, 1)
        x = torch.zeros_like(x).scatter(1, best.indices, best.values)
        return torch.einsum("bi,ic->bc", x, self.table).where(x[:, :1] > -1, 0.1)


class Waves(nn.Module):
    """Complex numbers, statistics, a loss inside."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(9, 2))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        y = torch.fft.irfft(torch.fft.rfft(x) * torch.view_as_complex(self.filter), n=16)
        y = (y - y.mean(1, keepdim=True)) / (y.std(1, keepdim=True) + 1e-5)
        return self.head(F.layer_norm(y, (16,))).clamp(min=-float("inf"), max=9)


class Sizes(nn.Module):
    """Sizes that are computed: images of any height and width."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, CLASSES, 3, padding=1)

    def forward(self, x):
        y = F.pad(self.conv(x), (0, x.shape[-1] // 3 + 1))
        y = y[..., : y.shape[-1] - x.shape[0] % 3]
        return y.reshape(y.shape[0], CLASSES, -1).mean(-1) * (x.shape[-1] / 8)


class Pieces(nn.Module):
    """Tensors that share memory, changed in place; a numbers' argument."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x, scale=2):
        x = self.first(x).clone()
        a, b = x[:, :8], x[:, 8:]
        a.mul_(scale)
        b[:, 0] = 1.0
        x[:, 8:] += 0.5
        return self.head(a.sigmoid() * b)


def scaled(n):
    args, kwargs, target = rows(n)
    return (args[0], 3), kwargs, target


def any_size(n):
    n += n % 3 == 0  # its guards refuse what makes the slice whole
    return (torch.randn(n, 1, 8, 8 + n % 3),), {}, torch.randint(CLASSES, (n,))


WIDE = torch.export.Dim("wide", min=4, max=64)
NETS = {
    "cells": (Cells, rows, X),
    "attend": (Attend, rows, X),
    "seq2seq": (Seq2Seq, rows, X),
    "dropouts": (Dropouts, rows, X),
    "weights": (Weights, rows, X),
    "waves": (Waves, rows, X),
    "sizes": (Sizes, any_size, {"x": {0: BATCH, 3: WIDE}}),
    "pieces": (Pieces, scaled, {"x": {0: BATCH}, "scale": None}),
}
