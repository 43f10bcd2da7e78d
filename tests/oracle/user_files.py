# SPDX-License-Identifier: BSD-3-Clause
"""Files that scripts leave by mistake: user_files.py FOLDER

uncalled.pt: `torch.save(model.state_dict, f)`, the method and not its result;
uncalled.pth.tar: the same inside a training checkpoint. Prints what
load_state_dict says of the method.
"""
import sys

import torch

model = torch.nn.Linear(3, 2)
torch.nn.init.ones_(model.weight)
torch.save(model.state_dict, sys.argv[1] + "/uncalled.pt")
torch.save({"epoch": 3, "state_dict": model.state_dict},
           sys.argv[1] + "/uncalled.pth.tar")
try:
    model.load_state_dict(model.state_dict)
except TypeError as error:
    print(error)
