# SPDX-License-Identifier: BSD-3-Clause
"""Initial weights of models as text: one line "key shape crc32" per tensor.

Arguments: seed num_classes in_channels name...
Also prints, after each model, the next random number: the count of draws.
"""
import sys
import zlib

import torch

from models_reference import make_model

torch.set_num_threads(1)
seed, classes, channels = (int(a) for a in sys.argv[1:4])
for name in sys.argv[4:]:
    torch.manual_seed(seed)
    net = make_model(name, classes, channels)
    for key, tensor in net.state_dict().items():
        digest = zlib.crc32(tensor.contiguous().numpy())
        shape = ",".join(str(n) for n in tensor.shape)
        print(key, f"[{shape}] {digest:08x}")
    print(name, "next", torch.randint(0, 2**62, ()).item())
