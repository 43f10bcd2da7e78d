# SPDX-License-Identifier: BSD-3-Clause
"""Files of arrays that are no data: data_odd_arrays.py FOLDER"""

import pathlib
import sys

import numpy

FOLDER = pathlib.Path(sys.argv[1])
X = numpy.arange(12.0).reshape(3, 4)
Y = numpy.array([0, 1, 0])

numpy.savez(FOLDER / "names.npz", a=X, b=Y)
numpy.savez(FOLDER / "counts.npz", x=X, y=Y[:2])
numpy.savez(FOLDER / "complex.npz", x=X.astype(complex), y=Y)
numpy.savez(FOLDER / "negative.npz", x=X, y=Y - 1)
numpy.savez(FOLDER / "objects.npz", x=numpy.array([{}, {}, {}]), y=Y)
numpy.savez_compressed(
    FOLDER / "bomb.npz", x=numpy.zeros((3, 1 << 24), numpy.uint8), y=Y)
numpy.savez(FOLDER / "whole.npz", x=X, y=Y)
(FOLDER / "cut.npz").write_bytes((FOLDER / "whole.npz").read_bytes()[:-40])
