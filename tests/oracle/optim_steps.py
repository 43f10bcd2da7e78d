# SPDX-License-Identifier: BSD-3-Clause
"""Five steps, save, five more: Python's side of tests/optim/oracle_test.cpp.

Argument: a folder with cases.pth (the table) and NAME.cpp5.pth (what C++ saved
after five steps). Writes NAME.py5.pth, NAME.py10.pth and NAME.rates.pth (learning
rates and momenta of 200 steps), and prints one line for each case: "NAME ok", or the first difference.
"""
import os
import sys
import warnings

import torch

from optim_data import difference, make_params, set_grads

torch.set_num_threads(2)
warnings.simplefilter("ignore")


def schedule_args(case):
    args = dict(case["schedule"] or {})
    for key in ("max_lr", "base_momentum", "max_momentum"):
        if len(args.get(key, [])) == 1:
            args[key] = args[key][0]
    return args


def make(case, params):
    groups = [
        {"params": p, **options}
        for p, options in zip((params[:3], params[3:]), case["groups"])
    ]
    optimizer = getattr(torch.optim, case["optimizer"])(groups)
    scheduler = None
    if case["scheduler"]:
        kind = getattr(torch.optim.lr_scheduler, case["scheduler"])
        scheduler = kind(optimizer, **schedule_args(case))
    return optimizer, scheduler


def run(params, optimizer, scheduler, steps):
    # Fused SGD cannot start a momentum buffer late, as step 0 asks for.
    offset = 1 if optimizer.param_groups[0]["fused"] else 0
    for step in steps:
        set_grads(params, step + offset)
        optimizer.step()
        if scheduler:
            scheduler.step()


def snapshot(params, optimizer, scheduler):
    return {
        "weights": [p.detach() for p in params],
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict() if scheduler else None,
    }


def check(case, folder):
    path = os.path.join(folder, case["name"])
    params = make_params()
    optimizer, scheduler = make(case, params)
    run(params, optimizer, scheduler, range(5))
    torch.save(snapshot(params, optimizer, scheduler), path + ".py5.pth")
    saved = torch.load(path + ".cpp5.pth", weights_only=True)
    found = difference(saved, snapshot(params, optimizer, scheduler))
    if found:
        return "after 5 steps: " + found
    run(params, optimizer, scheduler, range(5, 10))
    want = snapshot(params, optimizer, scheduler)
    torch.save(want, path + ".py10.pth")

    params = [torch.nn.Parameter(w) for w in saved["weights"]]
    optimizer, scheduler = make(case, params)
    optimizer.load_state_dict(saved["optimizer"])
    if scheduler:
        scheduler.load_state_dict(saved["scheduler"])
    run(params, optimizer, scheduler, range(5, 10))
    found = difference(snapshot(params, optimizer, scheduler), want)
    return "continued: " + found if found else "ok"


def learning_rates(case):
    """Learning rates and momenta of 200 steps, fewer if the schedule ends."""
    optimizer, scheduler = make(case, make_params())
    rows = []
    for _ in range(200):
        momenta = [g["betas"][0] if "betas" in g else g["momentum"]
                   for g in optimizer.param_groups]
        rows.append([*scheduler.get_last_lr(), *momenta])
        try:
            scheduler.step()
        except ValueError:
            break
    return rows


folder = sys.argv[1]
for case in torch.load(os.path.join(folder, "cases.pth"), weights_only=True):
    print(case["name"], check(case, folder))
    if case["scheduler"]:
        path = os.path.join(folder, case["name"] + ".rates.pth")
        torch.save(learning_rates(case), path)
