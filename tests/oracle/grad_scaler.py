# SPDX-License-Identifier: BSD-3-Clause
"""What torch.amp.GradScaler does over steps of which some overflow.

torch 2.13. Arguments: one letter for each step ('.': finite, 'i': an infinite
gradient, 'n': one that is no number), first scale, growth interval. A line for
each step: the scale behind it, the tracker and the parameter, in hexadecimal.
"""
import sys

import torch


def main():
    pattern, first, interval = sys.argv[1:]
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.1]))
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=float(first), growth_interval=int(interval))
    for step, kind in enumerate(pattern):
        factor = scaler.scale(torch.ones(()))
        parameter.grad = torch.tensor([0.3, -0.1, 0.7]) * (step + 1) * factor
        if kind != ".":
            parameter.grad[1] = float("inf" if kind == "i" else "nan")
        scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        print(state["scale"].hex(), state["_growth_tracker"],
              *[x.hex() for x in parameter.tolist()])


if __name__ == "__main__":
    main()
