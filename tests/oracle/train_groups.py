# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of scripts whose optimizers have several parameter groups.

torch 2.13. Argument: a folder. For each grouping trains the perceptron of
train_layouts.py for two epochs, saves after the first, and prints its name and
the losses of the second, hexadecimal: whoever goes on finds the same.
"""
import argparse
import pathlib
import sys

import torch

import train_layouts

RATE = 0.05


def split(net, is_first, **first):
    return [
        {"params": [p for n, p in net.named_parameters() if is_first(n, p)]}
        | first,
        {"params": [p for n, p in net.named_parameters() if not is_first(n, p)]}]


def timm(net):
    """timm.optim.param_groups_weight_decay."""
    return split(net, lambda n, p: p.ndim <= 1, weight_decay=0.0)


def torchvision(net):
    """set_weight_decay with --bias-weight-decay 0: biases come last."""
    return split(net, lambda n, p: n.endswith("bias"), weight_decay=0.0)[::-1]


def rates(net):
    """A head that learns faster, before the rest."""
    return split(net, lambda n, p: ".5." in n, lr=0.1)


def layers(net):
    """A rate for each layer, from the input on."""
    return [{"params": list(net.layers[i].parameters()), "lr": RATE * f}
            for i, f in [(1, 0.25), (3, 0.5), (5, 1.0)]]


def layers_and_decay(net):
    """timm.optim.param_groups_layer_decay."""
    return [{"params": [p], "lr": RATE * f, "weight_decay": d}
            for i, f in [(1, 0.25), (3, 0.5), (5, 1.0)]
            for p, d in zip(net.layers[i].parameters(), [1e-3, 0.0])]


def names(net):
    """Groups that nobody would guess, with names: PyTorch 2.6 or newer."""
    pairs = list(net.named_parameters())
    return [{"params": pairs[::2][::-1], "weight_decay": 0.01},
            {"params": pairs[1::2][::-1]}]


GROUPINGS = [timm, torchvision, rates, layers, layers_and_decay, names]


class Run(train_layouts.Run):
    def __init__(self, grouping):
        super().__init__()
        self.optimizer = torch.optim.SGD(
            grouping(self.model), RATE, momentum=0.9, weight_decay=1e-3)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)


def main():
    folder = pathlib.Path(sys.argv[1])
    for grouping in GROUPINGS:
        run = Run(grouping)
        run.train(0)
        run.scheduler.step()
        torch.save(train_layouts.imagenet(run),
                   folder / f"{grouping.__name__}.pth.tar")
        losses = [loss.hex() for loss in run.train(1)]
        print(grouping.__name__, *losses)
        if grouping is rates:  # a script without a scheduler has no initial_lr
            state = train_layouts.imagenet(run)
            del state["scheduler"]
            for group in state["optimizer"]["param_groups"]:
                del group["initial_lr"]
            torch.save(state, folder / "rates_alone.pth.tar")
        if grouping is timm:
            torch.save(
                {"epoch": 0, "arch": "mlp", "version": 2,
                 "state_dict": run.model.state_dict(),
                 "optimizer": run.optimizer.state_dict(), "metric": 70.0,
                 "args": argparse.Namespace(model="mlp", eval_metric="top5")},
                folder / "top5.pth.tar")


if __name__ == "__main__":
    main()
