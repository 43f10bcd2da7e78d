# SPDX-License-Identifier: BSD-3-Clause
"""Nets of many kinds, written out, for tests of exported programs.

`NETS[name]` makes (net, batch, shapes): `batch(n)` gives (args, kwargs, target)
of n samples, and `shapes` is the dynamic_shapes of torch.export.
"""
import torch
from torch import nn
from torch.nn import functional as F

BATCH = torch.export.Dim("batch", min=2, max=1024)
CLASSES = 10


def images(n, channels=3, size=32):
    return (torch.randn(n, channels, size, size),), {}, torch.randint(CLASSES, (n,))


def words(n, length=12, vocabulary=40):
    return (torch.randint(1, vocabulary, (n, length)),), {}, torch.randint(CLASSES, (n,))


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, CLASSES))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.1),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(256, CLASSES))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Block(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inside != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self.layer(width, width, 1)
        self.layer2 = self.layer(width, 2 * width, 2)
        self.layer3 = self.layer(2 * width, 4 * width, 2)
        self.layer4 = self.layer(4 * width, 8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, CLASSES)

    @staticmethod
    def layer(inside, width, stride):
        return nn.Sequential(Block(inside, width, stride), Block(width, width, 1))

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class UNet(nn.Module):
    """Scores for each pixel: interpolation and concatenation."""

    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(24, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.last = nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        wide = F.interpolate(second, size=first.shape[-2:], mode="bilinear", align_corners=False)
        return self.last(self.up(torch.cat([first, wide], 1)))


class Vit(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.encoder(x))[:, 0])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.rnn = kind(16, 12, 2, batch_first=True, dropout=0.2, bidirectional=True)
        self.head = nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.head(self.rnn(self.words(x))[0].mean(1))


class Text(nn.Module):
    """Padding that a mask leaves out, a table of places that is not saved."""

    def __init__(self, length=12, width=16):
        super().__init__()
        self.words = nn.Embedding(40, width, padding_idx=0)
        place = torch.arange(length).unsqueeze(1) / 10.0 ** (torch.arange(width) / width)
        self.register_buffer("place", torch.sin(place), persistent=False)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        pad = x == 0
        y = self.words(x) + self.place
        y = y + self.attention(y, y, y, key_padding_mask=pad, need_weights=False)[0]
        kept = (~pad).unsqueeze(-1).to(y.dtype)
        return self.head((y * kept).sum(1) / kept.sum(1).clamp(min=1))


class Results(nn.Module):
    """Tensors by name in and out, as nets for detection have them; and a number."""

    def __init__(self, has_number=True):
        super().__init__()
        self.has_number = has_number
        self.body = nn.Linear(8, 16)
        self.classes = nn.Linear(16, CLASSES)
        self.boxes = nn.Linear(16, 4)

    def forward(self, batch, *, scale=None):
        x = F.relu(self.body(batch["points"]))
        if scale is not None:
            x = x * scale
        more = x.shape[0] if self.has_number else None
        return {"out": self.classes(x), "boxes": self.boxes(x).sigmoid(), "more": (x, more)}


class Tied(nn.Module):
    """A model of words whose last layer is the first one's weight."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(CLASSES, 16)
        self.body = nn.Linear(16, 16)
        self.head = nn.Linear(16, CLASSES, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        return self.head(torch.tanh(self.body(self.words(x)))).mean(1)


class Frozen(nn.Module):
    """A batch norm that does not train beside one that does, and one that keeps
    no statistics."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2)
        self.bn2 = nn.BatchNorm2d(8)
        self.bn3 = nn.BatchNorm2d(8, track_running_stats=False)
        self.head = nn.Linear(8, CLASSES)

    def train(self, mode=True):
        super().train(mode)
        self.bn1.eval()
        return self

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.head(self.bn3(x).amax((2, 3)))


class Norm(nn.BatchNorm2d):
    """A batch norm of another name, as timm has them."""


class Mobile(nn.Module):
    """Depthwise convolutions with squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.deep = nn.Sequential(
            nn.Conv2d(16, 16, 3, 1, 1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.ReLU(), nn.Conv2d(4, 16, 1), nn.Hardsigmoid())
        self.point = nn.Sequential(nn.Conv2d(16, 16, 1, bias=False), Norm(16))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        y = self.deep(x)
        y = self.point(y * self.gate(y)) + x
        return self.head(y.mean((2, 3)))


class ConvNext(nn.Module):
    """Layer norm over channels, GELU, a scale for each layer, layers dropped."""

    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.deep = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 1e-2))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        y = self.gamma * self.narrow(F.gelu(self.wide(y)))
        keep = torch.empty(x.shape[0], 1, 1, 1, device=x.device).bernoulli_(0.8) / 0.8
        x = x + y.permute(0, 3, 1, 2) * keep
        return self.head(x.mean((2, 3)))


class Branches(nn.Module):
    """A part without gradients, one with autocast, a branch on data."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.other = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        with torch.no_grad():
            shift = self.first(x).mean()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.norm(self.second(x))
        z = torch.cond(x.sum() > 0, lambda t: (self.first(t),), lambda t: (self.other(t) - 1,), (x,))[0]
        return self.head(y.float() + z + shift)


class Rates(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", torch.linspace(0.5, 1.5, 8), persistent=False)

    def forward(self, x):
        return x * self.rates


class Moving(nn.Module):
    """Buffers that are not saved, of which forward changes one."""

    def __init__(self):
        super().__init__()
        self.scale = Rates()
        self.body = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, CLASSES)
        self.register_buffer("mean", torch.zeros(16), persistent=False)

    def forward(self, x):
        x = self.body(self.scale(x))
        with torch.no_grad():
            self.mean.mul_(0.5).add_(x.mean(0))
        return self.head(self.norm(x) - self.mean)


def bfloat16(batch):
    args, kwargs, target = batch
    return (args[0].bfloat16(),), kwargs, target


def padded(n):
    args, kwargs, target = words(n)
    args[0][:, 9:] = 0
    return args, kwargs, target


def named(n):
    target = torch.randint(CLASSES, (n,))
    return ({"points": torch.randn(n, 8)},), {"scale": torch.rand(n, 1)}, target


X = {"x": {0: BATCH}}
NETS = {
    "mlp": (Mlp, lambda n: images(n, 3, 4), ({0: BATCH},)),
    "cnn": (Cnn, lambda n: images(n, 3, 16), X),
    "resnet18": (lambda: ResNet18(16), images, X),
    "unet": (UNet, lambda n: (images(n, 3, 16)[0], {}, torch.randint(CLASSES, (n, 16, 16))), X),
    "vit": (Vit, images, X),
    "encoder": (Encoder, lambda n: ((torch.randn(n, 6, 16),), {}, torch.randint(CLASSES, (n,))), X),
    "lstm": (lambda: Recurrent(nn.LSTM), words, X),
    "gru": (lambda: Recurrent(nn.GRU), words, X),
    "text": (Text, padded, X),
    "results": (Results, named, {"batch": {"points": {0: BATCH}}, "scale": {0: BATCH}}),
    "tensors": (lambda: Results(False), named, {"batch": {"points": {0: BATCH}}, "scale": {0: BATCH}}),
    "tied": (Tied, lambda n: words(n, 6, CLASSES), X),
    "frozen": (Frozen, lambda n: images(n, 3, 12), X),
    "mobile": (Mobile, images, X),
    "convnext": (ConvNext, images, X),
    "bfloat16": (
        lambda: Mlp().bfloat16(), lambda n: bfloat16(images(n, 3, 4)), ({0: BATCH},)),
    "branches": (Branches, lambda n: ((torch.randn(n, 8),), {}, torch.randint(CLASSES, (n,))), X),
    "moving": (Moving, lambda n: ((torch.randn(n, 8),), {}, torch.randint(CLASSES, (n,))), X),
}
