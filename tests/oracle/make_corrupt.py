# SPDX-License-Identifier: BSD-3-Clause
"""Writes testdata/corrupt: broken and foreign files with the error they give.

    .venv/bin/python tests/oracle/make_corrupt.py [FOLDER]
Each NAME gets a NAME.expect.json with the error's code and detail. Nothing in
these files does harm when it is read by anything.
"""
import gzip
import io
import json
import pathlib
import struct
import sys
import zipfile


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    data = value.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def ints(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def name(module, attribute):
    return b"c" + f"{module}\n{attribute}\n".encode()


def storage(kind="FloatStorage", key="0", numel=number(4)):
    parts = text("storage") + name("torch", kind) + text(key) + text("cpu")
    return b"(" + parts + numel + b"tQ"


def tensor(offset=0, size=(2, 2), stride=(2, 1), **of_storage):
    hooks = name("collections", "OrderedDict") + b")R"
    args = (storage(**of_storage) + number(offset) + ints(size) + ints(stride)
            + b"\x89" + hooks)
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + args + b"tR"


def pickled(*values):
    items = b"".join(text(f"w{i}") + value for i, value in enumerate(values))
    return b"\x80\x02}(" + items + b"u."


def archive(records, root="a"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for record, payload in records:
            new.writestr(zipfile.ZipInfo(f"{root}/{record}"), payload)
    return out.getvalue()


def checkpoint(pickle=None, **changes):
    records = {
        "data.pkl": pickled(tensor()) if pickle is None else pickle,
        "byteorder": b"little", "data/0": bytes(range(16)), "version": b"3\n"}
    records.update({k.replace("__", "/"): v for k, v in changes.items()})
    return archive([(k, v) for k, v in records.items() if v is not None])


def flipped(data, needle):
    at = data.index(needle)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def with_tensor(**how):
    return checkpoint(pickled(tensor(**how)))


def half_download():
    """The first half of what torch.save writes today."""
    out = io.BytesIO()
    torch.save({"w": torch.arange(400.0), "b": torch.ones(2)}, out)
    return out.getvalue()[:len(out.getvalue()) // 2]


def cases():
    good = checkpoint()
    big = 1 << 62
    corrupt, unsupported, unsafe = "kCorrupt", "kUnsupported", "kUnsafe"
    system = name("os", "system") + text("true") + b"\x85R"
    yield "empty.pt", b"", corrupt, "E_EMPTY"
    yield "magic_cut.pt", b"PK\x03", corrupt, "E_TRUNCATED"
    yield "cut_1.pt", good[:-1], corrupt, "E_ZIP_NO_EOCD"
    yield "cut_half.pt", good[:len(good) // 2], corrupt, "E_ZIP_NO_EOCD"
    yield "prefix.pt", b"#!/bin/sh\n" + good, corrupt, "E_PREFIX"
    yield "lfs_pointer.pt", (
        b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:00ff\nsize 46827520\n"), unsupported, "E_LFS_POINTER"
    yield "html.pt", b"<!DOCTYPE html><html></html>", unsupported, "E_WRONG_FORMAT"
    yield "denied.pt", (
        b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'
    ), unsupported, "E_WRONG_FORMAT"
    yield "not_found.pt", b"Entry not found", unsupported, "E_WRONG_FORMAT"
    yield "zeros.pt", bytes(64), unsupported, "E_WRONG_FORMAT"
    yield "data.pkl", pickled(tensor()), unsupported, "E_WRONG_FORMAT"
    yield "half_download.pt", half_download(), corrupt, "E_ZIP_NO_EOCD"
    yield "json.pt", b'{"error": "not found"}', unsupported, "E_WRONG_FORMAT"
    yield "gzip.pt", gzip.compress(good, mtime=0), unsupported, "E_WRONG_FORMAT"
    yield "hdf5.pt", b"\x89HDF\r\n\x1a\n" + bytes(8), unsupported, "E_WRONG_FORMAT"
    yield "plain_pickle.pt", b"\x80\x04N.", unsupported, "E_WRONG_FORMAT"
    yield "safetensors.pt", (
        struct.pack("<Q", 2) + b"{}x"), corrupt, "E_SAFETENSORS_LAYOUT"
    yield "noise.pt", bytes(range(100, 200)), unsupported, "E_WRONG_FORMAT"
    yield "crc_data.pt", flipped(good, bytes(range(16))), corrupt, "E_CRC"
    yield "crc_pickle.pt", flipped(good, b"w0"), corrupt, "E_CRC"
    yield "no_version.pt", checkpoint(version=None), corrupt, "E_VERSION"
    yield "version_abc.pt", checkpoint(version=b"abc"), corrupt, "E_VERSION"
    yield "version_99.pt", checkpoint(version=b"99"), corrupt, "E_VERSION"
    yield "byteorder.pt", checkpoint(byteorder=b"middle"), corrupt, "E_BYTEORDER"
    yield "no_pickle.zip", archive([("notes.txt", b"hi")]), corrupt, "E_VERSION"
    yield "no_pickle.pt", checkpoint(**{"data.pkl": None}), corrupt, "E_NO_PICKLE"
    yield "no_storage.pt", checkpoint(data__0=None), corrupt, "E_NO_STORAGE"
    yield "storage_short.pt", checkpoint(data__0=bytes(15)), corrupt, "E_STORAGE_SHORT"
    yield "view_bounds.pt", with_tensor(offset=1), corrupt, "E_VIEW_BOUNDS"
    yield "view_negative.pt", with_tensor(stride=(-2, 1)), corrupt, "E_VIEW_NEGATIVE"
    yield "offset_negative.pt", with_tensor(offset=-1), corrupt, "E_VIEW_NEGATIVE"
    yield "overflow.pt", with_tensor(size=(big, 4)), corrupt, "E_OVERFLOW"
    yield "overflow_stride.pt", with_tensor(stride=(big * 2 - 1, 2)), corrupt, "E_OVERFLOW"
    yield "rank.pt", with_tensor(size=(2, 2, 1)), corrupt, "E_RANK"
    yield "rank_65.pt", with_tensor(
        size=(1,) * 65, stride=(1,) * 65), corrupt, "E_RANK"
    yield "numel_bool.pt", with_tensor(numel=b"\x88"), corrupt, "E_TYPE"
    yield "numel_negative.pt", with_tensor(numel=number(-4)), corrupt, "E_TYPE"
    yield "numel_huge.pt", with_tensor(numel=number(2**62)), corrupt, "E_OVERFLOW"
    yield "no_storage_class.pt", with_tensor(kind="load"), corrupt, "E_TYPE"
    yield "key_path.pt", with_tensor(key="../data.pkl"), corrupt, "E_NAME"
    yield "conflict.pt", checkpoint(pickled(
        tensor(), tensor(kind="IntStorage"),
        tensor(kind="LongStorage"))), corrupt, "E_STORAGE_CONFLICT"
    yield "uninitialised.pt", checkpoint(
        pickled(name("torch", "FloatTensor") + number(4) + b"\x85R")
    ), corrupt, "E_PICKLE_TYPE"
    yield "setitem_tensor.pt", checkpoint(
        pickled(tensor() + text("k") + b"Ns")), corrupt, "E_PICKLE_TYPE"
    yield "payload_then_broken.pt", checkpoint(
        b"\x80\x02" + system + b"\x00"), unsupported, "E_OPCODE"
    yield "memo_miss.pt", checkpoint(b"\x80\x02h\x05."), corrupt, "E_MEMO"
    yield "deep.pt", checkpoint(
        b"\x80\x02N" + b"\x85" * 2000 + b"."), unsafe, "E_DEPTH"
    yield "protocol_9.pt", checkpoint(b"\x80\x09N."), unsupported, "E_PROTO"
    yield "no_stop.pt", checkpoint(b"\x80\x02N"), corrupt, "E_PICKLE"


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "testdata/corrupt")
    folder.mkdir(parents=True, exist_ok=True)
    for file, data, code, detail in cases():
        (folder / file).write_bytes(data)
        expected = {"code": code, "detail": detail}
        (folder / (file + ".expect.json")).write_text(json.dumps(expected) + "\n")
    unpack(folder / "unpacked/tiny")


def unpack(folder):
    """A checkpoint that somebody unzipped."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data.pkl").write_bytes(pickled(tensor()))
    (folder / "data/0").write_bytes(bytes(range(16)))
    (folder / "version").write_bytes(b"3\n")


if __name__ == "__main__":
    main()
