# SPDX-License-Identifier: BSD-3-Clause
"""DTensors as the ranks of a job save them.

ckpt_dtensor.py FOLDER: writes FOLDER/<case>.<rank>.pt, dicts of DTensors, and
prints for each "<case>.<rank> <name> <kind> <begin> <sizes> <whole sizes>": which
part of the whole the rank has, as PyTorch computes it. The kinds are "whole",
"piece", "sum" (terms of other ranks are missing) and "strided" (no range).
One process is all ranks in turn, with meshes of other names: results of
operators on equal meshes are cached.
"""
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")


def spread(full, mesh, *placements):
    return distribute_tensor(full, mesh, placements, src_data_rank=None)


def cases(rank, ranks):
    whole = torch.arange(30.0).reshape(10, 3)
    line = init_device_mesh("cpu", (ranks,), mesh_dim_names=(f"dp{rank}",))
    rows = spread(whole, line, Shard(0))
    yield "line", {
        "rows": rows,
        "columns": spread(whole, line, Shard(1)),
        "copy": spread(whole, line, Replicate()),
        "sum": DTensor.from_local(whole.clone(), line, [Partial()]),
        "few": spread(torch.arange(3.0).reshape(1, 3), line, Shard(0)),
        "parameter": nn.Parameter(spread(whole, line, Shard(0))),
        "frozen": nn.Parameter(spread(whole, line, Replicate()), requires_grad=False),
        "integers": spread(torch.arange(7), line, Shard(0)),
        "scalar": spread(torch.tensor(2.0), line, Replicate()),
        "same": rows}
    if ranks == 4:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=(f"dp{rank}", "tp"))
        yield "grid", {
            "both": spread(whole, grid, Shard(0), Shard(1)),
            "twice": spread(whole, grid, Shard(0), Shard(0)),
            "copies": spread(whole, grid, Replicate(), Shard(0)),
            "row": spread(whole, grid["tp"], Shard(0)),
            "strided": spread(whole, grid, _StridedShard(0, split_factor=2), Shard(0))}


def kind_of(key, tensor):
    if key == "sum" and tensor.device_mesh.size() > 1:
        return "sum"
    if tensor.to_local().shape == tensor.shape:
        return "whole"
    return "strided" if key == "strided" else "piece"


def text(sizes):
    return ",".join(map(str, sizes)) or "-"


def main(folder):
    for ranks in (1, 2, 4):
        for rank in range(ranks):
            dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
            for case, tensors in cases(rank, ranks):
                name = f"{case}{ranks}.{rank}"
                torch.save(tensors, os.path.join(folder, name + ".pt"))
                for key, tensor in tensors.items():
                    sizes, begin = compute_local_shape_and_global_offset(
                        tensor.shape, tensor.device_mesh, tensor.placements)
                    assert list(sizes) == list(tensor.to_local().shape), (name, key)
                    print(name, key, kind_of(key, tensor), text(begin), text(sizes), text(tensor.shape))
            dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
