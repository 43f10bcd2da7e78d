# SPDX-License-Identifier: BSD-3-Clause
"""Prints every layer that LibTorch has, with and without its options."""
import pathlib
import re
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")


def tensor(*sizes):
    return nn.Parameter(torch.zeros(sizes))


PAIR = nn.ParameterList([tensor(2, 3), nn.Parameter(tensor().bfloat16())])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList(
            [nn.ReLU(), nn.ReLU(), nn.Linear(2, 3), nn.ReLU()])
        self.empty = nn.Sequential()
        self.none = nn.ModuleList()
        self.twice = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.ReLU())] * 2)


MODULES = [
    nn.Conv1d(1, 2, 3),
    nn.Conv2d(1, 20, 5),
    nn.Conv2d(4, 8, (3, 5), (1, 2), (1, 0), (2, 1), 2, False, "reflect"),
    nn.Conv2d(1, 2, 3, padding="same"),
    nn.Conv3d(1, 2, 3, stride=2),
    nn.ConvTranspose2d(2, 4, 3, 2, 1, 1, bias=False),
    nn.Linear(3, 5),
    nn.Linear(3, 5, bias=False),
    nn.BatchNorm1d(3),
    nn.BatchNorm2d(64),
    nn.BatchNorm2d(4, 1e-3, None, False, False),
    nn.BatchNorm3d(2, momentum=0.25),
    nn.InstanceNorm2d(4),
    nn.GroupNorm(2, 4),
    nn.LayerNorm(8),
    nn.LayerNorm([4, 8], 1e-6, False),
    nn.ReLU(),
    nn.ReLU(True),
    nn.LeakyReLU(0.2, True),
    nn.Sigmoid(),
    nn.Tanh(),
    nn.GELU(),
    nn.SiLU(),
    nn.Softmax(1),
    nn.LogSoftmax(-1),
    nn.Dropout(),
    nn.Dropout(0.25, True),
    nn.Dropout2d(0.1),
    nn.MaxPool1d(2),
    nn.MaxPool2d(2, 2),
    nn.MaxPool2d((3, 2), (2, 1), (1, 0), ceil_mode=True),
    nn.AvgPool2d(2),
    nn.AdaptiveAvgPool1d(1),
    nn.AdaptiveAvgPool2d((7, 7)),
    nn.AdaptiveAvgPool2d((None, 3)),
    nn.AdaptiveMaxPool2d((2, 2)),
    nn.Flatten(),
    nn.Identity(),
    nn.Embedding(10, 3),
    nn.Embedding(10, 3, padding_idx=1),
    nn.CrossEntropyLoss(),
    nn.MSELoss(),
    nn.Sequential(nn.Linear(1, 2), nn.ReLU()),
    Net(),
    nn.ReLU6(),
    nn.ReLU6(True),
    nn.SELU(),
    nn.ELU(),
    nn.ELU(0.5, True),
    nn.CELU(2.5),
    nn.RReLU(),
    nn.RReLU(0.1, 0.3, True),
    nn.Hardtanh(),
    nn.Hardtanh(max_val=6.5, inplace=True),
    nn.Threshold(0.5, 20.25),
    nn.Threshold(0.1, 0.2, True),
    nn.Softplus(),
    nn.Softplus(0.5, 8.5),
    nn.Softshrink(),
    nn.Hardshrink(0.25),
    nn.PReLU(),
    nn.PReLU(8),
    nn.GELU("tanh"),
    nn.GLU(),
    nn.Softmin(1),
    nn.Softmax2d(),
    nn.Softsign(),
    nn.LogSigmoid(),
    nn.Tanhshrink(),
    nn.Mish(),
    nn.Dropout3d(0.3),
    nn.AlphaDropout(0.2),
    nn.FeatureAlphaDropout(),
    nn.MaxPool3d((2, 2, 1), dilation=(1, 2, 1)),
    nn.AvgPool1d(3),
    nn.AvgPool2d((3, 2), (2, 1), 1),
    nn.AvgPool3d(2),
    nn.MaxUnpool1d(3),
    nn.MaxUnpool2d(3, 2, 1),
    nn.MaxUnpool3d(2),
    nn.LPPool1d(1.5, 3, 2),
    nn.LPPool2d(2.5, (3, 2), (1, 2)),
    nn.LPPool3d(1.5, 2, 2, True),
    nn.AdaptiveMaxPool1d(4),
    nn.AdaptiveAvgPool3d((1, None, 2)),
    nn.AdaptiveMaxPool3d((2, 3, 4)),
    nn.FractionalMaxPool2d(3, output_size=2),
    nn.FractionalMaxPool3d(3, output_ratio=0.5),
    nn.ReflectionPad1d(2),
    nn.ReflectionPad2d((1, 2, 3, 4)),
    nn.ReflectionPad3d(1),
    nn.ReplicationPad1d(2),
    nn.ReplicationPad2d(1),
    nn.ReplicationPad3d(1),
    nn.ZeroPad1d(3),
    nn.ZeroPad2d((1, 0, 2, 0)),
    nn.ZeroPad3d(1),
    nn.ConstantPad1d(1, 2.5),
    nn.ConstantPad2d((1, 0, 2, 0), -0.5),
    nn.ConstantPad3d(1, 0.125),
    nn.Unflatten(1, (2, 3)),
    nn.Fold((4, 5), 2, padding=1),
    nn.Unfold((2, 3), stride=2, dilation=(1, 2)),
    nn.Upsample(scale_factor=2),
    nn.Upsample(scale_factor=(1.5, 2), mode="bilinear"),
    nn.Upsample(size=(4, 6)),
    nn.Upsample(),
    nn.PixelShuffle(3),
    nn.PixelUnshuffle(2),
    nn.ConvTranspose1d(2, 4, 3),
    nn.ConvTranspose3d(2, 4, 3),
    nn.Conv2d(1, 2, 3, padding="valid"),
    nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"),
    nn.Bilinear(2, 3, 4, bias=False),
    nn.InstanceNorm1d(2),
    nn.InstanceNorm3d(2, affine=True),
    nn.LocalResponseNorm(2),
    nn.CrossMapLRN2d(3),
    nn.Embedding(10, 3, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True,
                 sparse=True),
    nn.EmbeddingBag(10, 3),
    nn.EmbeddingBag(10, 3, 1.5, mode="sum", padding_idx=1),
    nn.RNN(3, 5),
    nn.RNN(3, 5, nonlinearity="relu"),
    nn.LSTM(3, 5, 2, False, True, 0.25, True, 2),
    nn.GRU(3, 5, 2),
    nn.RNNCell(3, 5, nonlinearity="relu"),
    nn.LSTMCell(3, 5),
    nn.GRUCell(3, 5, False),
    nn.MultiheadAttention(8, 2),
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
    nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, dropout=0.25), 1),
    nn.Transformer(8, 2, 1, 2, 16),
    nn.L1Loss(),
    nn.KLDivLoss(),
    nn.BCELoss(torch.ones(3)),
    nn.BCEWithLogitsLoss(),
    nn.NLLLoss(),
    nn.CTCLoss(),
    nn.HingeEmbeddingLoss(),
    nn.HuberLoss(),
    nn.SmoothL1Loss(),
    nn.SoftMarginLoss(),
    nn.MarginRankingLoss(),
    nn.MultiLabelMarginLoss(),
    nn.MultiLabelSoftMarginLoss(),
    nn.MultiMarginLoss(),
    nn.PoissonNLLLoss(),
    nn.CosineEmbeddingLoss(),
    nn.TripletMarginLoss(),
    nn.TripletMarginWithDistanceLoss(),
    nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: a - b),
    nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10]),
    nn.CosineSimilarity(),
    nn.PairwiseDistance(),
    nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 2)}),
    nn.ParameterDict([("w", tensor(2, 3)), ("long_name", tensor(4).double())]),
    nn.ParameterList([tensor(2, 3)]),
    PAIR,
    nn.ModuleList([PAIR, nn.ReLU()]),
    nn.ModuleDict(),
    nn.ParameterDict(),
    nn.ParameterList(),
]
for module in MODULES:
    print(module)

# LibTorch wraps a function in a module; Python has none.
names = {"Functional"} | {
    type(part).__name__ for module in MODULES for part in module.modules()}
headers = pathlib.Path(torch.__file__).parent.glob(
    "include/torch/csrc/api/include/torch/nn/modules/**/*.h")
stock = {name for header in headers for name in
         re.findall(r"^TORCH_MODULE(?:_IMPL)?\((\w+)", header.read_text(), re.M)}
if stock - names:
    sys.exit(f"LibTorch has layers that are not in MODULES: {stock - names}")
