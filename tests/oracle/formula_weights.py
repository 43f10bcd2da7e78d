# SPDX-License-Identifier: BSD-3-Clause
"""Weights and images that follow from names, so that C++ makes the same without
a file between: tests/models/formula_weights.cpp."""
import math
import zlib

import torch

MASK = 2**32 - 1


def mixed(name, count):
    """`count` numbers in [0, 1) that depend on `name` alone."""
    x = (torch.arange(count) * 2654435761 + zlib.crc32(name.encode())) & MASK
    x = ((x ^ (x >> 16)) * 73244475) & MASK
    return ((x ^ (x >> 16)).double() / 2**32).float()


def weight(key, shape):
    """A parameter or a statistic of this name."""
    u = mixed(key, math.prod(shape)).view(shape)
    if len(shape) == 4:
        return (u - 0.5) * (2 * math.sqrt(6 / math.prod(shape[1:])))
    if key.endswith("running_var"):
        return u + 0.5
    return u * 0.5 + 0.5 if key.endswith("weight") else (u - 0.5) * 0.2


def fill(net):
    """Weights of which no map grows or fades on its way."""
    with torch.no_grad():
        for key, tensor in net.state_dict().items():
            if not key.endswith("num_batches_tracked"):
                tensor.copy_(weight(key, tensor.shape))
