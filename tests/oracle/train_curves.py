# SPDX-License-Identifier: BSD-3-Clause
"""Reads an SVG file as XML: its texts, then the number of points of each line.

    train_curves.py FILE
"""

import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
assert root.tag == SVG + "svg"
for text in root.iter(SVG + "text"):
    print(text.text)
for line in root.iter(SVG + "polyline"):
    print("points", len(line.get("points").split()))
