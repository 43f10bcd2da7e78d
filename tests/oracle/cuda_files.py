# SPDX-License-Identifier: BSD-3-Clause
"""Python's side of tests/cuda: optimizers, files and generators on a GPU.

torch 2.11. Argument: a folder with what C++ saved: cases.pth (the table of
tests/optim) and NAME.cpp5.pth for each case, ours.pth and ours_cuda.pth (a net
and its optimizer), rng.pth. Writes what C++ reads, and prints a line for each
subject: "NAME same bits", or what is wrong.
"""
import os
import sys
import traceback
import warnings

import torch
from torch import nn

from optim_data import difference, make_params, set_grads

warnings.simplefilter("ignore")
torch.backends.cudnn.benchmark = False
GPU = torch.device("cuda:0")
FOLDER = sys.argv[1]


def path(name):
    return os.path.join(FOLDER, name)


def load(name, **options):
    return torch.load(path(name), weights_only=True, **options)


def host(tree):
    """The tree with tensors on the CPU, so that bits can be compared."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().cpu()
    if isinstance(tree, dict):
        return {key: host(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(host(item) for item in tree)
    return tree


def tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (dict, list, tuple)):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from tensors(item)


def cuda_params():
    return [nn.Parameter(p.detach().to(GPU)) for p in make_params()]


def set_cuda_grads(params, step):
    stand_ins = [nn.Parameter(torch.empty(p.shape)) for p in params]
    set_grads(stand_ins, step)
    for param, other in zip(params, stand_ins):
        param.grad = None if other.grad is None else other.grad.to(GPU)


def set_foreach(optimizer, value):
    for group in optimizer.param_groups:
        group["foreach"] = value


def make(case, params):
    groups = [
        {"params": p, **options}
        for p, options in zip((params[:3], params[3:]), case["groups"])
    ]
    return getattr(torch.optim, case["optimizer"])(groups)


def is_fused(optimizer):
    return bool(optimizer.param_groups[0]["fused"])


def run(params, optimizer, steps, foreach=False):
    """One tensor after the other, as ours, unless `foreach` is None."""
    offset = 1 if is_fused(optimizer) else 0
    set_foreach(optimizer, None if is_fused(optimizer) else foreach)
    for step in steps:
        set_cuda_grads(params, step + offset)
        optimizer.step()
    set_foreach(optimizer, None)


def snapshot(params, optimizer):
    return {"weights": [p.detach().clone() for p in params],
            "optimizer": optimizer.state_dict()}


def check_case(case):
    params = cuda_params()
    optimizer = make(case, params)
    run(params, optimizer, range(5))
    torch.save(snapshot(params, optimizer), path(case["name"] + ".py5.pth"))
    saved = load(case["name"] + ".cpp5.pth")
    found = difference(saved, host(snapshot(params, optimizer)))
    if found:
        return "after 5 steps: " + found
    run(params, optimizer, range(5, 10))
    want = host(snapshot(params, optimizer))
    torch.save(snapshot(params, optimizer), path(case["name"] + ".py10.pth"))

    params = [nn.Parameter(w.to(GPU)) for w in saved["weights"]]
    optimizer = make(case, params)
    optimizer.load_state_dict(saved["optimizer"])
    run(params, optimizer, range(5, 10))
    found = difference(host(snapshot(params, optimizer)), want)
    return "continued: " + found if found else "same bits"


def check_default(case):
    """Python's own choice against ours."""
    params = cuda_params()
    optimizer = make(case, params)
    run(params, optimizer, range(5), foreach=None)
    saved = load(case["name"] + ".cpp5.pth")
    theirs = host(snapshot(params, optimizer))
    if not difference(saved, theirs):
        return "same bits"
    pairs = list(zip(tensors(saved), tensors(theirs), strict=True))
    close = all(torch.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)
    gap = max((a - b).abs().max().item() for a, b in pairs)
    return "within 1e-6" if close else f"differs by {gap}"


def save_capturable():
    params = cuda_params()
    optimizer = torch.optim.Adam(
        [{"params": params[:3]}, {"params": params[3:]}], capturable=True)
    for step in range(3):
        set_cuda_grads(params, step)
        optimizer.step()
    torch.save(snapshot(params, optimizer), path("capturable.pth"))


def conv_net():
    """tests/parallel/nets.h has the same."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def devices(weights):
    return " ".join(sorted({str(w.device) for w in weights.values()}))


def check_weights():
    ours = load("ours.pth")
    want = host(dict(ours["state_dict"]))
    for name, saved in (
            ("ours", ours), ("ours_cuda", load("ours_cuda.pth")),
            ("ours_mapped", load("ours.pth", map_location="cuda:0"))):
        weights = saved["state_dict"]
        found = difference(host(dict(weights)), want)
        print(name, f"{devices(weights)}, {found or 'same bits'}")
    net = conv_net().to(GPU)
    net.load_state_dict(ours["state_dict"])
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    optimizer.load_state_dict(ours["optimizer"])
    places = {str(t.device) for t in tensors(optimizer.state_dict()["state"])}
    print("ours_optimizer", "ok" if places == {"cuda:0"} else places)
    torch.save(load("ours.pth", map_location=GPU), path("ours_resaved.pth"))
    torch.save(net.state_dict(), path("state.pth"))
    torch.save({"epoch": 1, "state_dict": net.state_dict()}, path("dict.pth"))
    torch.save(net, path("whole.pth"))
    parallel = nn.DataParallel(net, device_ids=[0])
    torch.save(parallel.state_dict(), path("parallel.pth"))
    torch.save(parallel, path("whole_parallel.pth"))


def draw():
    return {"next": torch.rand(100, device=GPU),
            "mask": torch.dropout(torch.ones(100, device=GPU), 0.5, True)}


def check_generators():
    saved = load("rng.pth")
    torch.cuda.set_rng_state(saved["rng"]["cuda:0"], GPU)
    found = difference(host(draw()), host({k: saved[k] for k in ("next", "mask")}))
    print("rng", found or "same bits")
    torch.manual_seed(31)
    torch.rand(7, device=GPU)
    states = {"cpu": torch.get_rng_state(), "cuda:0": torch.cuda.get_rng_state(GPU)}
    torch.save({"rng": states, **draw()}, path("rng_py.pth"))


def guarded(name, check):
    """One failure says what it is and leaves the rest to run."""
    try:
        return check()
    except Exception as error:
        traceback.print_exc()
        text = str(error).splitlines()
        return f"{type(error).__name__}: {text[0] if text else name}"


for case in load("cases.pth"):
    print(case["name"], guarded(case["name"], lambda: check_case(case)))
    print(case["name"] + ".foreach",
          guarded(case["name"], lambda: check_default(case)))
for name, check in (("capturable", save_capturable), ("weights", check_weights),
                    ("generators", check_generators)):
    print(name, guarded(name, check) or "ok")
