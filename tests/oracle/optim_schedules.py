# SPDX-License-Identifier: BSD-3-Clause
"""Python's side of tests/optim/schedule_oracle_test.cpp.

Argument: a folder with cases.pth (the table), ours.pth (what C++ saved in the
middle of each case) and refused.pth (bad arguments). Writes answers.pth: for each
case the rates and momenta after each step, the states in the middle and at the
end, and what is wrong with going on from C++'s ("" if nothing); and the texts of
the errors.
"""
import os
import sys
import warnings

import torch
from torch.optim import lr_scheduler, swa_utils

from optim_data import difference

warnings.simplefilter("ignore")
LAMBDAS = {
    "decay": lambda x: 0.95**x,
    "stairs": lambda x: x // 3 + 1,
    "half": lambda x: 0.5,
    "none": None,
}


def build(schedule, optimizer):
    args = dict(schedule["args"])
    if "lr_lambda" in args:
        functions = [LAMBDAS[name] for name in args["lr_lambda"]]
        args["lr_lambda"] = functions[0] if len(functions) == 1 else functions
    if "scale_fn" in args:
        args["scale_fn"] = LAMBDAS[args["scale_fn"]]
    is_swa = schedule["kind"] == "SWALR"
    kind = getattr(swa_utils if is_swa else lr_scheduler, schedule["kind"])
    if "schedulers" not in schedule:
        return kind(optimizer, **args)
    inner = [build(one, optimizer) for one in schedule["schedulers"]]
    if kind is lr_scheduler.ChainedScheduler:
        return kind(inner, **args)
    return kind(optimizer, inner, **args)


def make(case):
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], **options}
              for options in case["groups"]]
    return getattr(torch.optim, case["optimizer"])(groups)


class Session:
    def __init__(self, case):
        self.case = case
        self.optimizer = make(case)
        self.scheduler = build(case["schedule"], self.optimizer)
        self.rows = []
        self.note()

    def note(self):
        groups = self.optimizer.param_groups
        self.rows.append(
            [float(lr) for lr in self.scheduler.get_last_lr()]
            + [float(group["lr"]) for group in groups]
            + [float(g["betas"][0] if "betas" in g else g.get("momentum", 0))
               for g in groups])

    def steps(self, first, last):
        for i in range(first, last):
            self.optimizer.step()
            argument = self.case["arguments"][i:i + 1] or [None]
            if argument[0] is None:
                self.scheduler.step()
            else:
                self.scheduler.step(argument[0])
            self.note()

    def state(self):
        return {"optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict()}

    def load(self, state):
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])


def compare(ours, theirs):
    return difference(ours["scheduler"], theirs["scheduler"], exact=True) or (
        difference(ours["optimizer"], theirs["optimizer"]))


def frozen(state):
    """A copy: a state dict aliases the scheduler's lists."""
    path = os.path.join(folder, "state.pth")
    torch.save(state, path)
    return torch.load(path, weights_only=True)


def answer(case, ours):
    straight = Session(case)
    straight.steps(0, case["middle"])
    middle = frozen(straight.state())
    straight.steps(case["middle"], case["steps"])
    found = compare(ours, middle)
    if not found:
        second = Session(case)
        second.load(ours)
        second.steps(case["middle"], case["steps"])
        found = compare(second.state(), straight.state())
        if not found and second.rows[1:] != straight.rows[case["middle"] + 1:]:
            found = "other rates after loading"
    return {"rows": straight.rows, "middle": middle,
            "end": frozen(straight.state()), "found": found or ""}


def text_of_error(case):
    try:
        session = Session(case)
        session.steps(0, case["steps"])
    except Exception as error:  # noqa: BLE001
        return str(error.args[0])
    return "no error"


folder = sys.argv[1]
cases, ours, refused = (
    torch.load(os.path.join(folder, name + ".pth"), weights_only=True)
    for name in ("cases", "ours", "refused"))
answers = {case["name"]: answer(case, ours[case["name"]]) for case in cases}
answers["refused"] = {case["name"]: text_of_error(case) for case in refused}
torch.save(answers, os.path.join(folder, "answers.pth"))
