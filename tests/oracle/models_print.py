# SPDX-License-Identifier: BSD-3-Clause
"""print(model). Arguments: num_classes in_channels name...

A name with the prefix "wrapped:" is shown inside DataParallel.
"""
import sys

import torch

from models_reference import make_model

for name in sys.argv[3:]:
    net = make_model(name.removeprefix("wrapped:"), int(sys.argv[1]),
                     int(sys.argv[2]))
    print(torch.nn.DataParallel(net) if "wrapped:" in name else net)
