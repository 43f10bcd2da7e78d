# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges files with tests/tensor/checkpoint_test.cpp.

write DIR    writes Python's files.
read DIR     loads Lockstep's files strictly and prints what they hold.
"""
import sys
import zipfile

import torch
from torch import nn

from tensor_modules import MyModule, Net, fill

mode, folder = sys.argv[1:3]


def path(name):
    return f"{folder}/{name}"


def tag_as_cuda(source, target):
    """The same file as a GPU would have written it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for record in old.infolist():
            data = old.read(record)
            if record.filename.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu",
                                    b"X\x06\x00\x00\x00cuda:1")
            new.writestr(record.filename, data)


def write():
    net = fill(Net())
    torch.save(net.state_dict(), path("net.pt"))
    torch.save(dict(net.state_dict()), path("plain.pt"))
    torch.save(nn.DataParallel(net).state_dict(), path("wrapped.pt"))
    torch.save({"epoch": 3, "state_dict": net.state_dict(), "lr": 0.5},
               path("checkpoint.pth.tar"))
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"whole": base, "view": base.t()[1:3],
                "half": torch.ones(2, dtype=torch.bfloat16)}, path("views.pt"))
    torch.save([1, 2], path("list.pt"))
    torch.save(MyModule().state_dict(), path("cpu.pt"))
    tag_as_cuda(path("cpu.pt"), path("cuda.pt"))
    try:
        torch.load(path("cuda.pt"))
    except RuntimeError as error:
        print(error)


def read():
    def load(name):
        return torch.load(path(name), weights_only=True, mmap=True)

    state = load("net.pt")
    net = Net()
    print(net.load_state_dict(state))
    expected = fill(Net()).state_dict()
    print(all(torch.equal(a, b) for a, b in
              zip(net.state_dict().values(), expected.values())))
    print(state._metadata == expected._metadata, type(state).__name__)
    print(nn.DataParallel(Net()).load_state_dict(load("wrapped.pt")))
    file = load("checkpoint.pth.tar")
    print(list(file), file["epoch"], file["lr"], file["name"])
    print(Net().load_state_dict(file["state_dict"]))
    shared = file["state_dict"]["scale"]
    print(shared.untyped_storage().data_ptr()
          == file["alias"].untyped_storage().data_ptr())
    print(file["view"].tolist(), file["view"].stride())


{"write": write, "read": read}[mode]()
