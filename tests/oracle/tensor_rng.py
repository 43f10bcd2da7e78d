# SPDX-License-Identifier: BSD-3-Clause
"""Draws three numbers from a saved generator state; saves the state after.

Arguments: file to read, file to write (5056 raw bytes each).
"""
import sys

import numpy
import torch

state = torch.from_numpy(numpy.fromfile(sys.argv[1], dtype=numpy.uint8))
torch.set_rng_state(state)
for _ in range(3):
    print(torch.randint(0, 2**62, ()).item())
torch.get_rng_state().numpy().tofile(sys.argv[2])
