# SPDX-License-Identifier: BSD-3-Clause
"""Saved on one device or many, as weights or whole; loaded on one or many.

four_combinations.py save FOLDER MODEL: writes the model's weights and the whole
model, bare and in nn.DataParallel as it is on GPUs 0, 1 and 3 (storages carry
"cuda:7", which no machine here has), as FOLDER/<case>; prints the case names.
four_combinations.py load FOLDER MODEL ONE MANY: loads ONE strictly into the bare
model and MANY into nn.DataParallel, with the safe loader; prints "same" for each
that equals the model saved.
"""
import pathlib
import sys
import warnings

import torch
from torch import nn

from ckpt_whole_models import on_gpus, save
from models_reference import make_model

warnings.filterwarnings("ignore")


def seeded(name):
    torch.manual_seed(5)
    return make_model(name)


def write(folder, name):
    net = seeded(name)
    many = on_gpus(net)
    trained = {"epoch": 9, "best_mIoU": 0.5, "state_dict": many.state_dict(),
               "optimizer": {"state": {}, "param_groups": []}, "scheduler": {"last_epoch": 9}}
    cases = {
        "one_weights.pth": net.state_dict(),
        "many_weights.pth": many.state_dict(),
        "one_whole.pth": net,
        "many_whole.pth": many,
        "many_checkpoint.pth.tar": trained,
    }
    for case, value in cases.items():
        save(value, folder / case, False, tag="cuda:7")
        print(case)


def check(folder, name, one, many):
    expected = seeded(name).state_dict()
    bare, wrapped = make_model(name), nn.DataParallel(make_model(name))
    for model, net, path in ((bare, bare, one), (wrapped, wrapped.module, many)):
        model.load_state_dict(torch.load(folder / path, weights_only=True))
        got = net.state_dict()
        same = list(got) == list(expected) and all(
            torch.equal(got[key], expected[key]) for key in expected)
        print("same" if same else "different")


what, folder, *rest = sys.argv[1:]
(write if what == "save" else check)(pathlib.Path(folder), *rest)
