# SPDX-License-Identifier: BSD-3-Clause
"""Trains on FashionMNIST as a Python script would; prints each step's loss.

torch 2.13. Arguments: model, seed, threads, samples, batch size, epochs, data
folder, "bf16" or "off", precision of float32 matrix products. One line per
step: the loss as a hexadecimal float, so no bit is lost.
"""
import gzip
import pathlib
import sys

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from models_reference import make_model


def read_idx(path, header):
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


class FashionMNIST(Dataset):
    def __init__(self, folder, samples):
        images = read_idx(folder / "train-images-idx3-ubyte.gz", 16)
        self.images = images.view(-1, 1, 28, 28)[:samples]
        labels = read_idx(folder / "train-labels-idx1-ubyte.gz", 8)
        self.labels = labels[:samples].long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].float().div(255)
        return image.sub(0.2860).div(0.3530), self.labels[index]


def main():
    name, seed, threads, samples, batch, epochs, folder, amp, precision = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_float32_matmul_precision(precision)
    torch.manual_seed(int(seed))
    model = make_model(name, num_classes=10, in_channels=1)
    data = FashionMNIST(pathlib.Path(folder), int(samples))
    sampler = DistributedSampler(
        data, num_replicas=1, rank=0, shuffle=True, seed=int(seed))
    loader = DataLoader(data, batch_size=int(batch), sampler=sampler)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    criterion = torch.nn.CrossEntropyLoss()
    model.train()
    for epoch in range(int(epochs)):
        sampler.set_epoch(epoch)
        for images, targets in loader:
            with torch.autocast("cpu", torch.bfloat16, enabled=amp == "bf16"):
                loss = criterion(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())


if __name__ == "__main__":
    main()
