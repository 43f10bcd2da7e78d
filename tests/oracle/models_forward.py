# SPDX-License-Identifier: BSD-3-Clause
"""Scores of models as text: CRC-32 of the bytes, in train and in eval mode.

Arguments: seed image_size name...
"""
import sys
import zlib

import torch

from models_reference import make_model

torch.set_num_threads(1)
seed, size = (int(a) for a in sys.argv[1:3])
for name in sys.argv[3:]:
    torch.manual_seed(seed)
    net = make_model(name, 10, 3)
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        for mode in (True, False):
            net.train(mode)
            print(f"{name} {zlib.crc32(net(images).numpy()):08x}")
