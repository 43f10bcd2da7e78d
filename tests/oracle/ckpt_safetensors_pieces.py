# SPDX-License-Identifier: BSD-3-Clause
"""Files of HuggingFaceStorageWriter(save_distributed=True), as several ranks write them.

ckpt_safetensors_pieces.py FOLDER: writes the files, reads them with HuggingFaceStorageReader and prints "name sizes
crc32" of each tensor.
"""
import json
import os
import sys
import zlib

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

torch.manual_seed(3)
folder = sys.argv[1]
whole = {"w": torch.rand(7, 5), "v": torch.rand(10), "alone": torch.randint(0, 99, (2, 3))}
pieces = [{"w": (0, slice(0, 4)), "v": (0, slice(0, 5))}, {"w": (4, slice(4, 7)), "v": (5, slice(5, 10)), "alone": (0, slice(0, 2))}]
for rank, parts in enumerate(pieces, 1):
    tensors = {name: whole[name][rows].clone() for name, (_, rows) in parts.items()}
    info = {name: {"saved_offsets": [start] + [0] * (whole[name].dim() - 1)} for name, (start, _) in parts.items()}
    save_file(tensors, os.path.join(folder, f"shard-{rank:05}-model-00001-of-00001.safetensors"),
              {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(info)})
loaded = {name: torch.zeros_like(tensor) for name, tensor in whole.items()}
dcp.load(loaded, storage_reader=HuggingFaceStorageReader(folder), no_dist=True)
for name, tensor in loaded.items():
    assert torch.equal(tensor, whole[name]), name
    print(name, *tensor.shape, zlib.crc32(tensor.numpy().tobytes()))
