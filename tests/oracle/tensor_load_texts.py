# SPDX-License-Identifier: BSD-3-Clause
"""What load_state_dict says. Cases end with a line "---"."""
from collections import OrderedDict

import torch
from torch import nn

from tensor_modules import Expanded, MyModule, Net, fill


def load(module, state, strict=True):
    try:
        print(module.load_state_dict(state, strict=strict))
    except Exception as error:  # its text is what is asked for
        print(error)
    print("---")


def without(state, *keys):
    copy = OrderedDict((k, v) for k, v in state.items() if k not in keys)
    copy._metadata = state._metadata
    return copy


wrapped = nn.DataParallel(MyModule())
bare = MyModule().state_dict()
load(MyModule(), wrapped.state_dict())
load(wrapped, bare)
load(wrapped, wrapped.state_dict())
load(MyModule(4), bare)
load(MyModule(4), bare, strict=False)
load(MyModule(), {"fc.weight": 3, "fc.bias": OrderedDict()})
load(MyModule(), [1])
load(MyModule(), {"fc.weight": torch.zeros(5, 3), "fc": torch.zeros(1),
                  "other.x": torch.zeros(1), "fc.extra": torch.zeros(1),
                  "fc.a.b": torch.zeros(1)})
load(MyModule(), {"fc.weight": torch.zeros(5, 3), "x": torch.zeros(1)},
     strict=False)
net = fill(Net())
full = net.state_dict()
counters = [k for k in full if k.endswith("num_batches_tracked")]
load(Net(), full)
load(Net(), without(full, *counters))
load(Net(), dict(without(full, *counters)))
load(Net(), dict(without(full, "scale", "bn.weight", "tied.0.bias")))
load(Net(), {**full, "scale": torch.ones(1), "offset": torch.ones(3)})
load(Net(), {**full, "scale": torch.ones(2)})
load(Expanded(), {"first": torch.ones(2), "wide": torch.ones(3)})
