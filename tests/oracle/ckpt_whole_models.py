# SPDX-License-Identifier: BSD-3-Clause
"""Models that were saved whole, as training scripts leave them behind.

ckpt_whole_models.py make FOLDER: writes FOLDER/<case>.pt and what their
state_dict is as FOLDER/<case>.keep and, without wrappers, FOLDER/<case>.bare;
prints the case names. Files "from GPUs" carry tags and ids of GPUs that no
machine here has.
ckpt_whole_models.py layers FOLDER: the same for what holds models, and for the
layers of torch.nn and torch.ao.nn; prints "<case> <children that only Python can
read, by commas>".
ckpt_whole_models.py check A B...: compares pairs of state_dicts with the safe
loader: keys in order, bytes, types, strides, `_metadata`; prints "same" for each.
"""
import argparse
import collections
import copyreg
import dataclasses
import inspect
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
    for name, model in {
        "distributed_compiled": distributed(torch.compile(net)),
        "compiled_distributed": torch.compile(distributed(net)),
    }.items():
        yield name, model, model, net
    swa = averaged(old)
    yield "averaged", swa, swa, swa.module
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    yield "graph", graph, graph, graph
    compiled = torch.compile(net)
    yield "average_alone", {"epoch": -1, "model": None, "ema": compiled}, compiled, net


