# SPDX-License-Identifier: BSD-3-Clause
"""A smooth JPEG file of 1600 x 1200 pixels: data_large_jpeg.py FILE"""

import sys

import numpy
from PIL import Image

y, x = numpy.mgrid[0:1200, 0:1600]
planes = [x * 255 / 1599, y * 255 / 1199, 127 + 100 * numpy.sin((x + y) / 300)]
pixels = numpy.stack(planes, axis=2).astype(numpy.uint8)
Image.fromarray(pixels).save(sys.argv[1], quality=95)
