# SPDX-License-Identifier: BSD-3-Clause
"""First batches of shuffled FashionMNIST from Python's loader, torch 2.13.

    data_fashion.py FOLDER

Writes FOLDER/images.bin (float32) and FOLDER/targets.bin (int64): the first 5
batches of 64 in epochs 0 and 1 with seed 7, and the last batch of epoch 1.
Pixels are (x.float() / 255 - 0.2860) / 0.3530, as three operators.
"""

import gzip
import pathlib
import sys

import numpy
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

SOURCE = pathlib.Path("/usr/share/datasets/fashion-mnist")


def read_idx(name, offset):
    with gzip.open(SOURCE / name) as file:
        array = numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=offset)
    return torch.from_numpy(array.copy())


class FashionMNIST(Dataset):
    def __init__(self):
        self.images = read_idx("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)
        self.targets = read_idx("train-labels-idx1-ubyte.gz", 8).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        pixels = self.images[index]
        return (pixels.float() / 255 - 0.2860) / 0.3530, self.targets[index]


data = FashionMNIST()
sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=True, seed=7)
loader = DataLoader(data, batch_size=64, sampler=sampler)
folder = pathlib.Path(sys.argv[1])
with open(folder / "images.bin", "wb") as images, \
        open(folder / "targets.bin", "wb") as targets:
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        for place, batch in enumerate(loader):
            if place < 5 or (epoch == 1 and place == len(loader) - 1):
                images.write(batch[0].numpy().tobytes())
                targets.write(batch[1].numpy().tobytes())
            elif epoch == 0:
                break
