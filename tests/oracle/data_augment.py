# SPDX-License-Identifier: BSD-3-Clause
"""What torchvision makes of small images: tests/data/golden/augment.bin.

    data_augment.py FILE [SIDE]

torchvision (0.29.1 on the CPU) is not needed by the tests; they read
the file. It begins with images and goes on with cases, each a line of text and
the bytes of an image, [H, W, C]:

    image H W C
    case NAME NUMBER... : IMAGE H W C
    line WORD... (numbers only, no bytes)

IMAGE counts the images. With SIDE there is one more image, of that size.
"""

import random
import sys

import torch
import torchvision
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional import _geometry as geometry
from torchvision import tv_tensors

out = open(sys.argv[1], "wb")
images = []


def hwc(image):
    return image.permute(1, 2, 0).contiguous().numpy().tobytes()


def add_image(channels, height, width, smooth=False):
    generator = torch.Generator().manual_seed(100 + len(images))
    if smooth:
        y = torch.arange(height)[:, None] / height
        x = torch.arange(width)[None] / width
        planes = [(0.5 + 0.4 * torch.sin(4 * x + (c + 1) * 3 * y)) * 255
                  for c in range(channels)]
        image = torch.stack(planes).to(torch.uint8)
    else:
        image = torch.randint(0, 256, (channels, height, width),
                              dtype=torch.uint8, generator=generator)
    images.append(image)
    out.write(f"image {height} {width} {channels}\n".encode() + hwc(image))


def line(*words):
    out.write((" ".join(["line", *map(str, words)]) + "\n").encode())


def case(name, numbers, function, least=1):
    for i, image in enumerate(images):
        if min(image.shape[1:]) < least:
            continue
        result = function(image)
        channels, height, width = result.shape
        words = " ".join(repr(n) for n in numbers)
        out.write(f"case {name} {words} : {i} {height} {width} {channels}\n"
                  .encode() + hwc(result))


def mode(bilinear):
    return InterpolationMode.BILINEAR if bilinear else InterpolationMode.NEAREST


