# SPDX-License-Identifier: BSD-3-Clause
"""The toy loop of PyTorch's data-parallel tutorial, on torch 2.13.

    data_random.py FOLDER

For each seed S of 0, 1 and 1234: writes FOLDER/S.bin, the float32 batches of
three epochs of DataLoader(RandomDataset(5, 100), batch_size=30, shuffle=True),
then one draw of torch.rand(1), so that the generator's place is seen, too.
"""

import pathlib
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.data = torch.randn(length, size)

    def __getitem__(self, index):
        return self.data[index]

    def __len__(self):
        return len(self.data)


for seed in (0, 1, 1234):
    torch.manual_seed(seed)
    loader = DataLoader(RandomDataset(5, 100), batch_size=30, shuffle=True)
    with open(pathlib.Path(sys.argv[1]) / f"{seed}.bin", "wb") as file:
        for _ in range(3):
            for batch in loader:
                file.write(batch.numpy().tobytes())
        file.write(torch.rand(1).numpy().tobytes())
