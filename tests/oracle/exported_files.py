# SPDX-License-Identifier: BSD-3-Clause
"""Programs of torch.export and what PyTorch says is in them.

exported_files.py FOLDER    writes FOLDER/NAME.pt2 for each net and prints for
                            each "file NAME", the digest lines of its weights,
                            and its operators as "node TARGET"; beside it
                            NAME.pt (the state_dict), NAME.all.pt (with the
                            constants), NAME.other.pt (other values) and
                            NAME.old.pt2 (weights in one pickle, as before 2.9)
exported_files.py FOLDER check
                            compares what is in NAME.new.pt2 with NAME.other.pt,
                            and says so
"""
import io
import sys
import warnings
import zipfile

import torch
from torch import nn

import ckpt_content

warnings.filterwarnings("ignore")


class Plain(nn.Module):
    """A constant, a buffer that is not persistent, keyword and dict."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)
        self.register_buffer("scale", torch.tensor([2.0]), persistent=False)
        self.shift = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x, *, flag=True):
        y = self.drop(torch.relu(self.norm(self.first(x))))
        y = self.last(y) * self.scale + self.shift
        rows = x.shape[0]
        return {"out": y.view(rows, -1), "more": (y.mean(), rows)}


class Tied(nn.Module):
    """Two names of one weight, and a view."""

    def __init__(self):
        super().__init__()
        self.first = nn.Embedding(7, 4)
        self.last = nn.Linear(4, 7, bias=False)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.first(x))


class Branch(nn.Module):
    """Graphs inside the graph; numbers that are not finite."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))

    def forward(self, x):
        with torch.no_grad():
            kept = x.clamp(min=-float("inf"), max=5.0).sum()
        y = torch.cond(
            x.sum() > 0, lambda t: (t * 2,), lambda t: (t - 1,), (x,))[0]
        return [y * self.weight, kept]


class Named(nn.Module):
    """A buffer that is called as a strict export calls a constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("lifted_tensor_0", torch.ones(4))

    def forward(self, x):
        return x + self.lifted_tensor_0 + torch.tensor([1.0, 2.0, 3.0, 4.0])


def nets():
    """Name, net, arguments, keyword arguments, shapes, is_strict."""
    batch = torch.export.Dim("batch", min=2, max=64)
    yield "plain", Plain(), (torch.randn(5, 4),), {"flag": True}, {
        "x": {0: batch}, "flag": None}, False
    yield "tied", Tied(), (torch.tensor([[1, 2]]),), {}, None, False
    yield "branch", Branch(), (torch.randn(3),), {}, None, False
    yield "named", Named(), (torch.randn(4),), {}, None, True


def operators(graph_module):
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and "getitem" not in str(node.target):
            target = str(node.target)
            yield target if "." in target else "higher_order." + target


def other_values(state):
    """New values; tensors that share memory stay equal."""
    made = {}
    for name, value in state.items():
        if value.data_ptr() not in made or value.numel() == 0:
            new = torch.randn(value.shape).to(value.dtype)
            made[value.data_ptr()] = new
    return {k: made[v.data_ptr()].view(v.shape) for k, v in state.items()}


def pack(path, out, program):
    """The same archive with its weights in pickles."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            root = name.split("/", 1)[0]
            if "/data/weights/" not in name and "/data/constants/" not in name:
                new.writestr(name, old.read(name))
        for part, values in (("weights", program.state_dict),
                             ("constants", program.constants)):
            bytes_ = io.BytesIO()
            torch.save(dict(values), bytes_)
            new.writestr(f"{root}/data/{part}/model.pt", bytes_.getvalue())
    torch.export.load(out)


def write(folder):
    for name, net, args, kwargs, shapes, is_strict in nets():
        program = torch.export.export(
            net, args, kwargs, dynamic_shapes=shapes, strict=is_strict)
        path = f"{folder}/{name}"
        torch.export.save(program, path + ".pt2")
        torch.save(program.state_dict, path + ".pt")
        torch.save({"state_dict": program.state_dict,
                    "constants": dict(program.constants)}, path + ".all.pt")
        torch.save(other_values(program.state_dict), path + ".other.pt")
        pack(path + ".pt2", path + ".old.pt2", program)
        print("file", name)
        rows = []
        ckpt_content.walk("", program.state_dict, rows)
        print("\n".join(sorted(rows)))
        for target in operators(program.graph_module):
            print("node", target)


def check(folder):
    for name, *_ in nets():
        new = torch.export.load(f"{folder}/{name}.new.pt2")
        old = torch.export.load(f"{folder}/{name}.pt2")
        want = torch.load(f"{folder}/{name}.other.pt")
        assert list(new.state_dict) == list(want) == list(old.state_dict)
        for key, value in want.items():
            assert torch.equal(new.state_dict[key], value), key
            assert new.state_dict[key].requires_grad == (
                old.state_dict[key].requires_grad), key
        for key, value in old.constants.items():
            assert torch.equal(new.constants[key], value), key
        assert str(new.graph) == str(old.graph)
        new.module()
        print("equal", name)


def main():
    torch.manual_seed(0)
    (check if sys.argv[2:] == ["check"] else write)(sys.argv[1])


main()