def colors():
    for factor in (0.0, 0.35, 0.999, 1.7, 3.25):
        case("brightness", [factor], lambda x: F.adjust_brightness(x, factor))
        case("contrast", [factor], lambda x: F.adjust_contrast(x, factor))
        case("saturation", [factor], lambda x: F.adjust_saturation(x, factor))
        case("sharpness", [factor], lambda x: F.adjust_sharpness(x, factor))
    for turns in (-0.5, -0.2, 0.013, 0.25, 0.5):
        case("hue", [turns], lambda x: F.adjust_hue(x, turns))
    for bits in (0, 1, 4, 7, 8):
        case("posterize", [bits], lambda x: F.posterize(x, bits))
    for threshold in (0.0, 60.5, 128.0, 254.5, 255.0):
        case("solarize", [threshold], lambda x: F.solarize(x, threshold))
    case("autocontrast", [], F.autocontrast)
    case("equalize", [], F.equalize)
    case("invert", [], F.invert)
    case("grayscale", [], lambda x: x if x.shape[0] == 1 else
         F.rgb_to_grayscale(x, num_output_channels=3))
    for kernel, sigma in ((1, 1.0), (3, 0.1), (3, 2.0), (5, 0.7), (9, 3.0)):
        case("blur", [kernel, sigma],
             lambda x: F.gaussian_blur(x, [kernel, kernel], [sigma, sigma]),
             least=kernel // 2 + 1)


def moves():
    case("hflip", [], F.horizontal_flip)
    case("vflip", [], F.vertical_flip)
    for top, left, height, width in (
            (0, 0, 1, 1), (2, 1, 3, 4), (-2, -3, 5, 4), (3, 2, 9, 9), (-1, -1, 20, 20)):
        case("crop", [top, left, height, width],
             lambda x: F.crop(x, top, left, height, width))
    for left, top, right, bottom, fill in ((1, 1, 1, 1, 0), (0, 2, 3, 1, 77)):
        case("pad", [left, top, right, bottom, fill],
             lambda x: F.pad(x, [left, top, right, bottom], fill=fill))
    for top, left, height, width, to_h, to_w in (
            (0, 0, 1, 1, 4, 3), (1, 1, 4, 3, 4, 3), (0, 1, 5, 4, 8, 8),
            (2, 0, 4, 5, 3, 2), (1, 2, 3, 2, 11, 5)):
        for name, is_native in (("resized_crop", False), ("resized_crop_native", True)):
            # Native: in whole numbers, on processors with AVX2.
            geometry._do_native_uint8_resize_on_cpu = lambda _, way=is_native: way
            case(name, [top, left, height, width, to_h, to_w],
                 lambda x: F.resized_crop(x, top, left, height, width,
                                          [to_h, to_w], antialias=True),
                 least=1 if (top, left, height, width) == (0, 0, 1, 1) else 5)
    for angle in (-33.0, 7.5, 90.0, 180.0, 271.0):
        for bilinear, fill in ((0, 0), (1, 90)):
            case("rotate", [angle, bilinear, fill],
                 lambda x: F.rotate(x, angle, mode(bilinear), fill=[float(fill)]))
    for numbers in ((0.0, 2, -1, 1.0, 0.0, 0.0), (20.0, 0, 0, 1.0, 0.0, 0.0),
                    (-75.0, 1, 1, 0.8, 10.0, 0.0), (5.0, 0, 2, 1.3, -12.0, 25.0),
                    (0.0, 0, 0, 0.5, 0.0, 40.0)):
        angle, right, down, scale, shear_x, shear_y = numbers
        for bilinear, fill in ((0, 0), (1, 0), (1, 200)):
            case("affine", [*numbers, bilinear, fill],
                 lambda x: F.affine(x, angle, [right, down], scale,
                                    [shear_x, shear_y], mode(bilinear),
                                    fill=[float(fill)]))
    for top, left, height, width, value in (
            (0, 0, 1, 1, 0), (2, 1, 3, 4, 0), (0, 2, 5, 3, 9), (4, 0, 1, 5, 255)):
        fill = torch.tensor(value, dtype=torch.uint8)
        case("erase", [top, left, height, width, value],
             lambda x: F.erase(x, top, left, height, width, fill),
             least=height + top if height + top > 1 else 1)


NAMES = {"Identity": "identity", "ShearX": "shear_x", "ShearY": "shear_y",
         "TranslateX": "translate_x", "TranslateY": "translate_y",
         "Rotate": "rotate", "Brightness": "brightness", "Color": "saturation",
         "Contrast": "contrast", "Sharpness": "sharpness",
         "Posterize": "posterize", "Solarize": "solarize",
         "AutoContrast": "autocontrast", "Equalize": "equalize"}


def strengths(transform, name, operation, height, width):
    space, signed = transform._AUGMENTATION_SPACE[operation]
    table = space(31, height, width)
    values = [0.0] * 31 if table is None else [float(v) for v in table]
    line(name, NAMES[operation], height, width, int(signed), *values)


def auto():
    rand, trivial = v2.RandAugment(), v2.TrivialAugmentWide()
    for operation in rand._AUGMENTATION_SPACE:
        for height, width in ((224, 160), (7, 5), (331, 1000)):
            strengths(rand, "rand", operation, height, width)
        strengths(trivial, "trivial", operation, 224, 160)
    for operation in trivial._AUGMENTATION_SPACE:
        for strength in (-0.77, 0.3):
            if operation in ("TranslateX", "TranslateY", "Rotate"):
                strength *= 10
            elif operation == "Posterize":
                strength = 3 if strength < 0 else 6
            elif operation == "Solarize":
                strength = abs(strength)
            case("auto_" + NAMES[operation], [strength],
                 lambda x: trivial._apply_image_or_video_transform(
                     x, operation, strength, InterpolationMode.NEAREST, {}))


def boxes():
    size = (40, 60)
    box = [[10.0, 5.0, 30.0, 25.0]]
    marked = tv_tensors.BoundingBoxes(box, format="XYXY", canvas_size=size)
    for name, result in (
            ("hflip", F.horizontal_flip(marked)),
            ("vflip", F.vertical_flip(marked)),
            ("crop 8 20 30 25", F.crop(marked, 8, 20, 30, 25)),
            ("resized_crop 8 4 30 50 64 32",
             F.resized_crop(marked, 8, 4, 30, 50, [64, 32])),
            ("affine 20 3 -2 1.2 10 0",
             F.affine(marked, 20.0, [3, -2], 1.2, [10.0, 0.0]))):
        line("box", name, ":", *result.flatten().tolist())


def mixing():
    random.seed(3)
    for _ in range(40):
        height, width = random.randint(1, 40), random.randint(1, 40)
        x, y = random.randrange(width), random.randrange(height)
        share = random.choice((0.0, 1.0, random.random(), random.random()))
        transform = v2.CutMix(num_classes=3)
        transform._dist = type("D", (), {"sample": lambda self, shape: torch.tensor(
            [share], dtype=torch.float64)})()
        places = iter((x, y))
        real = torch.randint
        torch.randint = lambda *a, **k: torch.tensor([next(places)])
        try:
            params = transform.make_params(
                [torch.zeros(2, 3, height, width)])
        finally:
            torch.randint = real
        line("cut", repr(share), x, y, height, width, ":", *params["box"],
             repr(params["lam_adjusted"]))


torch.set_num_threads(1)
add_image(3, 1, 1)
add_image(3, 7, 5)
add_image(1, 6, 9)
add_image(3, 13, 11, smooth=True)
if len(sys.argv) > 2:
    add_image(3, int(sys.argv[2]), int(sys.argv[2]) + 1)
line("made", torchvision.__version__, torch.__version__)
colors()
moves()
auto()
boxes()
mixing()
out.close()
