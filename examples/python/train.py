#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a perceptron on FashionMNIST with nothing but PyTorch.

A plain script: it knows nothing of Lockstep. Flags and checkpoints are those
that most training scripts have, so either program goes on where the other
stopped, with the same bits:
  train.py --epochs 1 --threads 1
  lockstep train --model mlp --threads 1 --epochs 2 --resume checkpoint.pth.tar
  train.py --epochs 3 --threads 1 --resume runs/.../checkpoint.pth.tar
"""
import argparse
import gzip
import pathlib
import shutil

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="PyTorch FashionMNIST training")
parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
parser.add_argument("--epochs", default=20, type=int)
parser.add_argument("--batch-size", default=128, type=int)
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--weight-decay", default=1e-4, type=float)
parser.add_argument("--lr-step-size", default=30, type=int)
parser.add_argument("--lr-gamma", default=0.1, type=float)
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("--threads", default=0, type=int)
parser.add_argument("--max-train-samples", type=int)
parser.add_argument("--max-eval-samples", type=int)
parser.add_argument("--resume", help="checkpoint to go on from")
parser.add_argument("--output", default=".", help="folder of the checkpoints")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(784, 256), nn.ReLU(),
            nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, images):
        return self.layers(images)


def read_idx(path, header):
    with gzip.open(path) as file:
        file.read(header)
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)


def fashion_mnist(folder, name, samples):
    images = read_idx(folder / f"{name}-images-idx3-ubyte.gz", 16)
    labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz", 8)
    images = images.view(-1, 1, 28, 28)[:samples].float().div(255)
    return TensorDataset(
        images.sub(0.2860).div(0.3530), labels[:samples].long())


def train(loader, model, criterion, optimizer, epoch):
    model.train()
    for i, (images, target) in enumerate(loader):
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"Epoch: [{epoch}][{i}/{len(loader)}]\tLoss {loss.item():.9g}")


def validate(loader, model):
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, target in loader:
            correct += (model(images).argmax(1) == target).sum().item()
    return 100 * correct / len(loader.dataset)


def main():
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = MLP()
    optimizer = torch.optim.SGD(
        model.parameters(), args.lr,
        momentum=args.momentum, weight_decay=args.weight_decay)
    scheduler = torch.optim.lr_scheduler.StepLR(
        optimizer, step_size=args.lr_step_size, gamma=args.lr_gamma)
    start_epoch, best_acc1 = 0, 0.0
    if args.resume:
        checkpoint = torch.load(args.resume)
        start_epoch = checkpoint["epoch"]
        best_acc1 = checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        print(f"=> loaded '{args.resume}' (epoch {start_epoch})")

    folder = pathlib.Path(args.data_dir)
    train_data = fashion_mnist(folder, "train", args.max_train_samples)
    test_data = fashion_mnist(folder, "t10k", args.max_eval_samples)
    # The order of an epoch depends on the seed and on the epoch alone.
    sampler = DistributedSampler(
        train_data, num_replicas=1, rank=0, seed=args.seed)
    train_loader = DataLoader(train_data, args.batch_size, sampler=sampler)
    test_loader = DataLoader(test_data, args.batch_size)

    output = pathlib.Path(args.output)
    output.mkdir(parents=True, exist_ok=True)
    for epoch in range(start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        train(train_loader, model, nn.CrossEntropyLoss(), optimizer, epoch)
        acc1 = validate(test_loader, model)
        scheduler.step()
        print(f" * Acc@1 {acc1:.3f}")
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        torch.save({
            "epoch": epoch + 1,
            "arch": "mlp",
            "state_dict": model.state_dict(),
            "best_acc1": best_acc1,
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }, output / "checkpoint.pth.tar")
        if is_best:
            shutil.copyfile(
                output / "checkpoint.pth.tar", output / "model_best.pth.tar")


if __name__ == "__main__":
    main()
