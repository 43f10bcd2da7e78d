# SPDX-License-Identifier: BSD-3-Clause
"""Resized images, by torch 2.13's F.interpolate.

    data_resize.py FOLDER

resize.bin: two FashionMNIST images, normalised, in each of SIZES; then a random
image of 3 x 17 x 40 in the same sizes, which random.bin holds before.
"""

import gzip
import pathlib
import sys

import numpy
import torch
from torch.nn.functional import interpolate

SIZES = ((32, 32), (64, 64), (224, 224), (28, 28), (14, 14), (9, 31), (1, 1),
         (299, 5))

folder = pathlib.Path(sys.argv[1])
with gzip.open("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz") as source:
    data = numpy.frombuffer(source.read(16 + 2 * 784), numpy.uint8, offset=16)
images = torch.from_numpy(data.copy()).view(2, 1, 28, 28)
images = (images.float() / 255 - 0.2860) / 0.3530
torch.manual_seed(0)
noise = torch.randn(1, 3, 17, 40)
(folder / "random.bin").write_bytes(noise.numpy().tobytes())
with open(folder / "resize.bin", "wb") as file:
    for batch in (images, noise):
        for size in SIZES:
            resized = interpolate(batch, size=size, mode="bilinear", antialias=True)
            file.write(resized.numpy().tobytes())
