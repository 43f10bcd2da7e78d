# SPDX-License-Identifier: BSD-3-Clause
"""Prints what tests/user/checkpoint_values_test.cpp saved: user_checkpoint.py FILE"""
import sys

import torch
from torch import nn

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam,
              "owned": torch.optim.Adam, "behind": torch.optim.SGD}


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def text_of(key, value):
    net = nn.Linear(4, 2) if key != "owned" else nn.Linear(3, 1)
    if key in OPTIMIZERS:
        OPTIMIZERS[key](net.parameters(), lr=1).load_state_dict(value)
        return "loads"
    if key == "scheduler":
        optimizer = torch.optim.SGD(net.parameters(), lr=1)
        torch.optim.lr_scheduler.StepLR(optimizer, 1).load_state_dict(value)
        return "loads"
    if type(value).__name__ == "OrderedDict":
        return " ".join(value)
    return plain(value)


file = torch.load(sys.argv[1], weights_only=True)
for name, entry in file.items():
    print(name, type(entry).__name__, text_of(name, entry))


def memory(tensor):
    return tensor.untyped_storage().data_ptr()


print("one memory",
      memory(file["holder"]["weight"]) == memory(file["reference"]["weight"]),
      memory(file["tensors"][1]) == memory(file["named"]["a"]))