class Twice(nn.Module):
    """Pickled as a state of its own making, and as a call with a state."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 1)
        self.unused = object

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "unused"}

    def __reduce__(self):
        return Twice, (), self.__getstate__()


class Foreign(nn.Module):
    """Pickled as what only its own code can read."""

    def __init__(self, kind="tuple"):
        super().__init__()
        self.inside = nn.Linear(2, 1)
        self.kind = kind

    def __reduce__(self):
        return {
            "tuple": (Foreign, (), (self.__dict__, 7)),
            "dict": (Foreign, (), {"weights": self.state_dict()}),
            "tensor": (Foreign, (self.inside.weight,)),
            "module": (Foreign, (self.inside,)),
        }[self.kind]


@dataclasses.dataclass
class Holder:
    model: nn.Module
    epoch: int = 3


class OwnDict(dict):
    pass


# The only model of the file, wherever it is.
def held_cases():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    yield "dataclass", Holder(net), net
    yield "dataclass_in_dict", {"epoch": 1, "at": Holder(net)}, net
    yield "namespace", argparse.Namespace(net=net, step=1), net
    yield "dicts", {"state": {"net": net, "optimizer": optimizer}}, net
    yield "list", [3, net], net
    yield "tuple", (net, optimizer), net
    yield "own_dict", OwnDict(net=net), net
    yield "default_dict", collections.defaultdict(list, {"net": net}), net
    yield "uncalled_in_dict", {"epoch": 1, "state_dict": net.state_dict}, net
    yield "again", {"run": {"net": net, "best": net}}, net


def quantized(*layers):
    from torch.ao import quantization
    net = nn.Sequential(quantization.QuantStub(), *layers, quantization.DeQuantStub()).eval()
    net.qconfig = quantization.get_default_qconfig("fbgemm")
    ready = quantization.prepare(net)
    ready(torch.randn(2, 1, 3, 2))
    return quantization.convert(ready)


def every_layer():
    import torch.ao.nn.intrinsic as fused
    import torch.ao.nn.intrinsic.quantized as fused_quantized
    import torch.ao.nn.quantizable as quantizable
    import torch.ao.nn.quantized as quantized_layers
    import torch.ao.nn.quantized.dynamic as dynamic
    import torch.ao.nn.quantized.reference as reference
    import torch.ao.quantization as observers
    folders = (nn, fused, fused_quantized, quantizable, quantized_layers, dynamic, reference, observers)
    kinds = dict.fromkeys(
        kind for folder in folders for _, kind in sorted(vars(folder).items())
        if inspect.isclass(kind) and issubclass(kind, nn.Module) and not kind.__name__.startswith("Lazy"))
    arguments = [(4, 4), (4, 4, 2), (4, 4, 4), (4,), (), (nn.Linear(2, 2),),
                 (nn.Linear(2, 2), nn.BatchNorm1d(2)), (nn.TransformerEncoderLayer(4, 2), 1)]
    for kind in kinds:
        for args in arguments:
            try:
                yield kind(*args)
            except Exception:  # other arguments
                continue
            break


def layer_cases():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper, offload_wrapper
    from torch.nn.utils import prune, weight_norm
    checkpointed = nn.Sequential(checkpoint_wrapper(Net()), offload_wrapper(nn.Linear(2, 1)))
    yield "checkpointed", checkpointed
    yield "checkpointed_root", checkpoint_wrapper(Net())
    yield "checkpointed_compiled", on_gpus(torch.compile(checkpoint_wrapper(Net())))
    pruned = nn.Linear(2, 2)
    prune.l1_unstructured(pruned, "weight", 1)
    yield "reparametrized", nn.Sequential(pruned, weight_norm(nn.Linear(2, 2)))
    yield "containers", nn.ModuleDict({
        "list": nn.ModuleList([nn.ParameterList([torch.ones(1), nn.Parameter(torch.zeros(2))])]),
        "dict": nn.ParameterDict({"z": torch.ones(1), "a": nn.Parameter(torch.ones(3))}),
        "none": nn.ParameterList([])})
    with torch.device("meta"):
        yield "meta", nn.Sequential(nn.Linear(2, 2))
    sparse = nn.Linear(2, 2)
    sparse.weight = nn.Parameter(torch.eye(2).to_sparse())
    yield "sparse", nn.Sequential(sparse)
    yield "own_state", nn.Sequential(Twice(), nn.Linear(1, 1))
    yield "quantized", quantized(nn.Conv2d(1, 2, 1), nn.Linear(2, 2))
    yield "dynamic", torch.ao.quantization.quantize_dynamic(
        nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2)), {nn.Linear, nn.LSTM})
    foreign = collections.OrderedDict((kind, Foreign(kind)) for kind in ("tuple", "dict", "tensor", "module"))
    yield "foreign", nn.Sequential(nn.Linear(1, 1), nn.ModuleDict(foreign))
    yield "every_layer", nn.ModuleList(every_layer())


# What a file can hold without PyTorch's own classes, and without ours.
def is_packed(value):
    return isinstance(value, torch.ScriptObject)


def make_layers(folder):
    held = ((name, value, net) for name, value, net in held_cases())
    for name, value, model in itertools.chain(held, ((n, m, m) for n, m in layer_cases())):
        path = os.path.join(folder, name)
        save(value, path + ".pt", False)
        state = model.state_dict()
        lost = {key: key for key, part in state.items() if is_packed(part)}
        for path_of, module in model.named_modules():
            if isinstance(module, Foreign):
                lost.update((key, path_of) for key in state if key.startswith(path_of + "."))
                for child, _ in module.named_modules(prefix=path_of):
                    state._metadata.pop(child, None)
        for key in lost:
            del state[key]
        save(state, path + ".keep", False)
        print(name, ",".join(dict.fromkeys(lost.values())))


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


def check_value(key, a, b):
    assert type(a) is type(b), key
    if isinstance(a, tuple):
        assert len(a) == len(b), key
        for one, other in zip(a, b):
            check_value(key, one, other)
    elif not isinstance(a, torch.Tensor):
        assert a == b, (key, a, b)
    elif a.is_meta or a.is_sparse:
        assert a.shape == b.shape and a.dtype == b.dtype and a.layout == b.layout, key
        assert a.is_meta or torch.equal(a.to_dense(), b.to_dense()), key
    else:
        assert a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b), key
        assert a.requires_grad == b.requires_grad, key


def check(first, second):
    a, b = (torch.load(path, weights_only=True) for path in (first, second))
    assert type(a) is type(b) and list(a) == list(b), (list(a), list(b))
    assert a._metadata == b._metadata, (a._metadata, b._metadata)
    assert list(a._metadata) == list(b._metadata)
    for key in a:
        check_value(key, a[key], b[key])
    shared = [[k for k in d if d[k].untyped_storage().data_ptr() == d["head.weight"].untyped_storage().data_ptr()]
              for d in (a, b) if "head.weight" in d]
    assert not shared or shared[0] == shared[1] == ["head.weight", "tied.weight", "again.weight"], shared
    print("same")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "layers":
        make_layers(sys.argv[2])
    else:
        for first, second in zip(sys.argv[2::2], sys.argv[3::2]):
            check(first, second)
