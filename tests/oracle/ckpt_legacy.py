# SPDX-License-Identifier: BSD-3-Clause
"""The cases of ckpt_cases.py in the format of torch 1.5, with plain keys.

ckpt_legacy.py FOLDER: writes FOLDER/<case>.pt as `torch.save` does, but with
the keys 0, 1, ... in the order of first use in place of addresses, reads it with
the safe loader, and prints the case names.
"""
import io
import os
import pickle
import pickletools
import struct
import sys

import torch

import ckpt_cases

# What torch 2.13 writes in this format and cannot read again: untyped storages,
# and nested tensors, which it rebuilds from sizes whose bytes it has not read yet.
NOT_IN_LEGACY = {"untyped_dtypes", "storages", "bits", "layouts"}


def pickles(data, count):
    """Ends of the first pickles."""
    stream, ends = io.BytesIO(data), []
    for _ in range(count):
        for _ in pickletools.genops(stream):
            pass
        ends.append(stream.tell())
    return ends


def blobs(data, at, keys, sizes):
    """Bytes of each key's storage, the count before them included."""
    found = {}
    for key in keys:
        end = at + 8 + struct.unpack_from("<q", data, at)[0] * sizes[key]
        found[key] = data[at:end]
        at = end
    assert at == len(data)
    return found


class Sizes(pickle.Unpickler):
    """Element sizes by key; the tensors themselves do not matter."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.sizes = {}

    def persistent_load(self, pid):
        self.sizes.setdefault(pid[2], torch._utils._element_size(pid[1].dtype))
        return None

    def find_class(self, module, name):
        if "_rebuild" in name:
            return lambda *args: None
        if name.endswith("Storage"):
            return torch.serialization.StorageType(name)
        return super().find_class(module, name)


def plain_keys(data):
    """The file with the keys 0, 1, ... and its blobs in their order."""
    _, _, begin, middle, end = pickles(data, 5)
    keys = pickle.loads(data[middle:end])
    body, names, at = b"", {}, begin
    for opcode, argument, place in pickletools.genops(data[begin:middle]):
        if opcode.name == "BINUNICODE" and argument in keys:
            new = names.setdefault(argument, str(len(names)))
            body += data[at:begin + place] + b"X" + struct.pack("<I", len(new)) + new.encode()
            at = begin + place + 5 + len(argument)
    body += data[at:middle]
    reader = Sizes(data[begin:middle])
    reader.load()
    payload = {names[key]: blob for key, blob in blobs(data, end, keys, reader.sizes).items()}
    order = sorted(payload)
    return data[:begin] + body + pickle.dumps(order, 2) + b"".join(payload[k] for k in order)


def make(folder):
    for name, case in ckpt_cases.CASES.items():
        if name in NOT_IN_LEGACY:
            continue
        out = io.BytesIO()
        torch.save(case(), out, _use_new_zipfile_serialization=False)
        path = os.path.join(folder, name + ".pt")
        with open(path, "wb") as file:
            file.write(plain_keys(out.getvalue()))
        torch.load(path, weights_only=True)
        print(name)


if __name__ == "__main__":
    make(sys.argv[1])
