# SPDX-License-Identifier: BSD-3-Clause
"""Saves a weight file as torchvision publishes it: the names and shapes that
tests/models/golden/names.txt lists for a model, with formula weights.

Arguments: model, file.
"""
import ast
import collections
import pathlib
import sys

import torch

from formula_weights import weight

names = pathlib.Path(__file__).parents[1] / "models/golden/names.txt"
state = collections.OrderedDict()
model = None
for line in names.read_text().splitlines():
    if line.startswith("# "):
        model = line[2:]
    elif model == sys.argv[1]:
        module, tensors = line.split(": ")
        for tensor in tensors.split("; "):
            leaf, _, shape = tensor.partition(" ")
            key = f"{module}.{leaf}"
            if shape.startswith("int64 "):
                state[key] = torch.zeros((), dtype=torch.int64)
            else:
                state[key] = weight(key, ast.literal_eval(shape))
torch.save(state, sys.argv[2])
