# SPDX-License-Identifier: BSD-3-Clause
"""Normalising and augmentation, done by torch 2.13 operators.

    data_transforms.py FOLDER

normalise.bin: all 256 pixel values under several (mean, std), as tensors and
as numbers. augment.bin: FashionMNIST's first 200 training images, cropped from
the image padded by 4 and mirrored, as Philox chooses for seed 2^33 + 5, in
epochs 0 and 2^32 + 1. Philox is written here from its paper, with plain ints.
"""

import gzip
import pathlib
import sys

import numpy
import torch

MASK = 2**32 - 1
SETTINGS = ((0.2860, 0.3530), (0.1307, 0.3081), (0.5, 0.5), (0.485, 0.229))


def philox(counter, key):
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & MASK,
                   (a >> 32) ^ counter[3] ^ key[1], a & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def augment(image, seed, epoch, index):
    words = philox([index & MASK, index >> 32, epoch & MASK, epoch >> 32],
                   [seed & MASK, seed >> 32])
    top, left = words[0] * 9 >> 32, words[1] * 9 >> 32
    padded = torch.nn.functional.pad(image, (4, 4, 4, 4))
    cropped = padded[top:top + 28, left:left + 28]
    return cropped.flip(1) if words[2] >> 31 else cropped


folder = pathlib.Path(sys.argv[1])
pixels = torch.arange(256, dtype=torch.uint8)
with open(folder / "normalise.bin", "wb") as file:
    for mean, std in SETTINGS:
        numbers = (pixels.float() / 255 - mean) / std
        tensors = pixels.float().div(255).sub(torch.tensor(mean)).div(torch.tensor(std))
        assert numbers.equal(tensors)
        file.write(numbers.numpy().tobytes())

with gzip.open("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz") as source:
    data = numpy.frombuffer(source.read(16 + 200 * 784), numpy.uint8, offset=16)
images = torch.from_numpy(data.copy()).view(200, 28, 28)
with open(folder / "augment.bin", "wb") as file:
    for epoch in (0, 2**32 + 1):
        for index in range(200):
            image = augment(images[index], 2**33 + 5, epoch, index)
            file.write(((image.float() / 255 - 0.2860) / 0.3530).numpy().tobytes())
