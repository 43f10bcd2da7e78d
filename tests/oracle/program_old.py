# SPDX-License-Identifier: BSD-3-Clause
"""Trains testdata/programs/torch26.pt2 as Python loads it:

program_old.py   prints the bits of the loss of each of 5 steps, as hexadecimal
"""
import logging
import pathlib
import struct
import warnings

import torch
from torch.nn import functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)  # "this version of file is deprecated"


def main():
    torch.set_num_threads(1)
    path = pathlib.Path(__file__).resolve().parents[2] / "testdata/programs/torch26.pt2"
    net = torch.export.load(path).module()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(1)
    for step in range(5):
        x = (torch.arange(15 + 5 * step) * 7 % 9).view(-1, 5)
        loss = F.cross_entropy(net(x), x[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(struct.pack(">f", loss.item()).hex())


main()
