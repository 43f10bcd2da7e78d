# SPDX-License-Identifier: BSD-3-Clause
"""Parameters and gradients of tests/optim/support.cpp, and exact comparison."""
import torch

SHAPES = [(8, 3, 3, 3), (16, 8, 3, 3), (), (300, 300), (7,), (5, 2)]


def make_params():
    torch.manual_seed(1)
    data = [torch.randn(shape) for shape in SHAPES]
    data[1] = data[1].contiguous(memory_format=torch.channels_last)
    return [torch.nn.Parameter(d) for d in data]


def set_grads(params, step):
    torch.manual_seed(100 + step)
    for i, param in enumerate(params):
        grad = torch.randn(param.shape)
        if i == 1:
            grad = grad.contiguous(memory_format=torch.channels_last)
        param.grad = grad if i != 5 and (i != 4 or step > 0) else None


def difference(ours, theirs, path="", exact=False):
    """None if equal: types, order of keys, values, bits of tensors.

    An int and a float of the same value are equal, unless `exact`: Python's
    defaults are ints (`momentum=0`), ours are floats.
    """
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, torch.Tensor) or ours.dtype != theirs.dtype:
            return f"{path}: {type(ours)}"
        same = ours.shape == theirs.shape and torch.equal(
            ours.detach().reshape(-1).view(torch.uint8),
            theirs.detach().reshape(-1).view(torch.uint8),
        )
        return None if same else f"{path}: bits differ"
    numbers = set() if exact else {int, float}
    if type(ours) is not type(theirs) and {type(ours), type(theirs)} != numbers:
        return f"{path}: {type(ours)} is not {type(theirs)}"
    if isinstance(theirs, dict):
        if list(ours) != list(theirs):
            return f"{path}: keys {list(ours)} are not {list(theirs)}"
        pairs = [(f"{path}/{k}", ours[k], theirs[k]) for k in theirs]
    elif isinstance(theirs, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{path}: {len(ours)} items, not {len(theirs)}"
        pairs = [(f"{path}/{i}", a, b) for i, (a, b) in enumerate(zip(ours, theirs))]
    else:
        return None if ours == theirs else f"{path}: {ours!r} is not {theirs!r}"
    found = (difference(a, b, p, exact) for p, a, b in pairs)
    return next((d for d in found if d), None)
