# SPDX-License-Identifier: BSD-3-Clause
"""Three steps, save, three more: Python's side of torch_optim_oracle_test.cpp.

torch 2.13. Argument: a folder with NAME.cpp3.pth, what C++ saved of LibTorch's
optimizer after three steps. Writes NAME.py3.pth and NAME.py6.pth, and prints one
line for each case: "NAME same bits", "NAME within 1e-6", or the first difference.
"""
import os
import sys

import torch

from optim_data import difference, make_params, set_grads

torch.set_num_threads(2)
O = torch.optim

ADAM = [
    {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 1e-3, "amsgrad": True},
    {"lr": 0.002},
]
# Class, its arguments, and what the two groups have instead of its defaults.
CASES = {
    "SGD": (O.SGD, {}, [{"lr": 0.1}, {"lr": 0.01}]),
    "SGDOptions": (O.SGD, {}, [
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True},
        {"lr": 0.01, "momentum": 0.8, "dampening": 0.1},
    ]),
    "Adam": (O.Adam, {}, [{}, {"lr": 0.002}]),
    "AdamOptions": (O.Adam, {}, ADAM),
    "AdamW": (O.AdamW, {}, [{}, {"lr": 0.002}]),
    "AdamWOptions": (O.AdamW, {}, ADAM),
    "RMSprop": (O.RMSprop, {}, [{}, {"lr": 0.002}]),
    "RMSpropOptions": (O.RMSprop, {}, [
        {"lr": 0.001, "alpha": 0.9, "eps": 1e-6, "weight_decay": 1e-3, "momentum": 0.9},
        {"lr": 0.002},
    ]),
    "RMSpropCentered": (O.RMSprop, {}, [{"lr": 0.001, "centered": True}, {"lr": 0.002}]),
    "Adagrad": (O.Adagrad, {}, [{}, {"lr": 0.1}]),
    "AdagradOptions": (O.Adagrad, {"initial_accumulator_value": 0.1}, [
        {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 1e-3, "eps": 1e-8},
        {"lr": 0.2},
    ]),
}


def make(name, params, with_options=True):
    kind, arguments, options = CASES[name]
    groups = [{"params": params[:3]}, {"params": params[3:]}]
    optimizer = kind(groups, **arguments)
    if with_options:
        for group, changed in zip(optimizer.param_groups, options):
            group.update(changed)
    return optimizer


def run(params, optimizer, steps):
    for step in steps:
        set_grads(params, step)
        optimizer.step()


def snapshot(params, optimizer):
    return {
        "weights": [p.detach().clone() for p in params],
        "optimizer": optimizer.state_dict(),
    }


def frame(tree):
    """The tree with shapes and dtypes instead of tensors."""
    if isinstance(tree, torch.Tensor):
        return f"{tree.dtype} {list(tree.shape)}"
    if isinstance(tree, dict):
        return {key: frame(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(frame(item) for item in tree)
    return tree


def tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (dict, list, tuple)):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from tensors(item)


def agreement(ours, theirs):
    found = difference(ours, theirs)
    if not found:
        return "same bits"
    other = difference(frame(ours), frame(theirs))
    if other:
        return other
    close = all(torch.allclose(a, b, rtol=1e-6, atol=1e-6)
                for a, b in zip(tensors(ours), tensors(theirs)))
    return "within 1e-6" if close else found


def check(name, path):
    params = make_params()
    optimizer = make(name, params)
    run(params, optimizer, range(3))
    torch.save(snapshot(params, optimizer), path + ".py3.pth")
    saved = torch.load(path + ".cpp3.pth", weights_only=True)
    first = agreement(saved, snapshot(params, optimizer))
    run(params, optimizer, range(3, 6))
    straight = snapshot(params, optimizer)
    torch.save(straight, path + ".py6.pth")

    params = [torch.nn.Parameter(w) for w in saved["weights"]]
    optimizer = make(name, params, with_options=False)
    optimizer.load_state_dict(saved["optimizer"])
    lost = difference(optimizer.state_dict(), saved["optimizer"])
    if lost:
        return "loading loses something: " + lost
    run(params, optimizer, range(3, 6))
    second = agreement(snapshot(params, optimizer), straight)
    return second if first == "same bits" else first


for name in CASES:
    print(name, check(name, os.path.join(sys.argv[1], name)))
