# SPDX-License-Identifier: BSD-3-Clause
"""Measures pictures: walk 3 of docs/own_data.md with torchvision.

    values_torchvision.py points.csv PHOTO...
"""
import csv
import pathlib
import sys

import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split
from torchmetrics.regression import R2Score
from torchvision import transforms

SIZE, EPOCHS, BATCH = 32, 30, 16
TO_INPUT = transforms.Compose([
    transforms.Resize(SIZE), transforms.CenterCrop(SIZE), transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])


class Table(Dataset):
    def __init__(self, path):
        self.folder = path.parent
        with open(path, encoding="utf-8") as file:
            header, *self.rows = csv.reader(file)
        self.names = header[1:]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        path, *values = self.rows[i]
        image = Image.open(self.folder / path).convert("RGB")
        return TO_INPUT(image), torch.tensor([float(x) for x in values])


def outputs_of(model, loader):
    model.eval()
    with torch.no_grad():
        pairs = [(model(images), values) for images, values in loader]
    return (torch.cat(column) for column in zip(*pairs))


def train(model, loader, test_loader, path):
    optimizer = torch.optim.Adam(
        model.parameters(), lr=0.001, weight_decay=1e-4)
    best = float("inf")
    for epoch in range(EPOCHS):
        model.train()
        for images, values in loader:
            loss = nn.functional.mse_loss(model(images), values)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        outputs, values = outputs_of(model, test_loader)
        error = (outputs - values).abs().mean().item()
        print(f"epoch {epoch + 1}: mean absolute error {error:.4f}")
        if error < best:
            best = error
            torch.save(model.state_dict(), path)


def judge(model, names, loader):
    outputs, values = outputs_of(model, loader)
    for i, name in enumerate(names):
        difference = outputs[:, i] - values[:, i]
        mse = difference.square().mean()
        r2 = R2Score()(outputs[:, i], values[:, i])
        print(f"{name:16} mae {difference.abs().mean():.4f}  mse {mse:.4f}  "
              f"rmse {mse.sqrt():.4f}  r2 {r2:.4f}")


def predict(model, names, photos):
    writer = csv.writer(sys.stdout)
    writer.writerow(["path", *names])
    model.eval()
    with torch.no_grad():
        for photo in photos:
            image = TO_INPUT(Image.open(photo).convert("RGB"))
            writer.writerow([photo, *model(image[None])[0].tolist()])


def main():
    table, photos = pathlib.Path(sys.argv[1]), sys.argv[2:]
    path = pathlib.Path("model_best.pth.tar")
    torch.manual_seed(0)
    data = Table(table)
    train_data, test_data = random_split(data, [0.8, 0.2])
    test_loader = DataLoader(test_data, BATCH)
    model = torchvision.models.resnet18(num_classes=len(data.names))
    train(model, DataLoader(train_data, BATCH, shuffle=True), test_loader, path)
    model.load_state_dict(torch.load(path))
    judge(model, data.names, test_loader)
    predict(model, data.names, photos)


if __name__ == "__main__":
    main()
