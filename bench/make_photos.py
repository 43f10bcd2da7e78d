# SPDX-License-Identifier: BSD-3-Clause
"""Writes pictures that decode about as slowly as photographs.

    make_photos.py FOLDER COUNT [jpg|png]

Clouds of all sizes (each octave half as strong as the one before) under a few
sharp edges and grain, 500 x 375 pixels, in ten classes. Needs NumPy and Pillow.
"""

import pathlib
import sys

import numpy
from PIL import Image

SIZE = 500, 375


def picture(random):
    total = numpy.zeros((SIZE[1], SIZE[0], 3), dtype=numpy.float32)
    for octave in range(1, 9):
        side = 2 ** octave
        noise = random.integers(0, 256, (side, side, 3), dtype=numpy.uint8)
        layer = Image.fromarray(noise).resize(SIZE, Image.Resampling.BICUBIC)
        total += (numpy.asarray(layer, dtype=numpy.float32) - 128) / 1.5 ** octave
    for _ in range(6):
        left, top = random.integers(0, SIZE[0]), random.integers(0, SIZE[1])
        total[top:top + 90, left:left + 120] += random.integers(-60, 60, 3)
    total += random.normal(0, 5, (SIZE[1], SIZE[0], 1))  # grain
    return Image.fromarray(
        numpy.clip(total * 1.2 + 118, 0, 255).astype(numpy.uint8))


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    ending = sys.argv[3] if len(sys.argv) > 3 else "jpg"
    random = numpy.random.default_rng(0)
    for i in range(count):
        path = folder / f"class{i % 10}" / f"{i:05}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"quality": 92} if ending == "jpg" else {}
        picture(random).save(path, **options)


if __name__ == "__main__":
    main()
