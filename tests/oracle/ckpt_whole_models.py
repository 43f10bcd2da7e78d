# SPDX-License-Identifier: BSD-3-Clause
"""Models that were saved whole, as training scripts leave them behind.

ckpt_whole_models.py make FOLDER: writes FOLDER/<case>.pt and what their
state_dict is as FOLDER/<case>.keep and, without wrappers, FOLDER/<case>.bare;
prints the case names. Files "from GPUs" carry tags and ids of GPUs that no
machine here has.
ckpt_whole_models.py check A B...: compares pairs of state_dicts with the safe
loader: keys in order, bytes, types, strides, `_metadata`; prints "same" for each.
"""
import copyreg
import itertools
import os
import sys
import warnings

import torch
import torch.fx
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(3)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(2)
        self.plain = nn.InstanceNorm2d(2)


class Net(nn.Module):
    """Everything that must not become a key, beside what must."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.register_parameter("absent", None)
        self.register_buffer("kept", torch.arange(3))
        self.register_buffer("dropped", torch.zeros(9), persistent=False)
        self.blocks = nn.Sequential(Block(), nn.ReLU(), Block())
        self.rnn = nn.LSTM(3, 2)
        self.head = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.head.weight
        self.view = self.head.weight.detach()[:2]
        self.config = {"depth": 2, "mean": torch.zeros(2)}
        self.again = self.head


class Trap(nn.Module):
    """A layer that is really called `module`: cutting k[7:] breaks it."""

    def __init__(self):
        super().__init__()
        self.module = nn.Linear(2, 1)
        self.module_list = nn.ModuleList([nn.Linear(1, 1)])


def on_gpus(model):
    """DataParallel as it is where GPUs are."""
    model = nn.DataParallel(model)
    model.dim, model.device_ids, model.output_device = 0, [0, 1, 3], 0
    model.src_device_obj = torch.device("cuda", 0)
    return model


def distributed(model):
    """DistributedDataParallel as it is saved: without group and reducer."""
    kind = nn.parallel.DistributedDataParallel
    kind._check_default_group = lambda self: None  # there is no group here
    wrapper = kind.__new__(kind)
    nn.Module.__init__(wrapper)
    wrapper.module = model
    wrapper.device_ids, wrapper.output_device = [2], 2
    wrapper.process_group = wrapper.reducer = wrapper.logger = None
    wrapper.forward_sync_buffers = True
    wrapper.modules_buffers = [list(model.buffers())]
    return wrapper


class WithCompiled(nn.Module):
    """Children that torch.compile and torch.fx replaced."""

    def __init__(self):
        super().__init__()
        self.body = torch.compile(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
        self.graph = torch.fx.symbolic_trace(nn.Linear(2, 1))
        self.head = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.head.weight
        self.again = self.head


def trained(model):
    return {"epoch": 3, "best_mIoU": 0.5, "model": model, "path": "runs/1.pth.tar"}


# name: (what is saved, the model in it, the bare model, legacy format)
def cases():
    for legacy in (False, True):
        kind = "legacy" if legacy else "zip"
        net, trap = Net(), Trap()
        wrapped, spread, trapped = on_gpus(net), distributed(net), on_gpus(trap)
        yield f"{kind}_bare", net, net, net, legacy
        yield f"{kind}_data_parallel", wrapped, wrapped, net, legacy
        yield f"{kind}_distributed", spread, spread, net, legacy
        yield f"{kind}_trap", trapped, trapped, trap, legacy
        yield f"{kind}_checkpoint", trained(wrapped), wrapped, net, legacy
        yield f"{kind}_uncalled", wrapped.state_dict, wrapped, net, legacy
        yield f"{kind}_nested", nn.DataParallel(wrapped), nn.DataParallel(wrapped), net, legacy


# The same with wrappers of other kinds, in any order.
def wrapped_cases():
    averaged = torch.optim.swa_utils.AveragedModel
    net = WithCompiled()
    old = Net()
    yield "compiled_children", net, net, net
    for name, model in {
        "compiled": torch.compile(net),
        "parallel_compiled": on_gpus(torch.compile(net)),
        "compiled_parallel": torch.compile(on_gpus(net)),
        "parallel_compiled_parallel": on_gpus(torch.compile(on_gpus(net))),
    }.items():
        yield name, model, model, net
    # torch 2.0 pickled the state.
    compiled = torch.compile(old)
    kind, kept = type(compiled), type(compiled).__reduce__
    kind.__reduce__ = lambda self: (
        copyreg.__newobj__, (kind,), {"training": True, "_parameters": {},
                                      "_buffers": {}, "_modules": self._modules})
    yield "compiled_by_state", compiled, compiled, old
    kind.__reduce__ = kept
    swa = averaged(old)
    yield "averaged", swa, swa, swa.module
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    yield "graph", graph, graph, graph
    compiled = torch.compile(net)
    yield "average_alone", {"epoch": -1, "model": None, "ema": compiled}, compiled, net


def save(value, path, legacy, tag="cpu"):
    real = torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: tag
    torch.save(value, path, _use_new_zipfile_serialization=not legacy)
    torch.serialization.location_tag = real


def make(folder):
    wrapped = ((*case, False) for case in wrapped_cases())
    for name, value, model, bare, legacy in itertools.chain(cases(), wrapped):
        path = os.path.join(folder, name)
        save(value, path + ".pt", legacy, tag="cuda:7")
        save(model.state_dict(), path + ".keep", False)
        save(bare.state_dict(), path + ".bare", False)
        print(name)


def check(first, second):
    a, b = (torch.load(path, weights_only=True) for path in (first, second))
    assert type(a) is type(b) and list(a) == list(b), (list(a), list(b))
    assert a._metadata == b._metadata, (a._metadata, b._metadata)
    assert list(a._metadata) == list(b._metadata)
    for key in a:
        assert type(a[key]) is type(b[key]) and a[key].dtype == b[key].dtype, key
        assert a[key].stride() == b[key].stride() and torch.equal(a[key], b[key]), key
        assert a[key].requires_grad == b[key].requires_grad, key
    shared = [[k for k in d if d[k].untyped_storage().data_ptr() == d["head.weight"].untyped_storage().data_ptr()]
              for d in (a, b) if "head.weight" in d]
    assert not shared or shared[0] == shared[1] == ["head.weight", "tied.weight", "again.weight"], shared
    print("same")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        for first, second in zip(sys.argv[2::2], sys.argv[3::2]):
            check(first, second)
