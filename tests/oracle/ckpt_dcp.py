# SPDX-License-Identifier: BSD-3-Clause
"""Folders of torch.distributed.checkpoint, and what it reads of ours.

ckpt_dcp.py make FOLDER: writes FOLDER/<case>.pt and the same as the folder
FOLDER/<case>, and prints the case names.
ckpt_dcp.py fresh FILE: writes a checkpoint whose optimizer has no state yet,
in which torch.distributed.checkpoint keeps no empty dicts.
ckpt_dcp.py check FOLDER FILE: loads our folder over zeros in the shape of
FILE, with and without a template, and prints "equal".
"""
import collections
import io
import os
import pickle
import sys
import warnings

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.metadata import (_MEM_FORMAT_ENCODING, ChunkStorageMetadata, Metadata, MetadataIndex,
                                                   TensorProperties, TensorStorageMetadata)

warnings.filterwarnings("ignore")
torch.manual_seed(3)


def as_python_3_11_2(member, protocol):
    """How Python 3.11.2, Debian 12's, pickles a member of an enum."""
    return getattr, (type(member), member.name)


def training():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 1, 4, 4)).square().sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "name": "x",
            "list": [torch.ones(2), 5, {"deep": torch.arange(3)}], "pair": (1, 2.5)}


def tensors():
    base = torch.arange(24.0)
    return collections.OrderedDict(
        turned=base.view(4, 6).t(), part=base[5:9], scalar=torch.tensor(7), empty=torch.empty(0, 3),
        half=base.to(torch.bfloat16), small=base.to(torch.float8_e5m2), flag=base > 3, wide=base[:1].expand(5))


def fresh():
    model = nn.Linear(2, 2)
    return {"model": model.state_dict(), "optimizer": torch.optim.SGD(model.parameters(), 0.1).state_dict(),
            "empty": collections.OrderedDict(), "nothing": []}


def sharded(folder):
    """A tensor of (5, 4) in four boxes of two ranks, as FSDP with two dimensions would leave it."""
    whole = torch.arange(20.0).view(5, 4)
    boxes = [(0, 0, 3, 1), (3, 0, 2, 1), (0, 1, 3, 3), (3, 1, 2, 3)]
    files, chunks, places = {}, [], {}
    for i, (r, c, h, w) in enumerate(boxes):
        name = f"__{i % 2}_0.distcp"
        data = io.BytesIO()
        torch.save(whole[r:r + h, c:c + w].clone(), data)
        start = len(files.setdefault(name, b""))
        files[name] += data.getvalue()
        chunks.append(ChunkStorageMetadata(torch.Size((r, c)), torch.Size((h, w))))
        places[MetadataIndex("w", torch.Size((r, c)), i)] = _StorageInfo(name, start, len(data.getvalue()))
    metadata = Metadata({"w": TensorStorageMetadata(TensorProperties(torch.float32), whole.size(), chunks)},
                        {"w": ("w",)}, places)
    os.makedirs(folder)
    for name, data in files.items():
        open(os.path.join(folder, name), "wb").write(data)
    pickle.dump(metadata, open(os.path.join(folder, ".metadata"), "wb"))
    loaded = {"w": torch.zeros(5, 4)}
    dcp.load(loaded, checkpoint_id=folder, no_dist=True)
    assert torch.equal(loaded["w"], whole)
    return {"w": whole}


def zeroed(value):
    if isinstance(value, torch.Tensor):
        return torch.zeros(value.shape, dtype=value.dtype)
    if isinstance(value, dict):
        return {k: zeroed(v) for k, v in value.items()}
    return [zeroed(v) for v in value] if isinstance(value, list) else value


def pruned(value):
    """What torch.distributed.checkpoint keeps: no empty dicts."""
    if isinstance(value, dict):
        return {k: pruned(v) for k, v in value.items() if not isinstance(v, dict) or pruned(v)}
    return value


def same(a, b):
    if isinstance(a, torch.Tensor):
        bits = [x.contiguous().flatten().view(torch.uint8) for x in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)
    if isinstance(a, dict):
        return {str(k) for k in a} == {str(k) for k in b} and all(
            same(v, {str(x): y for x, y in b.items()}[str(k)]) for k, v in a.items())
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


folder = sys.argv[2]
if sys.argv[1] == "make":
    for case, make in {"training": training, "tensors": tensors}.items():
        if case == "tensors":
            _MEM_FORMAT_ENCODING.__reduce_ex__ = as_python_3_11_2
        tree = make()
        dcp.save(tree, checkpoint_id=os.path.join(folder, case), no_dist=True)
        torch.save(tree, os.path.join(folder, case + ".pt"))
        print(case)
    torch.save(sharded(os.path.join(folder, "sharded")), os.path.join(folder, "sharded.pt"))
    print("sharded")
elif sys.argv[1] == "fresh":
    torch.save(fresh(), sys.argv[2])
else:
    wanted = torch.load(sys.argv[3], weights_only=True)
    template = zeroed(wanted)
    dcp.load(template, checkpoint_id=folder, no_dist=True)
    assert same(wanted, template), template
    dcp_to_torch_save(folder, folder + ".out.pt")
    plain = torch.load(folder + ".out.pt", weights_only=False)
    assert same(pruned(wanted), plain), plain
    print("equal")
