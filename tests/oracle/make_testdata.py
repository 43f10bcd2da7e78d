# SPDX-License-Identifier: BSD-3-Clause
"""Writes testdata/valid: small checkpoints with what they hold.

Run by hand with torch 2.13 when a case is added; the results are committed:
    .venv/bin/python tests/oracle/make_testdata.py [FOLDER]
Each NAME.pt gets a NAME.pt.expect.json with the tensors in file order; "crc32"
is taken over the logical elements, row-major and little-endian. Not made here:
edited_in_place*.pt, by an early version of Lockstep, which edited in place.
"""
import collections
import json
import pathlib
import sys
import zipfile
import zlib

import numpy
import torch

torch.manual_seed(0)


def logical_bytes(tensor):
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return bytes(plain.flatten().view(torch.uint8).numpy()) if plain.numel() else b""


def tensors_of(value, name=""):
    """Names and tensors of plain containers, in order."""
    below = (lambda key: f"{name}.{key}" if name else str(key))
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_of(item, below(key))
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for index, item in enumerate(value):
            yield from tensors_of(item, below(index))
    elif isinstance(value, torch.nn.Module):
        yield from ((below(k), v) for k, v in value.state_dict(keep_vars=True).items())


def expectation(value, **more):
    rows = [
        {
            "name": name,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "offset": tensor.storage_offset(),
            "requires_grad": tensor.requires_grad,
            "crc32": zlib.crc32(logical_bytes(tensor)),
        }
        for name, tensor in tensors_of(value)
    ]
    return {"tensors": rows, "format": "zip", "crc": "present", **more}


def save(folder, name, value, **more):
    path = folder / name
    torch.save(value, path)
    finish(path, expectation(value, **more))


def finish(path, expected):
    text = json.dumps(expected, indent=1)
    path.with_name(path.name + ".expect.json").write_text(text + "\n")


def write_corpus(valid, broken):
    """valid(folder) and the files (name, bytes, code, detail) of broken."""
    here = pathlib.Path(__file__).resolve().parents[2]
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "testdata")
    for folder in ("valid", "corrupt"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    valid(root / "valid")
    for file, payload, code, detail in broken:
        path = root / "corrupt" / file
        path.write_bytes(payload)
        text = json.dumps({"code": code, "detail": detail})
        path.with_name(path.name + ".expect.json").write_text(text + "\n")


def rewrite(source, target, change, method=zipfile.ZIP_STORED):
    """Copies an archive; `change(record, bytes)` gives bytes or None (drop)."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for info in old.infolist():
            record = info.filename.split("/", 1)[1]
            payload = change(record, old.read(info))
            if payload is not None:
                entry = zipfile.ZipInfo(info.filename)
                entry.compress_type = method
                new.writestr(entry, payload)


def plain_dtypes():
    floats = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
    ints = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
    tensors = {str(d)[6:]: torch.arange(-2, 4).to(d) for d in floats + ints}
    tensors["bool"] = torch.tensor([True, False, True])
    tensors["complex64"] = torch.tensor([1 + 2j, -3j])
    tensors["complex128"] = torch.tensor([1 + 2j], dtype=torch.complex128)
    return tensors


def v3_dtypes():
    ints = [torch.uint16, torch.uint32, torch.uint64]
    small = [torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e5m2fnuz,
             torch.float8_e4m3fnuz]
    return {str(d)[6:]: torch.arange(4.0).to(d) for d in ints + small}


def views():
    base = torch.arange(24.0)
    grid = base.view(4, 6)
    return {
        "base": base, "grid": grid, "transposed": grid.t(), "row": grid[2],
        "column": grid[:, 1], "step": base[1::5], "scalar": base[7],
        "expanded": base[3:4].expand(3, 2), "empty": torch.empty(0, 3),
        "twice": [grid, grid],
    }


def small_net():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(4, 3))


def training():
    net = small_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 5])
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    scheduler.step()
    return {
        "epoch": 1, "arch": "small", "state_dict": net.state_dict(),
        "best_acc1": 87.25, "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
    }


def values():
    shared = {"lr": 0.1}
    return {
        "none": None, "yes": True, "int": -5, "wide": 2**40, "huge": 3**60,
        "float": 1e-5, "text": "caf\u00e9 \u4f60", "bytes": b"\x00\xffab",
        "tuple": (1, (2,), ()), "list": [1, "a", [None]], "set": {1, 2},
        "complex": 1 - 2j, "size": torch.Size([2, 3]),
        "device": torch.device("cuda", 1), "dtype": torch.bfloat16,
        "counter": collections.Counter([3, 5, 5]),
        "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
        "shared": [shared, shared], 7: "int key", "array": bytearray(b"xyz"),
    }


def numpy_numbers():
    """What a training loop keeps that computes its scores with NumPy."""
    net = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    return {
        "state_dict": net.state_dict(), "best_acc1": numpy.float64(87.25),
        "loss": numpy.float32(0.1), "epoch": numpy.int64(3),
    }


def lazy():
    def z():
        return torch.tensor([1 + 2j, 3 - 4j])
    return {"conj": z().conj(), "neg": z().conj().imag}


def swap_words(record, payload):
    if record == "byteorder":
        return b"big"
    if record.startswith("data/"):
        return b"".join(payload[i:i + 4][::-1] for i in range(0, len(payload), 4))
    return payload


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "testdata/valid")
    folder.mkdir(parents=True, exist_ok=True)
    tiny = collections.OrderedDict([("w", torch.tensor([1.0, 2.0]))])
    save(folder, "tiny.pt", tiny)
    save(folder, "plain_dtypes.pt", plain_dtypes())
    save(folder, "v3_dtypes.pt", v3_dtypes())
    save(folder, "views.pt", views())
    save(folder, "training.pth.tar", training())
    save(folder, "values.pt", values())
    save(folder, "lazy.pt", lazy())
    save(folder, "numpy_numbers.pt", numpy_numbers(), unsafe=2)
    wrapped = torch.nn.DataParallel(small_net())
    save(folder, "dataparallel.pt", wrapped.state_dict())
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    marked = torch.nn.Parameter(torch.zeros(2))
    marked.tag = "frozen"
    save(folder, "parameter.pt", {"p": parameter, "marked": marked})
    model = small_net()
    save(folder, "whole_model.pt", model, unsafe=4)
    torch.serialization.set_crc32_options(False)
    save(folder, "no_crc.pt", tiny, crc="absent")
    torch.serialization.set_crc32_options(True)

    pair = {"a": torch.arange(5.0), "b": torch.tensor([7], dtype=torch.int32)}
    source = folder / "source.tmp"
    torch.save(pair, source)
    rewrite(source, folder / "big_endian.pt", swap_words)
    finish(folder / "big_endian.pt", expectation(pair))
    zeros = {"a": torch.zeros(300)}
    torch.save(zeros, source)
    rewrite(source, folder / "deflated.pt", lambda _, b: b, zipfile.ZIP_DEFLATED)
    finish(folder / "deflated.pt", expectation(zeros))
    source.unlink()


if __name__ == "__main__":
    main()
