# SPDX-License-Identifier: BSD-3-Clause
"""The models of lockstep/models in Python: same layers, same order of draws.

torch 2.13. torchvision is not installed; the architectures, key names and
initialisation follow its published definitions, written anew here.
"""
import torch
from torch import nn
from torch.nn import functional as F


def conv(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, planes, stride, downsample):
        super().__init__()
        self.conv1 = conv(inputs, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes)
        if downsample is not None:
            self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.downsample(x) if hasattr(self, "downsample") else x
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, planes, stride, downsample):
        super().__init__()
        self.conv1 = conv(inputs, planes, 1)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = conv(planes, planes, 3, stride)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = conv(planes, planes * 4, 1)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        if downsample is not None:
            self.downsample = downsample

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += self.downsample(x) if hasattr(self, "downsample") else x
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, counts):
        super().__init__()
        self.width = 64
        self.conv1 = conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, count in enumerate(counts):
            layer = self.make_layer(block, 64 << i, count, 1 if i == 0 else 2)
            setattr(self, f"layer{i + 1}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, 1000)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(
                    module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)

    def make_layer(self, block, planes, count, stride):
        out = planes * block.expansion
        downsample = None
        if stride != 1 or self.width != out:
            downsample = nn.Sequential(
                conv(self.width, out, 1, stride), nn.BatchNorm2d(out))
        blocks = [block(self.width, planes, stride, downsample)]
        self.width = out
        blocks += [block(out, planes, 1, None) for _ in range(1, count)]
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class VGG(nn.Module):
    def __init__(self, groups, has_batch_norm):
        super().__init__()
        layers, inputs = [], 3
        for planes, count in zip([64, 128, 256, 512, 512], groups):
            for _ in range(count):
                layers.append(nn.Conv2d(inputs, planes, 3, padding=1))
                if has_batch_norm:
                    layers.append(nn.BatchNorm2d(planes))
                layers.append(nn.ReLU(inplace=True))
                inputs = planes
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(p=0.5),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(p=0.5),
            nn.Linear(4096, 1000))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(
                    module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.constant_(module.bias, 0)

    def forward(self, x):
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


class TheModelClass(nn.Module):
    def __init__(self, in_channels=3, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(F.relu(self.fc2(x)))


class MyModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 5)

    def forward(self, x):
        return self.fc(x)


class MLP(nn.Module):
    def __init__(self, in_features=784, num_classes=10):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(in_features, 256), nn.ReLU(),
            nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, num_classes))

    def forward(self, x):
        return self.layers(x)


RESNETS = {
    "resnet18": (BasicBlock, [2, 2, 2, 2]),
    "resnet34": (BasicBlock, [3, 4, 6, 3]),
    "resnet50": (Bottleneck, [3, 4, 6, 3]),
    "resnet101": (Bottleneck, [3, 4, 23, 3]),
    "resnet152": (Bottleneck, [3, 8, 36, 3]),
}
VGGS = {
    "vgg11": [1, 1, 2, 2, 2],
    "vgg13": [2, 2, 2, 2, 2],
    "vgg16": [2, 2, 3, 3, 3],
    "vgg19": [2, 2, 4, 4, 4],
}


def make_model(name, num_classes=1000, in_channels=3):
    """As `lockstep::make_model`: built whole, then the ends are replaced."""
    if name in RESNETS:
        net = ResNet(*RESNETS[name])
        if in_channels != 3:
            net.conv1 = nn.Conv2d(in_channels, 64, kernel_size=7, stride=2,
                                  padding=3, bias=False)
        if num_classes != 1000:
            net.fc = nn.Linear(net.fc.in_features, num_classes)
        return net
    if name.removesuffix("_bn") in VGGS:
        net = VGG(VGGS[name.removesuffix("_bn")], name.endswith("_bn"))
        if in_channels != 3:
            net.features[0] = nn.Conv2d(in_channels, 64, 3, padding=1)
        if num_classes != 1000:
            net.classifier[6] = nn.Linear(4096, num_classes)
        return net
    if name == "TheModelClass":
        return TheModelClass(in_channels, num_classes)
    if name == "mlp":
        return MLP(in_channels * 28 * 28, num_classes)
    if name == "MyModule":
        return MyModule()
    raise ValueError(name)
