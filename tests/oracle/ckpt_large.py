# SPDX-License-Identifier: BSD-3-Clause
"""Reads a large checkpoint with zipfile and torch 2.13: ckpt_large.py FILE"""
import sys
import zipfile

import torch

with zipfile.ZipFile(sys.argv[1]) as archive:
    damaged = archive.testzip()
    print("zipfile", damaged or "ok")
state = torch.load(sys.argv[1], weights_only=True, mmap=True)
for name, tensor in state.items():
    print(name, tensor.numel(), int(tensor[0]), int(tensor[-1]))
