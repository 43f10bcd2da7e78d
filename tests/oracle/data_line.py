# SPDX-License-Identifier: BSD-3-Clause
"""A white picture: data_line.py FILE WIDTH HEIGHT"""

import sys

from PIL import Image

path, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
Image.new("L", (width, height), 255).save(path)
