# SPDX-License-Identifier: BSD-3-Clause
"""Peer: Python's DataLoader over FashionMNIST, as torchvision's examples do.

One sample at a time: ToTensor's and Normalize's arithmetic (without the detour
through an image object, so cheaper than torchvision), default collation,
shuffled by DistributedSampler, batches of 256. A round is an epoch; the round
"first" goes from the files to the first batch.
"""

import argparse
import gzip
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from serve import serve

FOLDER = "/usr/share/datasets/fashion-mnist/"


def read_idx(name, offset):
    with gzip.open(FOLDER + name) as file:
        return numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=offset)


class FashionMNIST(Dataset):
    def __init__(self):
        self.images = torch.from_numpy(
            read_idx("train-images-idx3-ubyte.gz", 16).copy()).view(-1, 28, 28)
        self.targets = torch.from_numpy(
            read_idx("train-labels-idx1-ubyte.gz", 8).copy()).long()
        self.mean = torch.tensor([0.2860]).view(-1, 1, 1)
        self.std = torch.tensor([0.3530]).view(-1, 1, 1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index].unsqueeze(0).to(torch.float32).div_(255)
        return image.sub_(self.mean).div_(self.std), int(self.targets[index])


def make_loader(workers):
    data = FashionMNIST()
    sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=True)
    return DataLoader(data, batch_size=256, sampler=sampler,
                      num_workers=workers, persistent_workers=workers > 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    workers = parser.parse_args().workers
    loader = make_loader(workers)

    checksum = 0
    for place, (images, targets) in enumerate(loader):
        total = int(images.view(torch.int32).sum(dtype=torch.int64))
        checksum += (total + int(targets.sum())) * (place + 1)

    def run_round(what):
        start = time.perf_counter()
        if what == "first":
            next(iter(make_loader(workers)))
            return {"first_ms": 1e3 * (time.perf_counter() - start)}
        touched = 0.0
        for images, _ in loader:
            touched += float(images[:, 0, 0, 0].sum(dtype=torch.float64))
        seconds = time.perf_counter() - start
        return {"images_per_s": len(loader.dataset) / seconds, "touched": touched}

    serve(run_round, checksum=str(checksum % 2**64))


if __name__ == "__main__":
    main()
