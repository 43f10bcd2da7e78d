# SPDX-License-Identifier: BSD-3-Clause
"""Files to edit, and PyTorch's judgement of the edited ones (torch 2.13.0).

ckpt_edit.py make FOLDER        writes wrapped.pt, a DataParallel's state_dict
                                inside a checkpoint, and plain.pt, the same
                                after consume_prefix_in_state_dict_if_present;
                                wrapped.pt has records beside PyTorch's own
ckpt_edit.py equal FILE WANTED  loads FILE in every way and compares it with
                                WANTED: keys, order, metadata, tensors;
                                zipfile must see those records
ckpt_edit.py crash FILE OLD NEW prints whether FILE holds what OLD or NEW does
"""
import os
import sys
import warnings
import zipfile

os.environ["TORCH_SERIALIZATION_DEBUG"] = "1"
import torch  # noqa: E402
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present  # noqa: E402

warnings.filterwarnings("ignore")


FOREIGN = {"extra/notes.json": b'{"by": "hand"}', "data/9999": b"unused", "empty": b""}
DEFLATED = b"again and " * 100


def make(folder):
    torch.manual_seed(0)
    net = torch.nn.Sequential(*(
        torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
        for _ in range(150)))
    state = torch.nn.DataParallel(net).state_dict()
    torch.save({"epoch": 3, "state_dict": state}, f"{folder}/wrapped.pt")
    with zipfile.ZipFile(f"{folder}/wrapped.pt", "a") as archive:
        for name, content in FOREIGN.items():
            archive.writestr(f"wrapped/{name}", content)
        archive.writestr(
            "wrapped/deflated", DEFLATED, zipfile.ZIP_DEFLATED)
    consume_prefix_in_state_dict_if_present(state, "module.")
    torch.save({"epoch": 3, "state_dict": state}, f"{folder}/plain.pt")


def weights(path, **options):
    return torch.load(path, weights_only=True, **options)["state_dict"]


def same(a, b):
    return (list(a) == list(b) and dict(a._metadata) == dict(b._metadata)
            and all(torch.equal(a[k], b[k]) for k in a))


def equal(path, wanted):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        root = archive.namelist()[0].split("/")[0]
        for name, content in {**FOREIGN, "deflated": DEFLATED}.items():
            assert archive.read(f"{root}/{name}") == content, name
    expected = weights(wanted)
    assert same(weights(path), expected)
    assert same(weights(path, mmap=True), expected)
    print("equal")


def crash(path, old, new):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    got, mapped = weights(path), weights(path, mmap=True)
    assert same(got, mapped)
    print("old" if same(got, weights(old)) else "new" if same(got, weights(new)) else "other")


{"make": make, "equal": equal, "crash": crash}[sys.argv[1]](*sys.argv[2:])
