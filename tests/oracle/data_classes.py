# SPDX-License-Identifier: BSD-3-Clause
"""Three classes of pictures that are easy to tell apart: data_classes.py FOLDER N

N pictures of each class, of different sizes and kinds, mostly of one colour.
"""

import pathlib
import sys

import numpy
from PIL import Image

FOLDER, COUNT = pathlib.Path(sys.argv[1]), int(sys.argv[2])
COLOURS = {"blue": (30, 60, 220), "red": (210, 40, 30), "\u7eff": (40, 200, 60)}
random = numpy.random.default_rng(5)
for name, colour in COLOURS.items():
    (FOLDER / name).mkdir(parents=True)
    for i in range(COUNT):
        height, width = random.integers(30, 90, 2)
        pixels = random.normal(colour, 30, (height, width, 3))
        image = Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))
        image.save(FOLDER / name / f"{i}.{'png' if i % 2 else 'jpg'}")
