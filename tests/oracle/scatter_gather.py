# SPDX-License-Identifier: BSD-3-Clause
"""What torch.nn.parallel's own scatter and gather make of nested values.

Prints one line per tensor of each replica and of each joined value. Their walks
through lists, tuples and dictionaries are PyTorch's; only the two functions that
copy between GPUs are replaced by chunk and cat.
"""
import itertools

import torch
from torch.nn.parallel import scatter_gather
from torch.nn.parallel._functions import Gather, Scatter

Scatter.apply = lambda devices, _, dim, tensor: tensor.chunk(len(devices), dim)
Gather.apply = lambda device, dim, *parts: (
    torch.stack(parts) if parts[0].dim() == 0 else torch.cat(parts, dim))


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from tensors(value[key])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


def line(*words):
    print(*words, sep=" ")


def text(tensor):
    shape = ",".join(map(str, tensor.shape))
    return f"({shape}) " + ",".join(str(int(x)) for x in tensor.flatten())


def main():
    for rows, devices, dim in itertools.product((1, 2, 5, 7, 10, 30), (1, 2, 3, 4, 8), (0, 1)):
        x = torch.arange(rows * 3 if dim == 0 else 3 * rows).view(
            (rows, 3) if dim == 0 else (3, rows))
        value = (x, [x + 100, {"b": x + 200, "a": x + 300}], 7, [])
        shards = scatter_gather.scatter(value, list(range(devices)), dim)
        for i, shard in enumerate(shards):
            for tensor in tensors(shard):
                line(rows, devices, dim, "replica", i, text(tensor))
        outputs = [list(tensors(shard)) for shard in shards]
        for tensor in tensors(scatter_gather.gather(outputs, 0, dim)):
            line(rows, devices, dim, "joined", text(tensor))
        sums = [[t.sum() for t in of_replica] for of_replica in outputs]
        for tensor in tensors(scatter_gather.gather(sums, 0, 0)):
            line(rows, devices, dim, "sums", text(tensor))


main()
