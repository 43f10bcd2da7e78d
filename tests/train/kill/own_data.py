# SPDX-License-Identifier: BSD-3-Clause
"""Small data of one's own for runs that are killed: PNG files of seeded noise.

write_all(FOLDER) makes FOLDER/classes (a folder for each of three classes),
FOLDER/masks (images and masks), FOLDER/values/values.csv (pictures and two
numbers) and FOLDER/net.pt2 (a net of Python's for the classes).
"""

import pathlib
import random
import shutil
import struct
import zlib

PICTURES = 90
PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "testdata/programs/pictures.pt2"


def png(width, height, channels, pixels):
    """A PNG file of 1 (grey) or 3 (RGB) bytes a pixel."""
    def chunk(name, data):
        checked = name + data
        return (struct.pack(">I", len(data)) + checked
                + struct.pack(">I", zlib.crc32(checked)))
    stride = width * channels
    rows = b"".join(b"\0" + pixels[y * stride:(y + 1) * stride]
                    for y in range(height))
    header = struct.pack(
        ">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_picture(path, rng, label):
    """A picture of any size whose noise is around a colour of its class."""
    width, height = rng.randint(12, 40), rng.randint(12, 40)
    pixels = bytearray(rng.randbytes(3 * width * height))
    pixels[label::3] = bytes(128 + byte // 2 for byte in pixels[label::3])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(width, height, 3, pixels))
    return width, height


def write_all(folder):
    rng = random.Random(36)
    table = ["path,x,y"]
    (folder / "masks" / "masks").mkdir(parents=True)
    for i in range(PICTURES):
        label = i % 3
        write_picture(folder / "classes" / "abc"[label] / f"{i}.png", rng, label)
        write_picture(folder / "values" / f"{i}.png", rng, label)
        table.append(f"{i}.png,{label / 2},{rng.random():.4f}")
        width, height = write_picture(
            folder / "masks" / "images" / f"{i}.png", rng, label)
        mask = bytes(byte % 3 for byte in rng.randbytes(width * height))
        (folder / "masks" / "masks" / f"{i}.png").write_bytes(
            png(width, height, 1, mask))
    shutil.copy(PROGRAM, folder / "net.pt2")
    (folder / "values" / "values.csv").write_text("\n".join(table) + "\n")
