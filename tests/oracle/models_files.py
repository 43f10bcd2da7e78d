# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges weight files of resnet18 (10 classes, 1 channel).

write FILE WRAPPED seed    saves Python's, bare and wrapped.
read FILE seed             loads Lockstep's strictly; prints whether the bits
                           are those of a Python model with that seed.
"""
import sys

import torch

from models_reference import make_model


def made(seed):
    torch.manual_seed(seed)
    return make_model("resnet18", 10, 1)


if sys.argv[1] == "write":
    net = made(int(sys.argv[4]))
    torch.save(net.state_dict(), sys.argv[2])
    torch.save(torch.nn.DataParallel(net).state_dict(), sys.argv[3])
else:
    net, other = made(int(sys.argv[3])), made(999)
    state = torch.load(sys.argv[2], weights_only=True, mmap=True)
    print(other.load_state_dict(state))
    expected = net.state_dict()
    print(list(state) == list(expected),
          state._metadata == expected._metadata,
          all(torch.equal(a, b) for a, b in
              zip(other.state_dict().values(), expected.values())))
