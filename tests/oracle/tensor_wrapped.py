# SPDX-License-Identifier: BSD-3-Clause
"""Weights of one small network under all names that wrappers give them.

torch 2.13, safetensors 0.8. Argument: a folder. Writes `bare.pt` (the weights
alone) and a file for each kind of prefix and format, whole models, tied
layers, checkpoints with the weights in unusual places. Prints the names of
those from which `load_weights` gets the weights of bare.pt.
"""
import pathlib
import sys
import warnings

import torch
from safetensors.torch import save_file, save_model
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(3)

PREFIXES = {
    "bare": "",
    "module": "module.",
    "compiled": "_orig_mod.",
    "compiled_module": "_orig_mod.module.",
    "module_compiled": "module._orig_mod.",
    "twice": "module.module.",
    "lightning": "model.",
    "lightning_module": "model.module.",
    "module_lightning": "module.model.",
    "net": "net.",
    "any": "backbone.",
    "any_two": "encoder.backbone.",
    "module_any": "module.backbone.",
}


class Holder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = self.a


def network():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net(torch.randn(8, 2))
    return net


def main():
    folder = pathlib.Path(sys.argv[1])
    net = network()
    weights = net.state_dict()
    torch.save(weights, folder / "bare.pt")

    def save(name, state):
        torch.save(state, folder / f"{name}.pt")
        print(f"{name}.pt")
        save_file(state, folder / f"{name}.safetensors")
        print(f"{name}.safetensors")

    for name, prefix in PREFIXES.items():
        save(name, {prefix + key: value for key, value in weights.items()})
    names = list(weights)
    save("mixed", {("module." if i % 2 else "") + key: weights[key]
                   for i, key in enumerate(names)})
    fronts = ["", "module.", "_orig_mod.module."]
    save("mixed_stacked", {fronts[i % 3] + key: weights[key]
                           for i, key in enumerate(names)})
    save("inner", {key.replace(".", ".module.", 1): value
                   for key, value in weights.items()})

    for name, whole in {
        "whole": net,
        "whole_module": nn.DataParallel(net),
        "whole_held": Holder(net),
        "whole_held_module": Holder(nn.DataParallel(net)),
    }.items():
        torch.save(whole, folder / f"{name}.pt")
        print(f"{name}.pt")

    for name, tree in {
        "composer": {"state": {"model": weights, "optimizers": {}}, "rng": []},
        "composer_module": {
            "state": {"model": nn.DataParallel(net).state_dict()}},
        "only_ema": {"model": None, "ema": net, "updates": 3},
        "params": {"iter": 3, "params": weights},
    }.items():
        torch.save(tree, folder / f"{name}.pt")
        print(f"{name}.pt")

    other = {key: value + 1 for key, value in weights.items()}
    torch.save({"params_ema": weights, "params": other}, folder / "two.pt")
    torch.save(
        {f"{name}.{key}": value
         for name, state in {"student": weights, "teacher": other}.items()
         for key, value in state.items()}, folder / "pair.pt")

    tied = Tied()
    save_model(tied, folder / "tied.safetensors")
    torch.save(tied.state_dict(), folder / "tied.pt")
    save_model(nn.DataParallel(tied), folder / "tied_module.safetensors")
    save_file({"a.weight": tied.a.weight.detach(),
               "a.bias": tied.a.bias.detach()},
              folder / "tied_unsaid.safetensors")


if __name__ == "__main__":
    main()
