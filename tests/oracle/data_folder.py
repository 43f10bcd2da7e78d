# SPDX-License-Identifier: BSD-3-Clause
"""A folder of pictures as torchvision reads it, from its definitions.

    data_folder.py FOLDER SIZE

Writes pictures to FOLDER/animals/CLASS/..., and to FOLDER/images.bin (float32)
what `ImageFolder` with Resize(SIZE, antialias=True) and CenterCrop(SIZE) of
tensors, then division by 255 and ImageNet's mean and std, gives for all of them.
Prints "label path" in the dataset's order, paths from FOLDER.
"""

import os
import pathlib
import sys

import numpy
import torch
from PIL import Image

FOLDER = pathlib.Path(sys.argv[1])
SIZE = int(sys.argv[2])
SIZES = [(40, 61), (60, 41), (33, 33), (3, 900), (640, 48), (SIZE, SIZE)]
NAMES = ["cat/b.png", "cat/a.PNG", "cat/deep/er/z.png", "cat/deep/y.png",
         "Dog/1.png", "\u732b/\u56fe.png"]


def make():
    random = numpy.random.default_rng(11)
    for name, (height, width) in zip(NAMES, SIZES):
        path = FOLDER / "animals" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (height, width, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(path, format="PNG")
    (FOLDER / "animals/cat/notes.txt").write_text("no picture")
    (FOLDER / "animals/.hidden").mkdir()


def fitted(image):
    height, width = image.shape[1:]
    short, long = min(height, width), max(height, width)
    other = int(SIZE * long / short)
    sizes = (other, SIZE) if height > width else (SIZE, other)
    image = torch.nn.functional.interpolate(
        image[None].float(), size=sizes, mode="bilinear", antialias=True)[0]
    image = image.round().clamp(0, 255)
    top = int(round((sizes[0] - SIZE) / 2.0))
    left = int(round((sizes[1] - SIZE) / 2.0))
    return image[:, top:top + SIZE, left:left + SIZE]


def main():
    make()
    root = FOLDER / "animals"
    classes = sorted(e.name for e in os.scandir(root)
                     if e.is_dir() and not e.name.startswith("."))
    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    images = []
    for label, name in enumerate(classes):
        for folder, _, files in sorted(os.walk(root / name)):
            for file in sorted(files):
                path = pathlib.Path(folder) / file
                if path.suffix.lower() != ".png":
                    continue
                pixels = torch.from_numpy(numpy.array(Image.open(path)))
                images.append((fitted(pixels.permute(2, 0, 1)) / 255 - mean) / std)
                print(label, path.relative_to(FOLDER))
    (FOLDER / "images.bin").write_bytes(torch.stack(images).numpy().tobytes())


main()
