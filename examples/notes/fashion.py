# SPDX-License-Identifier: BSD-3-Clause
"""ResNet18 on FashionMNIST, on one device or many: fashion.py FOLDER IMAGES"""
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, models, transforms

torch.manual_seed(0)
folder, count = sys.argv[1], int(sys.argv[2])
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
transform = transforms.Compose([
    transforms.ToTensor(),
    transforms.Normalize((0.2860,), (0.3530,)),
])
train_set = datasets.FashionMNIST(folder, train=True, transform=transform)
val_set = datasets.FashionMNIST(folder, train=False, transform=transform)
train_loader = DataLoader(Subset(train_set, range(count)), batch_size=64)
val_loader = DataLoader(Subset(val_set, range(count)), batch_size=64)
net = models.resnet18()
net.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
net.fc = nn.Linear(512, 10)
model = nn.DataParallel(net)
model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
train_losses, val_losses, accuracies = [], [], []


def train():
    model.train()
    total = 0
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    train_losses.append(total / count)


def val():
    model.eval()
    total, correct = 0, 0
    with torch.no_grad():
        for images, labels in val_loader:
            images, labels = images.to(device), labels.to(device)
            output = model(images)
            total += criterion(output, labels).item() * len(labels)
            correct += (output.argmax(1) == labels).sum().item()
    val_losses.append(total / count)
    accuracies.append(100 * correct / count)


print(sum(p.numel() for p in model.parameters()), "parameters")
for epoch in range(1, 4):
    train()
    val()
    print("epoch", epoch, "done")
print(len(train_losses), len(val_losses), len(accuracies))
print(train_losses[-1] < train_losses[0])
torch.save(model.module.state_dict(), "fashion.pth")
