# SPDX-License-Identifier: BSD-3-Clause
"""Files of the safetensors package, and what it reads of ours.

ckpt_safetensors.py make FOLDER: writes FOLDER/<case>.pt and the same tensors as
FOLDER/<case>.safetensors, and prints the case names.
ckpt_safetensors.py read INDEX: reads every file of an index and prints
"name dtype shape hex", sorted.
ckpt_safetensors.py state FOLDER: writes FOLDER/state.pt, a state_dict with `_metadata`.
ckpt_safetensors.py versions FOLDER: prints what the package finds as `torch._metadata` in FOLDER/state.safetensors, and whether
the state_dict in FOLDER/back.pt has it as in state.pt.
ckpt_safetensors.py accepts FOLDER COUNT: prints "yes" or "no" for each of FOLDER/0.safetensors, ...: does the package read it?
"""
import json
import os
import sys
import warnings

import torch
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.torch import load_file, save_file

warnings.filterwarnings("ignore")
torch.manual_seed(11)

NAMES = ("bool uint8 int8 float8_e5m2 float8_e4m3fn float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz int16 uint16 "
         "float16 bfloat16 int32 uint32 float32 complex64 float64 int64 uint64").split()


def dtypes():
    tensors = {}
    for i, name in enumerate(NAMES):
        bits = torch.randint(0, 2 if name == "bool" else 100, (3 + i, 16), dtype=torch.uint8)
        tensors[name] = bits.view(getattr(torch, name))
    return tensors


def names():
    return {text: torch.full((1,), float(i)) for i, text in enumerate(
        ["", "b.c", "a", "\u00fc\u2713\U0001f600", 'q"\\', "\n\t\x01\x1f\x7f/", "Z" * 300])}


CASES = {
    "dtypes": dtypes,
    "names": names,
    "shapes": lambda: {"scalar": torch.tensor(2.5), "empty": torch.empty(0, 3), "deep": torch.rand(1, 2, 1, 2, 1)},
    "many": lambda: {f"layer.{i}.weight": torch.rand(i % 7, 3) for i in range(300)},
    "large": lambda: {"w": torch.rand(400, 500), "b": torch.arange(100_000)},
    "nothing": dict,
}

if sys.argv[1] == "make":
    for case, make in CASES.items():
        tensors = make()
        torch.save(tensors, os.path.join(sys.argv[2], case + ".pt"))
        save_file(tensors, os.path.join(sys.argv[2], case + ".safetensors"), {"format": "pt"})
        print(case)
elif sys.argv[1] == "state":
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    state = net.state_dict()
    state._metadata["1"] |= {"negative": -1, "half": 0.5, "list": [1, True, None]}
    torch.save(state, os.path.join(sys.argv[2], "state.pt"))
elif sys.argv[1] == "versions":
    state, back = (torch.load(os.path.join(sys.argv[2], name), weights_only=True) for name in ("state.pt", "back.pt"))
    with safe_open(os.path.join(sys.argv[2], "state.safetensors"), "pt") as file:
        assert file.metadata()["format"] == "pt" and set(file.keys()) == set(state)
        print(json.loads(file.metadata()["torch._metadata"]) == state._metadata)
    print(type(back._metadata) is type(state._metadata) and back._metadata == state._metadata)
elif sys.argv[1] == "accepts":
    for i in range(int(sys.argv[3])):
        with open(os.path.join(sys.argv[2], f"{i}.safetensors"), "rb") as file:
            try:
                deserialize(file.read())
                print("yes")
            except SafetensorError:
                print("no")
else:
    folder = os.path.dirname(sys.argv[2])
    weight_map = json.load(open(sys.argv[2]))["weight_map"]
    files = {name: load_file(os.path.join(folder, name)) for name in set(weight_map.values())}
    assert sum(len(tensors) for tensors in files.values()) == len(weight_map)
    for name in sorted(weight_map):
        t = files[weight_map[name]][name]
        raw = bytes(t.contiguous().flatten().view(torch.uint8).tolist()) if t.numel() else b""
        print(name, t.dtype, list(t.shape), raw.hex())
