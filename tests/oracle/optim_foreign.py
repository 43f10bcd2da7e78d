# SPDX-License-Identifier: BSD-3-Clause
"""States of optimizers and schedulers in the forms that files have them.

torch 2.13. Argument: a folder. Writes states whose numbers are tensors, states
whose parameters have names (torch.distributed.checkpoint.state_dict, nested and
flattened) beside `NAME.expected.pt` with the same state as the optimizer gives
it, and states of schedulers as older versions of PyTorch saved them. Prints
"NAME rate momentum ..." for the schedulers: what PyTorch does with the state in
the steps that follow, as hexadecimal floats.
"""
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_optimizer_state_dict)
from torch.optim import SGD, Adam, AdamW
from torch.optim import lr_scheduler as schedules

from optim_data import make_params, set_grads

warnings.filterwarnings("ignore")
STEPS_DONE = 2
STEPS_TO_DO = 4


def tensor_options(folder):
    """Options that are tensors without dimensions."""
    for name, make in {
        "adam": lambda p: Adam(p, lr=torch.tensor(1e-3)),
        "adam_betas": lambda p: Adam(p, lr=torch.tensor(1e-3), betas=(
            torch.tensor(0.8), torch.tensor(0.99))),
        "sgd": lambda p: SGD(p, lr=torch.tensor(0.1), momentum=0.9),
    }.items():
        params = make_params()
        optimizer = make(params)
        set_grads(params, 1)
        optimizer.step()
        for group in optimizer.param_groups:
            for option in ["weight_decay", "eps", "momentum"]:
                if option in group:
                    group[option] = torch.tensor(float(group[option]))
        torch.save(optimizer.state_dict(), folder / f"tensor_{name}.pt")


def named_states(folder):
    for name, decay in [("one", None), ("two", 0.0)]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
        groups = list(net.parameters())
        if decay is not None:
            groups = [
                {"params": [p for p in groups if p.ndim <= 1],
                 "weight_decay": decay},
                {"params": [p for p in groups if p.ndim > 1]}]
        optimizer = AdamW(groups, lr=1e-3)
        net(torch.randn(4, 3)).sum().backward()
        optimizer.step()
        torch.save(optimizer.state_dict(), folder / f"{name}.expected.pt")
        for form, flat in [("nested", False), ("flat", True)]:
            state = get_optimizer_state_dict(
                net, optimizer, options=StateDictOptions(
                    flatten_optimizer_state_dict=flat))
            torch.save(state, folder / f"{name}.{form}.pt")


def without(state, *keys):
    return {key: value for key, value in state.items() if key not in keys}


# How older versions saved the state: name, scheduler, what became of the state.
PYTORCH_1_0 = ("_step_count", "_last_lr", "_is_initial",
               "_get_lr_called_within_step")
PYTORCH_1_3 = PYTORCH_1_0[1:]
ONE_CYCLE = {"max_lr": 1.0, "total_steps": 10}


def legacy_cycle(strategy):
    def change(state):
        function = getattr(schedules.OneCycleLR, f"_annealing_{strategy}")
        return without(state, "_anneal_func_type") | {"anneal_func": function}
    return change


def two_lengths(state):
    """PyTorch 1.3 to 1.7."""
    phases = state["_schedule_phases"]
    up = phases[0]["end_step"]
    old = legacy_cycle("cos")(without(state, "_schedule_phases"))
    return old | {"step_size_up": up,
                  "step_size_down": state["total_steps"] - up - 1}


SCHEDULERS = {
    "step": (lambda o: schedules.StepLR(o, 2, 0.5),
             lambda s: without(s, *PYTORCH_1_0)),
    "step_1_3": (lambda o: schedules.StepLR(o, 2, 0.5),
                 lambda s: without(s, *PYTORCH_1_3) | {"verbose": False}),
    "multi_step": (lambda o: schedules.MultiStepLR(o, [3, 4, 4], 0.5),
                   lambda s: without(s, *PYTORCH_1_3)),
    "constant": (lambda o: schedules.ConstantLR(o, 0.5, 4),
                 lambda s: without(s, *PYTORCH_1_3)),
    "cosine": (lambda o: schedules.CosineAnnealingLR(o, 5, 0.01),
               lambda s: without(s, *PYTORCH_1_0)),
    "cosine_float": (lambda o: schedules.CosineAnnealingLR(o, 5.0, 0.01),
                     lambda s: s),
    "cycle_cos": (lambda o: schedules.OneCycleLR(o, **ONE_CYCLE),
                  legacy_cycle("cos")),
    "cycle_linear": (
        lambda o: schedules.OneCycleLR(
            o, anneal_strategy="linear", **ONE_CYCLE), legacy_cycle("linear")),
    "cycle_three": (
        lambda o: schedules.OneCycleLR(o, three_phase=True, **ONE_CYCLE),
        legacy_cycle("cos")),
    "cycle_lengths": (lambda o: schedules.OneCycleLR(o, **ONE_CYCLE),
                      two_lengths),
}


def schedulers(folder):
    for name, (make, change) in SCHEDULERS.items():
        optimizer = SGD(make_params(), lr=0.1, momentum=0.9)
        scheduler = make(optimizer)
        for _ in range(STEPS_DONE):
            optimizer.step()
            scheduler.step()
        torch.save({"optimizer": optimizer.state_dict(),
                    "scheduler": change(scheduler.state_dict())},
                   folder / f"{name}.pt")
        # With an optimizer and a scheduler made anew, as a script does.
        resumed = SGD(make_params(), lr=0.1, momentum=0.9)
        other = make(resumed)
        saved = torch.load(folder / f"{name}.pt", weights_only=False)
        resumed.load_state_dict(saved["optimizer"])
        other.load_state_dict(saved["scheduler"])
        if "_step_count" not in saved["scheduler"]:
            other._step_count = scheduler._step_count
        numbers = []
        for _ in range(STEPS_TO_DO):
            resumed.step()
            other.step()
            group = resumed.param_groups[0]
            numbers += [group["lr"].hex(), float(group["momentum"]).hex()]
        print(name, *numbers)
    # A list of milestones, which the Python of today no longer takes.
    state = schedules.MultiStepLR(
        SGD(make_params(), lr=0.1), [3, 4, 4], 0.5).state_dict()
    torch.save({"scheduler": without(state, *PYTORCH_1_0)
                | {"milestones": [3, 4, 4]}}, folder / "milestone_list.pt")


def main():
    folder = pathlib.Path(sys.argv[1])
    tensor_options(folder)
    named_states(folder)
    schedulers(folder)


if __name__ == "__main__":
    main()
