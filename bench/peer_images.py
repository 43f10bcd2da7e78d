# SPDX-License-Identifier: BSD-3-Clause
"""Peer: torchvision's ImageFolder and Python's DataLoader, in batches of 64.

    peer_images.py FOLDER WORKERS train|test

A round is an epoch: RandomResizedCrop(224), flip, normalise; or Resize(224),
CenterCrop(224), normalise.
"""

import sys
import time

import torch
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

from serve import serve

SIZE = 224
STEPS = {"train": [transforms.RandomResizedCrop(SIZE),
                   transforms.RandomHorizontalFlip()],
         "test": [transforms.Resize(SIZE), transforms.CenterCrop(SIZE)]}


def main():
    folder, workers, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.manual_seed(0)
    data = ImageFolder(folder, transforms.Compose([
        *STEPS[kind], transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    loader = DataLoader(data, batch_size=64, num_workers=workers,
                        persistent_workers=workers > 0)

    def run_round(_):
        start = time.perf_counter()
        total = 0.0
        for images, _ in loader:
            total += images.mean().item() * len(images)
        seconds = time.perf_counter() - start
        return {"images_per_s": len(data) / seconds, "mean": total / len(data)}

    serve(run_round, mean=run_round("")["mean"])


if __name__ == "__main__":
    main()
