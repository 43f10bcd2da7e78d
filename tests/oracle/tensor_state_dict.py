# SPDX-License-Identifier: BSD-3-Clause
"""Keys, shapes and versions of state dicts, one per line."""
import torch
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

from tensor_modules import Net


def show(state):
    for key, tensor in state.items():
        print(key, list(tensor.shape), tensor.dtype)
    for path, entry in state._metadata.items():
        print(f"'{path}'", entry["version"])


show(Net().state_dict())
wrapped = nn.DataParallel(Net()).state_dict()
show(wrapped)
consume_prefix_in_state_dict_if_present(wrapped, "module.")
show(wrapped)
for kind in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d,
             nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d):
    print(kind.__name__, kind(2)._version)
