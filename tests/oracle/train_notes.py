# SPDX-License-Identifier: BSD-3-Clause
"""The two checkpoints of the source notes, and how their runs go on.

    train_notes.py FOLDER MODEL

torch 2.13. Trains MODEL (resnet18 or mlp) on 64 images for four epochs, saves
after the first, and prints the losses of the other three, one hexadecimal float
per line: first of the script without a scheduler, whose files are miou.pth.tar
and miou_wrapped.pth.tar, then of the one that halves the rate after each epoch,
with model.pth.tar.
"""
import pathlib
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from models_reference import make_model
from train_layouts import DATA, fashion_mnist

EPOCHS = 4


def save_miou(folder, epoch, model, optimizer, _):
    """N24: `epoch` is the next one; the scheduler is forgotten."""
    for name, net in (("miou", model), ("miou_wrapped", nn.DataParallel(model))):
        torch.save({"epoch": epoch + 1, "best_mIoU": 0.61,
                    "state_dict": net.state_dict(),
                    "optimizer": optimizer.state_dict()},
                   folder / f"{name}.pth.tar")


def save_model(folder, epoch, model, optimizer, scheduler):
    """N25: `epoch` is the last one done."""
    torch.save({"epoch": epoch, "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict()},
               folder / "model.pth.tar")


def train(folder, name, save, gamma):
    torch.manual_seed(0)
    model = make_model(name, 10, 1)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = None
    if gamma != 1:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma)
    data = fashion_mnist(DATA, "train", 64)
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    loader = DataLoader(data, 32, sampler=sampler)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for images, target in loader:
            loss = nn.functional.cross_entropy(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if epoch > 0:
                print(loss.item().hex())
        if scheduler:
            scheduler.step()
        if epoch == 0:
            save(folder, epoch, model, optimizer, scheduler)


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    train(folder, sys.argv[2], save_miou, gamma=1)
    train(folder, sys.argv[2], save_model, gamma=0.5)


if __name__ == "__main__":
    main()
