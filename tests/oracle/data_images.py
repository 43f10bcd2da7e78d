# SPDX-License-Identifier: BSD-3-Clause
"""Image files of many kinds, and the pixels that Pillow reads from them.

    data_images.py FOLDER

Writes FOLDER/files/NAME and, for each, FOLDER/pixels/NAME.rgb and NAME.l (bytes,
[H, W, C]) after `ImageOps.exif_transpose`. Prints "NAME height width".
"""

import pathlib
import sys

import numpy
from PIL import Image, ImageOps

FOLDER = pathlib.Path(sys.argv[1])
HEIGHT, WIDTH = 37, 51


def noise(*shape):
    random = numpy.random.default_rng(3)
    small = random.integers(0, 256, (7, 9, *shape[2:]), dtype=numpy.uint8)
    rows = numpy.arange(shape[0]) * 7 // shape[0]
    columns = numpy.arange(shape[1]) * 9 // shape[1]
    return small[rows][:, columns]


def picture(mode):
    channels = {"L": (), "P": (3,), "1": (), "LA": (2,), "CMYK": (4,),
                "RGBA": (4,), "RGB": (3,), "YCbCr": (3,)}[mode]
    array = noise(HEIGHT, WIDTH, *channels)
    if mode == "P":
        return Image.fromarray(array).quantize(17)
    if mode == "1":
        return Image.fromarray(array).convert("1")
    return Image.fromarray(array, mode) if mode in ("CMYK", "YCbCr") \
        else Image.fromarray(array)


def files():
    rgb = picture("RGB")
    for sampling in range(3):
        yield f"sampled{sampling}.jpg", rgb, {"subsampling": sampling}
    yield "progressive.jpg", rgb, {"progressive": True, "quality": 60}
    yield "best.jpg", rgb, {"quality": 100}
    yield "grey.jpg", picture("L"), {}
    yield "cmyk.jpg", picture("CMYK"), {}
    for mode in ("L", "P", "1", "LA", "RGBA", "RGB"):
        yield f"{mode}.png", picture(mode), {}
    yield "clear_palette.png", picture("P"), {"transparency": 3}
    yield "clear_grey.png", picture("L"), {"transparency": 9}
    for bits in (1, 2, 4):
        yield f"palette{bits}.png", rgb.quantize(2 ** bits), {"bits": bits}
    for lossless in (False, True):
        yield f"lossless{lossless}.webp", rgb, {"lossless": lossless}
        yield f"alpha{lossless}.webp", picture("RGBA"), {"lossless": lossless}
    for ending in ("jpg", "png", "webp"):
        for turn in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = turn
            yield f"turned{turn}.{ending}", rgb, {"exif": exif}
    exif = Image.Exif()
    exif[0x0112] = 9
    yield "badly_turned.jpg", rgb, {"exif": exif}
    yield "one_pixel.png", rgb.crop((0, 0, 1, 1)), {}
    yield "one_row.jpg", rgb.crop((0, 0, 40, 1)), {}


def main():
    for folder in ("files", "pixels"):
        (FOLDER / folder).mkdir()
    for name, image, options in files():
        path = FOLDER / "files" / name
        image.save(path, **options)
        read = ImageOps.exif_transpose(Image.open(path))
        for mode in ("RGB", "L"):
            pixels = numpy.asarray(read.convert("RGB").convert(mode))
            (FOLDER / "pixels" / f"{name}.{mode.lower()}").write_bytes(
                pixels.tobytes())
        print(name, read.height, read.width)


main()
