# SPDX-License-Identifier: BSD-3-Clause
"""What is inside a wrapped model: its text, its layers, its own methods."""
from collections import OrderedDict

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.name = "two layers"
        self.features = nn.Sequential(
            OrderedDict([
                ("conv1", nn.Conv2d(1, 20, 5)),
                ("relu1", nn.ReLU()),
                ("conv2", nn.Conv2d(20, 64, 5)),
                ("relu2", nn.ReLU()),
            ]))

    def forward(self, x):
        return self.features(x)

    def loss(self, output, target):
        return nn.functional.mse_loss(output, target)


model = nn.DataParallel(Net())
print(model)
print(model.module.name)
print(model.module.features[0])
print(model.module.features.conv2)
output = model(torch.ones(4, 1, 12, 12))
loss = model.module.loss(output, output.detach() + 2)
print("loss {:.1f}".format(loss.item()))
try:
    print(model.loss(output, output))
except AttributeError as error:
    print(error)
for name, parameter in model.named_parameters():
    print(name, parameter.size())
