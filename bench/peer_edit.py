# SPDX-License-Identifier: BSD-3-Clause
"""Peers of `lockstep ckpt strip` and `convert`, as a user would write them.

peer_edit.py make FILE           a checkpoint of a wrapped ResNet152, 932 tensors
peer_edit.py sparse FILE BYTES   a checkpoint whose tensors are holes
peer_edit.py strip IN OUT        without 'module.'
peer_edit.py convert IN OUT      to safetensors
peer_edit.py same A B            exits 1 unless both hold the same tensors
"""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))


def load(path):
    if path.endswith(".safetensors"):
        from safetensors.torch import load_file
        return load_file(path)
    return torch.load(path, weights_only=True, map_location="cpu")


def make(path):
    from models_reference import make_model
    torch.manual_seed(0)
    torch.save(torch.nn.DataParallel(make_model("resnet152")).state_dict(), path)


def sparse(path, size):
    rows = 932
    state = {f"module.layer{i}.weight": torch.empty(int(size) // 4 // rows)
             for i in range(rows)}
    with torch.serialization.skip_data():
        torch.save(state, path)


def strip(source, target):
    state = torch.load(source, weights_only=True)
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    torch.save(state, target)


def convert(source, target):
    from safetensors.torch import save_file
    save_file(dict(torch.load(source, weights_only=True)), target)


def same(first, second):
    a, b = load(first), load(second)
    if a.keys() != b.keys() or not all(torch.equal(a[k], b[k]) for k in a):
        sys.exit(1)


{"make": make, "sparse": sparse, "strip": strip, "convert": convert,
 "same": same}[sys.argv[1]](*sys.argv[2:])
