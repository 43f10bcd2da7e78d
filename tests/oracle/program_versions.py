# SPDX-License-Identifier: BSD-3-Clause
"""Files that another torch exported, trained by this one: scripts/program_versions.sh.

program_versions.py export FOLDER NET...   writes FOLDER/NET.pt2 by the torch that
    runs it: nets of torchvision, of timm ("timm.vit_tiny_patch16_224"), or of
    program_nets.py
program_versions.py train FOLDER NET...    trains what torch.export.load makes of
    each file for 3 steps by SGD with momentum, and writes FOLDER/NET.ref.pt
program_versions.py compare FOLDER NET...  compares that with FOLDER/NET.cpp.pt,
    which program_versions of tests/program wrote
Exits with 1 if a net fails, or if names or bits differ.
"""
import os
import sys
import warnings

import torch
from torch.nn import functional as F

warnings.filterwarnings("ignore")
STEPS = 3
CLASSES = 10


def torchvision_net(name):
    import torchvision
    torch.manual_seed(0)
    net = torchvision.models.get_model(name, num_classes=CLASSES)
    size = 224 if name.startswith("vit") else 64
    return net, torch.randn(4, 3, size, size)


def timm_net(name):
    import timm
    torch.manual_seed(0)
    net = timm.create_model(name, num_classes=CLASSES)
    config = net.default_cfg
    size = config["input_size"][1] if config.get("fixed_input_size") else 64
    return net, torch.randn(4, 3, size, size)


def own_net(name):
    import program_nets
    torch.manual_seed(0)
    make, batch, *_ = program_nets.NETS[name]
    return make(), batch(4)[0][0]


def foreign_net(name):
    library, _, rest = name.rpartition(".")
    return timm_net(rest) if library == "timm" else torchvision_net(name)


def export(folder, name):
    import program_nets
    own = name in program_nets.NETS
    net, x = own_net(name) if own else foreign_net(name)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net.train(), (x,), dynamic_shapes=({0: batch},))
    torch.export.save(program, f"{folder}/{name}.pt2")
    batches = [(torch.randn_like(x) if x.is_floating_point() else x,
                torch.randint(CLASSES if not own else 3, (4,))) for _ in range(STEPS)]
    torch.save({"x": [b[0] for b in batches], "y": [b[1] for b in batches]}, f"{folder}/{name}.batches.pt")
    print(name, "exported by", torch.__version__)


def train(folder, name):
    torch.set_num_threads(1)
    net = torch.export.load(f"{folder}/{name}.pt2").module()
    batches = torch.load(f"{folder}/{name}.batches.pt")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    torch.manual_seed(1)
    losses = []
    for x, y in zip(batches["x"], batches["y"]):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.save({"losses": torch.stack(losses), "state": net.state_dict()}, f"{folder}/{name}.ref.pt")


def compare(folder, name):
    """Raises unless names and bits are the same."""
    if not os.path.exists(f"{folder}/{name}.cpp.pt"):
        raise FileNotFoundError("C++ wrote no result")
    want = torch.load(f"{folder}/{name}.ref.pt")
    got = torch.load(f"{folder}/{name}.cpp.pt")
    losses = sum(torch.equal(a, b) for a, b in zip(want["losses"], got["losses"], strict=True))
    state, other = want["state"], got["state"]
    names = [key for key in state if key in other]
    same = sum(torch.equal(state[key], other[key]) for key in names)
    worst = max((difference(state[key], other[key]) for key in names), default=0.0)
    print(f"{name:22} losses {losses} of {STEPS}, state {same} of {len(state)} equal, largest difference {worst:.2g}")
    if state.keys() != other.keys():
        raise ValueError(f"the names differ: {sorted(state.keys() ^ other.keys())[:5]}")
    if losses != STEPS or same != len(state):
        raise ValueError("the bits differ")


def difference(a, b):
    return (a.double() - b.double()).abs().max().item() if a.shape == b.shape and a.numel() else 0.0


def main():
    command, folder, *names = sys.argv[1:]
    failures = 0
    for name in names:
        try:
            {"export": export, "train": train, "compare": compare}[command](folder, name)
        except Exception as error:
            print(f"{name:22} {command} failed: {type(error).__name__}: {str(error)[:300]}")
            failures += 1
    sys.exit(1 if failures else 0)


main()
